"""Kernels on a GPU: arrays of torch and CuPy, streams, graphs, several devices, and what is told of failures."""

import gc
import subprocess
import sys
import threading

import pytest
import torch

import triton
import triton.language as tl
from triton.runtime import background, driver
from triton.testing import do_bench, do_bench_cudagraph

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
several = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")


@pytest.fixture(autouse=True)
def on_cuda(target):
    if not target.startswith("cuda"):
        pytest.skip("for --target cuda")


def new_add():
    """The kernel as a new one, compiled and loaded nowhere yet."""

    @triton.jit
    def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        x = tl.load(x_ptr + offsets, mask=mask)
        y = tl.load(y_ptr + offsets, mask=mask)
        tl.store(out_ptr + offsets, x + y, mask=mask)

    return add


def launch(kernel, x, y, out, **options):
    n = out.size if hasattr(out, "get") else out.numel()
    return kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024, **options)


def tensors(n=98_432, device="cuda"):
    x, y = torch.rand(n, device=device), torch.rand(n, device=device)
    return x, y, torch.empty_like(x)


@triton.jit
def wait(x_ptr, out_ptr, trips):
    """Takes a while, so that work on another stream would overtake it."""
    value = tl.load(x_ptr)
    for _ in range(trips):
        value = tl.sin(value)
    tl.store(out_ptr, value * 0 + 1)


@triton.jit
def checked(x_ptr, limit):
    index = tl.program_id(0)
    tl.device_assert(tl.load(x_ptr + index) < limit, "too large")  # the line to be named
    tl.store(x_ptr + index, limit)


# ---- arrays


def test_torch_tensors():
    x, y, out = tensors()
    launch(new_add(), x, y, out)
    assert torch.equal(out, x + y)


def test_cupy_arrays():
    cupy = pytest.importorskip("cupy")
    x, y = (cupy.arange(98_432, dtype=cupy.float32) for _ in range(2))
    out = cupy.empty_like(x)
    launch(new_add(), x, y, out)
    assert (out == x + y).all()
    integers = cupy.arange(64, dtype=cupy.int32)
    launch(new_add(), triton.reinterpret(x[:64], tl.int32), triton.reinterpret(y[:64], tl.int32), integers)
    assert (integers == x[:64].view(cupy.int32) + y[:64].view(cupy.int32)).all()


def test_cupy_without_torch():
    pytest.importorskip("cupy")
    program = """
import sys
import cupy
import triton
from triton.runtime import driver
sys.path.insert(0, {folder!r})
from cupy_program import add
x, y = cupy.arange(1000, dtype=cupy.float32), cupy.ones(1000, dtype=cupy.float32)
out = cupy.zeros_like(x)
call = lambda: add[(1,)](x, y, out, 1000, BLOCK=1024)
stream = cupy.cuda.Stream(non_blocking=True)
with stream:
    assert driver.active.get_current_stream() == stream.ptr
    call()
stream.synchronize()
assert (out == x + y).all()
interface = driver.active.get_device_interface()
assert interface.current_device() == driver.active.get_current_device() == 0
assert 0 < triton.testing.do_bench(call, warmup=1, rep=5) < 10
assert 0 < triton.testing.do_bench_cudagraph(call, rep=1) < 10
assert "torch" not in sys.modules
"""
    source = """
import triton
import triton.language as tl
@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + tl.load(y_ptr + offsets, mask=mask), mask=mask)
"""
    run_program(program, cupy_program=source)


