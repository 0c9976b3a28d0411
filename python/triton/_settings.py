"""What the groups of `triton.knobs` are made of: environment variables as attributes, and chains of hooks."""

import os
import sys
import warnings
from contextlib import contextmanager

from . import _C
from .runtime import environment, interpret


class Env:
    """Assigned to a setting: what the environment says holds again."""


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


# ---- settings that environment variables hold


class env_base:
    """A setting that is the environment variable `key` unless a program sets it. What a program sets goes to the
    variable as well, which is where the compiler looks, and processes that are started later. ``del`` and `Env` take
    that back.

    :param otherwise: what holds where neither says anything; a function without arguments may work it out.
    :param instead: why it has no effect here, and what does: a warning says so when it is set.
    """

    def __init__(self, key, otherwise=None, *, instead=None):
        self.key, self.otherwise = key, otherwise
        self._reason = instead or environment.INSTEAD.get(key)

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, knobs, owner=None):
        if knobs is None:
            return self
        given = vars(knobs)
        if self.name in given:
            return self.transform(given[self.name])
        text = os.environ.get(self.key)
        if text:
            return self.read(text)
        return self.otherwise() if callable(self.otherwise) else self.otherwise

    def __set__(self, knobs, value):
        if isinstance(value, Env):
            self.__delete__(knobs)
            return
        if self._reason and value and value != self.otherwise:
            name = f"knobs.{type(knobs)._name}.{self.name}"
            warnings.warn(f"{name} has no effect: {self._reason}", RuntimeWarning, stacklevel=3)
        vars(knobs)[self.name] = value
        text = self.write(value)
        if sys.modules["triton.knobs"].propagate_env and text is not NotImplemented:
            before, _ = knobs._propagated.get(self.key, (os.environ.get(self.key), None))
            knobs._propagated[self.key] = before, text
            set_variable(self.key, text)
        self.changed(knobs)

    def __delete__(self, knobs):
        vars(knobs).pop(self.name, None)
        before, text = knobs._propagated.pop(self.key, (None, None))
        if os.environ.get(self.key) == text:  # nobody else set it since
            set_variable(self.key, before)
        self.changed(knobs)

    def read(self, text):
        """The value that a variable which is set says."""
        return text

    def write(self, value):
        """What becomes of the variable: a text, None for nothing; NotImplemented if no text says it."""
        return None if value is None else str(value)

    def transform(self, value):
        """What reading gives for a value that was set."""
        return value

    def changed(self, knobs):
        """After it was set or taken back."""


def set_variable(key, text):
    """Make an environment variable a text, or None."""
    if text is None:
        os.environ.pop(key, None)
    else:
        os.environ[key] = text


class env_str(env_base):
    """A text, with one that holds otherwise."""


class env_str_callable_default(env_base):
    """A text; a function says what holds otherwise."""


class env_opt_str(env_base):
    """A text or None."""


class env_bool(env_base):
    """A flag, whose variable is off as 0, n, no, off or false."""

    def __init__(self, key, otherwise=False, *, instead=None):
        super().__init__(key, otherwise, instead=instead)

    def read(self, text):
        return environment.is_on(text)

    def write(self, value):
        return None if value is None else "1" if value else "0"


class env_opt_bool(env_bool):
    """A flag or None."""

    def __init__(self, key, *, instead=None):
        super().__init__(key, None, instead=instead)


class env_int(env_base):
    """A number."""

    def __init__(self, key, otherwise=0, *, instead=None):
        super().__init__(key, otherwise, instead=instead)

    def read(self, text):
        try:
            return int(text)
        except ValueError:
            raise RuntimeError(f"{self.key}={text}: it must be an integer") from None


class env_class(env_base):
    """A class or None, named as "module:class", whose bases have one of the name `kind` among them."""

    def __init__(self, key, kind, *, instead=None):
        super().__init__(key, instead=instead)
        self.kind = kind

    def read(self, text):
        from importlib import import_module

        module, colon, name = text.partition(":")
        if not colon:
            raise RuntimeError(f"{self.key}={text}: a class is named as 'module:class'")
        found = getattr(import_module(module), name)
        if self.kind not in (base.__name__ for base in found.__mro__):
            raise RuntimeError(f"{self.key}={text}: the class is no {self.kind}")
        return found

    def transform(self, value):
        return self.read(value) if isinstance(value, str) else value

    def write(self, value):
        return value if value is None or isinstance(value, str) else NotImplemented


class Debug(env_bool):
    """Holds for the next launch of every kernel, whether it was compiled before or not."""

    def changed(self, knobs):
        is_said = self.name in vars(knobs) or self.key in os.environ
        _C.set_debug(self.__get__(knobs) if is_said else None)


class Interpret(env_bool):
    """Holds for the next launch of every kernel."""

    def changed(self, knobs):
        interpret.refresh()


# ---- hooks


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


# ---- groups


class Knobs:
    """A group of settings; there are no others than those of its class. Programs may derive their own."""

    _name = "settings"  # in messages

    def __init__(self):
        self._propagated = {}  # variable: its text before a program set it, and the text that was set

    @property
    def knob_descriptors(self):
        """The settings that have a variable (`key`), by name."""
        return {name: each for name, each in vars(type(self)).items() if isinstance(each, env_base)}

    @property
    def knobs(self):
        """The values of these settings, by name."""
        return {name: getattr(self, name) for name in self.knob_descriptors}

    @classmethod
    def _hooks(cls):
        return [value for value in vars(cls).values() if isinstance(value, Hook)]

    def _install(self):
        """Have the hooks called that there are now."""

    def _kept(self, hook):
        value = hook.__get__(self)
        return list(value.calls) if isinstance(hook, Chain) else value

    def _given(self):
        """What the program has set, by name."""
        return {name: vars(self)[name] for name in self.knob_descriptors if name in vars(self)}

    @contextmanager
    def scope(self):
        """Takes back at its end what was set inside, variables of the environment included."""
        given, propagated = self._given(), dict(self._propagated)
        texts = {each.key: os.environ.get(each.key) for each in self.knob_descriptors.values()}
        hooks = [(hook, self._kept(hook)) for hook in self._hooks()]
        try:
            yield self
        finally:
            for name, setting in self.knob_descriptors.items():
                set_variable(setting.key, texts[setting.key])
                vars(self).pop(name, None)
                if name in given:
                    vars(self)[name] = given[name]
                setting.changed(self)
            self._propagated = propagated
            for hook, value in hooks:
                if isinstance(hook, Chain):
                    hook.__get__(self).calls[:] = value
                    self._install()
                else:
                    hook.__set__(self, value)

    def reset(self):
        """Everything as if the program had set nothing."""
        for name in self.knob_descriptors:
            delattr(self, name)
        for hook in self._hooks():
            hook.__set__(self, None)
        return self

    def copy(self):
        """A group of its own with the same settings; its hooks are nobody's."""
        other = type(self)()
        vars(other).update(self._given())
        return other
