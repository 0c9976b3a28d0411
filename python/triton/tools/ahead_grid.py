"""Kernels compiled ahead of time together with their grid, by the names that the public API's tools document.

`GridVariant` is a kernel for one signature, one set of options and one grid, an expression of C over the kernel's
parameters; `write` makes of it ``NAME_HASH_SUFFIX(CUstream, ...)`` with a ``load_`` and an ``unload_`` function.
`write_algorithms` joins several under ``NAME``: those that differ in what their arguments must be are one algorithm, of
which the first that fits is called; those that differ in constants or options are algorithms that callers choose from.
"""

import hashlib
import os
import re
from dataclasses import dataclass

from ..errors import UnsupportedError
from . import ahead
from . import ahead_text as text


@dataclass
class GridVariant(ahead.Variant):
    """`name` is that of the function which joins it with others."""

    grid: str = "1, 1, 1"

    def _read(self):
        if not self.target.startswith("cuda"):
            raise UnsupportedError(
                f"a grid, for the target {self.target!r}: it is for GPUs (cuda:90), whose functions are those of the "
                "public API's tool then; others take the grid with each call"
            )
        source = super()._read()
        self.parameters = [parameter for parameter in self.parameters if parameter.kind]
        for parameter in self.parameters:
            if parameter.kind in ahead.FLOATS and parameter.kind not in ("fp32", "fp64"):
                raise UnsupportedError(f"{parameter.kind}, a number: C has no such type; pass an fp32")
            if parameter.kind[0] == "*":
                parameter.type = "CUdeviceptr"
        self.joined_by, self.name = self.name, f"{self.name}_{self.suffix}"
        self.blocks = self._grid_in_c()
        return source

    @property
    def suffix(self):
        """A hash of what was asked for, and where arguments must be 1 (c) or a multiple of 16 (d)."""
        warps, stages = self.options["num_warps"], self.options["num_stages"]
        words = [*map(str, self.signature), f"warps{warps}xstages{stages}"]
        hints = {":1": "c", ":16": "d"}
        marks = (next((mark for end, mark in hints.items() if item.endswith(end)), "") for item in words[:-1])
        places = "".join(f"{place}{mark}" for place, mark in enumerate(marks))
        return f"{hashlib.sha256(' '.join(words).encode()).hexdigest()[:8]}_{places}"

    @property
    def algorithm(self):
        """A word for constants and options, by which variants belong to one choice of the caller."""
        values = [item.value for item in self.items if item.is_value and item.kind is None]
        options = f"warps{self.options['num_warps']}xstages{self.options['num_stages']}"
        return re.sub(r"\W", "_", f"{'x'.join(map(str, values))}_{options}")

    def facts(self):
        return super().facts() | {"joined_by": self.joined_by, "algorithm": self.algorithm}

    def _grid_in_c(self):
        """Three expressions, with numbers in place of the names of constants."""
        items = [item.strip() for item in self.grid.split(",")]
        if len(items) > 3 or not all(items):
            raise ValueError(f"grid {self.grid!r}: up to three expressions of C, as in 'n / 1024, 1, 1'")
        if "//" in self.grid:
            raise ValueError(f"grid {self.grid!r}: it is C, where / of integers rounds down")
        return [re.sub(r"\b[A-Za-z_]\w*", self._word, item) for item in items] + ["1"] * (3 - len(items))

    def _word(self, match):
        name = match[0]
        params = {param.name: param for param in self.kernel.params}
        if name in self.constants:
            value = self.constants[name]
            if not isinstance(value, (int, float)):
                raise ValueError(f"grid {self.grid!r}: {name} is {value!r}, which is no number")
            return repr(+value) if value >= 0 else f"({value})"
        if name not in params and not re.fullmatch(r"unsigned|int|long|double|u?int\d+_t|size_t", name):
            raise ValueError(
                f"grid {self.grid!r}: {name} is no parameter of kernel {self.kernel.__name__!r} "
                f"({', '.join(params)}), and no type of C"
            )
        return ahead.c_name(params[name]) if name in params else name


