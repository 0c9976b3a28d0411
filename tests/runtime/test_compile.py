"""Compiled kernels: what they say about themselves, how they are found again, and what they keep alive."""

import ast
import copy
import gc
import multiprocessing
import os
import resource
import threading
import weakref

import numpy as np
import pytest

import triton
import triton.language as tl
from triton.compiler import ASTSource

pytestmark = pytest.mark.host


@triton.jit
def scale(x, factor, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = index < n
    tl.store(x + index, tl.load(x + index, mask=mask) * factor, mask=mask)


def fresh(kernel=scale):
    """The same kernel with nothing compiled."""
    return triton.jit(kernel.fn)


def test_what_a_compiled_kernel_says(target):
    stages = ["ttir", "llir", "asm"] if target == "cpu" else ["ttir", "ttgir", "llir"]
    x = np.ones(64, np.float32)
    compiled = fresh().warmup(x, 2.0, 64, BLOCK=32, num_warps=2, grid=(2,))
    assert set(compiled.asm) == set(stages)
    assert "store" in compiled.asm["ttir"]
    assert "define" in compiled.asm["llir"]
    assert all(compiled.asm[stage].strip() for stage in stages)
    assert compiled.asm.get("ptx") is None
    with pytest.raises(KeyError, match=f"no stage 'ptx' on target '{target}'; there are: {', '.join(stages)}"):
        compiled.asm["ptx"]
    metadata = compiled.metadata
    assert (metadata.name, metadata.num_warps, compiled.info["target"]) == ("scale", 2, target)
    assert metadata.target == triton.runtime.driver.active.get_current_target()
    assert metadata.signature == {"x": "*fp32", "factor": "fp32", "n": "i32", "BLOCK": "constexpr"}
    assert metadata.constants == {"BLOCK": 32}
    assert compiled.name == "scale"
    assert compiled.n_spills == 0
    assert compiled._init_handles() is None
    assert "scale" in repr(compiled)
    assert sum(compiled.timings.values()) > 0
    assert list(compiled.timings) == ["ast", "frontend", "passes", "lowering", "llvm", "store"]
    assert compiled.metadata.shared >= (64 if target == "cpu" else 0)
    assert metadata.timings == compiled.timings


was_collecting = []


@tl.constexpr_function
def look_at_collector():
    was_collecting.append(gc.isenabled())
    return 1


@triton.jit
def look(x):
    tl.store(x, look_at_collector())


@triton.jit
def look_and_fail(x):
    tl.store(x, look_at_collector() + undefined)  # noqa: F821


@pytest.mark.parametrize("enabled", [True, False])
def test_reading_a_program_is_no_occasion_to_collect_garbage(enabled):
    """A full collection of a process with torch takes longer than compiling."""
    was_collecting.clear()
    try:
        if not enabled:
            gc.disable()
        fresh(look).warmup(np.zeros(1, np.float32), grid=(1,))
        assert gc.isenabled() == enabled
        with pytest.raises(triton.CompilationError):
            fresh(look_and_fail).warmup(np.zeros(1, np.float32), grid=(1,))
        assert gc.isenabled() == enabled
    finally:
        gc.enable()
    assert was_collecting.count(False) >= 2  # and what ptxas gets is read apart


def test_the_collector_does_not_look_at_programs():
    """Nor at the parts of their trees: it would take the next occasion, and Ctrl-C waits for its end."""
    tree = fresh().parse()
    parts = [part for node in ast.walk(tree) for part in (node, vars(node), *vars(node).values())]
    nested = [part for part in parts if isinstance(part, ast.AST | list | dict)]
    assert len(nested) > 100 and not any(map(gc.is_tracked, nested))
    assert ast.dump(copy.deepcopy(tree)) == ast.dump(tree)
    gone = weakref.ref(tree.body[0])
    del tree, parts, nested
    assert gone() is None


def test_how_many_programs_fit():
    """Host code that computes occupancy as on a GPU gets a sensible number."""
    properties = triton.runtime.driver.active.utils.get_device_properties(0)
    compiled = fresh().warmup(np.ones(64, np.float32), 2.0, 64, BLOCK=32, num_warps=8, grid=(1,))
    by_registers = properties["max_num_regs"] // (compiled.n_regs * properties["warpSize"] * 8)
    by_memory = properties["max_shared_mem"] // max(compiled.metadata.shared, 1)
    assert properties["multiprocessor_count"] * min(by_registers, by_memory) >= 1


def test_a_launch_returns_what_ran():
    x = np.ones(64, np.float32)
    kernel = fresh()
    compiled = kernel[(2,)](x, 2.0, 64, BLOCK=32)
    assert (x == 2).all()
    assert kernel.variants() == [compiled]
    assert compiled.fn is kernel


@pytest.mark.parametrize("with_constants", [True, False])
def test_compiled_kernels_launch(with_constants):
    x = np.ones(64, np.float32)
    compiled = fresh().warmup(x, 2.0, 64, BLOCK=32, grid=(2,))
    assert compiled[(2,)](x, 3.0, 64, *([32] if with_constants else [])) is compiled
    assert (x == 3).all()
    compiled[(2, 1, 1)](x=x, factor=2.0, n=64)
    assert (x == 6).all()
    # An array that this variant was not made for.
    other = np.ones(65, np.float32)[1:]
    compiled[(2,)](other, 2.0, 64)
    assert (other == 2).all()


def test_compile_from_types():
    kernel = fresh()
    source = ASTSource(kernel, {"x": "*fp32", "factor": "fp32", "n": "i32"}, {"BLOCK": 16})
    compiled = triton.compile(source, options={"num_warps": 8})
    assert compiled.metadata.num_warps == 8
    x = np.ones(16, np.float32)
    compiled[(1,)](x, 5.0, 16)
    assert (x == 5).all()
    source = ASTSource(
        kernel, {"x": "*fp32", "factor": "fp32", "n": "i32"}, {(3,): 16}, {(0,): [["tt.divisibility", 16]]}
    )
    assert triton.compile(source).metadata.divisibility["x"] == 16
    with pytest.raises(ValueError, match="neither a type nor a value for parameter 'BLOCK'"):
        triton.compile(ASTSource(kernel, {"x": "*fp32", "factor": "fp32", "n": "i32"}))
    for signature in ("*fp32, fp32, i32", ["*fp32", "fp32", "i32"], {0: "*fp32", 1: "fp32", 2: "i32"}):
        with pytest.raises(TypeError, match=r"by its name, \{'x': '\*fp32', \.\.\.\}, and this is"):
            ASTSource(kernel, signature)
    with pytest.raises(ValueError, match="has no parameter 'y'"):
        ASTSource(kernel, {"y": "*fp32"})
    with pytest.raises(triton.TargetError, match="no target 'abacus'"):
        triton.compile(source, target="abacus")
    with pytest.raises(TypeError, match="unknown options: num_warp"):
        triton.compile(source, options={"num_warp": 8})


def test_names_of_variants():
    kernel = triton.jit(scale.fn, repr=lambda special: f"scale_{special.constants['BLOCK']}")
    compiled = kernel.warmup(np.ones(4), 2.0, 4, BLOCK=32, grid=(1,))
    assert compiled.name == compiled.metadata.name == "scale_32"


# ---- names that the kernel uses

FACTOR = tl.constexpr(2)


@triton.jit
def helper(x):
    return x * FACTOR


@triton.jit
def uses_names(x):
    tl.store(x, helper(tl.load(x)))


def test_a_global_that_changes_compiles_anew():
    global FACTOR, helper
    kernel = fresh(uses_names)
    x = np.ones(1, np.float32)
    first = kernel[(1,)](x)
    assert x[0] == 2
    saved = FACTOR, helper
    try:
        FACTOR = tl.constexpr(5)
        second = kernel[(1,)](x)
        assert x[0] == 10
        assert second is not first
        FACTOR = tl.constexpr(2)
        assert kernel[(1,)](x) is first
        assert x[0] == 20

        @triton.jit
        def helper(x):
            return x + 100

        kernel[(1,)](x)
        assert x[0] == 120
        assert len(kernel.variants()) == 3
    finally:
        FACTOR, helper = saved
    assert kernel[(1,)](x) is first


def make_adder(amount: tl.constexpr):
    @triton.jit
    def add(x):
        tl.store(x, tl.load(x) + amount)

    return add


def test_closures():
    x = np.zeros(1, np.float32)
    for amount in (1, 2, 3):
        make_adder(tl.constexpr(amount))[(1,)](x)
    assert x[0] == 6


# ---- threads and processes


def in_threads(count, work):
    errors = []

    def guarded(number):
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_threads_compile_different_variants_at_once():
    kernel = fresh()

    def work(number):
        x = np.ones(512, np.float32)
        kernel[(1,)](x, float(number), 512, BLOCK=512 + number)
        assert (x == number).all()

    in_threads(16, work)
    assert len(kernel.variants()) == 16


def test_threads_compile_one_variant_at_once():
    kernel = fresh()

    def work(number):
        for _ in range(10):
            x = np.ones(64, np.float32)
            kernel[(2,)](x, 3.0, 64, BLOCK=32)
            assert (x == 3).all()

    in_threads(8, work)
    assert len({id(compiled) for compiled in kernel.variants()}) >= 1


def launch_in_child(queue):
    x = np.ones(1000, np.float32)
    scale[(10,)](x, 4.0, 1000, BLOCK=100)
    fresh()[(10,)](x, 2.0, 1000, BLOCK=100)
    queue.put(float(x.sum()))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork_after_launches():
    """Children launch kernels of the parent, and compile their own, though the parent's threads are not theirs."""
    x = np.ones(1000, np.float32)
    scale[(10,)](x, 2.0, 1000, BLOCK=100)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    children = [context.Process(target=launch_in_child, args=(queue,)) for _ in range(3)]
    for child in children:
        child.start()
    assert [queue.get(timeout=600) for _ in children] == [8000.0] * 3
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    scale[(10,)](x, 2.0, 1000, BLOCK=100)
    assert (x == 4).all()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_os_fork():
    child = os.fork()
    if child == 0:
        try:
            x = np.ones(64, np.float32)
            fresh()[(2,)](x, 2.0, 64, BLOCK=32)
            os._exit(0 if (x == 2).all() else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# ---- lifetimes


def test_kernels_are_collected():
    kernel = fresh()
    compiled = kernel[(1,)](np.ones(4, np.float32), 2.0, 4, BLOCK=4)
    hook = kernel.add_pre_run_hook(lambda *args, **kwargs: kernel)
    alive = weakref.ref(kernel)
    del compiled, hook
    kernel = None
    gc.collect()
    assert alive() is None


@pytest.fixture
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def launched(kernel, factor=2.0, count=4):
    x = np.ones(count, np.float32)
    compiled = kernel[(1,)](x, factor, count, BLOCK=4)
    assert (x == factor).all()
    return compiled


def test_kernels_go_without_the_collector(no_collector):
    kernel = fresh()
    launched(kernel)
    launched(kernel, 1.0)
    kernel.warmup(np.ones(4, np.float32), 2.0, 4, BLOCK=8, grid=(1,))
    alive = [weakref.ref(kernel), *map(weakref.ref, kernel.variants())]
    del kernel
    assert len(alive) >= 3 and not any(each() for each in alive)


def test_what_is_compiled_keeps_its_kernel(no_collector):
    kernel = fresh()
    compiled, alive = launched(kernel), weakref.ref(kernel)
    other = weakref.ref(kernel.warmup(np.ones(4, np.float32), 2.0, 4, BLOCK=8, grid=(1,)))
    del kernel
    assert compiled.fn is alive() and other() is None  # which nobody held
    del compiled
    assert alive() is None


def test_what_keeps_its_kernel_is_launched(no_collector):
    compiled = launched(fresh())
    alive = weakref.ref(compiled.fn)
    for _ in range(2):
        x = np.ones(4, np.float32)
        assert compiled[(1,)](x, 2.0, 4) is compiled
        assert (x == 2).all()
    again = launched(compiled.fn, 3.0, 3)
    del compiled, again
    gc.collect()  # such a kernel is in cycles with what was compiled from it
    assert alive() is None


def test_what_a_kernel_forgets_keeps_it(no_collector):
    kernel = fresh()
    compiled, alive = launched(kernel), weakref.ref(kernel)
    kernel.device_caches.clear()
    del kernel
    assert compiled.fn is alive()
    del compiled
    assert alive() is None


def test_a_collected_cycle_with_what_is_compiled():
    """What holds a compiled kernel goes together with that."""
    kernel = fresh()
    launched(kernel).keeper = kernel.keeper = [launched(kernel)]
    kernel.keeper.append(kernel.keeper)
    alive = weakref.ref(kernel), weakref.ref(kernel.keeper[0])
    del kernel
    gc.collect()
    assert alive[0]() is None and alive[1]() is None


def resident():
    """Bytes of memory in use now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


@triton.jit
def fails(x, n: tl.constexpr):
    tl.store(x, n + no_such_name)  # noqa: F821


def test_failed_compilations_leak_nothing():
    x = np.ones(4, np.float32)

    def fail(number):
        with pytest.raises(triton.CompilationError):
            fails[(1,)](x, number)

    for number in range(200):
        fail(number)
    before = resident()
    for number in range(1000):
        fail(number)
    assert resident() - before < 4 << 20
    assert not fails.variants()


@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="its allocator keeps what is freed for a while")
def test_launches_leak_nothing():
    x = np.ones(4, np.float32)
    for _ in range(1000):
        scale[lambda meta: (1,)](x, 1.0, n=4, BLOCK=4)
    before = resident()
    for _ in range(20000):
        scale[lambda meta: (1,)](x, 1.0, n=4, BLOCK=4)
    assert resident() - before < 1 << 20


@pytest.mark.slow
def test_dropped_kernels_free_their_code(no_collector):
    x = np.ones(4, np.float32)

    def compile_some():
        for _ in range(20):
            fresh()[(1,)](x, 1.0, 4, BLOCK=4)

    compile_some()
    before = resident()
    for _ in range(10):
        compile_some()
    assert resident() - before < 16 << 20
