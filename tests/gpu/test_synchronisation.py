"""Every barrier that a kernel is compiled to is needed, and the simulator notices when it is missing: each is taken
out, one at a time, and the run must end with a race or with a wrong result."""

import re
import sys
from pathlib import Path

import gpu_kernels as kernels
import numpy as np
import pytest
from synchronised import Case, floats, integers

import triton
import triton.language as tl

# ---- kernels --------------------------------------------------------------------------------------------------------


def softmax(n, block, rows=2):
    x = floats(rows, n)
    e = np.exp(x - x.max(1, keepdims=True))
    return Case(
        kernels.softmax, [np.zeros_like(x), x, n, n], {0: e / e.sum(1, keepdims=True)}, (rows, 1, 1), BLOCK=block
    )


def layer_norm(n):
    x, w, b = floats(2, n), floats(n) + 2, floats(n)
    mean, var = x.mean(1, keepdims=True), x.var(1, keepdims=True)
    y = (x - mean) / np.sqrt(var + 1e-5) * w + b
    arguments = [x, np.zeros_like(x), w, b, np.zeros(2, np.float32), np.zeros(2, np.float32), n, n, 1e-5]
    return Case(kernels.layer_norm, arguments, {1: y, 4: mean[:, 0]}, (2, 1, 1), BLOCK=512)


def transpose(dtype):
    x = floats(128, 64, dtype=dtype)
    return Case(kernels.transpose, [x, np.zeros_like(x.T), 128, 64], {1: x.T}, (2, 1, 1), BM=64, BN=64)


def transpose_twice():
    x = floats(64, 64)
    arguments = [x, np.zeros_like(x), np.zeros(x.shape, np.float16), 64]
    return Case(kernels.transpose_twice, arguments, {1: x.T, 2: x.astype(np.float16)}, BLOCK=64)


def matmul(m, n, k):
    a, b = floats(m, k), floats(k, n)
    return Case(kernels.matmul, [a, b, np.zeros((m, n), np.float32), m, n, k], {2: a @ b}, BM=m, BN=n, BK=32)


def cumsum():
    x = integers(1024)
    return Case(kernels.cumsum, [x, np.zeros_like(x)], {1: x.cumsum()}, BLOCK=1024)


def column_sums():
    x = floats(64, 64)
    return Case(kernels.column_sums, [x, np.zeros(64, np.float32), 64], {1: x.sum(0)}, ROWS=64, COLS=64)


@triton.jit
def sort_kernel(x_ptr, y_ptr, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(y_ptr + i, tl.sort(tl.load(x_ptr + i)))


def sort():
    x = integers(512, high=1000)
    return Case(sort_kernel, [x, np.zeros_like(x)], {1: np.sort(x)}, SIZE=512)


@triton.jit
def histogram_kernel(x_ptr, y_ptr, SIZE: tl.constexpr, BINS: tl.constexpr):
    counts = tl.histogram(tl.load(x_ptr + tl.arange(0, SIZE)), BINS)
    tl.store(y_ptr + tl.arange(0, BINS), counts)


def histogram():
    x = integers(1024, high=64)
    return Case(histogram_kernel, [x, np.zeros(64, np.int32)], {1: np.bincount(x)}, SIZE=1024, BINS=64)


@triton.jit
def gather_kernel(x_ptr, index_ptr, y_ptr, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(y_ptr + i, tl.gather(tl.load(x_ptr + i), tl.load(index_ptr + i), 0))


def gather():
    x, index = floats(512), np.random.default_rng(1).permutation(512).astype(np.int32)
    return Case(gather_kernel, [x, index, np.zeros_like(x)], {2: x[index]}, SIZE=512)


@triton.jit
def argmax_kernel(x_ptr, value_ptr, index_ptr, ROWS: tl.constexpr, COLS: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, ROWS)[:, None] * COLS + tl.arange(0, COLS)[None, :])
    value, index = tl.max(x, axis=0, return_indices=True)
    tl.store(value_ptr + tl.arange(0, COLS), value)
    tl.store(index_ptr + tl.arange(0, COLS), index)


def argmax():
    x = floats(64, 32)
    arguments = [x, np.zeros(32, np.float32), np.zeros(32, np.int32)]
    return Case(argmax_kernel, arguments, {1: x.max(0), 2: x.argmax(0)}, ROWS=64, COLS=32)


@triton.jit
def extremes_kernel(x_ptr, y_ptr, SIZE: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, SIZE))
    tl.store(y_ptr + tl.program_id(0), tl.max(x, axis=0) - tl.min(x, axis=0))


