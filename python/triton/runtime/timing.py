"""How long calls take: on the host's clock, between events of a GPU's stream, or in a CUDA graph.

A clock times one function. ``sample(count)`` is the list of the milliseconds of so many calls, ``estimate()`` what a
call takes with all that is done around it, ``repeat(count)`` calls without timing. Before each call ``prepare`` runs,
after it ``finish``; neither is part of the time, except in a graph, which has no gaps.
"""

import time

from .background import settle


def _nothing():
    pass


def quantile(ordered, fraction):
    """Of sorted times: linear interpolation between the two nearest."""
    place = fraction * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def median(times):
    return quantile(sorted(times), 0.5)


class HostClock:
    """The time that passes during a call, which has ended when it returns."""

    def __init__(self, fn, prepare=_nothing, finish=_nothing):
        self.fn, self.prepare, self.finish = fn, prepare, finish

    def _call(self):
        self.prepare()
        start = time.perf_counter()
        self.fn()
        end = time.perf_counter()
        self.finish()
        return (end - start) * 1e3

    def repeat(self, count):
        for _ in range(count):
            self._call()

    def sample(self, count):
        return [self._call() for _ in range(count)]

    def estimate(self):
        return max(median(self.sample(5)), 1e-6)


class _Stopwatch:
    """The milliseconds between two points of the current stream."""

    def __init__(self, interface):
        self.start, self.end = (interface.Event(enable_timing=True) for _ in range(2))

    def milliseconds(self):
        return self.start.elapsed_time(self.end)


def _time_of(interface, work):
    """Milliseconds that work takes which is waited for."""
    interface.synchronize()
    watch = _Stopwatch(interface)
    watch.start.record()
    work()
    watch.end.record()
    interface.synchronize()
    return max(watch.milliseconds(), 1e-6)


class EventClock:
    """The time between two events on the current stream; the second-level cache is overwritten before each call."""

    def __init__(self, fn, prepare=_nothing, finish=_nothing):
        from .driver import driver

        self.fn, self.prepare, self.finish = fn, prepare, finish
        self.device = driver.active
        self.interface, self.cache = self.device.get_device_interface(), self.device.get_empty_cache_for_benchmark()

    def _call(self, watch=None):
        self.prepare()
        self.device.clear_cache(self.cache)
        if watch:
            watch.start.record()
        self.fn()
        if watch:
            watch.end.record()
        self.finish()

    def repeat(self, count):
        for _ in range(count):
            self._call()

    def sample(self, count):
        watches = [_Stopwatch(self.interface) for _ in range(count)]
        for watch in watches:
            self._call(watch)
        self.interface.synchronize()
        return [watch.milliseconds() for watch in watches]

    def estimate(self):
        return _time_of(self.interface, lambda: self.repeat(5)) / 5


class BesideClock(EventClock):
    """Beside other work of the host's. A call that came to the stream late, so that the device may have waited for it
    between the events, is left out if others did not."""

    HIDDEN = 0.06  # milliseconds from before the first event to behind the second: the cache is overwritten meanwhile

    def sample(self, count):
        watches, in_time = [_Stopwatch(self.interface) for _ in range(count)], []
        for watch in watches:
            self.prepare()
            self.device.clear_cache(self.cache)
            start = time.perf_counter()
            watch.start.record()
            self.fn()
            watch.end.record()
            in_time.append((time.perf_counter() - start) * 1e3 < self.HIDDEN)
            self.finish()
        self.interface.synchronize()
        kept = [watch for watch, is_kept in zip(watches, in_time, strict=True) if is_kept]
        return [watch.milliseconds() for watch in kept or watches]


class GraphClock:
    """A call's share of a CUDA graph of as many calls as take `length` milliseconds; caches stay warm. To be used on a
    stream that can be captured (`cuda.side_stream`)."""

    def __init__(self, fn, prepare=_nothing, finish=_nothing, length=20):
        from .driver import driver

        self.fn, self.prepare, self.finish = fn, prepare, finish
        self.interface, self.length, self.replay = driver.active.get_device_interface(), length, None

    def repeat(self, count):
        for _ in range(count):
            self.prepare()
            self.fn()
            self.finish()

    def estimate(self):
        return _time_of(self.interface, lambda: self.repeat(5)) / 5

    def _capture(self):
        from .cuda import capture

        self.count = max(1, int(self.length / self.estimate()))
        self.replay = capture(lambda: self.repeat(self.count))

    def sample(self, count):
        if self.replay is None:
            self._capture()
        return [_time_of(self.interface, self.replay) / self.count for _ in range(count)]


# ---- how often to call


def measure(clock, warmup, rep, n_warmup=None, n_repeat=None):
    """Times of calls that go on for `rep` milliseconds, after `warmup` milliseconds of others; or of so many calls."""
    clock.prepare()
    settle(clock.fn)  # compiles
    clock.finish()
    estimate = clock.estimate() if n_warmup is None or n_repeat is None else 1
    clock.repeat(max(1, int(warmup / estimate)) if n_warmup is None else n_warmup)
    return clock.sample(max(1, int(rep / estimate)) if n_repeat is None else max(1, n_repeat))


def measure_in_graph(clock):
    settle(lambda: clock.repeat(1))  # compiles
    return clock.sample(10)


# After so many calls one whose fastest time is above the best median by this factor is given up. The fastest time is
# what noise changes least, and it can only make a configuration look slower than it is; so one run says nothing.
_COLD = (2, 4.0), (5, 1.5)  # part of the warm-up
_HOPELESS = (12, 1.15), (30, 1.05)


def race(clock, warmup, rep, best):
    """Times of calls that go on for `rep` milliseconds, or until they are clearly slower than `best`.

    The function has been called before. Returns the times, and whether it was given up.
    """
    times, spent = [], 0.0
    for count, factor in _COLD:
        start = time.perf_counter()
        times += clock.sample(count - len(times))
        spent += (time.perf_counter() - start) * 1e3
        if min(times) > best * factor:
            return times, True
        if spent >= warmup + rep:  # they are long: none is for warming up alone
            break
    each = max(spent / len(times), 1e-6)
    if spent < warmup + rep:
        clock.repeat(int((warmup - spent) / each))
        times = []
    wanted = max(3, int(rep / each))
    for count, factor in _HOPELESS:
        times += clock.sample(min(count, wanted) - len(times))
        if min(times) > best * factor:
            return times, True
        if len(times) >= wanted:
            return times, False
    return times + clock.sample(wanted - len(times)), False
