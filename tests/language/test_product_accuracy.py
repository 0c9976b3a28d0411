"""Products of random shapes, strides, masks and epilogues: the error beside fp64 is no larger than the vendor's library
has on the same numbers; where there is none, than one rounding of the sums of rounded operands. Of tf32 the larger of
both counts, since a library may compute in fp32 where K is small. And what operands in tf32 are rounded to."""

import struct

import pytest

import triton
import triton.language as tl

torch = pytest.importorskip("torch")

TYPES = {
    "fp16": (torch.float16, torch.float16),  # of the operands, of the result
    "bf16": (torch.bfloat16, torch.bfloat16),
    "tf32": (torch.float32, torch.float32),
    "fp8": (torch.float8_e4m3fn, torch.bfloat16),
}
# How much larger the error may be: sums are taken in another order. Of tf32 on wgmma one operand is cut and the other
# one rounded away from zero, whose error is 1.057 of that of rounding both to nearest, and scatters where numbers are
# few. To cut both is 2.6 of it, to cut one 1.6.
SLACK = {"tf32": 1.12}
TILES = (64, 64, 32, 4), (128, 64, 64, 4), (64, 128, 32, 8), (128, 128, 64, 8), (32, 16, 64, 2), (16, 64, 128, 4)
EPILOGUES = "plain", "relu", "bias"