def write(variant, path, format=None):
    """C source and header of the function `variant.name`. Their paths, by ending.

    :param path: of both files, which get the variant's suffix and an ending: "out/softmax".
    :param format: as for `ahead.write`.
    """
    code = ahead.gpu_code(variant, format)
    return _write(path, f".{variant.suffix}", {"h": _header(variant), "c": _source(variant, code)})


def write_algorithms(headers, path):
    """C source and header of the functions that choose from variants, by these' headers. Their paths, by ending."""
    facts = [ahead.read_facts(header) for header in headers]
    ahead.check_alike(facts, "joined_by")
    algorithms = {}
    for each in facts:
        algorithms.setdefault(each["algorithm"], []).append(each)
    name, parameters = facts[0]["joined_by"], ahead.common_parameters(facts)
    own = [f"{name}_{algorithm}" for algorithm in algorithms]
    joined = {"h": _joined_header(name, own, parameters)}
    joined["c"] = _joined_source(name, dict(zip(own, algorithms.values(), strict=True)), parameters)
    return _write(path, "", joined)


def _write(path, suffix, texts):
    stem = os.path.splitext(path)[0]  # "kernel.h" is for kernel.h and kernel.c
    return {ending: ahead.write_file(f"{stem}{suffix}.{ending}", data) for ending, data in texts.items()}


# ---- C

_INCLUDES = "#include <cuda.h>\n#include <stdbool.h>\n#include <stdint.h>\n"


def _guarded(name, body):
    guard = f"TRITON_{name.upper()}_H"
    return f"#ifndef {guard}\n#define {guard}\n{_INCLUDES}\n{body}\n#endif\n"


def _signature(name, parameters, last=""):
    return f"CUresult {name}(CUstream stream{text.declared(parameters)}{last})"


def _loading(name, end=";"):
    return [f"void {mode}_{name}(void){end}" for mode in ("load", "unload")]


def _what(variant):
    options = f"num_warps={variant.options['num_warps']}, num_stages={variant.options['num_stages']}"
    signature = f"{variant.kernel.__name__}({', '.join(map(str, variant.signature))})"
    return f"{signature}, {options}, for {variant.compiled.info['target']}, compiled ahead of time."


def _header(variant):
    load, unload = _loading(variant.name)
    return _guarded(
        variant.name,
        f"""/* {_what(variant)} */
{text.mark(variant.facts())}

/* Loads the kernel into the current context, once; stderr tells why not. The first launch does it where nobody did. */
{load}
{unload}
/* Launches the kernel in that context. What an argument is no multiple of, and such, is CUDA_ERROR_INVALID_VALUE. */
{_signature(variant.name, variant.arguments)};
""",
    )


