"""Compiled kernels on disk: what is found again, what is not taken for it, and what becomes of damaged files."""

import hashlib
import importlib.util
import os
import pickle
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import triton
from triton import _C

pytestmark = pytest.mark.host

KERNEL = """
import triton
import triton.language as tl
{before}

@triton.jit
def helper(x):
    {helper}

@triton.jit
def kernel(out, x, n, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = index < n
    value = tl.load(x + index, mask=mask)
    tl.store(out + index, {value}, mask=mask)
"""


@pytest.fixture
def store(tmp_path, monkeypatch):
    """The folder of a cache that is in use."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("TRITON_CACHE_DIR", str(folder))
    monkeypatch.delenv("TRITON_CACHE_SIZE", raising=False)
    monkeypatch.delenv("TRITON_VERIFY", raising=False)
    return folder


def load(path, name="cached"):
    """The module in a file as a new process sees it: its kernels have no variants yet."""
    import linecache

    linecache.clearcache()
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class Program:
    """A file with a kernel."""

    def __init__(self, folder):
        self.path, self.time = folder / "program.py", 1_000_000_000

    def write(self, value="helper(value)", helper="return x * 2", before="", text=KERNEL):
        self.path.write_text(text.format(before=before, helper=helper, value=value))
        self.time += 10  # the compiled module and the lines that Python keeps are known by it
        os.utime(self.path, (self.time, self.time))
        return self

    def launch(self, module=None, n=40, **options):
        module = module or load(self.path)
        x = np.arange(n, dtype=np.float32)
        out = np.zeros_like(x)
        compiled = module.kernel[(triton.cdiv(n, 16),)](out, x, n, BLOCK=16, **options)
        return out, compiled


def is_from_disk(compiled):
    return compiled.info["cached"]


@pytest.fixture
def program(tmp_path, store):
    return Program(tmp_path).write()


def run(program, **options):
    """The factor by which the kernel multiplies, and whether it came from disk."""
    out, compiled = program.launch(**options)
    (factor,) = {float(number) for number in out[1:] / np.arange(1, len(out))}
    return factor, is_from_disk(compiled)


def files(store, kind):
    return sorted(path for path in (store / kind).rglob("*") if path.is_file())


# ---- what is found again


def test_second_process_compiles_nothing(program):
    assert run(program) == (2, False)
    _, compiled = program.launch()
    assert list(filter(compiled.timings.get, compiled.timings)) == ["store"]


def test_texts_are_those_of_a_fresh_kernel(program):
    _, fresh = program.launch()
    _, cached = program.launch()
    assert is_from_disk(cached) and not is_from_disk(fresh)
    assert {stage: fresh.asm[stage] for stage in fresh.asm} == {stage: cached.asm[stage] for stage in cached.asm}
    assert fresh.hash == cached.hash and fresh.metadata.shared == cached.metadata.shared
    assert fresh.signature == cached.signature


def cell(program, process, **change):
    """The namespace of a notebook's cell, whose file is named after the process and its text."""
    import linecache

    file, text = f"/nowhere/kernels_{process}/1234.py", program.write(**change).path.read_text()
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    namespace = {}
    exec(compile(text, file, "exec"), namespace)
    return SimpleNamespace(**namespace)


def test_a_cell_of_a_notebook_in_another_process(program, monkeypatch):
    import linecache

    monkeypatch.setattr(linecache, "cache", {})
    assert run(program, module=cell(program, 1)) == (2, False)
    assert run(program, module=cell(program, 2)) == (2, True)
    assert run(program, module=cell(program, 3, helper="return x * 3")) == (3, False)  # though its name is the same
    linecache.cache.clear()
    with pytest.raises(
        triton.CompilationError, match=r"<1234.py>:\d+:.*missing(.|\n)*\| .*x \+ missing\n.*\^"
    ) as error:
        run(program, module=cell(program, 4, helper="return x + missing"))
    assert "kernels_4" not in str(error.value)


def test_variants_are_entries_of_their_own(program):
    assert [run(program, n=n) for n in (40, 40, 48, 48)] == [(2, False), (2, True), (2, False), (2, True)]
    assert run(program, num_warps=2) == (2, False)
    assert run(program, num_warps=2) == (2, True)
    assert run(program, debug=True) == (2, False)
    assert run(program, debug=True) == (2, True)


def test_same_tile_ir_is_compiled_once(program, store):
    program.write(before="A: tl.constexpr = 4", value="value * A")
    assert run(program) == (4, False)
    program.write(before="B: tl.constexpr = 4", value="value * B")
    assert run(program) == (4, True)
    assert len(files(store, "kernels")) == 1


