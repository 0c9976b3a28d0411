"""Configurations of a kernel that are compiled on all cores, and what each is ready for."""

import time
from collections import deque, namedtuple
from contextlib import suppress
from queue import Empty

from ..errors import CompilationError, InternalError, PTXASError
from .driver import driver
from .parallel import Ahead

# What a configuration may fail with that is no fault of the launch's: it is left out.
FAILURES = CompilationError, InternalError, PTXASError

Made = namedtuple("Made", "number launch failure")
Made.__doc__ = """A configuration by its number: what distinguishes its launches from those of others (None: that is not
known), and why it does not compile, or None."""


class Making:
    """Configurations of a contest, to be compiled for a launch of a tuner's kernel with these arguments.

    Each is to be had as soon as it is ready where what is timed does not want the host's cores (`is_beside`); elsewhere
    once all that were started are ready, in the order of their numbers. The compiler does not hold the interpreter, and
    the driver's works beside launches.
    """

    def __init__(self, tuner, contest, args, kwargs, is_beside):
        self.tuner, self.contest, self.args, self.kwargs = tuner, contest, args, kwargs
        self.is_beside = is_beside
        self.count = 0  # of those that were started, and not taken yet
        self._ready, self._ahead = deque(), Ahead(self._make)
        self._begun, self._ended = [], []  # when, of what the threads make

    def __enter__(self):
        if self.tuner.is_compiled:
            self.tuner.kernel._share_walks(True)
        return self

    def __exit__(self, *error):
        self._ahead.__exit__(*error)
        if self.tuner.is_compiled:
            self.tuner.kernel._share_walks(False)

    def start(self, numbers):
        self.count += len(numbers)
        if not self.tuner.is_compiled:
            self._ready.extend((Made(number, None, None), []) for number in numbers)
            return
        configs = [self.contest.configs[number] for number in numbers]
        groups = {}
        for job in zip(numbers, configs, self.tuner._hooked(configs, self.args, self.kwargs), strict=True):
            groups.setdefault(repr(sorted(job[1].kwargs.items(), key=str)), []).append(job)
        on_cpu = driver.active.get_current_target().backend == "cpu"  # and what the first of a group ignores, all do
        for name, jobs in groups.items():
            for part in [jobs] if on_cpu else [[job] for job in jobs]:
                self._ahead.put((name, part))

    def is_busy(self):
        """Whether anything is compiled while this is asked."""
        return self._ahead.count > 0

    def has_ready(self):
        """Whether nothing is waited for when the next one is taken; otherwise all that were started are."""
        return bool(self._ready) or (self._ahead.has_result() if self.is_beside else self.count > 0)

    def seconds_each(self):
        """Of a core, for each that is made; what the others have taken so far counts, too."""
        ended, begun = list(self._ended), list(self._begun)  # in this order: what ended began before
        return (sum(ended) + (len(begun) - len(ended)) * time.perf_counter() - sum(begun)) / max(1, len(ended))

    def wait(self, seconds):
        """Until one is ready that is to be had then, so long at most."""
        with suppress(Empty):
            self._ready.extend(self._ahead.take(seconds))

    def take(self):
        """The next configuration, which is loaded where that is to be done yet."""
        start = time.perf_counter()
        while self._ahead.count and not (self.is_beside and self._ready):
            self._ready.extend(self._ahead.take())
            if not self._ahead.count and not self.is_beside:
                self._ready = deque(sorted(self._ready, key=lambda item: item[0].number))
        self.contest.compiling += time.perf_counter() - start
        self.count -= 1
        made, several = self._ready.popleft()
        try:
            for each in several:
                each._init_handles()
        except FAILURES as error:
            return Made(made.number, None, error)
        return made

    # ---- in the threads

    def _make(self, item):
        self._begun.append(time.perf_counter())
        try:
            return self._make_part(*item)
        finally:
            self._ended.append(time.perf_counter())

    def _make_part(self, name, jobs):
        made, first = [self._make_one(name, *jobs[0])], jobs[0][1]
        compiled = made[0][1][0] if made[0][1] else None
        for number, config, given in jobs[1:]:
            if compiled is not None and compiled._ignores(config, first):
                made.append((Made(number, made[0][0].launch, None), []))
            else:
                made.append(self._make_one(name, number, config, given))
        return made

    def _make_one(self, name, number, config, given):
        """What it is, and the compiled kernels that are loaded when it is taken."""
        args, kwargs = given
        try:
            compiled = self.tuner.fn.warmup(*args, **kwargs, **self.tuner._checked(config, kwargs))
            several = compiled if isinstance(compiled, list) else [compiled]  # a tuner in a tuner has several
            for each in several:
                if not each._prepare():
                    each._init_handles()
            launch = None if several is compiled else (name, compiled._code_key())
            return Made(number, launch, None), several
        except FAILURES as error:
            return Made(number, None, error), []
