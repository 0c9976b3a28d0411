"""Values of several parts: `triton.aggregate`, and what the compiler asks of classes, functions and targets."""

import pickle

import numpy as np
import pytest
from harness import Buffer, jit

import triton
import triton.language as tl


@triton.aggregate
class Pair:
    """A tile and a factor."""

    first: tl.tensor
    scale: tl.constexpr

    @triton.jit
    def scaled(self):
        return self.first * self.scale

    @triton.jit
    def plus(self, other):
        return Pair(self.first + other.first, self.scale)


@triton.aggregate
class Range:
    start: tl.tensor
    size: tl.constexpr
    parts: tuple

    @triton.constexpr_function
    def __init__(self, start, size, *parts, double=False):
        self.start = start
        self.size = tl.constexpr(2 * size if double else size)
        self.parts = parts

    @triton.jit
    def indices(self):
        return self.start + tl.arange(0, self.size) + self.parts[1]


@triton.jit
def swapped(pair, other):
    return tl.aggregate_replace(pair, first=other.first), tl.aggregate_replace(other, first=pair.first, scale=7)


@triton.jit
def use(out, n):
    a = Pair(n, 3)
    b = Pair(scale=2, first=n + 1)
    for _ in range(2):
        a = a.plus(b)
    a, b = swapped(a, b)
    if n > 3:
        b = Pair(b.first + 100, b.scale)
    tl.static_assert(isinstance(a, Pair) and a.scale == 3 and b.scale == 7)
    tl.store(out, a.scaled())
    tl.store(out + 1, b.scaled())


def test_a_class_of_annotations():
    out = Buffer(np.zeros(2, np.int32))
    use[(1,)](out.argument, 5)
    assert out.host().values.tolist() == [6 * 3, (5 + 12 + 100) * 7]


@triton.jit
def indexed(out, n):
    few = Range(n, 4, n, 10)
    many = Range(n + 4, 2, 0, n * 0, double=True)
    tl.store(out + few.indices() - few.parts[1], few.indices())
    tl.store(out + many.indices(), many.parts[0])


def test_an_initialiser_of_its_own():
    out = Buffer(np.full(12, -1, np.int32))
    indexed[(1,)](out.argument, 2)
    assert out.host().values.tolist() == [-1, -1, 12, 13, 14, 15, 0, 0, 0, 0, -1, -1]


@triton.aggregate
class Bad:
    first: tl.tensor
    second: tl.tensor

    def __init__(self, first, fails):
        self.first = first
        if fails == 1:
            self.second = sum(first)
        elif fails == 2:
            self.third = self.second = first


@pytest.mark.parametrize("fails, message", [
    (0, "Bad.__init__ does not assign 'second'"),
    (1, "cannot be iterated over"),
    (2, "'third', which is not annotated"),
])  # fmt: skip
def test_initialisers_that_go_wrong(fails, message):
    kernel = jit("def kernel(out, n, F: tl.constexpr):\n    tl.store(out, Bad(n, F).first)\n", Bad=Bad)
    with pytest.raises(TypeError if triton.knobs.runtime.interpret else triton.CompilationError, match=message):
        kernel[(1,)](Buffer(np.zeros(1, np.int32)).argument, 5, F=fails)


def test_fields_that_are_not_there():
    kernel = jit("def kernel(out, n):\n    tl.store(out, tl.aggregate_replace(Pair(n, 2), frist=n).first)\n", Pair=Pair)
    with pytest.raises(Exception, match="frist"):
        kernel[(1,)](Buffer(np.zeros(1, np.int32)).argument, 5)


def test_on_the_host():
    pair = Pair(4, 5)
    assert (pair.first, pair.scale) == (4, 5) and tl.aggregate_replace(pair, scale=1).scale == 1
    assert Range(1, 2, double=True).size == 4 and tl.core._aggregate is triton.aggregate


def test_fields_are_not_assigned():
    kernel = jit(
        "def kernel(out, n):\n    a = Pair(n, 2)\n    a.first = n + 1\n    tl.store(out, a.first)\n", Pair=Pair
    )
    with pytest.raises((triton.CompilationError, AttributeError), match="'first' (of|on).*Pair") as caught:
        kernel[(1,)](Buffer(np.zeros(1, np.int32)).argument, 5)
    assert "tl.aggregate_replace" in str(caught.value)


