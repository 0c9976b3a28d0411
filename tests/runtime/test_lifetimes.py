"""Launches and compilations beside forks, threads and the end of the process, and arguments at and beyond limits."""

import pytest
from processes import run

KERNELS = """
    import signal, sys, time, traceback
    endless = jit('''
        def endless(flag, zero):
            while tl.load(flag + zero, volatile=True) == 0:
                pass
    ''')
    flag = np.zeros(1, np.int32)
    endless.warmup(flag, 0, grid=(1,))
    def compile_one(number=0, size=10):
        body = "".join(f"    a = tl.exp(a + {i + number})\\n" for i in range(size))
        jit("def k(x, n):\\n    a = tl.load(x) + n\\n" + body + "    tl.store(x, a)\\n").warmup(
            np.zeros(1, np.float32), 3, grid=(1,))
    def status_of_child(function):
        pid = os.fork()
        if pid == 0:
            signal.alarm(120)
            code = 1
            try:
                function()
                code = 0
            except BaseException:
                traceback.print_exc()
                sys.stderr.flush()
            finally:
                os._exit(code)
        status = os.waitpid(pid, 0)[1]
        if status:
            print("the child's status:", status, file=sys.stderr)
        return status
    def in_thread(function, *args, daemon=True):
        thread = threading.Thread(target=function, args=args, daemon=daemon)
        thread.start()
        return thread
    def forever(function):
        def loop():
            number = 0
            while True:
                number += 1
                function(*[number] * function.__code__.co_argcount)
        return loop
    check_health()
"""

FORKS = {
    "the child has everything": """
        def child():
            check_health()
            failure(endless, (4,), hole(np.int32), 0)
            soonest(lambda: interrupted(lambda: endless[(4,)](flag, 0)))
            check_health()
            assert status_of_child(check_health) == 0
        assert status_of_child(child) == 0
        statuses = []
        in_thread(lambda: statuses.append(status_of_child(child))).join()
        assert statuses == [0]
    """,
    "other threads launch": """
        for _ in range(3): in_thread(forever(check_health))
        assert {status_of_child(check_health) for _ in range(20)} == {0}
    """,
    "other threads compile": """
        def child():
            compile_one()
            check_health()
        for _ in range(2): in_thread(forever(compile_one))
        for _ in range(20):
            time.sleep(0.007)
            assert status_of_child(child) == 0
    """,
    "another thread reads a source": """
        reads, go_on = threading.Event(), threading.Event()
        class Lines(list):
            def __iter__(self):
                reads.set()
                go_on.wait()
                return super().__iter__()
        endless.source.__dict__.pop("block", None)
        endless.source.lines = Lines(endless.source.lines)
        thread = in_thread(lambda: endless.source.block)
        reads.wait()
        assert status_of_child(compile_one) == 0
        go_on.set()
        thread.join()
    """,
    "a compilation was given up": """
        def child():
            compile_one()
            check_health()
        try: interrupted(lambda: compile_one(size=600), 0.15)
        except AssertionError: pass
        assert status_of_child(child) == 0
    """,
}


@pytest.mark.parametrize("name", FORKS)
def test_forks(name):
    run(KERNELS + FORKS[name].replace("\n    ", "\n"))


EXITS = {
    "threads launch": "for _ in range(3): in_thread(lambda: [check_health() for _ in range(20)], daemon=False)",
    "daemons launch": "for _ in range(3): in_thread(forever(check_health))",
    "daemons run without end": "for _ in range(2): in_thread(endless[(4,)], flag, 0)",
    "daemons compile": "for _ in range(3): in_thread(forever(lambda number: compile_one(number, 100)))",
    "a daemon compiles for long": "in_thread(compile_one, 0, 1000)",
    "functions at exit launch": "import atexit; atexit.register(check_health); atexit.register(compile_one)",
    "a handler exits": "signal.signal(signal.SIGALRM, lambda *_: sys.exit(0)); signal.alarm(1); endless[(4,)](flag, 0)",
}


