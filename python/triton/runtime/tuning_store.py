"""What tuning found, on disk: for each kernel, key and device a file with the timings of its configurations.

A file is written whole under another name and renamed, and has a checksum: what is damaged counts as not there. While
one process tunes, others that want the same wait for it, for a bounded time; the lock ends with the process that holds
it.
"""

import os
import time
import warnings
from contextlib import contextmanager, suppress
from functools import cache

from .. import _C

FORMAT = 1
WAIT = 600.0  # seconds, unless TRITON_AUTOTUNING_WAIT says otherwise
_POLL = 0.02


def folder():
    """Beside the compiled kernels; None where there is no folder for them."""
    root = _C.store_folder()
    return root and os.path.join(root, "tuning")


def device_text(device):
    """What distinguishes a device from others on which something else is fastest; the CPU for None."""
    if device is None:
        from .driver import thread_count

        return f"cpu, {_processor()}, {thread_count()} threads"
    properties = _C.cuda_device(device)
    facts = "name", "capability", "multiprocessor_count", "max_shared_mem", "sm_clock_rate", "mem_clock_rate"
    return ", ".join(str(properties[fact]) for fact in facts)


@cache
def has_unlike_gpus():
    """Whether what is best on one device of this machine need not be so on another."""
    return len({device_text(number) for number in range(_C.cuda_device_count())}) > 1


def _processor():
    import platform

    with suppress(OSError), open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


class TuningStore:
    """The file of one identity: whatever the timings depend on but the configuration, as a list of texts."""

    def __init__(self, identity):
        self.identity = [str(FORMAT), *identity]
        name = _hash("\0".join(self.identity))
        self.path = os.path.join(folder(), f"{name}.json")

    def read(self):
        """Entries by configuration; none if there is no file, or a damaged one."""
        import json  # here, for most programs never need it

        try:
            with open(self.path, encoding="utf-8") as file:
                kept = json.load(file)
            body = kept["body"]
            whole = kept["checksum"] == _checksum(body) and body["identity"] == self.identity
        except (OSError, ValueError, KeyError, TypeError):
            return {}
        return body["configurations"] if whole else {}

    def write(self, entries):
        """Replaces the file. Entries of configurations that are gone are kept: they may come back."""
        import json

        body = {"identity": self.identity, "configurations": {**self.read(), **entries}}
        text = json.dumps({"checksum": _checksum(body), "body": body})
        temporary = f"{self.path}.{os.getpid()}"
        try:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            with open(temporary, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(temporary, self.path)
        except OSError as error:
            _warn(error)

    @contextmanager
    def locked(self):
        """While the body runs no other process is in such a body for this file, unless it has waited too long."""
        file = self._open_lock()
        try:
            if file is not None and not _lock(file):
                seconds = _bound()
                text = f"another process tunes this kernel for more than {seconds:g} s; it is tuned here too"
                warnings.warn(text, RuntimeWarning, stacklevel=2)
            yield
        finally:
            if file is not None:
                file.close()  # and with it the lock

    def _open_lock(self):
        try:
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            return open(f"{self.path}.lock", "w")  # noqa: SIM115
        except OSError as error:
            _warn(error)
            return None


def _lock(file):
    """False if somebody else holds it for too long."""
    try:
        import fcntl
    except ImportError:  # no such locks here; what is written is whole all the same
        return True
    end = time.monotonic() + _bound()
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > end:
                return False
            time.sleep(_POLL)
        except OSError:  # a file system without locks
            return True


def _bound():
    asked = os.environ.get("TRITON_AUTOTUNING_WAIT", "")
    try:
        return float(asked) if asked else WAIT
    except ValueError:
        raise ValueError(f"TRITON_AUTOTUNING_WAIT={asked!r}: it is a number of seconds") from None


def _hash(text):
    from hashlib import sha256

    return sha256(text.encode()).hexdigest()


def _checksum(body):
    import json

    return _hash(json.dumps(body, sort_keys=True))


def _warn(error):
    warnings.warn(f"results of tuning are not kept: {error}", RuntimeWarning, stacklevel=3)
