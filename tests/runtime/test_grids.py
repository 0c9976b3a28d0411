"""Grids: their forms, their limits, and the functions that compute them."""

import numpy as np
import pytest

import triton
import triton.language as tl

pytestmark = pytest.mark.host


@triton.jit
def count(out, STRIDE: tl.constexpr = 8):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    tl.store(out + (z * STRIDE + y) * STRIDE + x, 1)


def ran(grid, **options):
    out = np.zeros((8, 8, 8), np.int32)
    count[grid](out, **options)
    z, y, x = np.nonzero(out)
    return (x.max() + 1, y.max() + 1, z.max() + 1) if out.any() else None


@pytest.mark.parametrize(
    "grid, extents",
    [
        (3, (3, 1, 1)),
        (np.int64(3), (3, 1, 1)),
        ((3,), (3, 1, 1)),
        ((3, 4), (3, 4, 1)),
        ([3, 4, 5], (3, 4, 5)),
        ((np.int32(3), 4, True), (3, 4, 1)),
        (lambda meta: 3, (3, 1, 1)),
        (lambda meta: (3, meta["STRIDE"]), (3, 8, 1)),
        ((0,), None),
        ((3, 0, 3), None),
        (lambda meta: (0,), None),
    ],
)
def test_forms(grid, extents):
    assert ran(grid) == extents


def test_run_takes_the_grid_as_a_keyword():
    out = np.zeros((8, 8, 8), np.int32)
    count.run(out, grid=(2,))
    assert out.sum() == 2


def test_what_a_grid_function_sees():
    seen = {}

    def grid(meta):
        seen.update(meta)
        return (1,)

    out = np.zeros((8, 8, 8), np.int32)
    count[grid](out, num_warps=2)
    assert seen.keys() == {"out", "STRIDE", "num_warps"}
    assert seen["out"] is out
    assert seen["STRIDE"] == 8
    assert seen["num_warps"] == 2


@pytest.mark.parametrize(
    "grid, error, message",
    [
        (-1, ValueError, "count[grid]: an extent of the grid is -1; extents cannot be negative"),
        ((1, -2), ValueError, "count[grid]: an extent of the grid is -2; extents cannot be negative"),
        ((), ValueError, "count[grid]: a grid has one to three extents, not ()"),
        ((1, 1, 1, 1), ValueError, "count[grid]: a grid has one to three extents, not (1, 1, 1, 1)"),
        (2**31, ValueError, "count[grid]: an extent of the grid is 2147483648; the largest possible is 2**31 - 1"),
        (10**30, ValueError, f"count[grid]: an extent of the grid is {10**30}; the largest possible is 2**31 - 1"),
        (
            (16 / 8,),
            TypeError,
            "count[grid]: an extent of the grid is 2.0, which is no integer; divide with // or triton.cdiv",
        ),
        (
            "abc",
            TypeError,
            "count[grid]: an extent of the grid is 'abc', which is no integer; divide with // or triton.cdiv",
        ),
        (lambda meta: 1 / 0, ZeroDivisionError, "division by zero"),
        (lambda meta: meta["MISSING"], KeyError, "'MISSING'"),
    ],
)
def test_wrong_grids(grid, error, message):
    with pytest.raises(error) as raised:
        ran(grid)
    assert str(raised.value) == message


def test_no_grid():
    with pytest.raises(TypeError, match=r"count.run\(\) needs the keyword argument 'grid'"):
        ran(None)
    with pytest.raises(TypeError, match="got another grid"):
        count[(1,)](np.zeros(1, np.int32), grid=(1,))


def test_a_list_that_changes_while_it_is_read():
    grid = [2, 2, 2]

    class Extent:
        def __index__(self):
            grid.clear()
            return 2

    grid[0] = Extent()
    with pytest.raises(IndexError):
        ran(grid)


def test_warmup_launches_nothing():
    out = np.zeros((8, 8, 8), np.int32)
    compiled = count.warmup(out, grid=(3,))
    assert count[(3,)](out, warmup=True) is compiled
    assert count.warmup(out) is compiled
    assert not out.any()


def test_a_launcher_can_be_kept():
    launcher = count[(2,)]
    out = np.zeros((8, 8, 8), np.int32)
    launcher(out)
    launcher(*[out], **{"STRIDE": 4})
    assert out.sum() == 2
    assert type(launcher).__call__(launcher, out) is count[(2,)](out)


def test_hooks_see_the_arguments():
    kernel = triton.jit(count.fn)
    calls = []
    kernel.add_pre_run_hook(lambda *args, **kwargs: calls.append((args, kwargs)))
    out = np.zeros((8, 8, 8), np.int32)
    kernel[(1,)](out, STRIDE=8)
    kernel.warmup(out, grid=(1,))
    assert len(calls) == 1
    assert calls[0][0][0] is out
    assert calls[0][1] == {"STRIDE": 8}
    kernel.add_pre_run_hook(lambda *args, **kwargs: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        kernel[(1,)](out)
    with pytest.raises(TypeError, match="a hook must be callable"):
        kernel.add_pre_run_hook(3)
