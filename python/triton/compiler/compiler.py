"""What Python does around a compilation: its source, options and names before it."""

import os
import re
from collections.abc import Mapping
from types import SimpleNamespace

from .. import _C
from ..errors import OptionError, OutOfResources, TargetError  # noqa: F401
from ..runtime.environment import flag
from ..runtime.target import GPUTarget, target_name, target_of
from .compiled import CompiledKernel

DEFAULTS = {
    "num_warps": 4,
    "num_stages": 3,
    "num_ctas": 1,
    "maxnreg": None,
    "ptx_version": None,
    "choices": "",
    "enable_fp_fusion": True,
    "sanitize_overflow": True,
    "launch_cooperative_grid": False,
    "launch_pdl": False,
}


# Options that hold unless a launch or the environment says otherwise.
_SWITCHES = {"enable_fp_fusion": "TRITON_DEFAULT_FP_FUSION", "sanitize_overflow": "TRITON_SANITIZE_OVERFLOW"}


def describe(kernel, signature, options, target, standalone):
    """What is known of a kernel before it is compiled; the frontend gets it as the options.

    :param signature: as in the frontend's request, one entry a parameter.
    :param options: those that the launch gave.
    :param target: its name, "cpu" or "cuda:90".
    :param standalone: it is for callers who launch it with its arguments alone, so bounds are not checked.
    """
    info = dict(DEFAULTS, standalone=standalone, debug=False)
    info.update((name, flag(variable, True)) for name, variable in _SWITCHES.items())
    info.update((name, _checked(kernel, name, value)) for name, value in options.items() if value is not None)
    info["debug"] |= flag("TRITON_DEBUG")
    info["enable_fp_fusion"] &= not flag("TRITON_FORCE_DISABLE_FP_FUSION")
    _check_arch(kernel, info.pop("arch", None), target)
    _C.background_breathe()
    entries = dict(zip((param.name for param in kernel.params), signature, strict=True))
    info["signature"] = {name: types_of(entry) for name, entry in entries.items()}
    _C.background_breathe()
    info["divisibility"] = {name: divisibility_of(entry) for name, entry in entries.items()}
    info["constants"] = {name: entry.value for name, entry in entries.items() if _is_constant(entry)}
    info["options"] = options
    info["target"] = target
    info["reads_num_warps"] = False
    _C.background_breathe()
    info["name"] = _name(kernel, info)
    return info


def _checked(kernel, name, value):
    kind = _C.launch_options()[name]
    where = f"{kernel.__name__}(): option {name}={value!r}"
    if kind == "bool":
        return bool(value)
    if kind == "text":
        if not isinstance(value, str):
            raise TypeError(f"{where}: it must be a string")
        return value
    if not isinstance(value, int):
        raise TypeError(f"{where}: it must be an integer")
    if kind == "power of two" and (value < 1 or value & (value - 1)):
        raise OptionError(f"{where}: it must be a power of 2")
    if value < 0:
        raise OptionError(f"{where}: it cannot be negative")
    if value >= 2**31:
        raise OptionError(f"{where}: it cannot be larger than 2**31 - 1")
    return value


def _check_arch(kernel, arch, target):
    """The option names the compute capability that a launch is meant for: it can be no other one than the GPU's."""
    kind, _, capability = target.partition(":")
    if arch is not None and kind != "cpu" and re.sub("[^0-9]", "", arch) != capability:
        raise OptionError(
            f"{kernel.__name__}(): option arch={arch!r}: this launch is for compute capability {capability}; leave the "
            "option out, or compile for another GPU with triton.compile(..., target=GPUTarget(...))"
        )


def _is_constant(entry):
    return getattr(type(entry), "__triton_kind__", None) == "constexpr"


def types_of(entry):
    """The type of an entry: a string, "constexpr", or a tuple of types."""
    if _is_constant(entry):
        return "constexpr"
    return entry[0] if type(entry) is tuple else tuple(map(types_of, entry))


def spelled_type(entry):
    """The same as the public API has it in a signature, where a descriptor is "tensordesc<fp32[16, 16]>"."""
    if _is_constant(entry) or type(entry) is tuple:
        return types_of(entry)
    if _is_plain_descriptor(entry):
        element = entry.base[0][1:].removeprefix("k")
        return f"tensordesc<{element}{[extent.value for extent in entry.block_shape]}>"
    return tuple(map(spelled_type, entry))


def _is_plain_descriptor(entry):
    return isinstance(entry, _descriptor_type()) and entry[-2].value == "zero" and not entry[-1].value


def divisibility_of(entry):
    """The number that an entry's address or value is known to be a multiple of, negative if the value is; None for
    compile-time ones."""
    if _is_constant(entry):
        return None
    return entry[1] if type(entry) is tuple else tuple(map(divisibility_of, entry))


