"""Variables of the environment: flags, and those of the public API that mean nothing here, of which one warning says
what does."""

import os

INSTEAD = {
    "DISABLE_LLVM_OPT": "there is no such switch",
    "DISABLE_PTXAS_OPT": "the driver compiles PTX",
    "LLVM_ENABLE_TIMING": "TRITON_TIMING=1 prints how long passes take, kernel.timings how long LLVM does",
    "LLVM_EXTRACT_DI_LOCAL_VARIABLES": "TRITON_INTERPRET=1 shows a kernel's variables in a debugger",
    "LLVM_IR_ENABLE_DUMP": 'kernel.asm["llir"] of a compiled kernel is its LLVM IR',
    "MLIR_ENABLE_DIAGNOSTICS": "errors and warnings always have their places",
    "MLIR_ENABLE_DUMP": "TRITON_DUMP=after:all prints the IR after each pass that changed it",
    "MLIR_ENABLE_TIMING": "TRITON_TIMING=1 prints how long each pass takes",
    "NVPTX_ENABLE_DUMP": 'kernel.asm["ptx"] of a compiled kernel is its PTX',
    "PTXAS_OPTIONS": "the driver compiles PTX, with its own options",
    "TRITON_DISABLE_LINE_INFO": "line information costs compiled kernels nothing, and is always there",
    "TRITON_DUMP_PTXAS_LOG": "compiled.n_regs, n_spills and metadata.shared say what a kernel takes",
    "TRITON_ENABLE_ASAN": "TRITON_DEBUG=1 checks accesses on every target",
    "TRITON_ENABLE_LLVM_DEBUG": "TRITON_DUMP=after:all prints the IR after each pass that changed it",
    "TRITON_F32_DEFAULT": "tl.dot(..., input_precision=) says how float32 is multiplied",
    "TRITON_FPSAN_HOMOMORPHIC_CASTS": "there is no instrumentation of kernels",
    "TRITON_FRONT_END_DEBUGGING": "an error has its place in the kernel, and as its cause what Python raised",
    "TRITON_INSTRUMENTATION_MODE": "there is no instrumentation of kernels",
    "TRITON_LLVM_DEBUG_ONLY": "TRITON_DUMP=after:PASS prints the IR after one pass",
    "TRITON_MOCK_PTX_VERSION": "the version of PTX is that of the driver; triton.compile takes the option ptx_version",
    "TRITON_OVERRIDE_ARCH": "TRITON_TARGET=cuda:90 says what kernels are compiled for",
    "TRITON_REPRODUCER_PATH": "an error of the compiler names the file that its IR was written to",
    "TRITON_STORE_BINARY_ONLY": "other stages are made when they are asked for",
    "USE_IR_LOC": "lines are those of the Python source",
}


def is_on(text):
    """What the text of a flag says."""
    return text.lower() not in ("", "0", "n", "no", "off", "false")


def flag(name, otherwise=False):
    """A flag of the environment, as `tt_is_set` reads it in C; `otherwise` where the variable is not set."""
    text = os.environ.get(name)
    return is_on(text) if text else otherwise


def warn_of_others():
    """Once a process, for what the program's environment asks in vain."""
    import warnings

    for name, instead in INSTEAD.items():
        if flag(name):
            warnings.warn(f"{name} has no effect: {instead}", RuntimeWarning, stacklevel=5)
