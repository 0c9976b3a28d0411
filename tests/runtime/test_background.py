"""Variants that are compiled behind a launch which did without them."""

import os
import runpy
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import triton
import triton.language as tl
from triton.runtime import background

pytestmark = pytest.mark.host


@pytest.fixture(autouse=True)
def enabled(monkeypatch):
    monkeypatch.setenv("TRITON_BACKGROUND", "1")
    yield
    assert background.wait()


def new_scale():
    @triton.jit
    def scale(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * factor, mask=mask)

    return scale


def new_sums():
    """Rows are added up: how memory is read decides the order, and the number of rows does not."""

    @triton.jit
    def sums(x_ptr, out_ptr, stride, rows, BLOCK: tl.constexpr):
        for row in range(tl.program_id(0), rows, tl.num_programs(0)):
            x = tl.load(x_ptr + row * stride + tl.arange(0, BLOCK))
            tl.store(out_ptr + row, tl.sum(x, axis=0))

    return sums


def launch(kernel, n, factor=2):
    x = np.arange(n, dtype=np.float32)
    out = np.zeros(n + 16, np.float32)
    compiled = kernel[(triton.cdiv(n, 64),)](x, out, n, factor, BLOCK=64)
    assert (out[:n] == x * factor).all() and not out[n:].any()
    return compiled


def classes(kernel):
    """What the variants were compiled for of `n`: a divisor, or "one"."""
    found = [
        "one" if "n" in compiled.metadata.constants else compiled.metadata.divisibility["n"]
        for compiled in kernel.variants()
    ]
    return sorted(map(str, found))


def test_a_new_class_runs_the_general_variant_at_once_and_its_own_later():
    kernel = new_scale()
    first = launch(kernel, 160)
    assert background.wait()
    general = [compiled for compiled in kernel.variants() if compiled is not first]
    assert len(general) == 1 and general[0].metadata.divisibility["n"] == 1
    assert launch(kernel, 24) is general[0]
    assert launch(kernel, 1) is general[0]
    assert background.wait()
    for n in (24, 1, 160, 333):
        launch(kernel, n)
        assert background.wait()
    assert launch(kernel, 24) is not general[0] and launch(kernel, 1) is not general[0]
    assert launch(kernel, 160) is first and launch(kernel, 320) is first


ONES = {
    "64 // (n - 32)": True,
    "(n - 9) % 5": True,
    "n << 31": True,
    "n * 3 - 2147483647 - 5": True,
    "(n / 3) * 7": True,
    "(1 if n == 1 else 0) - 7 // (n - 4)": True,
    "tl.load(bytes_ptr) + n": True,
    "(n + 63) // 64 * n": False,
    "tl.minimum(n, 7) - 12": False,
    "1.0 / n + n / 4": False,
    "tl.load(bytes_ptr).to(tl.float32) / n": False,
    "tl.load(out_ptr).to(tl.int32) // n - n": False,
}


@pytest.mark.parametrize("text, differs", ONES.items())
def test_one_is_a_constant_where_that_makes_a_difference(text, differs, tmp_path):
    """Python's rules for the arithmetic of constants are others: quotients round down, nothing wraps around, ..."""
    file = tmp_path / "ones.py"
    file.write_text(
        "import triton\nimport triton.language as tl\n\n@triton.jit\n"
        f"def kernel(out_ptr, bytes_ptr, n):\n    tl.store(out_ptr + 1, {text})\n"
    )
    kernel = runpy.run_path(str(file))["kernel"]

    def result(n):
        out = np.array([100.0, 0.0])
        compiled = kernel[(1,)](out, np.array([127], np.int8), n)
        return out[1], "n" in compiled.metadata.constants

    result(5)
    assert background.wait()
    first, is_special = result(1)
    assert is_special == differs
    assert background.wait()
    assert (first, True) == result(1)


CHANGES = """
import os, threading
os.environ["TRITON_TARGET"] = "sim:90"
from test_background import new_scale, launch
threads = [threading.Thread(target=lambda: [launch(new_scale(), n) for n in range(160, 190)])]
for thread in threads:
    thread.start()
while any(thread.is_alive() for thread in threads):
    before = dict(os.environ)
    os.environ.clear()
    held = [bytes(16 * k) for k in range(1, 60)]
    os.environ.update(before)
"""


