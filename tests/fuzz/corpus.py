"""Kernels for the mutation fuzzer to start from, each with arguments that fit it."""

import harvest

ADD = """
@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, SIZE: tl.constexpr):
    i = tl.program_id(axis=0) * SIZE + tl.arange(0, SIZE)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask, other=0.0)
    y = tl.load(y_ptr + i, mask=mask)
    tl.store(out_ptr + i, x + y * 2 - 1.5, mask=mask)
"""

SOFTMAX = """
@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, SIZE: tl.constexpr):
    row = tl.program_id(0)
    step = tl.num_programs(0)
    for r in tl.range(row, n, step, num_stages=2):
        j = tl.arange(0, SIZE)
        x = tl.load(x_ptr + r * n + j, mask=j < n, other=-float("inf"))
        x = x - tl.max(x, axis=0)
        e = tl.exp(x)
        tl.store(out_ptr + r * n + j, e / tl.sum(e, axis=0), mask=j < n)
"""

MATMUL = """
@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, n, SIZE: tl.constexpr):
    rows = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    depth = tl.arange(0, 16)
    a = a_ptr + rows[:, None] * n + depth[None, :]
    b = b_ptr + depth[:, None] * n + rows[None, :]
    acc = tl.zeros((SIZE, SIZE), dtype=tl.float32)
    for k in range(0, tl.cdiv(n, 16)):
        x = tl.load(a, mask=depth[None, :] < n - k * 16, other=0.0)
        y = tl.load(b, mask=depth[:, None] < n - k * 16, other=0.0)
        acc = tl.dot(x, y, acc)
        a += 16
        b += 16 * n
    c = acc.to(tl.float16)
    tl.store(c_ptr + rows[:, None] * n + rows[None, :], c)
"""

FUNCTIONS = """
@triton.jit
def combine(a, b, c, d):
    return a + c, tl.maximum(b, d)

@triton.jit
def several(x, flag: tl.constexpr = True, *rest):
    if flag:
        return x + 1, x * 2
    else:
        return x - len(rest), x

@triton.jit(noinline=True)
def apart(x, n):
    return x * n

@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    a, b = tl.reduce((x, y), 0, combine)
    c, d = several(x, flag=SIZE > 4)
    p, q = tl.associative_scan((c, d), 0, combine, reverse=True)
    z = apart(p + a, n) - q * b
    tl.store(out_ptr + i, z.to(out_ptr.dtype.element_ty))
"""

CONTROL = """
@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, SIZE: tl.constexpr):
    total = 0
    step = 1 if n > 3 else 2
    for i in range(n):
        if i % 3 == 0 and i != 5:
            continue
        elif i > 20 or not total < 1000:
            break
        total += i * step
    while total > 10:
        total = total // 2
        if total == 7:
            return
    for k in tl.static_range(0, SIZE, 4):
        total += k
    if 0 <= total < 100:
        tl.store(out_ptr, total)
    else:
        tl.store(out_ptr + 1, -total)
"""

SHAPES = """
@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, SIZE: tl.constexpr):
    i = tl.arange(0, 4)[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    x = tl.load(x_ptr + i)
    t = tl.trans(x).reshape(2, SIZE * 2)
    a, b = tl.split(tl.join(x, x.T.reshape((4, SIZE))))
    s = tl.expand_dims(tl.sum(a, axis=1), 1) + b[:, 0:1] + x[1, 2]
    f = tl.flip(tl.broadcast_to(s, (4, SIZE)), 0)
    g = tl.gather(f, i % 4, 0)
    h = tl.sort(tl.ravel(g))[::2]
    tl.store(out_ptr + tl.arange(0, 2 * SIZE), h + tl.max(t))
"""

BLOCKS = """
@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, SIZE: tl.constexpr):
    start = tl.program_id(0)
    offsets = (0, start)
    p = tl.make_block_ptr(x_ptr, shape=(n, n), strides=(n, 1), offsets=offsets, block_shape=(SIZE, 8), order=(1, 0))
    q = tl.make_block_ptr(out_ptr, (n, n), (n, 1), (0, 0), (SIZE, 8), (1, 0))
    x = tl.load(p, boundary_check=(0, 1), padding_option="zero")
    p = tl.advance(p, (SIZE, 0))
    x += tl.load(p, boundary_check=(1,))
    tl.store(q, x, boundary_check=(0, 1))
"""

ATOMICS = """
@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    while tl.atomic_cas(out_ptr, 0, 1) == 1:
        pass
    old = tl.atomic_add(out_ptr + i, 1, mask=i < n, sem="relaxed")
    tl.atomic_max(out_ptr + i, old)
    tl.debug_barrier()
    tl.atomic_xchg(out_ptr, 0)
    h = tl.histogram(old, 8)
    tl.static_assert(h.shape[0] == 8, f"shape {h.shape}")
    tl.device_assert(old >= 0, "old")
    tl.device_print("h", h)
    tl.static_print("dtype", h.dtype)
"""

META = """
@triton.jit
def kernel(X, Y, Z, n, **META):
    SIZE = META["SIZE"]
    i = tl.arange(0, SIZE)
    seed: tl.constexpr = 5
    r = tl.rand(seed, i) > 0.5
    x = tl.where(r, tl.load(X + i), 0.0)
    y = tl.extra.libdevice.tanh(x) + tl.sigmoid(x) + tl.math.exp2(x)
    z = (y.to(tl.float8e5).to(tl.float32) + tl.cumsum(y, 0)).to(tl.int32, bitcast=True)
    tl.store(Z + tl.multiple_of(i, 8), (z >> 3 & 15 | ~z ^ 1) % 7 // 2)
"""

SOURCES = [ADD, SOFTMAX, MATMUL, FUNCTIONS, CONTROL, SHAPES, BLOCKS, ATOMICS, META]


def pick(random):
    """The source of a kernel: one of these, or one that lies about in the repository."""
    pool = SOURCES if random.random() < 0.5 else harvest.sources()
    return pool[int(random.integers(len(pool)))]


def arguments(source):
    """Positional arguments and keywords of the kernel, as texts of Python."""
    if source not in SOURCES:
        return harvest.arguments(source)
    dtype = "int32" if source in (ATOMICS, CONTROL, META) else "float32"
    arrays = [f"np.zeros(4096, {name!r})" for name in ("float32", "float32", dtype)]
    return [*arrays, "24"], {"SIZE": "16"}
