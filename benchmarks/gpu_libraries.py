"""Kernels for gpu.py in the ways of libraries for training and inference: all that the files gpu_library_*.py have.

A row of their tables is a case's name, what makes it, its sizes, and sizes that a CPU or a simulator can run as a test.
"""

from functools import partial

import gpu_library_lists
import gpu_library_products
import gpu_library_rows
import gpu_library_sequences
import gpu_library_tables

KERNELS = (
    gpu_library_rows.KERNELS
    | gpu_library_products.KERNELS
    | gpu_library_sequences.KERNELS
    | gpu_library_lists.KERNELS
    | gpu_library_tables.KERNELS
)
CASES = {name: partial(make, *sizes) for name, (make, sizes, _) in KERNELS.items()}
