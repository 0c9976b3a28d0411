"""Measures a program as it is: ``python -m triton.profiler script.py arguments``, or ``... pytest arguments``."""

import argparse
import os
import runpy
import sys

from . import DEFAULT_PROFILE_NAME, finalize, start


def main(arguments=None):
    """The status that the program ends with; files and table are written however it ends."""
    parser = argparse.ArgumentParser(prog="proton", description=__doc__)
    parser.add_argument("-n", "--name", default=DEFAULT_PROFILE_NAME, help="of the files, without .json and .hatchet")
    parser.add_argument("-d", "--data", choices=["tree", "trace"], default="tree", help="both are written")
    parser.add_argument("program", help="a script, or pytest")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="of the program")
    asked = parser.parse_args(arguments)
    session = start(asked.name, data=asked.data)
    try:
        return _run(asked.program, asked.arguments)
    finally:
        if session is not None:
            finalize(session)


def _run(program, arguments):
    if os.path.basename(program) == "pytest":
        import pytest

        return int(pytest.main(arguments))
    before = sys.argv, sys.path[:]
    sys.argv, sys.path[0:0] = [program, *arguments], [os.path.dirname(os.path.abspath(program))]
    try:
        runpy.run_path(program, run_name="__main__")
    finally:
        sys.argv, sys.path[:] = before
    return 0


if __name__ == "__main__":
    sys.exit(main())
