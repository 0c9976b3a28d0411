"""Ctrl-C: what runs or compiles ends within 0.2 s with KeyboardInterrupt, and the process is as before."""

import pytest
from processes import run

ENDLESS = {
    "computing": "while x >= 0:\n    x = (x * 3 + 1) & 0xffff",
    "reading": "while tl.load(flag + zero, volatile=True) == 0:\n    pass",
    "functions": "y = x.to(tl.float32)\nwhile y < 2:\n    y = tl.sin(tl.cos(y))\nx = y.to(tl.int32)",
    "tiles": "t = tl.arange(0, 256) + x\nwhile tl.sum(t) >= 0:\n    t = tl.abs(t * 5 + 1) & 0xff\nx = tl.sum(t)",
    "atomics": "while tl.atomic_add(flag, 0) == 0:\n    pass",
    "prints": "while tl.load(flag + zero, volatile=True) == 0:\n    tl.device_print('here', x)",
}
LAUNCH = """
    import time
    kernel = jit('''
        def kernel(flag, zero, out):
            x = tl.load(out + tl.program_id(0))
            {body}
            tl.store(out + tl.program_id(0), x)
    ''')
    threads = None
    for grid in {grids}:
        flag, out = np.zeros(1, np.int32), np.zeros(64, np.int32)
        kernel.warmup(flag, 0, out, grid=(1,))
        soonest(lambda: interrupted(lambda: kernel[grid](flag, 0, out)))
        started = time.process_time()
        time.sleep(0.2)
        assert time.process_time() - started < 0.1, "a thread runs on"
        check_health()
        now = len(os.listdir("/proc/self/task"))
        assert threads in (None, now)
        threads = now
"""


@pytest.mark.parametrize("target", ["cpu", "sim:80"])
@pytest.mark.parametrize("name", ENDLESS)
def test_endless_kernels(name, target):
    body = ENDLESS[name].replace("\n", "\n" + " " * 12)
    grids = [(1,), (2,), (64,)]
    run(LAUNCH.format(body=body, grids=grids), target)


def test_with_one_thread_and_with_many():
    body = ENDLESS["computing"].replace("\n", "\n" + " " * 12)
    for threads in "1", "5":
        run(LAUNCH.format(body=body, grids=[(1,), (64,)]), TRITON_CPU_THREADS=threads)


def test_a_handler_that_raises_nothing_lets_the_kernel_go_on():
    run("""
        import signal, time
        kernel = jit('''
            def kernel(flag, out):
                while tl.load(flag, volatile=True) == 0:
                    pass
                tl.store(out + tl.program_id(0), 1)
        ''')
        flag, out = np.zeros(1, np.int32), np.zeros(8, np.int32)
        def handle(number, frame):
            flag[0] = 1
        signal.signal(signal.SIGINT, handle)
        def late():
            flag[0] = 0
            timer, due = interrupt_after(0.3), time.monotonic() + 0.3
            timer.start()
            kernel[(8,)](flag, out)
            seconds = time.monotonic() - due
            timer.join()
            return seconds
        soonest(late)
        assert out.all()
    """)


@pytest.mark.parametrize("target", ["cpu", "sim:80"])
def test_other_exceptions_of_handlers_and_launches_in_them(target):
    run(
        """
        import signal
        kernel = jit('''
            def kernel(flag, zero):
                while tl.load(flag + zero, volatile=True) == 0:
                    pass
        ''')
        class Late(Exception): pass
        def handle(number, frame):
            check_health()
            raise Late
        signal.signal(signal.SIGALRM, handle)
        for _ in range(3):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.2)
                kernel[(4,)](np.zeros(1, np.int32), 0)
                raise AssertionError
            except Late:
                check_health()
        """,
        target,
    )


def test_a_launch_in_another_thread_goes_on():
    run("""
        import time
        kernel = jit('''
            def kernel(flag, out):
                while tl.load(flag, volatile=True) == 0:
                    pass
                tl.store(out + tl.program_id(0), 1)
        ''')
        flag, out = np.zeros(1, np.int32), np.zeros(8, np.int32)
        thread = threading.Thread(target=kernel[(8,)], args=(flag, out))
        thread.start()
        soonest(lambda: interrupted(lambda: time.sleep(5)))
        # One in the main thread, while the other one has the pool.
        soonest(lambda: interrupted(lambda: kernel[(8,)](np.zeros(1, np.int32), np.zeros(8, np.int32))))
        assert thread.is_alive() and not out.any()
        flag[0] = 1
        thread.join()
        assert out.all()
        check_health()
    """)


