"""Triton-C: kernels in the C-like language of tiles that docs/triton-c.md describes.

kernel = triton.c.compile('''
    const tunable int N = {128, 256};
    kernel void add(float *x, float *y, float *out, int size) {
        int i[N] = get_global_range(0);
        @(i < size) *(out + i) = *(x + i) + *(y + i);
    }''')
kernel(x, y, out, len(x), size=("size",))           # a grid that covers so many indices
kernel[(triton.cdiv(len(x), 256),)](x, y, out, len(x), N=256)
"""

from .kernel import CFunction, Program

__all__ = ["CFunction", "Program", "compile", "load"]


def compile(source, kernel=None):
    """The kernel of a program, a text in Triton-C; or the one called `kernel`, where there are several.

    What the program declares is read now, and raises `triton.CompilationError` if it is no program; the bodies of its
    functions are compiled when the kernel is launched.
    """
    return Program(source)[kernel]


def load(path, kernel=None):
    """As `compile`, for a file."""
    with open(path, encoding="utf-8") as file:
        return Program(file.read(), path)[kernel]
