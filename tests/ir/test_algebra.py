"""Every row of algebra.def, by machine: both sides on random and on nasty values of every type."""

import itertools
import random

import pytest

from triton import _C

from .interpreter import POISON, Interpreter, same

RULES = _C._algebra_rules()
INTS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64}
FLOATS = {"f16": 2.0**-24, "bf16": 2.0**-133, "f32": 2.0**-149, "f64": 2.0**-1074}  # smallest denormal
TYPES = [*INTS, *FLOATS]


def int_values(bits):
    if bits == 1:
        return [0, 1]
    top = 1 << (bits - 1)
    return [0, 1, -1, 2, 3, 7, 8, -8, 64, top - 1, -top, -top + 1, *(random.randrange(-top, top) for _ in range(6))]


def float_values(tiny):
    inf = float("inf")
    plain = [0.0, 1.0, 2.0, 0.5, 3.0, 0.25, 1.5, tiny, 3 * tiny, 1e4, inf, *(random.uniform(0, 10) for _ in range(3))]
    return [*plain, *(-x for x in plain), float("nan")]


def values_of(type):
    return int_values(INTS[type]) if type in INTS else float_values(FLOATS[type])


def rounded(value, type):
    return value if type in INTS else _C._eval_scalar("fneg", type, type, _C._eval_scalar("fneg", type, type, value))


def instances(index):
    """Texts of the rule for every choice of types, and some of constants."""
    for count in range(1, 4):
        try:
            _C._algebra_rule(index, ("i32",) * count, (1, 1))
        except ValueError:
            continue
        break
    else:
        raise AssertionError("the rule has more than three free types")
    for types in itertools.product(TYPES, repeat=count):
        pairs = [(a, b) for a in values_of(types[0]) for b in values_of(types[0])]
        seen = set()
        for pair in random.sample(pairs, min(len(pairs), 40)):
            text = _C._algebra_rule(index, types, pair)
            if text and text not in seen:
                seen.add(text)
                yield text


@pytest.mark.parametrize("index", range(len(RULES)), ids=[f"{i}-{rule[0]}" for i, rule in enumerate(RULES)])
def test_rule(index):
    random.seed(index)
    op, exactness, reason = RULES[index]
    assert reason
    texts, specified = 0, 0
    for text in instances(index):
        texts += 1
        interpreter = Interpreter(text)
        params = [type.element for _, type in next(iter(interpreter.functions.values())).params]
        choices = list(itertools.product(*map(values_of, params)))
        for args in random.sample(choices, min(len(choices), 60)):
            args = [rounded(value, type) for value, type in zip(args, params, strict=True)]
            before, after = interpreter.call(*args)
            specified += before is not POISON
            assert same(before, after, nan_bits=exactness == "bits"), (text, args, before, after)
    assert texts and specified


def test_rules_apply_when_building():
    text = "func @f(%x: i32) -> (i32) {\n  %0 = constant {value = 0} : i32\n  %1 = add %x, %0 : i32\n  return %1\n}\n"
    assert Interpreter(text).call(5) == [5]
