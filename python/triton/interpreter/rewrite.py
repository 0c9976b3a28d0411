"""A kernel's function, to be run by Python: the same statements at the same places, with calls of `frames` where a
kernel means something else than Python does. It runs in a frame of its own name and file, with the names of the kernel
as its local variables, so that debuggers show it.

==============================  ==================================================================================
``x = 4``                       ``x = assign(4)``: a value of the language; `tl.constexpr` names stay Python's
``f(x)`` ``x.sum(0)``           ``call(f, x)`` ``method(x, "sum", 0)``
``x.dtype``                     ``attribute(x, "dtype")``
``a and b`` ``a < b < c``       elements are compared and combined
``if`` ``while`` ``x if t``     the test is a scalar
``for i in range(n)``           `i` is a value of the language; names that the body assigns are no constants
``assert``                      as `tl.device_assert`
``[a, b]``                      a tuple
==============================  ==================================================================================
"""

import ast
import builtins
import copy
from types import CellType, FunctionType

from . import frames, operations

_HELPER = "__triton__"
_SPECIAL_CALLS = {"breakpoint", "set_trace"}  # stop in the frame that calls them
_COMPARISONS = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}


def interpreted(kernel):
    """The function that runs in place of a kernel's."""
    source = kernel.source
    found = kernel.__dict__.get("_interpreted")
    if found is None or found[0] is not source:
        found = kernel._interpreted = (source, _make_function(kernel))
    return found[1]


def _make_function(kernel):
    fn, tree = kernel.fn, copy.deepcopy(kernel.parse())
    free = fn.__code__.co_freevars
    function = _Rewriter(tree).function(tree)
    function.name = "inner"  # not its own, which is a global's in the body of a function that calls itself
    arguments = [ast.arg(name) for name in (*free, _HELPER)]
    outer = ast.FunctionDef(
        name="outer",
        args=ast.arguments(posonlyargs=[], args=arguments, kwonlyargs=[], kw_defaults=[], defaults=[]),
        body=[function, ast.Return(ast.Name(function.name, ast.Load()))],
        decorator_list=[],
        type_params=[],
    )
    ast.copy_location(outer, tree)
    module = ast.fix_missing_locations(ast.Module([outer], []))
    space = {}
    exec(compile(module, kernel.source_file, "exec", dont_inherit=True), fn.__globals__, space)
    code = space["outer"](*[None] * len(arguments)).__code__
    code = code.replace(co_name=fn.__name__, co_qualname=fn.__qualname__)
    operations.codes.add(code)
    cells = dict(zip(free, fn.__closure__ or (), strict=True)) | {_HELPER: CellType(frames)}
    closure = tuple(cells[name] for name in code.co_freevars)
    made = FunctionType(code, fn.__globals__, fn.__name__, None, closure)
    if fn.__defaults__:
        made.__defaults__ = tuple(map(frames.value, fn.__defaults__))
    if fn.__kwdefaults__:
        made.__kwdefaults__ = {name: frames.value(each) for name, each in fn.__kwdefaults__.items()}
    made.__doc__ = fn.__doc__
    return made


def _assigned(statements):
    """Names that statements assign, in the order in which they do; compile-time ones are none."""
    names = {}

    class Visitor(ast.NodeVisitor):
        def visit_Name(self, node):  # noqa: N802
            if isinstance(node.ctx, ast.Store):
                names[node.id] = True

        def visit_AnnAssign(self, node):  # noqa: N802
            if not _is_constexpr(node.annotation):
                self.visit(node.target)
            if node.value:
                self.visit(node.value)

        def visit_ListComp(self, node):  # noqa: N802
            pass

        visit_GeneratorExp = visit_SetComp = visit_DictComp = visit_Lambda = visit_FunctionDef = visit_ListComp

    for statement in statements:
        Visitor().visit(statement)
    return list(names)


def _is_constexpr(annotation):
    """Python does not evaluate the annotation of a local variable, so only its spelling counts."""
    if isinstance(annotation, ast.Constant):
        return isinstance(annotation.value, str) and "constexpr" in annotation.value
    return getattr(annotation, "attr", getattr(annotation, "id", None)) == "constexpr"


