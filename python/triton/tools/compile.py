"""Compile a kernel ahead of time: ``python -m triton.tools.compile FILE -n NAME --signature "*fp32:16, i32"``.

Writes a C header and source (and for the CPU an object file) whose function launches the kernel without Python. With
several ``--signature`` each is a variant, and one more function calls the first that the arguments fit.
"""

import argparse
import importlib.util
import os
import sys

from . import ahead


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
    parser.add_argument("--out-name", "-on", help="name of the C function; that of the kernel if none is given")
    parser.add_argument("--out-path", "-o", default=".", help="folder for the files")
    parser.add_argument("--num-warps", "-w", type=int, default=4)
    parser.add_argument("--num-stages", "-ns", type=int, default=3)
    parser.add_argument("--grid", "-g", help=argparse.SUPPRESS)  # of the public API's tool, to be told about
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
    from ..runtime.target import target_name

    parser = _parser()
    options = parser.parse_args(arguments)
    if options.grid is not None:
        parser.error("--grid: leave it out; the C function takes the grid with each call, as three numbers")
    kernel = load_kernel(options.file, options.kernel_name)
    name, target = options.out_name or options.kernel_name, options.target or target_name()
    asked = {"num_warps": options.num_warps, "num_stages": options.num_stages}
    if options.ptx_version:
        asked["ptx_version"] = options.ptx_version
    os.makedirs(options.out_path, exist_ok=True)
    written = []
    for number, signature in enumerate(options.signature):
        own = name if len(options.signature) == 1 else f"{name}_{number}"
        variant = ahead.Variant(kernel, ahead.parse_signature(signature), own, target, asked)
        written.append(ahead.write(variant, options.out_path, options.format))
    if len(written) > 1:
        written.append(ahead.write_dispatcher([files["h"] for files in written], name, options.out_path))
    paths = [path for files in written for path in files.values()]
    if options.shared:
        sources = [path for path in paths if not path.endswith(".h")]
        paths.append(ahead.build_shared(sources, options.shared))
    print(*paths, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
