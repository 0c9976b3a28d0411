"""What can go wrong: every exception that triton raises beside Python's own."""

import os


class TritonError(Exception):
    """Base of all errors of this package."""


class CompilationError(TritonError):
    """A kernel that does not compile, with the place in the user's program.

    ``message`` says what is wrong, ``file``, ``line`` and ``column`` (both from 1) where, and ``remedy`` what
    to do, or None. ``notes`` are (file, line, column, message) of other places that matter, ``call_chain``
    the (file, line, column, function) of the calls that lead to the place, innermost first. ``str()`` shows
    all of it with excerpts of the source.
    """

    def __init__(self, message, *, location=None, remedy=None, notes=(), kind="error"):
        self.message = message
        self.remedy = remedy
        self.kind = kind
        self.file, self.line, self.column = _place(location)
        self.notes = [(*_place(place), text) for place, text in notes]
        self.call_chain = [(*_place(call), call["function"]) for call in _callers(location)]
        self._location, self._note_locations = location, notes
        super().__init__(message)

    @property
    def error_message(self):
        """What is wrong, without the place."""
        return self.message

    @property
    def __cause__(self):
        """The exception behind this one, where a function of the program raised it; else the error itself, for programs
        that look for the reason in the cause. (A traceback shows no exception twice.)"""
        return super().__cause__ or self

    @__cause__.setter
    def __cause__(self, cause):
        BaseException.__cause__.__set__(self, cause)

    def _render_traceback_(self):
        """Lines that IPython shows, which by itself follows a cause that is the error itself and shows it again."""
        from traceback import StackSummary, TracebackException

        shown = TracebackException.from_exception(self)
        notebook = f"{os.sep}IPython{os.sep}"
        shown.stack = StackSummary.from_list([frame for frame in shown.stack if notebook not in frame.filename])
        return "".join(shown.format()).splitlines()

    def __str__(self):
        return "\n".join(_report(self))

    def __reduce__(self):
        return _rebuild, (
            type(self),
            self.message,
            self._location,
            self.remedy,
            self._note_locations,
            self.kind,
        )


class CompileTimeAssertionFailure(CompilationError):
    """A `tl.static_assert` that does not hold.

    One in the kernel itself has no cause; that of one in a function which the kernel calls, of the language as well, is
    the error itself.
    """

    __cause__ = property(lambda self: _cause_in_a_call(self), BaseException.__cause__.__set__)


class UnsupportedError(CompilationError):
    """The program may be right, but this compiler or its target cannot do it. It has a cause where an assertion has."""

    __cause__ = property(lambda self: _cause_in_a_call(self), BaseException.__cause__.__set__)


def _cause_in_a_call(error):
    is_in_a_call = error.call_chain or error.message.startswith("tl.")
    return BaseException.__cause__.__get__(error) or (error if is_in_a_call else None)


class InternalError(TritonError):
    """A mistake in the compiler itself. ``dump`` names the file with the intermediate code, or is None."""

    def __init__(self, message, dump=None):
        self.message, self.dump = message, dump
        where = f"; the intermediate representation is in {dump}" if dump else ""
        super().__init__(f"bug in the compiler: {message}{where}")

    def __reduce__(self):
        return type(self), (self.message, self.dump)


class TargetError(TritonError):
    """The target that was asked for is not there."""


class OutOfResources(CompilationError):
    """A kernel needs more of something than the device has for a program.

    ``name`` says of what ("shared memory", "registers", "threads"), ``required`` how much is needed, and ``limit`` how
    much there is.
    """

    def __init__(self, required, limit, name, *, message=None, location=None, remedy=None, notes=()):
        self.required, self.limit, self.name = required, limit, name
        self._detail = message
        what = f"out of resource: {name}, Required: {required}, Hardware limit: {limit}"
        super().__init__(
            f"{what}: {message}" if message else what,
            location=location,
            remedy=remedy or "Reducing block sizes or `num_stages` may help.",
            notes=notes,
        )

    def __reduce__(self):
        return out_of_resources, (
            self.required,
            self.limit,
            self.name,
            self._detail,
            self._location,
            self.remedy,
            self._note_locations,
        )


class OptionError(ValueError, AssertionError):
    """An option of a launch is out of its range. (The public API asserts the same.)"""


class PTXASError(TritonError):
    """NVIDIA's assembler refused the code of a kernel."""


class KernelError(TritonError, RuntimeError):
    """A kernel that failed while it ran."""


class CUDAError(KernelError):
    """The CUDA driver refused something, or reports that a kernel failed.

    ``kernel``, ``grid`` and ``options`` say what was launched; they are None when it was no launch. CUDA may report the
    failure of one kernel when the next is launched.
    """

    def __init__(self, message, remedy=None, kernel=None, grid=None, options=None):
        self.message, self.remedy = message, remedy
        self.kernel, self.grid, self.options = kernel, grid, options
        text = message
        if kernel is not None:
            given = ", ".join(f"{name}={value!r}" for name, value in options.items())
            text = f"kernel {kernel!r}, grid {grid}, {given}: {message}"
        super().__init__(f"{text}\nhelp: {remedy}" if remedy else text)

    def __reduce__(self):
        return type(self), (self.message, self.remedy, self.kernel, self.grid, self.options)