@pytest.mark.parametrize("statement", [
    "a = Pair(n, n, _semantic=None)", "a = tl.aggregate_replace(Pair(n, 2), scale=n)", "a = Given(n)",
])  # fmt: skip
def test_compile_time_fields_hold_no_run_time_values(statement):
    kernel = jit(f"def kernel(out, n):\n    {statement}\n    tl.store(out, a.scale)\n", Pair=Pair, Given=Given)
    with pytest.raises(Exception, match="field .scale. of a (Pair|Given) is a tl.constexpr, which cannot be a run-"):
        kernel[(1,)](Buffer(np.zeros(1, np.int32)).argument, 5)


@triton.aggregate
class Given:
    scale: tl.constexpr

    def __init__(self, scale, _semantic, *, _generator):
        self.scale = scale


def test_compile_time_fields_hold_constants():
    kernel = jit("""
        def kernel(out):
            n = 3
            tl.store(out + tl.arange(0, Given(n, _semantic=None).scale), Pair(n, n).scaled())
    """, Pair=Pair, Given=Given)  # fmt: skip
    out = Buffer(np.zeros(3, np.int32))
    kernel[(1,)](out.argument)
    assert out.host().values.tolist() == [9, 9, 9]


@pytest.mark.compiled
@pytest.mark.parametrize("changes, message", [
    ("if n > 3:\n        a = Pair(n, 4)", r"it is a Pair \(scale=4\) or a Pair \(scale=3\) here, depending on"),
    ("for i in range(n):\n        a = Pair(n, a.scale + 1)", r"is a Pair \(scale=3\) before .* and a Pair \(scale=4\)"),
])  # fmt: skip
def test_compile_time_fields_are_part_of_the_type(changes, message):
    kernel = jit(f"def kernel(out, n):\n    a = Pair(n, 3)\n    {changes}\n    tl.store(out, a.scaled())\n", Pair=Pair)
    with pytest.raises(triton.CompilationError, match=message):
        kernel[(1,)](Buffer(np.zeros(1, np.int32)).argument, 5)


@triton.aggregate
class Base:
    data: tl.tensor
    BLOCK: tl.constexpr

    KIND, FACTOR = "base", tl.constexpr(1)

    @triton.jit
    def doubled(self):
        return self.data + self.data

    @triton.constexpr_function
    def size(self):
        return self.BLOCK.value * 2


@triton.aggregate
class Child(Base):
    bias: tl.tensor
    extra: tl.constexpr = 5

    @triton.jit
    def total(self):
        return self.doubled() * self.FACTOR + self.bias * self.extra

    @staticmethod
    def of(data):
        return Child(data, 4, data)

    @property
    def wide(self):
        return self.BLOCK * self.extra

    @property
    @triton.jit
    def negative(self):
        return -self.data

    @triton.jit
    def __getitem__(self, index):
        return self.data * index

    @triton.jit
    def __add__(self, other):
        return tl.aggregate_replace(self, data=self.data + other.data)

    @triton.jit
    def __radd__(self, other):
        return tl.aggregate_replace(self, data=self.data + other)

    @triton.jit
    def __neg__(self):
        return tl.aggregate_replace(self, data=-self.data)

    @triton.jit
    def __lt__(self, other):
        return self.data < other.data

    @triton.jit
    def __call__(self, x):
        return self.data + x


@triton.jit
def inherited(out, n):
    a = Child.of(n)
    tl.static_assert(isinstance(a, Base) and a.KIND == "base" and a.wide == 20)
    block: tl.constexpr = a.size()
    tl.static_assert(block == 8 and len(a) == 4)
    tl.store(out, a.total())
    tl.store(out + 1, a[7] + a.of(n + 1).data)
    tl.store(out + 2, (a + Child(data=n * 2, BLOCK=1, bias=n)).data)
    tl.store(out + 3, (100 + -a).data)
    tl.store(out + 4, a < a + a)
    tl.store(out + 5, a(3) + a.negative * 10)


