"""Kernels that Python runs: the same results and errors as compiled ones, and what only the interpreter does."""

import ctypes

import numpy as np
import pytest

import triton
import triton.language as tl
from triton import knobs
from triton.runtime import interpret


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    monkeypatch.delenv("TRITON_TARGET", raising=False)
    monkeypatch.setenv("TRITON_INTERPRET", "1")  # whose end takes back what a test does with it
    with knobs.runtime.scope():
        knobs.runtime.interpret = True
        yield


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


def test_a_kernel_of_arrays_of_numpy_and_torch():
    torch = pytest.importorskip("torch")
    x, out = np.arange(100, dtype=np.float32), np.zeros(100, np.float32)
    assert add[(7,)](x, x, out, 100, BLOCK=16) is None
    assert (out == 2 * x).all()
    t = torch.arange(100, dtype=torch.bfloat16)[::1]
    result = torch.zeros_like(t)
    add[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](t, t, result, 100, BLOCK=16)
    assert torch.equal(result, 2 * t)


def test_elements_are_not_assigned():
    @triton.jit
    def assign(x):
        tile = tl.arange(0, 4)
        tile[0] = 1

    with pytest.raises(TypeError, match="elements cannot be assigned.*choose elements with tl.where"):
        assign[(1,)](np.zeros(4, np.int32))


def test_python_sees_tiles(capsys):
    seen = []

    @triton.jit
    def kernel(x, out):
        i = tl.arange(0, 4)
        tile = tl.load(x + i)
        note(tile, i)
        print("tile", tile, tile.dtype, tile.shape)
        print(f"{tile}")
        tl.store(out + i, tile.to(tl.float32))

    def note(tile, index):
        seen.append((tile.numpy(), index.numpy(), str(tile.dtype)))

    note.__module__ = "numpy"  # functions of debuggers, and of numpy, take tiles
    kernel.fn.__globals__["note"] = note
    x, out = np.array([1, 2, 3, 4], np.int8), np.zeros(4, np.float32)
    kernel[(1,)](x, out)
    assert capsys.readouterr().out == "tile [1 2 3 4] int8 (4,)\n[1 2 3 4]\n"
    assert seen[0][0].tolist() == [1, 2, 3, 4] and seen[0][1].tolist() == [0, 1, 2, 3] and seen[0][2] == "int8"
    assert out.tolist() == [1, 2, 3, 4]


def test_programs_run_one_after_the_other():
    order = []

    @triton.jit
    def kernel(x):
        order.append((int(tl.program_id(0)), int(tl.program_id(1)), int(tl.num_programs(2))))

    kernel[(3, 2, 1)](np.zeros(1))
    assert order == [(x, y, 1) for y in range(2) for x in range(3)]


@triton.jit
def outside(x, out, n):
    i = tl.arange(0, 8)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


def test_every_access_is_checked():
    """Without `debug`, too: the names of arrays, the index, the extent."""
    x, out = np.zeros(5, np.int16), np.zeros(8, np.int16)
    message = r"kernel 'outside': .*test_interpreter.py:\d+: load out of bounds of the array 'x': index 5, and it has 5"
    with pytest.raises(triton.KernelError, match=message) as error:
        outside[(1,)](x, out, 6)
    assert str(error.value).endswith("elements, in program (0, 0, 0)")
    out.flags.writeable = False
    with pytest.raises(ValueError, match="argument 'out': the array is read-only"):
        outside[(1,)](x, out, 5)


def test_pointers_from_memory():
    """A kernel that finds the addresses of its arrays in an array, as grouped products do; and one without memory."""

    @triton.jit
    def kernel(addresses, out):
        source = tl.load(addresses).to(tl.pointer_type(tl.float32))
        tl.store(out, tl.load(source + 1) + 1)

    values, out = np.array([1, 2], np.float32), np.zeros(1, np.float32)
    kernel[(1,)](np.array([values.ctypes.data], np.int64), out)
    assert out[0] == 3
    with pytest.raises(triton.KernelError, match="load at address 0x14, where there is no memory"):
        kernel[(1,)](np.array([0x10], np.int64), out)
    assert ctypes  # the process lives


def test_errors_are_the_compiler_s():
    @triton.jit
    def kernel(x):
        a = tl.arange(0, 4)
        b = a + tl.arange(0, 8)
        tl.store(x + b, b)

    with pytest.raises(triton.CompilationError) as interpreted:
        kernel[(1,)](np.zeros(8, np.int32))
    knobs.runtime.interpret = False
    with pytest.raises(triton.CompilationError) as compiled:
        kernel[(1,)](np.zeros(8, np.int32))
    assert str(interpreted.value) == str(compiled.value)


@triton.jit
def range_with_keyword(n):
    for _ in range(n, step=2):
        pass


