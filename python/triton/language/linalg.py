"""Products of matrices."""

from __future__ import annotations

from ._builtin import builtin, outside
from .dtypes import dtype
from .elements import float32
from .tensors import tensor


@builtin
def dot(
    input: tensor,
    other: tensor,
    acc: tensor | None = None,
    input_precision: str | None = None,
    allow_tf32: bool | None = None,
    max_num_imprecise_acc: int | None = None,
    out_dtype: dtype = float32,
) -> tensor:
    """The matrix product ``input @ other``, plus `acc`.

    `input` is ``[M, K]`` and `other` ``[K, N]``, or ``[B, M, K]`` and ``[B, K, N]`` for `B` products at once.
    Both have one element type: ``int8`` or ``uint8``, a float of 8 bits (here the two may differ),
    ``float16``, ``bfloat16``, ``float32`` or ``float64``. Integers are added up in ``int32``, which wraps around, or
    stays at its limits where a warp's instruction multiplies: on GPUs, but for 64 rows and more on sm_90.

    :param acc: what is added, of the result's shape and type; zero if None.
    :param input_precision: how ``float32`` operands are multiplied where the target has a choice: ``"ieee"``
        exactly, ``"tf32"`` (the default) with 10 bits of mantissa, ``"tf32x3"`` by three such products of the
        operands' upper and lower bits (errors about 2**-20 of the operands). ``"bf16x3"`` and ``"bf16x6"`` cut
        operands in two or three parts of ``bfloat16`` (errors about 2**-15 and 2**-22). A CPU, and a GPU before
        sm_80, multiplies exactly whatever is asked for. To ``tf32`` both operands are rounded to nearest, ties away
        from zero; on sm_90 one of them may be cut and the other one rounded away from zero instead. Either way a
        product of two numbers is at most about 2**-10 of itself off, errors have no mean where both operands are
        distributed alike, and what has 10 bits of mantissa stays as it is.
    :param allow_tf32: older form of `input_precision`: True is ``"tf32"``, False is ``"ieee"``.
    :param max_num_imprecise_acc: of 8-bit floats on sm_90, whose tensor cores add up with about 14 bits: after so much
        of K, rounded down to a multiple of 32, partial sums are added in ``float32``. None, 0, and more than the K
        of this product leave all of it to the tensor cores.
    :param out_dtype: type of the accumulator and the result: ``float32``, or ``float16`` for ``float16``
        operands and those of 8 bits; tensor cores round sums in ``float16`` after every 8 to 32 of K, a CPU once for
        each product. Operands of integers give ``int32``, those of ``float64`` give ``float64``. Of ``float32``
        operands without `acc`, ``float64`` is the product in ``float32``, converted.
    :return: a tile of ``[M, N]`` or ``[B, M, N]``.
    """
    outside()
