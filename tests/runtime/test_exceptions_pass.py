"""Looking at objects forgives what they raise, but neither an interruption nor a lack of memory."""

import numpy as np
import pytest

import triton
import triton.language as tl


class Stop(BaseException):
    pass


EXCEPTIONS = [KeyboardInterrupt, MemoryError, SystemExit, Stop]
FORGIVEN = [RuntimeError, AttributeError]


class Source:
    """What raises an exception when it is asked to, once."""

    def __init__(self, exception):
        self.exception, self.when = exception, None

    def at(self, place):
        if self.when == place:
            raise self.exception("raised here")


class Array:
    """An array like torch's, but slower: every attribute may raise."""

    def __init__(self, source, dtype="float32"):
        self.source, self.values = source, np.zeros(16, np.float32)
        self.names = {"dtype": dtype, "device": "cpu", "shape": (16,)}

    def __getattr__(self, name):
        if name not in ("dtype", "device", "shape"):
            raise AttributeError(name)
        self.source.at(name)
        return self.names[name]

    def data_ptr(self):
        self.source.at("data_ptr")
        return self.values.ctypes.data

    def stride(self):
        self.source.at("stride")
        return (1,)


@triton.jit
def store(x):
    tl.store(x, 1.0)


@pytest.mark.parametrize("exception", EXCEPTIONS)
@pytest.mark.parametrize("place", ["dtype", "device", "shape", "stride", "data_ptr"])
def test_attributes_of_arrays(exception, place):
    source = Source(exception)
    array = Array(source)
    store[(1,)](array, debug=True)
    source.when = place
    with pytest.raises(exception, match="raised here"):
        store[(1,)](array, debug=True)
    source.when = None
    store[(1,)](array, debug=True)
    assert array.values[0] == 1


@pytest.mark.parametrize("place", ["device", "shape", "stride"])
@pytest.mark.parametrize("exception", FORGIVEN)
def test_arrays_need_not_have_all_attributes(place, exception):
    source = Source(exception)
    source.when = place
    store[(1,)](Array(source), debug=True)


@pytest.mark.parametrize("exception", EXCEPTIONS)
@pytest.mark.parametrize("place", ["__triton_kind__", "data_ptr", "__array_interface__", "__dlpack__", "__module__"])
def test_attributes_of_types(exception, place):
    class Meta(type):
        def __getattribute__(cls, name):
            if name == place:
                raise exception("raised here")
            return super().__getattribute__(name)

    class Odd(metaclass=Meta):
        pass

    with pytest.raises(exception, match="raised here"):
        store[(1,)](Odd())


class Text:
    def __init__(self, exception):
        self.exception = exception

    def __str__(self):
        raise self.exception("raised here")

    __repr__ = __str__


@pytest.mark.parametrize("exception", EXCEPTIONS)
def test_names_of_dtypes(exception):
    array = Array(Source(exception), Text(exception))
    with pytest.raises(exception, match="raised here"):
        store[(1,)](array)


class Loud(str):
    """A compile-time text that raises when it is shown."""

    def __new__(cls, source):
        text = super().__new__(cls, "loud")
        text.source = source
        return text

    def __repr__(self):
        raise self.source.exception("raised here")


class Constant:
    """A compile-time object that raises when it is compared."""

    def __init__(self, source):
        self.source = source

    def __eq__(self, other):
        self.source.at("equal")
        return isinstance(other, Constant)

    def __hash__(self):
        return 1


SETTING = tl.constexpr(1)


@triton.jit
def uses_a_global(x):
    tl.static_assert(SETTING is not None)
    tl.store(x, 1.0)


@pytest.mark.parametrize("exception", EXCEPTIONS)
def test_comparing_what_names_were_bound_to(exception, monkeypatch):
    source, x = Source(exception), np.zeros(1, np.float32)
    monkeypatch.setitem(globals(), "SETTING", tl.constexpr(Constant(source)))
    uses_a_global[(1,)](x)
    monkeypatch.setitem(globals(), "SETTING", tl.constexpr(Constant(source)))
    source.when = "equal"
    with pytest.raises(exception, match="raised here"):
        uses_a_global[(1,)](x)
    source.when = None
    uses_a_global[(1,)](x)


@triton.jit
def joins(x, n, a: tl.constexpr, b: tl.constexpr):
    c = a if n > 0 else b
    tl.static_assert(c is not None)
    tl.store(x, 1.0)


@triton.jit
def shows(x, a: tl.constexpr):
    tl.store(x, tl.load(a))


@triton.jit
def looks(x, a: tl.constexpr):
    tl.store(x, a.something)


@triton.jit
def indexes(x, a: tl.constexpr):
    tl.store(x, tl.zeros((a,), tl.float32))


@pytest.mark.parametrize("exception", EXCEPTIONS)
def test_the_frontend(exception):
    source, x = Source(exception), np.zeros(1, np.float32)
    source.when = "equal"
    with pytest.raises(exception, match="raised here"):
        joins[(1,)](x, 3, Constant(source), Constant(source))
    with pytest.raises(exception, match="raised here"):
        shows[(1,)](x, Loud(source))

    class Lists:
        def __dir__(self):
            raise exception("raised here")

    with pytest.raises(exception, match="raised here"):
        looks[(1,)](x, Lists())

    class Number:
        def __init__(self):
            self.count = 0

        def __index__(self):
            raise exception("raised here")

    with pytest.raises(exception, match="raised here"):
        indexes[(1,)](x, Number())


class Calls:
    """A hook of launches."""

    def __init__(self, exception):
        self.exception = exception

    @property
    def calls(self):
        raise self.exception("raised here")

    def __call__(self, metadata):
        pass


@pytest.mark.parametrize("exception", EXCEPTIONS)
def test_hooks_of_compiled_kernels(exception):
    x = np.zeros(1, np.float32)
    code = triton.compile(triton.compiler.ASTSource(store, {"x": "*fp32"}), target="cpu")
    with pytest.raises(exception, match="raised here"):
        code.run(1, 1, 1, 0, code.function, code.packed_metadata, None, Calls(exception), None, x)
    assert x[0] == 0
    code.run(1, 1, 1, 0, code.function, code.packed_metadata, None, Calls(RuntimeError), None, x)
    assert x[0] == 1
