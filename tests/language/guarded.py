"""Runs kernels on arrays between inaccessible pages: a stray access is a fault, and an exception."""

import ctypes
import mmap
import os

import numpy as np
from harness import jit

PAGE = mmap.PAGESIZE
libc = ctypes.CDLL(None, use_errno=True)


def guarded(values, at_end):
    """A copy of an array that begins or ends where an inaccessible page ends or begins."""
    pages = -(-values.nbytes // PAGE) + 2
    memory = mmap.mmap(-1, pages * PAGE)
    whole = np.frombuffer(memory, np.uint8)
    start = (pages - 1) * PAGE - values.nbytes if at_end else PAGE
    inside = whole[start : start + values.nbytes].view(values.dtype)
    inside[:] = values
    for page in (0, pages - 1):
        if libc.mprotect(ctypes.c_void_p(whole.ctypes.data + page * PAGE), ctypes.c_size_t(PAGE), 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    return inside


COPY = jit("""
    def copy(x, out, n, SIZE: tl.constexpr):
        i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
        tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)
""")
EXACT = jit("""
    def exact(x, out, n, SIZE: tl.constexpr):
        i = tl.arange(0, SIZE)
        tl.store(out + i, tl.load(x + i) + 0)
""")
BLOCK = jit("""
    def block(x, out, n, SIZE: tl.constexpr):
        source = tl.make_block_ptr(x, (n,), (1,), (tl.program_id(0) * SIZE,), (SIZE,), (0,))
        target = tl.make_block_ptr(out, (n,), (1,), (tl.program_id(0) * SIZE,), (SIZE,), (0,))
        tl.store(target, tl.load(source, boundary_check=(0,)), boundary_check=(0,))
""")
BACKWARDS = jit("""
    def backwards(x, out, n, SIZE: tl.constexpr):
        i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
        tl.store(out + n - 1 - i, tl.load(x + n - 1 - i, mask=i < n), mask=i < n)
""")
STRIDED = jit("""
    def strided(x, out, n, SIZE: tl.constexpr):
        i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
        even = (i * 2 < n) & (i < n)
        tl.store(out + i * 2, tl.load(x + i * 2, mask=even), mask=even)
        odd = i * 2 + 1 < n
        tl.store(out + i * 2 + 1, tl.load(x + i * 2 + 1, mask=odd), mask=odd)
""")
ROWS = jit("""
    def rows(x, out, n, SIZE: tl.constexpr):
        i = tl.arange(0, 4)[:, None] * n // 4 + tl.arange(0, SIZE)[None, :]
        mask = tl.arange(0, SIZE)[None, :] < n // 4
        value = tl.load(x + i, mask=mask & (i >= 0), other=0)
        tl.store(out + i, value, mask=mask)
""")
REDUCE = jit("""
    def reduce(x, out, n, SIZE: tl.constexpr):
        i = tl.arange(0, SIZE)
        y = tl.load(x + i, mask=i < n, other=0)
        tl.store(out + i, tl.where(tl.sum(y) == 0, y, y), mask=i < n)
""")


def run(kernel, dtype, count, size, at_end, programs=None):
    x = np.arange(count).astype(dtype)
    source, target = guarded(x, at_end), guarded(np.zeros_like(x), at_end)
    kernel[(programs or -(-count // size),)](source, target, count, size)
    assert (target == x).all(), (kernel, dtype, count, size)


if __name__ == "__main__":
    for dtype in (np.int8, np.float32, np.float64):
        for at_end in (True, False):
            for count in (1, 3, 63, 100, 4097):
                for kernel in (COPY, BLOCK, BACKWARDS, STRIDED):
                    for size in (16, 100):
                        run(kernel, dtype, count, size, at_end)
            for count in (1, 7, 64, 96, 100, 1000):
                run(EXACT, dtype, count, count, at_end)
                run(REDUCE, dtype, count, 1024, at_end)
            for count in (4, 12, 100, 400):
                run(ROWS, dtype, count, 128, at_end)
    # Many programs that only masks keep from memory: large launches may store differently, but not one by one.
    is_slow = os.environ.get("TRITON_TARGET", "").startswith("sim") or "TRITON_INTERPRET" in os.environ
    for count in () if is_slow else (63, 4097):
        for kernel in (COPY, BLOCK, BACKWARDS, STRIDED):
            run(kernel, np.float32, count, 128, True, programs=1 << 18)
    print("no stray access")
