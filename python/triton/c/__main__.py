"""python -m triton.c file.tc: what becomes of the kernels of a program, without a device."""

import argparse
import sys

STAGES = "ttir", "ttgir", "llir", "ptx", "cubin", "sass", "asm", "c"


def main(arguments=None):
    """Compile, and write what was asked for; the exit status."""
    options = _parser().parse_args(arguments)
    from ..errors import TritonError

    try:
        with open(options.file, encoding="utf-8") as file:
            kernels = _kernels(file.read(), options)
        make = _write_c if options.emit == "c" else _compile
        written = [make(kernel, options) for kernel in kernels]
    except (TritonError, OSError, ValueError, KeyError) as error:
        print(error.args[0] if isinstance(error, KeyError) else error, file=sys.stderr)
        return 1
    for each in written:
        _write(each, None if options.emit == "c" else options.output)
    return 0


_EMIT = "the stage to write (default: %(default)s); c: a function in C that launches the kernel without Python"


def _parser():
    parser = argparse.ArgumentParser(prog="python -m triton.c", description=__doc__)
    parser.add_argument("file", help="a program in Triton-C")
    parser.add_argument("--emit", choices=STAGES, default="ptx", help=_EMIT)
    parser.add_argument("--kernel", help="one kernel, instead of all")
    parser.add_argument("--target", default="cuda:90", help="cuda:80, cuda:90, cpu, ... (default: %(default)s)")
    parser.add_argument(
        "-D", dest="tunables", action="append", default=[], metavar="NAME=VALUE", help="choose a tunable"
    )
    parser.add_argument("--num-warps", type=int, default=None)
    parser.add_argument("--num-stages", type=int, default=None)
    parser.add_argument("-o", "--output", help="the file to write to (default: standard output); with c, the folder")
    return parser


def _kernels(text, options):
    from .kernel import Program

    program = Program(text, options.file)
    return [program[options.kernel]] if options.kernel else list(program.kernels.values())


def _choices(kernel, options):
    """The value of each tunable, and the options that were asked for."""
    chosen = dict(each.partition("=")[::2] for each in options.tunables)
    unknown = set(chosen) - {name for name, _ in kernel.tunables}
    if unknown:
        raise ValueError(f"{kernel.__name__} has no tunable {sorted(unknown)[0]!r}")
    asked = {"num_warps": options.num_warps, "num_stages": options.num_stages}
    return (
        {name: int(chosen.get(name, values[0])) for name, values in kernel.tunables},
        {name: value for name, value in asked.items() if value is not None},
    )


def _compile(kernel, options):
    from ..compiler import ASTSource, compile

    tunables, asked = _choices(kernel, options)
    signature = {param.name: param.annotation_type for param in kernel.params if not param.is_constexpr}
    attrs = {
        (param.num,): [("tt.divisibility", 16)] for param in kernel.params if str(param.annotation).startswith("*")
    }
    return compile(ASTSource(kernel, signature, tunables, attrs), options.target, asked).asm[options.emit]


def _type_in_c(param):
    """Of a signature ahead of time."""
    kind = param.annotation_type.replace("*", "*k") if param.is_const else param.annotation_type
    return f"{kind}:16" if kind.startswith("*") else kind


def _write_c(kernel, options):
    """The paths of what was written, a line each."""
    from ..tools import ahead

    tunables, asked = _choices(kernel, options)
    signature = [tunables[each.name] if each.is_constexpr else _type_in_c(each) for each in kernel.params]
    files = ahead.write(ahead.Variant(kernel, signature, kernel.__name__, options.target, asked), options.output or ".")
    return "".join(f"{path}\n" for path in files.values())


def _write(code, path):
    if isinstance(code, str):
        code = code.encode()
    if path:
        with open(path, "ab") as file:
            file.write(code)
    else:
        sys.stdout.buffer.write(code)


if __name__ == "__main__":
    sys.exit(main())