# ---- what is not taken for it: each pair of programs differs where the kernel's own text does not

CHANGES = {
    "function that it calls": ({"helper": "return x * 2"}, {"helper": "return x * 3"}),
    "global": ({"before": "A: tl.constexpr = 2"}, {"before": "A: tl.constexpr = 3"}),
    "global constexpr object": ({"before": "A = tl.constexpr(2)"}, {"before": "A = tl.constexpr(3)"}),
    "item of a tuple": (
        {"before": "B = tl.constexpr((2, 2))\nA = tl.constexpr(B.value[0])"},
        {"before": "B = tl.constexpr((2, 2))\nA = tl.constexpr(B.value[1] + 1)"},
    ),
    "Python's own name": ({"before": "", "value": "value * max(2, 1)"}, {"before": "max = tl.minimum"}),
    "compile-time function": (
        {"before": "@triton.constexpr_function\ndef a():\n    return 2\n"},
        {"before": "@triton.constexpr_function\ndef a():\n    return 3\n"},
    ),
    "function that a compile-time function calls": (
        {"before": "def b():\n    return 2\n@triton.constexpr_function\ndef a():\n    return b()\n"},
        {"before": "def b():\n    return 3\n@triton.constexpr_function\ndef a():\n    return b()\n"},
    ),
    "global of a compile-time function": (
        {"before": "C = 2\n@triton.constexpr_function\ndef a():\n    return C\n"},
        {"before": "C = 3\n@triton.constexpr_function\ndef a():\n    return C\n"},
    ),
    "default of a function": (
        {"before": "@triton.jit\ndef a(x=tl.constexpr(2)):\n    return x\n"},
        {"before": "@triton.jit\ndef a(x=tl.constexpr(3)):\n    return x\n"},
    ),
    "enumeration": (
        {"before": "import enum\nclass E(enum.Enum):\n    A = 2\n    B = 3\n"},
        {"before": "import enum\nclass E(enum.Enum):\n    A = 3\n    B = 2\n"},
    ),
    "module": ({"before": "import other_a as other"}, {"before": "import other_b as other"}),
    "class": (
        {"before": "class K:\n    A = tl.constexpr(2)\n"},
        {"before": "class K:\n    A = tl.constexpr(3)\n"},
    ),
}
AGGREGATE = """
@triton.aggregate
class Base:
    x: tl.tensor
    n: tl.constexpr = {default}

    @triton.jit
    def scaled(self):
        return self.x * {method}

    @triton.jit
    def __neg__(self):
        return self.x * {operator}

@triton.aggregate
class K(Base):
    pass

@triton.aggregate
class Own:
    n: tl.constexpr

    def __init__(self, n):
        self.n = n + {init}
"""
PARTS = {
    "default": "value * K(value).n",
    "method": "K(value).scaled()",
    "operator": "-K(value)",
    "init": "value * Own(1).n",
}
for part in PARTS:
    texts = [AGGREGATE.format(**{name: x if name == part else 2 for name in PARTS}) for x in (2, 3)]
    CHANGES[f"aggregate's {part}"] = tuple({"before": text} for text in texts)
VALUES = {f"aggregate's {part}": value for part, value in PARTS.items()} | {
    "function that it calls": "helper(value)",
    "Python's own name": "value * max(2, 3)",
    "enumeration": "value * E.A.value",
    "module": "value * other.A",
    "class": "value * K.A",
}


