"""Run by test_fake_cuda.py with a CUDA driver that has two devices, keeps a log, and runs nothing."""

import ctypes
import gc
import itertools
import os
import pickle
import random
import re
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

import triton
import triton.language as tl
from triton import _C
from triton.runtime import background, driver
from triton.testing import do_bench, get_dram_gbps, get_max_simd_tflops, get_max_tensorcore_tflops

cuda = ctypes.CDLL("libcuda.so.1")
cuda.fake_log.restype = ctypes.c_char_p
cuda.fake_context.restype = ctypes.c_void_p
cuda.fake_begin_capture.argtypes = ctypes.c_size_t, ctypes.c_int
GLOBAL, THREAD_LOCAL, RELAXED = range(3)
NOT_INITIALIZED, INVALID_PTX, ILLEGAL_ADDRESS, OUT_OF_RESOURCES, COOPERATIVE_LAUNCH_TOO_LARGE = 3, 218, 700, 701, 720


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.delenv("TRITON_TARGET")
    gc.collect()
    cuda.fake_reset()
    cuda.cuCtxSetCurrent(None)
    yield
    cuda.cuCtxSetCurrent(None)


class Array:
    """What CuPy's arrays show of themselves."""

    __cuda_array_interface__ = None  # is looked for in the type

    def __init__(self, device=0, number=0, **more):
        self.device, self.shape, self.dtype = SimpleNamespace(id=device), (1024,), "float32"
        data = 5 << 44 | device << 40 | number << 20, False
        self.__cuda_array_interface__ = {"shape": (1024,), "typestr": "<f4", "data": data, "version": 3, **more}


def new_kernel():
    @triton.jit
    def scale(x, y, n, BLOCK: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y + offsets, tl.load(x + offsets, mask=offsets < n) * 2, mask=offsets < n)

    return scale


def launch(kernel, x=None, y=None, grid=(8,), **options):
    return kernel[grid](x or Array(), y or Array(number=1), 1000, BLOCK=128, **options)


EARLY = "attribute 6 is 1"


def whole_log():
    return cuda.fake_log().decode().splitlines()


def log():
    """Without what nearly all launches have in common, and without what went of earlier tests."""
    return [line for line in whole_log() if line != EARLY and "unload" not in line]


def unloads():
    return sorted(line for line in whole_log() if "unload" in line)


def unload_the_rest():
    """What went is unloaded when the next kernel is loaded on its device."""
    gc.collect()
    kernel = new_kernel()
    for device in (0, 1):
        launch(kernel, Array(device), Array(device, 1))
    return kernel


def driver_version():
    version = ctypes.c_int()
    cuda.cuDriverGetVersion(ctypes.byref(version))
    return version.value


def current():
    context = ctypes.c_void_p()
    cuda.cuCtxGetCurrent(ctypes.byref(context))
    return context.value


def test_the_device_is_that_of_the_arrays():
    kernel = new_kernel()
    compiled = launch(kernel, Array(1), Array(1, 1))
    assert compiled.info["target"] == "cuda:90"
    assert log() == ["load on 1", "launch (8, 1, 1) of 128 on 1, stream 0"]
    launch(kernel)
    assert log()[2:] == ["load on 0", "launch (8, 1, 1) of 128 on 0, stream 0"]
    launch(kernel, grid=(2, 3, 4))
    assert log()[4:] == ["launch (2, 3, 4) of 128 on 0, stream 0"]


@pytest.mark.parametrize("before", [None, 0, 1])
def test_the_current_context_is_kept(before):
    context = cuda.fake_context(before) if before is not None else None
    cuda.cuCtxSetCurrent(ctypes.c_void_p(context))
    kernel = new_kernel()
    for device in (1, 0):
        launch(kernel, Array(device), Array(device, 1))
        assert current() == context
    cuda.fake_set_launch_error(ILLEGAL_ADDRESS)
    with pytest.raises(triton.CUDAError):
        launch(kernel, Array(1), Array(1, 1))
    assert current() == context
    cuda.fake_set_link_error(INVALID_PTX, b"ptxas says why")
    with pytest.raises(triton.InternalError):
        launch(new_kernel(), Array(1), Array(1, 1))
    assert current() == context


@pytest.mark.parametrize("statements, levels", [(100, []), (5000, ["at level 1"])])
def test_huge_kernels_are_compiled_with_less_effort(statements, levels):
    @triton.jit
    def many(p, n, COUNT: tl.constexpr):
        a = n
        for i in tl.static_range(COUNT):
            a = (a ^ i) * (a + n)
        tl.store(p, a)

    many[(1,)](Array(0), 3, statements)
    assert [line for line in log() if "level" in line] == levels


def test_without_arrays_the_current_device_is_taken(monkeypatch):
    @triton.jit
    def nothing(n):
        pass

    driver.active.set_current_device(1)
    assert driver.active.get_current_device() == 1
    nothing[(1,)](3)
    monkeypatch.setenv("TRITON_TARGET", "cuda")
    nothing[(1,)](3)
    assert [line for line in log() if "launch" in line] == ["launch (1, 1, 1) of 128 on 1, stream 0"] * 2


def test_mixed_devices():
    with pytest.raises(ValueError) as error:
        launch(new_kernel(), Array(0), Array(1))
    text = "scale() argument 'y': it is on cuda:1, but argument 'x' is on cuda:0; all arrays of a launch must be on"
    assert str(error.value).startswith(text)


def test_a_device_that_is_not_there():
    class Elsewhere:
        dtype, device = "float32", "cuda:7"

        def data_ptr(self):
            return 1 << 20

    with pytest.raises(ValueError, match="argument 'x': it is on cuda:7, and this machine has 2 CUDA devices"):
        launch(new_kernel(), Elsewhere(), Elsewhere())
    with pytest.raises(ValueError, match="there is no CUDA device 2: this machine has 2"):
        driver.active.utils.get_device_properties(2)


# ---- streams


class Stream:
    def __init__(self, handle):
        self.handle = handle

    def __cuda_stream__(self):
        return 0, self.handle


class OldStream:
    def __init__(self, handle):
        self.cuda_stream = handle


