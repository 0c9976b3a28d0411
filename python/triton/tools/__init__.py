"""Tools for people who look inside the compiler."""


def _load(name):
    if name == "LinearLayout":
        from .linear_layout import LinearLayout

        return LinearLayout
    if name == "tensor_descriptor":
        from importlib import import_module

        return import_module(".tensor_descriptor", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import tensor_descriptor as tensor_descriptor
    from .linear_layout import LinearLayout as LinearLayout
else:
    __getattr__ = _load  # a type checker would take every name
