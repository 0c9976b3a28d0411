"""The public compiler's walk over a kernel, by name: code that mentions the type imports it. Here the walk is in C."""


class CodeGenerator:
    """The type of that walk; there are no objects of it, and no methods to replace."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError(
            "kernels are walked over in C: triton.compile compiles one, and triton._filecheck.run_parser shows what "
            "the frontend makes of it"
        )


__all__ = ["CodeGenerator"]