@pytest.mark.parametrize("delay", [0.1, *(pytest.param(delay, marks=pytest.mark.slow) for delay in (0, 0.23))])
@pytest.mark.parametrize("name", EXITS)
def test_exits(name, delay):
    run(KERNELS + f"    {EXITS[name]}\n    time.sleep({delay})")


@pytest.mark.parametrize("delay", [0.1, *(pytest.param(delay, marks=pytest.mark.slow) for delay in (0.02, 0.3))])
def test_exits_while_daemons_compile_for_a_gpu(delay):
    """LLVM, which takes itself down at exit, is first used there."""
    run(
        f"""
    import time
    def compile_one(number=0, size=100):
        body = "".join(f"    a = tl.exp(a + {{i + number}})\\n" for i in range(size))
        jit("def k(x, n):\\n    a = tl.load(x) + n\\n" + body + "    tl.store(x, a)\\n").warmup(
            triton.MockTensor(tl.float32), 3, grid=(1,))
    def compile_all():
        for number in range(10**6): compile_one(number)
    threads = [threading.Thread(target=compile_all, daemon=True) for _ in range(3)]
    for thread in threads: thread.start()
    time.sleep({delay})
    assert all(thread.is_alive() for thread in threads)
    """,
        target="cuda:90",
    )


def test_a_kernel_without_end_is_terminated():
    run(
        KERNELS + "    threading.Timer(0.3, os.kill, [os.getpid(), 15]).start()\n    endless[(4,)](flag, 0)", expect=-15
    )


def test_autotuning_is_interrupted():
    run(
        KERNELS
        + """
    body = "".join(f"    a = tl.exp(a + {i})\\n" for i in range(300))
    text = "def k(x, SIZE: tl.constexpr):\\n    a = tl.load(x + tl.arange(0, SIZE))\\n" + body
    kernel = jit(text + "    tl.store(x + tl.arange(0, SIZE), a)\\n")
    tuned = triton.autotune([triton.Config({"SIZE": 16 + 4 * i}) for i in range(100)], key=[])(kernel)
    soonest(lambda: interrupted(lambda: tuned[(1,)](np.zeros(4096, np.float32))))
    check_health()
    """
    )


@pytest.mark.parametrize("target", ["cpu", "sim:80"])
def test_grids_and_arrays_at_their_limits(target):
    run(
        """
        one = jit("def one(p, n):\\n    tl.store(p, n)\\n")
        x = np.zeros(4, np.int32)
        for grid in [(2**31,), (1, 2**63), (1, 1, 2**64), (-1,), (2**31 - 1,) * 3]:
            try:
                one[grid](x, 1)
                raise AssertionError(grid)
            except ValueError as error:
                assert "grid" in str(error)
        for grid in [(2**31 - 1,), (1, 2**31 - 1), (2**20,) * 3]:
            soonest(lambda: interrupted(lambda: one[grid](x, 1)))
        for grid in [(0,), (2**31 - 1, 0), (2**31 - 1, 2**31 - 1, 0)]:
            one[grid](x, 7)
        assert x[0] == 1
        copy = jit('''
            def copy(p, q, n, SIZE: tl.constexpr):
                i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
                tl.store(q + i, tl.load(p + i, mask=i < n), mask=i < n)
        ''')
        import torch
        for make in np.zeros, torch.zeros:
            for shape in [(0,), (0, 5), (5, 0)]:
                copy[(4,)](make(shape), make(shape), 0, SIZE=64)
        check_health()
        """,
        target,
    )


def test_nothing_at_address_0():
    run("""
        kernel = jit('''
            def kernel(p):
                tl.store(p, 1)  # fails
        ''')
        import torch
        try:
            message = failure(kernel, (1,), torch.zeros(0, dtype=torch.int32))
            assert marked_line(kernel) in message and "(0x0)" in message
        except ValueError as error:
            assert "memory" in str(error)
    """)


