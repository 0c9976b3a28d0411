"""Hooks around what happens to a compiled kernel once."""

from dataclasses import dataclass

from .. import _C
from .preload import specialization_data


def install(runtime, compilation):
    """Have the compiler call what these groups of `triton.knobs` hold."""
    compiles = runtime.jit_post_compile_hook or compilation.listener
    _C.set_kernel_hooks(
        _before_compile if runtime.jit_cache_hook else None,
        _after_compile if compiles else None,
        _of_code(runtime.kernel_load_start_hook, lambda compiled: (None, None)),
        _of_code(runtime.kernel_load_end_hook, _handles),
        _of_code(runtime.kernel_unload_hook, _handles),
    )


def _handles(compiled):
    return compiled.module, compiled.function


def _of_code(chain, handles):
    """A chain as a function of the compiled kernel; None where it is empty."""
    if not chain.calls:
        return None
    return lambda compiled: chain(*handles(compiled), compiled.name, compiled.metadata_group, compiled.hash)


@dataclass
class JitFunctionInfo:
    """What compile hooks get as `fn`: a kernel with its name and module."""

    module: str
    name: str
    jit_function: object


def _report(hook, kernel, info, is_warmup):
    signature = ", ".join(f"{name}: {kind}" for name, kind in info["signature"].items())
    key = variant_key(info)
    return hook(
        key=key,
        repr=f"{kernel.__name__}[num_warps={info['num_warps']}, num_stages={info['num_stages']}]({signature})",
        fn=JitFunctionInfo(kernel.__module__, kernel.__qualname__, kernel),
        compile={
            **info,
            "key": key,
            "specialization_data": specialization_data(kernel, info),
            "configs": [info["divisibility"]],
            "device": None,
            "is_warmup": is_warmup,
        },
        is_manual_warmup=False,
        already_compiled=False,
    )


def _before_compile(kernel, signature, options, target, is_warmup):
    from ..compiler.compiler import describe
    from ..knobs import runtime

    info = describe(kernel, signature, options, target, False)
    if variant_key(info) in asked_variants(kernel):
        return  # one of its class was told of
    if _report(runtime.jit_cache_hook, kernel, info, is_warmup):
        raise RuntimeError(
            f"jit_cache_hook asks not to compile kernel {kernel.__name__!r}: a launch compiles what it runs"
        )


def _times(info):
    from ..knobs import CompileTimes

    times = {name: round(1e3 * milliseconds) for name, milliseconds in info["timings"].items()}
    read, stored = times["ast"] + times["frontend"], times["store"]
    if info["cached"]:
        return CompileTimes(read + stored, [], 0)
    return CompileTimes(read, [(name, times[name]) for name in ("passes", "lowering", "llvm")], stored)


def _public_class(divisor):
    """A number's of which that is known: the public API tells multiples of 16 from others."""
    if isinstance(divisor, tuple):
        return tuple(map(_public_class, divisor))
    return divisor if divisor is None else 1 if divisor % 16 else 16


def variant_key(info):
    """What tells a variant of a kernel from its others, as the public API tells them apart. The compiler knows more of
    numbers, so several of its variants may have one key."""
    names = "target", "signature", "constants", "options", "debug"
    classes = {name: _public_class(divisor) for name, divisor in info["divisibility"].items()}
    return str((*(info[name] for name in names), classes))


def asked_variants(kernel):
    """The variants that launches have asked for, by `variant_key`; of several, the first one."""
    found = {}
    for each in kernel.variants():
        if not each._is_spare:
            found.setdefault(variant_key(each.info), each)
    return found


def _after_compile(compiled, is_warmup):
    from .. import knobs

    hook, kernel = knobs.runtime.jit_post_compile_hook, compiled.fn
    if hook and variant_key(compiled.info) not in asked_variants(kernel):
        _report(hook, kernel, compiled.info, is_warmup)
    if knobs.compilation.listener:
        knobs.compilation.listener(
            src=compiled.src,
            metadata=compiled.metadata._asdict(),
            metadata_group=compiled.metadata_group,
            times=_times(compiled.info),
            cache_hit=compiled.info["cached"],
        )
