"""Compiled kernels on disk: ``python -m triton.tools.cache list | size | verify | clear | export FILE | import FILE``.

To ship a program with its kernels compiled, run it once where they may be compiled, `export`, and `import` where it
will run: with the same version of this package, sources at the same paths, and the same kind of processor or GPU.
"""

import os
from collections import namedtuple

from .. import _C

Entry = namedtuple("Entry", "path kind size used facts")
Entry.__doc__ = """A file: its path, kind ("kernels", or "sources": what says which kernels there are), size in bytes,
the time of its last use, and of a kernel what is known of it (name, target, ...); None for what is damaged."""

_KINDS = "kernels", "sources"


def _folder(folder):
    return folder or _C.store_folder()


def _paths(folder):
    for kind in _KINDS:
        for place, _, names in os.walk(os.path.join(_folder(folder) or "", kind)):
            yield from ((kind, os.path.join(place, name)) for name in sorted(names))


def _read(kind, path):
    """The bytes of a whole file, or None."""
    with open(path, "rb") as file:
        data = file.read()
    seal = _C.read_seal(data)
    if seal is None or seal[0] != kind:
        return None
    digits = seal[1].hex()
    return data if os.path.normpath(path).endswith(os.path.join(kind, digits[:2], digits[2:])) else None


def entries(folder=None):
    """Every `Entry`, the last used first."""
    found = []
    for kind, path in _paths(folder):
        try:
            status, data = os.stat(path), _read(kind, path)
        except OSError:  # another process has taken it away
            continue
        facts = None if data is None else _C.image_facts(data) if kind == "kernels" else {}
        found.append(Entry(path, kind, status.st_size, status.st_mtime, facts))
    return sorted(found, key=lambda entry: -entry.used)


def size(folder=None):
    """How many bytes all files have."""
    return sum(os.path.getsize(path) for _, path in _paths(folder))


def verify(folder=None, remove=False):
    """The paths of damaged files, which with `remove` are taken away. They do no harm: they count as not there."""
    bad = [entry.path for entry in entries(folder) if entry.facts is None]
    for path in bad if remove else ():
        os.unlink(path)
    return bad


def clear(folder=None):
    """Take away all compiled kernels, and what writers have left; how many files that were. Other files stay."""
    paths = [path for _, path in _paths(folder)]
    for path in paths:
        os.unlink(path)
    if _folder(folder):
        _C.store_sweep(_folder(folder), 0)
    return len(paths)


def export(path, folder=None):
    """Write all whole files to an archive (tar); how many they are."""
    import tarfile

    count = 0
    with tarfile.open(path, "w") as archive:
        for entry in entries(folder):
            if entry.facts is not None:
                archive.add(entry.path, os.path.relpath(entry.path, _folder(folder)))
                count += 1
    return count


def import_(path, folder=None):
    """Take over the files of an archive that `export` made; how many were whole. They will be trusted as one's own."""
    import tarfile

    count = 0
    with tarfile.open(path) as archive:
        for member in archive:
            file = archive.extractfile(member) if member.isreg() else None
            count += bool(file) and _C.store_add(_folder(folder), file.read())
    return count


def _show(found):
    from time import localtime, strftime

    for entry in found:
        used = strftime("%Y-%m-%d %H:%M", localtime(entry.used))
        facts = entry.facts
        if facts:
            what = f"{facts['name']} ({facts['target']}, num_warps={facts['num_warps']})"
        else:
            what = "damaged" if facts is None else "source"
        print(f"{used}  {entry.size:>9}  {os.path.basename(entry.path)[:8]}  {what}")


def main(arguments=None):
    import argparse

    parser = argparse.ArgumentParser("python -m triton.tools.cache", description="Compiled kernels on disk.")
    parser.add_argument("--folder", help="instead of where TRITON_CACHE_DIR says")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (
        ("list", "show the kernels, the last used first"),
        ("size", "say how much they take"),
        ("verify", "name damaged files"),
        ("clear", "take all away"),
        ("export", "write all to an archive"),
        ("import", "take over an archive that was exported"),
    ):
        command = commands.add_parser(name, help=text)
        if name in ("export", "import"):
            command.add_argument("file")
        if name == "verify":
            command.add_argument("--remove", action="store_true", help="and take them away")
    options = parser.parse_args(arguments)
    folder = options.folder
    if options.command == "list":
        _show(entries(folder))
    elif options.command == "size":
        print(f"{size(folder)} of at most {_C.store_limit()} bytes in {_folder(folder)}")
    elif options.command == "verify":
        bad = verify(folder, options.remove)
        print(*bad, f"{len(bad)} damaged files", sep="\n")
        return bool(bad)
    elif options.command == "clear":
        print(f"{clear(folder)} files removed")
    elif options.command == "export":
        print(f"{export(options.file, folder)} files written")
    else:
        print(f"{import_(options.file, folder)} files taken over")
    return 0


if __name__ == "__main__":
    import sys

    sys.exit(main())
