"""What Python does around a compilation: options and names before it, views of the compiled kernel after it."""

import os
from collections.abc import Mapping
from types import SimpleNamespace

from .. import _C
from .._C import CompiledKernel
from ..runtime.target import target_name, target_of

_DEFAULTS = {
    "num_warps": 4,
    "num_stages": 3,
    "num_ctas": 1,
    "maxnreg": None,
    "enable_fp_fusion": True,
    "sanitize_overflow": True,
    "launch_cooperative_grid": False,
    "launch_pdl": False,
}


def describe(kernel, signature, options, target):
    """What is known of a kernel before it is compiled; the frontend gets it as the options.

    :param signature: as in the frontend's request, one entry a parameter.
    :param options: those that the launch gave.
    :param target: its name, "cpu" or "cuda:90".
    """
    info = dict(_DEFAULTS, debug=os.environ.get("TRITON_DEBUG", "0") not in ("", "0"))
    info.update((name, _checked(kernel, name, value)) for name, value in options.items() if value is not None)
    entries = dict(zip((param.name for param in kernel.params), signature, strict=True))
    info["signature"] = {name: _types(entry) for name, entry in entries.items()}
    info["divisibility"] = {name: _divisibility(entry) for name, entry in entries.items()}
    info["constants"] = {name: entry.value for name, entry in entries.items() if _is_constant(entry)}
    info["options"] = options
    info["target"] = target
    info["name"] = _name(kernel, info)
    return info


def _checked(kernel, name, value):
    kind = _C.launch_options()[name]
    where = f"{kernel.__name__}(): option {name}={value!r}"
    if kind == "bool":
        return bool(value)
    if not isinstance(value, int):
        raise TypeError(f"{where}: it must be an integer")
    if kind == "power of two" and (value < 1 or value & (value - 1)):
        raise ValueError(f"{where}: it must be a power of two")
    if value < 0:
        raise ValueError(f"{where}: it cannot be negative")
    if value >= 2**31:
        raise ValueError(f"{where}: it cannot be larger than 2**31 - 1")
    return value


def _is_constant(entry):
    return getattr(type(entry), "__triton_kind__", None) == "constexpr"


def _types(entry):
    """The type of an entry: a string, "constexpr", or a tuple of types."""
    if _is_constant(entry):
        return "constexpr"
    return entry[0] if type(entry) is tuple else tuple(map(_types, entry))


def _divisibility(entry):
    if _is_constant(entry):
        return None
    return entry[1] if type(entry) is tuple else tuple(map(_divisibility, entry))


def _name(kernel, info):
    """The name of the variant: what @triton.jit(repr=...) makes of the specialisation, or the function's own."""
    if kernel.repr is None:
        return kernel.__name__
    return str(kernel.repr(SimpleNamespace(fn=kernel, signature=info["signature"], constants=info["constants"])))


def cuda_tool(name):
    """Path of a program of the CUDA toolkit, or None."""
    import shutil

    beside = os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin", name)
    return shutil.which(name) or (beside if os.path.exists(beside) else None)


def assemble(ptx):
    """The cubin that ptxas makes, which is the code that the driver loads; None where there is no ptxas."""
    import re
    import subprocess
    import tempfile

    ptxas = cuda_tool("ptxas")
    if not ptxas:
        return None
    with tempfile.TemporaryDirectory() as folder:
        source, result = os.path.join(folder, "kernel.ptx"), os.path.join(folder, "kernel.cubin")
        with open(source, "w") as file:
            file.write(ptx)
        architecture = re.search(r"\.target (\w+)", ptx)[1]
        command = [ptxas, f"-arch={architecture}", "-lineinfo", source, "-o", result]
        if subprocess.run(command, capture_output=True).returncode:
            return None  # an older toolkit than the driver
        with open(result, "rb") as file:
            return file.read()


def disassemble(cubin):
    """The machine code of a cubin as text, with the source lines it comes from."""
    import subprocess
    import tempfile

    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [cuda_tool("nvdisasm"), "--print-code", file.name]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Stages(Mapping):
    """The text of each stage that a kernel went through, made when it is asked for."""

    def __init__(self, compiled):
        self._compiled = compiled
        self._names = compiled._stages()
        if "cubin" in self._names and cuda_tool("nvdisasm"):
            self._names += ("sass",)

    def __getitem__(self, stage):
        if stage not in self._names:
            target = self._compiled.info["target"]
            raise KeyError(f"no stage {stage!r} on target {target!r}; there are: {', '.join(self._names)}")
        if stage in ("cubin", "sass"):
            cubin = assemble(self._compiled._text("ptx")) or self._compiled._text("cubin")
            return cubin if stage == "cubin" else disassemble(cubin)
        return self._compiled._text(stage)

    def __iter__(self):
        return iter(self._names)

    def __len__(self):
        return len(self._names)

    def __repr__(self):
        return f"<stages {', '.join(self._names)}>"


