"""Work on all cores: for what releases the interpreter, as the compiler does."""

import atexit
import os


class Ahead:
    """Calls of a function on all cores, while who asks for them does something else.

    The items' results are taken in the order in which they are there. Who leaves the block before all are taken gives
    up what was not begun, and the rest comes to its end alone.
    """

    def __init__(self, work):
        from queue import SimpleQueue

        self._work, self._threads = work, []
        self._items, self._results = SimpleQueue(), SimpleQueue()
        self.count = 0  # items whose results are not taken

    def put(self, item):
        from threading import Thread

        self.count += 1
        self._items.put((item,))
        if len(self._threads) < core_count():
            # Daemons: after Ctrl-C nobody waits for what they are at, nor does the end of the process.
            self._threads.append(Thread(target=self._run, daemon=True))
            self._threads[-1].start()

    def has_result(self):
        return not self._results.empty()

    def take(self, seconds=None):
        """The next result, which is waited for, so long at most (then it is `queue.Empty`); what the function raised is
        raised."""
        result, error = self._results.get(timeout=seconds)
        self.count -= 1
        if error is not None:
            raise error
        return result

    def _run(self):
        for (item,) in iter(self._items.get, None):
            try:
                self._results.put((self._work(item), None))
            except BaseException as error:
                self._results.put((None, error))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        from queue import Empty

        try:
            while True:
                self._items.get_nowait()
        except Empty:
            pass
        for _ in self._threads:
            self._items.put(None)
        if not self.count:
            _join(self._threads)
        elif kind is None or not issubclass(kind, KeyboardInterrupt):
            _left[:] = [thread for thread in (*_left, *self._threads) if thread.is_alive()]


_left = []  # threads that may be at something that nobody waits for


def finish():
    """Wait for threads that were left: before the process ends or forks, for they may hold locks of the compiler."""
    _join(_left)


def _join(threads):
    while threads:
        threads.pop().join()


atexit.register(finish)
os.register_at_fork(before=finish)


def for_each(work, items):
    """Call `work` with each item, in as many threads as there are cores; the first exception ends it and is raised."""
    with Ahead(work) as ahead:
        for item in items:
            ahead.put(item)
        while ahead.count:
            ahead.take()


def core_count():
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
