"""Kernels that are texts of tile IR, as `kernel.asm["ttir"]` has them."""

import os
import re

from ..runtime.text_kernel import ANY, TextKernel, parameter
from .compiler import ASTSource

_FLOATS = {
    "f8e4m3": "fp8e4nv",
    "f8e5m2": "fp8e5",
    "f8e4m3b15": "fp8e4b15",
    "f8e4m3b8": "fp8e4b8",
    "f8e5m2b16": "fp8e5b16",
    "f16": "fp16",
    "f32": "fp32",
    "f64": "fp64",
}


class _TileIR(TextKernel):
    language = "tile IR"


class IRSource(ASTSource):
    """A file with the text of a kernel in tile IR (``.ttir``), for `compile`.

    What the text says of its parameters (``{divisibility = [16]}``) is taken for granted. Integers have no sign in tile
    IR: launches pass signed ones. ValueError where it is another kind of file, or there is no kernel in it.
    """

    def __init__(self, path, context=None, backend=None):
        self.path = os.fspath(path)
        if not self.path.endswith(".ttir"):
            raise ValueError(f"IRSource({self.path!r}): it takes a file of tile IR, whose name ends in .ttir")
        with open(self.path) as file:
            self.src = file.read()
        head = re.search(r"^kernel @(\w+)\((.*)\) \{$", self.src, re.MULTILINE)
        if not head:
            raise ValueError(
                f"{self.path}: no kernel of tile IR is in it, which begins with: kernel @name(%x: ptr<f32>) {{"
            )
        found = re.findall(r"%([\w.]+): (ptr<\w+>|\w+)(?: \{divisibility = \[(\d+)\]\})?", head[2])
        params = [parameter(number, name, ANY) for number, (name, _, _) in enumerate(found)]
        signature = {name: _spelled(kind) for name, kind, _ in found}
        facts = {(i,): [("tt.divisibility", int(divisor))] for i, (_, _, divisor) in enumerate(found) if divisor}
        line = self.src.count("\n", 0, head.start()) + 1
        super().__init__(_TileIR(head[1], params, self.src.encode(), self.path, line), signature, None, facts)


def _spelled(kind):
    """ptr<f32>: *fp32"""
    element = kind.removeprefix("ptr<").removesuffix(">")
    return ("*" if kind != element else "") + _FLOATS.get(element, element)
