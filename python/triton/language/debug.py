"""Prints, assertions, and what the programmer knows and the compiler does not."""

from __future__ import annotations

from ._builtin import builtin, method, outside
from .dtypes import dtype
from .tensors import tensor


@builtin
def static_print(*values, sep: str = " ", end: str = "\n", file=None, flush: bool = False) -> None:
    """Print while the kernel is compiled, as Python's ``print``. A tensor prints as ``int32[constexpr[128]]``."""
    outside()


@builtin
def static_assert(cond: bool, msg: str = "") -> None:
    """Stop the compilation with an error that says `msg` unless the compile-time value `cond` is true.

    `msg` is evaluated only then.
    """
    outside()


@builtin
def device_print(prefix: str, *args: tensor, hex: bool = False) -> None:
    """Print while the kernel runs: the program's index, the prefix and the value.

    A CPU prints a tile as NumPy prints an array (``np.set_printoptions`` applies), when the launch ends; a GPU and
    the simulator a line for each element, with its index.

    Python's ``print`` with a string as its first argument does the same.

    :param prefix: a compile-time string of printable ASCII.
    :param hex: print values in hexadecimal.
    """
    outside()


@builtin
def device_assert(cond: tensor, msg: str = "", mask: tensor | None = None) -> None:
    """Check while the kernel runs that every element of `cond` is true; if not, the launch raises with `msg`.

    Only kernels that are compiled for debugging (``TRITON_DEBUG=1``, or ``debug=True`` at the launch) check;
    others leave it out, and so do the combine functions of reductions and scans, which are also applied to what is no
    element of the tile. Python's ``assert`` statement does the same.

    :param msg: a compile-time string.
    :param mask: elements where it is false are not checked.
    """
    outside()


@builtin
def assume(cond: tensor) -> None:
    """Promise that the scalar `cond` is true from here on. If it is not, the kernel may do anything."""
    outside()


@method
def multiple_of(input: tensor, values) -> tensor:
    """`input`, with the promise that its first element, along each dimension, is a multiple of a number.

    For tiles it is the first element of each run of contiguous elements. The compiler takes wider accesses
    for it.

    :param values: a compile-time integer, or one a dimension. For pointers it counts bytes.
    """
    outside()


@method
def max_contiguous(input: tensor, values) -> tensor:
    """`input`, with the promise that its elements come in runs of so many that grow by one.

    Memory is accessed in such runs only as far as addresses are known to be aligned. So the promise may be given
    of ``index % n``, whose runs end in the middle of a tile, where each row of the array has room for what follows.

    :param values: a compile-time integer, or one a dimension.
    """
    outside()


@method
def max_constancy(input: tensor, values) -> tensor:
    """`input`, with the promise that its elements come in runs of so many that are equal.

    :param values: a compile-time integer, or one a dimension.
    """
    outside()


@builtin
def debug_barrier() -> None:
    """Wait until all threads of the program are here. On a CPU a program is one thread: nothing happens."""
    outside()


@builtin
def inline_asm_elementwise(
    asm: str, constraints: str, args, dtype: dtype | tuple, is_pure: bool, pack: int
) -> tensor | tuple:
    """Run inline assembly on the elements of `args`.

    The assembly is PTX: a kernel with it runs on NVIDIA GPUs only, and elsewhere raises `UnsupportedError`.

    :param asm: the assembly, with ``$0``, ``$1``, ... for the registers of results, then of operands.
    :param constraints: ``"=r,r,r"``: a letter for each register, those of results after ``=``: ``h`` 16 bits, ``r`` 32,
        ``l`` 64 (pointers too), ``f`` and ``d`` floats.
    :param args: the tiles and scalars that the assembly reads; broadcast to one shape.
    :param dtype: the element type of the result, or a tuple of them for several results. Without operands the results
        are scalars.
    :param is_pure: whether the assembly does nothing but compute its results: then it may be run more or less often.
    :param pack: how many elements one run of the assembly takes, a power of two. Elements of less than 32 bits lie
        together in registers, the first in the lowest bits; wider ones have a register each. Where an element and its
        register differ in width the element's lowest bits are passed, or zeros above them.
    """
    outside()