@pytest.mark.parametrize("stream", [0x1008, Stream(0x1008), OldStream(0x1008)])
def test_the_stream_that_a_launch_names(stream):
    kernel = new_kernel()
    launch(kernel, Array(stream=0x1020), Array(stream=0x1030), stream=stream)
    assert log()[-1] == "launch (8, 1, 1) of 128 on 0, stream 0x1008"
    assert not any("wait" in line for line in log())


def test_no_stream():
    for number in (-3, 16, 4100, 1 << 60):
        with pytest.raises(ValueError, match=f"stream={number}: it is no handle of a CUDA stream"):
            launch(new_kernel(), stream=number)
    with pytest.raises(TypeError, match="stream='fast': it must be a stream of torch or CuPy, or the handle"):
        launch(new_kernel(), stream="fast")


def test_streams_of_arrays():
    kernel = new_kernel()
    launch(kernel, Array(stream=0x1020), Array(stream=0x1020))
    assert log()[-1] == "launch (8, 1, 1) of 128 on 0, stream 0x1020"
    launch(kernel, Array(stream=1), Array(stream=None))
    assert log()[-1] == "launch (8, 1, 1) of 128 on 0, stream 0"
    assert not any("wait" in line for line in log())
    cuda.fake_reset()
    launch(kernel, Array(stream=0x1020), Array(stream=0x1030))
    assert log() == ["record on 0x1030", "0x1020 waits", "launch (8, 1, 1) of 128 on 0, stream 0x1020"]
    cuda.fake_reset()
    launch(kernel, Array(), Array(stream=0x1030))  # this program has neither torch nor CuPy
    assert log() == ["record on 0x1030", "0 waits", "launch (8, 1, 1) of 128 on 0, stream 0"]


class CupyArray(Array):
    pass


CupyArray.__module__ = "cupy._core.core"


def test_the_stream_of_cupy_arrays(monkeypatch):
    """CuPy's interface names the stream of the current device; for arrays elsewhere CuPy is asked."""
    streams = SimpleNamespace(get_current_stream=lambda device: SimpleNamespace(ptr=0x2040 if device else 0x1040))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=streams))
    kernel = new_kernel()
    launch(kernel, CupyArray(0, stream=0x1020), CupyArray(0, 1, stream=0x1020))
    assert log()[-1] == "launch (8, 1, 1) of 128 on 0, stream 0x1020"
    launch(kernel, CupyArray(1, stream=0x1020), CupyArray(1, 1, stream=0x1020))
    assert log()[-1] == "launch (8, 1, 1) of 128 on 1, stream 0x2040"
    launch(kernel, CupyArray(0), CupyArray(0, 1))
    assert log()[-1] == "launch (8, 1, 1) of 128 on 0, stream 0x1040"


class NewCupyArray(CupyArray):
    """With CuPy's own attributes, which are read instead of the interface."""

    def __init__(self, device=0, number=0, dtype="float32"):
        super().__init__(device, number)
        self.data = SimpleNamespace(ptr=self.__cuda_array_interface__["data"][0], device_id=device)
        self.dtype = np.dtype(dtype)


NewCupyArray.__module__ = CupyArray.__module__


def test_cupy_arrays_are_read_by_their_attributes(monkeypatch):
    streams = SimpleNamespace(get_current_stream=lambda device: SimpleNamespace(ptr=0x2040 if device else 0x1040))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=streams))
    kernel = new_kernel()
    compiled = launch(kernel, NewCupyArray(1), NewCupyArray(1, 1, "float16"))
    assert log()[-1] == "launch (8, 1, 1) of 128 on 1, stream 0x2040"
    assert list(compiled.metadata.signature.values())[:2] == ["*fp32", "*fp16"]
    cuda.fake_set_watched_parameter(1)
    launch(kernel, NewCupyArray(0), NewCupyArray(0, 1))
    assert f"parameter 1 is {(5 << 44) + (1 << 20):#x}" in log()
    cuda.fake_reset()
    launch(kernel, Array(0, stream=0x1020), NewCupyArray(0, 1))
    assert log() == ["record on 0x1040", "0x1020 waits", "launch (8, 1, 1) of 128 on 0, stream 0x1020"]
    with pytest.raises(ValueError, match="argument 'y': it is on cuda:1, but argument 'x' is on cuda:0"):
        launch(kernel, NewCupyArray(0), NewCupyArray(1))
    odd = NewCupyArray()
    odd.dtype = "float32"  # no dtype of NumPy: the interface says what it is
    launch(kernel, odd, NewCupyArray(0, 1))
    assert log()[-1] == "launch (8, 1, 1) of 128 on 0, stream 0x1040"


def test_masked_arrays():
    with pytest.raises(TypeError, match="argument 'y': it has a mask"):
        launch(new_kernel(), Array(), Array(mask=Array()))


@pytest.mark.parametrize("entry", [{"stream": "x"}, {"stream": 2.5}, {"stream": -(1 << 70)}, {"data": (1, 2, 3)}])
def test_entries_that_say_nothing(entry):
    with pytest.raises((TypeError, OverflowError)):
        launch(new_kernel(), Array(**entry), Array())


@pytest.mark.parametrize("entry", [{"shape": [4]}, {"shape": ("x",)}, {"strides": (4, 4)}, {"shape": (1,) * 99}])
def test_shapes_that_say_nothing(entry):
    launch(new_kernel(), Array(**entry), Array(), debug=True)  # all of memory is then the array's


def test_arrays_of_many_streams():
    @triton.jit
    def many(arrays):
        pass

    arrays = tuple(Array(stream=0x1008 + 8 * number) for number in range(10))
    many[(1,)](arrays[:9])
    with pytest.raises(ValueError, match=r"many\(\): its arrays come from more than 8 streams; synchronize them"):
        many[(1,)](arrays)
    many[(1,)](arrays, stream=0x1008)


# ---- arrays that are copied in blocks


def new_product_of_blocks():
    @triton.jit
    def product(a, c, M, K, B: tl.constexpr):
        left = tl.make_tensor_descriptor(a, [M, K], [2 * K, 1], [B, B])
        i, sums = tl.arange(0, B), tl.zeros((B, B), tl.float32)
        for k in range(0, K, B):
            tile = left.load([tl.program_id(0) * B, k])
            sums = tl.dot(tile, tile.T, sums)
        tl.store(c + i[:, None] * B + i[None, :], sums)

    return product


def halves():
    array = Array(typestr="<f2")
    array.dtype = "float16"
    return array