@triton.jit
def product(
    a_ptr, b_ptr, c_ptr, bias_ptr, M, N, K, a_row, a_column, b_row, b_column, c_row,
    EPILOGUE: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        a_mask = (rows[:, None] < M) & (ks[None, :] < K)
        b_mask = (ks[:, None] < K) & (columns[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * a_row + ks[None, :] * a_column, mask=a_mask, other=0.0)
        b = tl.load(b_ptr + ks[:, None] * b_row + columns[None, :] * b_column, mask=b_mask, other=0.0)
        sums = tl.dot(a, b, sums)
    if EPILOGUE == "bias":
        sums += tl.load(bias_ptr + columns, mask=columns < N, other=0.0)[None, :]
    if EPILOGUE == "relu":
        sums = tl.maximum(sums, 0.0)
    c = c_ptr + rows[:, None] * c_row + columns[None, :]
    tl.store(c, sums.to(c_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N))


class Case:
    """What a seed stands for; extents are multiples of `multiple`."""

    def __init__(self, seed, device, largest, multiple=1):
        self.random = torch.Generator().manual_seed(seed)
        self.device = device
        self.tile, self.epilogue, self.stages = self.pick(TILES), self.pick(EPILOGUES), 2 + self.below(3)
        self.m, self.n, self.k = (multiple * (1 + self.below(largest // multiple)) for _ in range(3))

    def below(self, limit):
        return int(torch.randint(limit, (), generator=self.random))

    def pick(self, choices):
        return choices[self.below(len(choices))]

    def matrix(self, rows, columns, dtype, turned):
        """Normally distributed; or the transpose of one that is in memory, whose rows lie apart."""
        if turned:
            return self.matrix(columns, rows, dtype, False).T
        gap = self.pick((0, 0, 8, 16, 3)) if dtype.itemsize > 1 else 16 * self.below(2)
        values = torch.randn(rows, columns + gap, generator=self.random)
        return values.to(dtype).to(self.device)[:, :columns]

    def operands(self, dtype, turned):
        a = self.matrix(self.m, self.k, dtype, turned[0])
        b = self.matrix(self.k, self.n, dtype, turned[1])
        return a, b, torch.randn(self.n, generator=self.random).to(self.device)

    def ours(self, a, b, bias, dtype):
        block_m, block_n, block_k, warps = self.tile
        whole = torch.full((self.m, self.n + self.pick((0, 8, 1))), float("nan"), dtype=dtype, device=self.device)
        c = whole[:, : self.n]
        grid = triton.cdiv(self.m, block_m), triton.cdiv(self.n, block_n)
        product[grid](
            a, b, c, bias, self.m, self.n, self.k, *a.stride(), *b.stride(), c.stride(0),
            self.epilogue, block_m, block_n, block_k, num_warps=warps, num_stages=self.stages,
        )  # fmt: skip
        return c

    def finish(self, product, bias):
        if self.epilogue == "bias":
            return product + bias.to(product.dtype)
        return product.relu() if self.epilogue == "relu" else product

    def error(self, c, a, b, bias):
        """Relative, of all elements together (Frobenius)."""
        exact = self.finish(a.double() @ b.double(), bias)
        return ((c.double() - exact).norm() / exact.norm().clamp(min=1e-30)).item()


def rounded_once(a, b, bias, case, name, dtype):
    """The sums in fp64 of what the tensor core takes, in the type of the result."""
    if name == "tf32":  # to nearest, in the lowest 13 bits
        a, b = (((x.contiguous().view(torch.int32) + 4096) & -8192).view(torch.float32) for x in (a, b))
    return case.finish(a.double() @ b.double(), bias).to(dtype)


def of_the_vendor(a, b, bias, case, name, dtype):
    if name == "fp8":
        one = torch.ones((), device=a.device)
        c = torch._scaled_mm(a, b, scale_a=one, scale_b=one, out_dtype=dtype, use_fast_accum=True)
        return case.finish(c, bias)
    if case.epilogue == "bias":
        return torch.addmm(bias.to(dtype), a, b)
    return case.finish(a @ b, bias)


def compare(name, seed, device, largest):
    operand, result = TYPES[name]
    on_gpu = device == "cuda"
    case = Case(seed, device, largest, multiple=16 if name == "fp8" else 1)
    turned = (False, True) if name == "fp8" else (bool(case.below(2)), bool(case.below(2)))  # as its library takes them
    a, b, bias = case.operands(operand, turned)
    if name == "fp8" and on_gpu:
        a, b = a.contiguous(), b.T.contiguous().T
    bias = bias.to(result).float()
    references = [of_the_vendor] if on_gpu else []
    if name == "tf32" or not on_gpu:
        references.append(rounded_once)
    expected = max(case.error(r(a, b, bias, case, name, result), a, b, bias) for r in references)
    error = case.error(case.ours(a, b, bias, result), a, b, bias)
    limit = SLACK.get(name, 1.05) * expected + 1e-6
    about = f"seed {seed}: {case.m}x{case.n}x{case.k}, {turned}, {case.tile}, {case.epilogue}, stages {case.stages}"
    assert error <= limit, f"{error:.3g} > {limit:.3g} for {about}"


@pytest.mark.parametrize("name", TYPES)
def test_some_products(name, target):
    """Small ones, on every target."""
    for seed in range(4):
        compare(name, seed, "cuda" if target == "cuda" else "cpu", 150)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 125, 25))
@pytest.mark.parametrize("name", TYPES)
def test_many_products(name, first, target, monkeypatch):
    """500 in all, large ones, beside the vendor's library."""
    if target != "cuda":
        pytest.skip("compares with the vendor's library of a GPU")
    monkeypatch.setattr(torch.backends.cuda.matmul, "allow_tf32", True)
    for seed in range(first, first + 25):
        compare(name, 1000 + seed, "cuda", 3000)


# ---- operands in tf32, one by one ----------------------------------------------------------------------------------

NAN, ONE, INFINITY, LARGEST = 0x7FC00000, 0x3F800000, 0x7F800000, 0x7F7FFFFF
EXACT = 0, ONE, 0x3F802000, 0x3FFFE000, 0x7F7FE000, INFINITY, 0x00800000, 0x447FE000  # what tf32 holds
OTHERS = 0x3F800001, 0x3F800FFF, 0x3F801000, 0x3F801001, 0x3FFFFFFF, 0x3FFFF000, 0x40490FDB, 0x00801234, 0x7F7FDFFF
NO_NUMBERS = NAN, 0x7FFFFFFF, 0x7FC01FFF


@triton.jit
def loop(
    a_ptr, b_ptr, c_ptr, K, a_row, a_column, b_row, b_column,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, HALVES: tl.constexpr,
):  # fmt: skip
    """HALVES: the operand, if any, of halves made wider, which tf32 holds."""
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    sums = tl.zeros((M, N), tl.float32)
    for start in range(0, K, D):
        ks = start + tl.arange(0, D)
        a = tl.load(a_ptr + rows[:, None] * a_row + ks[None, :] * a_column)
        b = tl.load(b_ptr + ks[:, None] * b_row + columns[None, :] * b_column)
        if HALVES == "left":
            a = a.to(tl.float16).to(tl.float32)
        if HALVES == "right":
            b = b.to(tl.float16).to(tl.float32)
        sums = tl.dot(a, b, sums)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], sums)


@triton.jit
def whole(
    a_ptr, b_ptr, c_ptr, K, a_row, a_column, b_row, b_column,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, HALVES: tl.constexpr,
):  # fmt: skip
    """All of K at once: nothing is loaded ahead."""
    rows, columns, ks = tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    a = tl.load(a_ptr + rows[:, None] * a_row + ks[None, :] * a_column)
    b = tl.load(b_ptr + ks[:, None] * b_row + columns[None, :] * b_column)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], tl.dot(a, b))


