"""The source text of a kernel, found where Python keeps it: files, notebook cells, and code made by exec."""

from operator import itemgetter
from os import path

from .. import _C
from .._cached_property import cached_property

_LINE = itemgetter(2)  # of what co_lines() gives


class KernelSource:
    """Lines, file and syntax tree of one Python function.

    ``lines`` starts at ``first_line`` of ``file`` with the decorators. The tree's positions are the file's.
    """

    def __init__(self, fn, text=None, known=None, place=None):
        """The source of `fn` where it was defined, or `text`, a definition that stands for it.

        known   the file and its lines when `fn` was defined, of `read_lines`
        place   the number of the line of that file at which `text`, taken before without one, is said to stand
        """
        self.function, self._known = fn, known
        found = _read_text(fn, text, place) if text is not None else _read_block(fn, known) or _inspect(fn)
        self.file, self.lines, self.first_line, self.tree = found
        self.is_given, self.is_placed = text is not None, place is not None

    @cached_property
    def text(self):
        """The function from its ``def`` on, without decorators and common indentation."""
        import textwrap

        return textwrap.dedent("".join(self.lines[self.tree.lineno - self.first_line :]))

    @property
    def location(self):
        """Of ``def name``, as diagnostics have it."""
        node = self.tree
        start = {"file": self.file, "function": node.name, "line": node.lineno, "column": node.col_offset}
        end = {"end_line": node.lineno, "end_column": node.col_offset + len(f"def {node.name}")}
        return {**start, **end, "caller": None}

    @cached_property
    def block(self):
        """File, first line and text of the lines, if `read_first_block` would find just them; else None. The text is
        what is compiled, whatever becomes of the file."""
        found = self.file, self.first_line, "".join(self.lines)
        return found if self.is_given or found == read_first_block(self.function, self._known) else None

    def __getstate__(self):
        return {"text": self.text, "file": self.file, "lines": self.lines, "first_line": self.first_line}


# ---- by indentation: a block ends where a line stands no deeper than its first; the parser says whether that was it


def read_lines(fn):
    """The file that a function is defined in, and its lines, one list for all of them; empty where there is none.

    Read when the function is defined, so that it is compiled as it was imported, whatever becomes of its file.
    """
    import linecache

    file = fn.__code__.co_filename
    linecache.checkcache(file)
    lines = linecache.getlines(file, fn.__globals__)
    return _lasting_name(fn, file, lines), lines


def _lasting_name(fn, file, lines):
    """What other processes call the file, too: what is kept on disk names it. The cells of a notebook are in no files,
    and are said to lie in a folder that is named after the process."""
    import linecache

    folder, base = path.split(file)
    if not folder or not lines or fn.__globals__.get("__file__") == file or path.exists(file):
        return file
    name = f"<{base}>"
    entry = linecache.cache.setdefault(name, (sum(map(len, lines)), None, lines, name))
    return name if len(entry) == 4 and entry[2] == lines else file


def _find(fn, known):
    """File, its lines, the number of the function's first one, and of the last one with code; None where the text does
    not lie as it usually does."""
    code, (file, lines) = fn.__code__, known or ("", ())
    first = code.co_firstlineno
    if not 0 < first <= len(lines) or not lines[first - 1].lstrip().startswith(("@", "def ")):
        return None
    return file, lines, first, max(filter(None, map(_LINE, code.co_lines())), default=first)


def read_first_block(fn, known):
    """File, first line and text of a function as far as indentation tells, or None.

    Most of the time that is all of it. The parser knows, and says so of the same text every time.
    """
    found = _find(fn, known)
    if not found:
        return None
    file, lines, first, last_with_code = found
    return file, first, "".join(lines[first - 1 : next(_possible_ends(lines, first, last_with_code))])


def _read_block(fn, known):
    """File, lines, first line and tree, or None.

    `inspect` would find the same, but it tokenizes the text in Python, which takes longer than all of a compilation.
    """
    found = _find(fn, known)
    if not found:
        return None
    file, lines, first, last_with_code = found
    for end in _possible_ends(lines, first, last_with_code):
        block = lines[first - 1 : end]
        try:
            body = _statements(file, block, first)
        except SyntaxError:  # a bracket or a text is still open
            continue
        return (file, block, first, body[0]) if len(body) == 1 and _is_definition(body[0], fn) else None
    return None


