"""What the language builds: the operations for an expression, in tile IR, before any pass."""

import re

import pytest
from harness import define

from triton import _C
from triton.language import constexpr

SIGNATURE = (("*fp32", 16), ("*ki8", 1), ("i32", 1), ("u32", 1), ("fp32", 1), constexpr(16))


def built(code, **options):
    """The IR of a kernel's last statements, without its constants, names as numbers in the order of appearance."""
    source = "@triton.jit\ndef checked_sum(a, b):\n    tl.device_assert(a + b > a)\n    return a + b\n\n"
    source += "@triton.jit\ndef kernel(p, q, n, u, f, B: tl.constexpr):\n    i = tl.arange(0, 8)\n"
    source += "".join(f"    {line}\n" for line in code.split("\n"))
    text = _C._frontend(define(source)["kernel"], SIGNATURE, options)
    body = [line.strip() for line in text.splitlines()[1:-1]]
    return [re.sub(r"%\w+", "%", line) for line in body if " constant " not in line and line != "return"]


def last(code, **options):
    return built(code, **options)[-1]


CASES = {
    # arithmetic: the operation follows the elements
    "x = i + n": "% = add %, % : tile<8xi32>",
    "x = i // n": "% = div_s %, % : tile<8xi32>",
    "x = i.to(tl.uint32) // u": "% = div_u %, % : tile<8xi32>",
    "x = i % n": "% = rem_s %, % : tile<8xi32>",
    "x = i >> n": "% = shr_s %, % : tile<8xi32>",
    "x = i.to(tl.uint32) >> u": "% = shr_u %, % : tile<8xi32>",
    "x = f % 2.0": "% = frem %, % : f32",
    "x = i < n": "% = lt_s %, % : tile<8xi1>",
    "x = i.to(tl.uint8) < 3": "% = lt_u %, % : tile<8xi1>",
    "x = f >= 1": "% = fge %, % : i1",
    "x = i / n": "% = fdiv %, % : tile<8xf32>",
    "x = n > 3 and f < 2": "% = and %, % : i1",
    "x = not n": "% = xor %, % : i1",
    "x = ~i": "% = xor %, % : tile<8xi32>",
    "x = -f": "% = fneg % : f32",
    "x = f ** 2": "% = fmul %, % : f32",
    "x = f ** f": '% = extern_call %, % {symbol = "pow"} : f32',
    # conversions
    "x = i.to(tl.int64)": "% = ext_s % : tile<8xi64>",
    "x = u.to(tl.int64)": "% = ext_u % : i64",
    "x = (i > 3).to(tl.int32)": "% = ext_u % : tile<8xi32>",
    "x = i.to(tl.int8)": "% = trunc % : tile<8xi8>",
    "x = i.to(tl.int1)": "% = ne %, % : tile<8xi1>",
    "x = f.to(tl.int1)": "% = fne %, % : i1",
    "x = i.to(tl.bfloat16)": "% = int_to_float_s % : tile<8xbf16>",
    "x = u.to(tl.float32)": "% = int_to_float_u % : f32",
    "x = f.to(tl.uint8)": "% = float_to_int_u % : i8",
    "x = f.to(tl.float16, fp_downcast_rounding='rtz')": '% = float_cast % {rounding = "rtz"} : f16',
    "x = f.to(tl.float64)": "% = float_cast % : f64",
    "x = f.to(tl.int32, bitcast=True)": "% = bitcast % : i32",
    "x = p.to(tl.int64)": "% = ptr_to_int % : i64",
    "x = n.to(tl.pointer_type(tl.int8))": "% = int_to_ptr % : ptr<i8>",
    # functions
    "x = tl.exp(f.to(tl.float16))": "% = float_cast % : f16",
    "x = tl.maximum(i, n)": "% = max_s %, % : tile<8xi32>",
    "x = tl.minimum(u, 3)": "% = min_u %, % : i32",
    "x = tl.minimum(f, 1, propagate_nan=tl.PropagateNan.ALL)": "% = fmin_nan %, % : f32",
    "x = tl.where(i > 3, i, -1)": "% = select %, %, % : tile<8xi32>",
    "x = tl.fdiv(f, 3.0, ieee_rounding=True)": "% = fdiv_rn %, % : f32",
    "x = tl.umulhi(u, u)": "% = mulhi_u %, % : i32",
    "x = tl.abs(i)": "% = abs_s % : tile<8xi32>",
    "x = tl.extra.libdevice.acosh(f)": '% = extern_call % {symbol = "acosh"} : f32',
    "x = tl.math.tanh(f)": "% = tanh % : f32",
    # shapes
    "x = i[:, None]": "% = expand_dims % {axis = 1} : tile<8x1xi32>",
    "x = i[n]": "% = extract %, % {axis = 0} : i32",
    "x = i[1:7:2]": "% = slice % {offsets = [1], strides = [2]} : tile<3xi32>",
    "x = i[::-1]": "% = slice % {offsets = [7], strides = [-1]} : tile<8xi32>",
    "x = i.reshape(2, 4)": "% = reshape % : tile<2x4xi32>",
    "x = i.reshape(2, -1).T": "% = permute % {order = [1, 0]} : tile<4x2xi32>",
    "x = tl.broadcast_to(n, (4, 2))": "% = splat % : tile<4x2xi32>",
    "x = tl.join(i, n)": "% = join %, % : tile<8x2xi32>",
    "x = tl.cat(i, i)": "% = cat %, % {axis = 0} : tile<16xi32>",
    "x = tl.gather(i, i, 0)": "% = gather %, % {axis = 0} : tile<8xi32>",
    "x = tl.histogram(i, 4, mask=i > 2)": "% = histogram %, % : tile<4xi32>",
    # memory
    "x = tl.load(p + i)": "% = load % : tile<8xf32>",
    "x = tl.load(p, mask=n > 0, other=1)": "% = load %, %, % : f32",
    "x = tl.load(q + i, cache_modifier='.cg', eviction_policy='evict_last', volatile=True)": (
        '% = load % {cache = ".cg", evict = "evict_last", volatile = 1} : tile<8xi8>'
    ),
    "tl.store(p + i, i, mask=i < n)": "store %, %, %",
    "x = tl.atomic_add(p + i, 1)": '% = atomic_rmw %, % {kind = "fadd", sem = "acq_rel", scope = "gpu"} : tile<8xf32>',
    "x = tl.atomic_max(p.to(tl.pointer_type(tl.uint32)), 1, sem='relaxed', scope='cta')": (
        '% = atomic_rmw %, % {kind = "max_u", sem = "relaxed", scope = "cta"} : i32'
    ),
    "x = tl.atomic_cas(p.to(tl.pointer_type(tl.int32)), 0, 1)": (
        '% = atomic_cas %, %, % {sem = "acq_rel", scope = "gpu"} : i32'
    ),
    # promises and messages
    "x = tl.multiple_of(i, 8)": "% = hint % {divisibility = [8]} : tile<8xi32>",
    "x = tl.max_contiguous(p + i, (8,))": "% = hint % {contiguity = [8]} : tile<8xptr<f32>>",
    "tl.assume(n > 0)": "assume %",
    "tl.device_print('n', n, u, hex=True)": 'print %, % {message = " n: ", hex = 1, unsigned_mask = 2}',
    "tl.debug_barrier()": "barrier",
}


