"""What programs that count compilations see: `JITFunction.device_caches` and the hooks around compilations tell of the
classes of arguments that the public API has, whatever the compiler makes of them behind."""

import numpy as np
import pytest

import triton
import triton.language as tl
from triton.runtime import background

NUMBERS = [1, 2, 4, 8, 16, 32, -3, -48]


def made(**options):
    @triton.jit(**options)
    def kernel(x_ptr, i, j, BLOCK: tl.constexpr):
        tl.store(x_ptr, i + j)

    return kernel


@pytest.fixture(params=["0", "1"])
def behind(request, monkeypatch):
    monkeypatch.setenv("TRITON_BACKGROUND", request.param)


@pytest.fixture
def hooks():
    yield triton.knobs.runtime
    triton.knobs.runtime.reset()


CASES = [({}, 3), ({"do_not_specialize": ["i"]}, 1), ({"do_not_specialize_on_alignment": ["i"]}, 2)]


@pytest.mark.compiled
@pytest.mark.parametrize("options, count", CASES)
def test_hooks_tell_of_each_class_once(options, count, behind, hooks):
    before, after, kernel, x = [], [], made(**options), np.zeros(1, np.int32)
    hooks.jit_cache_hook = lambda **about: before.append(about["key"])
    hooks.jit_post_compile_hook = lambda **about: after.append(about["key"])
    for i in NUMBERS:
        kernel[(1,)](x, i, 1600, BLOCK=4)
        assert x[0] == i + 1600
    assert len(set(before)) == len(before) == count and after == before
    assert set(kernel.device_caches[0][0]) == set(before)


@pytest.mark.compiled
@pytest.mark.parametrize("options, count", CASES)
def test_the_caches_have_each_class_once(options, count, behind):
    kernel, x = made(**options), np.zeros(1, np.int32)
    for i in NUMBERS:
        kernel[(1,)](x, i, 1600, BLOCK=4)
    assert len(kernel.device_caches[0][0]) == count


@pytest.mark.compiled
def test_a_variant_that_no_launch_asked_for_is_not_counted(monkeypatch):
    monkeypatch.setenv("TRITON_BACKGROUND", "1")
    kernel, x = made(), np.zeros(1, np.int32)
    first = kernel[(1,)](x, 16, 16, BLOCK=4)
    background.wait()
    assert len(kernel.variants()) == 2
    assert list(kernel.device_caches[0][0].values()) == [first]
    kernel[(1,)](x, 17, 17, BLOCK=4)
    assert len(kernel.device_caches[0][0]) == 2


@pytest.mark.compiled
@pytest.mark.host
def test_the_cpu_is_a_device_by_name():
    torch = pytest.importorskip("torch")
    kernel, x = made(), np.zeros(1, np.int32)
    assert len(kernel.device_caches["cpu"][0]) == 0
    kernel[(1,)](x, 16, 16, BLOCK=4)
    assert len(kernel.device_caches[torch.device("cpu")][0]) == len(kernel.device_caches["cpu"][0]) == 1
    with pytest.raises(KeyError):
        kernel.device_caches["cuda:7"]
