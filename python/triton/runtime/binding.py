"""Words for arguments that do not fit a kernel's signature, or cannot be read. The launch itself is in C."""

_POSITIONAL_ONLY, _ANY, _VARIADIC, _KEYWORD_ONLY, _META = range(5)


def binding_error(kernel, count, keywords):
    """The TypeError for a call with `count` positional arguments and these keywords: Python's words, and a hint."""
    params = kernel.params
    positional = [param for param in params if param.kind in (_POSITIONAL_ONLY, _ANY)]
    by_keyword = {param.name for param in params if param.kind in (_ANY, _KEYWORD_ONLY)}
    if count > len(positional) and all(param.kind != _VARIADIC for param in params):
        return TypeError(_too_many(kernel, positional, count))
    bound = {param.name for param in positional[:count]}
    for name in keywords:
        if name in bound and name in by_keyword:
            return TypeError(f"{kernel.__name__}() got multiple values for argument {name!r}: pass it once")
        bound.add(name)
    takes_any = any(param.kind == _META for param in params)
    for name in keywords:
        if name not in by_keyword and not takes_any and name not in _options():
            return TypeError(_unexpected(kernel, name, [n for n in by_keyword if n not in bound]))
    required = [param for param in params if not param.has_default and param.kind not in (_VARIADIC, _META)]
    missing = [param for param in required if param.name not in bound]
    return TypeError(_missing(kernel, missing))


def _options():
    from .._C import launch_options

    return launch_options()


def _too_many(kernel, positional, count):
    optional = sum(param.has_default for param in positional)
    takes = f"from {len(positional) - optional} to {len(positional)}" if optional else str(len(positional))
    plural = "" if takes == "1" else "s"
    were = "was" if count == 1 else "were"
    names = ", ".join(param.name for param in positional)
    return f"{kernel.__name__}() takes {takes} positional argument{plural} but {count} {were} given: it has ({names})"


def _unexpected(kernel, name, free):
    from difflib import get_close_matches

    # A parameter that got no value yet is the likelier thing to be meant.
    close = get_close_matches(name, free) or get_close_matches(name, [*kernel.arg_names, *_options()])
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return f"{kernel.__name__}() got an unexpected keyword argument {name!r}{hint}"


def _missing(kernel, missing):
    names = [repr(param.name) for param in missing]
    keyword_only = all(param.kind == _KEYWORD_ONLY for param in missing)
    kind = "keyword-only" if keyword_only else "positional"
    if len(names) > 1:
        names[-1] = f"and {names[-1]}"
    text = (", " if len(names) > 2 else " ").join(names)
    plural = "s" if len(missing) > 1 else ""
    hint = ", ".join(f"{param.name}=..." for param in missing)
    name = kernel.__name__
    said = f"{name}() missing {len(missing)} required {kind} argument{plural}: {text}"
    if kernel.arg_names[0] == "self":
        return f"{said}; a kernel in a class is no method and gets no object: take 'self' off its parameters"
    return f"{said}; pass {name}[grid](..., {hint})"


def no_memory(array, address):
    """Why there are no elements at the address of an array, or why it has none (`address` is None), and what to do."""
    device, layout = (str(getattr(array, name, "")) for name in ("device", "layout"))
    if getattr(array, "is_nested", False):
        return "a nested tensor is many arrays; pass its .values()"
    if layout not in ("", "torch.strided"):
        return f"its layout is {layout}; pass the dense arrays that it consists of"
    if device.startswith("meta"):
        return "it is on the device 'meta'; pass an array on the CPU or on a GPU, or call warmup() to compile only"
    if not hasattr(array, "untyped_storage"):
        return "it has no address" if address is None else f"its address is {address:#x}"
    if address is not None and type(array).__name__ in ("Tensor", "Parameter") and _is_freed(array):
        return "its storage was freed (resized to 0 bytes)"
    return f"it is a {type(array).__name__} that is fake, functional, or inside of a transformation (torch.func)"


def _is_freed(tensor):
    try:
        return tensor.untyped_storage().nbytes() == 0
    except (RuntimeError, NotImplementedError):  # it has none
        return False
