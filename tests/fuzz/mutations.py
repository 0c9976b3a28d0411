"""Ways to mangle the source of a kernel and the arguments it is compiled for."""

import ast
import copy
import io
import tokenize

CONSTANTS = [
    0, 1, -1, 2, 3, 7, 16, 127, 1 << 16, 1 << 20, 1 << 31, (1 << 31) - 1, -(1 << 31), 1 << 32, 1 << 63, (1 << 64) - 1,
    1 << 64,
    -(1 << 63) - 1, 1 << 70, 0.0, -0.0, 0.5, 1e-320, 1e308, float("inf"), float("nan"), None, True, False, "", "x",
    "fp32",
    "rtz", "é\n\0", b"bytes", ..., 1j, (), (1,), (1, 2, 3), (4, 4),
]  # fmt: skip
NAMES = [
    "tl",
    "triton",
    "np",
    "kernel",
    "print",
    "len",
    "int",
    "float",
    "range",
    "None",
    "max",
    "min",
    "abs",
    "str",
    "type",
]
NAMES += [
    "isinstance",
    "list",
    "tuple",
    "dict",
    "object",
    "combine",
    "several",
    "apart",
    "undefined",
    "x",
    "x_ptr",
    "n",
    "SIZE",
    "i",
]
ATTRIBUTES = [
    "shape",
    "dtype",
    "T",
    "to",
    "sum",
    "type",
    "value",
    "element_ty",
    "numel",
    "nothing",
    "__class__",
    "__dict__",
    "real",
]
KEYWORDS = [
    "axis",
    "mask",
    "other",
    "dtype",
    "keep_dims",
    "reverse",
    "nothing",
    "acc",
    "bitcast",
    "sem",
    "boundary_check",
    "msg",
]
STATEMENTS = [
    "try:\n    pass\nexcept ValueError:\n    pass", "with open as f:\n    pass", "f = lambda a: a + 1", "yield 1",
    "import os",
    "global SIZE", "nonlocal_ = 1", "del x", "raise ValueError('no')", "class C:\n    pass",
    "def inner(a):\n    return a",
    "match n:\n    case 1:\n        pass", "a, *b = 1, 2, 3", "c = [k for k in range(3)]", "d = {1: 2}", "s = {1, 2}",
    "e = f'{n} {SIZE:>4}'",
    "assert n > 0, 'text'", "assert SIZE", "return n", "return", "break", "continue", "pass", "x: tl.constexpr = 5",
    "n = n + 1", "SIZE = 5",
    "x_ptr = n", "tl.store(x_ptr, n)", "print(n)", "kernel(x_ptr)", "while True:\n    pass", "while n:\n    n -= 1",
    "for q in range(n, 0, -1):\n    n += q", "for q in [1, 2]:\n    pass",
    "for q in tl.static_range(1000000):\n    n += q",
    "for n in range(3):\n    n = n\nelse:\n    n = 1", "if n:\n    v = 1\nelse:\n    v = 1.0",
    "if n:\n    w = 1\nn = w",
    "z = tl.zeros((1 << 16, 1 << 16), tl.float32)", "z = tl.arange(0, 1 << 28)", "z = (n := 3)", "n.shape = 3",
    "n[0] = 1", "(n, SIZE)[n]",
    "z = n @ n", "z = not n", "z = -x_ptr", "z = x_ptr + x_ptr", "z = 'a' + n", "z = n if x_ptr else None",
    "z = await n", "z = tl",
    "z = tl.dot(n, n)", "z = tl.sum", "z = tl.sum()", "z = tl.load(x_ptr, other=1)", "z = (yield)", "z = n.to",
    "z = n.to.to", "lambda: 0",
    "z = tl.full((4,), 'a', tl.int32)", "z = tl.reduce(tl.arange(0, 8), 0, kernel)",
    "z = tl.reduce(tl.arange(0, 8), 0, print)",
]  # fmt: skip
TOKENS = list("()[]{}:,.+-*/%&|^~<>=@") + [
    "==",
    "//",
    "<<",
    ">>",
    "->",
    ":=",
    "if",
    "else",
    "for",
    "in",
    "not",
    "and",
    "or",
    "is",
]
TOKENS += ["return", "lambda", "while", "1", "0", "'s'", "None", "1e9", *NAMES]


def mutant(random, source):
    """Mangled source that Python still parses, from a few mutations of one kind or another."""
    for _ in range(int(random.choice([1, 1, 1, 2, 3, 5]))):
        for _ in range(8):
            try:
                kind = random.random()
                mangle = mutate_tokens if kind < 0.3 else mutate_lines if kind < 0.4 else mutate_tree
                mangled = mangle(random, source)
                ast.parse(mangled)
            except (SyntaxError, ValueError, tokenize.TokenError, RecursionError):
                continue
            source = mangled
            break
    return source


def pick(random, items):
    return items[int(random.integers(len(items)))]