def test_inheritance_and_operators():
    out = Buffer(np.zeros(6, np.int32))
    inherited[(1,)](out.argument, 3)
    assert out.host().values.tolist() == [6 + 15, 21 + 4, 9, 97, 1, 6 - 30]


@triton.aggregate
class Nested:
    child: Child
    rest: tuple
    n: tl.constexpr

    def second(self, scale, _semantic=None):
        return self.child.data * scale + self.rest[0]


@triton.jit
def changed(nested, i):
    if i % 2 == 0:
        return Nested(nested.child + nested.child, nested.rest, nested.n)
    return nested


@triton.jit
def nest(out, n):
    nested = Nested(Child(n, 4, 0), (n * 2, 3), 4)
    both = (nested, 5)
    for i in range(4):
        nested = changed(nested, i)
        both = (nested, both[1] + 1)
    while nested.child.data < 100:
        nested = tl.aggregate_replace(nested, child=nested.child + nested.child)
    tl.static_assert(nested.n == 4 and isinstance(both[0].child, Child))
    tl.store(out, both[0].second(10))
    tl.store(out + 1, both[1])
    tl.store(out + 2, nested.child.data)


def test_aggregates_in_aggregates_tuples_and_loops():
    out = Buffer(np.zeros(3, np.int32))
    nest[(1,)](out.argument, 3)
    assert out.host().values.tolist() == [120 + 6, 9, 192]


def test_arguments_of_launches():
    kernel = jit("def kernel(p, out):\n    tl.store(out + tl.arange(0, p.BLOCK), p.total())\n")
    out = Buffer(np.zeros(4, np.int32))
    kernel[(1,)](Child(7, 4, 1, extra=2), out.argument)
    assert out.host().values.tolist() == [16] * 4


@triton.aggregate
class Squared:
    value: tl.constexpr
    square: tl.constexpr

    def __init__(self, value):
        self.value = tl.constexpr(value)
        self.square = self.squared()

    @triton.constexpr_function
    def squared(self):
        return self.value * self.value


@triton.aggregate
class Shifted(Squared):
    by: tl.constexpr

    def __init__(self, value, by=1):
        super().__init__(value + by)
        self.by = by

    def __post_init__(self):
        if self.by < 0:
            raise ValueError("it shifts forward")


def test_initialisers_call_methods():
    kernel = jit("""
        def kernel(out):
            x = Shifted(3)
            tl.static_assert(x.square == 16 and x.squared() == 16 and x.by == 1)
            tl.store(out + tl.arange(0, x.square), x.value)
    """, Shifted=Shifted)  # fmt: skip
    out = Buffer(np.zeros(16, np.int32))
    kernel[(1,)](out.argument)
    assert out.host().values.tolist() == [4] * 16
    assert Shifted(2, by=3).square.value == 25
    with pytest.raises(ValueError, match="forward"):
        Shifted(2, -1)


def test_classes_on_the_host():
    child = Child(1, 2, 3)
    assert child.extra.value == 5 and child.size().value == 4 and isinstance(child.BLOCK, tl.constexpr)
    assert pickle.loads(pickle.dumps(child)).total.__name__ == "total" and "bias=3" in repr(child)
    assert Nested(child, (1, (2,)), 3).rest[1][0].value == 2
    with pytest.raises(AttributeError, match="cannot assign to field 'bias' on immutable aggregate Child"):
        child.bias = 3
    with pytest.raises(TypeError, match="Child has no field 'z'"):
        tl.aggregate_replace(child, z=3)
    with pytest.raises(TypeError, match="expects an aggregate instance"):
        tl.aggregate_replace(3, z=3)
    for arguments in [(1,), (1, 2, 3, 4, 5)]:
        with pytest.raises(TypeError, match="Child"):
            Child(*arguments)
    with pytest.raises(TypeError, match="can only inherit from other aggregates"):
        triton.aggregate(type("Other", (int,), {"__annotations__": {}}))
    text = triton.aggregate(type("Text", (Base,), {"__annotations__": {"more": "tl.constexpr"}}))
    assert text(1, 2, 3).more.value == 3


