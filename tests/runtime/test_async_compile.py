"""triton.AsyncCompileMode: warmups as tasks of an executor."""

from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pytest

import triton
import triton.language as tl

pytestmark = pytest.mark.host


class Later:
    """An executor that does what it is told to when it is told to."""

    def __init__(self):
        self.tasks = []

    def submit(self, function, *args, **kwargs):
        future = Future()

        def run():
            try:
                future.set_result(function(*args, **kwargs))
            except Exception as error:
                future.set_exception(error)

        self.tasks.append(run)
        return future

    def run(self, count=None):
        for task in self.tasks[:count]:
            task()
        del self.tasks[:count]


def new_kernel():
    @triton.jit
    def fill(x, n, VALUE: tl.constexpr):
        tl.static_assert(VALUE >= 0)
        tl.store(x, VALUE)

    return fill


def test_each_variant_is_a_task():
    kernel, later = new_kernel(), Later()
    x, y = np.zeros(4, np.float32), np.zeros(4, np.int32)
    with triton.AsyncCompileMode(later):
        for array in (x, y):
            for value in (0, 1):
                futures = [kernel.warmup(array, 16, value, grid=(1,)), kernel.warmup(array, 32, value, grid=(1,))]
        kernel.warmup(x, 17, 0, grid=(1,))
        kernel.warmup(x, 16, VALUE=0, grid=(1,), num_warps=8)
        assert len(later.tasks) == 6 and not kernel.variants()
        later.run(1)
        kernel[(1,)](x, 16, 0)
        assert len(kernel.variants()) == 1
        kernel[(1,)](y, 16, 1)  # which is not there yet
        assert y[0] == 1
        later.run()
    assert futures[1].result() is futures[0].result() and futures[0].name == "fill"
    assert kernel.warmup(x, 16, 0, grid=(1,)) in kernel.variants()


def test_types_stand_for_arrays():
    torch = pytest.importorskip("torch")
    kernel = new_kernel()
    with ThreadPoolExecutor(2) as pool, triton.AsyncCompileMode(pool):
        one = kernel.warmup(torch.float32, 16, 1, grid=(1,))
        other = kernel.warmup(torch.float16, 16, 1, grid=(1,))
    assert one.signature["x"] == "*fp32" and other.signature["x"] == "*fp16"


def test_errors_come_at_the_end():
    kernel, x = new_kernel(), np.zeros(4, np.float32)
    fails = pytest.raises(triton.CompilationError, match="static_assert")
    with fails, ThreadPoolExecutor(1) as pool, triton.AsyncCompileMode(pool):
        kernel.warmup(x, 1, -1, grid=(1,))
    with ThreadPoolExecutor(1) as pool, triton.AsyncCompileMode(pool, ignore_errors=True):
        future = kernel.warmup(x, 1, -1, grid=(1,))
    with pytest.raises(triton.CompilationError, match="static_assert"):
        future.result()
    nests = pytest.raises(RuntimeError, match="does not nest")
    with nests, triton.AsyncCompileMode(Later()), triton.AsyncCompileMode(Later()):
        pass
    assert type(kernel.warmup(x, 1, 1, grid=(1,))) is triton.compiler.CompiledKernel
