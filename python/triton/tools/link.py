"""One C function for several variants of a kernel: ``python -m triton.tools.link HEADER... -o NAME``.

The headers are those that `triton.tools.compile` wrote. The function calls the first variant that its arguments fit.
"""

import argparse
import os
import sys

from . import ahead


def main(arguments=None):
    parser = argparse.ArgumentParser("python -m triton.tools.link", description=__doc__.partition("\n\n")[2])
    parser.add_argument("headers", nargs="+", help="of the variants")
    parser.add_argument("--out", "-o", required=True, help="folder and name of the function: out/softmax")
    options = parser.parse_args(arguments)
    folder, name = os.path.split(options.out)
    print(*ahead.write_dispatcher(options.headers, name, folder).values(), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