class KernelMetadata(SimpleNamespace):
    """num_warps, num_stages, num_ctas, shared, name, target, signature, constants, timings, ... of a kernel."""

    def __init__(self, info):
        super().__init__(**info | {"target": target_of(info["target"])})


class LaunchMetadata:
    """What launch hooks get: ``get()`` is a dict, put together when it is first asked for."""

    def __init__(self, compiled, grid, stream, arguments):
        self.data = {"name": compiled.name, "function": compiled, "stream": stream}
        self._more = compiled.fn.launch_metadata, (grid, compiled.metadata, arguments)

    def get(self):
        function, arguments = self._more
        if function is not None:
            self.data |= function(*arguments)
            self._more = None, ()
        return self.data


class CompiledLauncher:
    """compiled[grid]: launches with the compile-time values and options that the kernel was compiled with.

    The arguments are those of the kernel, with or without its compile-time ones. They may need another variant than
    this one (an array that is not aligned): it is that which runs.
    """

    def __init__(self, compiled, grid):
        self._compiled, self._grid = compiled, grid

    def __call__(self, *args, **kwargs):
        kernel, info = self._compiled.fn, self._compiled.info
        constants = {param.name: param for param in kernel.params if param.is_constexpr}
        runtime = [param.name for param in kernel.params if param.name not in constants]
        if len(args) == len(runtime) < len(kernel.params):
            kwargs.update(zip(runtime, args, strict=True))
            args = ()
        given = {*kwargs, *kernel.arg_names[: len(args)]}
        kwargs.update((name, info["constants"][name]) for name in constants if name not in given)
        kwargs.update((name, value) for name, value in info["options"].items() if name not in given)
        return kernel.run(*args, grid=self._grid, **kwargs)


class ASTSource:
    """A kernel with the types of its parameters spelled out, for `compile`.

    :param signature: for each parameter's name its type ("*fp32", "i32", ...) or "constexpr".
    :param constexprs: values of the compile-time parameters, by name or number.
    :param attrs: {(number,): [("tt.divisibility", 16)]}: what is known of the values of parameters.
    """

    def __init__(self, fn, signature, constexprs=None, attrs=None):
        self.fn = fn
        self.signature = dict(signature)
        self.attrs = {_single(place): dict(facts) for place, facts in (attrs or {}).items()}
        names = fn.arg_names
        self.constants = {
            names[place] if isinstance(place, int) else place: value
            for place, value in ((_single(place), value) for place, value in (constexprs or {}).items())
        }
        unknown = [name for name in (*self.signature, *self.constants) if name not in names]
        if unknown:
            raise ValueError(f"kernel {fn.__name__!r} has no parameter {unknown[0]!r}")

    @property
    def name(self):
        return self.fn.__name__

    def entries(self):
        """The signature as the frontend takes it."""
        from ..language import constexpr

        entries = []
        for param in self.fn.params:
            if param.name in self.constants:
                entries.append(constexpr(self.constants[param.name]))
            elif self.signature.get(param.name, "constexpr") != "constexpr":
                facts = self.attrs.get(param.num, self.attrs.get(param.name, {}))
                entries.append(_entry(self.signature[param.name], facts.get("tt.divisibility", 1)))
            elif param.has_default:
                entries.append(constexpr(param.default))
            else:
                raise ValueError(f"kernel {self.name!r}: neither a type nor a value for parameter {param.name!r}")
        return tuple(entries)


def _single(place):
    return place[0] if isinstance(place, tuple) and len(place) == 1 else place


def _entry(kind, divisibility):
    if isinstance(kind, (tuple, list)):
        return [_entry(item, divisibility) for item in kind]
    return kind, divisibility


def compile(src, target=None, options=None):
    """Compile an `ASTSource` and return the `CompiledKernel`.

    :param target: a name ("cpu", "cuda:90") or a `GPUTarget`; that of the active driver when None.
    :param options: num_warps, num_stages, debug, ...
    """
    kinds, options = _C.launch_options(), options or {}
    unknown = sorted(set(options) - set(kinds))
    if unknown:
        raise TypeError(f"unknown options: {', '.join(unknown)}")
    options = {name: value for name, value in options.items() if kinds[name] not in ("launch", "ignored")}
    return _C.compile(src.fn, src.entries(), options, target_name(target))


__all__ = ["ASTSource", "CompiledKernel", "KernelMetadata", "compile", "describe"]
