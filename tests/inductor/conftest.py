"""torch.compile set so that its kernels are Triton's, on the CPU too. Nothing is kept between tests."""

import os
from unittest import mock

import pytest


@pytest.fixture(autouse=True)
def inductor(target, tmp_path_factory, monkeypatch):
    torch = pytest.importorskip("torch", reason="torch is not installed; the extra `test` has it")
    if target.startswith("cuda") and not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    import torch._dynamo
    import torch._inductor.config
    import torch._inductor.runtime.triton_heuristics as heuristics

    if target.startswith("sim"):  # torch itself knows no such target
        monkeypatch.setattr(heuristics, "GPUTarget", lambda *parts: target)
    torch._dynamo.reset()
    torch.manual_seed(0)
    settings = {"cpu_backend": "triton", "compile_threads": 1, "fx_graph_cache": False, "autotune_local_cache": False}
    with mock.patch.dict(os.environ), torch._inductor.config.patch(settings):
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(tmp_path_factory.mktemp("inductor"))
        os.environ.pop("TRITON_CACHE_DIR", None)  # which torch sets
        yield
    torch._dynamo.reset()
