"""Work on all cores, beside what its caller does."""

import subprocess
import sys
import time
from threading import Event

import pytest

from triton.runtime.parallel import Ahead, for_each

pytestmark = pytest.mark.host


def test_results_come_when_they_are_ready(monkeypatch):
    monkeypatch.setattr("triton.runtime.parallel.core_count", lambda: 2)
    gate = Event()

    def work(item):
        assert item != "waits" or gate.wait(10)
        return item * 2

    with Ahead(work) as ahead:
        ahead.put("waits")
        for item in range(3):
            ahead.put(item)
        assert [ahead.take() for _ in range(3)] == [0, 2, 4]
        assert ahead.count == 1 and not ahead.has_result()
        gate.set()
        assert ahead.take() == "waitswaits" and ahead.count == 0


def test_the_first_exception_ends_it(monkeypatch):
    monkeypatch.setattr("triton.runtime.parallel.core_count", lambda: 1)
    done = []

    def work(item):
        done.append(item)
        if item == 2:
            raise ValueError("two")
        time.sleep(0.01)

    with pytest.raises(ValueError, match="two"):
        for_each(work, range(100))
    assert done[:3] == [0, 1, 2] and len(done) < 100
    for_each(done.append, "ab")
    assert done[-2:] == ["a", "b"]


LEAVES = """
import os, sys, time
from triton.runtime import parallel

parallel.core_count = lambda: 1

def work(item):
    time.sleep(0.3)
    print("done", item, flush=True)

with parallel.Ahead(work) as ahead:
    for item in range(3):
        ahead.put(item)
    time.sleep(0.1)
print("left", flush=True)
{then}
"""


@pytest.mark.parametrize("then", ["", "pid = os.fork()\nif not pid: os._exit(0)\nprint('forked', flush=True)"])
def test_what_was_begun_is_waited_for_where_the_process_ends_or_forks(then):
    """And what was not is given up."""
    printed = subprocess.run([sys.executable, "-c", LEAVES.format(then=then)], capture_output=True, text=True)
    assert printed.stdout.split("\n") == ["left", "done 0", *(["forked"] if then else []), ""], printed.stderr
