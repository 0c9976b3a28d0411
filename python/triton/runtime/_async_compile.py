"""Compiling in an executor: in ``with AsyncCompileMode(executor):`` a kernel's ``warmup`` gives back at once."""

from contextvars import ContextVar

_active = ContextVar("async_compile_mode", default=None)


class FutureKernel:
    """A kernel that is being compiled. ``result()`` waits for it; so does asking for what a compiled one has."""

    def __init__(self, future):
        self._future = future

    def result(self):
        return self._future.result()

    def __getattr__(self, name):
        return getattr(self.result(), name)


class AsyncCompileMode:
    """In ``with AsyncCompileMode(executor):`` warmups are tasks of the executor, one for each variant of a kernel, and
    the end of the block waits for them. A launch compiles what is not there yet.

    :param executor: of threads, as in `concurrent.futures`, or like one.
    :param ignore_errors: what does not compile is no error at the end of the block, but in `FutureKernel.result`.
    """

    def __init__(self, executor, *, ignore_errors=False):
        self.executor, self.ignore_errors = executor, ignore_errors
        self._futures = {}

    def warmup(self, kernel, compile, args, kwargs):
        """What `kernel.warmup` is in the block: `compile` is what it is elsewhere."""
        key = kernel, _variant(kernel, args, kwargs)
        if key not in self._futures:
            self._futures[key] = self.executor.submit(compile, *args, **kwargs)
        return FutureKernel(self._futures[key])

    def __enter__(self):
        if _active.get() is not None:
            raise RuntimeError("AsyncCompileMode does not nest")
        self._token = _active.set(self)
        return self

    def __exit__(self, kind, error, trace):
        _active.reset(self._token)
        for future in [] if kind else self._futures.values():
            if not self.ignore_errors:
                future.result()
            else:
                future.exception()


def _variant(kernel, args, kwargs):
    """A text that tells what is compiled for these arguments."""
    from .._C import argument_entry, named_arguments

    named = named_arguments(kernel.arg_names, args, kwargs)
    parts = []
    for param in kernel.params:
        if param.name in named:
            value = named.pop(param.name)
            ways = param.is_const, param.do_not_specialize, param.do_not_specialize_on_alignment
            parts.append(repr(value if param.is_constexpr else argument_entry(value, *ways)))
    return "; ".join([*parts, repr(sorted(named.items(), key=str))])


def active_mode():
    return _active.get()