@pytest.mark.skipif(not hasattr(cuda, "cuTensorMapEncodeTiled"), reason="the driver knows no tensor maps")
def test_tensor_maps_are_parameters_behind_the_programs():
    kernel = new_product_of_blocks()
    a, c = halves(), Array(number=1)
    address = hex(a.__cuda_array_interface__["data"][0])
    cuda.fake_set_watched_parameter(4)
    compiled = kernel[(2,)](a, c, 100, 1024, B=64)
    maps = f"map of {address}: type 1, 100 x 1024, rows 4096 apart, box 64 x 64, swizzle 3"
    assert whole_log()[-4:-2] == [maps, EARLY] and whole_log()[-1] == f"parameter 4 is {address}"
    assert ".param .align 64 .b8 product_param_4[128]" in compiled.asm["ptx"]
    kernel[(2,)](a, c, 164, 512, B=64)
    assert "164 x 512, rows 2048 apart" in whole_log()[-4]


@pytest.mark.skipif(not hasattr(cuda, "cuTensorMapEncodeTiled"), reason="the driver knows no tensor maps")
def test_code_that_others_launch_has_no_tensor_maps():
    kernel = new_product_of_blocks()
    a, c = halves(), Array(number=1)
    with_map = kernel[(2,)](a, c, 128, 1024, B=64)
    empty = kernel[(2,)](a, c, 0, 1024, B=64)
    checked = kernel[(2,)](a, c, 128, 1024, B=64, debug=True)
    ahead = kernel.warmup(a, c, 128, 1024, B=64, grid=(2,))
    has_map = [".tensor" in compiled.asm["ptx"] for compiled in (with_map, empty, checked, ahead)]
    assert has_map == [True, False, False, has_map[3]]
    signature = {"a": "*fp16", "c": "*fp32", "M": "i32", "K": "i32"}
    source = triton.compiler.ASTSource(
        kernel, signature, {"B": 64}, {(i,): [["tt.divisibility", 16]] for i in range(4)}
    )
    assert ".tensor" not in triton.compile(source).asm["ptx"]


# ---- ways to launch


def test_cooperative_and_early_launches():
    kernel = new_kernel()
    launch(kernel)
    cuda.fake_reset()
    launch(kernel, launch_cooperative_grid=True)
    assert whole_log()[1:] == ["attribute 2 is 1", "launch (8, 1, 1) of 128 on 0, stream 0"]
    cuda.fake_reset()
    early = launch(kernel, launch_pdl=True, stream=0x1008)
    assert whole_log()[1:] == [EARLY, "launch (8, 1, 1) of 128 on 0, stream 0x1008"]
    assert early.asm["ptx"].count("griddepcontrol.wait;") == 1

    @triton.jit
    def waits(x, y):
        tl.device_print("early")
        tl.extra.cuda.gdc_wait()
        tl.store(y, tl.load(x))

    early = waits[(1,)](Array(), Array(number=1), launch_pdl=True)
    assert early.asm["ptx"].count("griddepcontrol.wait;") == 1
    assert early.asm["ptx"].index("vprintf,") < early.asm["ptx"].index("griddepcontrol.wait;")
    late = launch(kernel, launch_pdl=False, launch_cooperative_grid=False)
    assert "attribute" not in whole_log()[-2] and "griddepcontrol" not in late.asm["ptx"]
    cuda.fake_set_launch_error(COOPERATIVE_LAUNCH_TOO_LARGE)
    with pytest.raises(triton.CUDAError, match="launch_cooperative_grid=True: (.|\n)*launch fewer of them"):
        launch(kernel, launch_cooperative_grid=True)


def test_launches_are_early_unless_they_are_told_not_to_be(monkeypatch):
    compiled = launch(new_kernel())
    assert whole_log()[-2:] == [EARLY, "launch (8, 1, 1) of 128 on 0, stream 0"]
    assert compiled.asm["ptx"].count("griddepcontrol.wait;") == 1
    assert compiled.metadata.launch_pdl is False

    @triton.jit
    def waits(x, y):
        tl.store(y, tl.load(x))
        tl.extra.cuda.gdc_wait()

    compiled = waits[(1,)](Array(), Array(number=1))
    text = compiled.asm["ptx"]
    assert text.count("griddepcontrol.wait;") == 2
    assert text.index("griddepcontrol.wait;") < text.index("ld.global")
    monkeypatch.setenv("TRITON_EARLY_LAUNCH", "0")
    cuda.fake_reset()
    compiled = launch(new_kernel())
    assert EARLY not in whole_log() and "griddepcontrol" not in compiled.asm["ptx"]


def test_a_launch_that_is_checked_is_not_early():
    cuda.fake_reset()
    launch(new_kernel(), debug=True)
    assert EARLY not in whole_log()


def test_a_cluster_is_one_block(monkeypatch):
    kernel = new_kernel()
    with pytest.warns(UserWarning, match="num_ctas=2 is not done: a program runs on one block of threads"):
        compiled = launch(kernel, num_ctas=2)
    assert compiled.metadata.num_ctas == 1 and compiled.metadata.cluster_dims == (1, 1, 1)
    assert log()[-1] == "launch (8, 1, 1) of 128 on 0, stream 0"
    monkeypatch.setenv("TRITON_STRICT", "1")
    with pytest.raises(triton.CompilationError, match="num_ctas=2 is not done"):
        launch(new_kernel(), num_ctas=2)


def test_early_launches_are_refused_where_there_are_none():
    with pytest.raises(triton.UnsupportedError, match="launch_pdl on GPUs of compute capability 8.0: it takes 9.0"):
        types = {"x": "*fp32", "y": "*fp32", "n": "i32"}
        source = triton.compiler.ASTSource(new_kernel(), types, {"BLOCK": 128})
        triton.compile(source, target="cuda:80", options={"launch_pdl": True})


# ---- graphs


@pytest.mark.parametrize("mode", [GLOBAL, THREAD_LOCAL])
def test_the_first_launch_may_be_captured(mode):
    kernel = new_kernel()
    cuda.fake_begin_capture(0x1008, mode)
    launch(kernel, stream=0x1008)
    launch(kernel, stream=0x1008)
    assert cuda.fake_end_capture()
    assert [line.split()[0] for line in log()] == ["load", "launch", "launch"]
    assert whole_log().count(EARLY) == (2 if driver_version() >= 12030 else 0)


