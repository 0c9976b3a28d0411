"""Kernels compiled ahead of time: C sources and headers that launch them without Python.

`Variant` is a kernel for one signature; `write` gives it a C function; `write_dispatcher` gives several of a kernel one
function, which calls the first that the arguments fit. A kernel for a GPU is in its C source, which needs nothing but
the driver, found at run time; one for the CPU in an object file beside it, which needs the mathematical library.
"""

import json
import os
import re
from dataclasses import dataclass, field

from .. import _C
from ..compiler.compiler import ASTSource, compile
from ..errors import UnsupportedError
from . import ahead_text as text

C_TYPES = {
    "i1": "bool",
    **{f"i{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)},
    "u1": "bool",
    **{f"u{bits}": f"uint{bits}_t" for bits in (8, 16, 32, 64)},
    "fp32": "float",
    "fp64": "double",
    # bits: C has no such types
    **{name: "uint16_t" for name in ("fp16", "bf16")},
    **{name: "uint8_t" for name in ("fp8e4nv", "fp8e5", "fp8e4b15", "fp8e4b8", "fp8e5b16")},
}


@dataclass
class Parameter:
    """One that the C function has: `divisor` and `value` say what its argument must be, to be what was compiled for."""

    name: str
    type: str  # of C
    is_pointer: bool
    bits_of: str | None = None  # "float" or "double": passed by its bits
    divisor: int = 1
    value: int | None = None

    def condition(self):
        """C for: this argument is not as it must be. None: any will do."""
        if self.value is not None:
            return f"{self.name} != {self.value}"
        number = f"(uint64_t)(uintptr_t){self.name}" if self.type.endswith("*") else f"(uint64_t){self.name}"
        return f"{number} % {self.divisor}" if self.divisor > 1 else None


@dataclass
class Variant:
    """A kernel for one signature and one target, under a name of its own.

    ``signature`` has an item for each parameter of the kernel: a type with what the argument is a multiple of
    ("*fp32:16", "i32"), or the value of a compile-time parameter, or of one that is always this ("1").
    """

    kernel: object
    signature: list
    name: str
    target: str
    options: dict = field(default_factory=dict)

    def __post_init__(self):
        kernel = self.kernel
        if len(self.signature) != len(kernel.params):
            raise ValueError(
                f"kernel {kernel.__name__!r} has {len(kernel.params)} parameters ({', '.join(kernel.arg_names)}), "
                f"and the signature has {len(self.signature)} items"
            )
        types, constants, facts, self.parameters = {}, {}, {}, []
        for param, item in zip(kernel.params, self.signature, strict=True):
            kind, divisor = _read_item(kernel, param, item)
            name = f"{param.name}_" if param.name in text.TAKEN else param.name
            if kind is None:
                constants[param.name] = divisor
                if not param.is_constexpr and isinstance(divisor, int):
                    self.parameters.append(Parameter(name, "int64_t", False, value=divisor))
                continue
            types[param.name] = kind
            if divisor > 1:
                facts[(param.num,)] = [("tt.divisibility", divisor)]
            self.parameters.append(self._parameter(name, kind, divisor))
        self.compiled = self._compile(ASTSource(kernel, types, constants, facts))

    def _parameter(self, name, kind, divisor):
        if kind[0] != "*":
            bits = {"fp32": "float", "fp64": "double"}.get(kind)
            return Parameter(name, C_TYPES[kind], False, bits, divisor)
        constant, element = kind[1] == "k", C_TYPES[kind.lstrip("*k")]
        on_cpu = f"{'const ' if constant else ''}{element} *"
        return Parameter(name, on_cpu if self.target == "cpu" else "uint64_t", True, None, divisor)

    def _compile(self, source):
        if self.options.get("launch_pdl"):
            raise UnsupportedError("launch_pdl of kernels compiled ahead of time: launch them from Python")
        compiled = compile(source, self.target, self.options, any_launch=True)
        if compiled.info["target"] == "cpu":
            if re.search(r"^ *print ", compiled.asm["ttir"], re.MULTILINE):
                raise UnsupportedError(f"kernel {self.kernel.__name__!r}: printing, compiled ahead of time for the CPU")
            own = compiled._ir.replace(f"kernel @{self.kernel.__name__}(", f"kernel @{self.symbol}(", 1)
            compiled._override("ttir", own, f"kernel {self.name}")  # two of them may meet in one program
        elif not compiled.info["target"].startswith("cuda"):
            raise UnsupportedError(f"ahead-of-time output for the target {self.target!r}: it is for cpu and cuda:NN")
        return compiled

    @property
    def symbol(self):
        """The name of the machine code."""
        return f"triton_{self.name}"

    @property
    def arguments(self):
        """The parameters that the machine code has."""
        return [parameter for parameter in self.parameters if parameter.value is None]

    def facts(self):
        """What `write_dispatcher` has to know, for a line of the header."""
        parameters = [vars(parameter) for parameter in self.parameters]
        kind = "cpu" if self.target == "cpu" else "cuda"
        return {"name": self.name, "kernel": self.kernel.__name__, "target": kind, "parameters": parameters}


def parse_signature(signature):
    """The items of "*fp32:16, i32, 1024"."""
    return [item.strip() for item in signature.split(",")]


def _read_item(kernel, param, item):
    """A type and a divisor; or None and a value."""
    if not isinstance(item, str):
        return None, item
    kind, _, divisor = item.partition(":")
    if kind.lstrip("*").removeprefix("k" if kind.startswith("*") else "") in C_TYPES and not param.is_constexpr:
        if divisor == "1" and kind[0] != "*":
            return None, 1  # as the public API has it: it is always 1
        if divisor and (not divisor.isdigit() or int(divisor) not in (1, 4, 8, 16)):
            raise ValueError(f"kernel {kernel.__name__!r}, parameter {param.name!r}: {item!r}: multiples of 4, 8 or 16")
        return kind, int(divisor or 1)
    from ast import literal_eval

    try:
        return None, literal_eval(item)
    except (ValueError, SyntaxError):
        types = ", ".join(C_TYPES)
        raise ValueError(
            f"kernel {kernel.__name__!r}, parameter {param.name!r}: {item!r} is neither a value nor a type "
            f"({types}; with * in front a pointer)"
        ) from None


# ---- files


def write(variant, folder, format=None):
    """C source and header of a function `variant.name`; for the CPU an object file, too. Their paths, by ending.

    :param format: of code for a GPU: "cubin" (by ptxas, the default where there is one) or "ptx", which the driver of
        any GPU of this kind or a later one compiles when it is first launched.
    """
    stem = os.path.join(folder, variant.name)
    files = {"h": text.header(variant)}
    if variant.target == "cpu":
        files |= {"c": text.cpu_source(variant), "o": _C.image_facts(variant.compiled.image)["code"]}
    else:
        files |= {"c": text.cuda_source(variant, _gpu_code(variant, format))}
    return {ending: _write(f"{stem}.{ending}", data) for ending, data in files.items()}


def _gpu_code(variant, format):
    ptx = variant.compiled.asm["ptx"]
    if format == "ptx":
        return ptx.encode() + b"\0"
    from ..compiler.compiled import assemble

    cubin = assemble(ptx)
    if cubin is None and format == "cubin":
        raise ValueError("a cubin takes ptxas of a CUDA toolkit, which is not found: see TRITON_PTXAS_PATH")
    return cubin or ptx.encode() + b"\0"


def _write(path, data):
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())
    return path