def extremes():
    x = integers(1024)
    return Case(extremes_kernel, [x, np.zeros(1, np.int32)], {1: [x.max() - x.min()]}, SIZE=1024)


@triton.jit
def normalise_kernel(x_ptr, y_ptr, rows, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    carried = tl.load(x_ptr + i)
    for row in range(1, rows):
        carried = carried - tl.sum(carried, axis=0) / SIZE + tl.load(x_ptr + row * SIZE + i)
    tl.store(y_ptr + i, carried)


def scratch_in_a_loop():
    x = floats(6, 256)
    carried = x[0]
    for row in x[1:]:
        carried = carried - carried.mean() + row
    return Case(normalise_kernel, [x, np.zeros(256, np.float32), 6], {1: carried}, SIZE=256)


@triton.jit
def branches_kernel(x_ptr, y_ptr, rows, limit, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    carried = tl.load(x_ptr + i)
    for row in range(1, rows):
        if tl.max(tl.abs(carried), axis=0) > limit:
            carried = carried / tl.sum(tl.abs(carried), axis=0)
        else:
            carried = tl.cumsum(carried, axis=0)
        carried = tl.flip(carried) + tl.load(x_ptr + row * SIZE + i)
    tl.store(y_ptr + i, carried)


def branches_in_a_loop():
    x, limit, taken = floats(5, 256), 10.0, []
    carried = x[0].astype(np.float64)
    for row in x[1:]:
        taken.append(np.abs(carried).max() > limit)
        carried = carried / np.abs(carried).sum() if taken[-1] else carried.cumsum()
        carried = carried[::-1] + row
    assert {True, False} == set(taken)
    return Case(branches_kernel, [x, np.zeros(256, np.float32), 5, limit], {1: carried}, SIZE=256)


@triton.jit
def ticket_kernel(counter_ptr, y_ptr, SIZE: tl.constexpr):
    for _ in range(3):
        ticket = tl.atomic_add(counter_ptr, 1, sem="relaxed")
        tl.store(y_ptr + ticket * SIZE + tl.arange(0, SIZE), ticket + tl.arange(0, SIZE))


def tickets():
    expected = np.arange(12)[:, None] + np.arange(256)
    y = np.zeros((12, 256), np.int32)
    return Case(ticket_kernel, [np.zeros(1, np.int32), y], {1: expected}, (4, 1, 1), SIZE=256)


@triton.jit
def exchange_kernel(x_ptr, y_ptr, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    old = tl.atomic_xchg(x_ptr + i, i)  # eight elements: most threads hold copies
    tl.store(y_ptr + i[:, None] * 64 + tl.arange(0, 64)[None, :], old[:, None] + tl.arange(0, 64)[None, :])


def atomics_with_copies():
    x = integers(8)
    y = np.zeros((8, 64), np.int32)
    return Case(exchange_kernel, [x, y], {0: np.arange(8), 1: x[:, None] + np.arange(64)}, SIZE=8)


@triton.jit
def pieces_kernel(x_ptr, y_ptr, z_ptr, n, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    x = tl.load(x_ptr + i)
    tl.store(y_ptr + i, tl.flip(x))
    tl.store(z_ptr, x[n])


def flip_and_element():
    x = floats(300)
    arguments = [x, np.zeros_like(x), np.zeros(1, np.float32), 200]
    return Case(pieces_kernel, arguments, {1: x[::-1], 2: x[200:201]}, SIZE=300)


@triton.jit
def linear_step(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def recurrence_kernel(a_ptr, b_ptr, y_ptr, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    _, y = tl.associative_scan((tl.load(a_ptr + i), tl.load(b_ptr + i)), 0, linear_step)
    tl.store(y_ptr + i, y)


def recurrence():
    a, b = np.random.default_rng(1).uniform(0.5, 0.9, 512).astype(np.float32), floats(512)
    y, state = np.zeros_like(b), 0
    for i in range(512):
        y[i] = state = state * a[i] + b[i]
    return Case(recurrence_kernel, [a, b, np.zeros_like(b)], {2: y}, SIZE=512)


@triton.jit
def attention_kernel(q_ptr, k_ptr, v_ptr, out_ptr, n, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    rows, depth = tl.arange(0, BM), tl.arange(0, D)
    q = tl.load(q_ptr + rows[:, None] * D + depth[None, :])
    largest = tl.full([BM], -float("inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    for start in range(0, n, BN):
        keys = start + tl.arange(0, BN)
        k = tl.load(k_ptr + keys[None, :] * D + depth[:, None])
        scores = tl.dot(q, k, input_precision="ieee")
        new = tl.maximum(largest, tl.max(scores, 1))
        p = tl.exp(scores - new[:, None])
        correction = tl.exp(largest - new)
        v = tl.load(v_ptr + keys[:, None] * D + depth[None, :])
        acc = acc * correction[:, None] + tl.dot(p, v, input_precision="ieee")
        total = total * correction + tl.sum(p, 1)
        largest = new
    tl.store(out_ptr + rows[:, None] * D + depth[None, :], acc / total[:, None])


def attention():
    q, k, v = floats(32, 16), floats(64, 16), floats(64, 16) + 1
    scores = q @ k.T
    p = np.exp(scores - scores.max(1, keepdims=True))
    expected = p / p.sum(1, keepdims=True) @ v
    return Case(attention_kernel, [q, k, v, np.zeros_like(q), 64], {3: expected}, D=16, BM=32, BN=32)


@triton.jit
def rotate_kernel(x_ptr, steps, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    for _ in range(steps):
        value = tl.load(x_ptr + (i + 1) % SIZE)
        tl.store(x_ptr + i, value)


def rotation_in_memory():
    x = integers(256)
    return Case(rotate_kernel, [x, 3], {0: np.roll(x, -3)}, SIZE=256)


@triton.jit
def rotate_back_kernel(x_ptr, steps, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    for _ in range(steps):
        value = tl.load(x_ptr + (i + SIZE - 1) % SIZE)
        tl.store(x_ptr + i, value)


def rotation_back_in_memory():
    x = integers(256)
    return Case(rotate_back_kernel, [x, 3], {0: np.roll(x, 3)}, SIZE=256)


@triton.jit
def shift_kernel(x_ptr, y_ptr, distance, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    tl.store(y_ptr + i, tl.load(x_ptr + i) + 1)
    tl.store(x_ptr + i, tl.load(y_ptr + (i + distance) % SIZE))


def shift_through_memory(distance):
    x = integers(256)
    return Case(shift_kernel, [x, np.zeros_like(x), distance % 256], {0: np.roll(x + 1, -distance)}, SIZE=256)


@triton.jit
def message_kernel(data_ptr, flag_ptr, out_ptr, rounds, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    if tl.program_id(0) == 0:
        for turn in range(rounds):
            tl.store(data_ptr + turn * SIZE + i, i + turn)
            tl.atomic_xchg(flag_ptr, turn + 1, sem="release")
    else:
        for turn in range(rounds):
            while tl.atomic_add(flag_ptr, 0, sem="acquire") <= turn:
                pass
            tl.store(out_ptr + turn * SIZE + i, tl.load(data_ptr + turn * SIZE + i))


def messages():
    expected = np.arange(3)[:, None] + np.arange(256)
    blank = np.zeros((3, 256), np.int32)
    return Case(message_kernel, [blank, np.zeros(1, np.int32), blank, 3], {2: expected}, (2, 1, 1), SIZE=256)


@triton.jit
def counts_kernel(x_ptr, counts_ptr, y_ptr, SIZE: tl.constexpr, BINS: tl.constexpr):
    tl.atomic_add(counts_ptr + tl.load(x_ptr + tl.arange(0, SIZE)), 1, sem="relaxed")
    i = tl.arange(0, BINS)
    tl.store(y_ptr + i, tl.load(counts_ptr + i))


def counts_in_memory():
    x = integers(512, high=64)
    blank = np.zeros(64, np.int32)
    return Case(counts_kernel, [x, blank, blank], {2: np.bincount(x, minlength=64)}, SIZE=512, BINS=64)


CASES = {
    "softmax": lambda: softmax(1000, 1024),
    "long softmax": lambda: softmax(8192, 8192, 1),
    "layer norm": lambda: layer_norm(1024),
    "transposition": lambda: transpose(np.float32),
    "transposition of halves": lambda: transpose(np.float16),
    "transposition, twice through memory": transpose_twice,
    "matrix product": lambda: matmul(32, 32, 96),
    "wide matrix product": lambda: matmul(64, 16, 64),
    "prefix sums": cumsum,
    "column sums": column_sums,
    "sort": sort,
    "histogram": histogram,
    "gather": gather,
    "argmax": argmax,
    "extremes of integers": extremes,
    "scratch in a loop": scratch_in_a_loop,
    "branches in a loop": branches_in_a_loop,
    "tickets": tickets,
    "atomics with copies": atomics_with_copies,
    "flip and element": flip_and_element,
    "recurrence": recurrence,
    "attention": attention,
    "counts in memory": counts_in_memory,
    "messages": messages,
    "shift through memory": lambda: shift_through_memory(1),
    "shift back through memory": lambda: shift_through_memory(-1),
    "rotation in memory": rotation_in_memory,
    "rotation back in memory": rotation_back_in_memory,
}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    return CASES[request.param]()


@pytest.mark.parametrize("sm, warps", [(75, 4), (80, 1), (90, 4), (90, 8)])
def test_each_one_is_needed(case, sm, warps):
    case.check_each(warps, sm)


def test_there_are_some():
    assert sum(CASES[name]().run(4) > 0 for name in CASES) == len(CASES)


def place(module, text):
    """file:line of the one line with this text in it."""
    (number,) = [i for i, line in enumerate(Path(module.__file__).read_text().splitlines(), 1) if text in line]
    return f"{module.__file__}:{number}"


def test_a_race_names_both_lines():
    """Without the barrier of an exchange between warps, one reads what another writes."""
    with pytest.raises(RuntimeError) as caught:
        CASES["softmax"]().run(4, left_out=1)
    line = re.escape(place(kernels, "e = tl.exp(x - tl.max(x, axis=0))"))
    deed = rf"(read|written) by thread \d+ in reduce \({line}\)"
    assert re.match(rf"race in shared memory at byte \d+: {deed}, then {deed}, with no barrier", str(caught.value))


@pytest.mark.parametrize("distance", [1, -1])
def test_races_in_global_memory(distance):
    with pytest.raises(RuntimeError) as caught:
        shift_through_memory(distance).run(8, left_out=1)
    here = sys.modules[__name__]
    stored = place(here, "y_ptr + i, tl.load(x_ptr" + " + i) + 1)")
    loaded = place(here, "tl.store(x_ptr + i, tl.load(y_ptr" + " + (i")
    assert str(caught.value).startswith("race in global memory at byte ")
    assert "of the array 'y_ptr': " in str(caught.value)
    assert f"in store ({stored})" in str(caught.value) and f"in load ({loaded})" in str(caught.value)


def test_what_is_released_and_acquired():
    case = messages()
    said = []
    for left_out in range(1, case.run(4) + 1):
        with pytest.raises(RuntimeError) as caught:
            case.run(4, left_out=left_out)
        said.append(str(caught.value))
    assert any("released by thread 0" in text for text in said), said