def scale(kernel, n, **options):
    return kernel[(8,)](Array(), Array(number=1), n, BLOCK=128, **options)


@pytest.fixture
def kernel(monkeypatch):
    """One with a variant for multiples of 16, whose other ones are compiled behind launches."""
    monkeypatch.setenv("TRITON_BACKGROUND", "1")
    kernel = new_kernel()
    scale(kernel, 1024)
    assert background.wait()
    cuda.fake_reset()
    return kernel


def test_a_variant_that_is_compiled_behind_is_loaded_before_it_is_launched(kernel):
    general = scale(kernel, 1000)
    assert background.wait()
    special = scale(kernel, 1000)
    assert special is not general and special.metadata.divisibility["n"] == 8
    assert [line.split()[0] for line in log()] == ["launch", "record", "load", "launch"]


def test_it_is_loaded_when_the_device_is_idle(kernel):
    """Loading waits for all kernels that run, and whoever launches then waits with it."""
    cuda.fake_set_busy(1)
    general = scale(kernel, 1000)
    assert not background.wait(1) and scale(kernel, 1000) is general
    assert not any("load" in line for line in log())
    cuda.fake_set_busy(0)
    assert background.wait()
    assert [line for line in log() if "load" in line] == ["load on 0"]
    assert scale(kernel, 1000) is not general


def test_the_environment_stays_while_code_is_made_behind(kernel, monkeypatch):
    """The driver looks at it, and the C library moves it where a variable is added."""
    cuda.fake_set_slow(200)
    scale(kernel, 1000)
    while not background.wait(0.001):
        monkeypatch.setenv(f"ADDED_{time.perf_counter_ns()}", "1")
    monkeypatch.undo()
    assert any("load" in line for line in log()) and not any("moved" in line for line in log())
    assert "once no GPU code is being compiled" in os.putenv.__doc__ and "once no GPU" in os.unsetenv.__doc__
    os.environ["ADDED"] = "1"
    del os.environ["ADDED"]
    with pytest.raises(TypeError, match="putenv"):
        os.putenv("ADDED")


def test_what_is_refused_in_the_background_is_told_by_a_launch(kernel):
    cuda.fake_set_link_error(INVALID_PTX, b"ptxas says why")
    scale(kernel, 1000)
    assert background.wait()
    with pytest.raises(triton.InternalError, match="ptxas says why"):
        scale(kernel, 1000)


def test_machine_code_is_made_once_and_goes_with_its_kernel():
    rest = unload_the_rest()
    before, kernel = cuda.fake_library_count(), new_kernel()
    handles = [launch(kernel, Array(device), Array(device, 1)) for device in (0, 1)]
    assert all(compiled.function and compiled.module for compiled in handles)
    launch(kernel, num_warps=8)
    assert cuda.fake_library_count() - before == HAS_LIBRARIES * 2  # of both devices, and of the other number of warps
    del kernel, handles
    gc.collect()
    cuda.fake_reset()
    launch(rest)
    assert not unloads()  # it may still run
    launch(new_kernel())  # loading waits for the device
    assert unloads() == ["unload from 0"]
    last = unload_the_rest()
    assert unloads().count("unload from 1") == 1 and unloads().count("unload from 0") == 3
    assert cuda.fake_library_count() == before + HAS_LIBRARIES
    assert last is not rest


HAS_LIBRARIES = hasattr(cuda, "cuLibraryLoadData") and os.environ.get("CUDA_MODULE_LOADING") != "EAGER"


@pytest.mark.skipif(not HAS_LIBRARIES, reason="the driver keeps launches waiting itself")
def test_launches_do_not_wait_while_another_thread_has_machine_code_made():
    """Only while it goes onto the device."""
    kernel, other = new_kernel(), new_kernel()
    launch(kernel)
    cuda.fake_set_slow(300)
    thread = threading.Thread(target=launch, args=(other,))
    thread.start()
    took = []
    while thread.is_alive():
        start = time.perf_counter()
        launch(kernel)
        took.append(time.perf_counter() - start)
    assert sum(seconds > 0.25e-3 for seconds in took) < 200


def test_a_launch_that_is_captured_is_not_done_without_its_variant(kernel):
    cuda.fake_begin_capture(0x1008, GLOBAL)
    assert scale(kernel, 1000, stream=0x1008).metadata.divisibility["n"] == 8
    assert cuda.fake_end_capture()


@pytest.mark.parametrize("mode", [GLOBAL, THREAD_LOCAL])
def test_a_variant_that_is_due_when_a_capture_begins(kernel, mode):
    cuda.fake_set_busy(1)
    general = scale(kernel, 1000)
    cuda.fake_begin_capture(0x1008, mode)
    captured = scale(kernel, 1000, stream=0x1008)
    other = scale(kernel, 1000)  # on a stream that is not captured
    cuda.fake_set_busy(0)
    assert background.wait()
    assert scale(kernel, 1000) is captured is other is not general
    assert cuda.fake_end_capture()


def new_long_kernel():
    @triton.jit
    def long(x, y, n, COUNT: tl.constexpr):
        offsets = tl.arange(0, 128)
        value = tl.load(x + offsets, mask=offsets < n)
        for i in tl.static_range(COUNT):
            value = value * value + tl.load(x + offsets + i, mask=offsets < n - i)
        tl.store(y + offsets, value, mask=offsets < n)

    return lambda n: long[(1,)](Array(), Array(number=1), n, COUNT=60)


@pytest.mark.parametrize("part", [0.05, 0.3, 0.6, 0.9])
def test_an_interrupt_while_a_variant_is_compiled_behind(monkeypatch, part):
    """It is the program's: what is compiled goes on, and is there for later launches."""
    monkeypatch.setenv("TRITON_BACKGROUND", "1")
    call = new_long_kernel()
    call(1024)
    start = time.perf_counter()
    assert background.wait()
    needed = time.perf_counter() - start
    general = call(1000)
    with pytest.raises(KeyboardInterrupt):
        threading.Timer(needed * part, os.kill, (os.getpid(), signal.SIGINT)).start()
        while True:
            call(1000)
    assert background.wait()
    assert call(1000) is not general


