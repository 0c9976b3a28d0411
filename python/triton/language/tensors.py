"""`tensor`, the type of what kernels compute with, and `tuple`."""

from __future__ import annotations

import builtins

from .dtypes import block_type, dtype


class base_value:
    """Anything that a variable in a kernel may hold."""


class tensor(base_value):
    """A tile of elements, or a scalar, in a kernel.

    It is what parameters of kernels, `tl.load`, arithmetic and all other operations give. No object of this
    class exists outside of the compiler: the class is there to be an annotation, to be asked for with
    ``isinstance(x, tl.tensor)`` in a kernel, and to hold the methods.

    Operators work element by element, after `broadcast` and promotion of the operands:

    =====================================  ===================================================================
    ``x + y`` ``x - y`` ``x * y`` ``-x``   arithmetic; a pointer plus or minus integers moves by elements
    ``x / y``                              true division: a float, also of integers
    ``x // y`` ``x % y``                   of integers, truncated toward zero; ``%`` also of floats
    ``x & y`` ``x | y`` ``x ^ y`` ``~x``   bits of integers, logic of ``int1``
    ``x << y`` ``x >> y``                  shifts; ``>>`` keeps the sign of a signed integer
    ``x ** n`` ``a @ b``                   powers; the matrix product, as `dot` gives it
    ``x == y`` ``x < y`` ...               comparison, an ``int1`` for each element
    ``x and y`` ``x or y`` ``not x``       logic, an ``int1`` for each element; both sides are computed
    ``x[:, None]``                         another dimension of extent 1
    ``x[i]``                               the element or row at a run-time index
    ``x[a:b]``                             a part between compile-time bounds
    =====================================  ===================================================================
    """

    shape: tuple
    """The extents, a tuple of compile-time integers; ``()`` for a scalar."""

    dtype: dtype
    """The type of an element, a pointer type for pointers."""

    type: dtype | block_type
    """The type of the whole: `dtype` for a scalar, else a `block_type`."""

    numel: int
    """The number of elements."""

    T: tensor
    """The transpose of a tile of two dimensions."""

    def __init__(self, *args, **kwargs):
        raise TypeError("a tl.tensor exists only inside a kernel: use the class as an annotation, and pass arrays")

    # For type checkers: what the table above says.
    def __add__(self, other) -> tensor: ...
    def __radd__(self, other) -> tensor: ...
    def __sub__(self, other) -> tensor: ...
    def __rsub__(self, other) -> tensor: ...
    def __mul__(self, other) -> tensor: ...
    def __rmul__(self, other) -> tensor: ...
    def __truediv__(self, other) -> tensor: ...
    def __rtruediv__(self, other) -> tensor: ...
    def __floordiv__(self, other) -> tensor: ...
    def __rfloordiv__(self, other) -> tensor: ...
    def __mod__(self, other) -> tensor: ...
    def __rmod__(self, other) -> tensor: ...
    def __pow__(self, other) -> tensor: ...
    def __rpow__(self, other) -> tensor: ...
    def __matmul__(self, other) -> tensor: ...
    def __rmatmul__(self, other) -> tensor: ...
    def __lshift__(self, other) -> tensor: ...
    def __rlshift__(self, other) -> tensor: ...
    def __rshift__(self, other) -> tensor: ...
    def __rrshift__(self, other) -> tensor: ...
    def __and__(self, other) -> tensor: ...
    def __rand__(self, other) -> tensor: ...
    def __or__(self, other) -> tensor: ...
    def __ror__(self, other) -> tensor: ...
    def __xor__(self, other) -> tensor: ...
    def __rxor__(self, other) -> tensor: ...
    def __eq__(self, other) -> tensor: ...
    def __ne__(self, other) -> tensor: ...
    def __lt__(self, other) -> tensor: ...
    def __le__(self, other) -> tensor: ...
    def __gt__(self, other) -> tensor: ...
    def __ge__(self, other) -> tensor: ...
    def __neg__(self) -> tensor: ...
    def __pos__(self) -> tensor: ...
    def __invert__(self) -> tensor: ...
    def __getitem__(self, index) -> tensor: ...


class tuple(base_value):
    """A tuple of values in a kernel, as ``(a, b)`` gives it; on the host a sequence, and an argument."""

    def __init__(self, values=()):
        self.values = builtins.tuple(values)

    def __getitem__(self, index):
        found = self.values[index]
        return tuple(found) if isinstance(index, slice) else found

    def __len__(self):
        return len(self.values)

    def __iter__(self):
        return iter(self.values)

    def __add__(self, other):
        return tuple(self.values + builtins.tuple(other))

    def __eq__(self, other):
        return self.values == builtins.tuple(other)

    def __hash__(self):
        return hash(self.values)

    def __repr__(self):
        return repr(self.values)


class block_pointer(base_value):
    """What `make_block_ptr` gives: a window onto an array, for `load`, `store` and `advance`."""
