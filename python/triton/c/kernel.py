"""Programs in Triton-C, and their kernels as Python sees them."""

import os
from functools import partial
from itertools import product

from .._C import triton_c_describe, triton_c_extents
from ..runtime.jit import KernelInterface, _prepare_launches
from ..runtime.space import tunable
from ..runtime.text_kernel import ANY, KEYWORD_ONLY, TextKernel, parameter


class Program:
    """A text in Triton-C. ``program["name"]`` is one of its kernels, and ``program[None]`` the only one."""

    def __init__(self, text, path=None):
        self.text = text
        self.file = os.fspath(path) if path is not None else _name_text(text)
        self.kernels = {
            name: CFunction(self, name, parameters, tunables, line)
            for name, parameters, tunables, line in triton_c_describe(text, self.file)
        }

    def __getitem__(self, name):
        names = ", ".join(self.kernels) or "none"
        if name is None and len(self.kernels) != 1:
            raise ValueError(f"{self.file} has {len(self.kernels)} kernels; name the one you want: {names}")
        if name is not None and name not in self.kernels:
            raise ValueError(f"{self.file} has no kernel {name!r}; it has: {names}")
        return next(iter(self.kernels.values())) if name is None else self.kernels[name]

    def __iter__(self):
        return iter(self.kernels)

    def __len__(self):
        return len(self.kernels)

    def __repr__(self):
        return f"<program {self.file}: {', '.join(self.kernels)}>"


def _name_text(text):
    """A name for a text that is no file, under which diagnostics find its lines."""
    import linecache
    from hashlib import sha256

    name = f"<triton-c {sha256(text.encode()).hexdigest()[:8]}>"
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    return name


def _parameters(parameters, tunables):
    """The program's parameters, then its tunables: compile-time values, given by name."""
    result = []
    for name, kind in parameters:
        param = parameter(len(result), name, ANY)
        param.is_const = kind.startswith("*k")
        param.annotation = param.annotation_type = kind.replace("*k", "*")
        result.append(param)
    for name, values in tunables:
        param = parameter(len(result), name, KEYWORD_ONLY)
        param.is_constexpr = param.has_default = True
        param._default = values[0]
        param.annotation = tunable(values)  # what triton.autotune("auto") looks for
        result.append(param)
    return result


class CFunction(TextKernel, KernelInterface):
    """A kernel in Triton-C. Launched on a grid, ``kernel[grid](*args)``, or over its global ranges, ``kernel(*args)``.

    tunables   its tunable constants: a list of (name, values); a launch gives others by name: ``TM=64``
    size       how many indices each global range covers: numbers, or names of parameters, one an axis
    """

    language = "Triton-C"

    def __init__(self, program, name, parameters, tunables, line):
        super().__init__(name, _parameters(parameters, tunables), program.text, program.file, line)
        self.program, self.tunables = program, tunables
        self.size: tuple | list | int | str | None = None
        self._extents = {}
        _prepare_launches()

    def __reduce__(self):
        return _kernel_of, (self.program.text, self.program.file, self.__name__)

    def __repr__(self):
        return f"CFunction({self.program.file}:{self.__name__})"

    # ---- launching

    def extents(self, **tunables):
        """The extents of the global ranges by axis, with these values of tunables; None where there is none."""
        key = tuple(sorted(tunables.items()))
        if key not in self._extents:
            found = triton_c_extents(self.program.text, self.program.file, self.__name__, tunables)
            self._extents[key] = [extent or None for extent in found]
        return self._extents[key]

    def grid(self, *size):
        """The grid that covers the global ranges, for ``kernel[kernel.grid("M", "N")]``.

        :param size: how many indices there are along each axis: a number, or the name of a parameter.
        """
        return partial(self._cover, size)

    def _cover(self, size, arguments):
        extents = self.extents(**{name: arguments[name] for name, _ in self.tunables})
        axes = max((axis + 1 for axis in range(3) if extents[axis]), default=0)
        if len(size) != axes:
            raise TypeError(
                f"{self.__name__}() has global ranges along {_axes(axes)}, and size={size!r} is of {len(size)}"
            )
        return tuple(-(-self._number(item, arguments) // (extents[axis] or 1)) for axis, item in enumerate(size)) or (
            1,
        )

    def _number(self, item, arguments):
        if not isinstance(item, str):
            return item
        if item not in arguments:
            raise TypeError(f"{self.__name__}(): size={item!r} names no parameter; it has: {', '.join(self.arg_names)}")
        return arguments[item]

    def __call__(self, *args, size=None, **kwargs):
        """Launch as many programs as cover `size` indices along each global range."""
        size = self.size if size is None else size
        if size is None:
            extents = self.extents(**{name: kwargs.get(name, values[0]) for name, values in self.tunables})
            if any(extents):
                raise TypeError(
                    f"{self.__name__}() has global ranges along {_axes(sum(map(bool, extents)))}: say how many indices "
                    f"each covers, {self.__name__}(..., size=(...)), by numbers or names of parameters; or launch it "
                    f"on a grid, {self.__name__}[grid](...)"
                )
            size = ()
        size = tuple(size) if isinstance(size, (tuple, list)) else (size,)
        return self.run(*args, grid=self.grid(*size), **kwargs)

    def configs(self, **options):
        """A `triton.Config` for each choice of the tunables, for `triton.autotune`; `options` are those of all."""
        from ..runtime import Config

        names = [name for name, _ in self.tunables]
        choices = product(*(values for _, values in self.tunables))
        return [Config(dict(zip(names, chosen, strict=True)), **options) for chosen in choices]


def _axes(count):
    return f"{count} axis" if count == 1 else f"{count} axes"


def _kernel_of(text, file, name):
    return Program(text, None if file.startswith("<triton-c ") else file)[name]
