"""tl.inline_asm_elementwise: PTX on elements. It runs on CUDA, assembles for every GPU, and is refused elsewhere."""

import shutil
import subprocess

import numpy as np
import pytest
from harness import jit

import triton
import triton.language as tl
from triton import _C

SIZE = 512


@triton.jit
def funnel_shift(x_ptr, y_ptr, out_ptr, n: tl.constexpr, SIZE: tl.constexpr):
    offsets = tl.arange(0, SIZE)
    amount = tl.full([SIZE], n, tl.int32)
    out = tl.inline_asm_elementwise(
        "shf.l.wrap.b32 $0, $1, $2, $3;",
        "=r,r, r, r",
        [tl.load(x_ptr + offsets), tl.load(y_ptr + offsets), amount],
        dtype=tl.int32,
        is_pure=True,
        pack=1,
    )
    tl.store(out_ptr + offsets, out)


@triton.jit
def four_bytes(x_ptr, out_ptr, SIZE: tl.constexpr):
    offsets = tl.arange(0, SIZE)
    out = tl.inline_asm_elementwise(
        "and.b32 $0, $1, 0x1F1F1F1F; shl.b32 $0, $0, 3;", "=&r,r", [tl.load(x_ptr + offsets)], tl.uint8, True, 4
    )
    tl.store(out_ptr + offsets, out)


@triton.jit
def through_pointers(x_ptr, out_ptr, SIZE: tl.constexpr):
    offsets = tl.arange(0, SIZE)
    tl.inline_asm_elementwise(
        "ld.global.b32 $0, [$1]; add.u32 $0, $0, 7; st.global.b32 [$2], $0;",
        "=&r,l,l",
        [x_ptr + offsets, out_ptr + offsets],
        tl.int32,
        False,
        1,
    )


@triton.jit
def sum_and_difference(x_ptr, y_ptr, sum_ptr, difference_ptr, SIZE: tl.constexpr):
    offsets = tl.arange(0, SIZE)
    total, difference = tl.inline_asm_elementwise(
        "add.f16x2 $0, $4, $6; add.f16x2 $1, $5, $7; sub.f16x2 $2, $4, $6; sub.f16x2 $3, $5, $7;",
        "=&r,=&r,=&r,=&r,r,r,r,r",
        [tl.load(x_ptr + offsets), tl.load(y_ptr + offsets)],
        (tl.float16, tl.float16),
        True,
        4,
    )
    tl.store(sum_ptr + offsets, total)
    tl.store(difference_ptr + offsets, difference)


@triton.jit
def doubles(x_ptr, out_ptr, SIZE: tl.constexpr):
    offsets = tl.arange(0, SIZE)
    x = tl.load(x_ptr + offsets)
    one = tl.full([], 1, tl.float64)
    out = tl.inline_asm_elementwise("fma.rn.f64 $0, $1, $2, $3;", "=d,d,d,d", [x, x, one], tl.float64, True, 1)
    tl.store(out_ptr + offsets, out)


@triton.jit
def wide_elements(x_ptr, out_ptr, SIZE: tl.constexpr):
    """Elements that are wider than their registers, and a result of pointers in 32 bits that nobody reads."""
    offsets = tl.arange(0, SIZE)
    low = tl.inline_asm_elementwise("add.u32 $0, $1, 1;", "=r,r", [tl.load(x_ptr + offsets)], tl.uint64, True, 1)
    places = out_ptr + offsets
    tl.inline_asm_elementwise(
        "mov.u32 $0, 0; st.global.b64 [$1], $2;", "=&r,l,l", [places, low], places.dtype, False, 1
    )


@triton.jit
def narrow_elements(x_ptr, out_ptr, SIZE: tl.constexpr):
    """Elements and results that are narrower than their registers."""
    offsets = tl.arange(0, SIZE)
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, tl.inline_asm_elementwise("not.b64 $0, $1;", "=l,l", [x], tl.uint32, True, 1))


@triton.jit
def special(time_ptr, place_ptr):
    start = tl.extra.cuda.globaltimer()
    tl.store(place_ptr + tl.arange(0, tl.extra.cuda.num_threads()), tl.extra.cuda.smid())
    tl.store(time_ptr, start)


@triton.jit
def dependent(x_ptr):
    tl.extra.cuda.gdc_wait()
    tl.store(x_ptr, tl.load(x_ptr) + 1)
    tl.extra.cuda.gdc_launch_dependents()


RNG = np.random.default_rng(3)
INTS = [RNG.integers(0, 1 << 32, SIZE, np.uint32) for _ in range(2)]
BYTES = RNG.integers(0, 256, SIZE, np.uint8)
HALVES = [RNG.standard_normal(SIZE).astype(np.float16) for _ in range(2)]
LONGS = RNG.integers(0, 1 << 64, SIZE, np.uint64)
DOUBLES = RNG.standard_normal(SIZE)

# kernel: inputs, outputs, other arguments
CASES = {
    funnel_shift: (INTS, [INTS[1] << np.uint32(17) | INTS[0] >> np.uint32(15)], {"n": 17}),
    four_bytes: ([BYTES], [BYTES << 3], {}),
    through_pointers: ([INTS[0]], [INTS[0] + np.uint32(7)], {}),
    sum_and_difference: (HALVES, [HALVES[0] + HALVES[1], HALVES[0] - HALVES[1]], {}),
    wide_elements: ([LONGS], [(LONGS + np.uint64(1)) & np.uint64(0xFFFFFFFF)], {}),
    narrow_elements: ([INTS[0]], [~INTS[0]], {}),
    doubles: ([DOUBLES], [DOUBLES * DOUBLES + 1], {}),
}


