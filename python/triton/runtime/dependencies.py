"""What a kernel's source refers to outside of itself: functions it calls, and values of globals and closures."""

from types import ModuleType


class Dependencies:
    """Of one function and of all that it calls.

    ``functions`` are the kernels among them, itself first. ``values`` maps (name, id of the dict of globals or of the
    closure's cell) to the value that the name has now and the place it comes from: a dict, or a cell. Names of this
    package are left out; they change with its version only.
    """

    def __init__(self, kernel):
        self.functions, self.values = [], {}
        self._uses = set()  # a text for each value that a function refers to
        if kernel is not None:
            self._add_function(kernel)

    def _add_function(self, kernel):
        if kernel in self.functions:
            return
        self.functions.append(kernel)
        tree, fn = kernel.parse(), kernel.fn
        cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
        local, number = _assigned(tree), len(self.functions)
        for path in _paths(tree.body):
            if path[0] not in local:
                use = f"{number} {'.'.join(path)}"
                self._resolve(path, cells, fn.__globals__, use)

    def _resolve(self, path, cells, namespace, use):
        """Follow a name and its attributes through modules to something else."""
        name, *attributes = path
        place = cells.get(name, namespace)
        try:
            value = place.cell_contents if name in cells else place[name]
            while isinstance(value, ModuleType) and not _is_own(value.__name__) and attributes:
                place, name = vars(value), attributes.pop(0)
                value = getattr(value, name)
        except (KeyError, ValueError, AttributeError):  # one of Python's own, or not there (yet)
            return
        self._add_value(name, value, place, use)

    def _add_value(self, name, value, place, use):
        while hasattr(value, "base_fn"):  # an autotuned kernel, called as a function
            value = value.fn
        kind = getattr(type(value), "__triton_kind__", None)
        is_own = _is_own(getattr(value, "__module__", None)) and kind not in _VALUES
        if kind == "jit" and not is_own:
            self._add_function(value)
            self._uses.add(f"{use} {self.functions.index(value)}")
        elif not isinstance(value, ModuleType) and not is_own:
            self.values[name, id(place)] = value, place
            self._uses.add(f"{use} {value_text(value)}")

    def key(self):
        """A text that is another one when the source of a function, or one of the values, is."""
        from hashlib import sha256

        sources = [(each.src, each.fn.__code__.co_firstlineno, each.noinline, each.version) for each in self.functions]
        return sha256(repr((sources, sorted(self._uses))).encode()).hexdigest()


class DependenciesFinder:
    """The same for a function that is no kernel yet, given by its tree, as the public API has it.

    ``finder = DependenciesFinder(name, fn.__globals__, inspect.getclosurevars(fn).nonlocals, source)``, and after
    ``finder.visit(tree)`` its ``ret`` is a text as `Dependencies.key` gives, and ``used_global_vals`` has the values.
    """

    def __init__(self, name, globals, nonlocals, src):
        self.name, self.globals, self.nonlocals, self.src = name, globals, nonlocals, src
        self._found = None

    def visit(self, tree):
        tree = tree.body[0] if type(tree).__name__ == "Module" else tree
        self._found = Dependencies(None)
        local = _assigned(tree)
        for path in _paths(tree.body):
            if path[0] not in local:
                space = self.nonlocals if path[0] in self.nonlocals else self.globals
                self._found._resolve(path, {}, space, f"0 {'.'.join(path)}")

    @property
    def used_global_vals(self):
        return self._found.values if self._found else {}

    @property
    def ret(self):
        from hashlib import sha256

        return sha256(f"{self.src} {self._found.key() if self._found else ''}".encode()).hexdigest()


_VALUES = "constexpr", "dtype", "pointer_type", "block_type"  # of this package, and what programs give names to


def _is_own(module):
    return isinstance(module, str) and module.partition(".")[0] == "triton"


def value_text(value):
    """What distinguishes a value from others in another process, too: not where it lies."""
    value = getattr(value, "value", value) if getattr(type(value), "__triton_kind__", None) == "constexpr" else value
    function = getattr(value, "__wrapped__", value)
    if hasattr(function, "__code__"):
        code = function.__code__
        return f"{function.__module__}.{function.__qualname__} {code.co_code!r} {code.co_consts!r} {code.co_names!r}"
    return getattr(value, "__qualname__", None) or repr(value)


def _children(node):
    for field in node._fields:
        value = getattr(node, field, None)
        yield from value if isinstance(value, list) else [value]


def _nodes(statements):
    waiting = [*statements]
    while waiting:
        node = waiting.pop()
        if hasattr(node, "_fields"):
            yield node
            waiting.extend(_children(node))


def _assigned(tree):
    """The names of parameters and local variables of a function's tree."""
    arguments = tree.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    names = {each.arg for each in named if each is not None}
    stored = (node for node in _nodes(tree.body) if type(node).__name__ == "Name")
    return names | {node.id for node in stored if type(node.ctx).__name__ == "Store"}


def _paths(statements):
    """Every name that is read, with the attributes taken of it: ["tl", "math", "exp"]."""
    for node in _nodes(statements):
        attributes = []
        while type(node).__name__ == "Attribute":
            attributes.insert(0, node.attr)
            node = node.value
        if type(node).__name__ == "Name" and type(node.ctx).__name__ == "Load":
            yield [node.id, *attributes]
