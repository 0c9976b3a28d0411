"""Where the time of a program's kernels goes: ``session = start("name")``, launches, ``finalize()``.

``finalize`` writes a Chrome trace (``name.json``; chrome://tracing and Perfetto show it) and a tree (``name.hatchet``;
`viewer` prints it), and prints a table of kernels. `scope` names a part of the program; kernels count for the scopes
that they are launched in. What ``@triton.jit(launch_metadata=...)`` gives of ``flops`` (``flops16``, ...) and ``bytes``
becomes rates. On a GPU times are those between events on the launch's stream; kernels of other libraries are not seen.
"""

import json
import time
from contextlib import ContextDecorator, contextmanager
from itertools import count
from threading import get_ident
from types import SimpleNamespace

from .. import _C, knobs
from .tree import tree

DEFAULT_PROFILE_NAME = "proton"


class _Session:
    def __init__(self, name):
        self.name, self.active, self.launches, self.scopes = name, True, [], []


class _Launch:
    """One run of a kernel: `data` of its launch metadata, the scopes around it, and when it ran, in seconds."""

    def __init__(self, data, scopes):
        self.data, self.scopes, self.thread = data, scopes, get_ident()
        self.path = (*scopes, *_states[-1:])  # in the tree
        self.device = self.first = self.last = None
        self.seconds = None
        if data["function"].info["target"].startswith("cuda"):
            self.device = _C.cuda_current_device()
            self.first, self.last = _C.cuda_new_event(self.device), _C.cuda_new_event(self.device)
        self.start = time.perf_counter()
        if self.first:
            _C.cuda_record(self.first, data["stream"])

    def end(self):
        if self.first:
            _C.cuda_record(self.last, self.data["stream"])
        else:
            self.seconds = time.perf_counter() - self.start

    def duration(self):
        if self.seconds is None:
            self.seconds = _C.cuda_milliseconds(self.first, self.last) / 1e3
        return self.seconds


_sessions, _numbers, _scopes, _states, _open = {}, count(), [], [], []


def _enter(metadata):
    if any(session.active for session in _sessions.values()):
        _open.append(_Launch(dict(metadata.get()), tuple(_scopes)))


def _exit(metadata):
    if _open:
        launch = _open.pop()
        launch.end()
        for session in _sessions.values():
            if session.active:
                session.launches.append(launch)


def start(name=None, *, context="shadow", data="tree", backend=None, mode=None, hook=None):
    """Begin to measure; the number of the session (None with ``knobs.proton.disable``). `name` is that of the files
    without ``.json`` and ``.hatchet``.

    :param context: "shadow": kernels by the scopes they are launched in; there is no other.
    :param data: "tree" or "trace": the same, for `finalize` writes a trace and prints a table.
    :param backend: None; times are taken by the launches themselves.
    :param hook: None or "triton": launches' metadata is always read.
    """
    if context != "shadow" or data not in ("tree", "trace") or backend not in (None, "instrumentation", "cupti"):
        raise ValueError(
            f'profiler.start(context={context!r}, data={data!r}, backend={backend!r}): only "shadow" scopes'
        )
    if backend == "instrumentation":
        raise NotImplementedError("profiler.start(backend='instrumentation'): kernels are not instrumented")
    if knobs.proton.disable:
        return None
    number = next(_numbers)
    _sessions[number] = _Session(name or DEFAULT_PROFILE_NAME)
    knobs.runtime.launch_enter_hook.add(_enter)
    knobs.runtime.launch_exit_hook.add(_exit)
    return number


def _chosen(session):
    if session is not None and session not in _sessions:
        raise ValueError(f"Session has not been initialized: {session}")
    return _sessions.values() if session is None else [_sessions[session]]


def activate(session=None):
    """Go on measuring in a session, or in all."""
    for each in _chosen(session):
        each.active = True


def deactivate(session=None):
    """Measure nothing in a session, or in all, until it is activated again."""
    for each in _chosen(session):
        each.active = False


_FORMATS = {"chrome_trace": "json", "hatchet": "hatchet"}


def finalize(session=None, output_format=""):
    """End a session, or all: write its trace and its tree, print its table, and forget it. The paths of the files.

    :param output_format: "chrome_trace" or "hatchet", for one of them alone.
    """
    if output_format and output_format not in _FORMATS:
        raise ValueError(f"output_format is {output_format!r}, and can be {', '.join(map(repr, _FORMATS))}")
    _chosen(session)
    numbers, paths = [*_sessions] if session is None else [session], []
    for number in numbers:
        ended = _sessions.pop(number)
        for kind in [output_format] if output_format else _FORMATS:
            path = f"{ended.name}.{_FORMATS[kind]}"
            with open(path, "w") as file:
                json.dump(tree(ended) if kind == "hatchet" else trace(ended), file)
            paths.append(path)
        print(table(ended))
    if not _sessions:
        knobs.runtime.launch_enter_hook.remove(_enter)
        knobs.runtime.launch_exit_hook.remove(_exit)
    return paths


