"""What compiled kernels are kept under: a key of the compiler, and files by a hash of what they are made from."""

from functools import cache

from .. import knobs


@cache
def triton_key():
    """A text that differs where two versions of this package would compile a kernel differently."""
    import hashlib
    from pathlib import Path

    root = Path(__file__).parents[1]
    key = hashlib.sha256()
    for path in sorted([*root.rglob("*.py"), *root.glob("_C.*.so")]):
        key.update(str(path.relative_to(root)).encode())
        with open(path, "rb") as file:
            while chunk := file.read(1 << 20):
                key.update(chunk)
    return key.hexdigest()


def keep(key, files):
    """Write files, made by functions without arguments, under a key to where TRITON_CACHE_DIR says.

    Returns their paths by name; those whose function gives None are not there. A file that is there is not made again:
    the key says all that it depends on.
    """
    import os
    import tempfile

    root = os.environ.get("TRITON_CACHE_DIR")
    paths = {}
    for name, make in files.items() if root else ():
        path = os.path.join(root, key, name)
        if not os.path.exists(path):
            data = make()
            if data is None:
                continue
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=os.path.dirname(path), delete=False) as file:
                file.write(data)
            os.replace(file.name, path)  # whole or not at all, whoever else writes it
        paths[name] = path
    return paths


__all__ = ["keep", "knobs", "triton_key"]
