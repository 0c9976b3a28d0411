"""Scripts in processes of their own, for what might end one."""

import os
import subprocess
import sys
import textwrap

PRELUDE = """
import ctypes, faulthandler, mmap, os, re, signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's jobs in the background ignore
import numpy as np
import triton
import triton.language as tl
from harness import jit
from holes import *
"""


def run(script, target="cpu", expect=0, **environment):
    """The output of the script, which ends as is expected (a negative number: by that signal)."""
    ours = {"TRITON_TARGET": target, "TRITON_CPU_THREADS": "2", "TRITON_VERIFY": "0"}
    ours["PYTHONPATH"] = os.pathsep.join(["tests", *sys.path])
    environment = {**os.environ, **ours, **environment}
    text = PRELUDE + textwrap.dedent(script)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == expect, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr
