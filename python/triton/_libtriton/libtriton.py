"""``triton._C.libtriton``: tile IR as objects, for programs that look into kernels."""

from triton.compiler.view import ir
from triton.runtime.jit import native_specialize_impl


def get_cache_invalidating_env_vars():
    """The variables of the environment that decide what is compiled, with their values."""
    import os

    names = "STRICT CPU_ARCH DEBUG SANITIZE_OVERFLOW DEFAULT_FP_FUSION FORCE_DISABLE_FP_FUSION"
    return {name: os.environ[name] for name in (f"TRITON_{each}" for each in names.split()) if name in os.environ}


_ABSENT = {
    "gluon_ir": "Gluon is not supported",
    "linear_layout": "triton.LinearLayout has layouts",
    "llvm": "LLVM is linked in, and has no bindings; kernel.asm['llir'] is a kernel's LLVM IR",
    "passes": "the passes run in C; TRITON_DUMP shows what each does",
}


def __getattr__(name):
    if name == "nvidia":
        from triton._libtriton import nvidia

        return nvidia
    reason = f": {_ABSENT[name]}" if name in _ABSENT else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{reason}")


__all__ = ["get_cache_invalidating_env_vars", "ir", "native_specialize_impl"]
