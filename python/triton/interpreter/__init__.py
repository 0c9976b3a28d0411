"""Kernels run as the Python functions that they are, one program after the other (``TRITON_INTERPRET=1``).

A kernel's statements run in its own frame: ``breakpoint()``, ``print`` and a debugger's steps work in it, and its names
hold `Tile` objects, which are NumPy arrays with a type of the language. What an operation means, the compiler is asked:
`operations` has it build the tile IR of that one operation and `evaluate` computes it, so that promotion, broadcasting
and errors are the same as in a compiled kernel.

rewrite      the function with calls in place of what Python would do in another way (`and`, loops, assignment, ...)
frames       these calls
tiles        `Tile` and `Window`, and what the compiler says of a result
operations   the tile IR of an operation, remembered
evaluate     tile IR on arrays
memory       the arrays of a launch, by address
launch       a launch: arguments, the grid
"""
