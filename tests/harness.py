"""What the language tests and the fuzzers stand on: kernels made from text, arrays of every dtype, one-line checks.

    check("tl.sum(x, axis=0)", {"x": x}, x.sum(0))

writes a kernel that loads `x` whole, evaluates the code, proves shape and dtype of the result at compile time, stores
it, and compares. Arrays are passed as NumPy arrays where NumPy has the dtype and the target reads host memory, else
as torch tensors, so both kinds of argument are used throughout.
"""

import contextlib
import itertools
import linecache
import os
import textwrap
from dataclasses import dataclass
from unittest import mock

import numpy as np

import triton
import triton.language as tl

# ---- dtypes -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Dtype:
    name: str  # in triton.language
    kind: str  # bool, int, uint or float
    bits: int
    numpy: type | None  # of an argument, or None where NumPy has no such dtype
    values: type  # NumPy type that holds every value exactly
    torch: str | None  # torch's name, or None: the array is passed as bytes and bitcast in the kernel
    mantissa: int = 0  # explicit bits


DTYPES = {
    dtype.name: dtype
    for dtype in [
        Dtype("int1", "bool", 1, np.bool_, np.bool_, "bool"),
        Dtype("int8", "int", 8, np.int8, np.int8, "int8"),
        Dtype("int16", "int", 16, np.int16, np.int16, "int16"),
        Dtype("int32", "int", 32, np.int32, np.int32, "int32"),
        Dtype("int64", "int", 64, np.int64, np.int64, "int64"),
        Dtype("uint8", "uint", 8, np.uint8, np.uint8, "uint8"),
        Dtype("uint16", "uint", 16, np.uint16, np.uint16, "uint16"),
        Dtype("uint32", "uint", 32, np.uint32, np.uint32, "uint32"),
        Dtype("uint64", "uint", 64, np.uint64, np.uint64, "uint64"),
        Dtype("float8e4nv", "float", 8, None, np.float32, "float8_e4m3fn", 3),
        Dtype("float8e5", "float", 8, None, np.float32, "float8_e5m2", 2),
        Dtype("float8e4b15", "float", 8, None, np.float32, None, 3),
        Dtype("float8e4b8", "float", 8, None, np.float32, "float8_e4m3fnuz", 3),
        Dtype("float8e5b16", "float", 8, None, np.float32, "float8_e5m2fnuz", 2),
        Dtype("float16", "float", 16, np.float16, np.float16, "float16", 10),
        Dtype("bfloat16", "float", 16, None, np.float32, "bfloat16", 7),
        Dtype("float32", "float", 32, np.float32, np.float32, "float32", 23),
        Dtype("float64", "float", 64, np.float64, np.float64, "float64", 52),
    ]
}
INTS = [name for name, dtype in DTYPES.items() if dtype.kind in ("int", "uint")]
SIGNED = [name for name, dtype in DTYPES.items() if dtype.kind == "int"]
UNSIGNED = [name for name, dtype in DTYPES.items() if dtype.kind == "uint"]
FP8 = ["float8e4nv", "float8e5", "float8e4b15", "float8e4b8", "float8e5b16"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
NUMBERS = INTS + FLOATS
_OF_NUMPY = {np.dtype(dtype.numpy): name for name, dtype in DTYPES.items() if dtype.numpy}


# ---- narrow floats, from their definition ---------------------------------------------------------------------------

# name: exponent bits, mantissa bits, bias, has infinities (the top exponent is special), saturates, codes of NaN
NARROW = {
    "float8e4nv": (4, 3, 7, False, True, {0x7F}),
    "float8e5": (5, 2, 15, True, True, {0x7D, 0x7E, 0x7F}),
    "float8e4b15": (4, 3, 15, False, True, set()),
    "float8e4b8": (4, 3, 8, False, True, {0x80}),
    "float8e5b16": (5, 2, 16, False, True, {0x80}),
    "float16": (5, 10, 15, True, False, set(range(0x7C01, 0x8000))),
    "bfloat16": (8, 7, 127, True, False, set(range(0x7F81, 0x8000))),
}
_decoded = {}


def code_values(name):
    """The value of every code of a narrow float format, in float64; NaN where the code is one."""
    if name not in _decoded:
        exponent_bits, mantissa_bits, bias, infinities, _, nans = NARROW[name]
        sign = 1 << (exponent_bits + mantissa_bits)
        code = np.arange(sign)
        exponent, mantissa = code >> mantissa_bits, code & ((1 << mantissa_bits) - 1)
        fraction = mantissa / 2.0**mantissa_bits
        values = np.where(
            exponent == 0, np.ldexp(fraction, 1 - bias), np.ldexp(1 + fraction, np.maximum(exponent, 1) - bias)
        )
        if infinities:
            values[exponent == (1 << exponent_bits) - 1] = np.inf
        values = np.concatenate([values, -values])
        for nan in nans:
            values[[nan, nan | sign]] = np.nan
        _decoded[name] = values
    return _decoded[name]


def encode(values, name, toward_zero=False, exactly=False):
    """Codes of the values rounded to a narrow format: to the nearest, ties to the even code, or toward zero.

    exactly    the values are of the format already: where it has infinities, they stay
    """
    values = np.asarray(values, np.float64)
    *_, infinities, saturates, nans = NARROW[name]
    saturates = saturates and not (exactly and infinities)
    table = code_values(name)[: len(code_values(name)) // 2]
    last = int(np.flatnonzero(np.isfinite(table))[-1])
    above = 2 * table[last] - table[last - 1]  # what the next code would mean
    grid = np.append(table[: last + 1], above)
    magnitude = np.abs(values)
    lower = np.clip(np.searchsorted(grid, magnitude, side="right") - 1, 0, last)
    middle = (grid[lower] + grid[lower + 1]) / 2
    up = (magnitude > middle) | ((magnitude == middle) & (lower % 2 == 1))
    code = lower + (up & (not toward_zero))
    code = np.where(code > last, last if saturates else last + 1, code)
    if infinities and not saturates:
        code = np.where(np.isinf(magnitude), last + 1, code)
    elif saturates:
        code = np.where(np.isinf(magnitude), last, code)
    code = np.where(np.isnan(values), max(nans, default=last) if name != "float16" else 0x7E00, code)
    if name == "bfloat16":
        code = np.where(np.isnan(values), 0x7FC0, code)
    has_sign = np.signbit(values)
    if len(table) in nans:  # where -0 would be
        has_sign &= (code != 0) & ~np.isnan(values)
    return (code + np.where(has_sign, len(table), 0)).astype(np.uint8 if len(table) <= 128 else np.uint16)


def round_to(values, name, toward_zero=False):
    """The values as an Array of a dtype: floats rounded, integers wrapped."""
    dtype = DTYPES[name]
    if name in NARROW:
        return Array(code_values(name)[encode(values, name, toward_zero)].astype(dtype.values), name)
    return Array(np.asarray(values).astype(dtype.values), name)


# ---- arrays ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Array:
    """Values in a NumPy type that holds them exactly, and the dtype they have in a kernel."""

    values: np.ndarray
    dtype: str

    @property
    def shape(self):
        return self.values.shape


def array(values, dtype=None):
    """An Array of a NumPy array, a number or an Array; of the NumPy dtype's own dtype unless another is asked for."""
    if isinstance(values, Array):
        return values if dtype in (None, values.dtype) else round_to(values.values, dtype)
    values = np.asarray(values)
    return round_to(values, dtype) if dtype else Array(values, _OF_NUMPY[values.dtype])


def random(shape, dtype="float32", seed=0, low=None, high=None):
    """Floats from a normal distribution, or integers from `low` to below `high` (all there are, unless said)."""
    dtype = DTYPES[dtype]
    generator = np.random.default_rng([seed, *shape, dtype.bits])
    if dtype.kind == "float":
        values = generator.uniform(low, high, shape) if low is not None else generator.standard_normal(shape)
        return round_to(values, dtype.name)
    if dtype.kind == "bool":
        return Array(generator.integers(0, 2, shape).astype(bool), "int1")
    limits = np.iinfo(dtype.numpy)
    low = limits.min if low is None else max(low, limits.min)
    high = int(limits.max) if high is None else high - 1
    return Array(generator.integers(low, high, shape, dtype.numpy, endpoint=True), dtype.name)


GUARD = 64  # bytes on each side that a kernel must not touch
FILL = 0xA5


def uses_torch(dtype):
    return DTYPES[dtype].numpy is None or os.environ.get("TRITON_TARGET", "cpu").startswith("cuda")


class Buffer:
    """An Array in memory that a kernel can be given, between guards; `host()` reads it back. The guards are not of its
    storage, so that the simulator reports who reads them, too."""

    def __init__(self, source):
        source = array(source)
        self.dtype, self.shape = source.dtype, source.shape
        codes = encode(source.values, self.dtype, exactly=True) if self.dtype in NARROW else source.values
        content = np.frombuffer(np.ascontiguousarray(codes).tobytes(), np.uint8)
        self.size = content.size
        self.bytes = np.full(self.size + 2 * GUARD, FILL, np.uint8)
        self.bytes[GUARD : GUARD + self.size] = content
        dtype, inner = DTYPES[self.dtype], slice(GUARD, GUARD + self.size)
        alone = memoryview(self.bytes)[inner]
        if not uses_torch(self.dtype):
            self.argument = np.frombuffer(alone, dtype.numpy).reshape(self.shape)
            return
        import torch

        view_as = getattr(torch, dtype.torch or "uint8")
        if os.environ.get("TRITON_TARGET", "cpu").startswith("cuda"):
            self.bytes = torch.from_numpy(self.bytes).to("cuda")
            part = self.bytes[inner]
        else:
            part = torch.frombuffer(alone, dtype=torch.uint8) if self.size else torch.empty(0, dtype=torch.uint8)
        self.argument = part.view(view_as).reshape(self.shape)

    def host(self):
        raw = self.bytes if isinstance(self.bytes, np.ndarray) else self.bytes.cpu().numpy()
        assert (raw[:GUARD] == FILL).all(), "the kernel wrote in front of the array"
        assert (raw[GUARD + self.size :] == FILL).all(), "the kernel wrote behind the array"
        content = raw[GUARD : GUARD + self.size].copy()
        dtype = DTYPES[self.dtype]
        if self.dtype in NARROW:
            codes = content.view(np.uint8 if dtype.bits == 8 else np.uint16)
            return Array(code_values(self.dtype)[codes].astype(dtype.values).reshape(self.shape), self.dtype)
        return Array(content.view(dtype.numpy).reshape(self.shape), self.dtype)


# ---- the documented rules -------------------------------------------------------------------------------------------

KINDS = {"bool": 0, "int": 1, "uint": 1, "float": 2}


def promoted(a, b):
    """The dtype that two dtypes meet in, by the rules of the language's documentation.

    1. The higher kind wins: bool < integers < floats.
    2. Within a kind the wider dtype wins.
    3. float16 and bfloat16, or different fp8 dtypes, meet in float16.
    4. Signed and unsigned of one width meet in the unsigned one.
    """
    if a == b:
        return a
    left, right = DTYPES[a], DTYPES[b]
    if KINDS[left.kind] != KINDS[right.kind]:
        return max(left, right, key=lambda dtype: KINDS[dtype.kind]).name
    if left.bits != right.bits:
        return max(left, right, key=lambda dtype: dtype.bits).name
    return "float16" if left.kind == "float" else "u" + a.removeprefix("u")


def converted(x, dtype):
    """The Array in another dtype, rounded once. A float that its integer type does not hold is the caller's mistake."""
    source, target = DTYPES[x.dtype], DTYPES[dtype]
    if target.kind == "bool":
        return Array(x.values != 0, dtype)
    if target.kind != "float":
        if source.kind != "float":
            return Array(x.values.astype(target.numpy), dtype)
        return Array(np.trunc(x.values.astype(np.float64)).astype(np.int64).astype(target.numpy), dtype)
    if source.kind != "float" and source.bits == 64:
        if dtype in ("float32", "float64"):  # NumPy rounds once where it has the type
            return Array(x.values.astype(target.numpy), dtype)
        odd = np.array([_round_to_odd(int(value)) for value in x.values.ravel().tolist()], np.float64)
        return round_to(odd.reshape(x.shape), dtype)
    return round_to(x.values.astype(np.float64), dtype)


def _round_to_odd(value):
    """A float64 that a second rounding, to fewer bits, treats as the integer itself."""
    nearest = float(value)
    if int(nearest) == value or int(np.float64(nearest).view(np.int64)) % 2:
        return nearest
    return float(np.nextafter(nearest, np.inf if int(nearest) < value else -np.inf))


# ---- kernels from text ----------------------------------------------------------------------------------------------

_serial = itertools.count()


def define(source, file=None, /, **names):
    """Runs Python source that `inspect` can find again, in a file of its own or one named so; what it defined."""
    source = textwrap.dedent(source).strip() + "\n"
    file = file or f"<kernel {next(_serial)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    space = {"tl": tl, "triton": triton, "__name__": "kernels", **names}
    exec(compile(source, file, "exec"), space)
    return space


def jit(source, **names):
    """The last function of the source, which is to be decorated there or gets decorated here."""
    names = {**names}
    space = define(source, **names)
    last = [name for name in space if name not in names and not name.startswith("__")][-1]
    return (
        space[last]
        if hasattr(space[last], "__triton_kind__") or hasattr(space[last], "run")
        else triton.jit(space[last])
    )


def offsets(shape):
    """Text for the row-major index of every element of a shape."""
    terms = []
    for axis, extent in enumerate(shape):
        place = (
            "" if len(shape) == 1 else "[" + ", ".join(":" if i == axis else "None" for i in range(len(shape))) + "]"
        )
        stride = int(np.prod(shape[axis + 1 :]))
        terms.append(f"tl.arange(0, {extent}){place}" + (f" * {stride}" if stride != 1 else ""))
    return " + ".join(terms)


def _load(name, source):
    place = f"{name}_ptr" + (f" + {offsets(source.shape)}" if source.shape else "")
    cast = f".to(tl.{source.dtype}, bitcast=True)" if DTYPES[source.dtype].torch is None else ""
    return f"{name} = tl.load({place}){cast}"


def _store(name, result):
    place = f"{name}_ptr" + (f" + {offsets(result.shape)}" if result.shape else "")
    cast = ".to(tl.uint8, bitcast=True)" if DTYPES[result.dtype].torch is None else ""
    return f"tl.store({place}, {name}{cast})"


def _proofs(name, result):
    yield f'tl.static_assert({name}.dtype == tl.{result.dtype}, f"dtype is {{{name}.dtype}}")'
    yield f'tl.static_assert(len({name}.shape) == {len(result.shape)}, f"shape is {{{name}.shape}}")'
    for axis, extent in enumerate(result.shape):
        yield f'tl.static_assert({name}.shape[{axis}] == {extent}, f"shape is {{{name}.shape}}")'


def evaluate(code, inputs, results, grid=(1,), names=None, proofs=True, once=False, **options):
    """Runs code over whole arrays and returns the results.

    code     statements that set the names of `results`, or an expression, which is then the result `out`
    inputs   name -> array, loaded whole and passed as `NAME_ptr` too; or a number, passed as it is
    results  name -> Array whose shape, dtype and first content the result has
    names    what else the code may refer to
    once     with `--padding` too: it has effects beside its results
    options  of the launch; products and sums are not fused unless they say so, for exact comparisons
    """
    options = {"enable_fp_fusion": False, **options}
    code = textwrap.dedent(code).strip()
    if list(results) == ["out"] and "\n" not in code and not code.startswith("out"):
        code = f"out = {code}"
    arrays = {n: array(x) for n, x in inputs.items() if isinstance(x, np.ndarray | np.generic | Array)}
    parameters = [f"{n}_ptr" if n in arrays else n for n in inputs] + [f"{n}_ptr" for n in results]
    lines = [_load(n, x) for n, x in arrays.items()] + code.splitlines()
    for name, result in results.items():
        lines += [*(_proofs(name, result) if proofs else ()), _store(name, result)]
    source = f"def kernel({', '.join(parameters)}):\n" + textwrap.indent("\n".join(lines), "    ")

    def run():
        outputs = {n: Buffer(x) for n, x in results.items()}
        arguments = [Buffer(arrays[n]).argument if n in arrays else x for n, x in inputs.items()]
        arguments += [output.argument for output in outputs.values()]
        jit(source, **(names or {}))[grid](*arguments, **options)
        return {n: x.host() for n, x in outputs.items()}

    return with_each_padding(run) if os.environ.get("TEST_PADDING") and not once else run()


# Quiet NaNs, -1 and true; and large numbers, false. What a program computes depends on neither.
PADDINGS = ["0xffffffffffffffff", "0x5a5a5a5a5a5a5a5a"]


@contextlib.contextmanager
def padding(word):
    """Kernels that the simulator compiles in here fill what lies outside of their tiles' shapes with a word, if any."""
    with mock.patch.dict(os.environ, {"TRITON_SIM_PADDING": word or "0"}):
        yield


def with_each_padding(run):
    """What a run of a new kernel gives as a dictionary of arrays, proved to be the same whatever the padding."""
    results = []
    for word in PADDINGS:
        with padding(word):
            results.append(run())
    for name, first in results[0].items():
        assert_equal(results[1][name], first, name=f"{name}, with other padding,")
    return results[0]


def check(code, inputs, expected, ulps=0, rtol=0, atol=0, **options):
    """Runs code as `evaluate` does and compares: bit for bit (any NaN equals any other), unless a tolerance is given.

    expected   the array that `out` has to be, or name -> array
    ulps       distance in units in the last place of the result's dtype
    """
    expected = expected if isinstance(expected, dict) else {"out": expected}
    expected = {name: array(x) for name, x in expected.items()}
    blank = {n: Array(np.zeros(x.shape, DTYPES[x.dtype].values), x.dtype) for n, x in expected.items()}
    actual = evaluate(code, inputs, blank, **options)
    for name, result in actual.items():
        assert_equal(result, expected[name], ulps, rtol, atol, name)


def ulp(values, dtype):
    """Size of the last place of each value in a dtype, in float64."""
    exponent_bits, mantissa, bias = (
        NARROW[dtype][:3] if dtype in NARROW else {32: (8, 23, 127), 64: (11, 52, 1023)}[DTYPES[dtype].bits]
    )
    with np.errstate(all="ignore"):
        exponent = np.frexp(np.where(np.isfinite(values), values, 1))[1] - 1
    return np.ldexp(1.0, np.maximum(exponent, 1 - bias) - mantissa)


def assert_equal(actual, expected, ulps=0, rtol=0, atol=0, name="out"):
    actual, expected = array(actual), array(expected)
    assert actual.shape == expected.shape and actual.dtype == expected.dtype, (actual.shape, expected.shape)
    a, e = actual.values, expected.values
    with np.errstate(all="ignore"):
        if DTYPES[actual.dtype].kind != "float":
            wrong = a != e
        elif ulps or rtol or atol:
            limit = atol + rtol * np.abs(e.astype(np.float64)) + ulps * ulp(e.astype(np.float64), actual.dtype)
            off = np.abs(a.astype(np.float64) - e.astype(np.float64))
            wrong = ~((off <= limit) | (a == e) | (np.isnan(a) & np.isnan(e)))
        else:
            wrong = ~((a == e) & (np.signbit(a) == np.signbit(e)) | (np.isnan(a) & np.isnan(e)))
    if not wrong.any():
        return
    places = np.argwhere(np.atleast_1d(wrong))
    lines = [f"{name}: {len(places)} of {wrong.size} elements of {actual.dtype}{list(actual.shape)} differ"]
    for place in map(tuple, places[:8]):
        at = place if wrong.ndim else ()
        lines.append(f"  {list(at)}: got {a[at]!r}, expected {e[at]!r}")
    raise AssertionError("\n".join(lines))