def mutate_tokens(random, source):
    tokens = [(token.type, token.string) for token in tokenize.generate_tokens(io.StringIO(source).readline)]
    places = [
        k
        for k, token in enumerate(tokens)
        if token[0] in (tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING)
    ]
    i, j = pick(random, places), pick(random, places)
    kind = int(random.integers(4))
    if kind == 0:
        del tokens[i]
    elif kind == 1:
        tokens.insert(i, tokens[j])
    elif kind == 2:
        tokens[i], tokens[j] = tokens[j], tokens[i]
    else:
        text = pick(random, TOKENS)
        tokens[i] = (tokenize.NAME if text.isalpha() else tokenize.OP, text)
    return tokenize.untokenize(tokens)


def mutate_lines(random, source):
    lines = source.splitlines()
    i, j = int(random.integers(len(lines))), int(random.integers(len(lines)))
    kind = int(random.integers(5))
    if kind == 0:
        del lines[i]
    elif kind == 1:
        lines.insert(i, lines[j])
    elif kind == 2:
        lines[i], lines[j] = lines[j], lines[i]
    elif kind == 3:
        lines[i] = "    " + lines[i]
    else:
        lines[i] = lines[i].removeprefix("    ")
    return "\n".join(lines) + "\n"


def mutate_tree(random, source):
    tree = ast.parse(source)
    pick(random, TREE_MUTATIONS)(random, tree)
    return ast.unparse(ast.fix_missing_locations(tree))


def slots(tree, kind):
    """Places (parent, field, index or None) of the nodes of a kind below function bodies."""
    found = []
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for statement in function.body:
            for parent in ast.walk(statement):
                for field, value in ast.iter_fields(parent):
                    if isinstance(value, list):
                        found += [(parent, field, k) for k, item in enumerate(value) if isinstance(item, kind)]
                    elif isinstance(value, kind):
                        found.append((parent, field, None))
    return found


def get(slot):
    parent, field, index = slot
    value = getattr(parent, field)
    return value if index is None else value[index]


def put(slot, node):
    parent, field, index = slot
    if index is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[index] = node


def expression_slots(tree):
    """Expressions that are read, not assigned to."""
    return [slot for slot in slots(tree, ast.expr) if isinstance(getattr(get(slot), "ctx", ast.Load()), ast.Load)]


def change_constant(random, tree):
    places = slots(tree, ast.Constant)
    if places:
        put(pick(random, places), ast.Constant(pick(random, CONSTANTS[:-3])))


def change_name(random, tree):
    places = slots(tree, ast.Name)
    if places:
        node = get(pick(random, places))
        own = [name.id for name in ast.walk(tree) if isinstance(name, ast.Name)]
        node.id = pick(random, own if random.random() < 0.6 else NAMES)


def change_attribute(random, tree):
    places = slots(tree, ast.Attribute)
    if places:
        import triton.language as tl

        names = [name for name in dir(tl) if not name.startswith("_")]
        get(pick(random, places)).attr = pick(random, names if random.random() < 0.7 else ATTRIBUTES)


BINARY = [
    ast.Add,
    ast.Sub,
    ast.Mult,
    ast.Div,
    ast.FloorDiv,
    ast.Mod,
    ast.LShift,
    ast.RShift,
    ast.BitAnd,
    ast.BitOr,
    ast.BitXor,
]
COMPARE = [ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Is, ast.IsNot, ast.In, ast.NotIn]


def change_operator(random, tree):
    places = slots(tree, (ast.operator, ast.cmpop))
    if places:
        place = pick(random, places)
        kinds = COMPARE if isinstance(get(place), ast.cmpop) else [*BINARY, ast.MatMult]
        put(place, pick(random, kinds)())


def change_call(random, tree):
    places = slots(tree, ast.Call)
    if not places:
        return
    call = get(pick(random, places))
    kind = int(random.integers(6))
    if kind == 0 and call.args:
        del call.args[int(random.integers(len(call.args)))]
    elif kind == 1 and call.keywords:
        del call.keywords[int(random.integers(len(call.keywords)))]
    elif kind == 2 and call.args:
        call.args.append(copy.deepcopy(pick(random, call.args)))
    elif kind == 3 and call.keywords:
        pick(random, call.keywords).arg = pick(random, KEYWORDS)
    elif kind == 4 and call.args:
        call.args[0] = ast.Starred(call.args[0], ast.Load())
    else:
        call.keywords.append(ast.keyword(pick(random, KEYWORDS), ast.Constant(pick(random, CONSTANTS[:-3]))))


def move_expression(random, tree):
    """One expression takes the place of another."""
    places = expression_slots(tree)
    put(pick(random, places), copy.deepcopy(get(pick(random, places))))


