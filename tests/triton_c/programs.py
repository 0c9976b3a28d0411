"""Launches programs in Triton-C for the tests."""

import os

import numpy as np

import triton.c


def launch(source, *args, size=(), grid=None, **keywords):
    """Launch the only kernel of a program over `size` indices, or on a grid; without either one program.

    Arrays of NumPy go to the GPU and back where the target is one.
    """
    kernel = triton.c.compile(source)
    moved = []
    if os.environ.get("TRITON_TARGET", "").startswith("cuda"):
        args = [to_device(value, moved) for value in args]
        keywords = {name: to_device(value, moved) for name, value in keywords.items()}
    if grid is not None or not size:
        result = kernel[grid or (1,)](*args, **keywords)
    else:
        result = kernel(*args, size=size, **keywords)
    for array, tensor in moved:
        array[...] = tensor.cpu().numpy()
    return result


def to_device(value, moved):
    if not isinstance(value, np.ndarray):
        return value
    import torch

    tensor = torch.from_numpy(value).cuda()
    moved.append((value, tensor))
    return tensor