@pytest.mark.parametrize("code", CASES)
def test_operation(code):
    assert last(code) == CASES[code]


def test_unsigned_offsets_are_widened_first():
    """addptr reads its offset as signed."""
    assert built("x = p + u")[-2:] == ["% = ext_u % : i64", "% = addptr %, % : ptr<f32>"]
    assert built("x = p + (i > 3)")[-3:-1] == ["% = ext_u % : tile<8xi64>", "% = splat % : tile<8xptr<f32>>"]


def test_scalars_spread_late():
    """What is computed from scalars stays a scalar until it meets a tile."""
    ops = [line.split(" = ")[1].split()[0] for line in built("x = (n * 2 + 1) * i")]
    assert ops == ["range", "mul", "add", "splat", "mul"]


def test_numbers_take_the_type_of_the_tile():
    assert built("x = (f.to(tl.float16) + 2) * 0.5")[1:] == [
        "% = float_cast % : f16", "% = fadd %, % : f16", "% = fmul %, % : f16",
    ]  # fmt: skip


def test_bool_masks_need_no_conversion():
    assert built("m = (i > 1) & (i < n) | (n == 3)")[-1] == "% = or %, % : tile<8xi1>"
    assert not any("ext" in line or "trunc" in line for line in built("m = (i > 1) & (i < n)"))


