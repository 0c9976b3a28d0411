"""Variants of kernels as texts: what a launch compiled, another process compiles before its first launch."""

import json

from .jit import _KEYWORD_ONLY, _META, _VARIADIC


def specialization_data(kernel, info):
    """A text (JSON) from which `preload` has the variant that `info` describes; None where it cannot be written as one:
    compile-time values that are objects."""
    parts = {
        "name": kernel.__name__,
        "key": kernel.cache_key,
        "target": info["target"],
        "options": info["options"],
        "arguments": [
            _entry(info["signature"][param.name], info["divisibility"][param.name], info["constants"].get(param.name))
            for param in kernel.params
        ],
    }
    try:
        return json.dumps(parts)
    except TypeError:
        return None


def _entry(kind, divisibility, constant):
    if kind == "constexpr":
        dtype = getattr(type(constant), "__triton_kind__", None) == "dtype"
        return {"dtype": constant.name} if dtype else {"value": constant}
    if isinstance(kind, tuple):
        return [_entry(*each, None) for each in zip(kind, divisibility, strict=True)]
    return [kind, divisibility]


def preload(kernel, text):
    parts = json.loads(text)
    if parts["name"] != kernel.__name__ or parts["key"] != kernel.cache_key:
        raise RuntimeError(
            f"Specialization data is for kernel {parts['name']!r}, not for {kernel.__name__!r}, or its source changed"
        )
    from .driver import driver
    from .target import target_name

    target = target_name(driver.active.get_current_target())
    if parts["target"] != target:
        raise RuntimeError(f"Specialization data is for {parts['target']!r}, and the target is {target!r}")
    positional, named = [], {}
    for param, entry in zip(kernel.params, parts["arguments"], strict=True):
        argument = _argument(entry)
        if param.kind == _VARIADIC:
            positional += argument
        elif param.kind == _KEYWORD_ONLY:
            named[param.name] = argument
        elif param.kind == _META:
            named |= argument
        else:
            positional.append(argument)
    return kernel.warmup(*positional, grid=(1,), **named, **parts["options"])


def _argument(entry):
    """An argument that a launch would make such an entry of."""
    from ..language import dtype
    from .wrapper import MockTensor

    if isinstance(entry, dict):
        return dtype(entry["dtype"]) if "dtype" in entry else entry["value"]
    kind, divisibility = entry if len(entry) == 2 and isinstance(entry[0], str) else (None, None)
    if kind is None:
        return tuple(map(_argument, entry))
    if kind[0] == "*":
        stand_in = MockTensor(kind.removeprefix("*").removeprefix("k"))
        stand_in.data_ptr = lambda: 0 if divisibility == 16 else 1
        return stand_in
    if kind[0] in "iu":
        number = 3 * divisibility  # not 1, and a multiple of no higher power of two
        return {"i1": True, "i64": (number << 30) + number, "u64": (1 << 63) + number}.get(kind, number)
    return 1.5
