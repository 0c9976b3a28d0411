"""Nested tuples and lists, and the paths (tuples of indices) to what is in them."""


def find_paths_if(items, wanted):
    """The paths to all that is no tuple or list and for which ``wanted(path, value)`` holds, in order."""

    def find(items, path):
        for index, value in enumerate(items):
            inner = (*path, index)
            if isinstance(value, (tuple, list)):
                yield from find(value, inner)
            elif wanted(inner, value):
                yield inner

    return list(find(items, ()))


def get_iterable_path(items, path):
    """What lies at a path."""
    for index in path:
        items = items[index]
    return items


__all__ = ["find_paths_if", "get_iterable_path"]
