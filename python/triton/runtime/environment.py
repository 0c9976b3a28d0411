"""Variables of the public API that mean nothing here: one warning says what does."""

import os

_INSTEAD = {
    "DISABLE_LLVM_OPT": "there is no such switch",
    "DISABLE_PTXAS_OPT": "the driver compiles PTX",
    "LLVM_ENABLE_TIMING": "TRITON_TIMING=1 prints how long passes take, kernel.timings how long LLVM does",
    "LLVM_IR_ENABLE_DUMP": 'kernel.asm["llir"] of a compiled kernel is its LLVM IR',
    "MLIR_ENABLE_DIAGNOSTICS": "errors and warnings always have their places",
    "MLIR_ENABLE_DUMP": "TRITON_DUMP=after:all prints the IR after each pass that changed it",
    "MLIR_ENABLE_TIMING": "TRITON_TIMING=1 prints how long each pass takes",
    "NVPTX_ENABLE_DUMP": 'kernel.asm["ptx"] of a compiled kernel is its PTX',
    "TRITON_DISABLE_LINE_INFO": "line information costs compiled kernels nothing, and is always there",
    "TRITON_ENABLE_ASAN": "TRITON_DEBUG=1 checks accesses on every target",
    "TRITON_ENABLE_LLVM_DEBUG": "TRITON_DUMP=after:all prints the IR after each pass that changed it",
    "TRITON_F32_DEFAULT": "tl.dot(..., input_precision=) says how float32 is multiplied",
    "TRITON_FRONT_END_DEBUGGING": "an error has its place in the kernel, and as its cause what Python raised",
    "TRITON_LLVM_DEBUG_ONLY": "TRITON_DUMP=after:PASS prints the IR after one pass",
    "TRITON_OVERRIDE_ARCH": "TRITON_TARGET=cuda:90 says what kernels are compiled for",
    "TRITON_REPRODUCER_PATH": "an error of the compiler names the file that its IR was written to",
    "TRITON_STORE_BINARY_ONLY": "other stages are made when they are asked for",
    "USE_IR_LOC": "lines are those of the Python source",
}


def warn_of_others():
    """Once a process, for what the program's environment asks in vain."""
    import warnings

    for name, instead in _INSTEAD.items():
        if os.environ.get(name, "0") not in ("", "0"):
            warnings.warn(f"{name} has no effect: {instead}", RuntimeWarning, stacklevel=5)
