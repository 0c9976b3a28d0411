"""What is known of a kind of target before anything is compiled for it: its options and their defaults."""

import re
from types import SimpleNamespace

from ..compiler.compiler import DEFAULTS
from ..runtime.target import GPUTarget, target_name

# What `BaseBackend.parse_options` says of a target beside the options of a compilation.
FACTS = {
    "backend_name": lambda target: target.backend,
    "arch": lambda target: f"sm{target.arch}" if target.warp_size > 1 else target.arch,
    "warp_size": lambda target: target.warp_size,
    "supported_fp8_dtypes": lambda target: ("fp8e4b15", "fp8e4b8", "fp8e4nv", "fp8e5", "fp8e5b16"),
    "allowed_dot_input_precisions": lambda target: ("tf32", "tf32x3", "ieee"),
    "extern_libs": lambda target: (),
}


class Options(SimpleNamespace):
    """The options of a compilation with their defaults, as attributes."""

    def hash(self):
        """A text that differs where an option does."""
        return "-".join(f"{name}={value}" for name, value in sorted(vars(self).items()))


class BaseBackend:
    """The compiler for one target; see `triton.compiler.compiler.make_backend`."""

    names = ()  # of GPUTarget.backend

    def __init__(self, target):
        if not self.supports_target(target):
            raise ValueError(f"{type(self).__name__} does not compile for {target!r}")
        self.target = target

    @classmethod
    def supports_target(cls, target):
        return target.backend in cls.names

    def hash(self):
        """A text that differs where two targets' code does."""
        return target_name(self.target)

    def parse_options(self, options):
        """The options with the defaults of those that are not given; what is no option is left out."""
        info = {name: of(self.target) for name, of in FACTS.items()} | DEFAULTS | {"debug": False}
        return Options(**info | {name: value for name, value in options.items() if name in info})

    @classmethod
    def attr_key(cls, divisibility):
        """What stands for a fact about an argument: "D" for a multiple of 16, else None or with the number."""
        if isinstance(divisibility, tuple):
            return tuple(map(cls.attr_key, divisibility))
        divisor = divisibility and abs(divisibility)
        return {None: None, 1: None, 16: "D"}.get(divisor, f"D{divisor}")

    @staticmethod
    def get_int_specialization(value, align=True, **_):
        """The key of an integer: "D" for a multiple of 16 where that counts."""
        return "D" if align and value % 16 == 0 else ""

    @staticmethod
    def get_tensor_specialization(tensor, align=True, **_):
        """The same of an array, by its address."""
        return "D" if align and tensor.data_ptr() % 16 == 0 else ""

    @staticmethod
    def parse_attr(key):
        """The facts about an argument that an `attr_key` stands for, as `ASTSource` takes them; none of another text,
        as torch asks with the values of compile-time parameters."""
        found = re.fullmatch(r"D(\d*)", key)
        return [["tt.divisibility", int(found[1] or 16)]] if found else []

    # ---- what builds TTIR without compiling it (see triton.compiler.trace) needs nothing of the backend

    def load_dialects(self, context):
        pass

    def get_codegen_implementation(self, options=None):
        return {}

    def get_module_map(self):
        return {}


class CPUBackend(BaseBackend):
    """The compiler for the processor, and for the simulator that runs on it."""

    names = ("cpu", "sim")


class CUDABackend(BaseBackend):
    """The compiler for NVIDIA GPUs."""

    names = ("cuda",)


__all__ = ["BaseBackend", "CPUBackend", "CUDABackend", "GPUTarget", "Options"]