@pytest.mark.parametrize("target", ["cpu", "sim:80"])
def test_many_arguments(target):
    run(
        """
        x = np.zeros(4, np.int32)
        for count in [31, 32, 33, 63, 64, 65, 255, 256, 257, 3000]:
            names = ", ".join(f"p{i}" for i in range(count))
            last = jit(f"def last({names}):\\n    tl.store(p0, p{count - 1})\\n")
            last[(1,)](x, *range(2, count + 1))
            assert x[0] == count
            arrays = jit(f"def arrays({names}):\\n    tl.store(p0, tl.load(p{count - 1}))\\n")
            arrays[(1,)](x, *[np.full(4, i, np.int32) for i in range(2, count + 1)])
            assert x[0] == count
        last = jit("def last(p, t):\\n    tl.store(p, t[-1])\\n")
        for count in [33, 65, 10000]:
            last[(1,)](x, tuple(range(2, count + 2)))
            assert x[0] == count + 1
        deep = 3
        for _ in range(2000):
            deep = (deep,)
        try:
            last[(1,)](x, deep)
            raise AssertionError
        except RecursionError:
            pass
        check_health()
        """,
        target,
    )


@pytest.mark.parametrize("stack", [None, 256 << 10])
def test_deep_programs(stack):
    # What Python itself refuses to parse is left out; it is parsed where the stack is large.
    run(f"""
        def nested(n):
            yield "-" * n + "n"
            yield "n" + " + n" * n
            yield "n" + " ** 1" * n
            yield "n if n == 0 else " * n + "n"
            yield "n" + " < n" * n
            yield "n" + " and n" * n
            for before, after in [("(", ")"), ("tl.abs(", ")"), ("[", "]"), ("(", ",)")]:
                yield before * n + "n" + after * n
        def sources():
            for n in 90, 190, 900, 10000:
                for text in nested(n):
                    yield f"def k(p, n):\\n    x = {{text}}\\n    tl.store(p, n)\\n"
                for mark in "@triton.jit", "@triton.jit(noinline=True)":
                    calls = "".join(f"{{mark}}\\ndef f{{i + 1}}(x):\\n    return f{{i}}(x) + 1\\n" for i in range(n))
                    first = f"{{mark}}\\ndef f0(x):\\n    return x\\n"
                    yield first + calls + f"@triton.jit\\ndef k(p, n):\\n    tl.store(p, f{{n}}(n))\\n"
        kernels = []
        for source in sources():
            try:
                kernels.append(jit(source))
                kernels[-1].parse()
            except (SyntaxError, RecursionError, MemoryError):
                pass
        assert len(kernels) > 30
        ends = []
        def launch():
            for kernel in kernels:
                try:
                    kernel[(1,)](np.zeros(1, np.int32), 2)
                    ends.append("ran")
                except triton.CompilationError as error:
                    ends.append(error.message)
        if {stack}:
            threading.stack_size({stack})
            thread = threading.Thread(target=launch)
            thread.start()
            thread.join()
        else:
            launch()
        assert len(ends) == len(kernels) and "ran" in ends
        assert any("nested" in end for end in ends)
        check_health()
    """)


def test_the_collector_of_a_child_forked_while_a_program_is_read():
    run(
        KERNELS
        + """
    import gc
    states = []
    @triton.constexpr_function
    def fork():
        states.append(gc.isenabled())
        def look():
            assert gc.isenabled()
        states.append(status_of_child(look))
        return 1
    reads = jit("def reads(x):\\n    tl.store(x, fork())\\n", fork=fork)
    reads.warmup(np.zeros(1, np.float32), grid=(1,))
    assert states == [False, 0], states
    assert gc.isenabled()
    gc.disable()
    def stays():
        assert not gc.isenabled()
    assert status_of_child(stays) == 0
    """
    )
