"""What the groups of `triton.knobs` are made of: environment variables as attributes, and chains of hooks."""

import os
from contextlib import contextmanager

from . import _C
from .runtime import interpret


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


class Variable:
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


class Flag(Variable):
    """`otherwise`: what holds where the variable is not set."""

    def __init__(self, name, otherwise=False):
        super().__init__(name)
        self.otherwise = otherwise

    def _read(self, text):
        return self.otherwise if text is None else text.lower() not in ("0", "false", "off", "no")

    _write = staticmethod(lambda value: "1" if value else "0")


class Debug(Flag):
    """Holds for the next launch of every kernel, whether it was compiled before or not."""

    def restore(self, text):
        super().restore(text)
        _C.set_debug(None if text is None else self._read(text))


class Interpret(Flag):
    """Holds for the next launch of every kernel."""

    def restore(self, text):
        super().restore(text)
        interpret.refresh()


class Text(Variable):
    _read = staticmethod(lambda text: text)
    _write = staticmethod(lambda value: "" if value is None else str(value))


class Folder(Text):
    """A folder; unless set, one of this name in ~/.triton (TRITON_HOME instead of ~)."""

    def __init__(self, name, default):
        super().__init__(name)
        self._default = default

    def _read(self, text):
        home = os.environ.get("TRITON_HOME") or os.path.expanduser("~")
        return text or os.path.join(home, ".triton", self._default)


class CacheFolder(Text):
    @staticmethod
    def _read(text):
        return _C.store_folder()


class Hook:
    """An attribute that holds a function, or None."""

    def __set_name__(self, owner, name):
        self.name = f"_{name}"

    def __get__(self, knobs, owner=None):
        return self if knobs is None else getattr(knobs, self.name, None)

    def __set__(self, knobs, value):
        if value is not None and not callable(value):
            raise TypeError(f"a hook must be callable, not {value!r}")
        setattr(knobs, self.name, value)
        knobs._install()


class Chain(Hook):
    """One that holds a `HookChain`; a function that is assigned to it takes the place of those in it."""

    def __init__(self, reversed=False):
        self.reversed = reversed

    def __get__(self, knobs, owner=None):
        if knobs is None:
            return self
        chain = getattr(knobs, self.name, None)
        if chain is None:
            chain = HookChain(self.reversed)
            chain._changed = knobs._install
            setattr(knobs, self.name, chain)
        return chain

    def __set__(self, knobs, value):
        chain = self.__get__(knobs)
        if value is chain:
            return
        chain.calls[:] = []
        if value is None:
            knobs._install()
        else:
            chain.add(value)


class Knobs:
    """A group of settings; there are no others than those of its class."""

    __slots__ = ()

    @classmethod
    def _hooks(cls):
        return [value for value in vars(cls).values() if isinstance(value, Hook)]

    def _install(self):
        """Have the hooks called that there are now."""

    @classmethod
    def _variables(cls):
        return [value for value in vars(cls).values() if isinstance(value, Variable)]

    def _kept(self, hook):
        value = hook.__get__(self)
        return list(value.calls) if isinstance(hook, Chain) else value

    @contextmanager
    def scope(self):
        saved = [(variable, os.environ.get(variable.name)) for variable in self._variables()]
        hooks = [(hook, self._kept(hook)) for hook in self._hooks()]
        try:
            yield self
        finally:
            for variable, text in saved:
                variable.restore(text)
            for hook, value in hooks:
                if isinstance(hook, Chain):
                    hook.__get__(self).calls[:] = value
                    self._install()
                else:
                    hook.__set__(self, value)

    def reset(self):
        """Everything as if nothing had been set."""
        for variable in self._variables():
            variable.restore(None)
        for hook in self._hooks():
            hook.__set__(self, None)
        return self

    def copy(self):
        """The settings as they are now, as a dict."""
        return {name: getattr(self, name) for name, value in vars(type(self)).items() if isinstance(value, Variable)}
