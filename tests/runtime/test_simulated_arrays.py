"""What the simulator knows of the memory that arguments lie in."""

import numpy as np
import pytest

import triton
import triton.language as tl


@pytest.fixture(autouse=True)
def simulator(monkeypatch):
    monkeypatch.setenv("TRITON_TARGET", "sim:90")


@triton.jit
def copy(x_ptr, y_ptr, n, start, BLOCK: tl.constexpr):
    offsets = start + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)


def test_views_that_overlap():
    x = np.arange(100, dtype=np.float32)
    whole, part = x, x[10:20]
    copy[(1,)](whole, part, 10, 0, BLOCK=16)
    assert x[10:20].tolist() == list(range(10)) and x[20] == 20
    copy[(1,)](part, whole, 90, 80, BLOCK=16)  # through a short view to what another argument covers
    assert x[80:90].tolist() == list(range(90, 100))
    with pytest.raises(triton.MemoryAccessError, match="load out of bounds"):
        copy[(1,)](part, whole, 91, 90, BLOCK=16)


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_views_into_memory_of_several_arrays(library, debug):
    """Programs that lay arrays side by side reach from one into the next, and past a row into its padding; who debugs
    wants to hear of it."""
    whole = np.zeros((4, 48), np.float32)
    if library == "torch":
        torch = pytest.importorskip("torch")
        whole = torch.from_numpy(whole)
    whole[:, :] = 1
    source, target = whole[0, :32], whole[2][16:32]
    source[:] = 7
    if debug:
        with pytest.raises(triton.MemoryAccessError, match="store out of bounds of the array 'y_ptr'"):
            copy[(1,)](source, target, 32, 0, BLOCK=32, debug=True)
        return
    copy[(1,)](source, target, 32, 0, BLOCK=32)
    assert whole[2].tolist() == [1] * 16 + [7] * 32
    with pytest.raises(triton.MemoryAccessError, match="store out of bounds of the array 'y_ptr'"):
        copy[(1,)](source, whole[3, 32:], 32, 0, BLOCK=32)
    assert (whole[3] == 1).all() or whole[3][-1] == 7  # nothing is written behind it


@pytest.mark.parametrize("n, fits", [(64, True), (65, False)])
def test_reinterpreted_arrays(n, fits):
    x, y = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    arguments = [triton.reinterpret(array, tl.uint32) for array in (x, y)]
    assert arguments[0].stride() == (1,) and arguments[0].numel() == 64 and arguments[0].element_size() == 4
    if fits:
        copy[(1,)](*arguments, n, 0, BLOCK=128)
        assert (x == y).all()
    else:
        with pytest.raises(triton.MemoryAccessError, match="out of bounds"):
            copy[(1,)](*arguments, n, 0, BLOCK=128)


class Address:
    """An array that says where it begins, and no more."""

    def __init__(self, array):
        self.array, self.dtype, self.device = array, tl.float32, "cpu"

    def data_ptr(self):
        return self.array.__array_interface__["data"][0]


def test_arrays_of_unknown_extent():
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    copy[(1,)](Address(x), y, 64, 0, BLOCK=64)
    assert (x == y).all()
