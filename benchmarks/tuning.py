"""Seconds that autotuning a matrix product takes from nothing: of 8 and of 64 configurations. (`space.py` has spaces.)

Each contender is a fresh process with empty caches: ours, an installed Triton (--peer-path says where), and "in turn",
which is our compiler with what is usual elsewhere: compile a configuration, time it for 25 + 100 ms, go on to the next.
`best` is how long a launch with the chosen configuration takes, by one clock for all.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import report

GOALS = {8: 5, 64: 8}  # times as fast
OURS = str(report.ROOT / "python")


# ---- in the child: works with any Triton


def tiles(count, on_gpu):
    """(BM, BN, BK, warps, stages), from what is usual to what is odd."""
    if not on_gpu:
        sizes = [(m, n, k) for k in (128, 64, 32, 256) for m in (64, 128, 32, 256) for n in (128, 64, 256, 32)]
        return [(*size, 1, 1) for size in sizes][:count]
    usual = [
        (128, 256, 64, 8, 3),
        (256, 128, 64, 8, 3),
        (128, 128, 64, 8, 4),
        (128, 128, 64, 4, 4),
        (128, 64, 64, 4, 4),
        (64, 128, 64, 4, 4),
        (64, 64, 64, 4, 5),
        (128, 128, 128, 8, 2),
    ]
    more = [
        (m, n, k, warps, stages)
        for m, n in ((128, 128), (64, 256), (256, 64), (64, 64), (32, 128))
        for k in (32, 64)
        for warps in (4, 8)
        for stages in (2, 3, 4)
    ]
    return list(dict.fromkeys([*usual, *more]))[:count]


def make_kernel():
    import triton
    import triton.language as tl

    def product(
        a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c,
        BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
    ):  # fmt: skip
        program = tl.program_id(0)
        across = tl.cdiv(N, BN)
        band = program // (GROUP * across)
        height = min(tl.cdiv(M, BM) - band * GROUP, GROUP)
        inside = program % (GROUP * across)
        rows = (band * GROUP + inside % height) * BM + tl.arange(0, BM)
        columns = (inside // height) * BN + tl.arange(0, BN)
        ks = tl.arange(0, BK)
        a = a_ptr + (rows % M)[:, None] * stride_a + ks[None, :]
        b = b_ptr + ks[:, None] * stride_b + (columns % N)[None, :]
        sums = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(0, K, BK):
            x = tl.load(a, mask=ks[None, :] < K - k, other=0.0)
            y = tl.load(b, mask=ks[:, None] < K - k, other=0.0)
            sums = tl.dot(x, y, sums)
            a += BK
            b += BK * stride_b
        c = c_ptr + rows[:, None] * stride_c + columns[None, :]
        tl.store(c, sums.to(c_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N))

    if hasattr(triton, "tunable"):  # others look annotations up when they compile, and know none but their own
        sizes = dict.fromkeys(("BM", "BN", "BK"), triton.tunable(32, 256))
        product.__annotations__.update(sizes, GROUP=triton.tunable([1, 8]))
    return triton.jit(product)


def child(how, count, size):
    """Prints the seconds of the first launch, the milliseconds of later ones, and the configurations there were."""
    import torch

    import triton

    on_gpu = torch.cuda.is_available()
    device, dtype = ("cuda", torch.float16) if on_gpu else ("cpu", torch.float32)
    a, b = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    c = torch.empty_like(a)
    (a @ b).sum().item()  # libraries and contexts are there
    arguments = a, b, c, size, size, size, size, size, size
    kernel = make_kernel()
    configs = [
        triton.Config({"BM": m, "BN": n, "BK": k, "GROUP": 8}, num_warps=warps, num_stages=stages)
        for m, n, k, warps, stages in tiles(count, on_gpu)
    ]

    def grid(meta):
        return (triton.cdiv(size, meta["BM"]) * triton.cdiv(size, meta["BN"]),)

    def in_turn():
        times = {}
        for config in configs:
            try:
                times[config] = triton.testing.do_bench(lambda c=config: kernel[grid](*arguments, **c.all_kwargs()))
            except triton.OutOfResources:
                continue
        return min(times, key=times.get), len(times)

    def tuned():
        tuner = triton.autotune(configs, key=["M", "N", "K"])(kernel)
        tuner[grid](*arguments)
        for timings in getattr(tuner, "timings", ())[-1:]:
            compiling.append(timings["compile_seconds"])
        return tuner.best_config, len(configs)

    compiling = []
    start = time.perf_counter()
    best, considered = in_turn() if how == "in turn" else tuned()
    if on_gpu:
        torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    options = {name: value for name, value in best.all_kwargs().items() if value is not None}
    expected = a.float() @ b.float()
    kernel[grid](*arguments, **options)
    assert torch.allclose(c.float(), expected, rtol=2e-2, atol=size * 2e-3), "the product is wrong"
    launch = triton.testing.do_bench(
        lambda: kernel[grid](*arguments, **options), warmup=50, rep=300, return_mode="min" if not on_gpu else "median"
    )
    print(
        json.dumps(
            {"seconds": seconds, "launch": launch, "considered": considered, "best": str(best), "compiling": compiling}
        )
    )


# ---- in the parent


def run(how, count, size, path):
    with tempfile.TemporaryDirectory() as cache:
        others = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry and entry != OURS]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([path, *others] if path else others),
            "TRITON_CACHE_DIR": cache,
            "CUDA_CACHE_DISABLE": "1",
        }
        command = [sys.executable, __file__, "--child", how, str(count), str(size)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        print(f"{how}, {count}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])


def median_of(runs):
    """The run in the middle, of those that worked."""
    worked = sorted((each for each in runs if each), key=lambda each: each["seconds"])
    return worked[len(worked) // 2] if worked else None


def main():
    results = report.Report(
        "Autotuning a matrix product from nothing (s)",
        arguments=[
            ("--peer-path", {"default": "", "help": "folder in which an installed Triton lies"}),
            ("--size", {"type": int, "default": 0, "help": "rows and columns (4096 on a GPU, 512 on a CPU)"}),
            ("--repeat", {"type": int, "default": 3, "help": "processes for each figure (3)"}),
        ],
    )
    options = results.options
    size = options.size or (4096 if os.path.exists("/dev/nvidiactl") else 512)
    for count in (8, 64):
        if not results.wants(f"{count} configurations"):
            continue
        contenders = {"ours": ("ours", OURS)}
        if options.peer_path:
            contenders["upstream"] = ("upstream", options.peer_path)
        contenders["in turn"] = ("in turn", OURS)
        add(results, f"{count} configurations", contenders, count, size, GOALS[count], options.repeat)
    results.finish()


def add(results, case, contenders, count, size, goal, repeat):
    """Contenders take turns, so that all meet the same machine."""
    runs = {name: [] for name in contenders}
    for _ in range(repeat):
        for name, (how, path) in contenders.items():
            runs[name].append(run(how, count, size, path))
    found = {name: median_of(each) for name, each in runs.items()}
    ours = found.pop("ours")
    if ours is None:
        results.failed = True
        return
    peers = {name: each["seconds"] for name, each in found.items() if each}
    fastest = min(statistics.median(each["launch"] for each in runs[name] if each) for name in ("ours", *peers))
    launch = statistics.median(each["launch"] for each in runs["ours"] if each)
    parts = {
        "compiling": sum(ours["compiling"]),
        "points": ours["considered"],
        "best (ms)": launch,
        "of the fastest": fastest / launch,
    }
    results.add(f"{case} of {size}³", "s", ours["seconds"], peers, goal, parts=parts, best=ours["best"])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        main()