@pytest.mark.parametrize("target", ["cpu", "sim:80"])
def test_launches_in_handlers_disturb_nothing(target):
    run(
        """
        import signal
        sort = jit('''
            def sort(x, out, n, SIZE: tl.constexpr):
                i = tl.arange(0, SIZE)
                t = tl.load(x + i)
                while n > 0:
                    t = tl.cumsum(tl.flip(t, 0)) & 0xffff
                    n -= tl.load(out + SIZE, volatile=True)
                tl.store(out + i, t)
        ''')
        def go(steps, step, out):
            out[-1] = step
            sort[(1,)](x, out, steps, SIZE=256)
            return out.copy()
        x = np.arange(256, dtype=np.int32)
        steps = 1
        while True:
            started = time.monotonic()
            expected = go(steps, 1, np.zeros(257, np.int32))
            if time.monotonic() - started > 0.4: break
            steps *= 2
        seen = []
        def handle(number, frame):
            seen.append(go(5, 1, np.zeros(257, np.int32)))
            check_health()
            signal.setitimer(signal.ITIMER_REAL, 0.1)
        signal.signal(signal.SIGALRM, handle)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        got = go(steps, 1, np.zeros(257, np.int32))
        signal.setitimer(signal.ITIMER_REAL, 0)
        np.testing.assert_array_equal(got, expected)
        assert seen
        np.testing.assert_array_equal(seen[0], go(5, 1, np.zeros(257, np.int32)))
        """,
        target,
    )


# Compilations are interrupted by the processor's time, for how long they take by a clock depends on who else has it.
COMPILE = """
    import time
    def memory():
        return int(open("/proc/self/statm").read().split()[1]) * 4096 >> 20
    def count_threads():
        return len(os.listdir("/proc/self/task"))
    SIZE = 4000  # takes several times the 50 ms after which a compilation looks for signals
    x = np.zeros(SIZE, np.int32)
    body = "".join(f"    a = a * n + tl.load(x + {i})\\n" for i in range(SIZE))
    def make():
        return jit("def long(x, n):\\n    a = n\\n" + body + "    tl.store(x, a)\\n")
    def compile_one(seconds=0):
        "How much later a compilation ended than it was interrupted, after so many seconds; None if it was not."
        kernel, started, late = make(), time.process_time(), None
        try:
            signal.setitimer(signal.ITIMER_PROF, seconds)
            kernel.warmup(x, 3, grid=(1,))
            signal.setitimer(signal.ITIMER_PROF, 0)
        except KeyboardInterrupt:
            late = time.process_time() - started - seconds
        if kernel.variants(): # it was compiled when the interrupt came
            needed.append(time.process_time() - started)
            return None
        return late
    def interrupt_at(part):
        "Of the time that compiling takes, of which what was measured before may have been too much."
        for _ in range(5):
            late = compile_one(part * min(needed))
            if late is not None:
                return late
        raise AssertionError(needed)
    signal.signal(signal.SIGPROF, signal.default_int_handler)
    check_health()
    threads, needed = count_threads(), []
    compile_one()
"""


@pytest.mark.parametrize("target", ["cpu", "sim:80"])
def test_compilations(target):
    run(
        COMPILE
        + """
    for part in 0.03, 0.1, 0.3, 0.7:
        assert interrupt_at(part) < 0.2
        check_health()
    """,
        target,
    )


def test_a_compilation_leaves_nothing():
    run(
        COMPILE
        + """
    def give_up_one():
        interrupt_at(0.3)
        while count_threads() > threads:
            time.sleep(0.05)
    give_up_one()
    before = memory()
    for _ in range(8):  # of 20 MB and more each; what lies between them in the allocator's memory differs
        give_up_one()
    assert memory() - before < 120, (before, memory())
    kernel = make()
    kernel[(1,)](x, 3)
    wrapped = 3 ** (SIZE + 1) % (1 << 32)
    assert x[0] == wrapped - (wrapped >> 31 << 32)
    """
    )


@pytest.mark.parametrize("part", [0.5, *(pytest.param(part, marks=pytest.mark.slow) for part in (0.05, 0.3, 0.8))])
def test_an_exit_while_a_compilation_is_given_up(part):
    run(COMPILE + f"    interrupt_at({part})")