def wrap_expression(random, tree):
    place = pick(random, expression_slots(tree))
    inner = ast.unparse(get(place))
    constant, other = repr(pick(random, CONSTANTS[:24])), pick(random, NAMES)
    shapes = [
        "-({})",
        "not ({})",
        "~({})",
        "({})[:, None]",
        "({})[0]",
        "({})[{c}]",
        "({})[::2]",
        "({})[1:{c}]",
        "({},)",
        "[{}]",
    ]
    shapes += [
        "({}).to(tl.int8)",
        "({}).T",
        "tl.sum({})",
        "tl.sum({}, {c})",
        "tl.load({})",
        "tl.zeros({}, tl.float32)",
        "len({})",
    ]
    shapes += [
        "{o}({})",
        "({}) + {c}",
        "({}) < {c}",
        "({}) if n else {c}",
        "({}) and {o}",
        "tl.reshape({}, (2, -1))",
        "({}).{a}",
    ]
    shapes += [
        "tl.arange(0, {})",
        "tl.broadcast_to({}, ({c}, 4))",
        "tl.{a}({})",
        "lambda: {}",
        "[{} for _ in range(2)]",
        "f'{{{}}}'",
    ]
    text = pick(random, shapes).format(inner, c=constant, o=other, a=pick(random, ATTRIBUTES))
    put(place, ast.parse(text, mode="eval").body)


def bodies(tree):
    return [node.body for node in ast.walk(tree) if isinstance(getattr(node, "body", None), list) and node is not tree]


def change_statements(random, tree):
    places = [body for body in bodies(tree) if body]
    body, other = pick(random, places), pick(random, places)
    i, j = int(random.integers(len(body))), int(random.integers(len(other)))
    kind = int(random.integers(6))
    if kind == 0 and len(body) > 1:
        del body[i]
    elif kind == 1:
        other.insert(j, copy.deepcopy(body[i]))
    elif kind == 2:
        body[i], other[j] = other[j], body[i]
    elif kind == 3:
        head = pick(
            random, ["if n > 3:", "for k in range(n):", "while n > 0:", "for k in tl.static_range(3):", "if SIZE > 3:"]
        )
        body[i] = ast.parse(head + "\n    pass").body[0]
        body[i].body = [copy.deepcopy(other[j])]
    else:
        body[i:i] = ast.parse(pick(random, STATEMENTS)).body


def change_parameters(random, tree):
    function = pick(random, [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)])
    arguments = function.args.args
    kind = int(random.integers(5))
    if kind == 0 and arguments:
        del arguments[int(random.integers(len(arguments)))]
    elif kind == 1:
        arguments.append(ast.arg(pick(random, ["extra", "more", "n2"])))
    elif kind == 2 and arguments:
        texts = [
            "tl.constexpr",
            "'*fp32'",
            "'i8'",
            "tl.float32",
            "int",
            "tl.pointer_type(tl.int8)",
            "None",
            "'nonsense'",
        ]
        pick(random, arguments).annotation = ast.parse(pick(random, texts), mode="eval").body
    elif kind == 3 and arguments:
        pick(random, arguments).annotation = None
    elif len(arguments) > 1:
        i, j = int(random.integers(len(arguments))), int(random.integers(len(arguments)))
        arguments[i], arguments[j] = arguments[j], arguments[i]


TREE_MUTATIONS = [change_constant, change_name, change_attribute, change_operator, change_call, move_expression]
TREE_MUTATIONS += [wrap_expression, wrap_expression, change_statements, change_statements, change_parameters]


VALUES = [
    *(f"np.zeros(64, {dtype!r})" for dtype in ("int8", "int64", "uint32", "float16", "float64", "bool", "complex64")),
    "np.zeros(64, object)", "np.zeros(0, np.float32)", "np.zeros((8, 8), np.float32)[:, ::2]",
    "np.broadcast_to(np.float32(0), (64,))", "np.zeros(4, 'S3')", "np.float16(1)", "np.int8(3)", "np.uint64(1 << 63)",
    "(np.zeros(4, np.float32), 3)", "[1, 2]", "{'a': 1}", "object()", "len", "np.float32",
    "float('inf')", "float('nan')",
    *(repr(value) for value in CONSTANTS if repr(value) not in ("inf", "nan")),
]  # fmt: skip
OPTIONS = ["num_warps", "num_stages", "nothing", "debug", "extra"]


def mutate_arguments(random, positional, keywords):
    """Sometimes other arguments: dtypes, kinds, numbers and names. All are texts of Python."""
    positional, keywords = list(positional), dict(keywords)
    if random.random() < 0.3:
        keywords["num_warps"] = pick(random, ["1", "2", "8", "16"])
        keywords["num_stages"] = pick(random, ["1", "2", "4", "5"])
    if random.random() < 0.15:
        keywords["debug"] = "True"
    if random.random() < 0.7:
        return positional, keywords
    kind = int(random.integers(4))
    if kind == 0 and positional:
        positional[int(random.integers(len(positional)))] = pick(random, VALUES)
    elif kind == 1 and keywords:
        keywords[pick(random, list(keywords))] = pick(random, VALUES)
    elif kind == 2:
        keywords[pick(random, OPTIONS)] = pick(random, VALUES)
    elif positional:
        del positional[int(random.integers(len(positional)))]
    return positional, keywords
