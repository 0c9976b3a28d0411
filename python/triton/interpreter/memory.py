"""The arrays of a launch by address, and accesses that stay in them. Pointers that belong to none (they were loaded, or
made of integers) reach the process's memory through the system, which answers with an error where none is."""

import ctypes
import os

import numpy as np

from .evaluate import pointers as make_pointers
from .tiles import POINTER, STORAGE


class Array:
    """The memory behind a pointer parameter: bytes from address `begin` to `end`."""

    def __init__(self, name, begin, end, read_only):
        self.name, self.begin, self.end, self.read_only = name, begin, end, read_only
        size = end - begin
        memory = (ctypes.c_uint8 * size).from_address(begin) if size else b""
        self.bytes = np.frombuffer(memory, np.uint8)

    def elements(self, offset, storage):
        """All elements of a type whose distance from the first one is a multiple of its size."""
        count = (len(self.bytes) - offset) // storage.itemsize
        return np.ndarray((count,), storage, buffer=self.bytes, offset=offset)


class Memory:
    """What `launch` makes of its arrays; `fail(kind, text)` gives the exception for a wrong access."""

    def __init__(self, arrays, fail):
        self.arrays, self.fail = arrays, fail
        self.process = None

    # ---- accesses of tile IR

    def load(self, pointer, element, mask, other):
        result = np.zeros(pointer.shape, STORAGE[element]) if other is None else np.array(other)
        result = np.ascontiguousarray(np.broadcast_to(result, pointer.shape)).reshape(pointer.shape)
        wanted = np.ones(pointer.shape, bool) if mask is None else np.broadcast_to(mask, pointer.shape)
        if wanted.any():
            if not result.flags.writeable:
                result = result.copy()
            result[wanted] = self.read(pointer[wanted], element, "load")
        return result

    def store(self, pointer, element, value, mask):
        wanted = np.ones(pointer.shape, bool) if mask is None else np.broadcast_to(mask, pointer.shape)
        if wanted.any():
            self.write(pointer[wanted], element, np.broadcast_to(value, pointer.shape)[wanted], "store")

    def update(self, pointer, element, change, operands, mask):
        """What there was, after ``change(old, *operands)`` took its place; several elements at one address go one after
        the other, so each round changes those that are first at theirs."""
        old = np.zeros(pointer.shape, STORAGE[element])
        wanted = np.ones(pointer.shape, bool) if mask is None else np.broadcast_to(mask, pointer.shape)
        left = np.flatnonzero(wanted)
        flat = np.ascontiguousarray(pointer).reshape(-1)
        operands = [np.ascontiguousarray(np.broadcast_to(x, pointer.shape)).reshape(-1) for x in operands]
        results = old.reshape(-1)
        while len(left):
            _, first = np.unique(flat["address"][left], return_index=True)
            now = left[np.sort(first)]
            before = self.read(flat[now], element, "atomic access")
            self.write(flat[now], element, change(before, *(x[now] for x in operands)), "atomic access")
            results[now] = before
            left = np.setdiff1d(left, now, assume_unique=True)
        return results.reshape(pointer.shape)

    # ---- flat arrays of pointers

    def read(self, pointer, element, access):
        """The elements at these addresses."""
        storage = np.dtype(np.uint8 if element == "i1" else np.int64 if element == "ptr" else STORAGE[element])
        result = np.empty(len(pointer), storage)
        for places, array in self.parts(pointer):
            addresses = pointer["address"][places]
            if array is None:
                size = storage.itemsize
                found = [self.read_bytes(int(address), size, access) for address in addresses]
                result[places] = np.frombuffer(b"".join(found), storage)
                continue
            for chosen, view, index in self.views(array, addresses, storage, access):
                result[np.flatnonzero(places)[chosen]] = view[index]
        if element == "i1":
            return result != 0
        return make_pointers(result) if element == "ptr" else result

    def write(self, pointer, element, value, access):
        if element == "ptr":
            value = value["address"]
        value = np.ascontiguousarray(value)
        for places, array in self.parts(pointer):
            addresses, values = pointer["address"][places], value[places]
            if array is None:
                for address, item in zip(addresses, values, strict=True):
                    self.write_bytes(int(address), item.tobytes(), access)
                continue
            if array.read_only:
                raise ValueError(
                    f"argument '{array.name}': the array is read-only, and the kernel stores to it; pass a copy, or "
                    "make it writeable"
                )
            for chosen, view, index in self.views(array, addresses, value.dtype, access):
                view[index] = values[chosen]

    def parts(self, pointer):
        """(which of the pointers, the Array that they belong to or None) for each array among them."""
        for number in np.unique(pointer["array"]):
            places = pointer["array"] == number
            if number >= 0:
                yield places, self.arrays[number]
                continue
            for array in self.arrays:
                address = pointer["address"]
                inside = places & (address >= array.begin) & (address < array.end)
                if inside.any():
                    yield inside, array
                    places = places & ~inside
            if places.any():
                yield places, None

    def views(self, array, addresses, storage, access):
        """(which of the addresses, elements, indices into these), for each distance of addresses from the first
        element that is not a whole number of elements."""
        offsets = addresses - array.begin
        wrong = (offsets < 0) | (offsets > array.end - array.begin - storage.itemsize)
        if wrong.any():
            size = storage.itemsize
            raise self.fail(
                "access",
                f"{access} out of bounds of the array '{array.name}': index {int(offsets[wrong][0]) // size}, "
                f"and it has {(array.end - array.begin) // size} elements",
            )
        phases = offsets % storage.itemsize
        for phase in np.unique(phases):
            chosen = phases == phase
            view = array.elements(int(phase), storage)
            yield chosen, view, (offsets[chosen] - phase) // storage.itemsize

    # ---- what lies elsewhere in the process

    def read_bytes(self, address, size, access):
        try:
            return os.pread(self.open(), size, address)
        except (OSError, OverflowError, ValueError):
            raise self.fail("access", f"{access} at address {address:#x}, where there is no memory") from None

    def write_bytes(self, address, content, access):
        try:
            os.pwrite(self.open(), content, address)
        except (OSError, OverflowError, ValueError):
            raise self.fail("access", f"{access} at address {address:#x}, where there is no memory") from None

    def open(self):
        if self.process is None:
            self.process = os.open("/proc/self/mem", os.O_RDWR)
        return self.process

    def close(self):
        if self.process is not None:
            os.close(self.process)
            self.process = None


def pointer_to(array, number):
    """A scalar pointer to an address, which belongs to the array of that number."""
    result = np.empty((), POINTER)
    result["address"], result["array"] = array, number
    return result
