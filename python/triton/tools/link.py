"""One C function for several variants of a kernel: ``python -m triton.tools.link HEADER... -o NAME``.

The headers are those that `triton.tools.compile` wrote. The function calls the first variant that its arguments fit; of
variants that were compiled with a grid there may be several algorithms, and the caller says which.
"""

import argparse
import os
import sys

# By its name, for this file may be run by its path.
from triton.tools import ahead, ahead_grid


def main(arguments=None):
    parser = argparse.ArgumentParser("python -m triton.tools.link", description=__doc__.partition("\n\n")[2])
    parser.add_argument("headers", nargs="+", help="of the variants")
    parser.add_argument(
        "--out",
        "-o",
        required=True,
        help="folder and name of the function: out/softmax; of the files, of those with a grid",
    )
    options = parser.parse_args(arguments)
    try:
        if "algorithm" in ahead.read_facts(options.headers[0]):
            files = ahead_grid.write_algorithms(options.headers, options.out)
        else:
            folder, name = os.path.split(options.out)
            files = ahead.write_dispatcher(options.headers, name, folder)
    except (OSError, ValueError) as error:
        parser.exit(1, f"{error}\n")
    print(*files.values(), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
