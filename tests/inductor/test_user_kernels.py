"""Kernels that are called inside compiled functions, beside the same function without the compiler."""

import pytest

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

torch = pytest.importorskip("torch", reason="torch is not installed; the extra `test` has it")
from torch.library import triton_op, wrap_triton  # noqa: E402
from torch_graphs import Inputs, compiled_by_us  # noqa: E402


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = index < n
    tl.store(out + index, tl.load(x + index, mask=mask) + tl.load(y + index, mask=mask), mask=mask)


@triton.autotune([triton.Config({"BLOCK": 64}, num_warps=2), triton.Config({"BLOCK": 256})], key=["n"])
@triton.jit
def tuned_kernel(x, out, n, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + index, tl.load(x + index, mask=index < n) * FACTOR, mask=index < n)


@triton.jit
def with_defaults_kernel(x, out, n, scale=2.5, BLOCK: tl.constexpr = 128, NEGATE: tl.constexpr = False):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + index, mask=index < n) * scale
    if NEGATE:
        value = -value
    tl.store(out + index, value, mask=index < n)


@triton.jit
def helper(x, y):
    return x * y + OFFSET


OFFSET = tl.constexpr(0.5)


@triton.constexpr_function
def half(n):
    return n // 2


@triton.jit
def two_results_kernel(x, y, total, product, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, 2 * half(BLOCK))
    mask = index < n
    a, b = tl.load(x + index, mask=mask), tl.load(y + index, mask=mask)
    tl.store(total + index, a + b, mask=mask)
    tl.store(product + index, helper(a, b), mask=mask)


@triton.jit
def double_in_place_kernel(x, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + index, tl.load(x + index, mask=index < n) * 2, mask=index < n)


@triton.jit
def row_softmax_kernel(x, out, stride, columns, BLOCK: tl.constexpr):
    row, index = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * stride + index, mask=index < columns, other=-float("inf"))
    powers = tl.exp(value - tl.max(value, 0))
    tl.store(out + row * columns + index, powers / tl.sum(powers, 0), mask=index < columns)


@triton.heuristics({"EVEN": lambda named: named["n"] % named["BLOCK"] == 0})
@triton.jit
def heuristic_kernel(x, out, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = index < (n + BLOCK if EVEN else n)
    tl.store(out + index, tl.load(x + index, mask=mask) + 1, mask=mask)


tuned_heuristic_kernel = triton.autotune(
    [triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128}, num_warps=8)], key=["n"]
)(heuristic_kernel)


@triton.heuristics({"FACTOR": lambda named: 5})
@triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 256})], key=["n"])
@triton.jit
def heuristic_tuned_kernel(x, out, n, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + index, tl.load(x + index, mask=index < n) * FACTOR, mask=index < n)


def small_blocks(configs, named, **options):
    return [config for config in configs if config.kwargs["BLOCK"] <= 64]


PRUNING = {"early_config_prune": small_blocks}


@triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"], prune_configs_by=PRUNING)
@triton.jit
def pruned_kernel(x, out, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + index, tl.load(x + index, mask=index < n) * BLOCK, mask=index < n)


@triton.autotune([triton.Config({"BLOCK": 64}, num_warps=2), triton.Config({"BLOCK": 128}, num_warps=2)], key=["n"])
@triton.jit
def warps_as_parameter_kernel(x, out, n, BLOCK: tl.constexpr, num_warps: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + index, tl.load(x + index, mask=index < n) * num_warps, mask=index < n)


@triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"], restore_value=["x"])
@triton.jit
def restored_kernel(x, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + index, tl.load(x + index, mask=index < n) * 2, mask=index < n)


@triton.jit
def converted_kernel(x, out, n, DTYPE: tl.constexpr, ACTIVATION: tl.constexpr, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + index, mask=index < n)
    if ACTIVATION == "relu":
        value = tl.maximum(value, 0)
    tl.store(out + index, value.to(DTYPE), mask=index < n)


@triton.jit
def descriptors_kernel(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = tl.program_id(0) * ROWS, tl.program_id(1) * COLUMNS
    out.store([row, column], x.load([row, column]) * 2 + 1)


@triton.jit
def own_descriptors_kernel(x, out, m, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = tl.program_id(0) * ROWS, tl.program_id(1) * COLUMNS
    source = tl.make_tensor_descriptor(x, [m, n], [n, 1], [ROWS, COLUMNS])
    target = tl.make_tensor_descriptor(out, [m, n], [n, 1], [ROWS, COLUMNS])
    target.store([row, column], source.load([row, column]) * 2 + 1)


@triton.jit
def with_flag_kernel(x, bias, out, n, flag, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + index, mask=index < n)
    if bias is not None:
        value += tl.load(bias + index, mask=index < n)
    if flag:
        value = -value
    tl.store(out + index, value, mask=index < n)


def plain_grid(x, y):
    out = torch.empty_like(x)
    add_kernel[(triton.cdiv(x.numel(), 128),)](x * 2, y.sin(), out, x.numel(), BLOCK=128)
    return out.relu() + 1


def function_as_grid(x, y):
    out, n = torch.empty_like(x), x.numel()
    add_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n, BLOCK=64)
    return out, out.sum()


def autotuned(x, y):
    out, n = torch.empty_like(x), x.numel()
    tuned_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x + y, out, n, FACTOR=3)
    return out - x


