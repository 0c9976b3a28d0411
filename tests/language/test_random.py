"""Random numbers: Philox against its published answers and an implementation in Python, and the distributions."""

import numpy as np
import pytest
from harness import Buffer, check, jit

import triton

MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
STEPS = (0x9E3779B9, 0xBB67AE85)
MASK = 0xFFFFFFFF


def philox(counter, key, rounds=10):
    """Philox-4x32 as the paper defines it, on Python's integers."""
    c, k = list(counter), list(key)
    for _ in range(rounds):
        a, b = MULTIPLIERS[0] * c[0], MULTIPLIERS[1] * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & MASK, (a >> 32) ^ c[3] ^ k[1], a & MASK]
        k = [(k[0] + STEPS[0]) & MASK, (k[1] + STEPS[1]) & MASK]
    return c


# Known answers that come with the authors' library, for ten rounds: counter, key, words
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((MASK,) * 4, (MASK,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]  # fmt: skip


@pytest.mark.parametrize("counter, key, words", KNOWN)
def test_known_answers(counter, key, words):
    assert tuple(philox(counter, key)) == words
    seed = (key[0] | key[1] << 32) - (1 << 64 if key[1] >> 31 else 0)
    inputs = {f"c{i}": np.array([c], np.uint32) for i, c in enumerate(counter)}
    expected = {f"r{i}": np.array([word], np.uint32) for i, word in enumerate(words)}
    check("r0, r1, r2, r3 = tl.philox(seed, c0, c1, c2, c3)", {**inputs, "seed": np.asarray(seed, np.int64)}, expected)


@pytest.mark.parametrize("seed", [0, 1, 42, 2**31 - 1, -5, 123456789012345])
def test_randint4x(seed):
    offsets = np.array([0, 1, 2, 7, 1000, 2**31 - 1, 12345, 99], np.int32)
    rows = [philox((int(o), 0, 0, 0), (seed & MASK, (seed >> 32) & MASK)) for o in offsets]
    expected = {f"r{i}": np.array([row[i] for row in rows], np.uint32) for i in range(4)}
    code = "r0, r1, r2, r3 = tl.randint4x(seed, x)"
    check(code, {"x": offsets, "seed": np.asarray(seed, np.int64)}, expected)
    check("tl.randint(seed, x)", {"x": offsets, "seed": np.asarray(seed, np.int64)}, expected["r0"])


@pytest.mark.parametrize("rounds", [1, 7, 10, 13])
def test_rounds(rounds):
    offsets = np.arange(5, dtype=np.int32)
    expected = np.array([philox((int(o), 0, 0, 0), (3, 0), rounds)[0] for o in offsets], np.uint32)
    check(f"tl.randint(3, x, {rounds})", {"x": offsets}, expected)
    check(f"tl.randint(3, x, n_rounds={rounds})", {"x": offsets}, expected)


def test_uniform_is_the_word_scaled():
    offsets = np.arange(200, dtype=np.int32)
    words = np.array([philox((int(o), 0, 0, 0), (7, 0))[0] for o in offsets], np.uint32).view(np.int32)
    magnitude = np.where(words < 0, -words - 1, words).astype(np.float32)
    check("tl.rand(7, x)", {"x": offsets}, magnitude * np.float32(4.6566127342e-10))


def draws(name, count=1 << 17, seed=5):
    kernel = jit(f"""
        def kernel(out, seed, SIZE: tl.constexpr):
            i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
            tl.store(out + i, tl.{name}(seed, i))
    """)
    out = Buffer(np.zeros(count, np.float32))
    kernel[(count // 1024,)](out.argument, seed, 1024)
    return out.host().values.astype(np.float64)


def test_uniform_statistics():
    x = draws("rand")
    assert x.min() >= 0 and x.max() < 1
    assert abs(x.mean() - 0.5) < 0.005 and abs(x.var() - 1 / 12) < 0.002
    counts = np.histogram(x, bins=64, range=(0, 1))[0]
    expected = len(x) / 64
    assert ((counts - expected) ** 2 / expected).sum() < 120  # chi-square, 63 degrees of freedom: 1e-5 above this
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 0.01
    assert not np.array_equal(x, draws("rand", seed=6)) and np.array_equal(x, draws("rand"))


def test_normal_statistics():
    x = draws("randn")
    assert abs(x.mean()) < 0.01 and abs(x.std() - 1) < 0.01
    assert abs((x**3).mean()) < 0.05 and abs((x**4).mean() - 3) < 0.1
    assert 3.5 < np.abs(x).max() < 7 and np.isfinite(x).all()


@pytest.mark.parametrize("name", ["rand4x", "randn4x"])
def test_four_at_once(name):
    code = f"a, b, c, d = tl.{name}(11, x)\nout = tl.join(tl.join(a, c), tl.join(b, d))"
    x = np.arange(4096, dtype=np.int32)
    from harness import Array, evaluate

    result = evaluate(code, {"x": x}, {"out": Array(np.zeros((4096, 2, 2), np.float32), "float32")})["out"].values
    flat = result.reshape(-1, 4).astype(np.float64)
    assert (np.abs(np.corrcoef(flat.T) - np.eye(4)) < 0.06).all()
    mean = 0.5 if name == "rand4x" else 0.0
    assert (np.abs(flat.mean(0) - mean) < 0.06).all()


@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (2, 3, 4)])
def test_shapes(shape):
    x = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    words = np.array([philox((int(o), 0, 0, 0), (9, 0))[0] for o in x.ravel()], np.uint32).reshape(shape)
    check("tl.randint(9, x)", {"x": x}, words)


def test_the_same_in_any_order_and_shape():
    """The number belongs to the offset, not to the place of the element or the program."""
    x = np.arange(100, dtype=np.int32)
    check("tl.randint(9, x) == tl.flip(tl.randint(9, 99 - x))", {"x": x}, np.ones(100, bool))


def test_64_bit_offsets():
    offsets = np.array([0, 1, 2**32, 2**32 + 1, 2**40 + 5], np.int64)
    words = [philox((int(o) & MASK, int(o) >> 32, 0, 0), (3, 0))[0] for o in offsets]
    check("tl.randint(3, x)", {"x": offsets}, np.array(words, np.uint32))


@pytest.mark.parametrize("seed", ["0.5", "out_ptr"])
def test_a_seed_is_an_integer(seed):
    with pytest.raises(triton.CompilationError, match="the seed must be an integer, not "):
        check(f"tl.rand({seed}, tl.arange(0, 4))", {}, np.zeros(4, np.float32))


def test_dropout():
    x = np.ones(10_000, np.float32)
    kernel = jit("""
        def kernel(x, out, n, p, seed, SIZE: tl.constexpr):
            i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
            keep = tl.rand(seed, i) > p
            tl.store(out + i, tl.where(keep, tl.load(x + i, mask=i < n) / (1 - p), 0.0), mask=i < n)
    """)
    out = Buffer(np.zeros(10_000, np.float32))
    kernel[(10,)](Buffer(x).argument, out.argument, 10_000, 0.25, 123, 1024)
    result = out.host().values
    assert abs((result == 0).mean() - 0.25) < 0.02 and abs(result.mean() - 1) < 0.03
