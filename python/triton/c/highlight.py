"""Triton-C for Pygments: ``pygmentize -l triton-c``, and fenced blocks of documents that say ``triton-c``."""

from pygments.lexer import inherit, words
from pygments.lexers.c_cpp import CLexer
from pygments.token import Keyword, Name, Operator


class TritonCLexer(CLexer):
    """C, and what Triton-C adds to it."""

    name = "Triton-C"
    aliases = ["triton-c", "tritonc"]  # noqa: RUF012
    filenames = ["*.tc"]  # noqa: RUF012
    priority = 0.1

    tokens = {  # noqa: RUF012
        "statements": [
            (
                words(("kernel", "tunable", "read_only", "__constant__", "alloc_const", "newaxis"), suffix=r"\b"),
                Keyword,
            ),
            (
                words(
                    ("half", "bfloat16", "fp16", "fp32", "fp64", "fp8e4m3", "fp8e5m2", "int1", "uint8", "uint16")
                    + ("int8", "int16", "int32", "int64", "uint32", "uint64", "bool"),
                    suffix=r"\b",
                ),
                Keyword.Type,
            ),
            (
                words(("get_global_range", "dot", "trans", "get_program_id", "get_num_programs"), suffix=r"\b"),
                Name.Builtin,
            ),
            (r"@|\.\.\.", Operator),
            inherit,
        ]
    }
