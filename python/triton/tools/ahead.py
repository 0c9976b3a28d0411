"""Kernels compiled ahead of time: C sources and headers that launch them without Python.

`Variant` is a kernel for one signature; `write` gives it a C function; `write_dispatcher` gives several of a kernel one
function, which calls the first that the arguments fit. A kernel for a GPU is in its C source, which needs nothing but
the driver, found at run time; one for the CPU in an object file beside it, which needs the mathematical library.
Variants that know their grid are written as the public API's tools do: see `triton.tools.ahead_grid`.
"""

import json
import os
import re
from dataclasses import dataclass, field
from typing import NamedTuple

from .. import _C
from ..compiler.compiler import ASTSource, compile
from ..errors import UnsupportedError
from . import ahead_text as text

FLOATS = {
    "fp32": "float",
    "fp64": "double",
    # bits: C has no such types
    **{name: "uint16_t" for name in ("fp16", "bf16")},
    **{name: "uint8_t" for name in ("fp8e4nv", "fp8e5", "fp8e4b15", "fp8e4b8", "fp8e5b16")},
}
C_TYPES = {
    "i1": "bool",
    **{f"i{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)},
    "u1": "bool",
    **{f"u{bits}": f"uint{bits}_t" for bits in (8, 16, 32, 64)},
    **FLOATS,
}


@dataclass
class Parameter:
    """One that the C function has: `divisor` and `value` say what its argument must be, to be what was compiled for."""

    name: str
    kind: str | None  # in the signature ("*fp32"); None: only its value was there
    type: str  # of C
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
        self.compiled = self._compile(self._read())

    def _read(self):
        """What is to be compiled, by kernel and signature."""
        kernel = self.kernel
        if len(self.signature) != len(kernel.params):
            raise ValueError(
                f"kernel {kernel.__name__!r} has {len(kernel.params)} parameters ({', '.join(kernel.arg_names)}), "
                f"and the signature has {len(self.signature)} items"
            )
        self.items = [_read_item(kernel, *both) for both in zip(kernel.params, self.signature, strict=True)]
        types, self.constants, facts, self.parameters = {}, {}, {}, []
        for param, item in zip(kernel.params, self.items, strict=True):
            if item.is_value:
                self.constants[param.name] = item.value
            else:
                types[param.name] = item.kind
            if item.divisor > 1:
                facts[(param.num,)] = [("tt.divisibility", item.divisor)]
            if not item.is_value or (not param.is_constexpr and isinstance(item.value, int)):
                kind = item.kind or "i64"
                self.parameters.append(Parameter(c_name(param), item.kind, self._type(kind), item.divisor, item.value))
        return ASTSource(kernel, types, self.constants, facts)

    def _type(self, kind):
        """In C."""
        if kind[0] != "*":
            return C_TYPES[kind]
        constant, element = kind[1] == "k", C_TYPES[kind.lstrip("*k")]
        return f"{'const ' if constant else ''}{element} *" if self.target == "cpu" else "uint64_t"

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


def c_name(param):
    """What a kernel's parameter is called in C."""
    return f"{param.name}_" if param.name in text.TAKEN else param.name


class Item(NamedTuple):
    """One of a signature: a type, a value, or both."""

    kind: str | None
    divisor: int = 1
    is_value: bool = False
    value: object = None


def _read_item(kernel, param, item):
    if not isinstance(item, str):
        return Item(None, is_value=True, value=item)
    kind, _, divisor = item.partition(":")
    if kind.lstrip("*").removeprefix("k" if kind.startswith("*") else "") in C_TYPES and not param.is_constexpr:
        if divisor == "1" and kind[0] != "*":
            return Item(kind, is_value=True, value=1)  # as the public API has it: it is always 1
        if divisor and (divisor not in ("1", "4", "8", "16") or kind in FLOATS):
            raise ValueError(
                f"kernel {kernel.__name__!r}, parameter {param.name!r}: {item!r}: integers and pointers may be "
                "multiples of 4, 8 or 16 (:16), and integers always 1 (:1)"
            )
        return Item(kind, int(divisor or 1))
    from ast import literal_eval

    try:
        return Item(None, is_value=True, value=literal_eval(item))
    except (ValueError, SyntaxError):
        what = f"neither a value nor a type ({', '.join(C_TYPES)}; with * in front a pointer)"
        if param.is_constexpr:
            what = "no value, as a compile-time parameter has one"
        raise ValueError(f"kernel {kernel.__name__!r}, parameter {param.name!r}: {item!r} is {what}") from None


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
        files |= {"c": text.cuda_source(variant, gpu_code(variant, format))}
    return {ending: write_file(f"{stem}.{ending}", data) for ending, data in files.items()}


def gpu_code(variant, format):
    """A cubin, or PTX with a zero behind it, as the driver takes either."""
    ptx = variant.compiled.asm["ptx"]
    if format == "ptx":
        return ptx.encode() + b"\0"
    from ..compiler.compiled import assemble

    cubin = assemble(ptx)
    if cubin is None and format == "cubin":
        raise ValueError("a cubin takes ptxas of a CUDA toolkit, which is not found: see TRITON_PTXAS_PATH")
    return cubin or ptx.encode() + b"\0"


def write_file(path, data):
    """The path, where these bytes or this text is then."""
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
    check_alike(facts, "kernel")
    facts = most_particular_first(facts)
    parameters = common_parameters(facts)
    stem = os.path.join(folder, name)
    files = {"h": text.dispatcher_header(name, facts, parameters), "c": text.dispatcher(name, facts, parameters)}
    return {ending: write_file(f"{stem}.{ending}", data) for ending, data in files.items()}


def check_alike(facts, what):
    """That variants can have one function. `what` names the fact that tells what they are variants of."""
    if len({(each.get(what), each["target"], "algorithm" in each) for each in facts}) > 1:
        raise ValueError("one function is for variants of one kernel, for one kind of target, all with a grid or none")


def most_particular_first(facts):
    """Variants in the order in which their arguments are looked at."""
    return sorted(
        facts, key=lambda each: -sum((p["divisor"] > 1) + 2 * (p["value"] is not None) for p in each["parameters"])
    )


def common_parameters(facts):
    """The parameters of a function for all: of types that hold the values of each."""
    names = [tuple(p["name"] for p in each["parameters"]) for each in facts]
    if len(set(names)) > 1:
        raise ValueError(
            f"these variants have different parameters: {' and '.join(map(', '.join, sorted(set(names))))}"
        )
    common = []
    for same in zip(*(each["parameters"] for each in facts), strict=True):
        types = {p["kind"]: p["type"] for p in same if p["kind"]} or {None: "int64_t"}
        if len(types) > 1:
            raise ValueError(f"parameter {same[0]['name']!r} is {' and '.join(sorted(types))}")
        common.append(Parameter(same[0]["name"], *types.popitem()))
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