def floats(bits):
    both = [b | sign for b in bits for sign in (0, 1 << 31)]
    return torch.tensor([struct.unpack("f", struct.pack("I", b))[0] for b in both])


def bits_of(x):
    return x.cpu().contiguous().view(torch.int32)


def multiply(kernel, a, b, turned, depth, warps, device, halves="", stages=3):
    a, b = ((x.T.contiguous().T if t else x).to(device) for x, t in zip((a, b), turned, strict=True))
    c = torch.full((a.shape[0], b.shape[1]), float("nan"), device=device)
    kernel[(1,)](
        a, b, c, a.shape[1], *a.stride(), *b.stride(), *c.shape, depth, halves, num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return c.cpu()


@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("m, n, warps", [(128, 128, 8), (64, 64, 4), (64, 64, 1)])
@pytest.mark.parametrize("kernel, depth", [(loop, 32), (whole, 64)])
@pytest.mark.parametrize("left", [True, False])
def test_rounding_of_operands(left, kernel, depth, m, n, warps, turned, device):
    """Numbers times one, from either side: what tf32 holds stays, what is no number stays none, and the rest is at most
    one unit of tf32 off, or infinity beyond the largest."""

    def times_one(x):
        a, b = torch.zeros(m, 64), torch.zeros(64, n)
        if left:
            a[: len(x), 0], b[0] = x, 1
        else:
            a[:, 0], b[0, : len(x)] = 1, x
        c = multiply(kernel, a, b, turned, depth, warps, device)
        return (c[: len(x)] if left else c[:, : len(x)].T)[:, 0]

    def bits(x):
        return x.contiguous().view(torch.int32)

    exact, others, largest = floats(EXACT), floats(OTHERS), floats([LARGEST])
    assert torch.equal(times_one(exact), exact)
    found = times_one(others)
    assert ((bits(found) - bits(others)).abs() <= 0x2000).all(), (found, others)
    assert times_one(floats(NO_NUMBERS)).isnan().all()
    assert torch.equal(times_one(largest).clamp(-3.4e38, 3.4e38), largest.clamp(-3.4e38, 3.4e38))


@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize("m, n, warps", [(128, 128, 8), (64, 64, 4), (64, 64, 1)])
@pytest.mark.parametrize(
    "kernel, depth, halves", [(loop, 32, ""), (whole, 64, ""), (loop, 32, "left"), (loop, 32, "right")]
)
def test_mean_of_errors(kernel, depth, halves, m, n, warps, turned, device):
    """Of sums of positive numbers: were one operand cut alone, all would be off by 3e-4."""
    random = torch.Generator().manual_seed(1)
    a, b = 1 + torch.rand(m, 64, generator=random), 1 + torch.rand(64, n, generator=random)
    a, b = a.half().float() if halves == "left" else a, b.half().float() if halves == "right" else b
    c = multiply(kernel, a, b, turned, depth, warps, device, halves)
    exact = a.double() @ b.double()
    assert abs(((c - exact) / exact).mean()) < 4e-5


@pytest.mark.parametrize("turned", [(False, False), (False, True), (True, False), (True, True)])
@pytest.mark.parametrize(
    "m, n, depth, stages",
    [(128, 256, 32, 3), (128, 256, 32, 5), (128, 256, 64, 3), (256, 128, 64, 3), (128, 256, 16, 3)],
)
@pytest.mark.filterwarnings("ignore:.*is lowered to")
def test_large_tiles(m, n, depth, stages, turned, device):
    """Which tensor cores multiply in halves of their depth, that are copied and read by themselves."""
    random = torch.Generator().manual_seed(2)
    a, b = torch.randn(m, 3 * depth, generator=random), torch.randn(3 * depth, n, generator=random)
    exact = a.double() @ b.double()
    c = multiply(loop, a, b, turned, depth, 8, device, stages=stages)
    assert (c - exact).norm() / exact.norm() < 3.3e-4
