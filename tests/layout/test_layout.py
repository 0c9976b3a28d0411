"""Linear layouts against plain enumeration: constructors, shape operations, algebra and conversion plans."""

import itertools
import random

import pytest

from triton import _C


class Layout:
    """Python's view of a layout: enough to enumerate it."""

    def __init__(self, raw):
        self.raw = raw
        self.out_bits, self.in_bits, self.bases = raw
        self.shape = tuple(1 << b for b in self.out_bits)

    def places(self):
        return itertools.product(*(range(1 << b) for b in self.in_bits))

    def element(self, place):
        index, start = 0, 0
        for value, bits in zip(place, self.in_bits, strict=True):
            for i in range(bits):
                if value >> i & 1:
                    index ^= self.bases[start + i]
            start += bits
        return index

    def coordinates(self, place):
        index, out = self.element(place), []
        for extent in reversed(self.shape):
            out.append(index % extent)
            index //= extent
        return tuple(reversed(out))

    def table(self):
        return {place: self.coordinates(place) for place in self.places()}


def make(kind, *args):
    return Layout(_C._layout(kind, *args))


def transform(kind, layout, *args):
    raw = _C._layout_transform(kind, layout.raw, *args)
    return None if raw is None else Layout(raw)


def apply(columns, x):
    total = 0
    for i, column in enumerate(columns):
        if x >> i & 1:
            total ^= column
    return total


def random_split(rng, total, rank):
    bits = [0] * rank
    for _ in range(total):
        bits[rng.randrange(rank)] += 1
    return tuple(1 << b for b in bits)


def random_blocked(rng, shape, lanes=5, warps=2):
    """Any blocked layout, with its three extents and order."""
    rank = len(shape)
    per_thread = random_split(rng, rng.randrange(4), rank)
    threads, warp_grid = random_split(rng, lanes, rank), random_split(rng, warps, rank)
    order = list(range(rank))
    rng.shuffle(order)
    layout = make("blocked", shape, per_thread, threads, warp_grid, tuple(order))
    return layout, (per_thread, threads, warp_grid, order)


def random_distributed(rng, shape, lanes=5, warps=2):
    """A surjective layout with its element bits dealt to registers, lanes and warps at random, then mixed."""
    bits = sum(s.bit_length() - 1 for s in shape)
    basis = [1 << i for i in range(bits)]
    for _ in range(bits * 2):
        i, j = rng.randrange(bits), rng.randrange(bits)
        if i != j and rng.random() < 0.3:
            basis[i] ^= basis[j]
    rng.shuffle(basis)
    lane_bases = [basis.pop() if basis and rng.random() < 0.9 else 0 for _ in range(lanes)]
    warp_bases = [basis.pop() if basis and rng.random() < 0.9 else 0 for _ in range(warps)]
    out_bits = tuple(s.bit_length() - 1 for s in shape)
    return Layout((out_bits, (len(basis), lanes, warps, 0), tuple(basis + lane_bases + warp_bases)))