def run_program(program, **modules):
    """Runs Python text in a process of its own, with modules that it finds in {folder!r}."""
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        for name, text in modules.items():
            Path(folder, f"{name}.py").write_text(text)
        file = Path(folder, "program.py")
        file.write_text(program.replace("{folder!r}", repr(folder)))
        result = subprocess.run([sys.executable, file], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert result.returncode == 0, result.stdout


# ---- streams and graphs


def comes_last(launch_on):
    """Whether a launch by `launch_on(kernel, x, out)` comes after what is enqueued on the side stream."""
    stream = torch.cuda.Stream()
    x, one = torch.rand(1, device="cuda"), torch.zeros(1, device="cuda")
    out = torch.zeros(1, device="cuda")
    add = new_add()
    wait[(1,)](x, out, 1)
    launch(add, one, one, out)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        wait[(1,)](x, one, 2_000_000)
    launch_on(stream, add, one, out)
    torch.cuda.synchronize()
    return out.item() == 2


def test_the_current_stream_of_torch():
    def on_current(stream, kernel, x, out):
        with torch.cuda.stream(stream):
            launch(kernel, x, x, out)

    assert comes_last(on_current)


@pytest.mark.parametrize("as_number", [False, True])
def test_the_stream_option(as_number):
    assert comes_last(
        lambda stream, kernel, x, out: launch(kernel, x, x, out, stream=stream.cuda_stream if as_number else stream)
    )


def test_a_number_that_is_no_stream():
    with pytest.raises(ValueError, match="stream=-3: it is no handle of a CUDA stream"):
        launch(new_add(), *tensors(), stream=-3)


def test_the_current_stream_of_cupy():
    cupy = pytest.importorskip("cupy")
    stream = cupy.cuda.Stream(non_blocking=True)
    x, one, out = (cupy.zeros(1, dtype=cupy.float32) for _ in range(3))
    add = new_add()
    wait[(1,)](x, one, 1)
    launch(add, one, one, out)
    cupy.cuda.Device().synchronize()
    with stream:
        wait[(1,)](x, one, 2_000_000)
        launch(add, one, one, out)
    stream.synchronize()
    assert out.item() == 2


def test_the_first_launch_may_be_captured():
    x, y, out = tensors()
    add, graph = new_add(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch(add, x, y, out)
        launch(add, out, y, out)
    out.zero_()
    x.copy_(torch.rand_like(x))
    graph.replay()
    assert torch.equal(out, x + y + y)


def test_a_debug_launch_cannot_be_captured():
    x, y, out = tensors()
    add, graph, problems = new_add(), torch.cuda.CUDAGraph(), []
    with torch.cuda.graph(graph):
        try:
            launch(add, x, y, out, debug=True)
        except triton.CUDAError as error:
            problems.append(str(error))
        out.copy_(x)  # the capture goes on
    assert "cannot be launched while a CUDA graph is captured" in problems[0]
    graph.replay()
    assert torch.equal(out, x)


def test_a_graph_outlives_its_kernels():
    x, y, out = tensors()
    add, graph = new_add(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch(add, x, y, out)
    del add
    gc.collect()
    for _ in range(3):
        x.copy_(torch.rand_like(x))
        graph.replay()
        assert torch.equal(out, x + y)


# ---- ways to launch


@triton.jit
def meet(count_ptr, out_ptr):
    """All programs wait for all others, which ends only if all of them run."""
    tl.atomic_add(count_ptr, 1)
    while tl.atomic_add(count_ptr, 0) < tl.num_programs(0):
        pass
    tl.store(out_ptr + tl.program_id(0), 1)


def test_a_cooperative_launch():
    programs = torch.cuda.get_device_properties(0).multi_processor_count
    count, out = (torch.zeros(size, device="cuda", dtype=torch.int32) for size in (1, programs))
    meet[(programs,)](count, out, launch_cooperative_grid=True)
    assert out.all() and count.item() == programs
    with pytest.raises(triton.CUDAError, match="launch_cooperative_grid=True.*(.|\n)*launch fewer"):
        meet[(1 << 20,)](count, out, launch_cooperative_grid=True)


def needs_early_launches():
    if torch.cuda.get_device_capability() < (9, 0):
        pytest.skip("needs compute capability 9.0")


@pytest.mark.parametrize("options", [{}, {"launch_pdl": True}, {"launch_pdl": False}])
def test_early_launches_see_what_came_before(options):
    needs_early_launches()
    x, y, out = tensors(1 << 22)
    add, graph = new_add(), torch.cuda.CUDAGraph()
    launch(add, x, y, out, **options)
    with torch.cuda.graph(graph):
        for _ in range(10):
            launch(add, out, y, out, **options)
    expected = x + y
    for _ in range(10):
        launch(add, out, y, out, **options)
        expected += y
    assert torch.equal(out, expected)
    for _ in range(10):
        expected += y
    graph.replay()
    assert torch.equal(out, expected)


@pytest.mark.parametrize("size", [1, 1000, 1 << 16, 1 << 22])
@pytest.mark.parametrize("captured", [False, True])
def test_early_launches_among_others(size, captured):
    """Kernels of torch, copies and sets of memory before and after them, each of which needs the one before."""
    add, x, total, copy = new_add(), *(torch.zeros(size, device="cuda") for _ in range(3))
    one = torch.ones_like(x)

    def steps():
        x.zero_()  # a set
        launch(add, x, one, x)
        launch(add, x, one, x)
        x.mul_(3)
        launch(add, x, one, x)
        copy.copy_(x)  # a copy
        launch(add, copy, one, copy)
        launch(add, total, copy, total)

    steps()
    total.zero_()
    if captured:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(20):
                steps()
        torch.cuda.synchronize()
        graph.replay()
    else:
        for _ in range(20):
            steps()
    assert (total == 20 * 8).all()


def test_early_launches_read_what_the_host_sent():
    add, sent = new_add(), torch.zeros(1 << 20).pin_memory()
    x, out, one = (torch.ones(1 << 20, device="cuda") for _ in range(3))
    for i in range(20):
        torch.cuda.synchronize()
        sent.fill_(i)
        x.copy_(sent, non_blocking=True)
        launch(add, x, one, out)
        back = out.cpu()
        assert (back == i + 1).all()


def test_early_launches_wait_for_other_streams():
    """For events, and in the legacy stream for all streams that it synchronizes with."""
    cupy = pytest.importorskip("cupy")
    stream = cupy.cuda.Stream()  # one that does
    x, one, out = (cupy.zeros(1, dtype=cupy.float32) for _ in range(3))
    add = new_add()
    wait[(1,)](x, one, 1)
    launch(add, one, one, out)
    cupy.cuda.Device().synchronize()
    for _ in range(3):
        one.fill(0)
        launch(add, one, one, out, stream=cupy.cuda.Stream.null)
        with stream:
            wait[(1,)](x, one, 2_000_000)
        launch(add, one, one, out, stream=cupy.cuda.Stream.null)
        with stream:
            launch(add, out, one, out)
        cupy.cuda.Device().synchronize()
        assert out.item() == 3
    first, second = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))
    for _ in range(3):
        with first:
            one.fill(0)
            wait[(1,)](x, one, 2_000_000)
            launch(add, one, one, out)
            event = first.record()
        second.wait_event(event)
        with second:
            launch(add, out, one, out)
            launch(add, out, one, out)
        second.synchronize()
        assert out.item() == 4


# ---- devices


@several
def test_a_device_that_is_not_current():
    add = new_add()
    for device in (1, 0, 1):
        x, y, out = tensors(device=f"cuda:{device}")
        launch(add, x, y, out)
        assert torch.equal(out, x + y)
        assert torch.cuda.current_device() == 0
    with torch.cuda.device(1):
        x, y, out = tensors(device="cuda:0")
        launch(add, x, y, out)
        assert torch.cuda.current_device() == 1
        assert torch.equal(out, x + y)


@several
def test_cupy_arrays_on_a_device_that_is_not_current():
    cupy = pytest.importorskip("cupy")
    with cupy.cuda.Device(1):
        x, y = cupy.ones(1000, dtype=cupy.float32), cupy.ones(1000, dtype=cupy.float32)
        out = cupy.zeros_like(x)
    launch(new_add(), x, y, out)
    assert cupy.cuda.Device().id == 0
    with cupy.cuda.Device(1):
        assert (out == 2).all()


@several
def test_mixed_devices():
    x, y, out = tensors()
    text = r"add\(\) argument 'y_ptr': it is on cuda:1, but argument 'x_ptr' is on cuda:0"
    with pytest.raises(ValueError, match=text):
        launch(new_add(), x, y.to("cuda:1"), out)


@triton.autotune([triton.Config({"TRIPS": trips}) for trips in (100_000, 1)], key=[], warmup=1, rep=5)
@triton.jit
def tuned_wait(x_ptr, TRIPS: tl.constexpr):
    value = tl.load(x_ptr)
    for _ in range(TRIPS):
        value = tl.sin(value)
    tl.store(x_ptr, value)


@several
def test_tuning_on_a_device_that_is_not_current():
    tuned_wait[(1,)](torch.ones(1, device="cuda:1"))
    slow, fast = tuned_wait.configs_timings.values()
    assert tuned_wait.best_config.kwargs == {"TRIPS": 1} and slow[0] > 10 * fast[0]
    assert torch.cuda.current_device() == 0


def test_tensors_on_the_cpu_are_not_mixed_in():
    x, y, out = tensors()
    with pytest.raises(ValueError, match="argument 'y_ptr': it is on cpu, but argument 'x_ptr' is on cuda:0"):
        launch(new_add(), x, y.cpu(), out)


@several
def test_the_current_device_is_set():
    try:
        driver.active.set_current_device(1)
        assert driver.active.get_current_device() == torch.cuda.current_device() == 1
    finally:
        torch.cuda.set_device(0)


def test_driver():
    properties, theirs = driver.active.utils.get_device_properties(0), torch.cuda.get_device_properties(0)
    assert properties["multiprocessor_count"] == theirs.multi_processor_count
    assert properties["warpSize"] == 32
    assert properties["max_shared_mem"] >= 64 << 10
    assert properties["max_num_regs"] == 65536
    assert properties["name"] == theirs.name
    assert properties["total_memory"] > 0
    capability = torch.cuda.get_device_capability()
    assert driver.active.get_device_capability() == capability
    assert driver.active.get_current_target() == ("cuda", capability[0] * 10 + capability[1], 32)
    assert driver.active.get_active_torch_device() == torch.device("cuda", torch.cuda.current_device())
    assert driver.active.get_device_interface() is torch.cuda
    with torch.cuda.stream(torch.cuda.Stream()) as _:
        assert driver.active.get_current_stream(0) == torch.cuda.current_stream().cuda_stream


# ---- failures


def test_a_failed_assertion_names_its_line():
    x = torch.arange(8, device="cuda", dtype=torch.int32)
    with open(__file__) as file:
        line = next(number for number, text in enumerate(file, 1) if "# the line to be named" in text)
    with pytest.raises(triton.DeviceAssertionError, match=rf"(?s)too large.*test_cuda\.py:{line}|:{line}.*too large"):
        checked[(8,)](x, 3, debug=True)
    x.zero_()
    checked[(8,)](x, 3, debug=True)
    assert (x == 3).all()


def test_bounds_are_checked():
    x = torch.zeros(8, device="cuda", dtype=torch.int32)
    with pytest.raises(triton.MemoryAccessError, match="out of bounds"):
        checked[(9,)](x, 3, debug=True)


@triton.jit
def turn(x, out, SIZE: tl.constexpr):
    rows, columns = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    tile = tl.load(x + rows * SIZE + columns)
    tl.store(out + columns.trans() * SIZE + rows.trans(), tile.trans())


def test_more_shared_memory_than_a_kernel_has_by_itself():
    x = torch.rand(128, 128, device="cuda")
    out = torch.empty_like(x)
    compiled = turn[(1,)](x, out, SIZE=128, num_warps=8)
    assert compiled.metadata.shared > 48 << 10
    assert torch.equal(out, x.T)


def test_too_much_shared_memory():
    x = torch.arange(512 * 512, device="cuda", dtype=torch.float32)
    out = torch.empty_like(x)
    with pytest.raises(triton.OutOfResources) as error:
        turn[(1,)](x, out, SIZE=512, num_warps=32)
    assert error.value.name == "shared memory" and error.value.required > error.value.limit
    tuned = triton.autotune([triton.Config({"SIZE": size}, num_warps=32) for size in (512, 64)], key=[])(turn)
    tuned[(1,)](x, out)
    assert tuned.best_config.kwargs == {"SIZE": 64}


def test_an_illegal_access_is_told_with_the_launch():
    """In a process of its own, for afterwards the GPU cannot be used any more."""
    source = """
import triton
import triton.language as tl
@triton.jit
def wild(x_ptr, offset):
    tl.store(x_ptr + offset, 1.0)
"""
    program = """
import os
import sys
import time
import torch
import triton
sys.path.insert(0, {folder!r})
from wild_program import wild
x = torch.zeros(8, device="cuda")
try:
    for _ in range(2000):
        wild[(3,)](x, 1 << 40)
        time.sleep(0.005)
except triton.CUDAError as error:
    text = str(error)
    assert "kernel 'wild', grid (3, 1, 1), num_warps=4" in text, text
    assert "TRITON_DEBUG=1" in text, text
else:
    raise SystemExit("nothing was told")
sys.stdout.flush()
os._exit(0)  # what torch would say at the end is not the matter here
"""
    run_program(program, wild_program=source)


def test_assembly_that_the_driver_refuses():
    @triton.jit
    def wrong(x_ptr):
        value = tl.inline_asm_elementwise("bogus $0, $1;", "=r,r", [tl.load(x_ptr)], tl.int32, is_pure=True, pack=1)
        tl.store(x_ptr, value)

    with pytest.raises(triton.CompilationError, match="(?s)loading kernel wrong on NVIDIA.*ptxas.*bogus") as error:
        wrong[(1,)](torch.zeros(1, device="cuda", dtype=torch.int32))
    assert error.value.file == __file__
    x, y, out = tensors()
    launch(new_add(), x, y, out)
    assert torch.equal(out, x + y)


# ---- compiled kernels


def test_what_is_known_of_a_kernel():
    compiled = launch(new_add(), *tensors())
    assert 0 < compiled.n_regs <= 255
    assert compiled.n_spills == 0
    assert compiled.n_max_threads >= 128
    assert compiled.metadata.shared == 0
    assert (compiled.metadata.num_warps, compiled.metadata.name) == (4, "add")
    assert ".visible .entry add" in compiled.asm["ptx"]
    assert compiled.asm["cubin"][:4] == b"\x7fELF"
    if "sass" in compiled.asm:
        assert "EXIT" in compiled.asm["sass"]


def test_warmup_launches_nothing():
    add = new_add()
    compiled = add.warmup(torch.float32, torch.float32, torch.float32, 1000, BLOCK=1024, grid=(1,))
    assert compiled.info["target"].startswith("cuda:")
    assert ".entry add" in compiled.asm["ptx"]
    x, y, out = tensors()
    out.zero_()
    add.warmup(x, y, out, out.numel(), BLOCK=1024, grid=(1,))
    assert not out.any()


def test_maxnreg():
    limited = launch(new_add(), *tensors(), maxnreg=24)
    assert limited.n_regs <= 24


@triton.jit
def cumulate(x_ptr, out_ptr, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(out_ptr + i, tl.cumsum(tl.load(x_ptr + i), 0))


def test_what_does_not_fit_the_registers_is_spilled():
    x = torch.ones(2048, device="cuda")
    out = torch.empty_like(x)
    compiled = cumulate[(1,)](x, out, SIZE=2048, num_warps=1)
    assert compiled.n_regs > 64 and compiled.n_spills == 0
    compiled = cumulate[(1,)](x, out.zero_(), SIZE=2048, num_warps=1, maxnreg=24)
    assert compiled.n_regs <= 24 and compiled.n_spills > 64
    assert torch.equal(out, torch.arange(1, 2049, device="cuda", dtype=torch.float32))


# ---- timing


def test_do_bench():
    x, y, out = tensors(1 << 24)
    add = new_add()
    median, low, high = do_bench(lambda: launch(add, x, y, out), warmup=5, rep=20, quantiles=[0.5, 0.2, 0.8])
    assert 0.01 < low <= median <= high < 10  # 192 MiB at 20 TB/s take longer
    times = do_bench(lambda: launch(add, x, y, out), warmup=5, rep=20, return_mode="all")
    assert len(times) > 10
    parameter = torch.ones(8, device="cuda", requires_grad=True)

    def work():
        assert parameter.grad is None
        parameter.sum().backward()

    do_bench(work, warmup=1, rep=1, grad_to_none=[parameter])


def test_do_bench_cudagraph():
    x, y, out = tensors(1 << 12)
    add = new_add()
    milliseconds = do_bench_cudagraph(lambda: launch(add, x, y, out), rep=5)
    assert 0 < milliseconds < 0.1
    configs = [triton.Config({"BLOCK": block}) for block in (512, 2048)]
    tuned = triton.autotune(configs, key=["n"], use_cuda_graph=True)(add)
    tuned[lambda meta: (triton.cdiv(1 << 12, meta["BLOCK"]),)](x, y, out, 1 << 12)
    assert len(tuned.configs_timings) == 2
    assert torch.equal(out, x + y)


# ---- processes and threads


def test_fork_after_import():
    source = """
import triton
import triton.language as tl
@triton.jit
def fill(x_ptr):
    tl.store(x_ptr + tl.program_id(0), 3.0)
"""
    program = """
import os
import sys
import triton
sys.path.insert(0, {folder!r})
from fork_program import fill
child = os.fork()
if not child:
    import torch
    x = torch.zeros(8, device="cuda")
    fill[(8,)](x)
    os._exit(0 if (x == 3).all() else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    run_program(program, fork_program=source)


def test_importing_touches_no_gpu():
    run_program("""
import triton, triton.language, triton.testing, triton.runtime
assert not any("libcuda.so" in line for line in open("/proc/self/maps"))
""")


def test_threads_launch_at_once():
    add, failures = new_add(), []

    def work():
        try:
            x, y, out = tensors(4096)
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            for _ in range(50):
                with torch.cuda.stream(stream):
                    launch(add, x, y, out)
                stream.synchronize()
                assert torch.equal(out, x + y)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@triton.jit
def fill(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + offsets, 1, mask=offsets < n)


@triton.jit
def fill_rows(x_ptr, stride, columns, BLOCK: tl.constexpr):
    columns_here = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + tl.program_id(0) * stride + columns_here, 1, mask=columns_here < columns)


def test_arrays_of_more_than_two_to_the_31_elements():
    rows, columns = 30_000, 100_000
    x = torch.zeros(rows, columns, dtype=torch.int8, device="cuda")
    fill[(triton.cdiv(x.numel(), 4096),)](x, x.numel() - 1, BLOCK=4096)
    assert x.sum(dtype=torch.int64) == x.numel() - 1 and x[-1, -1] == 0
    x.zero_()
    fill_rows[(rows, triton.cdiv(columns, 4096))](x, columns, columns - 1, BLOCK=4096)
    assert x.sum(dtype=torch.int64) == rows * (columns - 1) and not x[:, -1].any()
    small = torch.zeros(100_000, dtype=torch.int8, device="cuda")
    fill[(25,)](small, 100_000, BLOCK=4096)
    assert small.all()
    assert sorted(compiled.metadata.wide_offsets for compiled in fill.variants()) == [False, True]
    assert [compiled.metadata.wide_offsets for compiled in fill_rows.variants()] == [True]


@triton.jit
def softmax(out_ptr, x_ptr, in_stride, out_stride, rows, columns, BLOCK: tl.constexpr):
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        at = tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * in_stride + at, mask=at < columns, other=-float("inf"))
        e = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + row * out_stride + at, e / tl.sum(e, axis=0), mask=at < columns)


def test_variants_that_are_compiled_behind_change_no_bit(monkeypatch):
    x = torch.randn(512, 1000, device="cuda")
    results = []
    for switch in "01":
        monkeypatch.setenv("TRITON_BACKGROUND", switch)
        kernel = triton.jit(softmax.fn)
        for rows in [512, *range(1, 200), 500, 512]:
            out = torch.zeros_like(x)
            kernel[(16,)](out, x, x.stride(0), out.stride(0), rows, 1000, BLOCK=1024)
            results.append(out[:rows].clone())
        assert background.wait()
    half = len(results) // 2
    assert all(torch.equal(a, b) for a, b in zip(results[:half], results[half:], strict=True))


def test_a_graph_keeps_the_variant_that_is_made_for_it(monkeypatch):
    monkeypatch.setenv("TRITON_BACKGROUND", "1")
    add = new_add()
    x, y, out = tensors(98_432)
    launch(add, x, y, out)
    assert background.wait()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        compiled = add[(97,)](x, y, out, 98_431, BLOCK=1024)
    assert compiled.metadata.divisibility["n"] == 1
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        assert add[(97,)](x, y, out, 98_424, BLOCK=1024).metadata.divisibility["n"] == 8
    out.zero_()
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(out[:98_431], (x + y)[:98_431])
