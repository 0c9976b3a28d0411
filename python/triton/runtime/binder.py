"""A launch taken apart: the steps that the public API's ``JITFunction.run`` takes before the kernel runs, for programs
that take them themselves to compile what no launch has asked for yet. Ours are one step in C (csrc/python/bind.c)."""

from types import SimpleNamespace

from .jit import JITCallable, native_specialize_impl


class Binder:
    """``binder(*args, **kwargs)``: the arguments of a launch by name; for each parameter its type and what else makes
    its variant, as `native_specialize_impl` has them; and the keywords that are no parameters: the options."""

    def __init__(self, signature, params, backend):
        self.signature, self.params, self.backend = signature, params, backend

    def __call__(self, *args, **kwargs):
        signature = self.signature
        options = {name: value for name, value in kwargs.items() if name not in signature.parameters}
        bound = signature.bind(*args, **{name: value for name, value in kwargs.items() if name not in options})
        bound.apply_defaults()
        values = dict(bound.arguments)
        return values, [self._specialized(param, values[param.name]) for param in self.params], options

    def _specialized(self, param, value):
        if param.is_constexpr:
            return "constexpr", value
        any_value, any_alignment = param.do_not_specialize, param.do_not_specialize_on_alignment
        kind, key = native_specialize_impl(self.backend, value, param.is_const, not any_value, not any_alignment)
        return (kind if kind == "constexpr" else param.annotation_type or kind), key


create_function_from_signature = Binder


def compute_cache_key(kernel_key_cache, specialization, options):
    """A text that tells variants apart by what a `Binder` found; functions count by their source."""

    def by_source(value):
        if isinstance(value, JITCallable):
            return value.cache_key
        return type(value)(map(by_source, value)) if type(value) in (list, tuple) else value

    return str(by_source(specialization)) + str(options)


def pack(kernel, backend, kwargs, bound_args, specialization):
    """What `ASTSource` and `compile` take for what a `Binder` found: options with their defaults, types by name, and by
    place, the number of a parameter and those of items within tuples, compile-time values and facts."""
    from .._C import launch_options

    known = {*launch_options(), *bound_args, "device", "debug", "instrumentation_mode"}
    if unknown := sorted(set(kwargs) - known):
        raise KeyError(f"kernel {kernel.__name__!r} has no parameter and a launch no option {unknown[0]!r}")
    found = SimpleNamespace(constants={}, facts={})
    for param, (kind, key) in zip(kernel.params, specialization, strict=True):
        _collect(backend, (param.num,), kind, key, bound_args[param.name], found)
    signature = {param.name: kind for param, (kind, _) in zip(kernel.params, specialization, strict=True)}
    return backend.parse_options(kwargs), signature, found.constants, found.facts


def _collect(backend, place, kind, key, value, found):
    if isinstance(kind, tuple):
        for i, parts in enumerate(zip(kind, key, value, strict=True)):
            _collect(backend, (*place, i), *parts, found)
    elif kind == "constexpr":
        found.constants[place] = value
    elif isinstance(key, str):
        found.facts[place] = backend.parse_attr(key)
