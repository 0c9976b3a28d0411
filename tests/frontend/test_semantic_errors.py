"""Mistakes with types and shapes: each is refused at its line, with both sides and, where there is one, a remedy."""

import numpy as np
import pytest

import triton
import triton.language as tl

PRELUDE = """
import triton
import triton.language as tl

@triton.jit
def halving(a, b):
    return (a + b) / 2

@triton.jit
def two(a, b):
    return a, b

@triton.jit
def kernel(p, q: tl.const, n, f, B: tl.constexpr):
    a = tl.arange(0, 8)
    x = a.to(tl.float32)
    m = x[:, None] + tl.zeros((8, 4), tl.float32)
    b = tl.make_block_ptr(p, (8, 8), (8, 1), (0, 0), (4, 4), (1, 0))
"""


def error_of(code, tmp_path):
    """The error that the last line of a kernel raises."""
    import importlib.util

    path = tmp_path / "kernel_file.py"
    lines = PRELUDE + "".join(f"    {line}\n" for line in code.split("\n"))
    path.write_text(lines)
    spec = importlib.util.spec_from_file_location("kernel_file", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    array = np.zeros(64, np.float32)
    with pytest.raises(triton.CompilationError) as caught:
        module.kernel.warmup(array, array, 7, 0.5, 16, grid=(1,))
    assert caught.value.line == lines.count("\n") and caught.value.file == str(path)
    return caught.value


CASES = [
    # broadcasting
    ("a + tl.arange(0, 4)", "`+` does not broadcast int32[8] and int32[4]: incompatible dimensions at index 0: 8 and 4",
     "equal"),
    ("m + a", "`+` does not broadcast fp32[8, 4] and int32[8]", "add dimensions where they are missing"),
    ("tl.where(m > 0, x, 0.0)", "tl.where does not broadcast int1[8, 4] and fp32[8]", "x[:, None]"),
    ("tl.broadcast_to(x, (4, 4))", "tl.broadcast_to cannot broadcast fp32[8] to the shape [4, 4]", "1 or that of the"),
    # types of operators
    ("x & 1", "invalid operands of type fp32[8] and the constexpr 1 for `&`, which takes integers", "bitcast=True"),
    ("x // 2.0", "for `//`, which takes integers", "tl.floor"),
    ("x << a", "for `<<`, which takes integers", None),
    ("~x", "invalid operand of type fp32[8] for `~`, which takes integers", None),
    ("a % a.to(tl.uint32)", "Cannot use `%` on int32[8] and uint32[8] because they have different signedness",
     "both are signed or both unsigned"),
    ("a.to(tl.int8) + 300", "the constexpr 300 in `+` is out of range for int8", ".to(...)"),
    ("a.to(tl.uint32) * -1", "the constexpr -1 in `*` is out of range for uint32", ".to(...)"),
    ("a + None", "`+` does not work on None", "`is`"),
    ("a + 'text'", "`+` takes tensors and numbers, not the string 'text'", None),
    ("a ** n", "`**` of integers takes a compile-time exponent", ".to(tl.float32)"),
    ("tl.minimum(p, 1)", "tl.minimum takes numbers, not the pointer pointer<fp32>", "load"),
    # pointers
    ("p + x", "`+` cannot move pointer<fp32> by fp32[8]", "integers that count elements"),
    ("p * 2", "invalid operands of type pointer<fp32> for `*`", "moved by integers"),
    ("p - q", "for `-`, of which one may be a pointer", "tl.int64"),
    ("3 - p", "a pointer, pointer<fp32>, cannot be subtracted from the constexpr 3", None),
    ("p == 0", "`==` cannot compare pointer<fp32> with the constexpr 0", "tl.int64"),
    ("-p", "invalid operand of type pointer<fp32> for `-`", None),
    ("p[0:1]", "unsupported tensor index: a slice, of the scalar pointer<fp32>", "tl.load(pointer + index)"),
    ("p[:, 3]", "unsupported tensor index: the constexpr 3, of the scalar pointer<fp32>", "tl.load(pointer + index)"),
    ("p[3]", "unsupported tensor index: the constexpr 3, of the scalar pointer<fp32>", "tl.load(pointer + index)"),
    # loads and stores
    ("tl.load(a)", "`pointer` of tl.load must be a pointer, not int32[8]", "pass an array"),
    ("tl.load(n + a)", "`pointer` of tl.load must be a pointer, not int32[8]", "pass an array"),
    ("tl.load(p + a, other=0.0)", "tl.load got `other` without `mask`", "give the mask"),
    ("tl.load(p + a, mask=a)", "`mask` of tl.load must be of type int1, not int32[8]", "mask != 0"),
    ("tl.load(p, mask=a < 3)", "tl.load got a scalar pointer, pointer<fp32>, and a tile as `mask`", "tl.arange"),
    ("tl.load(p + a, mask=m > 0)", "tl.load does not broadcast", "x[:, None]"),
    ("tl.load(p + a, cache_modifier='.xx')", '`cache_modifier` of tl.load is one of "", ".ca"', None),
    ("tl.load(p + a, eviction_policy='last')", "`eviction_policy` of tl.load is one of", None),
    ("tl.load(p + a, boundary_check=(0,))", "takes boundary_check and padding_option for block pointers only",
     "`mask`"),
    ("tl.store(q + a, x)", "Cannot store to a constant pointer: tl.store got pointer<const fp32>[8]", "tl.const"),
    ("tl.load(p.to(tl.pointer_type(tl.void)))", "`pointer` of tl.load must be a pointer, not pointer<void>", None),
    ("p.to(tl.pointer_type(tl.void)) + 1", "`+` cannot move a pointer to void", "tl.pointer_type(tl.int8)"),
    ("tl.join(p, 1)", "tl.join takes two tensors of one element type, not pointer<fp32> and int32", None),
    ("tl.store(p, x)", "tl.store got a scalar pointer, pointer<fp32>, and a tile as `value`, fp32[8]", "tl.arange"),
    ("tl.store(p + a, m)", "`value` of tl.store, fp32[8, 4], does not broadcast to the shape of the pointer",
     "x[:, None]"),
    ("tl.store(p + a, x, mask=m > 0)", "`mask` of tl.store, int1[8, 4], does not broadcast", None),
    ("tl.store(p + a, None)", "`value` of store must be a tensor or a number, not None", None),
    # block pointers
    ("tl.load(b, mask=a < 3)", "tl.load takes no `mask` for a block pointer", "boundary_check"),
    ("tl.load(b, boundary_check=(2,))", "boundary_check: invalid axis 2 for a tile", None),
    ("tl.load(b, boundary_check=(0, 0))", "boundary_check names the dimension 0 twice", None),
    ("tl.load(b, boundary_check=(0,), padding_option='one')", "`padding_option` of load must be", None),
    ("tl.advance(p, (1, 0))", "tl.advance moves a block pointer of tl.make_block_ptr, not pointer<fp32>", "with +"),
    ("tl.advance(b, (1,))", "`offsets` of tl.advance has 1 items for a block of 2 dimensions", None),
    ("b + 1", "`+` does not work on a block pointer", "tl.advance"),
    ("tl.make_block_ptr(p, (8, 8), (8, 1), (0, 0), (4, 4), (0, 0))", "`order` of make_block_ptr must be each dim",
     None),
    # atomics
    ("tl.atomic_add(p.to(tl.pointer_type(tl.int8)) + a, 1)", "tl.atomic_add does not work on elements of type int8",
     "32"),
    ("tl.atomic_and(p + a, 1)", "tl.atomic_and does not work on elements of type fp32", "32-bit or 64-bit integers"),
    ("tl.atomic_add(p, 1, sem='strong')", '`sem` of tl.atomic_add is one of "acq_rel"', None),
    ("tl.atomic_add(q, 1)", "Cannot store to a constant pointer: tl.atomic_add got pointer<const fp32>", None),
    # creation and conversion
    ("tl.arange(0, n)", "`end` of tl.arange must be known at compile time, not int32", "tl.constexpr"),
    ("tl.arange(4, 4)", "tl.arange(4, 4) is empty: its end argument must be greater than the start", "greater"),
    ("tl.arange(0, 2**21)", "numel exceeds the largest there may be, 1048576 (tl.TRITON_MAX", "smaller blocks"),
    ("tl.zeros((0, 4), tl.float32)", "tl.zeros: tl.full would make a tile of shape [0, 4]; every extent must be", None),
    ("tl.full((n,), 0, tl.float32)", "item 0 of `shape` of full must be a compile-time int, not int32", "tl.constexpr"),
    ("tl.full((4,), x, tl.float32)", "tl.full repeats a scalar, not fp32[8]", "tl.broadcast_to"),
    ("x.to('float32')", "`dtype` of to must be a dtype", None),
    ("x.to(tl.float64, bitcast=True)", "fp32[8] has 32 bits an element and cannot be read as fp64", "same width"),
    ("x.to(tl.float16, fp_downcast_rounding='up')", "`fp_downcast_rounding` of to must be", None),
    ("x.to(tl.float64, fp_downcast_rounding='rtz')", "fp_downcast_rounding is for a float that becomes a narrower",
     None),
    ("p.to(tl.float32)", "pointer<fp32> cannot be converted to fp32", "tl.int64"),
    ("tl.cat(x, a)", "tl.cat takes two tiles of one element type, not fp32[8] and int32[8]", ".to(...)"),
    # shapes
    ("x.reshape(3, 3)", "tl.reshape cannot change the total number of elements: fp32[8] has 8, and the", None),
    ("m.permute(0, 0)", "tl.permute takes each dimension of fp32[8, 4] once, and got [0, 0]", None),
    ("tl.trans(x)", "tl.trans takes a tile of two dimensions or more, not fp32[8]", "x[:, None]"),
    ("x.T", ".T is for tiles of two dimensions, not for fp32[8]", None),
    ("tl.expand_dims(x, (0, -3))", "tl.expand_dims got duplicate axes, normalized axes = [0, 0]", None),
    ("tl.expand_dims(x, 3)", "tl.expand_dims: invalid axis 3 for a tile of 2 dim", None),
    ("tl.split(m)", "tl.split takes a tile whose last dimension has extent 2, not fp32[8, 4]", "reshape"),
    ("tl.join(x, a)", "tl.join takes two tensors of one element type", ".to(...)"),
    ("tl.gather(m, a, 0)", "tl.gather along dimension 0 takes indices", "broadcast"),
    ("tl.gather(x, x, 0)", "tl.gather takes indices that are integers, not fp32[8]", None),
    ("m[0, 0, 0]", "a tile of 2 dimensions cannot be indexed with 3", None),
    ("x[9]", "the index 9 is out of range for dimension 0, which has extent 8", None),
    ("x[n:]", "the start of a slice of a tile must be known at compile time, not int32", "tl.gather"),
    ("x[4:4]", "the slice of dimension 0, which has extent 8, is empty", None),
    ("x[a]", "unsupported tensor index: int32[8] for a dimension of a tile", "tl.gather"),
    ("x[0.5]", "unsupported tensor index: the constexpr 0.5; there are", None),
    ("x.shpae", "fp32[8] has no attribute `shpae`", None),
    ("x.reshap(4, 2)", "fp32[8] has no attribute `reshap`", "did you mean `reshape`?"),
    # reductions and products
    ("tl.sum(x, axis=1)", "tl.sum: tl.reduce: invalid axis 1 for a tile of 1 dimension",
     None),
    ("tl.sum(f)", "tl.sum: tl.reduce takes a tile or a tuple of tiles, not fp32", "leave the call out"),
    ("tl.max(x, 1, return_indices=True)", "raised ValueError: dimension 1 is out of range for a tile", None),
    ("tl.sort(m, 2)", "raised ValueError: dimension 2 is out of range for a tile of 2 dimensions", None),
    ("tl.topk(x, 9)", "tl.topk: static assertion failed: k is not between 1 and the extent", None),
    ("tl.softmax(a)", "tl.softmax: tl.exp takes floats, not int32[8]", ".to(tl.float32)"),
    ("tl.reduce(a, 0, halving)", "takes scalars of type int32 and must return such, not fp32", ".to(...)"),
    ("tl.reduce(a, 0, two)", "the combine function of tl.reduce must return 1 value, one for each tile, not 2", None),
    ("tl.associative_scan((a, x), 0, two)", "`two` takes 2 positional arguments, but 4 are given", None),
    ("tl.reduce((a, m), 0, two)", "tl.reduce takes tiles of one shape together, not int32[8] and fp32[8, 4]", "tl.bro"),
    ("tl.reduce(a, 0, 3)", "3", None),
    ("tl.dot(x, x)", "tl.dot takes two tiles of equally many dimensions", "tl.sum(a * b"),
    ("tl.dot(m, m)", "tl.dot takes [M, K] and [K, N], with the same K on both sides, not fp32[8, 4] and fp32[8, 4]",
     "trans"),
    ("tl.dot(m, m.T.to(tl.float16))", "tl.dot takes operands that must be same dtype", ".to(...)"),
    ("tl.dot(m, m.T, acc=x)", "the accumulator of this tl.dot must be fp32[8, 8], not fp32[8]", "tl.zeros"),
    ("tl.dot(m, m.T, out_dtype=tl.bfloat16)", "tl.dot cannot accumulate in bf16", "tl.float32"),
    ("tl.dot(m, m.T, input_precision='fast')", "`input_precision` of dot must be", None),
    ("tl.histogram(x, 4)", "tl.histogram takes a tile of integers, not fp32[8]", None),
    # functions
    ("tl.exp(a)", "tl.exp takes floats, not int32[8]", ".to(tl.float32)"),
    ("tl.exp(None)", "`x` of exp must be a tensor or a number, not None", None),
    ("tl.umulhi(x, x)", "tl.umulhi takes integers of 32 or 64 bits, not fp32[8]", None),
    ("tl.maximum(x, x, propagate_nan=1)", "`propagate_nan` of maximum must be tl.PropagateNan.NONE", None),
    ("tl.program_id(3)", "tl.program_id axis must be 0, 1, or 2 but got 3", None),
    ("tl.program_id(n)", "`axis` of program_id must be a compile-time int", "tl.constexpr"),
    ("tl.multiple_of(x, 4)", "tl.multiple_of is about integers and pointers, not fp32[8]", None),
    ("tl.multiple_of(a, (4, 4))", "tl.multiple_of got 2 numbers for int32[8]", "each dimension"),
    ("tl.static_assert(n > 3)", "tl.static_assert takes a condition known at compile time, not int1",
     "tl.device_assert"),
    ("tl.static_assert(B == 4, 'four it is')", "static assertion failed: four it is", None),
    ("tl.device_print('Zürich', n)", "`prefix` of device_print must be a string of printable ASCII", None),
    ("tl.dot_scaled(m, None, 'e3m0', m, None, 'bf16')", "ValueError: lhs_format is 'e3m0'", None),
    ("tl.inline_asm_elementwise('nop', '=r,r', [x], tl.float32, True, 3)", "`pack` must be a power of 2 up to 64",
     None),
    ("tl.inline_asm_elementwise('nop', '=r,r', [x], (), True, 1)", "has from 1 to 16 results, not 0", None),
    ("a / a.to(tl.uint32)", "Cannot use `/` on int32[8] and uint32[8] because they have different signedness",
     ".to(...)"),
    ("if (x > 0): n = 1", "a condition decides for the whole program and must be a scalar, not int1[8]", "tl.where"),
]  # fmt: skip


@pytest.mark.parametrize("code, message, remedy", CASES, ids=[case[0] for case in CASES])
def test_mistake(code, message, remedy, tmp_path):
    error = error_of(code, tmp_path)
    assert message in error.message
    if remedy:
        assert remedy in error.remedy


def test_the_limit_has_a_name():
    assert tl.TRITON_MAX_TENSOR_NUMEL == 1048576
