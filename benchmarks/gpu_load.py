"""What loading a compiled kernel takes on a GPU: from PTX, with and without the driver's own cache, and from a cubin.

    python benchmarks/gpu_load.py [--repeat 5]

This is what a first launch takes beside the cache of compiled kernels, which holds PTX (docs/design.md, section 11).
The registers show whether ptxas and the driver make the same code. Needs a GPU, and ptxas for the cubins.
"""

import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import kernels
import report

CASES = "softmax", "matmul", "attention"


def code(case, target):
    """PTX and, where there is ptxas, a cubin of a case, and the name of its entry."""
    from triton.compiler.compiled import assemble

    kernel, grid, arguments, options = kernels.CASES[case]()
    os.environ["TRITON_TARGET"] = target
    compiled = kernel.warmup(*map(as_dtype, arguments), **options, grid=grid)
    ptx = compiled.asm["ptx"]
    return ptx.encode() + b"\0", assemble(ptx), kernel.__name__


def as_dtype(argument):
    """A dtype stands for an array: there is none on the GPU."""
    return getattr(argument, "dtype", argument)


def child(path, entry):
    """Loads a module in this fresh process: milliseconds and registers."""
    cuda, context, module, function = (
        ctypes.CDLL("libcuda.so.1"),
        ctypes.c_void_p(),
        ctypes.c_void_p(),
        ctypes.c_void_p(),
    )
    registers = ctypes.c_int()
    assert not cuda.cuInit(0) and not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    assert not cuda.cuCtxSetCurrent(context)
    image = Path(path).read_bytes()
    start = time.perf_counter()
    assert not cuda.cuModuleLoadDataEx(ctypes.byref(module), image, 0, None, None)
    assert not cuda.cuModuleGetFunction(ctypes.byref(function), module, entry.encode())
    taken = (time.perf_counter() - start) * 1e3
    assert not cuda.cuFuncGetAttribute(ctypes.byref(registers), 4, function)
    print(json.dumps([taken, registers.value]))


def load(path, entry, repeat, **environment):
    samples = []
    for _ in range(repeat):
        command = [sys.executable, __file__, "--child", path, entry]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | environment)
        samples.append(json.loads(done.stdout))
    return statistics.median(sample[0] for sample in samples), samples[0][1]


def main():
    from triton.runtime.target import target_name

    results = report.Report(
        "Loading a kernel on a GPU (ms)",
        arguments=[("--repeat", {"type": int, "default": 5, "help": "processes for each figure (5)"})],
    )
    repeat, target = results.options.repeat, target_name()
    with tempfile.TemporaryDirectory() as folder:
        for case in filter(results.wants, CASES):
            ptx, cubin, entry = code(case, target)
            paths = {"ptx": ptx, "cubin": cubin}
            for name, data in paths.items():
                Path(folder, name).write_bytes(data or b"")
            cache = {"CUDA_CACHE_PATH": os.path.join(folder, f"driver-{case}")}
            cold, own = load(f"{folder}/ptx", entry, repeat, CUDA_CACHE_DISABLE="1")
            load(f"{folder}/ptx", entry, 1, **cache)
            warm, _ = load(f"{folder}/ptx", entry, repeat, **cache)
            other, registers = load(f"{folder}/cubin", entry, repeat, CUDA_CACHE_DISABLE="1") if cubin else (None, None)
            beside = {"PTX, driver's cache": warm, "cubin": other, "registers": own, "of the cubin": registers}
            results.add(case, "ms", cold, beside=beside)
    results.finish()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        main()
