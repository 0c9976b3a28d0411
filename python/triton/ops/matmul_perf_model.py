"""A rough model of products of matrices on GPUs, to choose configurations with::

    @triton.autotune(configs, key=["M", "N", "K"], prune_configs_by={
        "early_config_prune": early_config_prune, "perf_model": estimate_matmul_time, "top_k": 10})

Kernels name their operands A, B, C, their extents M, N, K, and blocks BLOCK_M, BLOCK_N, BLOCK_K, SPLIT_K.
"""

from math import ceil

from ..runtime.driver import driver
from ..testing import get_dram_gbps, get_max_simd_tflops, get_max_tensorcore_tflops


def _properties(device):
    return driver.active.utils.get_device_properties(driver.active.get_current_device() if device is None else device)


def get_clock_rate_in_khz():
    """The highest clock of the current GPU's multiprocessors."""
    return _properties(None)["sm_clock_rate"]


def _share(device, num_ctas, num_warps, per_quarter):
    """The part of a GPU that a grid keeps busy: one program is no more than its warps."""
    subcores = _properties(device)["multiprocessor_count"] * 4
    return min(subcores, ceil(num_ctas * min(num_warps, per_quarter))) / subcores


def get_tensorcore_tflops(device, num_ctas, num_warps, dtype):
    """10¹² operations a second that tensor cores reach with so many programs."""
    return _share(device, num_ctas, num_warps, 4) * get_max_tensorcore_tflops(dtype, device=device)


def get_simd_tflops(device, num_ctas, num_warps, dtype):
    """The same of ordinary arithmetic, which takes four warps for each quarter of a multiprocessor."""
    return _share(device, num_ctas, num_warps / 4, 4) * get_max_simd_tflops(dtype, device=device)


def get_tflops(device, num_ctas, num_warps, dtype):
    """That of what a product of this type runs on; float64 is taken for half of ordinary float32."""
    if "64" in str(dtype):
        return get_simd_tflops(device, num_ctas, num_warps, "float32") / 2
    return get_tensorcore_tflops(device, num_ctas, num_warps, dtype)


def estimate_matmul_time(
    num_warps, num_stages, A, B, C, M, N, K, BLOCK_M, BLOCK_N, BLOCK_K, SPLIT_K=1, debug=False, **kwargs
):
    """Milliseconds that a product of ``[M, K]`` and ``[K, N]`` takes: the longer of computing and loading, and storing.

    A tile is loaded from memory once for each wave of programs, and from the second-level cache (four times as fast)
    for the others. `num_stages` is not looked at.
    """
    device = driver.active.get_current_device()
    properties, dtype, size = _properties(device), A.dtype, A.element_size()
    across, down = ceil(M / BLOCK_M), ceil(N / BLOCK_N)
    programs = across * down * SPLIT_K
    rounded = across * BLOCK_M * down * BLOCK_N * K  # with what is computed and thrown away
    compute = 2 * rounded / (get_tflops(device, programs, num_warps, dtype) * 1e12) * 1e3

    multiprocessors = properties["multiprocessor_count"]
    bandwidth = get_dram_gbps(device) * 1e6 * min(1, 0.2 + 0.8 * programs / multiprocessors)  # bytes in a millisecond
    waves = ceil(programs / multiprocessors)
    loaded = programs * K / SPLIT_K * (BLOCK_M + BLOCK_N) * size
    from_memory = min(loaded, waves * (M + N) * K * size)
    load = from_memory / bandwidth + (loaded - from_memory) / (4 * bandwidth)
    store = M * N * C.element_size() * SPLIT_K / bandwidth
    if SPLIT_K > 1:  # they are added up atomically in what was zeros before
        store += M * N * C.element_size() / bandwidth + store
    total = max(compute, load) + store
    if debug:
        print(f"{total:.4f} ms: computing {compute:.4f}, loading {load:.4f}, storing {store:.4f}; {programs} programs")
    return total


def early_config_prune(configs, named_args, **kwargs):
    """The configurations that can run and differ: those whose operands' blocks fit into shared memory in `num_stages`
    stages, and of those that differ in their stages alone the one with the most and its neighbour below.

    On a CPU there is nothing to fit into, and all stay.
    """
    limit = _properties(None).get("max_shared_mem", 0)
    if driver.active.get_current_target().backend == "cpu" or not limit:
        return configs
    size = named_args["A"].element_size()
    fitting = {}
    for config in configs:
        values = config.kwargs
        rows = values["BLOCK_M"] + values["BLOCK_N"]
        if rows * values["BLOCK_K"] * size * config.num_stages <= limit:
            fitting.setdefault((*sorted(values.items()), config.num_warps), []).append(config)
    return [each for alike in fitting.values() for each in sorted(alike, key=lambda config: config.num_stages)[-2:]]
