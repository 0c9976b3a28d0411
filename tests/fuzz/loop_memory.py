"""Memory in the random loops of tests/fuzz/loops.py: pointers, windows, descriptors, atomics, what is read again."""

from dataclasses import dataclass

import numpy as np
from harness import DTYPES, Array, round_to
from launches import Chooser, indented

OTHER_DTYPES = "int8", "float16", "float32", "int32", "uint8"  # of tiles that are converted
MATRICES = "MK", "KN", "MN", "MK", "KN", "NL", "KM", "NK", "NM"
VECTORS = "M", "N", "K", ""
LEAST_ROW = 16  # bytes, of a descriptor's tile
WINDOWS = "window", "windows", "descriptor"
WAYS = "recomputed", "recomputed", "carried", "indirect", "ahead", *WINDOWS


@dataclass
class Tile:
    name: str
    axes: str  # a letter each, which names its extent
    dtype: str  # the operands' or the sums'


def size(axes):
    return " * ".join(axes) or "1"


def index(axes, k):
    """Places along axis k, in the shape of a tile."""
    return f"tl.arange(0, {axes[k]})" + ("" if len(axes) == 1 else "[None, :]" if k else "[:, None]")


def listed(texts):
    """A tuple's text."""
    return f"({', '.join(texts)},)"


