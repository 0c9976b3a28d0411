"""python -m triton.c file.tc: what becomes of the kernels of a program, without a device."""

import argparse
import sys

STAGES = "ttir", "ttgir", "llir", "ptx", "cubin", "sass", "asm"


def main(arguments=None):
    """Compile, and write what was asked for; the exit status."""
    options = _parser().parse_args(arguments)
    from ..errors import TritonError

    try:
        with open(options.file, encoding="utf-8") as file:
            written = [_compile(kernel, options) for kernel in _kernels(file.read(), options)]
    except (TritonError, OSError, ValueError, KeyError) as error:
        print(error.args[0] if isinstance(error, KeyError) else error, file=sys.stderr)
        return 1
    for each in written:
        _write(each, options.output)
    return 0


def _parser():
    parser = argparse.ArgumentParser(prog="python -m triton.c", description=__doc__)
    parser.add_argument("file", help="a program in Triton-C")
    parser.add_argument("--emit", choices=STAGES, default="ptx", help="the stage to write (default: %(default)s)")
    parser.add_argument("--kernel", help="one kernel, instead of all")
    parser.add_argument("--target", default="cuda:90", help="cuda:80, cuda:90, cpu, ... (default: %(default)s)")
    parser.add_argument(
        "-D", dest="tunables", action="append", default=[], metavar="NAME=VALUE", help="choose a tunable"
    )
    parser.add_argument("--num-warps", type=int, default=None)
    parser.add_argument("--num-stages", type=int, default=None)
    parser.add_argument("-o", "--output", help="the file to write to (default: standard output)")
    return parser


def _kernels(text, options):
    from .kernel import Program

    program = Program(text, options.file)
    return [program[options.kernel]] if options.kernel else list(program.kernels.values())


def _compile(kernel, options):
    from ..compiler import ASTSource, compile

    chosen = dict(each.partition("=")[::2] for each in options.tunables)
    unknown = set(chosen) - {name for name, _ in kernel.tunables}
    if unknown:
        raise ValueError(f"{kernel.__name__} has no tunable {sorted(unknown)[0]!r}")
    tunables = {name: int(chosen.get(name, values[0])) for name, values in kernel.tunables}
    signature = {param.name: param.annotation_type for param in kernel.params if not param.is_constexpr}
    attrs = {
        (param.num,): [("tt.divisibility", 16)] for param in kernel.params if str(param.annotation).startswith("*")
    }
    asked = {"num_warps": options.num_warps, "num_stages": options.num_stages}
    source = ASTSource(kernel, signature, tunables, attrs)
    compiled = compile(source, options.target, {name: value for name, value in asked.items() if value is not None})
    return compiled.asm[options.emit]


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
