"""Kernels that are texts, and no Python functions: what the compiler asks of them."""

from functools import partial
from hashlib import sha256

from .._C import Kernel
from .jit import KernelParam, _own_name

ANY, KEYWORD_ONLY = 1, 3  # kinds of parameters


def parameter(number, name, kind):
    """The parameter `name`, of run-time values, at this place."""
    param = KernelParam()
    param.num, param.name, param.kind, param.annotation = number, name, kind, ""
    param.has_default, param._default = False, None
    param.is_constexpr = param.is_const = False
    param.annotation_type = None
    param.do_not_specialize = param.do_not_specialize_on_alignment = False
    return param


class TextKernel(Kernel):
    """A kernel of a program in another language.

    language    its name, for errors
    src         the program: text, or bytes of tile IR
    """

    language = "another language than Python"

    def __init__(self, name, params, src, file, line):
        self.params, self.src, self.source_file, self.first_line = params, src, file, line
        super().__init__(name, params, None)
        self.arg_names = [param.name for param in params]
        self.fn = self.debug = self.version = self.launch_metadata = None  # no Python function
        self.noinline = False
        self.repr = partial(_own_name, name)
        self.__name__ = self.__qualname__ = name
        self.__module__ = type(self).__module__

    def parse(self):
        """The program: it is the compiler's own front end that parses it."""
        return self.src

    @property
    def source(self):
        """What interprets kernels (``TRITON_INTERPRET=1``) asks for."""
        from ..errors import UnsupportedError

        raise UnsupportedError(
            f"kernel {self.__name__!r} is in {self.language}, and only kernels in Python can be interpreted"
        )

    @property
    def cache_key(self):
        """A text that is another one when the program is."""
        program = self.src if isinstance(self.src, bytes) else self.src.encode()
        return sha256(f"{self.__name__}\n".encode() + program).hexdigest()

    hash = cache_key