class Memory(Chooser):
    """What `Generator` says about memory; its `arrays`, `tiles` and lines are that class's."""

    # ---- loads ------------------------------------------------------------------------------------------------------

    def load_some(self):
        self.load(self.pick(*MATRICES, *VECTORS))

    def load(self, axes):
        """One piece after the other of a new array."""
        dtype = self.dtype if self.chance(0.8) else self.pick(*OTHER_DTYPES)
        array, first = self.new_name("p"), self.pick(0, 0, 0, 1, 2, 8)
        name, way = self.new_name("x"), self.pick(*WAYS if axes else WAYS[:5])
        if way == "descriptor" and self.extents[axes[-1]] * DTYPES[dtype].bits < 8 * LEAST_ROW:
            way = "window"
        unread = {"indirect": 0, "ahead": 1}.get(way, 2) * self.elements(axes)
        length = max(1, self.length(axes) + first - unread)
        self.arrays[array] = round_to(self.random.integers(0 if dtype == "uint8" else -2, 3, length), dtype)
        start = f"{array} + {first} + pid * ({self.pieces} * {size(axes)})"
        mask = self.mask(axes, way != "ahead") if axes and self.chance(0.4) else ""
        if way in WINDOWS:
            getattr(self, f"load_{way}")(name, start, axes)
        else:
            getattr(self, f"load_{way}")(name, start, f"({size(axes)})", self.offsets(axes), mask)
        if dtype == self.dtype:
            self.tiles.append(Tile(name, axes, dtype))
        if dtype != self.dtype or self.chance(0.25):
            self.add(axes, f"tl.cast({name}, tl.{self.sum})")

    def length(self, axes):
        return self.grid * self.pieces * self.elements(axes)

    def mask(self, axes, can_vary, other=None):
        axis = self.random.integers(len(axes))
        limit = self.random.integers(0, self.extents[axes[axis]] + 1)
        bound = self.pick(f"{limit}", f"limit - {self.pick(0, 3, 5)}", f"{limit} + i * 0" if can_vary else f"{limit}")
        other = f", other={self.pick(0, 0, 0, 1)}" if other is None else other
        return f", mask={index(axes, axis)} < {bound}{other}"

    def load_recomputed(self, name, start, step, offsets, mask):
        piece = self.pick("i", "i", "i", "tl.cast(i, tl.int64)")
        self.inside.append(f"{name} = tl.load({start} + {piece} * {step} + {offsets}{mask})")

    def move(self, line):
        """What moves a pointer on, now and then not in every iteration."""
        test = self.pick("i % 2 == 0", "i != 1", "i < limit")
        self.tail += [f"if {test}:", *indented([line])] if self.chance(0.2) else [line]

    def load_carried(self, name, start, step, offsets, mask):
        self.before.append(f"at_{name} = {start} + {offsets}")
        self.inside.append(f"{name} = tl.load(at_{name}{mask})")
        self.move(f"at_{name} += {step}")

    def load_indirect(self, name, start, step, offsets, mask):
        table = self.new_name("t")
        self.arrays[table] = Array(self.random.permutation(self.pieces).astype(np.int32), "int32")
        self.inside.append(f"{name} = tl.load({start} + tl.load({table} + i) * {step} + {offsets}{mask})")

    def load_ahead(self, name, start, step, offsets, mask):
        """An iteration before it is used."""
        self.before.append(f"next_{name} = tl.load({start} + {offsets}{mask})")
        self.inside.append(f"{name} = next_{name}")
        lines = self.pick(self.inside, self.tail)
        lines.append(f"next_{name} = tl.load({start} + (i + 1) * {step} + {offsets}{mask})")

    def load_once(self):
        """A tile that all iterations use."""
        axes, name = self.pick("MK", "MN", "KN"), self.new_name("x")
        self.arrays[f"p_{name}"] = round_to(self.random.integers(-2, 3, self.elements(axes)), self.dtype)
        self.before.append(f"{name} = tl.load(p_{name} + {self.offsets(axes)})")
        self.tiles.append(Tile(name, axes, self.dtype))

    # ---- windows ----------------------------------------------------------------------------------------------------

    def window(self, axes, pieces, has_order=True):
        """Shape, strides, block, step to the next piece, and order of pieces that lie one behind the other, with a rest
        that is out of bounds now and then; and the options of an access that looks."""
        along = 0 if has_order and len(axes) == 2 and self.chance(0.4) else len(axes) - 1
        across = len(axes) - 1 - along
        extents = [self.extents[axis] for axis in axes]
        extents[across] *= pieces
        rests = [self.pick(0, 0, 1, 5) for _ in axes]
        shape = [str(max(1, extent - rest)) for extent, rest in zip(extents, rests, strict=True)]
        strides = [axes[along]] * len(axes)
        strides[along] = "1"
        step = ["0"] * len(axes)
        step[across] = axes[across]
        looks = any(rests) or self.chance(0.3) or not pieces
        check = f", boundary_check={listed(map(str, range(len(axes))))}" if looks else ""
        order = listed(str(k) for k in (along, across)[: len(axes)])
        return listed(shape), listed(strides), listed(axes), step, order, check

    def block_pointer(self, start, axes, pieces, place):
        """The text of one at some piece, its step and the options of an access."""
        shape, strides, block, step, order, check = self.window(axes, pieces)
        offsets = listed(text if text == "0" else f"{place} * {text}" for text in step)
        return f"tl.make_block_ptr({start}, {shape}, {strides}, {offsets}, {block}, {order})", listed(step), check

    def load_window(self, name, start, axes):
        """Moved from piece to piece."""
        pointer, step, check = self.block_pointer(start, axes, self.count, "0")
        padding = ", padding_option='zero'" if check else ""
        self.before.append(f"at_{name} = {pointer}")
        self.inside.append(f"{name} = tl.load(at_{name}{check}{padding})")
        self.move(f"at_{name} = tl.advance(at_{name}, {step})")

    def load_windows(self, name, start, axes):
        """Made anew for each piece."""
        pointer, _, check = self.block_pointer(start, axes, self.count, "i")
        padding = ", padding_option='zero'" if check else ""
        self.inside.append(f"{name} = tl.load({pointer}{check}{padding})")

    def descriptor(self, start, axes, pieces):
        """The text of one, and of the offsets of piece i."""
        shape, strides, block, step, *_ = self.window(axes, pieces, has_order=False)
        offsets = listed(text if text == "0" else f"i * {text}" for text in step)
        return f"tl.make_tensor_descriptor({start}, {shape}, {strides}, {block})", offsets

    def load_descriptor(self, name, start, axes):
        made, offsets = self.descriptor(start, axes, self.count)
        self.before.append(f"d_{name} = {made}")
        self.inside.append(f"{name} = d_{name}.load({offsets})")

    # ---- stores -----------------------------------------------------------------------------------------------------

    def store(self, tile):
        """In every iteration."""
        array = self.output(self.length(tile.axes))
        start, axes, value = f"{array} + pid * ({self.pieces} * {size(tile.axes)})", tile.axes, self.as_sum(tile)
        way = self.pick("pointers", "pointers", *WINDOWS) if axes else "pointers"
        if way == "descriptor" and self.extents[axes[-1]] * DTYPES[self.sum].bits < 8 * LEAST_ROW:
            way = "window"
        if way == "pointers":
            self.inside.append(f"tl.store({start} + i * ({size(axes)}) + {self.offsets(axes)}, {value})")
        elif way == "descriptor":
            made, offsets = self.descriptor(start, axes, self.pieces)
            self.before.append(f"d_{array} = {made}")
            self.inside.append(f"d_{array}.store({offsets}, {value})")
        else:
            pointer, _, check = self.block_pointer(start, axes, self.pieces, "i")
            self.inside.append(f"tl.store({pointer}, {value}{check})")

    def output(self, length):
        name = self.new_name("o")
        self.arrays[name] = round_to(np.zeros(length), self.sum)
        return name

    def load_stored(self):
        """A piece of an array that this iteration or one before has stored to, and stores again at its end."""
        axes, array, name = self.pick("MK", "KN", "MN", "M"), self.new_name("p"), self.new_name("x")
        dtype = self.pick(self.dtype, self.dtype, self.sum)
        self.arrays[array] = round_to(self.random.integers(-2, 3, self.length(axes)), dtype)
        start = f"{array} + pid * ({self.pieces} * {size(axes)})"
        self.pick(self.load_recomputed, self.load_carried, self.load_ahead)(
            name, start, f"({size(axes)})", self.offsets(axes), ""
        )
        self.tiles.append(Tile(name, axes, dtype))
        self.stored.append((start, axes, dtype))

    def store_again(self):
        """What the next iterations load, or have loaded."""
        for start, axes, dtype in self.stored:
            x = self.find(lambda x, axes=axes: x.axes == axes)
            value = self.as_operand(x) if dtype == self.dtype else f"clamp({self.as_sum(x)})"
            place = f"(i + {self.pick(0, 1, 1, 2)}) * ({size(axes)}) + {self.offsets(axes)}"
            self.inside.append(f"tl.store({start} + {place}, {value}{self.mask(axes, True, '') if axes else ''})")

    def atomic(self):
        """Of sums, where all elements have places of their own, which gives what there was, or share a few."""
        x = self.find(lambda x: x.axes)
        if x:
            array = self.output(self.grid * self.elements(x.axes))
            function, offsets = self.pick("add", "add", "max", "min"), self.offsets(x.axes)
            shares = self.chance(0.4)
            places = f"({offsets}) % {self.pick(1, 3, 16)}" if shares else offsets
            mask = self.mask(x.axes, True, "") if shares and self.chance(0.4) else ""
            pointers = f"{array} + pid * ({size(x.axes)}) + {places}"
            text = f"tl.atomic_{function}({pointers}, clamp({self.as_sum(x)}){mask})"
            if shares or self.chance(0.4):
                self.inside.append(text)
            else:
                self.add(x.axes, f"clamp({text})")