# ---- initialisers that compute


@triton.jit
def grown(x, n):
    if n > 3:
        x += 100
    return x


@triton.aggregate
class Tile:
    data: tl.tensor
    best: tl.tensor
    n: tl.constexpr

    def __init__(self, start, n=8, _semantic=None):
        steps = tl.arange(0, n, _semantic=_semantic)
        data = steps.to(tl.float32, _semantic=_semantic) * 2 + start
        assert data.shape[0] == n and data.dtype == tl.float32 and isinstance(data, tl.tensor)
        assert not hasattr(data, "value") and getattr(start, "value", None) is None
        for i in tl.static_range(2):
            data = data - i
        rows = data[:, None] + tl.zeros((n, 2), tl.float32, _semantic=_semantic)
        self.best = tl.max(rows, axis=1).sum(axis=0)
        self.data = tl.where(data > n, data, -data) + tl.extra.libdevice.pow(data, 2.0)
        self.n = tl.constexpr(n) + 1 - 1

    @triton.jit
    def plus(self, x):
        return tl.aggregate_replace(Tile(x, self.n), data=self.data + x)

    @triton.constexpr_function
    def scaled(self):
        return self.n * self.data + self.best


@triton.aggregate
class Both:
    first: Tile
    rest: tuple

    @triton.jit
    def __init__(self, x):
        self.first = Tile(grown(x, x))
        self.rest = (Tile(x + tl.program_id(0)), x)


def tile(start):
    data = np.arange(8) * 2 + start - 1
    return np.where(data > 8, data, -data) + data**2.0, data.sum()


def test_initialisers_compute():
    kernel = jit("""
        def kernel(out, n):
            i = tl.arange(0, 8)
            a = Tile(n)
            tl.store(out + i, a.scaled())
            for step in range(3):
                a = a.plus(step)
            tl.store(out + 8 + i, (a, 1)[0].data + a.best)
            both = Both(n)
            tl.store(out + 16 + i, both.first.data + both.rest[0].best + both.rest[1])
    """, Tile=Tile, Both=Both)  # fmt: skip
    out = Buffer(np.zeros((3, 8), np.float32))
    kernel[(1,)](out.argument, 5)
    data, best = tile(5)
    expected = [data * 8 + best, data + 3 + tile(2)[1], tile(105)[0] + best + 5]
    assert (out.host().values == np.array(expected, np.float32)).all()


@triton.aggregate
class Window:
    block: tl.tensor
    data: tl.tensor

    def __init__(self, x, out):
        self.block = tl.make_block_ptr(x, (10,), (1,), (0,), (8,), (0,))
        self.data = tl.load(tl.advance(self.block, (4,)), boundary_check=(0,))
        tl.store(out, self.data.max())


def test_initialisers_load_and_store():
    kernel = jit("""
        def kernel(x, out):
            w = Window(x, out)
            tl.store(out + 1 + tl.arange(0, 8), w.data + tl.load(w.block))
    """, Window=Window)  # fmt: skip
    x, out = np.arange(10, dtype=np.float32), Buffer(np.zeros(9, np.float32))
    kernel[(1,)](Buffer(x).argument, out.argument)
    assert out.host().values.tolist() == [9, *(x[:8] + [*x[4:], 0, 0])]


@triton.aggregate
class Wrong:
    data: tl.tensor

    def __init__(self, x, fails: tl.constexpr):
        kept.append(x)
        self.data = kept[0] if fails == 0 else x
        try:
            if fails == 1:
                x + tl.arange(0, 8) + tl.arange(0, 16)
            elif fails == 2:
                grown(x)
        except RuntimeError:
            pass  # the kernel is wrong whatever Python makes of it
        if fails == 3 and x > 3:
            self.data = x + 1
        elif fails == 4:
            self.data = x.missing


kept = []


