"""Arrays in memory that the process may not touch, and kernels that fail in a known line."""

import ctypes
import mmap
import os
import re
import signal
import threading
import time

import numpy as np
import numpy.testing  # now, and not in a handler of signals
from harness import jit

import triton

libc = ctypes.CDLL(None, use_errno=True)
NOTHING, READ = 0, 1


def protect(array, what):
    if libc.mprotect(ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes), what):
        raise OSError(ctypes.get_errno(), "mprotect")
    return array


def hole(dtype=np.float32, bytes=1 << 20, access=NOTHING):
    """An array whose elements cannot be read, or cannot be written."""
    return protect(np.frombuffer(mmap.mmap(-1, bytes), dtype), access)


def marked_line(kernel):
    """The line of the source that ends in `# fails`, as messages have it."""
    lines = [i for i, line in enumerate(kernel.src.splitlines(), kernel.first_line) if line.endswith("# fails")]
    return f"{kernel.source_file}:{lines[0]}: "


def failure(kernel, grid, *args, **options):
    """The message of the launch, which fails."""
    try:
        kernel[grid](*args, **options)
    except triton.MemoryAccessError as error:
        return str(error)
    raise AssertionError("the launch did not fail")


def program_of(message):
    return tuple(map(int, re.search(r"in program \((\d+), (\d+), (\d+)\)", message).groups()))


def soonest(late, limit=0.2, tries=5):
    """Checks how late something was interrupted, at best.

    Where other processes have the cores, that is compared with how late a loop of Python's own is.
    """
    seen = []
    while len(seen) < tries:
        seen.append(late())
        if seen[-1] < limit or seen[-1] - interrupted(loop_in_python) < limit:
            return
    raise AssertionError(seen)


def loop_in_python():
    while True:
        pass


def interrupted(launch, seconds=0.3):
    """How much later than Ctrl-C the launch ended, which is sent after so many seconds."""
    timer, ended = interrupt_after(seconds), False
    due = time.monotonic() + seconds
    try:
        timer.start()
        launch()
        ended = True
        loop_in_python()  # so that nobody else is interrupted
    except KeyboardInterrupt:
        late = time.monotonic() - due
    timer.join()
    assert not ended, "it ended"
    return late


def interrupt_after(seconds=0.3):
    """A thread that, so long after its start, sends SIGINT to this process, as Ctrl-C does."""
    timer = threading.Timer(seconds, os.kill, [os.getpid(), signal.SIGINT])
    timer.daemon = True
    return timer


ADD = jit("""
    def add(x, y, out, n, SIZE: tl.constexpr):
        i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
        tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)
""")


def check_health():
    """Launches are right: over the pool, and twice, so that all threads are back."""
    x = np.arange(1 << 18, dtype=np.float32)
    for _ in range(2):
        out = np.zeros_like(x)
        ADD[(256,)](x, x, out, x.size, SIZE=1024)
        np.testing.assert_array_equal(out, 2 * x)