def defaults(x, y):
    first, second, n = torch.empty_like(x), torch.empty_like(x), x.numel()
    with_defaults_kernel[(triton.cdiv(n, 128),)](x, first, n, 1.5, 128, False)  # torch does not fill them in itself
    with_defaults_kernel[(triton.cdiv(n, 32),)](y, second, n, scale=0.5, BLOCK=32, NEGATE=True)
    return first * second


def several_results(x, y):
    total, product = torch.empty_like(x), torch.empty_like(x)
    two_results_kernel[(triton.cdiv(x.numel(), 256),)](x, y, total, product, x.numel(), 256)
    return total.exp(), product


def in_place(x, y):
    z = x + y
    double_in_place_kernel[(triton.cdiv(z.numel(), 128),)](z, z.numel(), BLOCK=128)
    double_in_place_kernel[(triton.cdiv(y.numel(), 128),)](y, y.numel(), BLOCK=128)
    return z + y


def rows(x, y):
    x, y = x[:1000].view(50, 20), y[:1000].view(50, 20)
    out = torch.empty(50, 20, device=x.device)
    row_softmax_kernel[(50, 1, 1)]((x + y), out, 20, 20, BLOCK=32, num_warps=2)
    return out, torch.softmax(out, 0)


def heuristics(x, y):
    first, second = torch.empty_like(x), torch.empty(1024, device=x.device)
    heuristic_kernel[(triton.cdiv(x.numel(), 64),)](x, first, x.numel(), BLOCK=64)
    heuristic_kernel[(16,)](y, second, 1024, BLOCK=64)
    return first, second * 2


def more_heuristics(x, y):
    first, second, n = torch.empty_like(x), torch.empty_like(x), x.numel()
    tuned_heuristic_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, first, n)
    heuristic_tuned_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](y, second, n)
    return first * second


def options_of_autotune(x, y):
    first, second, third, n = torch.empty_like(x), torch.empty_like(x), x + y, x.numel()
    pruned_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, first, n)
    warps_as_parameter_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](y, second, n)
    restored_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](third, n)
    return first + second, third


def texts_and_types(x, y):
    out = torch.empty_like(x, dtype=torch.float16)
    converted_kernel[(triton.cdiv(x.numel(), 64),)](x * y, out, x.numel(), tl.float16, "relu", 64)
    return out * 2


class Holder:
    kernel = add_kernel

    def __init__(self, kernel):
        self.own = kernel


HOLDER = Holder(double_in_place_kernel)


def kernels_as_attributes(x, y):
    out = torch.empty_like(x)
    HOLDER.kernel[(triton.cdiv(x.numel(), 128),)](x, y, out, x.numel(), BLOCK=128)
    HOLDER.own[(triton.cdiv(x.numel(), 128),)](out, x.numel(), BLOCK=128)
    return out + 1


def descriptors_in_kernels(x, y):
    matrix, out = x[:1024].view(32, 32), torch.empty(32, 32, device=x.device)
    own_descriptors_kernel[(2, 2)](matrix.sin(), out, 32, 32, 16, 16)
    return out + 1


def descriptors(x, y):
    matrix, out = x[:1024].view(32, 32).sin(), torch.empty(32, 32, device=x.device)
    arguments = [TensorDescriptor.from_tensor(each, [16, 16]) for each in (matrix, out)]
    descriptors_kernel[(2, 2)](*arguments, 16, 16)
    return out + 1


def none_and_flags(x, y):
    first, second, n = torch.empty_like(x), torch.empty_like(x), x.numel()
    with_flag_kernel[(triton.cdiv(n, 512),)](x, None, first, n, True, BLOCK=512)
    with_flag_kernel[(triton.cdiv(n, 512),)](x, y, second, n, False, BLOCK=512)
    return first + second


