"""Settings of a program: ``triton.knobs.runtime.debug = True``. Those that an environment variable sets too are that
variable: reading looks at it, setting sets it (for processes that are started later as well), ``del`` removes it.

``with knobs.runtime.scope():`` takes back at its end what was set inside.
"""

import os
from contextlib import contextmanager

from . import _C
from .runtime.interpret import refresh as refresh_interpreter


class HookChain:
    """Functions that are called one after the other, in the order in which they were added (or the reverse)."""

    def __init__(self, reversed=False):
        self.calls, self.reversed, self._changed = [], reversed, lambda: None

    def add(self, hook):
        if not callable(hook):
            raise TypeError(f"a hook must be callable, not {hook!r}")
        if hook not in self.calls:
            self.calls.append(hook)
        self._changed()

    def remove(self, hook):
        """Take a hook out; no error if it is not there."""
        if hook in self.calls:
            self.calls.remove(hook)
        self._changed()

    def __call__(self, *args, **kwargs):
        for hook in reversed(self.calls) if self.reversed else list(self.calls):
            hook(*args, **kwargs)


class _Variable:
    """An attribute that is an environment variable."""

    def __init__(self, name):
        self.name = name

    def __get__(self, knobs, owner=None):
        return self if knobs is None else self._read(os.environ.get(self.name) or None)

    def __set__(self, knobs, value):
        self.restore(self._write(value))

    def __delete__(self, knobs):
        self.restore(None)

    def restore(self, text):
        """Make the variable what it was: a text, or None when there was none."""
        if text is None:
            os.environ.pop(self.name, None)
        else:
            os.environ[self.name] = text


class _Flag(_Variable):
    _read = staticmethod(lambda text: text not in (None, "0"))
    _write = staticmethod(lambda value: "1" if value else "0")


class _Debug(_Flag):
    """Holds for the next launch of every kernel, whether it was compiled before or not."""

    def restore(self, text):
        super().restore(text)
        _C.set_debug(None if text is None else self._read(text))


class _Interpret(_Flag):
    """Holds for the next launch of every kernel."""

    def restore(self, text):
        super().restore(text)
        refresh_interpreter()


class _Text(_Variable):
    _read = staticmethod(lambda text: text)
    _write = staticmethod(lambda value: "" if value is None else str(value))


class _Folder(_Text):
    """A folder; unless set, one of this name in ~/.triton (TRITON_HOME instead of ~)."""

    def __init__(self, name, default):
        super().__init__(name)
        self._default = default

    def _read(self, text):
        home = os.environ.get("TRITON_HOME") or os.path.expanduser("~")
        return text or os.path.join(home, ".triton", self._default)


class _CacheFolder(_Text):
    @staticmethod
    def _read(text):
        return _C.store_folder()


class _Knobs:
    """A group of settings; there are no others than those of its class."""

    __slots__ = ()

    @classmethod
    def _variables(cls):
        return [value for value in vars(cls).values() if isinstance(value, _Variable)]

    @contextmanager
    def scope(self):
        saved = [(variable, os.environ.get(variable.name)) for variable in self._variables()]
        try:
            yield self
        finally:
            for variable, text in saved:
                variable.restore(text)

    def reset(self):
        """Everything as if nothing had been set."""
        for variable in self._variables():
            variable.restore(None)
        return self


class _Runtime(_Knobs):
    """``debug``: kernels check bounds, overflow and assertions. ``target``: what they are compiled for. ``interpret``:
    they are not compiled, but run in Python.

    ``launch_enter_hook`` and ``launch_exit_hook`` are chains of functions that are called around each launch with an
    object whose ``get()`` is a dict: ``name`` of the kernel, ``function`` (the compiled kernel), ``stream``, and what
    ``@triton.jit(launch_metadata=...)`` adds. On a GPU a launch ends before its kernel does.
    """

    __slots__ = ("_enter", "_exit")
    debug = _Debug("TRITON_DEBUG")
    target = _Text("TRITON_TARGET")
    interpret = _Interpret("TRITON_INTERPRET")

    def __init__(self):
        self._enter, self._exit = HookChain(), HookChain(reversed=True)
        self._enter._changed = self._exit._changed = self._install

    def _install(self):
        _C.set_launch_hooks(*(chain if chain.calls else None for chain in (self._enter, self._exit)))

    def _replace(self, chain, hook):
        if hook is chain:
            return
        chain.calls[:] = []
        if hook is None:
            self._install()
        else:
            chain.add(hook)

    @property
    def launch_enter_hook(self):
        return self._enter

    @launch_enter_hook.setter
    def launch_enter_hook(self, hook):
        self._replace(self._enter, hook)

    @property
    def launch_exit_hook(self):
        return self._exit

    @launch_exit_hook.setter
    def launch_exit_hook(self, hook):
        self._replace(self._exit, hook)

    @contextmanager
    def scope(self):
        chains = self._enter, self._exit
        saved = [list(chain.calls) for chain in chains]
        try:
            with super().scope():
                yield self
        finally:
            for chain, calls in zip(chains, saved, strict=True):
                chain.calls[:] = calls
            self._install()

    def reset(self):
        self.launch_enter_hook = self.launch_exit_hook = None
        return super().reset()


class _Autotuning(_Knobs):
    """``print``: say what was measured and chosen. ``cache``: keep it on disk, whatever a kernel's decorator says."""

    __slots__ = ()
    cache = _Flag("TRITON_CACHE_AUTOTUNING")
    print = _Flag("TRITON_PRINT_AUTOTUNING")


class _Nvidia(_Knobs):
    """``libdevice_path``: the library of mathematical functions, if it is not found. ``ptxas_path``: the assembler."""

    __slots__ = ()
    libdevice_path = _Text("TRITON_LIBDEVICE_PATH")
    ptxas_path = _Text("TRITON_PTXAS_PATH")


class _Compilation(_Knobs):
    """``always_compile``: nothing is taken from disk. ``dump_ir``: the stages of each kernel go to ``cache.dump_dir``.
    ``override``: files of ``cache.override_dir`` take the place of stages.
    """

    __slots__ = ()
    always_compile = _Flag("TRITON_ALWAYS_COMPILE")
    dump_ir = _Flag("TRITON_KERNEL_DUMP")
    override = _Flag("TRITON_KERNEL_OVERRIDE")


class _Cache(_Knobs):
    """Folders, and the classes ("module:class") that `triton.runtime.cache` makes managers of. ``size``: how much
    compiled kernels may take on disk."""

    __slots__ = ()
    dir = _CacheFolder("TRITON_CACHE_DIR")
    size = _Text("TRITON_CACHE_SIZE")
    dump_dir = _Folder("TRITON_DUMP_DIR", "dump")
    override_dir = _Folder("TRITON_OVERRIDE_DIR", "override")
    manager_class = _Text("TRITON_CACHE_MANAGER")
    remote_manager_class = _Text("TRITON_REMOTE_CACHE_BACKEND")
    redis_host = _Text("TRITON_REDIS_HOST")
    redis_port = _Text("TRITON_REDIS_PORT")
    redis_key_format = _Text("TRITON_REDIS_KEY_FORMAT")


runtime, autotuning, nvidia = _Runtime(), _Autotuning(), _Nvidia()
compilation, cache = _Compilation(), _Cache()