@pytest.mark.parametrize("part", [0.1, 0.5])
def test_an_interrupt_while_two_are_compiled(monkeypatch, part):
    """The program's own compilation is given up, the one behind it is not."""
    monkeypatch.setenv("TRITON_BACKGROUND", "1")
    first, second = new_long_kernel(), new_long_kernel()
    start = time.perf_counter()
    first(1024)
    needed = time.perf_counter() - start
    assert background.wait()
    general = first(1000)
    with pytest.raises(KeyboardInterrupt):
        threading.Timer(needed * part, os.kill, (os.getpid(), signal.SIGINT)).start()
        while second(1024):
            second = new_long_kernel()
    assert background.wait()
    assert first(1000) is not general
    assert second(1024) is second(1024)


def new_product():
    @triton.jit
    def product(a, b, c, K, B: tl.constexpr):
        i, sums = tl.arange(0, B), tl.zeros((B, B), tl.float32)
        for k in range(0, K, B):
            left = tl.load(a + i[:, None] * K + k + i[None, :])
            sums = tl.dot(left, tl.load(b + (k + i[:, None]) * B + i[None, :]), sums)
        tl.store(c + (tl.program_id(0) * B + i[:, None]) * B + i[None, :], sums)

    return product


def multiply(kernel, programs, device=0, **options):
    arrays = [Array(device, number) for number in range(3)]
    return kernel[(programs,)](*arrays, 1024, B=32, **options)


def most_programs(compiled):
    """On a multiprocessor, in the launches that the code is for; 0: any number."""
    return int((re.findall(r"programs = (\d)", compiled.asm["ttir"]) or [0])[0])


def test_how_many_programs_are_few_is_the_devices():
    kernel = new_product()
    on_first = [most_programs(multiply(kernel, programs)) for programs in (132, 133, 264, 265)]
    on_second = [most_programs(multiply(kernel, programs, 1)) for programs in (66, 67, 132, 133)]
    assert on_first == on_second == [1, 2, 2, 0] and len(kernel.variants()) == 3


def test_what_few_programs_run_is_compiled_behind(monkeypatch):
    monkeypatch.setenv("TRITON_BACKGROUND", "1")
    kernel = new_product()
    multiply(kernel, 1000)
    assert background.wait()
    cuda.fake_reset()
    assert most_programs(multiply(kernel, 100)) == 0 and background.wait()
    assert most_programs(multiply(kernel, 100)) == 1
    assert [line.split()[0] for line in log() if "attribute" not in line] == ["launch", "record", "load", "launch"]


@pytest.mark.parametrize("first, then", itertools.permutations((64, 200, 1000), 2))
def test_each_number_of_programs_runs_what_is_best_for_it_in_the_end(monkeypatch, first, then):
    monkeypatch.setenv("TRITON_BACKGROUND", "1")
    kernel = new_product()
    best = {64: 1, 200: 2, 1000: 0}
    assert most_programs(multiply(kernel, first)) == best[first]
    multiply(kernel, then)
    assert background.wait()
    assert most_programs(multiply(kernel, then)) == best[then]
    assert most_programs(multiply(kernel, first)) == best[first]


@pytest.mark.parametrize("few", [64, 200])
def test_what_many_programs_run_is_compiled_behind_few(monkeypatch, few):
    monkeypatch.setenv("TRITON_BACKGROUND", "1")
    kernel = new_product()
    multiply(kernel, few)
    assert len(kernel.variants()) < 3 and background.wait()
    assert most_programs(multiply(kernel, 1000)) == 0
    assert {most_programs(variant) for variant in kernel.variants()} == {0, most_programs(multiply(kernel, few))}


def test_what_stands_in_for_few_programs_was_made_for_more(monkeypatch):
    """Code for one program a multiprocessor takes all its memory, so of two programs each would wait for the other."""
    monkeypatch.setenv("TRITON_BACKGROUND", "1")
    kernel = new_product()
    multiply(kernel, 64)
    assert background.wait()
    assert most_programs(multiply(kernel, 200)) == 0 and background.wait()
    assert most_programs(multiply(kernel, 200)) == 2


def test_measuring_waits_for_the_variant_of_the_launch(monkeypatch):
    monkeypatch.setenv("TRITON_BACKGROUND", "1")
    kernel = new_product()
    multiply(kernel, 1000)
    assert background.wait()
    seen = []
    background.settle(lambda: seen.append(most_programs(multiply(kernel, 100))))
    assert seen == [0] and most_programs(multiply(kernel, 100)) == 1


def test_a_captured_launch_of_few_programs_runs_what_is_best_for_it(monkeypatch):
    monkeypatch.setenv("TRITON_BACKGROUND", "1")
    kernel = new_product()
    multiply(kernel, 1000)
    assert background.wait()
    cuda.fake_begin_capture(0x1008, GLOBAL)
    assert most_programs(multiply(kernel, 100, stream=0x1008)) == 1
    assert cuda.fake_end_capture()


def test_a_warmup_knows_the_devices_multiprocessors():
    kernel = new_product()
    arrays = [Array(1, number) for number in range(3)]
    compiled = kernel.warmup(*arrays, 1024, B=32, grid=(67,))
    assert most_programs(compiled) == 2 and multiply(kernel, 67, 1) is compiled


def test_kernels_may_go_while_a_stream_is_captured():
    kernel = new_kernel()
    launch(kernel)
    cuda.fake_begin_capture(0x1008, GLOBAL)
    del kernel
    gc.collect()
    before = unloads()
    launch(new_kernel(), stream=0x1008)
    assert len(unloads()) > len(before)
    assert cuda.fake_end_capture()


def test_kernels_that_a_graph_refers_to_stay():
    kernel = new_kernel()
    cuda.fake_begin_capture(0x1008, GLOBAL)
    launch(kernel, stream=0x1008)
    assert cuda.fake_end_capture()
    del kernel
    gc.collect()
    assert log()[-1].startswith("launch")


def test_debug_launches_are_not_captured():
    kernel = new_kernel()
    launch(kernel, debug=True)
    assert any("synchronize stream" in line for line in log())
    cuda.fake_begin_capture(0x1008, GLOBAL)
    with pytest.raises(triton.CUDAError, match="cannot be launched while a CUDA graph is captured") as error:
        launch(kernel, debug=True, stream=0x1008)
    assert "help: capture it without debug=True and TRITON_DEBUG" in str(error.value)
    assert cuda.fake_end_capture()
    cuda.fake_begin_capture(0x1008, GLOBAL)
    launch(kernel, debug=True, stream=0x1010)  # another stream's capture is no obstacle
    assert cuda.fake_end_capture()


