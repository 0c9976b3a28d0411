"""@triton.heuristics, and what it has in common with @triton.autotune: they stand in for a kernel."""

from .._C import Kernel, launch_options, named_arguments
from .jit import KernelInterface


class Launchable(KernelInterface):
    """What stands in for a kernel."""

    def __init__(self, fn):
        if not isinstance(fn, KernelInterface) and not (hasattr(fn, "run") and hasattr(fn, "fn")):
            raise TypeError(
                f"@triton.{type(self)._decorator} goes above @triton.jit: it takes a kernel, not {type(fn).__name__!r}"
            )
        self.fn = fn
        self.kernel = fn  # innermost; or what is launched in another way, an object with `run` and a function `fn`
        while isinstance(self.kernel.fn, KernelInterface):
            self.kernel = self.kernel.fn
        self.base_fn = self.__wrapped__ = self.kernel.fn
        self.arg_names = getattr(fn, "arg_names", ())
        named = self.kernel if self.is_compiled else self.base_fn
        self.__name__ = named.__name__
        self.__qualname__ = named.__qualname__
        self.__module__ = named.__module__
        self.__doc__ = named.__doc__

    @property
    def is_compiled(self):
        """Is it a kernel, and no other object that is launched like one?"""
        return isinstance(self.kernel, Kernel)

    def __call__(self, *args, **kwargs):
        return self.kernel(*args, **kwargs)

    def __reduce__(self):
        return self.__qualname__

    def __repr__(self):
        return f"{type(self).__name__}({self.fn!r})"

    def _named(self, args, kwargs):
        """All arguments by name."""
        return named_arguments(self.arg_names, args, kwargs)


class Heuristics(Launchable):
    """A kernel some of whose parameters, or launch options, are functions of the other arguments."""

    _decorator = "heuristics"

    def __init__(self, fn, arg_names, values):
        super().__init__(fn)
        self.arg_names = arg_names
        self.values = dict(values)
        check_names(self, self.values, "heuristics for", options=True)
        for name, function in self.values.items():
            if not callable(function):
                raise TypeError(
                    f"@triton.heuristics: {name!r} takes a function of the launch's arguments, not {function!r}"
                )

    def _filled(self, args, kwargs):
        named = {**dict(zip(self.arg_names, args, strict=False)), **kwargs}  # torch.compile walks through no C
        for name, function in self.values.items():
            kwargs[name] = named[name] = function(named)
        return kwargs

    def run(self, *args, **kwargs):
        return self.fn.run(*args, **self._filled(args, kwargs))

    def warmup(self, *args, **kwargs):
        return self.fn.warmup(*args, **self._filled(args, kwargs))


def check_names(tuner, names, what, options=False):
    known = {*tuner.arg_names, *(launch_options() if options else ())}
    for name in names:
        takes_any = not tuner.is_compiled or any(param.kind == 4 for param in tuner.kernel.params)
        if name not in known and not takes_any:
            raise ValueError(f"@triton.{tuner._decorator}: {what} {name!r} is no parameter of {tuner.__name__!r}")


def heuristics(values):
    """Decorator above ``@triton.jit``: compute compile-time parameters from the other arguments.

    :param values: name of a parameter, or of a launch option (``num_warps``), to a function of a dict of all arguments.
    """
    return lambda fn: Heuristics(fn, getattr(fn, "arg_names", ()), values)
