"""The element types of the language, and the pointer, tile and tuple types made of them."""

from enum import Enum

TYPE_CHECKING = False


class SIGNEDNESS(Enum):
    """Whether an integer type has a sign."""

    SIGNED = 0
    UNSIGNED = 1


class KIND(Enum):
    """What the values of an element type are."""

    BOOLEAN = 0
    INTEGRAL = 1
    FLOATING = 2


# name: (bits, mantissa bits, exponent bias)
_FLOATS = {
    "fp8e4b15": (8, 3, 15),
    "fp8e4nv": (8, 3, 7),
    "fp8e5": (8, 2, 15),
    "fp8e4b8": (8, 3, 8),
    "fp8e5b16": (8, 2, 16),
    "fp16": (16, 10, 15),
    "bf16": (16, 7, 127),
    "fp32": (32, 23, 127),
    "fp64": (64, 52, 1023),
}
_INTS = {f"{sign}int{bits}": bits for sign in ("", "u") for bits in (8, 16, 32, 64)}
# How a type is called in `tl`, where that is not its name.
_SPELLINGS = {
    "fp8e4b15": "float8e4b15",
    "fp8e4nv": "float8e4nv",
    "fp8e5": "float8e5",
    "fp8e4b8": "float8e4b8",
    "fp8e5b16": "float8e5b16",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "fp64": "float64",
    "fp8e8m0fnu": "float8e8m0fnu",
}
_SHORT = {"int1": "i1", **{name: name[0] + str(bits) for name, bits in _INTS.items()}}


class base_type:
    """Anything that the value of a variable in a kernel may have as its type."""


class dtype(base_type):
    """The type of one element: ``tl.float32``, ``tl.int1``, ``tl.bfloat16``, ...

    ``str(dtype)`` is the short name that signatures use (``"fp32"``), ``repr(dtype)`` how it is spelled in a
    kernel (``triton.language.float32``). Two types of one name are equal.
    """

    __triton_kind__ = "dtype"
    SIGNEDNESS = SIGNEDNESS
    KIND = KIND

    SINT_TYPES = ["int8", "int16", "int32", "int64"]
    UINT_TYPES = ["int1", "uint8", "uint16", "uint32", "uint64"]
    FP_TYPES = ["fp8e4b15", "fp8e4nv", "fp8e4b8", "fp8e5", "fp8e5b16", "fp16", "bf16", "fp32", "fp64"]
    STANDARD_FP_TYPES = ["fp16", "bf16", "fp32", "fp64"]
    STORAGE_TYPES = ["fp8e8m0fnu"]
    OTHER_TYPES = ["void"]

    if TYPE_CHECKING:
        element_ty: "dtype"  # of pointers and tiles

    def __init__(self, name: str):
        name = getattr(name, "value", name)
        if name == "int1":
            self.primitive_bitwidth, self.int_bitwidth = 1, 1
            self.int_signedness = SIGNEDNESS.UNSIGNED
        elif name in _INTS:
            self.primitive_bitwidth = self.int_bitwidth = _INTS[name]
            self.int_signedness = SIGNEDNESS.UNSIGNED if name[0] == "u" else SIGNEDNESS.SIGNED
        elif name in self.FP_TYPES:
            self.primitive_bitwidth, self.fp_mantissa_width, self.exponent_bias = _FLOATS[name]
        elif name in self.STORAGE_TYPES:
            self.primitive_bitwidth = 8
        elif name == "void":
            self.primitive_bitwidth = 0
        else:
            known = ", ".join(self.SINT_TYPES + self.UINT_TYPES + self.FP_TYPES + self.STORAGE_TYPES + self.OTHER_TYPES)
            raise ValueError(f"no element type is called {name!r}; there are: {known}")
        self.name = name

    @property
    def itemsize(self) -> int:
        """Bytes that one element takes in memory."""
        return (self.primitive_bitwidth + 7) // 8

    @property
    def scalar(self) -> "dtype":
        """The element type: itself."""
        return self

    def is_fp8(self) -> bool:
        return self.name.startswith("fp8")

    def is_fp8e4nv(self) -> bool:
        return self.name == "fp8e4nv"

    def is_fp8e4b15(self) -> bool:
        return self.name == "fp8e4b15"

    def is_fp8e4b8(self) -> bool:
        return self.name == "fp8e4b8"

    def is_fp8e5(self) -> bool:
        return self.name == "fp8e5"

    def is_fp8e5b16(self) -> bool:
        return self.name == "fp8e5b16"

    def is_fp16(self) -> bool:
        return self.name == "fp16"

    def is_bf16(self) -> bool:
        return self.name == "bf16"

    def is_fp32(self) -> bool:
        return self.name == "fp32"

    def is_fp64(self) -> bool:
        return self.name == "fp64"

    def is_int1(self) -> bool:
        return self.name == "int1"

    def is_int8(self) -> bool:
        return self.name == "int8"

    def is_int16(self) -> bool:
        return self.name == "int16"

    def is_int32(self) -> bool:
        return self.name == "int32"

    def is_int64(self) -> bool:
        return self.name == "int64"

    def is_uint8(self) -> bool:
        return self.name == "uint8"

    def is_uint16(self) -> bool:
        return self.name == "uint16"

    def is_uint32(self) -> bool:
        return self.name == "uint32"

    def is_uint64(self) -> bool:
        return self.name == "uint64"

    def is_floating(self) -> bool:
        return self.name in self.FP_TYPES

    def is_standard_floating(self) -> bool:
        """A float of 16 bits or more: one that arithmetic is done in."""
        return self.name in self.STANDARD_FP_TYPES

    def is_storage_only(self) -> bool:
        """One of arrays only, whose elements are bytes in a kernel."""
        return self.name in self.STORAGE_TYPES

    def is_int_signed(self) -> bool:
        return self.name in self.SINT_TYPES

    def is_int_unsigned(self) -> bool:
        """An integer without a sign; ``int1`` is one."""
        return self.name in self.UINT_TYPES

    def is_int(self) -> bool:
        return self.is_int_signed() or self.is_int_unsigned()

    def is_bool(self) -> bool:
        return self.is_int1()

    def is_void(self) -> bool:
        return self.name == "void"

    def is_block(self) -> bool:
        return False

    def is_ptr(self) -> bool:
        return False

    def is_const(self) -> bool:
        return False

    @staticmethod
    def is_dtype(name: str) -> bool:
        """Whether an element type is called `name`."""
        return name in dtype.SINT_TYPES + dtype.UINT_TYPES + dtype.FP_TYPES + dtype.OTHER_TYPES

    def kind(self) -> KIND:
        if self.is_int1():
            return KIND.BOOLEAN
        return KIND.FLOATING if self.is_floating() else KIND.INTEGRAL

    def get_int_max_value(self) -> int:
        """The largest value of an integer type."""
        return (1 << (self.int_bitwidth - self.is_int_signed())) - 1

    def get_int_min_value(self) -> int:
        """The smallest value of an integer type."""
        return -(1 << (self.int_bitwidth - 1)) if self.is_int_signed() else 0

    def mangle(self) -> str:
        return _SHORT.get(self.name, self.name)

    @property
    def cache_key_part(self) -> str:
        return self.name

    def __eq__(self, other):
        other = getattr(other, "value", other)
        return isinstance(other, dtype) and self.name == other.name

    def __hash__(self):
        return hash(self.name)

    def __str__(self):
        return self.name

    def codegen_name(self) -> str:
        """How ``tl`` calls it: ``"float32"`` for ``fp32``."""
        return _SPELLINGS.get(self.name, self.name)

    def __repr__(self):
        return f"triton.language.{self.codegen_name()}"


