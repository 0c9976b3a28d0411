"""The launch that is under way in each thread."""

import threading

state = threading.local()


class _NoLaunch:
    """For tiles that a program kept: they are computed with after the launch, too."""

    options, options_key, depth = {}, (), 0

    def location(self):
        return None

    def __getattr__(self, name):
        raise RuntimeError("no kernel is running: programs, memory and prints are those of a launch")


_no_launch = _NoLaunch()


def current():
    """The `launch.Run` of this thread."""
    return getattr(state, "run", None) or _no_launch