@triton.jit
def range_of_four(n):
    for _ in range(0, n, 1, 1):
        pass


@triton.jit
def static_range_of_run_time(n):
    for _ in tl.static_range(0, n):
        pass


@triton.jit
def static_range_without_step(n):
    for _ in tl.static_range(0, 4, step=0):
        pass


RANGES = [range_with_keyword, range_of_four, static_range_of_run_time, static_range_without_step]


@pytest.mark.parametrize("kernel", RANGES)
def test_mistakes_in_ranges(kernel):
    with pytest.raises(triton.CompilationError) as interpreted:
        kernel[(1,)](10)
    knobs.runtime.interpret = False
    with pytest.raises(triton.CompilationError) as compiled:
        kernel[(1,)](10)
    assert interpreted.value.message == compiled.value.message


@triton.jit
def assembly(x):
    tl.store(x, tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [tl.load(x)], tl.int32, True, 1))


def test_inline_assembly_is_refused():
    with pytest.raises(triton.UnsupportedError, match="inline assembly cannot be interpreted"):
        assembly[(1,)](np.zeros(1, np.int32))


SCALE: tl.constexpr = 3


@triton.jit(noinline=True)
def scaled(x, factor: tl.constexpr = 2):
    if factor == 1:
        return x
    return x * factor * SCALE


def test_functions_and_compile_time_values():
    outer = tl.constexpr(10)

    @triton.jit
    def kernel(out, n, LIST: tl.constexpr, **META):
        total = 0
        for k in tl.static_range(3):
            total += LIST[k]
        for k in range(n):
            if k == 2:
                continue
            if k == 5:
                break
            total += scaled(k, factor=META["FACTOR"])
        flag = total > 3 and n > 2 or n == 0
        tl.store(out, total + outer if flag else -1)

    out = np.zeros(1, np.int32)
    kernel[(1,)](out, 7, LIST=(1, 2, 3), FACTOR=2)
    assert out[0] == 6 + (0 + 1 + 3 + 4) * 6 + 10
    knobs.runtime.interpret = False
    compiled = np.zeros(1, np.int32)
    kernel[(1,)](compiled, 7, LIST=(1, 2, 3), FACTOR=2)
    assert compiled[0] == out[0]


def test_the_environment_is_read_when_a_kernel_is_made():
    with pytest.MonkeyPatch.context() as monkeypatch:  # undone before the settings are
        knobs.runtime.interpret = False
        monkeypatch.setenv("TRITON_INTERPRET", "1")
        triton.jit(add.fn)
        assert not interpret.is_asked() and not knobs.runtime.interpret  # what the program says goes before it
        del knobs.runtime.interpret
        monkeypatch.setenv("TRITON_INTERPRET", "1")
        order = []

        @triton.jit
        def kernel(x):
            order.append(1)

        kernel[(1,)](np.zeros(1))
        assert order == [1] and knobs.runtime.interpret
        monkeypatch.setenv("TRITON_INTERPRET", "0")
        triton.jit(kernel.fn)
        assert not knobs.runtime.interpret


def test_hooks_grids_and_tuned_kernels():
    tuned = triton.autotune([triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 32})], key=["n"])(add)
    x, out = np.ones(40, np.float32), np.zeros(40, np.float32)
    tuned[lambda meta: (triton.cdiv(40, meta["BLOCK"]),)](x, x, out, 40)
    assert (out == 2).all()
    with pytest.raises(TypeError, match="needs the keyword argument 'grid'"):
        add.run(x, x, out, 40, BLOCK=16)


@triton.jit
def combined(a, i, b, j):
    keep = (a > b) | ((a == b) & (i < j))
    return tl.where(keep, a, b), tl.where(keep, i, j)


@triton.jit
def many(x, y, out, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    a = tl.load(x + i * N + j)
    window = tl.make_block_ptr(y, (N, N), (N, 1), (0, 0), (N, N), (1, 0))
    b = tl.load(window.advance((0, 0)), boundary_check=(0, 1))
    product = tl.dot(a, b, input_precision="tf32x3")
    value, index = tl.reduce((product, tl.broadcast_to(j, (N, N))), 1, combined)
    running = tl.cumsum(product.to(tl.float8e5).to(tl.float32), 0)
    tl.store(out + i * N + j, running + tl.sort(product) + value[:, None] + index[:, None])
    tl.atomic_add(out + i * 0 + j * 0, tl.full((N, N), 1.0, tl.float32))


def test_a_kernel_of_many_operations():
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-3, 4, (8, 8)).astype(np.float32) for _ in range(2))
    out, compiled = np.zeros((2, 8, 8), np.float32)
    many[(1,)](x, y, out, N=8)
    knobs.runtime.interpret = False
    many[(1,)](x, y, compiled, N=8)
    assert (out == compiled).all()