@pytest.mark.parametrize("what", CHANGES)
def test_change_is_seen(program, what, tmp_path, monkeypatch):
    (tmp_path / "other_a.py").write_text("import triton.language as tl\nA = tl.constexpr(2)\n")
    (tmp_path / "other_b.py").write_text("import triton.language as tl\nA = tl.constexpr(3)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    calls = "function" in what and what != "function that it calls"
    value = VALUES.get(what, "value * a()" if calls else "value * A")
    first, second = CHANGES[what]
    lines = max(text.get("before", "").count("\n") for text in (first, second))

    def write(text):
        before = text.get("before", "")
        program.write(**{**text, "before": before + "\n" * (lines - before.count("\n")), "value": value})

    write(first)
    before = run(program)
    write(second)
    after = run(program)
    assert before[0] != after[0] and not after[1]
    for text, expected in ((first, before[0]), (second, after[0])):  # both are there now
        write(text)
        assert run(program)[0] == expected


def test_values_of_an_enclosing_function(program):
    text = KERNEL.replace("@triton.jit\ndef kernel", "def make(factor):\n  @triton.jit\n  def kernel")
    head, tail = text.split("def kernel", 1)
    text = (
        head
        + "def kernel"
        + tail.replace("\n    ", "\n      ")
        + "  return kernel\nkernel = make(tl.constexpr({helper}))\n"
    )
    text = text.replace("def helper(x):\n    {helper}", "def helper(x):\n    return x")
    seen = []
    for factor in (2, 3, 2, 3):
        program.write(text=text, helper=factor, value="value * factor")
        seen.append(run(program))
    assert seen == [(2, False), (3, False), (2, True), (3, True)]


def test_lines_that_move_are_compiled_anew(program):
    """For texts and messages name them."""
    assert run(program) == (2, False)
    program.write(before="\n\n")
    assert run(program) == (2, False)


def test_more_lines_behind_the_function(program):
    program.write(value="value")
    program.launch()
    with open(program.path, "a") as file:
        file.write("    tl.store(out + index, value * 5, mask=mask)\n")
    os.utime(program.path, (program.time + 20, program.time + 20))
    assert run(program) == (5, False)


def test_environment_is_part_of_it(program, monkeypatch):
    assert run(program) == (2, False)
    monkeypatch.setenv("TRITON_STRICT", "1")
    assert run(program) == (2, False)
    monkeypatch.setenv("TRITON_CPU_ARCH", "x86-64-v2")
    assert run(program) == (2, False)
    assert run(program) == (2, True)


def test_switches(program, store, monkeypatch):
    with monkeypatch.context() as only:
        only.setenv("TRITON_CACHE_SIZE", "0")
        assert [run(program), run(program)] == [(2, False), (2, False)]
        assert not store.exists()
    with monkeypatch.context() as only:
        only.setenv("TRITON_VERIFY", "1")
        assert [run(program), run(program)] == [(2, False), (2, False)]
        assert not store.exists()
    with monkeypatch.context() as only:
        only.setenv("TRITON_ALWAYS_COMPILE", "1")
        assert [run(program), run(program)] == [(2, False), (2, False)]
    assert run(program) == (2, True)


# ---- what a kernel says


def test_static_print_prints_every_time(program, capsys):
    program.write(before="A: tl.constexpr = 3", helper='tl.static_print("compiling")\n    return x * A')
    assert run(program) == (3, False)
    assert run(program) == (3, True)  # by its tile IR: the frontend has run
    assert capsys.readouterr().out.count("compiling") == 2


def test_warnings_are_repeated(program):
    text = KERNEL.replace(
        "    value = tl.load",
        "    for _ in tl.range(0, n, loop_unroll_factor=4):\n"
        "        if n > 1000:\n"
        "            break\n"
        "    value = tl.load",
    )
    program.write(text=text)
    messages = []
    for _ in range(2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            factor = run(program)
        messages.append([str(each.message) for each in caught])
    assert factor == (2, True)
    assert messages[0] == messages[1] and any("loop_unroll_factor" in text for text in messages[0])


def test_failures_name_their_line(program, target):
    program.write(helper='tl.device_assert(x < 10, "too large")\n    return x * 2')
    messages = []
    for _ in range(2):
        with pytest.raises(triton.DeviceAssertionError) as caught:
            program.launch(debug=True)
        messages.append(str(caught.value).rpartition("program (")[0])
    assert messages[0] == messages[1] and "program.py:8" in messages[0] and "too large" in messages[0]


def test_prints_of_kernels(program, capsys):
    program.write(helper='tl.device_print("x", x)\n    return x * 2')
    texts = []
    for _ in range(2):
        program.launch(n=3)
        texts.append(capsys.readouterr().out)
    assert sorted(texts[0].splitlines()) == sorted(texts[1].splitlines()) and "2" in texts[0]


# ---- what becomes of files


def damaged(data):
    yield b""
    yield data[:10]
    yield data[:-1]
    yield data + b"x"
    yield bytes(len(data))
    for place in range(0, len(data), max(1, len(data) // 60)):
        yield data[:place] + bytes([data[place] ^ 1 << place % 8]) + data[place + 1 :]


@pytest.mark.parametrize("kind", ["kernels", "sources"])
def test_damaged_files_are_replaced(program, store, kind):
    run(program)
    (path,) = files(store, kind)
    data = path.read_bytes()
    for bad in damaged(data):
        path.write_bytes(bad)
        assert run(program) == (2, kind == "sources")
        assert len(path.read_bytes()) == len(data)
        assert run(program) == (2, True)


def test_files_in_each_others_places(program, store):
    run(program, n=40)
    run(program, n=48)
    first, second = files(store, "kernels")
    texts = first.read_bytes(), second.read_bytes()
    first.write_bytes(texts[1])
    second.write_bytes(texts[0])
    assert [run(program, n=40), run(program, n=48)] == [(2, False), (2, False)]
    assert [run(program, n=40), run(program, n=48)] == [(2, True), (2, True)]


def test_odd_files(program, store):
    """Nothing makes a reader wait, and what others may have written is not read."""
    run(program)
    (path,) = files(store, "kernels")
    data = path.read_bytes()
    path.chmod(0o666)
    assert run(program) == (2, False)
    path.unlink()
    os.mkfifo(path)
    assert run(program) == (2, False)
    path.unlink()
    other = store / "elsewhere"
    other.write_bytes(data)
    path.symlink_to(other)
    assert run(program) == (2, False)
    assert not path.is_symlink() and run(program) == (2, True)
    path.unlink()
    path.mkdir()
    assert [run(program), run(program)] == [(2, False), (2, False)]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_files_of_another_user(program, store):
    run(program)
    (path,) = files(store, "kernels")
    os.chown(path, 12345, 12345)
    assert run(program) == (2, False)
    assert path.stat().st_uid == 0 and run(program) == (2, True)


def test_folder_that_cannot_be_written(program, store, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "file" / "below"))
    assert [run(program), run(program)] == [(2, False), (2, False)]


def test_full_disk(program, store, monkeypatch):
    import resource
    import signal

    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # Python's own files would be cut off, too, and then read
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
        assert [run(program), run(program)] == [(2, False), (2, False)]
        assert not files(store, "kernels") and not files(store, "drafts")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert [run(program), run(program)] == [(2, False), (2, True)]


def test_clock_that_jumps(program, store):
    run(program)
    for time in (0, 2**33):
        for path in files(store, "kernels") + files(store, "sources"):
            os.utime(path, (time, time))
        assert run(program) == (2, True)
        assert all(abs(path.stat().st_mtime - os.stat(store).st_mtime) < 86400 for path in files(store, "kernels"))


def test_size_is_bounded(store, monkeypatch):
    keep, limit = [], 64 << 10
    for number in range(40):
        key, data = hashlib.blake2b(b"%d" % number, digest_size=32).digest(), bytes(8000)
        _C._store_write(key, data)
        path = next(path for path in files(store, "kernels") if path not in keep)
        os.utime(path, (1_000_000_000 + number % 7, 1_000_000_000 + number % 7))
        keep.append(path)
    _C.store_sweep(str(store), limit)
    left = files(store, "kernels")
    assert 4 <= len(left) <= limit // 8192
    assert all(path.stat().st_mtime >= 1_000_000_000 + 5 for path in left)


def test_drafts_of_dead_writers_are_removed(program, store):
    import socket

    run(program)
    host, none = socket.gethostname(), (1 << 22) + 1  # no process of Linux has a larger number than 1 << 22
    dead, live, other = (
        store / "drafts" / f"{pid}-0-{name}" for pid, name in ((none, host), (os.getpid(), host), (1, "x"))
    )
    for path in (dead, live, other):
        path.write_bytes(b"half")
    _C.store_sweep(str(store), 1 << 40)
    assert not dead.exists() and live.exists() and other.exists()
    os.utime(other, (0, 0))
    _C.store_sweep(str(store), 1 << 40)
    assert not other.exists()


# ---- bytes


def test_hash():
    for size in (0, 1, 127, 128, 129, 255, 256, 1000, 12345):
        data = np.random.default_rng(size).bytes(size)
        assert _C._digest(data) == hashlib.blake2b(data, digest_size=32).digest()


def test_image_in_another_process(program):
    _, compiled = program.launch()
    assert bytes(compiled.image) == compiled.image
    copy = pickle.loads(pickle.dumps(compiled.image))
    places = {*range(100), *range(len(copy) - 40, len(copy)), *range(100, len(copy), max(1, len(copy) // 100))}
    for place in sorted(places):
        changed = copy[:place] + bytes([copy[place] ^ 1 << place % 8]) + copy[place + 1 :]
        with pytest.raises(triton.CompilationError, match="another version of the compiler, or was changed"):
            type(compiled)()._restore(compiled.fn, compiled.info, changed)


def test_default_folder(monkeypatch, tmp_path):
    for name in ("TRITON_CACHE_DIR", "TRITON_HOME", "TRITON_CACHE_SIZE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert _C.store_folder() == str(tmp_path / ".triton" / "cache")
    monkeypatch.setenv("TRITON_HOME", "/somewhere")
    assert _C.store_folder() == "/somewhere/.triton/cache"
    monkeypatch.setenv("TRITON_CACHE_DIR", str(Path("relative")))
    assert _C.store_folder() == "relative"
