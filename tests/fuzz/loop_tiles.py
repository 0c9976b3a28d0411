"""Steps in the random loops of loops.py that move or pair elements: what has layouts and scratch of its own."""

from loop_memory import Memory, listed

HELPERS = """
@triton.jit
def sum_and_largest(a, b, c, d):
    return a + c, tl.maximum(b, d)

@triton.jit
def last_positive(a, b, c, d):
    return tl.where(c > 0, c, a), b + d

@triton.jit(noinline=True)
def apart(x):
    return tl.minimum(tl.maximum(x + x - 1, -2), 2)

@triton.jit(noinline=True)
def less_largest(x):
    return x - tl.max(x, 0)[None, :]

"""
LONGEST_SORT = 1024  # elements, for the simulator's sake
COMBINATIONS = "sum_and_largest", "last_positive"
COMMUTATIVE = {"sum_and_largest"}


class Tiles(Memory):
    """What `Generator` says about rearranging tiles; its `tiles`, `inside` and names are that class's."""

    def even(self, parts):
        """A tile whose last axis has so many parts."""
        return self.find(lambda x: x.axes and self.extents[x.axes[-1]] % parts == 0)

    def sort(self):
        x = self.find(lambda x: x.axes and self.elements(x.axes) <= LONGEST_SORT)
        if x and self.extents[x.axes[-1]].bit_count() == 1:
            self.add(x.axes, f"tl.sort({self.as_sum(x)}, descending={self.chance(0.5)})")

    def place_of_extreme(self):
        x = self.find(lambda x: x.axes)
        if x:
            axis = int(self.random.integers(len(x.axes)))
            text = f"tl.{self.pick('argmax', 'argmin')}({self.as_sum(x)}, {axis}) % 3"
            self.add(x.axes[:axis] + x.axes[axis + 1 :], f"tl.cast({text}, tl.{self.sum})")

    def swap_neighbours(self):
        x = self.even(2)
        if x:
            first, second = self.new_name("s"), self.new_name("s")
            shape = listed([*x.axes[:-1], f"{x.axes[-1]} // 2", "2"])
            self.inside.append(f"{first}, {second} = tl.split(tl.reshape({self.as_sum(x)}, {shape}))")
            self.add(x.axes, f"tl.interleave({second}, {first})")

    def choose_of_two(self):
        x = self.find(lambda x: x.axes)
        y = self.find(lambda y: y.axes == x.axes)
        if y:
            self.add(
                x.axes, f"tl.{self.pick('max', 'min')}(tl.join({self.as_sum(x)}, {self.as_sum(y)}), {len(x.axes)})"
            )

    def deal(self):
        """The last axis in pieces that change places with their elements, or rows with pieces of them."""
        x = self.even(4)
        if x:
            rows, last = list(x.axes[:-1]), x.axes[-1]
            shape = listed([*rows, *self.pick(("4", f"{last} // 4"), (f"{last} // 2", "2"))])
            order = self.pick((0, 2, 1), (1, 0, 2), (2, 1, 0)) if rows else (1, 0)
            turned = f"tl.permute(tl.reshape({self.as_sum(x)}, {shape}), {order})"
            self.add(x.axes, f"tl.reshape({turned}, {listed(x.axes)})")

    def pair(self):
        """A scan or a reduction of two tiles at once."""
        x = self.find(lambda x: x.axes and self.elements(x.axes) <= 2 * LONGEST_SORT)
        y = x and self.find(lambda y: y.axes == x.axes)
        if not y:
            return
        axis, first, second = int(self.random.integers(len(x.axes))), self.new_name("s"), self.new_name("s")
        both, combine = f"({self.as_sum(x)}, {self.as_sum(y)})", self.pick(*COMBINATIONS)
        if self.chance(0.5) or combine not in COMMUTATIVE:  # which reductions ask for
            reverse = f", reverse={self.chance(0.3)}"
            self.inside.append(f"{first}, {second} = tl.associative_scan({both}, {axis}, {combine}{reverse})")
            axes = x.axes
        else:
            self.inside.append(f"{first}, {second} = tl.reduce({both}, {axis}, {combine})")
            axes = x.axes[:axis] + x.axes[axis + 1 :]
        self.add(axes, f"clamp({first} - {second})")

    def call(self):
        x = self.find(lambda x: x.axes)
        if x:
            function = "less_largest" if len(x.axes) == 2 and self.chance(0.5) else "apart"
            self.add(x.axes, f"clamp({function}({self.as_sum(x)}))")

    def barrier(self):
        self.inside.append("tl.debug_barrier()")