class _Rewriter(ast.NodeTransformer):
    def __init__(self, tree):
        arguments = tree.args
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        self.locals = {argument.arg for argument in every if argument}
        self.locals |= {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self.count = 0

    # ---- building

    def helper(self, node, name, *arguments, keywords=()):
        """A call of one of `frames`, at the place of a node."""
        function = ast.Attribute(ast.Name(_HELPER, ast.Load()), name, ast.Load())
        made = ast.Call(function, list(arguments), list(keywords))
        ast.copy_location(made, node)
        for part in (function, function.value):  # a point: Python counts a name's line from where it ends
            part.lineno = part.end_lineno = node.lineno
            part.col_offset = part.end_col_offset = node.col_offset
        for argument in arguments:
            if not hasattr(argument, "lineno"):
                ast.copy_location(argument, node)
        return made

    def temporary(self, node):
        """A new local name, to be stored and loaded."""
        self.count += 1
        name = f"__triton_{self.count}"
        return lambda context: ast.copy_location(ast.Name(name, context), node)

    def text(self, node, content):
        return ast.copy_location(ast.Constant(content), node)

    def at(self, node, made):
        for part in ast.walk(made):
            if not hasattr(part, "lineno") and "lineno" in part._attributes:
                ast.copy_location(part, node)
        return made

    # ---- the function

    def function(self, tree):
        arguments = tree.args
        for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
            argument.annotation = None
        for argument in (arguments.vararg, arguments.kwarg):
            if argument:
                argument.annotation = None
        arguments.defaults = [ast.Constant(None) for _ in arguments.defaults]
        arguments.kw_defaults = [default and ast.Constant(None) for default in arguments.kw_defaults]
        tree.decorator_list, tree.returns = [], None
        body = tree.body
        if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body = body[1:] or [self.at(body[0], ast.Pass())]  # a docstring
        tree.body = self.block(body)
        return ast.fix_missing_locations(tree)

    def block(self, statements):
        result = []
        for statement in statements:
            made = self.visit(statement)
            result.extend(made if isinstance(made, list) else [made])
        return result

    # ---- statements

    def visit_Assign(self, node):  # noqa: N802
        node.value = self.helper(node, "assign", self.visit(node.value))
        node.targets = [self.visit(target) for target in node.targets]
        return node

    def visit_AugAssign(self, node):  # noqa: N802
        if not isinstance(node.target, ast.Name):
            return self.generic_visit(node)
        left = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        operation = ast.copy_location(ast.BinOp(left, node.op, self.visit(node.value)), node)
        made = ast.Assign([node.target], self.helper(node, "assign", operation))
        return ast.copy_location(made, node)

    def visit_AnnAssign(self, node):  # noqa: N802
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        name = "constant" if _is_constexpr(node.annotation) else "assign"
        made = ast.Assign([node.target], self.helper(node, name, self.visit(node.value)))
        return ast.copy_location(made, node)

    def visit_NamedExpr(self, node):  # noqa: N802
        node.value = self.helper(node, "assign", self.visit(node.value))
        return node

    def visit_Return(self, node):  # noqa: N802
        if node.value is not None:
            node.value = self.helper(node, "assign", self.visit(node.value))
        return node

    def visit_Assert(self, node):  # noqa: N802
        arguments = self.asserted([self.visit(part) for part in (node.test, node.msg) if part])
        return ast.copy_location(ast.Expr(self.helper(node, "check", *arguments)), node)

    def asserted(self, arguments):
        """A condition and a message, which is not evaluated where the condition is known to hold."""
        if len(arguments) != 2:
            return arguments
        test, message = arguments
        kept = self.temporary(test)
        holds = self.helper(test, "holds", kept(ast.Load()))
        first = self.at(test, ast.NamedExpr(kept(ast.Store()), test))
        return [first, self.at(message, ast.IfExp(holds, self.text(message, ""), message))]

    def visit_If(self, node):  # noqa: N802
        node.test = self.helper(node.test, "condition", self.visit(node.test))
        node.body, node.orelse = self.block(node.body), self.block(node.orelse)
        return node

    def carry(self, node, names, test=None):
        """Before a loop: names that it assigns and that hold something stop being constants."""
        made = []
        for name in names:
            store = ast.Assign([ast.Name(name, ast.Store())], self.helper(node, "carried", ast.Name(name, ast.Load())))
            is_bound = self.helper(node, "bound", self.text(node, name))
            condition = ast.BoolOp(ast.And(), [test(), is_bound]) if test else is_bound
            made.append(self.at(node, ast.If(condition, [store], [])))
        return made

    def visit_While(self, node):  # noqa: N802
        before = self.carry(node.test, _assigned([ast.Expr(node.test), *node.body]))
        node.test = self.helper(node.test, "condition", self.visit(node.test))
        node.body, node.orelse = self.block(node.body), self.block(node.orelse)
        return [*before, node]

    def visit_For(self, node):  # noqa: N802
        iterable = node.iter
        if isinstance(iterable, ast.Call):
            arguments, keywords = self.arguments(iterable)
            if isinstance(iterable.func, ast.Attribute):
                function = [self.visit(iterable.func.value), self.text(iterable, iterable.func.attr)]
                made = self.helper(iterable, "loop_method", *function, *arguments, keywords=keywords)
            else:
                made = self.helper(iterable, "loop", self.callee(iterable.func), *arguments, keywords=keywords)
        else:
            made = self.helper(iterable, "items", self.visit(iterable))
        name = self.temporary(iterable)
        first = ast.copy_location(ast.Assign([name(ast.Store())], made), iterable)
        is_dynamic = lambda: self.at(iterable, ast.Attribute(name(ast.Load()), "is_dynamic", ast.Load()))  # noqa: E731
        before = self.carry(iterable, _assigned(node.body), is_dynamic)
        node.iter, node.target = name(ast.Load()), self.visit(node.target)
        node.body, node.orelse = self.block(node.body), self.block(node.orelse)
        return [first, *before, node]

    # ---- expressions

    def visit_Name(self, node):  # noqa: N802
        is_outer = isinstance(node.ctx, ast.Load) and node.id not in self.locals and not hasattr(builtins, node.id)
        return self.helper(node, "value", node) if is_outer else node

    def visit_Attribute(self, node):  # noqa: N802
        if not isinstance(node.ctx, ast.Load):
            return self.generic_visit(node)
        return self.helper(node, "attribute", self.visit(node.value), self.text(node, node.attr))

    def arguments(self, node):
        keywords = [self.at(node, ast.keyword(each.arg, self.visit(each.value))) for each in node.keywords]
        return [self.visit(argument) for argument in node.args], keywords

    def callee(self, node):
        return node if isinstance(node, ast.Name) else self.visit(node)

    def visit_Call(self, node):  # noqa: N802
        function = node.func
        name = getattr(function, "attr", getattr(function, "id", None))
        if name in _SPECIAL_CALLS:
            return node
        arguments, keywords = self.arguments(node)
        if name == "static_assert":
            arguments = self.asserted(arguments)
        if isinstance(function, ast.Attribute):
            parts = [self.visit(function.value), self.text(node, function.attr)]
            return self.helper(node, "method", *parts, *arguments, keywords=keywords)
        return self.helper(node, "call", self.callee(function), *arguments, keywords=keywords)

    def visit_UnaryOp(self, node):  # noqa: N802
        operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return self.helper(node, "negated", operand)
        node.operand = operand
        return node

    def visit_Compare(self, node):  # noqa: N802
        texts = [_COMPARISONS[type(op)] for op in node.ops]
        if len(texts) == 1 and texts[0] not in ("is", "is not", "in", "not in"):
            return self.generic_visit(node)
        pairs = [
            self.at(node, ast.Tuple([self.text(node, text), self.visit(right)], ast.Load()))
            for text, right in zip(texts, node.comparators, strict=True)
        ]
        return self.helper(node, "compare", self.visit(node.left), *pairs)

    def visit_BoolOp(self, node):  # noqa: N802
        name = "and" if isinstance(node.op, ast.And) else "or"
        result = self.visit(node.values[0])
        for right in node.values[1:]:
            left = self.temporary(node)
            kept = self.at(node, ast.NamedExpr(left(ast.Store()), result))
            test = self.helper(node, "goes_on", self.text(node, name), kept)
            both = self.helper(node, "both", self.text(node, name), left(ast.Load()), self.visit(right))
            result = self.at(node, ast.IfExp(test, both, self.helper(node, "decided", left(ast.Load()))))
        return result

    def visit_IfExp(self, node):  # noqa: N802
        test = self.temporary(node)
        kept = self.at(node.test, ast.NamedExpr(test(ast.Store()), self.visit(node.test)))
        node.test = self.helper(node.test, "condition", kept)
        node.body, node.orelse = self.visit(node.body), self.visit(node.orelse)
        return self.helper(node, "chosen", node, test(ast.Load()))

    def visit_List(self, node):  # noqa: N802
        self.generic_visit(node)
        return ast.copy_location(ast.Tuple(node.elts, node.ctx), node)

    def visit_ListComp(self, node):  # noqa: N802
        self.generic_visit(node)
        made = ast.copy_location(ast.GeneratorExp(node.elt, node.generators), node)
        return self.at(node, ast.Call(ast.Name("tuple", ast.Load()), [made], []))

    visit_GeneratorExp = visit_ListComp  # noqa: N815
