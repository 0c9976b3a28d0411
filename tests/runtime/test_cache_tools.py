"""Tools and managers around the cache of compiled kernels: lists, archives, dumps, and files in place of stages."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
from test_cache import Program, files, run, store  # noqa: F401

import triton
from triton import _C, knobs
from triton.runtime import cache
from triton.tools import cache as tool

pytestmark = pytest.mark.host
ROOT = Path(__file__).parents[2]


@pytest.fixture
def program(tmp_path, store):  # noqa: F811
    return Program(tmp_path).write()


# ---- triton.tools.cache


def test_list_size_verify_clear(program, store, target, capsys):  # noqa: F811
    run(program)
    found = tool.entries()
    assert sorted(entry.kind for entry in found) == ["kernels", "sources"]
    (kernel,) = [entry for entry in found if entry.kind == "kernels"]
    assert kernel.facts["name"] == "kernel" and kernel.facts["target"] == target and "fmul" in kernel.facts["source"]
    assert (
        tool.size() == sum(entry.size for entry in found) == sum(path.stat().st_size for path in store.rglob("*/*/*"))
    )
    assert tool.verify() == [] and tool.main(["list"]) == 0 and tool.main(["size"]) == 0
    assert "kernel (" in capsys.readouterr().out
    Path(kernel.path).write_bytes(b"something else")
    assert tool.main(["verify"]) == 1 and kernel.path in capsys.readouterr().out
    assert tool.verify(remove=True) == [kernel.path] and tool.verify() == []
    (store / "mine").write_text("stays")
    assert tool.clear() == 1 and tool.entries() == [] and (store / "mine").exists()
    assert run(program) == (2, False)


def test_archives(program, store, tmp_path, monkeypatch):  # noqa: F811
    run(program)
    archive = tmp_path / "kernels.tar"
    assert tool.export(archive) == 2
    other = tmp_path / "elsewhere"
    monkeypatch.setenv("TRITON_CACHE_DIR", str(other))
    assert tool.import_(archive) == 2
    assert run(program) == (2, True)
    data = bytearray(archive.read_bytes())
    with tarfile.open(archive) as members:
        first = members.getmembers()[0]
    data[first.offset_data + first.size // 2] ^= 1  # not in what fills a record up
    archive.write_bytes(data)
    tool.clear()
    assert tool.import_(archive) == 1  # what was damaged is not taken over


def test_archives_name_no_paths(store, tmp_path):  # noqa: F811
    """Where a file goes is in its contents, not in the archive."""
    import io
    import tarfile

    with tarfile.open(tmp_path / "bad.tar", "w") as archive:
        member = tarfile.TarInfo("../../escaped")
        member.size = 3
        archive.addfile(member, io.BytesIO(b"abc"))
    assert tool.import_(tmp_path / "bad.tar") == 0 and not list(tmp_path.rglob("escaped"))


# ---- managers


def test_file_manager(store):  # noqa: F811
    manager = cache.get_cache_manager("abc")
    assert isinstance(manager, cache.FileCacheManager) and manager.get_file("x.txt") is None
    path = manager.put("text", "x.txt", binary=False)
    assert path == manager.get_file("x.txt") == str(store / "abc" / "x.txt") and manager.has_file("x.txt")
    manager.put(b"\0bytes", "y.bin")
    group = {"x.txt": path, "y.bin": manager.get_file("y.bin")}
    manager.put_group("both.json", group)
    assert manager.get_group("both.json") == group and manager.get_group("other.json") is None
    os.unlink(path)
    assert manager.get_group("both.json") == {"y.bin": group["y.bin"]}
    assert sorted(os.listdir(store / "abc")) == ["__grp__both.json", "y.bin"]


class Remote(cache.RemoteCacheBackend):
    kept = {}

    def get(self, filenames):
        return {name: self.kept[self.key, name] for name in filenames if (self.key, name) in self.kept}

    def put(self, filename, data):
        self.kept[self.key, filename] = data


def test_remote_manager(store, monkeypatch, tmp_path):  # noqa: F811
    monkeypatch.setenv("TRITON_REMOTE_CACHE_BACKEND", f"{__name__}:Remote")
    manager = cache.get_cache_manager("abc")
    assert isinstance(manager, cache.RemoteCacheManager)
    path = manager.put("text", "x.txt", binary=False)
    manager.put_group("all.json", {"x.txt": path})
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "of another machine"))
    there = cache.get_cache_manager("abc")
    assert Path(there.get_file("x.txt")).read_text() == "text" and there.get_file("x.txt") != path
    assert list(there.get_group("all.json")) == ["x.txt"] and there.get_file("none") is None


def test_classes_are_named(store, monkeypatch):  # noqa: F811
    monkeypatch.setenv("TRITON_CACHE_MANAGER", "no_colon")
    with pytest.raises(RuntimeError, match="module:class"):
        cache.get_cache_manager("abc")


def test_key_of_a_source():
    class Named:
        def hash(self):
            return "h"

    key = cache.get_cache_key(Named(), Named(), Named(), {"B": "2", "A": "1"})
    assert key == cache.get_cache_key(Named(), Named(), Named(), {"A": "1", "B": "2"})
    assert key != cache.get_cache_key(Named(), Named(), Named(), {"A": "1"})


def test_knobs(store, monkeypatch, tmp_path):  # noqa: F811
    assert knobs.cache.dir == str(store)
    monkeypatch.setenv("TRITON_HOME", str(tmp_path))
    assert knobs.cache.dump_dir == str(tmp_path / ".triton" / "dump")
    with knobs.cache.scope():
        knobs.cache.override_dir = "/over"
        assert cache.get_override_manager("k").cache_dir == "/over/k"
    with knobs.compilation.scope():
        knobs.compilation.always_compile = True
        assert os.environ["TRITON_ALWAYS_COMPILE"] == "1"


# ---- TRITON_KERNEL_DUMP, TRITON_KERNEL_OVERRIDE


def test_dump_and_override(program, monkeypatch, tmp_path):
    monkeypatch.setenv("TRITON_DUMP_DIR", str(tmp_path / "dump"))
    monkeypatch.setenv("TRITON_OVERRIDE_DIR", str(tmp_path / "override"))
    monkeypatch.setenv("TRITON_KERNEL_DUMP", "1")
    _, compiled = program.launch()
    (folder,) = (tmp_path / "dump").iterdir()
    assert folder.name == compiled.hash
    assert sorted(path.name for path in folder.iterdir()) == sorted(f"kernel.{stage}" for stage in compiled._stages())
    text = (folder / "kernel.ttir").read_text()
    assert text == compiled.asm["ttir"]
    monkeypatch.delenv("TRITON_KERNEL_DUMP")
    monkeypatch.setenv("TRITON_KERNEL_OVERRIDE", "1")
    assert run(program) == (2, True)
    own = tmp_path / "override" / folder.name / "kernel.ttir"
    own.parent.mkdir(parents=True)
    own.write_text(text.replace("{value = 2.0}", "{value = 5.0}"))
    out, changed = program.launch()
    assert out[1] == 5 and changed.hash != compiled.hash
    own.write_text("nonsense")
    with pytest.raises(triton.CompilationError, match="kernel.ttir"):
        program.launch()
    own.unlink()
    (own.parent / "kernel.llir").write_text("define void @f()")
    with pytest.raises(triton.UnsupportedError, match="ttir and ptx can be overridden"):
        program.launch()
    monkeypatch.delenv("TRITON_KERNEL_OVERRIDE")
    assert run(program)[0] == 2  # what overrides is never kept


# ---- many processes


def test_stress(tmp_path):
    """A short form of what `python benchmarks/stress.py` does."""
    command = [sys.executable, "benchmarks/stress.py", "--processes", "8", "--kernels", "5", "--kills", "12"]
    environment = os.environ | {"TRITON_TARGET": "cpu", "TMPDIR": str(tmp_path)}
    command += ["--damages", "60"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_facts_of_what_is_no_image():
    assert _C.image_facts(b"") is None and _C.read_seal(np.zeros(88, np.uint8).tobytes()) is None