def test_assertions_belong_to_debug_builds():
    assert not any("assert" in line for line in built("tl.device_assert(i < n, 'high')"))
    assert not any("assert" in line for line in built("tl.reduce(i, 0, checked_sum)", debug=True))
    assert last("tl.device_assert(i < n, 'high')", debug=True) == 'assert % {message = "high"}'
    overflow = built("x = n + 1", debug=True)
    assert 'message = "int32 overflow in `+` of {0} and {1}"' in "".join(overflow)
    assert not any("assert" in line for line in built("x = n + 1", debug=True, sanitize_overflow=False))
    assert not any("assert" in line for line in built("x = tl.add(n, 1, sanitize_overflow=False)", debug=True))
    assert not any("assert" in line for line in built("x = u + 1", debug=True))


def test_block_pointers_are_pointers_and_masks():
    text = built("""b = tl.make_block_ptr(p, (n, 64), (64, 1), (n, 0), (4, 8), (1, 0))
x = tl.load(tl.advance(b, (0, 8)), boundary_check=(0,), padding_option='zero')""")
    made = "%, % = block_pointers %, %, %, %, %, %, %"
    types = ": tile<4x8xptr<f32>>, tile<4x8xi1>"
    assert text[-2:] == [f"{made} {{checked = [0]}} {types}", "% = load %, %, % : tile<4x8xf32>"]
    plain = built("x = tl.load(tl.make_block_ptr(p, (n, 64), (64, 1), (0, 0), (4, 8), (1, 0)))")
    assert plain[-2:] == [f"{made} {types}", "% = load % : tile<4x8xf32>"]


def test_dot():
    code = "a = tl.zeros((8, 4), tl.{0})\nb = tl.zeros((4, 8), tl.{1})\nx = tl.dot(a, b{2})"
    assert last(code.format("float16", "float16", "")) == '% = dot %, %, % {precision = "tf32"} : tile<8x8xf32>'
    assert last(code.format("int8", "int8", "")).endswith("tile<8x8xi32>")
    assert last(code.format("float64", "float64", ", allow_tf32=False")).endswith(
        '{precision = "ieee"} : tile<8x8xf64>'
    )
    assert last(code.format("float16", "float16", ", out_dtype=tl.float16")).endswith("tile<8x8xf16>")
    assert "max_imprecise = 4" in last(code.format("float8e5", "float8e4nv", ", max_num_imprecise_acc=4"))


def test_reductions_have_regions():
    text = " ".join(built("x = tl.sum(i, axis=0)\ny = tl.cumsum(i, 0, reverse=True)"))
    assert "reduce % {axis = 0} : i32 { ^(%: i32, %: i32): % = add %, % : i32 yield % }" in text
    assert "scan % {axis = 0, reverse = 1} : tile<8xi32> { ^(%: i32, %: i32): % = add %, % : i32 yield % }" in text
    kept = built("x = tl.max(i[:, None] + i[None, :], axis=1, keep_dims=True)")
    assert kept[-1] == "% = expand_dims % {axis = 1} : tile<8x1xi32>"


def test_methods_are_the_functions():
    for method, function in [("i.sum(0)", "tl.sum(i, 0)"), ("f.exp()", "tl.exp(f)"), ("i.cdiv(3)", "tl.cdiv(i, 3)")]:
        assert built(f"x = {method}") == built(f"x = {function}")
    for older, newer in [("tl.math.sqrt(f)", "tl.sqrt(f)"), ("tl.libdevice.sin(f)", "tl.sin(f)")]:
        assert built(f"x = {older}") == built(f"x = {newer}")


def test_a_while_loop_takes_its_hint():
    hinted = built("while tl.condition(n > 1, disable_licm=True):\n    n -= 1")
    assert any(line.startswith("% = while % {disable_licm = 1}") for line in hinted), hinted
    assert "disable_licm" not in " ".join(built("while tl.condition(n > 1):\n    n -= 1"))