def _name(kernel, info):
    """The name of the variant: what @triton.jit(repr=...) makes of the specialisation."""
    return str(kernel.repr(SimpleNamespace(fn=kernel, signature=info["signature"], constants=info["constants"])))


class ASTSource:
    """A kernel with the types of its parameters spelled out, for `compile`.

    :param signature: for each parameter's name its type ("*fp32", "i32", "tensordesc<fp32[16, 16]>", ...), or
        "constexpr".
    :param constexprs: values of the compile-time parameters, by name or number; of items within tuples, by their place:
        (2, 0) is the first item of the parameter 2.
    :param attrs: {(number,): [("tt.divisibility", 16)]}: what is known of the values of parameters, or of such items.
    """

    def __init__(self, fn, signature, constexprs=None, attrs=None):
        self.fn = fn
        if not isinstance(signature, Mapping) or not all(isinstance(name, str) for name in signature):
            example = f"{{{(fn.arg_names or ['x'])[0]!r}: '*fp32', ...}}"
            raise TypeError(
                f"a signature has the type of each parameter by its name, {example}, and this is {signature!r}"
            )
        self.signature = dict(signature)
        self.attrs = {_single(place): dict(facts) for place, facts in (attrs or {}).items()}
        names = fn.arg_names
        places = {_single(place): value for place, value in (constexprs or {}).items()}
        self.items = {place: value for place, value in places.items() if isinstance(place, tuple)}
        self.constants = {
            names[place] if isinstance(place, int) else place: value
            for place, value in places.items()
            if place not in self.items
        }
        unknown = [name for name in (*self.signature, *self.constants) if name not in names]
        if unknown:
            raise ValueError(f"kernel {fn.__name__!r} has no parameter {unknown[0]!r}")

    @classmethod
    def of(cls, fn, info):
        """What a kernel was compiled from, by its `info`."""
        attrs = {
            (param.num,): [("tt.divisibility", number)]
            for param in fn.params
            if isinstance(number := info["divisibility"][param.name], int) and number != 1
        }
        return cls(fn, info["signature"], info["constants"], attrs)

    ext = "ttir"  # of the files that it stands for

    @property
    def name(self):
        return self.fn.__name__

    def parse_options(self):
        """Options that the source itself says: none."""
        return {}

    def hash(self):
        """A text that differs where the source, the types or the values of parameters do."""
        from hashlib import sha256

        parts = (
            self.fn.src,
            sorted(self.signature.items()),
            sorted(self.constants.items()),
            sorted(self.items.items()),
            sorted(self.attrs.items(), key=str),
        )
        return sha256("\n".join(map(repr, parts)).encode()).hexdigest()

    def make_ir(self, target, options, codegen_fns, module_map, context):
        """What the frontend makes of it for a target, to be looked at: a `triton.compiler.view.Module`."""
        from .view import Module

        asked = {name: value for name, value in vars(options).items() if name in DEFAULTS or name == "debug"}
        return Module(*_C.view_ir(self.fn, self.entries(to_be_analysed=True), asked, target_name(target)))

    def entries(self, to_be_analysed=False):
        """The signature as the frontend takes it.

        :param to_be_analysed: not to be compiled: a descriptor has the parameters that analysing programs know of.
        """
        from ..language import constexpr

        entries = []
        for param in self.fn.params:
            if param.name in self.constants:
                entries.append(constexpr(self.constants[param.name]))
            elif self.signature.get(param.name, "constexpr") != "constexpr":
                facts = self.attrs.get(param.num, self.attrs.get(param.name, {}))
                entries.append(self._entry(self.signature[param.name], (param.num,), facts, to_be_analysed))
            elif param.has_default:
                entries.append(constexpr(param.default))
            else:
                raise ValueError(f"kernel {self.name!r}: neither a type nor a value for parameter {param.name!r}")
        return tuple(entries)

    def _entry(self, kind, place, facts, to_be_analysed):
        """:param facts: of the parameter, which hold for its items too."""
        if isinstance(kind, (tuple, list)):
            places = [(*place, i) for i in range(len(kind))]
            return getattr(kind, "_make", list)(
                self._entry(item, at, self.attrs.get(at, facts), to_be_analysed)
                for item, at in zip(kind, places, strict=True)
            )
        if kind == "constexpr":
            from ..language import constexpr

            if place not in self.items:
                raise ValueError(f"kernel {self.name!r}: no value for the item {place} of its parameters")
            return constexpr(self.items[place])
        found = re.fullmatch(r"tensordesc<(\w+)\[([\d, ]+)\]>", kind)
        if not found:
            return kind, facts.get("tt.divisibility", 1)
        of = _analysed_descriptor if to_be_analysed else _descriptor
        return of(found[1], list(map(int, found[2].split(","))))