class DeviceAssertionError(KernelError):
    """A `tl.device_assert` that did not hold."""


class MemoryAccessError(KernelError):
    """A kernel touched memory outside of its arguments."""


class IntegerOverflowError(KernelError):
    """A sum, difference, product or quotient of signed integers did not fit in its type."""


class DivisionByZeroError(KernelError):
    """A quotient or remainder of integers had the divisor 0."""


class RaceError(KernelError):
    """Two threads of a program touched the same shared memory without order between them (found by the simulator)."""


class AutotunerError(TritonError):
    """None of the configurations of an autotuned kernel works."""


def compilation_error(kind, message, location, remedy, notes):
    """The exception for a diagnostic of the compiler."""
    if kind == "unsupported":
        return UnsupportedError(message, location=location, remedy=remedy, notes=notes, kind=kind)
    made = CompileTimeAssertionFailure if kind == "assertion" else CompilationError
    return made(message, location=location, remedy=remedy, notes=notes)


def out_of_resources(required, limit, name, message, location, remedy, notes):
    """The exception for a kernel that does not fit on a device."""
    return OutOfResources(required, limit, name, message=message, location=location, remedy=remedy, notes=notes)


def cuda_error(message, remedy, info=None, grid=None):
    """The exception for an error of the CUDA driver, in a launch of the compiled kernel that `info` describes."""
    if info is None:
        return CUDAError(message, remedy)
    options = {name: info[name] for name in ("num_warps", "num_stages")} | info["options"]
    return CUDAError(message, remedy, info["name"], grid, options)


def internal_error(message, code):
    """The exception for a mistake of the compiler; the intermediate code is left in a file."""
    import tempfile

    if code is None:
        return InternalError(message)
    try:
        with tempfile.NamedTemporaryFile("w", prefix="triton-bug-", suffix=".ttir", delete=False) as file:
            file.write(code)
        return InternalError(message, file.name)
    except OSError:
        return InternalError(message)


_FAILURES = {
    "other": KernelError,
    "assertion": DeviceAssertionError,
    "access": MemoryAccessError,
    "overflow": IntegerOverflowError,
    "division": DivisionByZeroError,
    "race": RaceError,
}


def launch_error(kernel, kind, message):
    """The exception for a kernel that stopped with a message."""
    what = " (device-side assert)" if kind in ("assertion", "overflow", "division") else ""
    return _FAILURES[kind](f"kernel {kernel!r}: {message}{what}")


def _rebuild(kind_of_error, message, location, remedy, notes, kind):
    return kind_of_error(message, location=location, remedy=remedy, notes=notes, kind=kind)


def _place(location):
    """File, line and column from 1 of a location: a dict with the fields of Python's ast, and `caller`."""
    if not location or not location["line"]:
        return None, None, None
    return location["file"], location["line"], _characters(location, location["column"]) + 1


def _callers(location):
    calls = []
    while location and location["caller"]:
        location = location["caller"]
        calls.append(location)
    return calls


def _source_line(location):
    import linecache

    return linecache.getline(location["file"] or "", location["line"]).rstrip("\r\n")


def _characters(location, column):
    """`column` counts bytes of UTF-8, as in Python's ast; people count characters."""
    line = _source_line(location).encode()
    return len(line[:column].decode(errors="ignore")) if len(line) >= column >= 0 else max(column, 0)


def _header(location):
    file, line, column = _place(location)
    return f"{file}:{line}:{column}: " if file else ""


def _place_in_function(location):
    """The function that a location is in, and where: the line from its ``def`` on, which is 1; the column from 0."""
    import linecache
    import re

    if not location or not location["line"] or not location["function"]:
        return
    definition = re.compile(rf"(\s*)(async\s+)?def\s+{re.escape(location['function'])}\b")
    for number in range(location["line"], 0, -1):
        found = definition.match(linecache.getline(location["file"] or "", number))
        if found:
            line = location["line"] - number + 1
            column = _characters(location, location["column"]) - len(found[1])
            yield f"  in {location['function']} at {line}:{column}:"
            return


def _excerpt(location):
    """The line with carets under the range, indented by two; nothing where the source cannot be read."""
    if not location or not location["line"]:
        return
    line = _source_line(location)
    if not line.strip():
        return
    start = _characters(location, location["column"])
    end = len(line)
    if location["end_line"] == location["line"] and location["end_column"] > location["column"]:
        end = _characters(location, location["end_column"])
    elif location["end_line"] <= location["line"]:
        end = start + 1
    number = str(location["line"])
    # Tabs stay tabs, so that the carets stand under the text wherever the tab stops are.
    lead = "".join(c if c == "\t" else " " for c in line[:start])
    yield f"  {number} | {line}"
    yield f"  {' ' * len(number)} | {lead}{'^' * max(1, end - start)}"


def _report(error):
    yield f"{_header(error._location)}{error.kind}: {error.message}"
    yield from _place_in_function(error._location)
    yield from _excerpt(error._location)
    inner = error._location
    for call in _callers(error._location):
        yield f"{_header(call)}note: in call to {inner['function']!r} here"
        yield from _place_in_function(call)
        yield from _excerpt(call)
        inner = call
    for location, text in error._note_locations:
        yield f"{_header(location)}note: {text}"
        yield from _excerpt(location)
    if error.remedy:
        yield f"help: {error.remedy}"