def test_a_failed_assertion_is_told_and_the_next_launch_works():
    @triton.jit
    def asserts(x, n):
        tl.device_assert(n > 3, "n is small")
        tl.store(x, n)

    cuda.fake_set_failed_parameter(4)  # after x, n, and where x begins and ends
    with pytest.raises(triton.DeviceAssertionError, match=r"in program \(4, 5, 6\)"):
        asserts[(1,)](Array(), 7, debug=True)
    cuda.fake_reset()
    asserts[(1,)](Array(), 7, debug=True)


# ---- errors and resources


def test_an_error_of_the_driver_names_the_launch():
    kernel = new_kernel()
    cuda.fake_set_launch_error(ILLEGAL_ADDRESS)
    with pytest.raises(triton.CUDAError) as error:
        launch(kernel, grid=(8, 2), num_warps=8, maxnreg=64)
    text = "kernel 'scale', grid (8, 2, 1), num_warps=8, num_stages=3, maxnreg=64: an illegal memory access was"
    assert str(error.value).startswith(text)
    assert "help: this kernel or an earlier one touched memory" in str(error.value)
    assert (error.value.kernel, error.value.grid) == ("scale", (8, 2, 1))
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)
    assert isinstance(error.value, triton.KernelError)


def test_grids_that_are_too_large():
    with pytest.raises(triton.CUDAError, match="at most 65535 programs along its second and third axis"):
        launch(new_kernel(), grid=(1, 65536))


def test_code_that_the_driver_refuses():
    cuda.fake_set_link_error(INVALID_PTX, b"ptxas says why")
    with pytest.raises(triton.InternalError, match="loading kernel scale on Fake GPU: .*\n?ptxas says why"):
        launch(new_kernel())


def test_assembly_that_the_driver_refuses():
    @triton.jit
    def wrong(x):
        value = tl.inline_asm_elementwise("bogus $0, $1;", "=r,r", [tl.load(x)], tl.int32, is_pure=True, pack=1)
        tl.store(x, value)

    cuda.fake_set_link_error(INVALID_PTX, b"ptxas says why")
    x = Array()
    x.__cuda_array_interface__["typestr"] = "<i4"
    with pytest.raises(triton.CompilationError, match="(?s)loading kernel wrong on Fake GPU.*ptxas says why") as error:
        wrong[(1,)](x)
    assert error.value.file == __file__ and "bogus" in str(error.value)
    assert 'help: the log counts the lines of compiled.asm["ptx"]' in str(error.value)


def test_too_many_registers():
    kernel = new_kernel()
    cuda.fake_set_kernel(200, 512)
    with pytest.raises(triton.OutOfResources) as error:
        launch(kernel, num_warps=32)
    assert (error.value.name, error.value.required, error.value.limit) == ("registers", 204800, 65536)
    assert str(error.value) == (
        "error: out of resource: registers, Required: 204800, Hardware limit: 65536: kernel scale: 1024 threads "
        "(num_warps=32) of 200 registers each need 204800, and Fake GPU has 65536 for a program\n"
        "help: use a smaller num_warps or maxnreg, or smaller tiles"
    )
    cuda.fake_reset()
    kernel = new_kernel()
    cuda.fake_set_launch_error(OUT_OF_RESOURCES)
    with pytest.raises(triton.OutOfResources, match="registers"):
        launch(kernel)


@pytest.mark.parametrize(
    "said, options, required, limit, remedy",
    [
        ("(C7602) Insufficient registers (24) to compile instruction at line 9 in function scale. Try to compile with "
         "register target of 28 or higher.", {"maxnreg": 24}, 3584, 3072, "a larger maxnreg"),
        ("(C7600) Register allocation failed with register count of '64'. Compile the program with a higher register "
         "target", {"num_warps": 32}, 66560, 65536, "a smaller num_warps"),
    ],
)  # fmt: skip
def test_too_few_registers_for_an_instruction(said, options, required, limit, remedy):
    cuda.fake_set_link_error(INVALID_PTX, f"ptxas fatal   : {said}".encode())
    with pytest.raises(
        triton.OutOfResources, match=f"(?s)scale: a thread needs more registers than.*{remedy}"
    ) as error:
        launch(new_kernel(), **options)
    assert (error.value.name, error.value.required, error.value.limit) == ("registers", required, limit)
    assert said[:30] in str(error.value)