SHAPES = [(32,), (256,), (4, 8), (16, 32), (64, 16), (2, 4, 32), (1, 64), (8, 2, 4, 4)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(4))
def test_blocked_covers_the_tile_as_its_parameters_say(shape, seed):
    rng = random.Random(f"{shape}{seed}")
    layout, (per_thread, threads, warps, order) = random_blocked(rng, shape)
    table = layout.table()
    assert set(table.values()) == set(itertools.product(*(range(s) for s in shape)))
    for (register, lane, warp, _), coordinates in table.items():
        if register:
            continue
        for axis, extent in enumerate(shape):
            lane_step, warp_step = 1, 1
            for other in order[: order.index(axis)]:
                lane_step *= threads[other]
                warp_step *= warps[other]
            t, w = lane // lane_step % threads[axis], warp // warp_step % warps[axis]
            # What exceeds the extent at a level is a copy: the coordinate keeps its place bits that fit.
            here = min(per_thread[axis], extent)
            t %= max(1, extent // here)
            here_lanes = min(threads[axis], max(1, extent // here))
            w %= max(1, extent // (here * here_lanes))
            assert coordinates[axis] == t * here + w * here * here_lanes


@pytest.mark.parametrize("shape", SHAPES)
def test_shape_operations_agree_with_numpy_indexing(shape):
    rng = random.Random(str(shape))
    rank = len(shape)
    for _ in range(6):
        layout = random_distributed(rng, shape)
        table = layout.table()
        axis = rng.randrange(rank)
        sliced = transform("slice", layout, (axis,)) if rank > 1 else None
        expanded = transform("expand", layout, (axis,))
        order = list(range(rank))
        rng.shuffle(order)
        permuted = transform("permute", layout, tuple(order))
        joined = transform("join", layout)
        for place, c in table.items():
            if sliced:
                assert sliced.coordinates(place) == c[:axis] + c[axis + 1 :]
            assert expanded.coordinates(place) == c[:axis] + (0,) + c[axis:]
            assert permuted.coordinates(place) == tuple(c[i] for i in order)
            register, *rest = place
            for half in (0, 1):
                assert joined.coordinates((register * 2 + half, *rest)) == c + (half,)
        assert transform("split", joined).raw == layout.raw
        flat = transform("reshape", layout, (len(set(table.values())),))
        for place, c in table.items():
            index = 0
            for extent, x in zip(shape, c, strict=True):
                index = index * extent + x
            assert flat.coordinates(place) == (index,)


def test_broadcast_puts_new_elements_in_registers():
    layout = make("blocked", (16, 1), (1, 1), (16, 2), (2, 2), (1, 0))
    wide = transform("broadcast", layout, (16, 8))
    for (register, *rest), c in wide.table().items():
        assert c[0] == layout.coordinates((0, *rest))[0]
        assert c[1] == register
    assert wide.in_bits[0] == layout.in_bits[0] + 3


@pytest.mark.parametrize("seed", range(30))
def test_right_inverse_finds_every_element(seed):
    rng = random.Random(seed)
    layout = random_distributed(rng, rng.choice(SHAPES))
    info = _C._layout_inspect(layout.raw)
    if not info["surjective"]:
        return
    for i, place in enumerate(info["right_inverse"]):
        assert apply(layout.bases, place) == 1 << i


@pytest.mark.parametrize("seed", range(20))
def test_compose_is_function_composition(seed):
    rng = random.Random(seed)
    bits = 6
    inner = random_distributed(rng, (8, 8), lanes=2, warps=1)
    outer = random_distributed(rng, (4, 16), lanes=0, warps=0)
    assert outer.in_bits[0] == bits
    both = Layout(_C._layout_compose(outer.raw, inner.raw))
    for place in inner.places():
        assert both.element(place) == outer.element((inner.element(place), 0, 0, 0))


def test_quotient_takes_a_vector_away():
    layout = make("blocked", (8, 64), (1, 4), (2, 16), (4, 1), (1, 0))
    rest = transform("quotient", layout, (2,))
    for (register, *others), c in rest.table().items():
        assert layout.coordinates((register * 4, *others)) == (c[0], c[1] * 4)
    assert transform("quotient", layout, (3,)) is None


def test_contiguous_and_replication():
    layout = make("blocked", (4, 64), (1, 8), (2, 16), (4, 1), (1, 0))
    info = _C._layout_inspect(layout.raw)
    assert info["contiguous"] == 8
    # 64 columns are 8 lanes of 8: lane bit 3 repeats columns; rows 2 x 4 exceed 4: the last warp bit repeats.
    assert info["replication"] == (0, 0b01000, 0b10)


def test_axis_bits_name_what_a_reduction_crosses():
    layout = make("blocked", (16, 64), (2, 4), (4, 8), (2, 2), (1, 0))
    registers, lanes, warps, _ = _C._layout_axis_bits(layout.raw, 1)
    # 4 of 64 columns in registers 0-1, 8 lanes (bits 0-2), 2 warps (bit 0); the row bit is register bit 2.
    assert (registers, lanes, warps) == (0b0011, 0b00111, 0b01)


@pytest.mark.parametrize("vec, per_phase, max_phase", [(1, 1, 1), (8, 1, 8), (4, 2, 4), (8, 2, 2)])
def test_swizzled_matches_its_formula(vec, per_phase, max_phase):
    rows, columns = 16, 64
    layout = make("swizzled", (rows, columns), (vec, per_phase, max_phase))
    for row in range(rows):
        for stored in range(columns):
            phase = row // per_phase % max_phase
            column = (stored // vec ^ phase) * vec + stored % vec
            assert layout.coordinates((row * columns + stored, 0, 0, 0)) == (row, column)


@pytest.mark.parametrize("swizzle", [32, 64, 128])
@pytest.mark.parametrize("element_bytes", [1, 2, 4])
def test_nvmma_matches_the_address_rule(swizzle, element_bytes):
    """Byte address bits 4.. are XORed with bits 7.. (1, 2 or 3 of them), row-major panels of `swizzle` bytes."""
    rows, columns = 32, 256 // element_bytes
    layout = make("nvmma", (rows, columns), (element_bytes, swizzle))
    panel = swizzle // element_bytes
    turned = {32: 1, 64: 3, 128: 7}[swizzle]
    seen = {}
    for row in range(rows):
        for column in range(columns):
            address = (column // panel * rows + row) * swizzle + column % panel * element_bytes
            address ^= (address >> 7 & turned) << 4
            seen[address // element_bytes] = (row, column)
    for offset, coordinates in seen.items():
        assert layout.coordinates((offset, 0, 0, 0)) == coordinates


PARTS = {"accumulator": 0, "a": 1, "b": 2}


def fragment(part, element_bytes):
    """{(register, lane): (row, column)} of one mma.sync m16n8k(32 / bytes), as the PTX manual's tables have it."""
    held = {}
    for lane in range(32):
        group, member = lane >> 2, lane % 4
        if part == "accumulator":
            for i in range(4):
                held[i, lane] = (group + 8 * (i >= 2), member * 2 + i % 2)
            continue
        each = max(1, 4 // element_bytes)  # elements of a register, or registers of an element
        for i in range(4 * each if part == "a" else 2 * each):
            register, inside = divmod(i, each)
            upper_k = register // 2 if part == "a" else register
            k = member * each + inside + upper_k * 4 * each
            held[i, lane] = (group + 8 * (register % 2), k) if part == "a" else (k, group)
    return held


def tile_of(part, element_bytes):
    k = 8 * max(1, 4 // element_bytes)
    return {"accumulator": (16, 8), "a": (16, k), "b": (k, 8)}[part]


@pytest.mark.parametrize("element_bytes", [1, 2, 4, 8])
@pytest.mark.parametrize("part", PARTS)
def test_fragments_of_one_instruction(part, element_bytes):
    layout = make("mma", tile_of(part, element_bytes), (PARTS[part], element_bytes), (1, 1))
    held = {(register, lane): c for (register, lane, *_), c in layout.table().items()}
    assert held == fragment(part, element_bytes)


@pytest.mark.parametrize("warps", [(1, 1), (4, 1), (2, 2), (1, 8), (8, 1)])
@pytest.mark.parametrize("shape", [(64, 64), (128, 32), (16, 8), (8, 8)])
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("element_bytes", [1, 2, 8])
def test_fragments_of_a_tile(part, element_bytes, shape, warps):
    layout = make("mma", shape, (PARTS[part], element_bytes), warps)
    info = _C._layout_inspect(layout.raw)
    assert info["surjective"] and not info["replication"][0]
    assert layout.in_bits[1:] == (5, (warps[0] * warps[1]).bit_length() - 1, 0)
    tile = tile_of(part, element_bytes)
    if any(extent < size for extent, size in zip(shape, tile, strict=True)):
        return
    one = fragment(part, element_bytes)
    fits = [extent // size for extent, size in zip(shape, tile, strict=True)]
    steps = {"accumulator": warps, "a": (warps[0], 1), "b": (1, warps[1])}[part]  # warps that hold other elements
    apart = tile[0], max(tile[1], shape[1] // steps[1])  # along N each has neighbouring tiles
    for (register, lane), c in one.items():
        for warp in range(warps[0] * warps[1]):
            along = warp % warps[0] % steps[0] % fits[0], warp // warps[0] % steps[1] % fits[1]
            there = tuple(e + size * w for e, size, w in zip(c, apart, along, strict=True))
            assert layout.coordinates((register, lane, warp, 0)) == there


@pytest.mark.parametrize("n", [8, 16, 64, 256])
def test_accumulators_of_a_warpgroup(n):
    """wgmma m64nN: warp w has rows 16w to 16w + 15, element i is in column i // 4 * 8 + lane % 4 * 2 + i % 2."""
    layout = make("mma", (64, n), (PARTS["accumulator"], 4), (4, 1))
    for (register, lane, warp, _), c in layout.table().items():
        row = warp * 16 + (lane >> 2) + 8 * (register >> 1 & 1)
        assert c == (row, (register >> 2) * 8 + lane % 4 * 2 + register % 2)


def run_shuffles(plan, source):
    """Carries out a shuffle plan on {(register, lane): element} and returns what each destination place holds."""
    out = {}
    rounds, lanes = len(plan["source_round"]), len(plan["source_lane"])
    for t in range(1 << rounds):
        published = {}
        for lane in range(1 << lanes):
            register = apply(plan["send_round"], t) ^ apply(plan["send_lane"], lane)
            published[lane] = source[register, lane]
        for lane in range(1 << lanes):
            read = apply(plan["source_round"], t) ^ apply(plan["source_lane"], lane)
            out[t ^ apply(plan["keep_lane"], lane), lane] = published[read]
    return out


def check_plan(source, target, element_bytes):
    kinds = [check_plan_for(source, target, element_bytes, stores_matrices) for stores_matrices in (False, True)]
    assert kinds[0] == kinds[1]
    return kinds[0]


def check_plan_for(source, target, element_bytes, stores_matrices):
    plan = _C._layout_plan(source.raw, target.raw, element_bytes, stores_matrices)
    kind = plan["kind"]
    if kind in ("none", "registers"):
        for register, lane, warp, block in target.places():
            read = apply(plan["register_source"], register)
            if kind == "none":
                assert read == register
            assert source.element((read, lane, warp, block)) == target.element((register, lane, warp, block))
    elif kind == "shuffle":
        for warp in range(1 << target.in_bits[2]):
            held = {
                (register, lane): source.element((register, lane, warp, 0))
                for register in range(1 << source.in_bits[0])
                for lane in range(1 << source.in_bits[1])
            }
            got = run_shuffles(plan, held)
            for register in range(1 << target.in_bits[0]):
                for lane in range(1 << target.in_bits[1]):
                    assert got[register, lane] == target.element((register, lane, warp, 0))
    else:
        memory = Layout(plan["memory"])
        for layout, offsets in ((source, plan["store_offsets"]), (target, plan["load_offsets"])):
            for index in range(1 << sum(layout.in_bits)):
                assert apply(memory.bases, apply(offsets, index)) == apply(layout.bases, index)
        assert plan["store_cost"][0] == plan["store_cost"][1], "bank conflicts in the store"
        assert plan["load_cost"][0] == plan["load_cost"][1], "bank conflicts in the load"
    return kind


@pytest.mark.parametrize("element_bytes", [1, 2, 4, 8])
@pytest.mark.parametrize("shape", [(32, 32), (128,), (64, 64), (16, 16, 8), (8, 8)])
def test_conversions_between_blocked_layouts(shape, element_bytes):
    rng = random.Random(f"{shape}{element_bytes}")
    kinds = set()
    for _ in range(25):
        source, target = random_blocked(rng, shape)[0], random_blocked(rng, shape)[0]
        kinds.add(check_plan(source, target, element_bytes))
    assert "shared" in kinds


@pytest.mark.parametrize("element_bytes", [1, 2, 4, 8])
def test_conversions_from_and_to_fragments(element_bytes):
    """Loads bring blocked tiles, tensor cores take operands and leave accumulators, stores want blocked tiles again."""
    rng = random.Random(element_bytes)
    shape, kinds = (64, 64), []
    for warps in [(4, 1), (2, 2), (1, 4)]:
        parts = [make("mma", shape, (part, element_bytes), warps) for part in PARTS.values()]
        for part in parts:
            for _ in range(2):
                blocked = random_blocked(rng, shape)[0]
                kinds += [check_plan(blocked, part, element_bytes), check_plan(part, blocked, element_bytes)]
        kinds.append(check_plan(parts[0], parts[1], element_bytes))
    assert "shared" in kinds


def test_accumulators_that_are_the_next_operand():
    """P of attention: accumulators of 4 warps along M, made 16 bits wide, are where A has them."""
    accumulator, a = (make("mma", (64, 64), (part, 2), (4, 1)) for part in (0, 1))
    assert check_plan(accumulator, a, 2) in ("none", "registers")


@pytest.mark.parametrize("element_bytes, row_bits", [(1, 4), (2, 3), (4, 2)])
def test_words_of_fragments_become_rows(element_bytes, row_bits):
    """Four lanes have a word each of the 16 bytes that a thread stores at once: one side words, the other vectors."""
    word_bits = row_bits - 2
    shape = 64, 8 << word_bits
    words = make("blocked", shape, (1, 1 << word_bits), (8, 4), (4, 1), (1, 0))
    rows = make("blocked", shape, (1, 1 << row_bits), (16, 2), (4, 1), (1, 0))
    for source, target, bits in (words, rows, (word_bits, row_bits)), (rows, words, (row_bits, word_bits)):
        assert check_plan(source, target, element_bytes) == "shared"
        assert _C._layout_plan(source.raw, target.raw, element_bytes)["vector_bits"] == bits
    accumulator = make("mma", (64, 32), (PARTS["accumulator"], 2), (4, 1))
    rows = make("blocked", (64, 32), (1, 8), (8, 4), (4, 1), (1, 0))
    assert _C._layout_plan(accumulator.raw, rows.raw, 2)["vector_bits"] == (1, 3)
    # Else those are rows that the other layout's lanes have words of: four columns in a thread, eight apart
    accumulator = make("mma", (64, 128), (PARTS["accumulator"], 2), (4, 1))
    rows = make("blocked", (64, 128), (1, 8), (2, 16), (4, 1), (1, 0))
    for stores_matrices, bits in (False, (3, 1)), (True, (1, 3)):
        assert _C._layout_plan(accumulator.raw, rows.raw, 2, stores_matrices)["vector_bits"] == bits


def test_conversions_between_arbitrary_layouts():
    rng = random.Random(7)
    kinds = set()
    for _ in range(400):
        shape = rng.choice([(32, 32), (64, 16), (8, 64), (256,), (4, 8)])
        source, target = random_distributed(rng, shape), random_distributed(rng, shape)
        if all(_C._layout_inspect(x.raw)["surjective"] for x in (source, target)):
            kinds.add(check_plan(source, target, rng.choice([1, 2, 4, 8])))
    assert "shared" in kinds


def test_conversions_within_a_warp_use_shuffles():
    rng = random.Random(11)
    kinds = []
    for _ in range(200):
        shape = rng.choice([(16, 16), (32, 8), (64,), (128,)])
        source = random_distributed(rng, shape, warps=0)
        target = random_distributed(rng, shape, warps=0)
        kinds.append(check_plan(source, target, 4))
    assert kinds.count("shuffle") > 100


def test_a_transposition_in_registers_and_a_free_conversion():
    row = make("blocked", (4, 128), (4, 1), (1, 32), (1, 4), (1, 0))
    column = make("blocked", (4, 128), (4, 1), (1, 32), (1, 4), (0, 1))
    assert check_plan(row, row, 4) == "none"
    assert check_plan(row, column, 4) in ("none", "registers")


def test_bad_layouts_are_refused():
    with pytest.raises(ValueError, match="pow2"):
        make("blocked", (3,), (1,), (32,), (4,), (0,))
    with pytest.raises(ValueError, match="no layout 'round'"):
        make("round", (4,))