def _possible_ends(lines, first, last_with_code):
    """Numbers of lines after which a block that starts at line `first` may end, with its last line of code or later."""
    indentation = _indentation(lines[first - 1])
    end, attempts = max(first, last_with_code), 4
    for number in range(end + 1, len(lines) + 1):
        text = lines[number - 1].strip()
        if not text:
            continue
        if _indentation(lines[number - 1]) > indentation or text[0] in ")]}":
            end = number
        elif text[0] != "#":  # a comment ends nothing
            yield end
            attempts -= 1
            if not attempts:
                return
            end = number
    yield end


def _indentation(line):
    return len(line) - len(line.lstrip())


# ---- from a text that was given


def _read_text(fn, text, place):
    import linecache
    from zlib import crc32

    lines = text.splitlines(keepends=True)
    file = f"<source of {fn.__name__} {crc32(text.encode()):08x}>" if place is None else fn.__code__.co_filename
    body = _statements(file, lines, place or 1)
    if place is None and (len(body) != 1 or not _is_definition(body[0], fn, fn.__name__)):
        raise ValueError(f"the text is not one definition of {fn.__name__!r} with the same parameters")
    if place is None:
        linecache.cache[file] = len(text), None, lines, file  # where tracebacks and diagnostics look for excerpts
    return file, lines, place or 1, body[0]


# ---- by Python's own means


def _inspect(fn):
    import inspect

    no_def = TypeError("@triton.jit takes a function made by def, not a lambda or another expression")
    if fn.__name__ == "<lambda>":
        raise no_def
    try:
        lines, first = inspect.getsourcelines(fn)
        file = inspect.getsourcefile(fn) or fn.__code__.co_filename
    except (OSError, TypeError, IndexError) as reason:
        raise ValueError(
            f"the source of kernel {fn.__name__!r} cannot be read ({reason}): a kernel is compiled from its "
            f"text, so define it in a file or a notebook cell; for text given to exec(), compile it with the "
            f"name of an entry in linecache.cache"
        ) from None
    try:
        node = _statements(file, lines, first)[0]
    except SyntaxError as error:
        raise _changed(fn, file, first) from error
    kind = type(node).__name__
    if kind == "AsyncFunctionDef":
        raise TypeError(f"kernel {fn.__name__!r} is an async function; @triton.jit takes plain functions")
    if kind != "FunctionDef":
        raise no_def
    if not _is_definition(node, fn):
        raise _changed(fn, file, first)
    return file, lines, first, node


def _changed(fn, file, line):
    return ValueError(
        f"{file}:{line} does not hold the source of kernel {fn.__name__!r}: the file changed since it was "
        "imported; import it again"
    )


# ---- both


def _statements(file, lines, first):
    """The trees of a block that starts at line `first` of `file`, each node with its line and column there."""
    # The module `ast` calls the compiler like this, and takes longer to import than this takes.
    from _ast import If, PyCF_ONLY_AST

    # Empty lines before the block put it there, the last one opening a block if it is indented.
    indented = lines[0][:1].isspace()
    before = "\n" * (first - 2) + "if 1:\n" if indented else "\n" * (first - 1)
    body = compile(before + "".join(lines), file, "exec", PyCF_ONLY_AST, dont_inherit=True).body
    _C.untrack_tree(body)
    return body[0].body if indented and isinstance(body[0], If) else body


def _is_definition(node, fn, name=None):
    """Whether a tree is what the function was made from, as far as its name (or `name`) and its parameters tell."""
    if type(node).__name__ != "FunctionDef" or node.name not in (fn.__code__.co_name, name):
        return False
    arguments = node.args
    named = [arg.arg for arg in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return named == _parameter_names(fn)


def _parameter_names(fn):
    """Of those that are no *args and no **META."""
    stated = getattr(fn, "__signature__", None)
    if stated is not None:
        return [each.name for each in stated.parameters.values() if each.kind not in (2, 4)]
    code = fn.__code__
    return [*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]]