def _source(variant, code):
    """It includes no header and its variables are not static, so that the lines behind the first comment by // may be
    made members of a class of C++, an object for each context."""
    name, info = variant.name, variant.compiled.info
    load, unload = _loading(name, "")
    cooperative = info["launch_cooperative_grid"]
    launch = "cuLaunchCooperativeKernel" if cooperative else "cuLaunchKernel"
    shared, threads = int(info["shared"]), info["num_warps"] * 32
    larger = f"""
    if (!error)
        error = cuFuncSetAttribute({name}_function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, {shared});"""
    return f"""/* {_what(variant)} Link with -lcuda. */
{_INCLUDES}#include <stdio.h>
#include <string.h>

// The kernel, and where it is loaded.
unsigned char {name}_image[{len(code)}] __attribute__((aligned(64))) = {{
    {text.byte_list(code)}}};
CUmodule {name}_module = NULL;
CUfunction {name}_function = NULL;
CUresult {name}_error = CUDA_SUCCESS;

{unload}
{{
    if ({name}_module)
        cuModuleUnload({name}_module);
    {name}_module = NULL;
    {name}_function = NULL;
}}

{load}
{{
    const char *why = "";
    if ({name}_function)
        return;
    CUresult error = cuModuleLoadData(&{name}_module, {name}_image);
    if (!error)
        error = cuModuleGetFunction(&{name}_function, {name}_module, "{variant.kernel.__name__}");{
        larger if shared > 48 * 1024 else ""
    }
    if (error) {{
        cuGetErrorString(error, &why);
        fprintf(stderr, "{name} is not loaded: %s\\n", why ? why : "");
        unload_{name}();
    }}
    {name}_error = error;
}}

{_signature(name, variant.arguments)}
{{
{text.slots(variant)}
    void *parameters[] = {{{text.slot_addresses(variant)}}};
{text.checks(variant, "CUDA_ERROR_INVALID_VALUE")}    if (!{name}_function)
        load_{name}();
    if (!{name}_function)
        return {name}_error;
    unsigned grid_x = (unsigned)({variant.blocks[0]});
    unsigned grid_y = (unsigned)({variant.blocks[1]});
    unsigned grid_z = (unsigned)({variant.blocks[2]});
    if (!grid_x || !grid_y || !grid_z)
        return CUDA_SUCCESS;
    return {launch}({name}_function, grid_x, grid_y, grid_z, {threads}, 1, 1, {shared}, stream, parameters{
        "" if cooperative else ", NULL"
    });
}}
"""


def _joined_header(name, algorithms, parameters):
    lines = [f"/* {name}, compiled ahead of time: {len(algorithms)} of it to choose from. */"]
    for each in algorithms:
        lines += [f"{_signature(each, parameters)};", *_loading(each)]
    lines += [
        f"\n/* They have the numbers from 0 to {name}_get_num_algos() - 1, in the order above. */",
        f"int {name}_get_num_algos(void);",
        f"{_signature(name, parameters, ', int algo_id')};",
        "/* Number 0. */",
        f"{_signature(f'{name}_default', parameters)};",
        "/* All of them. */",
        *_loading(name),
    ]
    return _guarded(name, "\n".join(lines) + "\n")


def _joined_source(name, algorithms, parameters):
    """:param algorithms: facts of the variants of each, by the name of its function."""
    parts = [_INCLUDES]
    for algorithm, facts in algorithms.items():
        facts = ahead.most_particular_first(facts)
        for each in facts:
            own = [ahead.Parameter(**p) for p in each["parameters"]]
            own = [parameter for parameter in own if parameter.value is None]
            parts.append("\n".join([f"{_signature(each['name'], own)};", *_loading(each["name"]), ""]))
        choice = text.first_that_fits(facts, parameters, ["stream"], "CUDA_ERROR_INVALID_VALUE")
        parts.append(f"{_signature(algorithm, parameters)}\n{{\n{choice}}}\n")
        parts.append(_load_all(algorithm, [each["name"] for each in facts]))
    names = ",\n    ".join(algorithms)
    values = "".join(f", {parameter.name}" for parameter in parameters)
    parts.append(f"""static {_signature("(*const algorithms[])", parameters)} = {{
    {names}}};

int {name}_get_num_algos(void)
{{
    return {len(algorithms)};
}}

{_signature(name, parameters, ", int algo_id")}
{{
    if (algo_id < 0 || algo_id >= {len(algorithms)})
        return CUDA_ERROR_INVALID_VALUE;
    return algorithms[algo_id](stream{values});
}}

{_signature(f"{name}_default", parameters)}
{{
    return {name}(stream{values}, 0);
}}
""")
    parts.append(_load_all(name, algorithms))
    return "\n".join(parts)


def _load_all(name, names):
    calls = ("".join(f"    {mode}_{each}();\n" for each in names) for mode in ("load", "unload"))
    return "\n".join(f"{head}\n{{\n{body}}}\n" for head, body in zip(_loading(name, ""), calls, strict=True))
