"""Small functions for the host, which kernels may call on compile-time values too."""


def cdiv(x: int, y: int) -> int:
    """The quotient of two positive integers, rounded up."""
    return (x + y - 1) // y


def next_power_of_2(n: int) -> int:
    """The smallest power of two that is not less than `n`."""
    n -= 1
    for shift in (1, 2, 4, 8, 16, 32):
        n |= n >> shift
    return n + 1


# The compiler runs them in Python: see constexpr_function in triton.language, which would be slow to import here.
cdiv.__triton_kind__ = next_power_of_2.__triton_kind__ = "constexpr_function"
