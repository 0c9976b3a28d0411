"""What LLVM is told of GPU code: what makes threads wait for each other, or speak to each other, is `convergent`, so
that no pass moves it below a branch; and the passes know the target."""

import re

import pytest
from gpu_kernels import ir
from test_synchronisation import CASES

import triton
import triton.language as tl
from triton import _C

TALKS = re.compile(r"\b(bar|barrier|shfl|vote|redux|match|elect|activemask|mbarrier|wgmma|mma|ldmatrix|stmatrix)\b")


def llvm_ir(text, sm, warps):
    return _C._compile_gpu(text, sm, warps, pipeline=True)["llir"]


def talking_calls(text):
    """The calls that communicate between threads, inline PTX and intrinsics, with their attributes."""
    groups = dict(re.findall(r"^attributes #(\d+) = \{(.*)\}$", text, re.M))
    declared = dict(re.findall(r"^declare .*@([\w.]+)\(.*\) (?:\S+ )*#(\d+)$", text, re.M))
    for line in text.splitlines():
        call = re.search(r"\bcall\b.* (asm (?:sideeffect )?\"([^\"]*)\".*|@(llvm\.nvvm\.[\w.]+)\(.*)", line)
        name = call and (call[2] or call[3])
        if not name or not TALKS.search(name.replace(".", " ").replace("_", " ")):
            continue
        used = re.findall(r"#(\d+)", line.split(", !dbg")[0])
        used += [declared[call[3]]] if call[3] in declared else []
        yield name, " ".join(groups[number] for number in used)


@pytest.mark.parametrize("sm", [75, 80, 90])
@pytest.mark.parametrize("warps", [1, 4])
def test_what_communicates_is_convergent(sm, warps):
    seen = set()
    for make in CASES.values():
        for name, attributes in talking_calls(llvm_ir(make().text, sm, warps)):
            assert "convergent" in attributes.split(), name
            seen.add(name)
    wanted = ["llvm.nvvm.shfl.sync.bfly", "bar.warp.sync" if warps == 1 else "bar.sync"]
    for name in [*wanted, *(["llvm.nvvm.redux.sync"] if sm >= 80 else [])]:
        assert any(name in found for found in seen), (name, seen)


def test_the_search_finds_them():
    """Not convergent: an attribute group without the word, or none."""
    text = """
  call void asm sideeffect "bar.sync 0;", "~{memory}"() #1
  %1 = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %0, i32 1, i32 31)
  %2 = call i32 asm "mad.lo.s32 $0, $1, $2, $3;", "=r,r,r,r"(i32 %0, i32 %0, i32 %1) #1
declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, i32) #2
attributes #1 = { nounwind }
attributes #2 = { convergent nocallback nounwind }
"""
    assert [("convergent" in said.split()) for _, said in talking_calls(text)] == [False, True]


@triton.jit
def wrapping_products(x_ptr, y_ptr, n, count, N: tl.constexpr):
    rows = tl.arange(0, N)
    columns = (tl.program_id(0) * N + rows) % n
    pointers = x_ptr + rows[:, None] * n + columns[None, :]
    sums = tl.zeros([N, N], tl.float32)
    for _ in range(count):
        tile = tl.load(pointers)
        sums = tl.dot(tile, tile, sums)
        pointers += N * n
    tl.store(y_ptr + rows[:, None] * N + rows[None, :], sums)


def test_addresses_that_nothing_reads_are_not_carried():
    """Where a thread copies 16 bytes it uses the first of its eight pointers."""
    number = ("i32", 16)
    text = ir(wrapping_products, ("*fp16", 16), ("*fp32", 16), number, number, N=128)
    llir = llvm_ir(text, 90, 8)
    assert llir.count("= phi ptr") == 8
    assert llir.count("cp.async.cg") == 8 * 3  # two of them before the loop


LIBRARY = """
kernel @library(%x: ptr<f32>, %y: ptr<f32>) {
  %value = load %x : f32
  %result = extern_call %value {symbol = "acosh"} : f32
  store %y, %result
  return
}
"""


def test_passes_have_the_target():
    """Only with the target machine attached does LLVM know what NVIDIA's intrinsics are: it makes its own of them."""
    try:
        text = llvm_ir(LIBRARY, 80, 1)
    except ValueError as error:
        assert "libdevice, which is not found" in str(error)
        pytest.skip("no libdevice on this machine")
    assert 'target triple = "nvptx64' in text
    assert re.search(r"call \S+ @llvm\.fma\.f32", text)
    assert not re.search(r"call \S+ @llvm\.nvvm\.fma\.rn\.f", text)
