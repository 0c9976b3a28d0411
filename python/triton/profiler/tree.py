"""What a session measured, as the tree that ``name.hatchet`` holds: JSON with a node for each scope and its kernels.

A node has a ``frame`` with its name, ``metrics`` and ``children``. The metrics of a kernel are ``count``,
``time (ns)``, ``device_type``, ``device_id`` and the numbers of its launch metadata; those of a scope are what the
program gave it. Beside the root stands what is known of the devices.
"""


def _node(name):
    return {"children": [], "frame": {"name": name, "type": "function"}, "metrics": {}}


def _at(root, path):
    node = root
    for name in path:
        found = next((child for child in node["children"] if child["frame"]["name"] == name), None)
        if found is None:
            found = _node(name)
            node["children"].append(found)
        node = found
    return node


def _add(metrics, name, value):
    """Numbers add up; texts, and what is marked as a property, do not."""
    is_property = name.endswith(" (pty)")
    name = name.removesuffix(" (pty)").removesuffix(" (exc)")
    adds_up = name in metrics and not is_property and isinstance(value, int | float)
    metrics[name] = metrics[name] + value if adds_up else value


def _kernel_metrics(launch):
    target, _, arch = launch.data["function"].info["target"].partition(":")
    device = "0" if launch.device is None else str(launch.device)
    fixed = {"count": 1, "time (ns)": round(launch.duration() * 1e9)}
    own = {name: value for name, value in launch.data.items() if isinstance(value, int | float) and name != "stream"}
    return fixed | own, {"device_type": target.upper(), "device_id": device}, arch


def tree(session):
    """The root and the devices, as the file has them."""
    root, devices = _node("ROOT"), {}
    for each in session.scopes:
        node = _at(root, each.path)
        for name, value in each.data.items():
            _add(node["metrics"], name, value)
    for launch in session.launches:
        node = _at(root, (*launch.path, launch.data["name"]))
        numbers, texts, arch = _kernel_metrics(launch)
        for name, value in numbers.items():
            _add(node["metrics"], name, value)
        node["metrics"] |= texts
        devices.setdefault(texts["device_type"], {})[texts["device_id"]] = {"arch": arch} if arch else {}
    return [root, devices]