@triton_op("tritonc_tests::add", mutates_args={})
def add_op(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    wrap_triton(add_kernel)[(triton.cdiv(x.numel(), 128),)](x, y, out, x.numel(), BLOCK=128)
    return out


@triton_op("tritonc_tests::double_", mutates_args={"x"})
def double_op(x: torch.Tensor) -> None:
    wrap_triton(double_in_place_kernel)[(triton.cdiv(x.numel(), 128),)](x, x.numel(), BLOCK=128)


def operators(x, y):
    z = add_op(x.cos(), y)
    double_op(z)
    return add_op(z, x) * 2


CASES = [
    plain_grid,
    function_as_grid,
    autotuned,
    defaults,
    several_results,
    in_place,
    rows,
    heuristics,
    more_heuristics,
    options_of_autotune,
    texts_and_types,
    kernels_as_attributes,
    descriptors_in_kernels,
    descriptors,
    none_and_flags,
    operators,
]
QUICK = {"plain_grid", "autotuned", "several_results"}


@pytest.mark.parametrize(
    "function",
    [pytest.param(case, marks=() if case.__name__ in QUICK else pytest.mark.slow, id=case.__name__) for case in CASES],
)
def test_user_kernel(function, device, monkeypatch):
    import torch.utils._triton

    if function is descriptors:  # which torch takes for devices with tensor memory access only
        torch.utils._triton.has_triton_tensor_descriptor_host_tma.cache_clear()
        monkeypatch.setattr(torch.utils._triton, "_device_supports_tma", lambda: True)
    make = Inputs(device)
    arguments = make.normal(1030), make.normal(1030)
    copies = [argument.clone() for argument in arguments]
    torch.testing.assert_close(compiled_by_us(function, *copies, fullgraph=True), function(*arguments))
    torch.testing.assert_close(copies, list(arguments))
    torch.utils._triton.has_triton_tensor_descriptor_host_tma.cache_clear()


@pytest.mark.slow
def test_extents_that_change(device):
    compiled = torch.compile(plain_grid, dynamic=True, fullgraph=True)
    make = Inputs(device)
    for n in (5, 128, 1000, 1024):
        x, y = make.normal(n), make.normal(n)
        torch.testing.assert_close(compiled(x, y), plain_grid(x, y))


@pytest.mark.slow
def test_gradients_of_an_operator(device):
    def backward(context, gradient):
        return gradient, gradient

    add_op.register_autograd(backward)
    make = Inputs(device)
    x, y = make.normal(300).requires_grad_(), make.normal(300).requires_grad_()

    def function(x, y):
        return (add_op(x.sin(), y) * y).sum()

    results = [torch.autograd.grad(run(x, y), (x, y)) for run in (torch.compile(function, fullgraph=True), function)]
    torch.testing.assert_close(*results)


# ---- which arguments a kernel writes is what decides what else may be fused around it


@triton.jit
def loops_kernel(x, table, out, count, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for i in range(n):
        place = tl.load(table + i)
        if place >= 0:
            total += tl.load(x + place * BLOCK + index)
    while tl.max(total, 0) > 1e30:
        total = total / 2
    tl.store(out + index, total)
    tl.atomic_add(count, 1)


@triton.jit(noinline=True)
def store_elsewhere(pointer, value):
    tl.store(pointer, value)


@triton.jit
def chosen_pointer_kernel(x, first, second, unused, n, BLOCK: tl.constexpr):
    index = tl.arange(0, BLOCK)
    pointer = first
    if n > 3:
        pointer = second
    store_elsewhere(pointer + index, tl.load(x + index))


TYPES = {"table": torch.int32, "count": torch.int32}


@pytest.mark.host
@pytest.mark.parametrize(
    "kernel, arguments, written, read",
    [
        (add_kernel, "x y out", "out", "x y"),
        (tuned_kernel, "x out", "out", "x"),
        (double_in_place_kernel, "x", "x", "x"),
        (two_results_kernel, "x y total product", "total product", "x y"),
        (loops_kernel, "x table out count", "count out", "table x"),
        (chosen_pointer_kernel, "x first second unused", "first second", "x"),
    ],
)
def test_what_a_kernel_writes(kernel, arguments, written, read):
    from torch._higher_order_ops import triton_kernel_wrap

    named = {name: torch.zeros(1000, dtype=TYPES.get(name)) for name in arguments.split()}
    chosen = {} if kernel is tuned_kernel else {"BLOCK": 128}  # else by its configurations
    more = {"n": 1000, "FACTOR": 3, **chosen}
    named |= {name: value for name, value in more.items() if name in kernel.arg_names}
    if not hasattr(triton_kernel_wrap, "identify_accessed_tensors"):  # torch 2.11, which looks for writes with n known
        written = written if kernel is not chosen_pointer_kernel else "second"
        assert set(triton_kernel_wrap.identify_mutated_tensors(kernel, named, {})) == set(written.split())
        return
    found = triton_kernel_wrap.identify_accessed_tensors(kernel, named, {}).read_writes
    assert {dependency.name for dependency in found.writes} == set(written.split())
    assert {dependency.name for dependency in found.reads} == set(read.split())


def test_what_follows_a_kernel_is_fused(device):
    """The two inputs are made by one kernel, and the result is used by one: none of them is taken for written."""
    from torch._inductor.utils import run_and_get_code

    make = Inputs(device)
    x, y = make.normal(1000), make.normal(1000)
    result, (code,) = run_and_get_code(torch.compile(plain_grid, fullgraph=True), x, y)
    torch.testing.assert_close(result, plain_grid(x, y))
    assert "clone" not in code and "copy_" not in code
