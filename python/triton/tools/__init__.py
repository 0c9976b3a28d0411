"""Tools for people who look inside the compiler."""


def _load(name):
    if name == "LinearLayout":
        from .linear_layout import LinearLayout

        return LinearLayout
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


TYPE_CHECKING = False
if TYPE_CHECKING:
    from .linear_layout import LinearLayout as LinearLayout
else:
    __getattr__ = _load  # a type checker would take every name
