"""Linear layouts as such: linear maps over F2 from the bits of named inputs to those of named outputs (Zhou et al.,
arXiv 2505.23819). `triton.tools.layout` has those of tiles, and draws them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def _bits(size):
    if size < 1 or size & (size - 1):
        raise ValueError(f"a dimension has a power of 2 of values, not {size}")
    return size.bit_length() - 1


class LinearLayout:
    """``layout.apply({"lane": 3, "warp": 1})`` gives the value of each output dimension: the XOR of the bases of the
    bits that are set.

    ``bases`` maps each input dimension to a tuple of values, one for each output dimension, for each of its bits;
    ``out_dims`` maps output dimensions to how many values each has.
    """

    def __init__(self, bases: Mapping[str, Sequence[Sequence[int]]], out_dims: Mapping[str, int]):
        self.bases = {name: tuple(map(tuple, each)) for name, each in bases.items()}
        self.out_dims = dict(out_dims)
        for size in self.out_dims.values():
            _bits(size)
        for basis in self._columns():
            if len(basis) != len(self.out_dims) or not all(
                0 <= value < size for value, size in zip(basis, self.out_dims.values(), strict=True)
            ):
                raise ValueError(f"the basis {basis} lies outside of {self.out_dims}")

    @classmethod
    def from_bases(cls, bases, out_dim_names, out_dim_sizes=None, require_surjective=True) -> LinearLayout:
        """:param bases: pairs of an input dimension and the bases of its bits, or a dict of these.
        :param out_dim_sizes: by default the least powers of 2 that hold all.
        """
        bases, names = dict(bases), list(out_dim_names)
        columns = [basis for each in bases.values() for basis in each]
        least = [1 << max((basis[i].bit_length() for basis in columns), default=0) for i in range(len(names))]
        layout = cls(bases, dict(zip(names, out_dim_sizes or least, strict=True)))
        if require_surjective and not layout.is_surjective():
            raise ValueError(f"{layout} does not reach all values of its outputs")
        return layout

    @classmethod
    def strided_1d(cls, size, stride, in_dim, out_dim) -> LinearLayout:
        """``x`` to ``x * stride``."""
        values = [(stride << bit,) for bit in range(_bits(size))]
        return cls({in_dim: values}, {out_dim: size * stride})

    @classmethod
    def identity_1d(cls, size, in_dim, out_dim) -> LinearLayout:
        return cls.strided_1d(size, 1, in_dim, out_dim)

    @classmethod
    def zeros_1d(cls, size, in_dim, out_dim, outDimSize=1) -> LinearLayout:  # noqa: N803
        """Everything to 0."""
        return cls({in_dim: [(0,)] * _bits(size)}, {out_dim: outDimSize})

    def _columns(self):
        return [basis for each in self.bases.values() for basis in each]

    def _places(self):
        """For each output dimension, where its bits begin in a number that has them all."""
        places, start = {}, 0
        for name, size in self.out_dims.items():
            places[name] = start
            start += _bits(size)
        return places, start

    def _numbers(self):
        """The bases as numbers."""
        places = self._places()[0].values()
        return [sum(value << place for value, place in zip(basis, places, strict=True)) for basis in self._columns()]

    def apply(self, inputs: Mapping[str, int]) -> dict[str, int]:
        if set(inputs) != set(self.bases):
            raise ValueError(f"values are wanted for {', '.join(self.bases)}, not for {', '.join(inputs)}")
        result = [0] * len(self.out_dims)
        for name, bases in self.bases.items():
            if not 0 <= inputs[name] < 1 << len(bases):
                raise ValueError(f"{name}={inputs[name]}: it has {1 << len(bases)} values")
            for bit, basis in enumerate(bases):
                if inputs[name] >> bit & 1:
                    result = [a ^ b for a, b in zip(result, basis, strict=True)]
        return dict(zip(self.out_dims, result, strict=True))

    def _rank(self):
        rows = []
        for number in self._numbers():
            for row in rows:
                number = min(number, number ^ row)
            if number:
                rows.append(number)
        return len(rows)

    def is_surjective(self) -> bool:
        """Does it reach every value of the outputs?"""
        return self._rank() == self._places()[1]

    def is_injective(self) -> bool:
        return self._rank() == len(self._columns())

    def is_invertible(self) -> bool:
        return self.is_surjective() and self.is_injective()

    def get_matrix_view(self) -> list[list[int]]:
        """A row for each bit of the outputs, a column for each bit of the inputs."""
        return [[number >> row & 1 for number in self._numbers()] for row in range(self._places()[1])]

    def __mul__(self, other: LinearLayout) -> LinearLayout:
        """Both at once: of dimensions that they share, `other` has the higher bits."""
        names = list(dict.fromkeys([*self.out_dims, *other.out_dims]))

        def widened(layout, shifts):
            for name, bases in layout.bases.items():
                values = [dict(zip(layout.out_dims, basis, strict=True)) for basis in bases]
                yield name, [tuple(value.get(out, 0) * shifts.get(out, 1) for out in names) for value in values]

        bases = dict(widened(self, {}))
        for name, more in widened(other, self.out_dims):
            bases[name] = [*bases.get(name, ()), *more]
        sizes = {name: self.out_dims.get(name, 1) * other.out_dims.get(name, 1) for name in names}
        return LinearLayout(bases, sizes)

    def compose(self, outer: LinearLayout) -> LinearLayout:
        """``x`` to ``outer(self(x))``."""
        outs = list(outer.out_dims)
        bases = {
            name: [
                tuple(outer.apply(dict(zip(self.out_dims, basis, strict=True)))[out] for out in outs) for basis in each
            ]
            for name, each in self.bases.items()
        }
        return LinearLayout(bases, outer.out_dims)

    def invert(self) -> LinearLayout:
        """From outputs to inputs. Raises ValueError unless it is one to one."""
        if not self.is_invertible():
            raise ValueError(f"{self} cannot be inverted")
        sizes = {name: 1 << len(bases) for name, bases in self.bases.items()}
        inputs, (places, _) = self._inputs(), self._places()
        bases = {
            name: [_split(inputs[1 << places[name] + bit], sizes) for bit in range(_bits(size))]
            for name, size in self.out_dims.items()
        }
        return LinearLayout(bases, sizes)

    def _inputs(self):
        """For each single bit of the outputs the bits of the inputs that give it, by elimination."""
        pairs = [(number, 1 << bit) for bit, number in enumerate(self._numbers())]
        for bit in range(self._places()[1]):
            pivot = next(i for i in range(bit, len(pairs)) if pairs[i][0] >> bit & 1)
            pairs[bit], pairs[pivot] = pairs[pivot], pairs[bit]
            value, inputs = pairs[bit]
            pairs = [
                (v ^ value, i ^ inputs) if at != bit and v >> bit & 1 else (v, i) for at, (v, i) in enumerate(pairs)
            ]
        return dict(pairs)

    def invert_and_compose(self, outer: LinearLayout) -> LinearLayout:
        """From the inputs of this one to those of `outer` that reach the same outputs."""
        return self.compose(outer.invert())

    def __eq__(self, other):
        if not isinstance(other, LinearLayout):
            return NotImplemented
        return (self.bases, self.out_dims) == (other.bases, other.out_dims)

    def __hash__(self):
        return hash((tuple(self.bases.items()), tuple(self.out_dims.items())))

    def __repr__(self):
        return f"LinearLayout({self.bases}, {self.out_dims})"


def _split(number, sizes):
    """The values of several dimensions that lie one behind the other in a number."""
    values = []
    for size in sizes.values():
        values.append(number & (size - 1))
        number >>= _bits(size)
    return tuple(values)


__all__ = ["LinearLayout"]