@triton.jit
def slow(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    """Takes long to compile."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    for i in tl.static_range(1500):
        x = tl.where(x > i, x, x + i * n)
    tl.store(out_ptr + offsets, x * factor, mask=offsets < n)


def test_what_a_launch_did_without_goes_before_what_none_asks_for():
    wanted, others = new_scale(), [new_scale() for _ in range(24)]
    launch(wanted, 160)
    assert background.wait()
    before = len(wanted.variants())
    out = np.zeros(160, np.float32)
    slow[(3,)](out, out, 160, 2, BLOCK=64)  # what the others ask for comes behind its general variant
    for kernel in others:
        launch(kernel, 160)
    launch(wanted, 168)  # runs the general variant
    while len(wanted.variants()) == before:
        time.sleep(0.001)
    assert any(len(kernel.variants()) == 1 for kernel in others)
    assert background.wait()
    assert all(len(kernel.variants()) == 2 for kernel in others)


def test_the_environment_changes_meanwhile():
    """Who sets variables moves and frees where they are, which other threads then must not read."""
    subprocess.run([sys.executable, "-c", CHANGES], cwd=Path(__file__).parent, check=True)


def test_a_sweep_ends_with_the_special_variants():
    kernel = new_scale()
    launch(kernel, 512)
    for n in range(1, 400):
        launch(kernel, n)
    assert background.wait()
    for n in (1, 2, 4, 8, 16):
        launch(kernel, n)
    assert background.wait()
    assert set(classes(kernel)) == {"one", "1", "4", "8", "16"}


def test_without_it_every_launch_compiles_what_it_runs(monkeypatch):
    monkeypatch.setenv("TRITON_BACKGROUND", "0")
    kernel = new_scale()
    assert launch(kernel, 160).metadata.divisibility["n"] == 16
    assert launch(kernel, 24).metadata.divisibility["n"] == 8
    assert len(kernel.variants()) == 2


def test_numbers_that_change_the_order_of_sums_are_compiled_at_once():
    kernel = new_sums()
    x = np.random.default_rng(0).random((8, 128), np.float32)
    out = np.zeros(8, np.float32)
    kernel[(1,)](x, out, 128, 8, BLOCK=64)
    assert background.wait()
    assert kernel[(1,)](x, out, 123, 8, BLOCK=64).metadata.divisibility["stride"] == 1


def test_numbers_that_do_not_are_not():
    kernel = new_sums()
    x = np.random.default_rng(0).random((16, 128), np.float32)
    first, later = np.zeros(16, np.float32), np.zeros(16, np.float32)
    kernel[(1,)](x, first, 128, 16, BLOCK=128)
    assert background.wait()
    general = kernel[(1,)](x, first, 128, 7, BLOCK=128)
    assert general.metadata.divisibility["rows"] == 1 and general.metadata.divisibility["stride"] == 16
    assert kernel[(1,)](x, first, 128, 12, BLOCK=128) is general
    assert background.wait()
    special = kernel[(1,)](x, later, 128, 12, BLOCK=128)
    assert special is not general and (first[:12] == later[:12]).all()


def test_strides_that_decide_how_wide_accesses_are_are_compiled_at_once():
    """Extents are not, though the address hangs on them through quotients, remainders and comparisons."""

    @triton.jit
    def copy(x_ptr, out_ptr, rows, columns, stride, BLOCK: tl.constexpr):
        tile = tl.program_id(0)
        across = tl.cdiv(columns, BLOCK)
        row, cols = tile // across % rows, tile % across * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride + cols, mask=cols < columns)
        tl.store(out_ptr + row * stride + cols, x, mask=cols < columns)

    x = np.random.default_rng(0).random((32, 64), np.float32)

    def launch(rows, columns, stride):
        out = np.zeros_like(x)
        compiled = copy[(rows * triton.cdiv(columns, 32),)](x, out, rows, columns, stride, BLOCK=32)
        places = np.arange(rows)[:, None] * stride + np.arange(columns)
        assert (out.ravel()[places] == x.ravel()[places]).all()
        return compiled

    launch(32, 64, 64)
    assert background.wait()
    general = launch(7, 33, 64)
    known = [general.metadata.divisibility[name] for name in ("rows", "columns", "stride")]
    assert known == [1, 1, 16]
    assert launch(24, 40, 64) is general
    assert launch(32, 48, 57).metadata.divisibility["stride"] == 1


def test_a_variant_that_cannot_be_compiled_behind_is_compiled_by_its_launch():
    kernel = new_scale()
    launch(kernel, 160)
    assert background.wait()
    parse = kernel.parse

    def fail():
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("not here")
        return parse()

    kernel.parse = fail
    general = launch(kernel, 24)
    assert background.wait()
    del kernel.parse
    special = launch(kernel, 24)
    assert special is not general and special.metadata.divisibility["n"] == 8


FACTOR = tl.constexpr(3)


def test_a_global_that_changes_meanwhile(monkeypatch):
    @triton.jit
    def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
        offsets = tl.arange(0, BLOCK)
        tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n) * FACTOR, mask=offsets < n)

    x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    for factor in (3, 5, 3, 7):
        monkeypatch.setitem(globals(), "FACTOR", tl.constexpr(factor))
        for n in (48, 24, 4, 1, 7):
            out[:] = 0
            scale[(1,)](x, out, n, BLOCK=64)
            assert (out[:n] == factor).all()
        if factor == 5:
            assert background.wait()


def test_many_threads_launch_meanwhile():
    kernels = [new_scale() for _ in range(3)]
    errors = []

    def work(seed):
        rng = np.random.default_rng(seed)
        try:
            for _ in range(60):
                launch(kernels[rng.integers(3)], int(rng.integers(1, 300)))
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


PROGRAM = """
import os, sys
import numpy as np
import triton, triton.language as tl
from triton.runtime import background

@triton.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    tl.store(out_ptr + o, tl.load(x_ptr + o, mask=o < n) * 2, mask=o < n)

def launch(n):
    x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    scale[(1,)](x, out, n, BLOCK=64)
    assert (out[:n] == 2).all() and not out[n:].any()

launch(48)
"""


def run(tmp_path, text, before=""):
    path = tmp_path / "program.py"
    path.write_text(before + PROGRAM + text)
    environment = os.environ | {"TRITON_CACHE_DIR": str(tmp_path / "cache"), "TRITON_VERIFY": "0"}
    return subprocess.run(
        [sys.executable, path], env=environment, check=False, capture_output=True, text=True, timeout=600
    )


@pytest.mark.parametrize("text", ["", "launch(24)\n", "background.wait()\nlaunch(1)\n", "sys.exit(0)\n"])
def test_the_process_ends_meanwhile(tmp_path, text):
    result = run(tmp_path, text)
    assert result.returncode == 0 and not result.stderr


def test_the_process_ends_in_the_middle_of_a_compilation(tmp_path):
    """Which is not told to Python's main thread as an interrupt."""
    result = run(
        tmp_path,
        """
@triton.jit
def long(x_ptr, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + o, mask=o < n)
    for i in tl.static_range(1500):
        x = tl.where(x > i, x * i, x - i) * x
    tl.store(x_ptr + o, x, mask=o < n)

long[(1,)](np.ones(64, np.float32), 48, BLOCK=64)
time.sleep(0.1)
""",
        before="import atexit, time\natexit.register(lambda: [time.sleep(0.001) for _ in range(100)])\n",
    )
    assert result.returncode == 0 and not result.stderr, result.stderr


def test_a_forked_process_begins_without(tmp_path):
    result = run(
        tmp_path,
        """
for _ in range(3):
    pid = os.fork()
    if not pid:
        for n in (24, 4, 1, 3, 16):
            launch(n)
        assert background.wait()
        assert len(scale.variants()) >= 3
        os._exit(0)
    launch(7)
    assert os.waitpid(pid, 0)[1] == 0
launch(24)
""",
    )
    assert result.returncode == 0 and not result.stderr, result.stderr
