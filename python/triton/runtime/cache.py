"""Files by key: what programs keep beside compiled kernels, and what they look into.

Compiled kernels themselves are kept by the compiler (docs/design.md, section 11; `triton.tools.cache` shows and moves
them). The managers here are for whatever else belongs to a key: a cubin for another launcher, what a program measured.
They use the same folder.
"""

import os
from abc import ABC, abstractmethod
from functools import cache

from .. import _C, knobs


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


def get_cache_key(src, backend, backend_options, env_vars):
    """A text that differs where the code of a source, for a backend with options, in an environment, would."""
    environment = sorted(env_vars.items())
    return f"{triton_key()}-{src.hash()}-{backend.hash()}-{backend_options.hash()}-{environment}"


def default_folder():
    """Where everything is kept, unless TRITON_CACHE_DIR says otherwise."""
    return _C.store_folder()


def default_cache_dir():
    """Where compiled kernels are, if TRITON_CACHE_DIR does not say."""
    return knobs.cache.get_triton_dir("cache")


def default_dump_dir():
    return knobs.cache.get_triton_dir("dump")


def default_override_dir():
    return knobs.cache.get_triton_dir("override")


# ---- managers


class CacheManager(ABC):
    """Files that belong to a key, by name; a group is several that are there together or not at all."""

    def __init__(self, key, override=False, dump=False):
        self.key = key

    @abstractmethod
    def get_file(self, filename):
        """The path of a file, or None."""

    @abstractmethod
    def put(self, data, filename, binary=True):
        """Keep a text or bytes; the path of the file."""

    @abstractmethod
    def get_group(self, filename):
        """The paths of a group's files by name, or None."""

    @abstractmethod
    def put_group(self, filename, group):
        """Keep which paths belong to a group; the path of the list."""


class FileCacheManager(CacheManager):
    """Files in a folder of the key's own: in the cache, or in those of dumps or overriding files."""

    def __init__(self, key, override=False, dump=False):
        super().__init__(key)
        root = knobs.cache.dump_dir if dump else knobs.cache.override_dir if override else default_folder()
        if not root:
            raise RuntimeError("there is no folder to keep files in: set TRITON_CACHE_DIR")
        self.cache_dir = os.path.join(root, key)

    def _path(self, filename):
        return os.path.join(self.cache_dir, filename)

    def has_file(self, filename):
        return os.path.exists(self._path(filename))

    def get_file(self, filename):
        return self._path(filename) if self.has_file(filename) else None

    def put(self, data, filename, binary=True):
        """Whole or not at all, whoever else writes it."""
        import tempfile

        data = data if isinstance(data, bytes) else str(data).encode()
        os.makedirs(self.cache_dir, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=self.cache_dir, delete=False) as file:
            try:
                file.write(data)
                file.close()
                os.replace(file.name, self._path(filename))
            except BaseException:
                os.unlink(file.name)
                raise
        return self._path(filename)

    def get_group(self, filename):
        import json

        path = self.get_file(_group_name(filename))
        if path is None:
            return None
        with open(path) as file:
            paths = json.load(file).get("child_paths", {})
        return {name: path for name, path in paths.items() if os.path.exists(path)}

    def put_group(self, filename, group):
        import json

        return self.put(json.dumps({"child_paths": group}), _group_name(filename), binary=False)


def _group_name(filename):
    return f"__grp__{filename}"


class RemoteCacheBackend(ABC):
    """Where a `RemoteCacheManager` keeps bytes."""

    def __init__(self, key):
        self.key = key

    @abstractmethod
    def get(self, filenames):
        """The bytes of those files that are there, by name."""

    @abstractmethod
    def put(self, filename, data):
        """Keep bytes."""


class RedisRemoteCacheBackend(RemoteCacheBackend):
    """In a Redis server: TRITON_REDIS_HOST, TRITON_REDIS_PORT, and TRITON_REDIS_KEY_FORMAT of {key} and {filename}."""

    def __init__(self, key):
        import redis

        super().__init__(key)
        self._format = knobs.redis.key_format
        self._redis = redis.Redis(host=knobs.redis.host, port=knobs.redis.port)

    def _name(self, filename):
        return self._format.format(key=self.key, filename=filename)

    def get(self, filenames):
        found = self._redis.mget([self._name(name) for name in filenames])
        return {name: data for name, data in zip(filenames, found, strict=True) if data is not None}

    def put(self, filename, data):
        self._redis.set(self._name(filename), data)


class RemoteCacheManager(CacheManager):
    """Files of a `RemoteCacheBackend`, which TRITON_REMOTE_CACHE_BACKEND names ("module:class"), with copies here.

    What is dumped, and what overrides, is here only.
    """

    def __init__(self, key, override=False, dump=False):
        super().__init__(key)
        self._files = FileCacheManager(key, override=override, dump=dump)
        self._remote = None if override or dump else knobs.cache.remote_manager_class(key)

    def _fetch(self, filename):
        found = self._remote.get([filename]).get(filename) if self._remote else None
        return None if found is None else self._files.put(found, filename)

    def get_file(self, filename):
        return self._files.get_file(filename) or self._fetch(filename)

    def put(self, data, filename, binary=True):
        path = self._files.put(data, filename, binary)
        if self._remote:
            self._remote.put(filename, data if isinstance(data, bytes) else str(data).encode())
        return path

    def get_group(self, filename):
        import json

        path = self.get_file(_group_name(filename))
        if path is None:
            return None
        with open(path) as file:
            names = json.load(file)["child_paths"]  # as the process that put it has them: their names hold here
        paths = {name: self.get_file(os.path.basename(path)) for name, path in names.items()}
        return {name: path for name, path in paths.items() if path}

    def put_group(self, filename, group):
        import json

        return self.put(json.dumps({"child_paths": group}), _group_name(filename), binary=False)


def _manager_class():
    asked = knobs.cache.manager_class
    return asked or (RemoteCacheManager if knobs.cache.remote_manager_class else FileCacheManager)


def get_cache_manager(key):
    """Of files that are kept; of the class that TRITON_CACHE_MANAGER names ("module:class"), if it does."""
    return _manager_class()(key)


def get_override_manager(key):
    """Of files that take the place of stages of a kernel: TRITON_OVERRIDE_DIR."""
    return _manager_class()(key, override=True)


def get_dump_manager(key):
    """Of the stages of kernels, for people to read: TRITON_DUMP_DIR."""
    return _manager_class()(key, dump=True)


def keep(key, files):
    """Write files, made by functions without arguments, under a key to where TRITON_CACHE_DIR says; only if it is set.

    Returns their paths by name; those whose function gives None are not there. A file that is there is not made again:
    the key says all that it depends on.
    """
    if not os.environ.get("TRITON_CACHE_DIR"):
        return {}
    manager, paths = FileCacheManager(key), {}
    for name, make in files.items():
        path = manager.get_file(name)
        data = make() if path is None else None
        if data is not None:
            path = manager.put(data, name)
        if path is not None:
            paths[name] = path
    return paths


__all__ = [
    "CacheManager",
    "FileCacheManager",
    "RedisRemoteCacheBackend",
    "RemoteCacheBackend",
    "RemoteCacheManager",
    "default_cache_dir",
    "default_dump_dir",
    "default_override_dir",
    "get_cache_key",
    "get_cache_manager",
    "get_dump_manager",
    "get_override_manager",
    "keep",
    "knobs",
    "triton_key",
]
