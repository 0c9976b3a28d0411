"""With `pytest --assemble` every kernel that the tests compile, whatever the target, becomes PTX too, and ptxas has to
take it; and nothing in it is shuffled for nobody. `--assemble 10` does so with one kernel in ten, always the same."""

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
from collections import Counter

import pytest

from triton import _C
from triton.compiler import compiler

TOLD = re.compile(r"\b(?:shfl|redux|ldmatrix|mma)\.\S+\s+(\{[^}]*\}|[^,]+),")
SMS = (80, 90)
PART_SMS, PART = (75, 89, 120), 4  # of a part of the kernels each


def architecture(sm):
    return f"sm_{sm}a" if sm >= 90 else f"sm_{sm}"


def run_ptxas(ptx, sm, *options):
    """What ptxas says of PTX, and whether it took it."""
    command = ["ptxas", *options, f"-arch={architecture(sm)}", "-o", "/dev/null", "-"]
    done = subprocess.run(command, input=ptx, capture_output=True, text=True)
    return done.stdout + done.stderr, done.returncode == 0


def unused(ptx):
    """What lanes tell each other and none of them uses. ptxas drops it late, and may lose a predicate that is used."""
    uses = Counter(re.findall(r"%\w+", ptx))
    return [told[0] for told in TOLD.finditer(ptx) if all(uses[r] == 1 for r in re.findall(r"%\w+", told[1]))]


class Assembler:
    """A pytest plugin. It sees kernels where they are described for compilation."""

    def __init__(self, every):
        self.every, self.seen, self.refused, self.count = every, set(), [], 0
        self.describe = compiler.describe
        compiler.describe = self

    def __call__(self, kernel, signature, options, target, standalone):
        info = self.describe(kernel, signature, options, target, standalone)
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):  # it may print as it is compiled
            try:
                text = _C._frontend(kernel, signature, info)
            except Exception:  # a mistake, which is what the test is about
                return info
        self.assemble(text, info)
        return info

    def assemble(self, text, info):
        options = {"enable_fp_fusion": info.get("enable_fp_fusion", True), "debug": info["debug"]}
        warps = info["num_warps"]
        number = int(hashlib.sha256(f"{text}{warps}{options}".encode()).hexdigest(), 16)
        if number in self.seen or number % self.every:
            return
        self.seen.add(number)
        part = number // self.every % PART
        ways = [(sm, False) for sm in (*SMS, *PART_SMS[part : part + 1])]
        if "block_pointers" in text and warps >= 4 and not info["debug"]:
            ways.append((90, True))
        for sm, maps in ways:
            try:
                compiled = _C._compile_gpu(text, sm, warps, pipeline=True, maps=maps, **options)
            except RuntimeError as error:
                if "a program needs" not in str(error):  # shared memory
                    self.refused.append(f"sm_{sm}: {error}\n{text}")
                continue
            self.refused += [f"sm_{sm}: {told} is of no use\n{compiled['ptx']}" for told in unused(compiled["ptx"])[:1]]
            said, taken = run_ptxas(compiled["ptx"], sm, f"-O{min(compiled['effort'], 3)}")
            self.count += 1
            if not taken:
                self.refused.append(f"sm_{sm}: {said}\n{compiled['ptx']}")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        result = yield
        if self.refused:
            refused, self.refused = self.refused, []
            pytest.fail("\n\n".join(refused), pytrace=False)
        return result

    def pytest_sessionfinish(self, session):
        if hasattr(session.config, "workeroutput"):  # of pytest-xdist, which takes it to the process that reports
            session.config.workeroutput["assembled"] = self.count

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node):
        self.count += getattr(node, "workeroutput", {}).get("assembled", 0)

    def pytest_terminal_summary(self, terminalreporter):
        terminalreporter.write_line(f"ptxas took {self.count} kernels")


def install(config, every):
    if shutil.which("ptxas"):
        config.pluginmanager.register(Assembler(every), "assembler")
