"""Random kernels of attention, forward and backward: `python tests/fuzz/campaign.py attention` runs many.

Two products in a loop with a softmax between them that goes along: keys turned by memory, by a transposition or not at
all, loaded by pointers, windows and descriptors; masks by place, distance and length, biases, groups of heads, depths
of any length; one loop or two, in a function of its own or not. Backward, three sums and one that programs share. What
each element may be off by comes from how operands are rounded; a wrong element is off by as much as it is large.
`--explain SEED` prints the kernel of one that differs.
"""

import sys
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

from harness import PADDINGS, Array, round_to  # noqa: E402
from launches import Chooser, Launch, explain, indented, reference_fuzzer  # noqa: E402

TARGETS = "cpu", "sim:80", "sim:90"
LOG2E = 1.4426950408889634
ROUNDING = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "tf32": 2.0**-9, "ieee": 2.0**-20}  # of products' operands


class Generator(Chooser):
    def __init__(self, seed):
        super().__init__(seed)
        integer = self.random.integers
        self.depth = self.pick(16, 32, 64, 64, 128, int(integer(1, 130)), int(integer(17, 256)))
        self.block_d = max(16, 1 << (self.depth - 1).bit_length())
        self.block_m, self.block_n = self.pick(16, 32, 64, 64, 128), self.pick(16, 32, 32, 64, 128)
        self.warps, self.stages = self.pick(1, 2, 4, 4, 8, 8), self.pick(1, 2, 3, 4)
        if self.block_d == 256:
            self.block_m, self.block_n = self.pick(16, 32, 64), self.pick(16, 32, 64)
        elif self.is_large():
            self.block_m, self.block_n = self.pick((128, 128), (128, 64), (256, 64), (128, 256))
            self.warps = self.pick(4, 8, 8, 16)
        self.queries, self.keys = int(integer(1, 2 * self.block_m + 5)), int(integer(1, 4 * self.block_n + 5))
        if self.chance(0.3):
            self.queries, self.keys = self.block_m, self.block_n * self.pick(1, 2, 3, 4)
        self.heads, self.group = self.pick((1, 1), (2, 1), (2, 2), (4, 2))
        self.dtype = self.pick("float16", "float16", "bfloat16", "float32")
        self.precision = self.pick("tf32", "ieee") if self.dtype == "float32" else ""
        self.is_backward = self.chance(0.35)
        self.is_causal, self.window = self.chance(0.4), self.pick(None, None, None, int(integer(1, 40)))
        self.bias = self.pick(None, None, "slope", "matrix", "broken matrix")
        self.arrays, self.before, self.lines = {}, [], []

    # ---- what is given, and what comes out --------------------------------------------------------------------------

    def values(self, *shape):
        return round_to(self.random.standard_normal(shape), self.dtype).values.astype(np.float64)

    def give(self, name, values, dtype):
        self.arrays[name] = round_to(values, dtype)

    def visible(self):
        i, j = np.arange(self.queries)[:, None], np.arange(self.keys)
        seen = np.ones((self.queries, self.keys), bool)
        if self.is_causal:
            seen &= j <= i + self.keys - self.queries
        if self.window is not None:
            seen &= np.abs(i + self.keys - self.queries - j) < self.window
        return seen

    def compute(self):
        """Sets the inputs and what is expected, with bounds."""
        heads, kv_heads = self.heads, self.heads // self.group
        self.q, self.do = (self.values(heads, self.queries, self.depth) for _ in range(2))
        self.k, self.v = (self.values(kv_heads, self.keys, self.depth) for _ in range(2))
        self.scale = 0.7 * self.depth**-0.5
        k, v = (np.repeat(x, self.group, 0) for x in (self.k, self.v))
        scores = np.einsum("hid,hjd->hij", self.q, k) * self.scale
        rough = np.einsum("hid,hjd->hij", abs(self.q), abs(k)) * self.scale
        if self.bias == "slope":
            scores += 0.03 * (np.arange(self.keys) - np.arange(self.queries)[:, None])
        elif self.bias:
            shape = (heads, self.queries, self.keys)
            self.biases = round_to(self.random.standard_normal(shape), "float16").values.astype(np.float64)
            scores += self.biases
        seen = self.visible()
        top = np.where(seen, scores, -np.inf).max(-1, keepdims=True)
        weights = np.where(seen, np.exp(scores - np.where(np.isfinite(top), top, 0)), 0)
        total = weights.sum(-1, keepdims=True)
        self.lse = (np.where(total > 0, np.log(np.where(total > 0, total, 1)) + top, 0))[..., 0]
        p = weights / np.where(total > 0, total, 1)
        step = ROUNDING[self.precision or self.dtype]
        off = 4 * (step + 2.0**-20 * (1 + rough) + (step * rough if self.precision == "tf32" else 0))  # of a weight
        if self.dtype != "float32" and self.scales_first:
            off = off + 4 * step * rough
        off = np.broadcast_to(off.max(-1, keepdims=True), p.shape)
        out = p @ v
        self.expected = {"out": out, "lse": self.lse}
        self.bounds = {"out": (p * off) @ abs(v) * 2 + step * abs(out) + 1e-6, "lse": off.max(-1) * 2 + 1e-5}
        if not self.is_backward:
            return
        delta = (out * self.do).sum(-1)
        dp = self.do @ v.swapaxes(1, 2)
        ds = p * (dp - delta[..., None])
        off_ds = p * (off * abs(dp - delta[..., None]) + 4 * step * (abs(self.do) @ abs(v).swapaxes(1, 2)))
        self.delta = delta
        groups = (heads // self.group, self.group)

        def both(left, off_left, right, keep):
            """A product, and by how much it may be off."""
            exact, bound = left @ right, (off_left + 2 * step * abs(left)) @ abs(right) * 2 + 1e-5
            if keep:
                return exact, bound
            return (x.reshape(*groups, *x.shape[1:]).sum(1) for x in (exact, bound))

        found = {
            "dv": both(p.swapaxes(1, 2), (p * off).swapaxes(1, 2), self.do, False),
            "dk": both(ds.swapaxes(1, 2) * self.scale, off_ds.swapaxes(1, 2) * self.scale, self.q, False),
            "dq": both(ds * self.scale, off_ds * self.scale, k, True),
        }
        self.expected, self.bounds = {}, {}
        for name, (exact, bound) in found.items():
            self.expected[name], self.bounds[name] = exact, bound

    # ---- texts ------------------------------------------------------------------------------------------------------

    def dot(self, x, y, acc=None):
        options = f', input_precision="{self.precision}"' if self.precision else ""
        if acc and self.chance(0.6):
            return f"{acc} = tl.dot({x}, {y}, {acc}{options})"
        return f"{acc} += tl.dot({x}, {y}{options})" if acc else f"tl.dot({x}, {y}{options})"

    def cast(self, text):
        return text if self.dtype == "float32" else f"{text}.to(tl.{self.dtype})"

    def matrix(self, name, base, rows, block, start, turned=False):
        """A tile of `block` rows of all depth from `start`, or that turned, as lines behind those that stand in front
        of the loop; the way may turn it in memory."""
        ways = ["pointers", "pointers", "window", "descriptor"]
        if self.block_d * (4 if self.dtype == "float32" else 2) < 16:
            ways.remove("descriptor")
        way = self.pick(*ways)
        by_memory = turned and way != "descriptor" and self.chance(0.5)
        if way == "pointers":
            i, j = ("[None, :]", "[:, None]") if by_memory else ("[:, None]", "[None, :]")
            row, column = f"({start} + tl.arange(0, {block})){i}", f"tl.arange(0, {self.block_d}){j}"
            masks = [f"({row} < {rows})"] + [f"({column} < {self.depth})"] * (self.depth != self.block_d)
            text = f"tl.load({base} + {row} * {self.depth} + {column}, mask={' & '.join(masks)}, other=0.0)"
        elif way == "window":
            shape, strides, offsets = f"{rows}, {self.depth}", f"{self.depth}, 1", f"{start}, 0"
            tile, order = f"{block}, {self.block_d}", "1, 0"
            if by_memory:
                shape, strides, offsets, tile, order = (
                    ", ".join(reversed(each.split(", "))) for each in (shape, strides, offsets, tile, order)
                )
            window = f"tl.make_block_ptr({base}, ({shape}), ({strides}), ({offsets}), ({tile}), ({order}))"
            text = f"tl.load({window}, boundary_check=(0, 1), padding_option='zero')"
        else:
            array = f"{base}, ({rows}, {self.depth}), ({self.depth}, 1)"
            self.before.append(f"of_{name} = tl.make_tensor_descriptor({array}, ({block}, {self.block_d}))")
            text = f"of_{name}.load([{start}, 0])"
        if turned and not by_memory:
            text = self.pick(f"tl.trans({text})", f"{text}.T", f"tl.permute({text}, (1, 0))")
        return f"{name} = {text}"

    def vector(self, name, base, rows, block, start):
        place = f"{start} + tl.arange(0, {block})"
        return f"{name} = tl.load({base} + {place}, mask={place} < {rows}, other=0.0)"

    def scored(self, turned):
        """Lines that add the bias to `s`, and hide what is not seen; `i` and `j` are places of its rows and columns."""
        i, j = ("i[None, :]", "j[:, None]") if turned else ("i[:, None]", "j[None, :]")
        lines = []
        if self.bias == "slope":
            lines.append(f"s += ({j} - {i}) * {0.03 * self.base()}")
        elif self.bias:
            mask = f"({i} < queries) & ({j} < keys)"
            if self.bias == "broken matrix":  # an address that no load may widen
                mask += " & (j >= 0)[None, :]" if not turned else " & (i >= 0)[None, :]"
            lines.append(f"b = tl.load(bias + (head * queries + {i}) * keys + {j}, mask={mask}, other=0.0)")
            lines.append(f"s += b.to(tl.float32) * {self.base()}")
        seen = [f"({j} < keys)", f"({i} < queries)"]
        if self.is_causal:
            seen.append(f"({j} <= {i} + keys - queries)")
        if self.window is not None:
            seen.append(f"(tl.abs({i} + keys - queries - {j}) < {self.window})")
        lines.append(f"seen = {' & '.join(seen)}")
        return lines

    def base(self):
        return LOG2E if self.exp == "exp2" else 1.0

    def forward(self):
        before = self.before
        loads = [self.matrix("k", "k_at", "keys", self.block_n, "start", turned=True)]
        loads.append(self.matrix("v", "v_at", "keys", self.block_n, "start"))
        factor = self.scale * self.base()
        load_q = self.matrix("q", "q_at", "queries", self.block_m, "first")
        before += [load_q] + ([f"q = {self.cast(f'(q * {factor})')}"] if self.scales_first else [])
        before += [f"acc = tl.zeros(({self.block_m}, {self.block_d}), tl.float32)"]
        before += [f"m = tl.full(({self.block_m},), float('-inf'), tl.float32)"]
        before += [f"l = tl.full(({self.block_m},), 0.0, tl.float32)"]
        scores = self.dot("q", "k") if self.scales_first else f"{self.dot('q', 'k')} * {factor}"
        lines = [loads[0], f"j = start + tl.arange(0, {self.block_n})", f"s = {scores}", *self.scored(False)]
        hidden = self.pick("float('-inf')", "-1.0e30")
        lines += [f"s = tl.where(seen, s, {hidden})", "new = tl.maximum(m, tl.max(s, 1))"]
        if hidden == "-1.0e30":
            lines += ["safe = new", f"p = tl.where(seen, tl.{self.exp}(s - safe[:, None]), 0.0)"]
        else:
            lines += ["safe = tl.where(new == float('-inf'), 0.0, new)", f"p = tl.{self.exp}(s - safe[:, None])"]
        lines += [f"alpha = tl.{self.exp}(m - safe)", "l = l * alpha + tl.sum(p, 1)", "acc = acc * alpha[:, None]"]
        lines += [loads[1], self.dot(self.cast("p"), "v", "acc"), "m = new"]
        if self.chance(0.3):  # both loads in front
            lines.remove(loads[1])
            lines.insert(1, loads[1])
        scale = 1.0 if self.exp == "exp" else 1 / LOG2E
        after = ["total = tl.where(l > 0, l, 1.0)", "acc = acc / total[:, None]"]
        after += [
            f"lse_tile = tl.where(l > 0, (m + tl.{'log2' if self.exp == 'exp2' else 'log'}(total)) * {scale}, 0.0)"
        ]
        after += [self.stored("out_at", "acc", "queries", self.block_m, "first")]
        after += ["tl.store(lse + head * queries + i, lse_tile, mask=i < queries)"]
        head = [f"first = tl.program_id(0) * {self.block_m}", "head = tl.program_id(1)"]
        head += [f"i = first + tl.arange(0, {self.block_m})", f"kv = head // {self.group}"]
        head += [f"q_at = Q + head * queries * {self.depth}", f"out_at = out + head * queries * {self.depth}"]
        head += [f"k_at = K + kv * keys * {self.depth}", f"v_at = V + kv * keys * {self.depth}"]
        return head + self.before + self.loop(lines, "keys", self.block_n) + after

    def stored(self, base, value, rows, block, start):
        if self.depth == self.block_d and self.chance(0.3):
            window = f"tl.make_block_ptr({base}, ({rows}, {self.depth}), ({self.depth}, 1), ({start}, 0), "
            return f"tl.store({window}({block}, {self.block_d}), (1, 0)), {value}, boundary_check=(0,))"
        row, column = f"({start} + tl.arange(0, {block}))[:, None]", f"tl.arange(0, {self.block_d})[None, :]"
        mask = f"({row} < {rows}) & ({column} < {self.depth})"
        return f"tl.store({base} + {row} * {self.depth} + {column}, {value}, mask={mask})"

    def loop(self, lines, count, block):
        """One loop, or two that share the work, or one that is not counted."""
        kind = self.pick("for", "for", "two", "while")
        options = f", num_stages={self.pick(1, 2, 3, 4)}" if self.chance(0.5) else ""
        if kind == "while":
            return ["start = 0", f"while start < {count}:", *indented([*lines, f"start += {block}"])]
        if kind == "for":
            return [f"for start in tl.range(0, {count}, {block}{options}):", *indented(lines)]
        middle = f"half = {count} // {2 * block} * {block}"
        first = [f"for start in tl.range(0, half, {block}{options}):", *indented(lines)]
        return [middle, *first, f"for start in range(half, {count}, {block}):", *indented(lines)]

    def backward(self):
        """For a block of keys, in a loop over queries; what the queries get is added by all programs."""
        before, factor = self.before, self.scale * self.base()
        q_turned = self.chance(0.5)  # else the scores are, and turned again
        loads = [self.matrix("q", "q_at", "queries", self.block_m, "start")]
        loads += [self.matrix("do", "do_at", "queries", self.block_m, "start")]
        loads += [self.vector("e", "lse + head * queries", "queries", self.block_m, "start")]
        loads += [self.vector("delta_tile", "delta + head * queries", "queries", self.block_m, "start")]
        before += [self.matrix("k", "k_at", "keys", self.block_n, "first")]
        before += [self.matrix("v", "v_at", "keys", self.block_n, "first")]
        before += [f"{name} = tl.zeros(({self.block_n}, {self.block_d}), tl.float32)" for name in ("dk_sum", "dv_sum")]
        lines = [*loads, f"i = start + tl.arange(0, {self.block_m})"]
        weight = f"tl.{self.exp}(s - e[{{0}}] * {self.base()})"
        if q_turned:  # keys are rows
            lines += [f"s = {self.dot('k', 'tl.trans(q)')} * {factor}", *self.scored(True)]
            lines += [f"p = tl.where(seen, {weight.format('None, :')}, 0.0)", self.dot(self.cast("p"), "do", "dv_sum")]
            lines += [f"dp = {self.dot('v', 'tl.trans(do)')}", "ds = p * (dp - delta_tile[None, :])"]
            lines += [f"ds = {self.cast('ds')}", self.dot("ds", "q", "dk_sum"), "ds = tl.trans(ds)"]
        else:
            lines += [f"s = {self.dot('q', 'tl.trans(k)')} * {factor}", *self.scored(False)]
            lines += [f"p = tl.where(seen, {weight.format(':, None')}, 0.0)"]
            lines += [self.dot(f"tl.trans({self.cast('p')})", "do", "dv_sum")]
            lines += [f"dp = {self.dot('do', 'tl.trans(v)')}", "ds = p * (dp - delta_tile[:, None])"]
            lines += [f"ds = {self.cast('ds')}", self.dot("tl.trans(ds)", "q", "dk_sum")]
        column = f"tl.arange(0, {self.block_d})[None, :]"
        lines += [f"dq_tile = {self.dot('ds', 'k')} * {self.scale}"]
        place = f"dq + (head * queries + i[:, None]) * {self.depth} + {column}"
        lines += [f"tl.atomic_add({place}, dq_tile, mask=(i[:, None] < queries) & ({column} < {self.depth}))"]
        head = [f"first = tl.program_id(0) * {self.block_n}", "kv = tl.program_id(1)"]
        head += [f"j = first + tl.arange(0, {self.block_n})"]
        head += [
            f"{n}_at = {n if n[0] == 'd' else n.upper()} + kv * keys * {self.depth}" for n in ("k", "v", "dk", "dv")
        ]
        if self.group > 1:
            kept = [line for line in self.before if not line.startswith(("of_q =", "of_do ="))]
            moved = [line for line in self.before if line not in kept]
            inner = [
                *self.per_head(f"kv * {self.group} + member"),
                *moved,
                *self.loop(lines, "queries", self.block_m),
            ]
            body = [*kept, f"for member in range({self.group}):", *indented(inner)]
        else:
            body = [*self.per_head("kv"), *self.before, *self.loop(lines, "queries", self.block_m)]
        after = [self.stored("dk_at", f"dk_sum * {self.scale}", "keys", self.block_n, "first")]
        after += [self.stored("dv_at", "dv_sum", "keys", self.block_n, "first")]
        return head + body + after

    def per_head(self, head):
        return [f"head = {head}", *(f"{n}_at = {n.upper()} + head * queries * {self.depth}" for n in ("q", "do"))]

    # ---- the launch -------------------------------------------------------------------------------------------------

    def launch(self):
        self.exp, self.scales_first = self.pick("exp", "exp2"), self.chance(0.3) and not self.is_backward
        self.compute()
        for name in "qkv":
            self.give(name.upper(), getattr(self, name), self.dtype)
        if self.bias in ("matrix", "broken matrix"):
            self.give("bias", self.biases, "float16")
        if self.is_backward:
            self.give("DO", self.do, self.dtype)
            self.give("lse", self.lse, "float32")
            self.give("delta", self.delta, "float32")
        body = self.backward() if self.is_backward else self.forward()
        for name, values in self.expected.items():
            self.arrays[name] = Array(np.zeros(values.shape, np.float32), "float32")
        source = (
            f"@triton.jit\ndef kernel({', '.join(self.arrays)}, queries, keys):\n" + "\n".join(indented(body)) + "\n"
        )
        rows, block = (self.keys, self.block_n) if self.is_backward else (self.queries, self.block_m)
        grid = (-(-rows // block), self.heads // self.group if self.is_backward else self.heads)
        options = {"num_warps": self.warps, "num_stages": self.stages}
        padding = self.pick(None, *PADDINGS)
        return Launch(source, self.arrays, [self.queries, self.keys], grid, options, padding, self.bounds)


outcomes, prepare, script = reference_fuzzer(Generator, __file__)

if __name__ == "__main__":
    explain(outcomes, TARGETS, __doc__)
