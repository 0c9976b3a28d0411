"""Handlers of SIGSEGV that a program installs after the first launch: kernels' faults stay exceptions, and the faults
of others still reach these handlers, once."""

import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from processes import run

CASES = """
    import signal, time
    kernel = jit('''
        def kernel(bad, SIZE: tl.constexpr):
            if tl.program_id(0) == 2:
                tl.store(bad + tl.arange(0, SIZE), 1.0)  # fails
    ''')
    fine = jit('''
        def kernel(x):
            tl.store(x, 1.0)
    ''')
    def ours():
        assert marked_line(kernel) in failure(kernel, (4,), hole(), SIZE=8)
    def theirs():
        ctypes.string_at(hole(np.uint8).ctypes.data, 1)
    def handler():
        action = (ctypes.c_void_p * 32)()  # a `struct sigaction`, which begins with it
        ctypes.CDLL(None).sigaction(signal.SIGSEGV, None, action)
        return action[0]
    def meanwhile():
        "Launches until the guard stands in front again."
        while handler() != guard:
            fine[(1,)](np.zeros(1, np.float32))
    def elsewhere(function):
        thread = threading.Thread(target=function)
        thread.start()
        thread.join()
    seen = []
    def handle(number, frame):
        seen.append(number)
    ours()
    guard = handler()
"""


@pytest.mark.parametrize("target", ["cpu", "sim:90"])
def test_a_handler_in_python(target):
    run(CASES + "    signal.signal(signal.SIGSEGV, handle)\n    ours()\n    ours()\n    check_health()", target)


def test_a_handler_in_python_and_a_launch_of_another_thread():
    run(
        CASES
        + "    time.sleep(1.5)\n    signal.signal(signal.SIGSEGV, handle)\n    elsewhere(ours)\n    check_health()"
    )
    run(CASES + "    signal.signal(signal.SIGSEGV, handle)\n    time.sleep(1.5)\n    elsewhere(ours)\n    ours()")


SENT = """
    signal.signal(signal.SIGSEGV, handle)
    meanwhile()
    ours()
    seen.clear()
    for _ in range(3):
        {send}
    assert len(seen) == 3
    ours()
"""


@pytest.mark.parametrize("send", ["os.kill(os.getpid(), signal.SIGSEGV)", "signal.raise_signal(signal.SIGSEGV)"])
def test_a_handler_in_python_gets_what_is_sent(send):
    run(CASES + SENT.format(send=send))


def test_a_handler_that_ends_the_process():
    end = "    ctypes.CDLL(None).signal(11, ctypes.cast(ctypes.CDLL(None).abort, ctypes.c_void_p))\n    meanwhile()\n"
    run(CASES + end + "    ours()\n    check_health()")
    run(CASES + end + "    ours()\n    theirs()", expect=-signal.SIGABRT)


def test_the_default_of_the_system():
    run(CASES + "    signal.signal(signal.SIGSEGV, signal.SIG_DFL)\n    meanwhile()\n    ours()\n    check_health()")
    run(
        CASES + "    signal.signal(signal.SIGSEGV, signal.SIG_DFL)\n    meanwhile()\n    theirs()",
        expect=-signal.SIGSEGV,
    )


@pytest.mark.parametrize("times", [1, 3])
def test_faulthandler_is_quiet_about_kernels_and_tells_of_others_once(times):
    enable = "    faulthandler.disable()\n    faulthandler.enable()\n    meanwhile()\n" * times
    assert "Segmentation" not in run(CASES + enable + "    ours()\n    ours()\n    check_health()")
    said = run(CASES + enable + "    ours()\n    theirs()", expect=-signal.SIGSEGV)
    assert said.count("Segmentation fault") == 1 and "in theirs" in said


@pytest.mark.parametrize("which", ["calls the one before", "raises anew"])
@pytest.mark.parametrize("wait", ["", "    meanwhile()\n"])
def test_handlers_that_go_on_to_the_one_before(which, wait, tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        pytest.skip("there is no C compiler to build the handlers with")
    library, source = tmp_path / "later.so", Path(__file__).parent / "later_handlers.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    install = f"    later = ctypes.CDLL({str(library)!r})\n    later.install({int(which == 'raises anew')})\n"
    ends = "    theirs()", "    ours()\n    signal.raise_signal(signal.SIGSEGV)"
    for end, expect in ("    ours()\n    ours()\n    check_health()", 0), *((end, -signal.SIGSEGV) for end in ends):
        run(CASES + install + wait + end, expect=expect)
