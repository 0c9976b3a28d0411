"""What torch finds of us, how it keeps and sends what we compile, and its ways of launching on a GPU."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import triton

torch = pytest.importorskip("torch", reason="torch is not installed; the extra `test` has it")
from torch_graphs import Inputs, compiled_by_us  # noqa: E402

F = torch.nn.functional
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def softmax_and_sums(x):
    return torch.softmax(x, -1), x.sum(0), x.cumsum(1)


def close(result, expected):
    torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-4)


def gpu_only(device):
    if device != "cuda":
        pytest.skip("it takes a GPU: --target cuda")


# ---- what torch finds


@pytest.mark.host
def test_what_torch_finds():
    from torch._inductor.runtime import triton_compat
    from torch.utils import _triton

    assert _triton.has_triton() and _triton.has_triton_package()
    assert len(_triton.triton_hash_with_backend()) == 64
    assert triton_compat.CompiledKernel is triton.compiler.CompiledKernel
    assert triton_compat.triton_key() == triton.runtime.cache.triton_key()
    assert triton_compat.HAS_TRITON and triton_compat.libdevice and triton_compat._log2
    assert issubclass(triton.runtime.Autotuner, triton_compat.KernelInterface)


@pytest.mark.host
@pytest.mark.slow
@pytest.mark.parametrize("module", ["torch.export", "torch.sparse", "torch._inductor.utils"])
def test_modules_of_torch(module):
    code = f"import {module}; import torch; torch.export.export(torch.nn.Linear(3, 2), (torch.ones(1, 3),))"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)


@pytest.mark.host
@pytest.mark.slow
def test_the_modules_of_torchs_own_tests():
    pytest.importorskip("expecttest", reason="torch's own tests need expecttest, which is not installed")
    code = "import torch.testing._internal.inductor_utils as utils; assert utils.HAS_CPU"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)


@pytest.mark.slow
def test_export_and_compile(device):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.norm = torch.nn.Linear(16, 32), torch.nn.LayerNorm(32)

        def forward(self, x):
            return F.gelu(self.norm(self.linear(x)))

    model, x = Model().to(device), Inputs(device).normal(10, 16)
    exported = torch.export.export(model, (x,))
    close(compiled_by_us(exported.module(), x), model(x))


# ---- processes that compile, and caches


@pytest.mark.slow
def test_kernels_compiled_by_other_processes(device):
    """They are pickled there and loaded here."""
    from torch._dynamo.utils import counters
    from torch._inductor.async_compile import AsyncCompile, shutdown_compile_workers

    with torch._inductor.config.patch(compile_threads=2):
        try:
            AsyncCompile.wait_pool_ready()
            x = Inputs(device).normal(50, 60)
            counters.clear()
            compiled = torch.compile(softmax_and_sums)
            close(compiled(x), softmax_and_sums(x))
            close(compiled(x * 2), softmax_and_sums(x * 2))
            assert AsyncCompile.use_process_pool() and counters["inductor"]["async_compile_cache_miss"] >= 2
        finally:
            shutdown_compile_workers()


@pytest.mark.slow
def test_compiled_graphs_in_a_cache(device):
    """A program that runs again finds its graph, and in it its kernels."""
    from torch._dynamo.utils import counters

    x = Inputs(device).normal(50, 60)
    with torch._inductor.config.patch(fx_graph_cache=True):
        close(torch.compile(softmax_and_sums)(x), softmax_and_sums(x))
        torch._dynamo.reset()
        torch._inductor.codecache.PyCodeCache.cache_clear()
        counters.clear()
        close(torch.compile(softmax_and_sums)(x), softmax_and_sums(x))
        assert counters["inductor"]["fxgraph_cache_hit"] == 1


# ---- more of the compiler


@pytest.mark.slow
@pytest.mark.parametrize("coordinates", [False, True])
def test_max_autotune(coordinates, device):
    def function(x, weight):
        return F.gelu(x @ weight) + 1, torch.softmax(x, -1)

    make = Inputs(device)
    x, weight = make.normal(128, 64), make.normal(64, 96)
    options = {"max_autotune_pointwise": True, "coordinate_descent_tuning": coordinates}
    options |= {"max_autotune_gemm": True, "max_autotune_gemm_backends": "TRITON"}
    options["max_autotune"] = device == "cuda"
    if device == "cpu":  # torch 2.13 writes text that is no Python for these benchmarks
        options["benchmark_epilogue_fusion"] = False
    result = compiled_by_us(function, x, weight, options=options)
    torch.testing.assert_close(result, function(x, weight), rtol=1e-3, atol=1e-3)


@pytest.mark.slow
def test_foreach_and_optimizers(device):
    def steps(compiler):
        torch.manual_seed(0)
        parameters = [torch.nn.Parameter(Inputs(device).normal(n, 7)) for n in (3, 20, 5)]
        optimizer = torch.optim.AdamW(parameters, lr=0.01, foreach=True)
        for parameter in parameters:
            parameter.grad = parameter.detach().sin()
        step = compiler(optimizer.step)
        for _ in range(3):
            step()
        return [parameter.detach() for parameter in parameters]

    close(steps(torch.compile), steps(lambda function: function))


@pytest.mark.slow
def test_assertions_of_indexing(device):
    """An index that is too large ends the program where the kernel reads with it, on the CPU as an exception."""
    if device == "cuda":
        pytest.skip("it would end the context of this process")
    table = Inputs(device).normal(10, 4)
    compiled = torch.compile(lambda table, indices: table[indices] * 2)
    good = torch.tensor([1, 9, -1])
    close(compiled(table, good), table[good] * 2)
    with pytest.raises(triton.DeviceAssertionError, match="index out of bounds"):
        compiled(table, torch.tensor([1, 10, 3]))


@pytest.mark.host
@pytest.mark.slow
def test_the_benchmark(tmp_path):
    """It runs without a GPU too, and compares itself with an earlier run."""
    command = [sys.executable, str(BENCHMARKS / "inductor.py"), "--only", "bias and gelu", "--json"]
    subprocess.run([*command, str(tmp_path / "first.json")], check=True, capture_output=True, timeout=600)
    more = ["--peer", str(tmp_path / "first.json")]
    subprocess.run([*command, str(tmp_path / "second.json"), *more], check=True, capture_output=True, timeout=600)
    first, second = (json.loads((tmp_path / f"{name}.json").read_text())["rows"] for name in ("first", "second"))
    assert [row["case"] for row in second] == ["bias and gelu", "compile, bias and gelu", "kernels, bias and gelu"]
    assert [row["peers"]["peer"] for row in second] == [row["ours"] for row in first]
    assert second[0]["goal"] and second[0]["peers"]["eager"] > 0
    assert [text.split()[0] for text in second[0]["chosen"]] == ["XBLOCK"]


# ---- on a GPU


@pytest.mark.slow
@pytest.mark.parametrize("backward", [False, True])
def test_flex_attention(backward, device):
    gpu_only(device)
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    make = Inputs(device)
    q, k, v = (make.normal(1, 2, 256, 64).requires_grad_(backward) for _ in range(3))
    block_mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 256, 256, device=device)

    def function(q, k, v):
        return flex_attention(q, k, v, lambda score, b, h, i, j: score + (i - j) / 64, block_mask)

    def results(run):
        out = run(q, k, v)
        return (out, *torch.autograd.grad(out.sin().sum(), (q, k, v))) if backward else (out,)

    torch.testing.assert_close(results(torch.compile(function)), results(function), rtol=2e-2, atol=2e-2)


@pytest.mark.slow
def test_cuda_graphs(device):
    gpu_only(device)
    from torch._dynamo.utils import counters

    counters.clear()
    compiled = torch.compile(softmax_and_sums, mode="reduce-overhead")
    for seed in range(5):
        x = Inputs(device).normal(64, 100) + seed
        torch.compiler.cudagraph_mark_step_begin()
        close([each.clone() for each in compiled(x)], list(softmax_and_sums(x)))
    assert not counters["inductor"]["cudagraph_skips"]


@pytest.mark.slow
def test_static_launcher(device):
    """torch launches the cubin itself, and refuses to go on (strict) where it cannot."""
    gpu_only(device)
    from triton.compiler.compiled import cuda_tool

    if not cuda_tool("ptxas"):
        pytest.skip("there is no ptxas to make the cubin")
    config = torch._inductor.config
    prefix = (
        "use_static_triton_launcher" if hasattr(config, "use_static_triton_launcher") else "use_static_cuda_launcher"
    )
    strict = prefix.replace("use_", "strict_")
    x = Inputs(device).normal(64, 100)
    with config.patch({prefix: True, strict: True}):
        close(compiled_by_us(softmax_and_sums, x), softmax_and_sums(x))


@pytest.mark.slow
def test_launches_on_streams(device):
    gpu_only(device)
    compiled = torch.compile(softmax_and_sums)
    x = Inputs(device).normal(64, 100)
    compiled(x)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        result = compiled(x * 3)
    torch.cuda.current_stream().wait_stream(stream)
    close(result, softmax_and_sums(x * 3))
