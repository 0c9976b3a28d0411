"""Every kernel of the tutorials, of the tests and of their mistakes, as sources for the mutation fuzzer."""

import ast
import functools
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
FOLDERS = ["tutorials", "tests/language", "tests/gpu", "tests/runtime", "tests/errors/cases"]
POINTER = re.compile(r"(?i).*(ptr|pointer|out|lock|counts|flags)s?$|^[a-z]{1,2}$|^(input|output|result|dst|src)$")


@functools.cache
def sources():
    """Texts that each define `kernel` and what it calls."""
    files = [file for folder in FOLDERS for file in sorted((ROOT / folder).glob("*.py"))]
    return sorted({source for file in files for source in kernels_of(file.read_text())})


def kernels_of(text):
    """One source for each kernel of a file that no other one calls."""
    functions = {f.name: f for f in ast.parse(text).body if isinstance(f, ast.FunctionDef) and is_kernel(f)}
    called = {name for f in functions.values() for name in names_in(f) & functions.keys() - {f.name}}
    for name in functions.keys() - called:
        needed = closure(name, functions)
        parts = [undecorated(f) for f in functions.values() if f.name in needed]
        yield "\n\n".join([*parts, f"kernel = {name}"])


def is_kernel(function):
    return any(ast.unparse(decorator).startswith("triton.jit") for decorator in function.decorator_list)


def undecorated(function):
    """Without `autotune` and the like, which belong to launches."""
    jit = [d for d in function.decorator_list if ast.unparse(d).startswith("triton.jit")]
    return ast.unparse(ast.FunctionDef(**{**dict(ast.iter_fields(function)), "decorator_list": jit}, lineno=1))


def names_in(function):
    return {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}


def closure(name, functions):
    needed, stack = set(), [name]
    while stack:
        name = stack.pop()
        if name not in needed:
            needed.add(name)
            stack += names_in(functions[name]) & functions.keys()
    return needed


@functools.cache
def arguments(source):
    """Positional arguments and keywords, as texts of Python, that the names and annotations of a kernel's parameters
    suggest."""
    tree = ast.parse(source)
    function = next(f for f in tree.body if isinstance(f, ast.FunctionDef) and f.name == tree.body[-1].value.id)
    positional, keywords = [], {}
    for parameter in function.args.args:
        if parameter.annotation and "constexpr" in ast.unparse(parameter.annotation):
            keywords[parameter.arg] = constant(parameter.arg)
        elif POINTER.match(parameter.arg) and parameter.arg not in ("n", "m"):
            positional.append("np.zeros(4096, np.float32)")
        else:
            positional.append("24")
    return positional, keywords


def constant(name):
    """A compile-time value: a flag where the name sounds like one, else an extent."""
    is_flag = re.match(r"(?i)(is|has|use|causal|even)_?", name)
    return "True" if is_flag else "1" if "GROUP" in name.upper() else "16"