@pytest.mark.compiled
@pytest.mark.parametrize("fails, message, line", [
    (0, "a run-time value of another call, which Python kept", None),
    (1, r"`\+` does not broadcast int32\[8\] and int32\[16\]", "x + tl.arange(0, 8) + tl.arange(0, 16)"),
    (2, "`grown` lacks its argument `n`", "grown(x)"),
    (3, "Python decides while it is compiled: choose with tl.where", None),
    (4, "AttributeError: int32 has no attribute `missing`", None),
])  # fmt: skip
def test_initialisers_that_compute_what_is_wrong(fails, message, line):
    kept.clear()
    kernel = jit("""
        def kernel(out, n, F: tl.constexpr):
            a = Wrong(n, F)
            b = Wrong(n + 1, F)
            tl.store(out, b.data)
    """, Wrong=Wrong)  # fmt: skip
    with pytest.raises(triton.CompilationError, match=message) as caught:
        kernel[(1,)](Buffer(np.zeros(1, np.int32)).argument, 5, F=fails)
    with pytest.raises(RuntimeError, match="a kernel that is not being compiled any more"):
        kept[0] + 1
    if line:  # the place is that of the initialiser, and of the call in the kernel
        assert f"{line}\n" in str(caught.value) and "in call to '__init__' here" in str(caught.value)


@triton.must_use_result("keep what it gives")
@triton.jit
def important(x):
    return x + 1


@pytest.mark.compiled
def test_results_that_must_be_used():
    for statement, message in [
        ("important(n)", "The result of important is not being used.(.|\n)*help: keep what it gives"),
        ("tl.advance(tl.make_block_ptr(out, (1,), (1,), (0,), (1,), (0,)), (1,))", r"p = tl.advance\(p, offsets\)"),
    ]:
        kernel = jit(f"def kernel(out, n):\n    {statement}\n", important=important)
        with pytest.raises(triton.CompilationError, match=message):
            kernel[(1,)](Buffer(np.zeros(1, np.int32)).argument, 5)
    kernel = jit("def kernel(out, n):\n    tl.store(out, important(n))\n", important=important)
    out = Buffer(np.zeros(1, np.int32))
    kernel[(1,)](out.argument, 5)
    assert out.host().values[0] == 6


def test_what_it_is_compiled_for(target):
    kernel = jit("""
        def kernel(out):
            info = tl.target_info
            tl.static_assert(info.current_target().backend == "cpu" or info.is_cuda())
            if info.is_cuda() and info.cuda_capability_geq(8, 0):
                tl.store(out, 2 if info.cuda_capability_geq(9) else 1)
            else:
                tl.store(out, 0)
            tl.static_assert(not info.is_hip())
    """)
    out = Buffer(np.full(1, -1, np.int32))
    kernel[(1,)](out.argument)
    if ":" in target:
        assert out.host().values[0] == (2 if int(target.split(":")[1]) >= 90 else 1)
    elif target in ("cpu", "interpret"):
        assert out.host().values[0] == 0
    assert tl.target_info.current_target().backend in ("cpu", "cuda", "sim") and tl.target_info.is_hip() is False


def test_keywords_of_other_compilers():
    kernel = jit("""
        def kernel(x, out, _semantic=None):
            value = tl.load(x, _semantic=_semantic)
            out.store(tl.maximum(value, x.load(), _semantic=None) + tl.cdiv(5, 2, _builder=None))
    """)
    out = Buffer(np.zeros(1, np.int32))
    kernel[(1,)](Buffer(np.full(1, 4, np.int32)).argument, out.argument)
    assert out.host().values[0] == 7


@pytest.mark.parametrize("k, descending", [(1, True), (3, False), (8, False), (5, True)])
def test_topk_of_either_end(k, descending):
    x = np.random.default_rng(0).permutation(40).reshape(4, 10).astype(np.float32)
    kernel = jit(f"""
        def kernel(x, out):
            i = tl.arange(0, 4)[:, None]
            best = tl.topk(tl.load(x + i * 10 + tl.arange(0, 10)[None, :]), {k}, descending={descending})
            tl.store(out + i * {k} + tl.arange(0, {k})[None, :], best)
    """)
    out = Buffer(np.zeros((4, k), np.float32))
    kernel[(1,)](Buffer(x).argument, out.argument)
    ordered = np.sort(x, 1)[:, ::-1] if descending else np.sort(x, 1)
    assert (out.host().values == ordered[:, :k]).all()
