"""Compile a kernel ahead of time: ``python -m triton.tools.compile FILE -n NAME --signature "*fp32:16, i32"``.

Writes a C header and source (and for the CPU an object file) whose function launches the kernel without Python. With
several ``--signature`` each is a variant, and one more function calls the first that the arguments fit. With ``--grid``
it is the public API's tool: the function has that grid, and its name a hash, and `triton.tools.link` joins several.
"""

import argparse
import importlib.util
import os
import sys
from dataclasses import dataclass

# By their names, for this file may be run by its path.
from triton import errors
from triton.runtime.target import target_name
from triton.tools import ahead, ahead_grid


@dataclass
class CompileArgs:
    """What the command line says of a kernel with a grid, for `compile_kernel`."""

    path: str = ""
    kernel_name: str = ""
    signature: str = ""
    grid: str = ""
    target: str | None = None
    num_warps: int = 1
    num_stages: int = 3
    out_name: str | None = None
    out_path: str | None = None


def compile_kernel(args, format=None, **options):
    """C of a kernel with a grid: the name of its function, and the paths of its files.

    :param format: as for `triton.tools.ahead.write`.
    :param options: further ones of the compilation.
    """
    variant = ahead_grid.GridVariant(
        load_kernel(args.path, args.kernel_name),
        ahead.parse_signature(args.signature),
        args.out_name or args.kernel_name,
        _target(args.target),
        {"num_warps": args.num_warps, "num_stages": args.num_stages} | options,
        args.grid,
    )
    files = ahead_grid.write(variant, args.out_path or variant.joined_by, format)
    return variant.name, list(files.values())


def _target(name):
    """ "cuda:90:32" of the public API is "cuda:90", with the threads of a warp."""
    return target_name() if name is None else name.removesuffix(":32")


def _parser():
    parser = argparse.ArgumentParser("python -m triton.tools.compile", description=__doc__.partition("\n\n")[2])
    parser.add_argument("file", help="Python source of the kernel; it is run as a module")
    parser.add_argument("--kernel-name", "-n", required=True, help="name of the kernel in it")
    parser.add_argument(
        "--signature",
        "-s",
        action="append",
        required=True,
        help="for each parameter a type (*fp32, i32), with what its argument is a multiple of (*fp32:16), or a value",
    )
    parser.add_argument("--target", "-t", help="cpu, or cuda:NN; that of this machine if none is given")
    parser.add_argument(
        "--grid",
        "-g",
        help="expressions of C over the kernel's parameters, as in 'n / 128, m, 1'; without one the C "
        "function takes the grid with each call",
    )
    parser.add_argument("--out-name", "-on", help="name of the C function; that of the kernel if none is given")
    parser.add_argument(
        "--out-path", "-o", help="folder for the files; with --grid their name, without hash and ending"
    )
    parser.add_argument("--num-warps", "-w", type=int, help="default: 4; with --grid 1, as the public API has it")
    parser.add_argument("--num-stages", "-ns", type=int, default=3)
    parser.add_argument("--ptx-version", type=int, help="83 for PTX 8.3: the newest that the driver there takes")
    parser.add_argument("--format", choices=("cubin", "ptx"), help="of GPU code; a cubin if ptxas is found")
    parser.add_argument("--shared", metavar="FILE", help="and a shared object of it all, by the C compiler")
    return parser


def load_kernel(path, name):
    """The kernel of this name in a file."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec = importlib.util.spec_from_file_location(os.path.splitext(os.path.basename(path))[0], path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    kernel = getattr(module, name, None)
    while hasattr(kernel, "base_fn"):  # an autotuned one
        kernel = kernel.base_fn
    if getattr(type(kernel), "__triton_kind__", None) != "jit":
        raise SystemExit(f"{path} has no kernel {name!r}")
    return kernel


def main(arguments=None):
    parser = _parser()
    options = parser.parse_args(arguments)
    more = {"ptx_version": options.ptx_version} if options.ptx_version else {}
    try:
        paths = _write_variants(options, more) if options.grid is None else _write_with_grid(parser, options, more)
    except (errors.TritonError, OSError, ValueError) as error:
        parser.exit(1, f"{error}\n")
    print(*paths, sep="\n")
    return 0


def _write_with_grid(parser, options, more):
    if len(options.signature) > 1 or options.shared:
        parser.error("--grid takes one --signature and no --shared: triton.tools.link joins several")
    names = set(CompileArgs.__dataclass_fields__) - {"path", "signature", "num_warps"}
    args = CompileArgs(options.file, signature=options.signature[0], **{name: getattr(options, name) for name in names})
    args.num_warps = options.num_warps or args.num_warps
    return compile_kernel(args, options.format, **more)[1]


def _write_variants(options, more):
    kernel = load_kernel(options.file, options.kernel_name)
    name, target, folder = options.out_name or options.kernel_name, _target(options.target), options.out_path or "."
    asked = {"num_warps": options.num_warps or 4, "num_stages": options.num_stages} | more
    os.makedirs(folder, exist_ok=True)
    written = []
    for number, signature in enumerate(options.signature):
        own = name if len(options.signature) == 1 else f"{name}_{number}"
        variant = ahead.Variant(kernel, ahead.parse_signature(signature), own, target, asked)
        written.append(ahead.write(variant, folder, options.format))
    if len(written) > 1:
        written.append(ahead.write_dispatcher([files["h"] for files in written], name, folder))
    paths = [path for files in written for path in files.values()]
    if options.shared:
        sources = [path for path in paths if not path.endswith(".h")]
        paths.append(ahead.build_shared(sources, options.shared))
    return paths


if __name__ == "__main__":
    sys.exit(main())