def trace(session):
    """The events of Chrome's trace format: complete ones of kernels and of scopes, in microseconds."""
    events = [_event(each.data["name"], each, each.duration(), "kernel") for each in session.launches]
    events += [_event(each.name, each, each.seconds, "scope") for each in session.scopes]
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _event(name, each, seconds, kind):
    numbers = {key: value for key, value in each.data.items() if isinstance(value, int | float | str)}
    return {
        "name": name, "cat": kind, "ph": "X", "ts": each.start * 1e6, "dur": seconds * 1e6, "pid": 0,
        "tid": each.thread, "args": {**numbers, "scopes": "/".join(each.scopes)},
    }  # fmt: skip


def table(session):
    """The kernels of a session as text, by scope, those that took longest first."""
    rows = {}
    for each in session.launches:
        key = "/".join((*each.scopes, each.data["name"]))
        row = rows.setdefault(key, [0, 0.0, 0, 0])
        row[0] += 1
        row[1] += each.duration()
        row[2] += sum(value or 0 for name, value in each.data.items() if name.startswith("flops"))
        row[3] += each.data.get("bytes", 0) or 0
    width = max([len("kernel"), *map(len, rows)])
    lines = [f"{'kernel':{width}}  {'runs':>6}  {'ms':>10}  {'share':>6}  {'TFLOP/s':>8}  {'GB/s':>8}"]
    total = sum(row[1] for row in rows.values()) or 1
    for key, (runs, seconds, flops, moved) in sorted(rows.items(), key=lambda row: -row[1][1]):
        rates = [
            f"{amount / seconds / unit:8.2f}" if amount else " " * 8 for amount, unit in ((flops, 1e12), (moved, 1e9))
        ]
        lines.append(
            f"{key:{width}}  {runs:6}  {seconds * 1e3:10.3f}  {seconds / total:6.1%}  {'  '.join(rates)}".rstrip()
        )
    return "\n".join(lines)


class scope(ContextDecorator):
    """A part of the program: ``with scope("forward"):``, or the decorator of a function. `metrics` go to its event."""

    def __init__(self, name, metrics=None):
        self.name, self.data = name, dict(metrics or {})

    def _recreate_cm(self):
        return scope(self.name, self.data)

    def __enter__(self):
        self.start, self.thread, self.scopes = time.perf_counter(), get_ident(), tuple(_scopes)
        self.path = (*self.scopes, self.name, *_states[-1:])
        _scopes.append(self.name)
        return self

    def __exit__(self, *exception):
        self.seconds = time.perf_counter() - self.start
        _scopes.pop()
        for session in _sessions.values():
            if session.active:
                session.scopes.append(self)


_entered = []


def enter_scope(name, *, metrics=None):
    """Begin a scope that `exit_scope` ends."""
    _entered.append(scope(name, metrics).__enter__())


def exit_scope(name=None, *, metrics=None):
    """End the scope that was entered last; `metrics` are added to it."""
    if not _entered or (name is not None and _entered[-1].name != name):
        raise ValueError(f"the scope {name!r} is not the one that was entered last")
    _entered[-1].data.update(metrics or {})
    _entered.pop().__exit__(None, None, None)


class cpu_timed_scope(scope):
    """One that keeps how long it took, as the metric ``cpu_time (ns)``."""

    def _recreate_cm(self):
        return cpu_timed_scope(self.name, self.data)

    def __exit__(self, *exception):
        self.data["cpu_time (ns)"] = round((time.perf_counter() - self.start) * 1e9)
        super().__exit__(*exception)


def enter_state(name):
    """Until `exit_state` what is measured stands in the tree below `name`, in the scope that it belongs to."""
    _states.append(name)


def exit_state():
    if not _states:
        raise ValueError("no state was entered")
    _states.pop()


@contextmanager
def state(name):
    """``with state(name):`` from `enter_state` to `exit_state`."""
    enter_state(name)
    try:
        yield
    finally:
        exit_state()


COMPUTE_METADATA_SCOPE_NAME = "__proton_launch_metadata"


def metadata_state():
    """The `state` of kernels that only compute what a program says of its launches."""
    return state(COMPUTE_METADATA_SCOPE_NAME)


context = SimpleNamespace(depth=lambda session=0: len(_scopes))  # how many scopes there are around


def profile(fn=None, *, name=None, **options):
    """Decorator: a function whose calls are a session each."""

    def decorate(fn):
        from functools import wraps

        @wraps(fn)
        def measured(*args, **kwargs):
            session = start(name, **options)
            try:
                return fn(*args, **kwargs)
            finally:
                if session in _sessions:
                    finalize(session)

        return measured

    return decorate if fn is None else decorate(fn)


def __getattr__(name):
    if name == "viewer":
        from importlib import import_module

        return import_module(f"{__name__}.viewer")
    if name in ("language", "hooks", "mode", "specs", "metric", "data"):
        raise AttributeError(f"triton.profiler has no {name!r}: launches are timed, and kernels are not instrumented")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