@triton.jit
def shift(x, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Each column by its number: what is looked up may be anywhere, so all of the tile is in shared memory at once."""
    rows, columns = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    tile = tl.load(x + rows * COLUMNS + columns)
    tl.store(x + rows * COLUMNS + columns, tl.gather(tile, (rows + columns) % ROWS, 0))


def test_too_much_shared_memory():
    with pytest.raises(triton.OutOfResources) as error:
        shift[(1,)](Array(), ROWS=512, COLUMNS=512, num_warps=32)
    assert error.value.name == "shared memory"
    assert error.value.required > error.value.limit == 227 << 10
    assert "shift" in error.value.call_chain or error.value.line
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)


def test_the_autotuner_leaves_out_what_does_not_fit():
    configs = [triton.Config({"ROWS": size, "COLUMNS": size}, num_warps=32) for size in (512, 64)]
    tuner = triton.autotune(configs, key=[])(shift)
    tuner[(1,)](Array())
    assert tuner.best_config is configs[1]
    times = tuner.configs_timings
    assert times[configs[0]][0] == float("inf") and times[configs[1]][0] == pytest.approx(1)
    tuner = triton.autotune([configs[0], triton.Config({"ROWS": 512, "COLUMNS": 1024}, num_warps=32)], key=[])(shift)
    with pytest.raises(
        triton.AutotunerError, match="(?s)none of the 2 configurations .* out of resource: shared memory, Required: "
    ):
        tuner[(1,)](Array())


# ---- timing, properties


def test_do_bench_times_the_kernel_alone():
    kernel = new_kernel()
    launch(kernel)
    cuda.fake_reset()
    assert do_bench(lambda: launch(kernel), warmup=5, rep=20) == pytest.approx(1)
    clears = [line for line in log() if "clear" in line]
    assert len(clears) >= 10 and clears[0] == f"clear {64 << 20} words on 0"
    assert do_bench(lambda: launch(kernel), warmup=5, rep=20, quantiles=[0.1, 0.9]) == pytest.approx([1, 1])
    with pytest.raises(ValueError, match="return_mode='fast' is none of"):
        do_bench(lambda: None, return_mode="fast")


def test_the_target_chooses_what_is_timed(monkeypatch):
    monkeypatch.setenv("TRITON_TARGET", "cpu")
    assert driver.active.get_current_target().backend == "cpu"
    do_bench(lambda: None, warmup=1, rep=1)
    assert not log()
    monkeypatch.setenv("TRITON_TARGET", "cuda:90")
    assert driver.active.get_current_target() == ("cuda", 90, 32)
    mine = object()
    driver.set_active(mine)
    monkeypatch.setenv("TRITON_TARGET", "cpu")
    assert driver.active is mine
    driver.reset_active()
    assert driver.active.get_current_target().backend == "cpu"


def test_device_interface():
    interface = driver.active.get_device_interface()
    assert (interface.device_count(), interface.is_available(), interface.current_device()) == (2, True, 0)
    interface.set_device(1)
    assert interface.current_device() == driver.active.get_current_device() == 1
    start, end = interface.Event(enable_timing=True), interface.Event(enable_timing=True)
    start.record()
    launch(new_kernel(), Array(1), Array(1, 1))
    end.record(Stream(0x2008))
    end.synchronize()
    assert start.elapsed_time(end) == 1
    interface.synchronize()
    interface.synchronize(0)
    with pytest.raises(ValueError, match="there is no CUDA device 5"):
        interface.synchronize(5)
    with pytest.raises(triton.CUDAError, match="recording an event"):
        end.record(0x1008)  # a stream of the other device


def test_device_properties():
    properties = driver.active.utils.get_device_properties(1)
    expected = {"max_shared_mem": 232448, "max_num_regs": 65536, "multiprocessor_count": 66, "warpSize": 32}
    assert properties.items() >= expected.items()
    assert {"sm_clock_rate", "mem_clock_rate", "mem_bus_width", "name", "total_memory"} <= properties.keys()
    assert driver.active.get_device_capability(1) == (9, 0)


def test_limits_of_a_device(monkeypatch):
    properties = dict(driver.active.utils.get_device_properties(0))
    properties |= {"mem_clock_rate": 3_201_000, "mem_bus_width": 6144, "sm_clock_rate": 1_830_000}
    monkeypatch.setattr(driver.active.utils, "get_device_properties", lambda device: properties)
    assert get_dram_gbps() == pytest.approx(4916.7, abs=0.1)
    assert get_max_tensorcore_tflops(tl.float16) == pytest.approx(989, abs=1)
    assert get_max_tensorcore_tflops("float8_e4m3fn", clock_rate=915_000) == pytest.approx(989, abs=1)
    assert get_max_simd_tflops(tl.float32) == pytest.approx(61.8, abs=0.1)
    with pytest.raises(ValueError, match="is none of float32, float16, bfloat16"):
        get_max_simd_tflops("int8")


def test_capsules_are_not_mixed_up():
    event, memory = _C.cuda_new_event(0), _C.cuda_allocate(0, 1 << 20)
    for bad in (memory, 3, None):
        with pytest.raises(ValueError):
            _C.cuda_record(bad, 0)
        with pytest.raises(ValueError):
            _C.cuda_milliseconds(event, bad)
    with pytest.raises(ValueError):
        _C.cuda_clear(event, 0)
    with pytest.raises(ValueError, match="cannot be negative"):
        _C.cuda_allocate(0, -1)


# ---- compiled kernels, wrappers, threads


def test_warmup_loads_nothing():
    kernel = new_kernel()
    arrays = triton.MockTensor(tl.float32), triton.MockTensor(tl.float32)
    compiled = kernel.warmup(*arrays, 1000, BLOCK=128, grid=(1,))
    assert not log()
    with pytest.raises(TypeError, match=r"argument 'x': a MockTensor has no memory; pass it to scale.warmup\(\)"):
        kernel[(1,)](*arrays, 1000, BLOCK=128)
    assert ".version" in compiled.asm["ptx"] and compiled.metadata.shared == 0
    assert compiled.n_regs == 32 and compiled.n_spills == 3
    assert log() == ["load on 0"]
    assert compiled._text("cubin").startswith(compiled.asm["ptx"].encode())
    assert log() == ["load on 0", "link scale"]


def standalone(**options):
    kernel = new_kernel()
    source = triton.compiler.ASTSource(kernel, {"x": "*fp32", "y": "*fp32", "n": "i32"}, {"BLOCK": 128})
    return triton.compile(source, target="cuda:90", options=options)


def run(compiled, stream, *arguments):
    compiled.run(8, 1, 1, stream, compiled.function, compiled.packed_metadata, None, None, None, *arguments)


def test_standalone_launches():
    """They go to the arrays' device and the stream that is named, with the kernel's own arguments."""
    compiled = standalone(num_warps=2)
    assert not log()
    run(compiled, 0x2040, Array(1), Array(1, 1), 1000, None)
    assert log()[-1] == "launch (8, 1, 1) of 64 on 1, stream 0x2040"
    cuda.fake_set_watched_parameter(2)
    run(compiled, 0, Array(), Array(number=1), 1, 128)
    assert log()[-2:] == ["launch (8, 1, 1) of 64 on 0, stream 0", "parameter 2 is 0x1"]
    with pytest.raises(ValueError, match="argument 'y': it is on cuda:1, but argument 'x' is on cuda:0"):
        run(compiled, 0, Array(), Array(1), 1000, None)
    with pytest.raises(ValueError, match="argument 'x': it is on the CPU, and the kernel was compiled for a GPU"):
        run(compiled, 0, *[np.zeros(1024, np.float32)] * 2, 1000, None)
    with pytest.raises(ValueError, match="no handle of a CUDA stream"):
        run(compiled, 12345, Array(), Array(), 1000, None)


def test_standalone_kernels_load_on_the_current_device():
    compiled = standalone()
    assert compiled.asm["ptx"]  # for which no device matters
    cuda.cuCtxSetCurrent(ctypes.c_void_p(cuda.fake_context(1)))
    compiled._init_handles()
    assert log() == ["load on 1"] and compiled.function and compiled.module


def test_standalone_launches_wait_for_nothing():
    """An assertion that fails ends the context: there is no record of it to wait for."""
    compiled = standalone(debug=True, sanitize_overflow=False)
    cuda.fake_begin_capture(0, GLOBAL)
    run(compiled, 0, Array(), Array(number=1), 1000, None)
    assert log()[-1] == "launch (8, 1, 1) of 128 on 0, stream 0"


def test_debug_launches_know_where_arrays_end():
    x = Array(shape=(16, 8), strides=(64, -4))
    for parameter, offset in ((3, -28), (4, 15 * 64 + 4), (6, 4096)):  # behind x, y and n: begin, end, begin, end
        cuda.fake_set_watched_parameter(parameter)
        launch(new_kernel(), x, Array(), debug=True)
        assert f"parameter {parameter} is {(5 << 44) + offset:#x}" in log()


def test_reinterpreted_arrays():
    wrapped = triton.reinterpret(Array(1), tl.int32)
    kernel = new_kernel()
    launch(kernel, wrapped, triton.reinterpret(Array(1, 1), tl.int32))
    assert log()[-1] == "launch (8, 1, 1) of 128 on 1, stream 0"


def test_threads_launch_on_devices_and_streams_while_variants_are_compiled(monkeypatch):
    monkeypatch.setenv("TRITON_BACKGROUND", "1")
    kernels, errors = [new_kernel() for _ in range(3)], []

    def work(seed):
        rng = random.Random(seed)
        try:
            for _ in range(100):
                device = rng.randrange(2)
                arrays = Array(device), Array(device, number=1)
                stream = ((device + 1) << 12) + 8 * rng.randrange(1, 4)
                n = rng.choice([1, 7, 12, 1000, 1024])
                rng.choice(kernels)[(8,)](*arrays, n, BLOCK=128, stream=stream)
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and background.wait()
    for kernel in kernels:  # threads that come at once may compile the same
        known = [variant.metadata for variant in kernel.variants()]
        classes = {("n" in metadata.constants, metadata.divisibility.get("n")) for metadata in known}
        assert 3 <= len(classes) <= 6


def test_threads_launch_at_once():
    kernel, failures = new_kernel(), []

    def work(device):
        try:
            for _ in range(50):
                launch(kernel, Array(device), Array(device, 1))
            assert current() is None
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number % 2,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_forked_process_is_told_what_is_wrong():
    kernel = new_kernel()
    launch(kernel)
    child = os.fork()
    if not child:
        cuda.fake_set_launch_error(NOT_INITIALIZED)
        try:
            launch(kernel)
        except triton.CUDAError as error:
            os._exit(7 if "forked" in error.remedy and "spawn" in error.remedy else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


WORKER = """
import ctypes, os, pickle
cuda = ctypes.CDLL("libcuda.so.1")
cuda.cuInit(0)  # as a library does, before it forks a process that compiles
child = os.fork()
if child:
    raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

import triton
from triton.backends import backends
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from worker_kernels import scale

nvidia = backends["nvidia"]
assert nvidia.driver.is_active()
triton.runtime.driver.set_active(nvidia.driver())
source = ASTSource(scale, {"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 128})
compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})
assert ".target sm_90" in compiled.asm["ptx"] and pickle.dumps(compiled)
try:
    triton.runtime.driver.active.get_current_target()
except RuntimeError as error:
    assert "forked" in str(error), error
else:
    raise AssertionError("there is no device here")
"""

WORKER_KERNELS = """
import triton
import triton.language as tl

@triton.jit
def scale(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)
"""


def test_a_process_forked_from_one_that_uses_cuda_compiles(tmp_path):
    (tmp_path / "worker_kernels.py").write_text(WORKER_KERNELS)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}
    environment.pop("TRITON_TARGET", None)
    done = subprocess.run([sys.executable, "-c", WORKER], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr


# ---- kernels on disk


def test_kernels_from_disk(monkeypatch, tmp_path):
    """What the driver makes of the PTX is the driver's own."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("TRITON_CACHE_SIZE")
    monkeypatch.delenv("TRITON_VERIFY")
    first, second = launch(new_kernel()), launch(new_kernel(), Array(1), Array(1, 1))
    assert first.timings["llvm"] > 0 and second.info["cached"]
    newest = ".version 8.7" if driver_version() >= 12080 else ".version 8.1"
    assert first.asm["ptx"] == second.asm["ptx"] and newest in first.asm["ptx"]
    assert log() == [
        "load on 0",
        "launch (8, 1, 1) of 128 on 0, stream 0",
        "load on 1",
        "launch (8, 1, 1) of 128 on 1, stream 0",
    ]
    assert first.asm["ttgir"] == second.asm["ttgir"] and first.asm["llir"] == second.asm["llir"]


FROM_DISK = """
from triton import _C
from worker_kernels import scale

class Array:
    __cuda_array_interface__ = {"shape": (128,), "typestr": "<f4", "data": (5 << 44, False), "version": 3}

scale[(1,)](Array(), 100, BLOCK=128)
scale[(1,)](Array(), 100, BLOCK=128)
print(_C._llvm_is_started())
"""


def test_launches_of_kernels_from_disk_need_no_llvm(monkeypatch, tmp_path):
    (tmp_path / "worker_kernels.py").write_text(WORKER_KERNELS)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, sys.path)]))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TRITON_BACKGROUND", "0")
    monkeypatch.delenv("TRITON_CACHE_SIZE")
    monkeypatch.delenv("TRITON_VERIFY")
    command = [sys.executable, "-c", FROM_DISK]
    first, second = (subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout for _ in range(2))
    assert (first, second) == ("True\n", "False\n")


def test_checks_of_kernels_from_disk(monkeypatch, tmp_path):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("TRITON_CACHE_SIZE")
    monkeypatch.delenv("TRITON_VERIFY")
    messages = []
    for _ in range(2):
        kernel = new_kernel()
        compiled = launch(kernel, debug=True)
        cuda.fake_set_failed_parameter(7)  # after x, y, n, and where x and y begin and end
        with pytest.raises(triton.KernelError) as error:
            launch(kernel, debug=True)
        cuda.fake_set_failed_parameter(-1)
        messages.append(str(error.value))
    assert messages[0] == messages[1] and "cases.py" in messages[0] and compiled.info["cached"]
