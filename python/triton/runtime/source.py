"""The source text of a kernel, found where Python keeps it: files, notebook cells, and code made by exec."""


class KernelSource:
    """Lines, file and syntax tree of one Python function.

    ``lines`` starts at ``first_line`` of ``file`` with the decorators. The tree's positions are the file's.
    """

    def __init__(self, fn):
        self.function = fn
        self.file, self.lines, self.first_line = _read(fn)
        self.tree = _parse(fn, self.file, self.lines, self.first_line)

    @property
    def text(self):
        """The function from its ``def`` on, without decorators and common indentation."""
        import textwrap

        return textwrap.dedent("".join(self.lines[self.tree.lineno - self.first_line :]))


def _read(fn):
    import inspect

    try:
        lines, first_line = inspect.getsourcelines(fn)
        return inspect.getsourcefile(fn) or fn.__code__.co_filename, lines, first_line
    except (OSError, TypeError, IndexError) as reason:
        raise ValueError(
            f"the source of kernel {fn.__name__!r} cannot be read ({reason}): a kernel is compiled from its "
            f"text, so define it in a file or a notebook cell; for text given to exec(), compile it with the "
            f"name of an entry in linecache.cache"
        ) from None


def _parse(fn, file, lines, first_line):
    import ast

    # Empty lines before the function, the last one opening a block if it is indented, leave every node with
    # the line and column it has in the file.
    indented = lines[0][:1].isspace()
    before = "\n" * (first_line - 2) + "if 1:\n" if indented else "\n" * (first_line - 1)
    try:
        body = ast.parse(before + "".join(lines), file).body
    except SyntaxError as error:
        raise _changed(fn, file, first_line) from error
    node = body[0].body[0] if indented and isinstance(body[0], ast.If) else body[0]
    if isinstance(node, ast.AsyncFunctionDef):
        raise TypeError(f"kernel {fn.__name__!r} is an async function; @triton.jit takes plain functions")
    if not isinstance(node, ast.FunctionDef):
        raise TypeError("@triton.jit takes a function made by def, not a lambda or another expression")
    arguments = node.args
    named = [arg.arg for arg in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    code = fn.__code__
    if node.name != code.co_name or tuple(named) != code.co_varnames[: len(named)]:
        raise _changed(fn, file, first_line)
    return node


def _changed(fn, file, line):
    return ValueError(
        f"{file}:{line} does not hold the source of kernel {fn.__name__!r}: the file changed since it was "
        "imported; import it again"
    )
