"""Random products with weights of few bits: `python tests/fuzz/campaign.py dequantise` runs many.

Weights are nibbles, two in a byte or eight in a word, along either axis, or bytes, or 8-bit floats; they are unpacked
by shifts, interleaving, joining or a table, less their zeros and times their scales by groups, and multiplied with few
rows or many, in parts that atomics add or at once; and microscaled ones. All values are whole and small, or powers of
two: every target has to give what NumPy does, bit by bit. `--explain SEED` prints the kernel of one that differs.
"""

import sys
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

from harness import PADDINGS, Array, round_to  # noqa: E402
from launches import Chooser, Launch, explain, indented, reference_fuzzer  # noqa: E402

TARGETS = "cpu", "sim:80", "sim:90"
FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])  # e2m1, by code
KINDS = "bytes along k", "bytes along n", "halves of k", "words", "int8", "uint8", "fp8", "table", "fp4"
NAMES_OF_FORMATS = {"float16": "fp16", "bfloat16": "bf16", "float8e4nv": "e4m3", "float8e5": "e5m2"}


class Generator(Chooser):
    def __init__(self, seed):
        super().__init__(seed)
        integer = self.random.integers
        self.kind = self.pick(*KINDS)
        self.block_m, self.block_n = self.pick(16, 16, 32, 64), self.pick(16, 32, 64, 128)
        self.block_k = self.pick(32, 64, 64, 128)
        self.warps, self.stages = self.pick(1, 2, 4, 4, 8), self.pick(1, 2, 3, 4, 5)
        if self.is_large():
            self.block_m, self.block_n = self.pick((128, 128), (64, 256), (128, 256), (256, 128))
            self.warps = self.pick(4, 8, 8, 16)
        self.m, self.n = int(integer(1, self.block_m + 1)), int(integer(1, 2 * self.block_n + 1))
        if self.chance(0.5):
            self.m, self.n = self.pick(1, self.block_m), self.block_n
        self.splits = self.pick(1, 1, 2, 3)
        self.group = self.pick(16, 32, 64, 128, self.block_k)
        self.blocks = int(integer(1, 6))
        self.k = self.blocks * self.block_k
        if self.kind in ("int8", "uint8", "fp8", "table") and self.chance(0.4):
            self.k -= int(integer(0, self.block_k))  # the last piece is masked
        self.dtype = self.pick("float16", "float16", "bfloat16", "float32")
        self.arrays, self.lines, self.before = {}, [], []

    def codes(self, low, high):
        return self.random.integers(low, high, (self.k, self.n))

    def give(self, name, values, dtype):
        self.arrays[name] = round_to(values, dtype)

    def is_whole(self):
        return self.k % self.block_k == 0

    # ---- weights: each sets what they are, and adds lines that make `w` of them --------------------------------------

    def place(self, rows, columns="j", per_row="n"):
        """The pointer to rows and columns of the weights; columns beyond the last one are masked in all of them."""
        return f"W + ({rows})[:, None] * {per_row} + ({columns})[None, :]"

    def load(self, rows, columns="j", per_row="n", inside="j < n"):
        masks = [f"({inside})[None, :]"] + [f"({rows} < k_end)[:, None]"] * (not self.is_whole())
        return f"tl.load({self.place(rows, columns, per_row)}, mask={' & '.join(masks)}, other=0)"

    def nibble(self, bits):
        """The lines that make the low and the high half of bytes; signed or less the zeros, as the weights are."""
        if self.signed:
            if self.chance(0.5):
                return f"(({bits} << 4).to(tl.int8) >> 4)", f"({bits} >> 4)"
            return f"((({bits} & 15) ^ 8) - 8)", f"(((({bits} >> 4) & 15) ^ 8) - 8)"
        return f"({bits} & 15)", f"(({bits} >> 4) & 15)"

    def bytes_of(self, low, high):
        """Pairs of nibbles in the bytes' dtype."""
        return ((high & 15) << 4 | low & 15).astype(np.uint8).view(np.int8 if self.signed else np.uint8)

    def load_bytes_along_k(self):
        self.signed = self.chance(0.5)
        codes = self.codes(-8, 8) if self.signed else self.codes(0, 16)
        self.arrays["W"] = Array(self.bytes_of(codes[0::2], codes[1::2]).copy(), "int8" if self.signed else "uint8")
        rows = f"start // 2 + tl.arange(0, {self.block_k // 2})"
        low, high = self.nibble("bits")
        self.lines += [f"bits = {self.load(rows)}", f"low = {low}", f"high = {high}"]
        shape = f"({self.block_k}, {self.block_n})"
        ways = [
            f"w = tl.reshape(tl.permute(tl.join(low, high), (0, 2, 1)), {shape})",
            "w = tl.trans(tl.interleave(tl.trans(low), tl.trans(high)))",
            f"w = tl.permute(tl.join(low, high), (0, 2, 1)).reshape({self.block_k}, {self.block_n})",
        ]
        self.lines.append(self.pick(*ways))
        return codes

    def load_bytes_along_n(self):
        self.signed = self.chance(0.5)
        self.n += self.n % 2
        codes = self.codes(-8, 8) if self.signed else self.codes(0, 16)
        self.arrays["W"] = Array(
            self.bytes_of(codes[:, 0::2], codes[:, 1::2]).copy(), "int8" if self.signed else "uint8"
        )
        columns = f"pid_n * {self.block_n // 2} + tl.arange(0, {self.block_n // 2})"
        low, high = self.nibble("bits")
        loaded = self.load("start + k", columns, "(n // 2)", f"({columns}) < n // 2")
        self.lines += [f"bits = {loaded}", f"low = {low}", f"high = {high}"]
        joined = f"tl.reshape(tl.join(low, high), ({self.block_k}, {self.block_n}))"
        self.lines.append(f"w = {self.pick('tl.interleave(low, high)', joined)}")
        return codes

    def load_halves_of_k(self):
        """A byte has a row of the block's first half and one of its second: two products, or a concatenation."""
        self.signed = self.chance(0.5)
        codes = self.codes(-8, 8) if self.signed else self.codes(0, 16)
        halves = codes.reshape(self.blocks, 2, self.block_k // 2, self.n)
        packed = self.bytes_of(halves[:, 0], halves[:, 1]).reshape(-1, self.n)
        self.arrays["W"] = Array(packed.copy(), "int8" if self.signed else "uint8")
        rows = f"start // 2 + tl.arange(0, {self.block_k // 2})"
        low, high = self.nibble("bits")
        self.lines += [f"bits = {self.load(rows)}", f"low = {low}", f"high = {high}"]
        joined = "tl.permute(tl.join(low, high), (2, 0, 1))"
        self.lines.append(f"w = tl.reshape({joined}, ({self.block_k}, {self.block_n}))")
        return codes

    def load_words(self):
        """Eight nibbles in a word, which is loaded for each of them."""
        self.signed = False
        codes = self.codes(0, 16)
        words = (codes.reshape(self.k // 8, 8, self.n) << (4 * np.arange(8)[:, None])).sum(1).astype(np.uint32)
        self.arrays["W"] = Array(words.view(np.int32), "int32")
        loaded = self.load("(start + k) // 8")
        self.lines += [f"bits = {loaded}", "w = (bits >> ((start + k) % 8 * 4)[:, None]) & 15"]
        return codes

    def load_int8(self):
        codes = self.codes(-16, 16)
        self.give("W", codes, "int8")
        self.lines.append(f"w = {self.load('start + k')}")
        return codes

    def load_uint8(self):
        codes = self.codes(0, 32)
        self.give("W", codes, "uint8")
        self.lines.append(f"w = {self.load('start + k')}")
        return codes

    def load_fp8(self):
        kind = self.pick("float8e4nv", "float8e5")
        values = round_to(self.codes(-4, 5), kind)
        self.arrays["W"] = values
        masks = ["(j < n)[None, :]"] + ["(start + k < k_end)[:, None]"] * (not self.is_whole())
        self.lines.append(f"w = tl.load({self.place('start + k')}, mask={' & '.join(masks)}, other=0.0)")
        return values.values.astype(np.float64)

    def load_table(self):
        codes = self.codes(0, 16)
        table = self.random.integers(-20, 21, 16)
        self.give("W", codes, "uint8")
        self.give("table", table, self.dtype)
        self.lines.append(f"codes = {self.load('start + k')}.to(tl.int32)")
        if self.chance(0.5):
            self.lines.append("w = tl.load(table + codes)")
        else:
            shape = f"({self.block_k}, {self.block_n})"
            self.before.append("values = tl.load(table + tl.arange(0, 16))")
            flat = f"tl.gather(values, tl.ravel(codes), 0).reshape{shape}"
            self.lines.append(f"w = {flat}")
        if not self.is_whole():
            self.lines.append("w = tl.where((start + k < k_end)[:, None], w, 0.0)")
        return table[codes]

    # ---- scales -----------------------------------------------------------------------------------------------------

    def scale(self, codes):
        """Zeros and scales by groups of rows, or none; lines that apply them to `w`, and then make it an operand."""
        weights, groups = codes.astype(np.float64), -(-self.k // self.group)
        if self.kind != "fp8" and self.chance(0.4):
            zeros = self.random.integers(0, 16, (groups, self.n))
            self.give("zeros", zeros, "int8")
            weights = weights - np.repeat(zeros, self.group, 0)[: self.k]
            wide = self.pick("tl.int32", "tl.int16", "tl.float32", f"tl.{self.dtype}")
            self.lines.append(f"w = w.to({wide}) - {self.by_group('zeros')}.to({wide})")
        kinds = ["none", "rows", "rows"] + ["product"] * (self.group == self.block_k and not self.is_vector)
        kind = self.pick(*kinds)
        if kind != "none":
            scales = 2.0 ** self.random.integers(-2, 3, (groups, self.n))
            self.give("scales", scales, self.pick(self.dtype, "float32"))
            weights = weights * np.repeat(scales, self.group, 0)[: self.k]
        if kind == "rows":
            self.lines.append(f"w = w.to(tl.{self.dtype}) * {self.by_group('scales')}.to(tl.{self.dtype})")
        self.lines.append(f"w = w.to(tl.{self.dtype})")
        if not self.is_whole() and self.kind != "fp8":  # zeros of rows that are not there
            self.lines.append("w = tl.where((start + k < k_end)[:, None], w, 0.0)")
        self.scales_products = kind == "product"
        return weights

    def by_group(self, name):
        """One row for a block of a group, or a row for each."""
        if self.group >= self.block_k and self.chance(0.6):
            return f"tl.load({name} + start // {self.group} * n + j, mask=j < n, other=1)[None, :]"
        row = f"(start + k)[:, None] // {self.group}"
        whole = "" if self.is_whole() else " & (start + k < k_end)[:, None]"
        return f"tl.load({name} + {row} * n + j[None, :], mask=(j < n)[None, :]{whole}, other=1)"

    # ---- the kernel -------------------------------------------------------------------------------------------------

    def microscaled(self):
        """Weights of four bits, two in a byte along the depth, with a power of two for 32 of them."""
        codes = self.codes(0, 16)
        exponents = self.random.integers(126, 129, (self.n, self.k // 32))
        self.arrays["W"] = Array((codes[1::2] << 4 | codes[0::2]).astype(np.uint8), "uint8")
        self.arrays["scales"] = Array(exponents.astype(np.uint8), "uint8")
        self.dtype = self.pick("bfloat16", "float16", "float8e4nv", "float8e5")
        rows, groups = f"start // 2 + tl.arange(0, {self.block_k // 2})", self.block_k // 32
        self.lines.append(f"w = {self.load(rows)}")
        place = f"j[:, None] * {self.k // 32} + start // 32 + tl.arange(0, {groups})[None, :]"
        self.lines.append(f"s = tl.load(scales + {place}, mask=(j < n)[:, None], other=127)")
        kind = NAMES_OF_FORMATS[self.dtype]
        self.lines.append(f'acc = tl.dot_scaled(a, None, "{kind}", w, s, "e2m1", acc)')
        return FP4[codes] * np.repeat(2.0 ** (exponents - 127.0), 32, 1).T

    def load_rows(self):
        """The activations, of which a kernel of one row may have a vector."""
        masks = ["(i < m)[:, None]"] + ["(start + k < k_end)[None, :]"] * (not self.is_whole())
        if self.is_vector:
            mask = "" if self.is_whole() else ", mask=start + k < k_end, other=0.0"
            return f"a = tl.load(A + start + k{mask})"
        place = "A + i[:, None] * k_end + (start + k)[None, :]"
        if self.chance(0.25):
            window = (
                f"tl.make_block_ptr(A, (m, k_end), (k_end, 1), (0, start), ({self.block_m}, {self.block_k}), (1, 0))"
            )
            return f"a = tl.load({window}, boundary_check=(0, 1), padding_option='zero')"
        return f"a = tl.load({place}, mask={' & '.join(masks)}, other=0.0)"

    def launch(self):
        self.is_vector = self.m == 1 and self.kind != "fp4" and self.chance(0.4)
        if self.kind == "fp4":
            weights = self.microscaled()
        else:
            weights = self.scale(getattr(self, "load_" + self.kind.replace(" ", "_"))())
            options = ', input_precision="tf32"' if self.dtype == "float32" else ""
            if self.is_vector:
                self.lines.append("acc += tl.sum(a[:, None].to(tl.float32) * w.to(tl.float32), 0)[None, :]")
            elif self.scales_products:
                scales = f"tl.load(scales + start // {self.group} * n + j, mask=j < n, other=1)[None, :]"
                self.lines.append(f"acc += tl.dot(a, w{options}) * {scales}.to(tl.float32)")
            else:
                self.lines.append(self.pick(f"acc = tl.dot(a, w, acc{options})", f"acc += tl.dot(a, w{options})"))
        a = self.random.integers(-2, 3, (self.m, self.k))
        self.arrays = {"A": round_to(a, self.dtype), **self.arrays}
        self.lines.insert(self.pick(0, len(self.lines) - 1), self.load_rows())
        rows = 1 if self.is_vector else self.block_m
        stages = f", num_stages={self.pick(1, 2, 3, 4)}" if self.chance(0.5) else ""
        lines = ["pid_n, pid_k = tl.program_id(0), tl.program_id(1)"]
        lines += [f"i, k = tl.arange(0, {rows}), tl.arange(0, {self.block_k})"]
        lines += [f"j = pid_n * {self.block_n} + tl.arange(0, {self.block_n})"]
        lines += [f"acc = tl.zeros(({rows}, {self.block_n}), tl.float32)", *self.before]
        step = self.block_k * self.splits
        lines += [f"for start in tl.range(pid_k * {self.block_k}, k_end, {step}{stages}):", *indented(self.lines)]
        place = "out + i[:, None] * n + j[None, :]"
        mask = "mask=(i < m)[:, None] & (j < n)[None, :]"
        lines.append(f"tl.{'store' if self.splits == 1 else 'atomic_add'}({place}, acc, {mask})")
        self.arrays["out"] = Array(np.zeros((self.m, self.n), np.float32), "float32")
        self.expected = {"out": a.astype(np.float64) @ weights}
        head = f"@triton.jit\ndef kernel({', '.join(self.arrays)}, m, n, k_end):\n"
        source = head + "\n".join(indented(lines)) + "\n"
        grid, arguments = (-(-self.n // self.block_n), self.splits), [self.m, self.n, self.k]
        options = {"num_warps": self.warps, "num_stages": self.stages}
        return Launch(source, self.arrays, arguments, grid, options, self.pick(None, *PADDINGS))


outcomes, prepare, script = reference_fuzzer(Generator, __file__)

if __name__ == "__main__":
    explain(outcomes, TARGETS, __doc__)
