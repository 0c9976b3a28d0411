"""Functions of libdevice by the names of its symbols: `tl.core.extern_elementwise`, and the functions built on it."""

from ..runtime.jit import jit
from . import core
from .compile_time import constexpr, constexpr_function


def extern(fn):
    """Decorator: a function of kernels that is a call of `extern_elementwise`."""
    return jit(fn)


def _function_named(symbol):
    """What the language has for a symbol of libdevice: "__nv_tanhf" and "__nv_tanh" are ``libdevice.tanh``."""
    from .extra import libdevice

    name = symbol.removeprefix("__nv_")
    for types in ("", "f", "d", "if", "i"):  # of the operands, behind the name
        function = getattr(libdevice, name.removesuffix(types), None)
        if function is not None and name != symbol:
            return function
    raise ValueError(f"the language has no function for {symbol!r}, which should be a symbol of libdevice")


@constexpr_function
def _chosen(symbols, types):
    if types not in symbols:
        known = ", ".join(str([str(each) for each in key]) for key in symbols)
        raise ValueError(f"arguments of types {[str(each) for each in types]}; there are symbols for {known}")
    symbol, result = symbols[types]
    return _function_named(symbol), result


@jit
def extern_elementwise(
    lib_name: constexpr,
    lib_path: constexpr,
    args,
    arg_type_symbol_dict: constexpr,
    is_pure: constexpr = True,
    _semantic: constexpr = None,
    _builder: constexpr = None,
):
    """The function of libdevice that `arg_type_symbol_dict` names for the types of `args`, element by element.

    It is what the language itself has for the symbol, and means the same on every target; no other library is linked
    in, so `lib_name` and `lib_path` are not looked at.

    :param args: tiles or scalars, which are broadcast.
    :param arg_type_symbol_dict: a tuple of dtypes to the name of a symbol ("__nv_tanhf") and the dtype of the result.
    """
    chosen: constexpr = _chosen(arg_type_symbol_dict, [core.to_tensor(each).dtype for each in args])
    return chosen[0](*args).to(chosen[1])


@jit
def dispatch(
    func: constexpr,
    lib_name: constexpr,
    lib_path: constexpr,
    args,
    arg_type_symbol_dict: constexpr,
    ret_type: constexpr = None,
    is_pure: constexpr = True,
    _semantic: constexpr = None,
):
    """`extern_elementwise`, by another name; `func` and `ret_type` are not looked at."""
    return extern_elementwise(lib_name, lib_path, args, arg_type_symbol_dict, is_pure)