def _single(place):
    return place[0] if isinstance(place, tuple) and len(place) == 1 else place


def _descriptor(element, block_shape):
    """Of an array of any size, with the alignment that the public API asks for: 16 bytes."""
    from ..language import constexpr, dtype

    rank = len(block_shape)
    strides = [("i64", 16 // dtype(element).itemsize)] * (rank - 1) + [constexpr(1)]
    return _descriptor_of(element, [("i32", 1)] * rank, strides, block_shape)


def _analysed_descriptor(element, block_shape):
    """With one parameter for the array and two for each dimension, on which no address depends."""
    from ..language import constexpr

    rank = len(block_shape)
    shape, strides = [constexpr(1 << 30)] * rank, [constexpr(16)] * (rank - 1) + [constexpr(1)]
    return _descriptor_of(element, shape, strides, block_shape, [("i64", 1)] * (2 * rank))


def _descriptor_type():
    from ..language.descriptor import tensor_descriptor

    return tensor_descriptor


def _descriptor_of(element, shape, strides, block_shape, *more):
    from ..language import constexpr

    fields = ("*" + element, 16), shape, strides, list(map(constexpr, block_shape)), constexpr("zero"), constexpr(False)
    return tuple.__new__(_descriptor_type(), (*fields, *more))


def compile(src, target=None, options=None, *, signature=None, constants=None, any_launch=False):
    """Compile an `ASTSource`, a kernel with a signature, or a file of tile IR (``.ttir``), and return the
    `CompiledKernel`. No GPU is needed.

    :param target: a name ("cpu", "cuda:90") or a `GPUTarget`; that of the active driver when None.
    :param options: num_warps, num_stages, debug, ... ``ptx_version`` (83 for PTX 8.3) where the driver that is to take
        the code is not the one here. Its ``run`` checks with ``debug`` what the kernel itself asserts, but no bounds;
        and an assertion that fails on a GPU ends the context, like one of CUDA C++.
    :param signature: of a kernel: types by parameter (``"*fp32"``, ``"i32"``, ``"constexpr"``), as an `ASTSource` has.
    :param constants: values of its compile-time parameters.
    :param any_launch: offsets are computed in 64 bits where those of 32 do not do for every launch, instead of being
        checked at each one.
    """
    if isinstance(src, (str, os.PathLike)) and not signature:
        from .ir_source import IRSource

        src = IRSource(src)
    if not isinstance(src, ASTSource):
        if signature is None:
            raise TypeError(f"compile() takes an ASTSource, or a kernel with its signature, not {src!r}")
        src = ASTSource(src, signature, constants)
    from ..backends.compiler import FACTS

    kinds, options = dict.fromkeys(FACTS, "ignored") | _C.launch_options(), options or {}
    unknown = sorted(set(options) - set(kinds))
    if unknown:
        raise TypeError(f"unknown options: {', '.join(unknown)}")
    options = {name: value for name, value in options.items() if kinds[name] not in ("launch", "ignored")}
    compiled = _C.compile(src.fn, src.entries(), options, target_name(target), any_launch)
    compiled.src = src
    compiled._keep()
    return compiled


class LazyDict:
    """A dict that is made when it is asked for: `get` adds what the functions of `add` give."""

    def __init__(self, data):
        self.data, self.extras = data, []

    def add(self, function, args):
        self.extras.append((function, args))

    def get(self):
        while self.extras:
            function, args = self.extras.pop(0)
            self.data = self.data | function(*args)
        return self.data


def max_shared_mem(device):
    """Bytes of shared memory that a program may have on a device of the active driver."""
    from ..runtime.driver import driver

    return driver.active.utils.get_device_properties(device)["max_shared_mem"]


def make_backend(target):
    """What compiles for a `GPUTarget` (or the name of one): an object of a class in `triton.backends.backends`."""
    from ..backends import backends

    target = target_of(target) if isinstance(target, str) else target
    for backend in backends.values():
        if backend.compiler.supports_target(target):
            return backend.compiler(target)
    names = ", ".join(name for backend in backends.values() for name in backend.compiler.names)
    raise TargetError(f"there is no backend for {target!r}; there are backends for: {names}")


def _load(name):
    if name in ("get_cache_key", "triton_key"):
        from ..runtime import cache

        return getattr(cache, name)
    if name == "IRSource":
        from .ir_source import IRSource

        return IRSource
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..runtime.cache import get_cache_key, triton_key  # noqa: F401
    from .ir_source import IRSource
else:
    __getattr__ = _load  # a type checker would take every name

__all__ = [
    "ASTSource",
    "CompiledKernel",
    "GPUTarget",
    "IRSource",
    "LazyDict",
    "compile",
    "describe",
    "make_backend",
    "max_shared_mem",
    "triton_key",
]