def names(kernel):
    return kernel.__name__


@pytest.mark.parametrize("kernel", CASES, ids=names)
@pytest.mark.parametrize("warps", [1, 4])
def test_runs(kernel, warps, target):
    inputs, outputs, others = CASES[kernel]
    arrays = [*inputs, *(np.zeros_like(x) for x in outputs)]
    if not target.startswith("cuda"):
        with pytest.raises(triton.UnsupportedError, match="inline assembly"):
            kernel[(1,)](*arrays, SIZE=SIZE, num_warps=warps, **others)
        return
    import torch

    tensors = [torch.from_numpy(x).cuda() for x in arrays]
    kernel[(1,)](*tensors, SIZE=SIZE, num_warps=warps, **others)
    for tensor, expected in zip(tensors[len(inputs) :], outputs, strict=True):
        np.testing.assert_allclose(tensor.cpu().numpy(), expected, rtol=1e-12)


TYPES = {"uint32": "u32", "uint64": "u64", "uint8": "u8", "float16": "fp16", "float64": "fp64"}


def compiled(kernel, arrays, others, sm=80, warps=4):
    entries = [("*" + TYPES[x.dtype.name], 16) for x in arrays]
    signature = tuple(entries + [tl.constexpr(value) for value in (*others.values(), SIZE)])
    return _C._compile_gpu(_C._frontend(kernel, signature), sm, warps)


@pytest.mark.parametrize("sm", [75, 90])
@pytest.mark.parametrize("kernel", CASES, ids=names)
def test_assembles(kernel, sm, tmp_path):
    inputs, outputs, others = CASES[kernel]
    code = compiled(kernel, [*inputs, *outputs], others, sm)
    assert "convergent" in code["llir"]
    if shutil.which("ptxas"):
        (tmp_path / "kernel.ptx").write_text(code["ptx"])
        subprocess.run(
            ["ptxas", f"-arch=sm_{sm}" + "a" * (sm == 90), tmp_path / "kernel.ptx", "-o", tmp_path / "kernel.cubin"],
            check=True,
        )


def test_dependent_launch():
    ptx = _C._compile_gpu(_C._frontend(dependent, (("*i32", 16),), {"target": "cuda:90"}), 90, 4)["ptx"]
    assert ptx.index("griddepcontrol.wait") < ptx.index("ld.global") < ptx.index("griddepcontrol.launch_dependents")


@pytest.mark.parametrize("target", ["cpu", "sim:90"])
def test_dependent_launch_without_a_gpu(target, monkeypatch):
    """Launches end before the next one begins."""
    monkeypatch.setenv("TRITON_TARGET", target)
    x = np.zeros(1, np.int32)
    for _ in range(2):
        dependent[(1,)](x, launch_pdl=True)
    assert x[0] == 2


def test_special_registers():
    code = _C._compile_gpu(_C._frontend(special, (("*i64", 16), ("*i32", 16)), {"num_warps": 8}), 80, 8)
    assert code["ptx"].count("%globaltimer") == 1 and code["ptx"].count("%smid") == 1


@pytest.mark.parametrize(
    "constraints, pack, message",
    [
        ("=r", 1, "name 1 results and 0 operands, and 1 elements at a time take 1 and 1 registers"),
        ("=r,r", 4, "name 1 results and 1 operands, and 4 elements at a time take 4 and 4 registers"),
        ("=r,x", 1, "registers are h, r, l, f or d"),
        ("r,=r", 1, "a result after an operand"),
        ("=r,1", 1, "there is no such result"),
    ],
)
def test_wrong_constraints(constraints, pack, message):
    text = f"""
kernel @k(%p: ptr<i32>) {{
  %i = range {{start = 0, end = 128}} : tile<128xi32>
  %x = inline_asm %i {{constraints = "{constraints}", pack = {pack}, text = "mov.b32 $0, $1;"}} : tile<128xi32>
  %q = splat %p : tile<128xptr<i32>>
  %r = addptr %q, %i : tile<128xptr<i32>>
  store %r, %x
  return
}}
"""
    with pytest.raises(ValueError, match=message):
        _C._compile_gpu(text, 80, 4)


@pytest.mark.parametrize("constraints", ["=h,r", "=r,h"])
def test_packed_elements_fit(constraints):
    kernel = jit(
        "def kernel(x):\n    i = tl.arange(0, 128)\n"
        f"    tl.store(x + i, tl.inline_asm_elementwise('', '{constraints}', [tl.load(x + i)], tl.uint8, True, 4))"
    )
    with pytest.raises(ValueError, match="the elements of a register are wider than it"):
        _C._compile_gpu(_C._frontend(kernel, (("*u8", 16),)), 80, 4)


@pytest.mark.host
@pytest.mark.parametrize("dtype", ["tl.void", "(tl.int32, tl.void)", "None", "3"])
def test_results_have_elements(dtype):
    kernel = jit(f"def kernel(x):\n    tl.inline_asm_elementwise('x', '=r,r', [tl.load(x)], {dtype}, True, 1)")
    with pytest.raises(triton.CompilationError, match="an element type, or a tuple of them"):
        kernel.warmup(np.zeros(4, np.int32), grid=(1,))


@pytest.mark.host
def test_modules_of_special_registers():
    """Libraries import them from the modules where the public package has them, too."""
    from triton.language.extra.cuda import gdc, utils

    cuda = tl.extra.cuda
    assert utils.num_warps is cuda.num_warps and utils.globaltimer is cuda.globaltimer and gdc.gdc_wait is cuda.gdc_wait
