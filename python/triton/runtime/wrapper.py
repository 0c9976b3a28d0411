"""Stand-ins for arrays as arguments."""


class TensorWrapper:
    """An array seen as one of another element type of the same size; see `reinterpret`."""

    def __init__(self, base, dtype):
        self.base, self.dtype = base, dtype
        self.device = getattr(base, "device", "cpu")
        if hasattr(base, "__cuda_array_interface__") and not hasattr(base, "data_ptr"):  # torch has its own devices
            self.device = f"cuda:{getattr(self.device, 'id', 0)}"

    @property
    def data(self):
        """What the array has of that name: itself without its history (torch), its memory (NumPy, CuPy)."""
        return self.base.data

    @data.setter
    def data(self, values):
        self.base.data = values

    @property
    def shape(self):
        """The array's, also after its `data` were set to a part of them."""
        return self.base.shape

    def data_ptr(self):
        if hasattr(self.base, "data_ptr"):
            return self.base.data_ptr()
        interfaces = "__array_interface__", "__cuda_array_interface__"
        interface = next(getattr(self.base, name) for name in interfaces if hasattr(self.base, name))
        address, read_only = interface["data"]
        if read_only:
            raise ValueError("a read-only array cannot be reinterpreted")
        return address

    def stride(self, *axis):
        """Strides in elements, or that of one dimension, as torch has them."""
        if hasattr(self.base, "stride"):
            return self.base.stride(*axis)
        strides = tuple(step // self.base.itemsize for step in self.base.strides)
        return strides[axis[0]] if axis else strides

    def is_neg(self):
        """Whether the memory holds the opposite of the elements (torch)."""
        return hasattr(self.base, "is_neg") and self.base.is_neg()

    def resolve_neg(self):
        """The same values as they would be in memory (torch)."""
        return TensorWrapper(self.base.resolve_neg(), self.dtype)

    def element_size(self):
        """Bytes of an element."""
        return self.dtype.primitive_bitwidth // 8

    def numel(self):
        """The number of elements."""
        from math import prod

        return prod(self.shape)

    def new_empty(self, sizes):
        """An array without values, of the same element type (torch)."""
        return TensorWrapper(self.base.new_empty(sizes), self.dtype)

    def clone(self):
        """A copy, of the same element type."""
        return TensorWrapper(self.base.clone() if hasattr(self.base, "clone") else self.base.copy(), self.dtype)

    def cpu(self):
        """The same values in the memory of the host (torch)."""
        return TensorWrapper(self.base.cpu(), self.dtype)

    def to(self, device):
        """The same values on another device (torch)."""
        return TensorWrapper(self.base.to(device), self.dtype)

    def copy_(self, other):
        """Take over the values of another wrapper (torch)."""
        self.base.copy_(other.base)
        return self

    def __repr__(self):
        return f"TensorWrapper[{self.dtype}]({self.base!r})"


def reinterpret(tensor, dtype):
    """`tensor` as an argument whose elements have type `dtype` (a `tl.dtype`, say ``tl.float8e5``): no copy is made.

    Reinterpreting again with the array's own type gives the array back.
    """
    if isinstance(tensor, TensorWrapper):
        base = tensor.base
        return base if dtype == base.dtype else TensorWrapper(base, dtype)
    if any(hasattr(tensor, name) for name in ("data_ptr", "__array_interface__", "__cuda_array_interface__")):
        return TensorWrapper(tensor, dtype)
    raise TypeError(f"cannot reinterpret a {type(tensor).__name__}")


class MockTensor:
    """Stands for an array of a dtype in ``kernel.warmup(...)``; its address counts as aligned."""

    __triton_kind__ = "mock"

    def __init__(self, dtype, shape=None):
        self.dtype = dtype
        self.shape = [1] if shape is None else shape

    @staticmethod
    def wrap_dtype(argument):
        """A MockTensor if `argument` is a dtype of torch or NumPy, else itself."""
        kind = type(argument)
        is_dtype = kind.__module__.split(".")[0] in ("torch", "numpy") and "dtype" in kind.__name__.lower()
        return MockTensor(argument) if is_dtype else argument

    @staticmethod
    def data_ptr():
        return 0