def read_facts(header):
    """What `Variant.facts` put into a header."""
    with open(header) as file:
        for line in file:
            if line.startswith(text.MARK):
                return json.loads(line[len(text.MARK) :].rstrip(" */\n"))
    raise ValueError(f"{header} is no header of a kernel that was compiled ahead of time")


def write_dispatcher(headers, name, folder):
    """C source and header of a function that calls the first of some variants that its arguments fit, those that ask
    for most before the others. Their paths, by ending."""
    facts = [read_facts(header) for header in headers]
    shapes = {(each["kernel"], each["target"], _shape(each)) for each in facts}
    if len({shape[:2] for shape in shapes}) > 1:
        raise ValueError("one function is for variants of one kernel, for one kind of target")
    facts.sort(key=lambda each: -sum((p["divisor"] > 1) + 2 * (p["value"] is not None) for p in each["parameters"]))
    parameters = _common(facts)
    stem = os.path.join(folder, name)
    files = {"h": text.dispatcher_header(name, facts, parameters), "c": text.dispatcher(name, facts, parameters)}
    return {ending: _write(f"{stem}.{ending}", data) for ending, data in files.items()}


def _shape(facts):
    return tuple(p["name"] for p in facts["parameters"])


def _common(facts):
    """The parameters of a function for all: of types that hold the values of each."""
    names = [_shape(each) for each in facts]
    if len(set(names)) > 1:
        raise ValueError(
            f"these variants have different parameters: {' and '.join(map(', '.join, sorted(set(names))))}"
        )
    common = []
    for same in zip(*(each["parameters"] for each in facts), strict=True):
        types = {p["type"] for p in same if p["value"] is None} or {"int64_t"}
        if len(types) > 1:
            raise ValueError(f"parameter {same[0]['name']!r} is {' and '.join(sorted(types))}")
        common.append(Parameter(same[0]["name"], types.pop(), same[0]["is_pointer"]))
    return common


def build_shared(sources, path, compiler=None):
    """A shared object of C sources and object files, by a C compiler (`CC`, or cc)."""
    import shlex
    import subprocess

    command = shlex.split(compiler or os.environ.get("CC") or "cc")
    done = subprocess.run(
        [*command, "-O2", "-shared", "-fPIC", *sources, "-lm", "-o", path], capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{shlex.join(command)} does not take them:\n{done.stderr}")
    return path