class pointer_type(dtype):
    """The type of a pointer to elements: ``tl.pointer_type(tl.float32)``.

    ``address_space`` 1 is global memory. Nothing can be stored through a ``const`` pointer.
    """

    __triton_kind__ = "pointer_type"

    def __init__(self, element_ty: dtype, address_space: int = 1, const: bool = False):
        element_ty = getattr(element_ty, "value", element_ty)
        if not isinstance(element_ty, dtype):
            raise TypeError(f"a pointer points to a tl.dtype, and {element_ty!r} is no such")
        self.element_ty = element_ty
        self.address_space = getattr(address_space, "value", address_space)
        self.const = bool(const)
        self.primitive_bitwidth = 64
        self.name = f"pointer<{element_ty}>" if not const else f"const_pointer<{element_ty}>"

    def is_ptr(self) -> bool:
        return True

    def is_const(self) -> bool:
        return self.const

    def is_floating(self) -> bool:
        return False

    def mangle(self) -> str:
        return "P" + self.element_ty.mangle()

    def __eq__(self, other):
        other = getattr(other, "value", other)
        return (
            isinstance(other, pointer_type)
            and self.element_ty == other.element_ty
            and self.address_space == other.address_space
            and self.const == other.const
        )

    def __hash__(self):
        return hash((self.name, self.address_space))

    def __repr__(self):
        const = ", const=True" if self.const else ""
        return f"triton.language.pointer_type({self.element_ty!r}{const})"


class block_type(dtype):
    """The type of a tile: elements of ``element_ty`` in ``shape``."""

    __triton_kind__ = "block_type"

    def __init__(self, element_ty: dtype, shape):
        self.element_ty = element_ty
        self.shape = tuple(getattr(extent, "value", extent) for extent in shape)
        self.numel = 1
        for extent in self.shape:
            self.numel *= extent
        self.primitive_bitwidth = element_ty.primitive_bitwidth
        self.name = f"<{list(self.shape)}, {element_ty}>"

    @property
    def scalar(self) -> dtype:
        """The type of an element."""
        return self.element_ty

    @property
    def nbytes(self) -> int:
        """Bytes that all elements take in memory."""
        return self.numel * self.element_ty.itemsize

    def is_block(self) -> bool:
        return True

    def get_block_shapes(self):
        return self.shape

    def mangle(self) -> str:
        return f"{self.element_ty.mangle()}S{'_'.join(map(str, self.shape))}S"

    def __eq__(self, other):
        other = getattr(other, "value", other)
        return isinstance(other, block_type) and self.element_ty == other.element_ty and self.shape == other.shape

    def __hash__(self):
        return hash((self.element_ty, self.shape))

    def __repr__(self):
        return f"triton.language.block_type({self.element_ty!r}, {list(self.shape)})"


class tuple_type(base_type):
    """The type of a tuple: those of its items."""

    def __init__(self, types, fields=None):
        self.types = types
        self.fields = fields
        self.name = f"[{','.join(map(str, types))}]"

    def __iter__(self):
        return iter(self.types)

    def __getitem__(self, index):
        return self.types[index]

    def __eq__(self, other):
        if not isinstance(other, tuple_type):
            return NotImplemented
        same_kind = type(self) is type(other) and self.fields == other.fields
        return same_kind and list(self.types) == list(other.types)

    def __hash__(self):
        return hash(self.name)

    def __str__(self):
        return self.name
