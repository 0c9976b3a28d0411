"""Accesses that the hardware refuses: an exception that names kernel, program and line, and a process that lives on.

Each test is a process of its own, so that a handler that fails is seen as the death of one.
"""

import signal
import textwrap

import pytest
from processes import run

ACCESSES = {
    "load of a scalar": ("read", "tl.store(out, tl.load(bad))  # fails"),
    "store of a scalar": ("write", "tl.store(bad, 1.0)  # fails"),
    "load of a tile": ("read", "x = tl.load(bad + i)  # fails\ntl.store(out + i, x * 2)"),
    "store of a tile": ("write", "x = tl.load(good + i)\ntl.store(bad + i, x * 2)  # fails"),
    "masked load": ("read", "x = tl.load(bad + i, mask=i < n, other=1)  # fails\ntl.store(out + i, x)"),
    "masked store": ("write", "tl.store(bad + i, i.to(tl.float32), mask=i < n)  # fails"),
    "gather": ("read", "x = tl.load(bad + i * i)  # fails\ntl.store(out + i, x)"),
    "scatter": ("write", "tl.store(bad + i * i, 1.0)  # fails"),
    "transposed": (
        "read",
        "j = tl.arange(0, 16)\nx = tl.load(bad + j[None, :] * 16 + j[:, None])  # fails\n"
        "tl.store(out + j[:, None] * 16 + j[None, :], x)",
    ),
    "the first of two": (
        "read",
        "x = tl.load(bad + i)  # fails\ny = tl.load(good + i)\ntl.store(out + i, tl.exp(x) - tl.exp(y))",
    ),
    "the second of two": (
        "read",
        "x = tl.load(good + i)\ny = tl.load(bad + i)  # fails\ntl.store(out + i, tl.exp(x) - tl.exp(y))",
    ),
    "an atomic": ("write", "tl.atomic_add(bad + i, 1.0)  # fails"),
    "an atomic without instruction": ("", "tl.atomic_max(bad + i, 1.0)  # fails"),
    "an exchange": ("write", "tl.atomic_xchg(bad, 1.0)  # fails"),
    "an operand of a product": (
        "read",
        "j = tl.arange(0, 16)\nk = j[:, None] * 16 + j[None, :]\nb = tl.load(good + k)\n"
        "a = tl.load(bad + k)  # fails\ntl.store(out + k, tl.dot(a, b))",
    ),
    "in a loop": (
        "read",
        "s = 0.0\nfor k in range(n):\n    s += tl.sum(tl.load(bad + k * 64 + i))  # fails\ntl.store(out, s)",
    ),
    "summed": ("read", "tl.store(out, tl.sum(tl.load(bad + i)))  # fails"),
}


def test_every_access_names_its_line():
    cases = {
        name: (verb, "def kernel(bad, good, out, n, SIZE: tl.constexpr):\n    i = tl.arange(0, SIZE)\n" + body)
        for name, (verb, code) in ACCESSES.items()
        for body in [textwrap.indent(code, "    ")]
    }
    run(f"""
        good, out = np.ones(1 << 18, np.float32), np.zeros(1 << 18, np.float32)
        wrong = []
        for name, (verb, source) in {cases!r}.items():
            kernel = jit(source)
            bad = hole(access=READ if verb == "write" else NOTHING)
            message = failure(kernel, (3,), bad, good, out, 256, SIZE=256)
            if marked_line(kernel) not in message or f"{{verb}} " not in message or "TRITON_DEBUG=1" not in message:
                wrong.append((name, marked_line(kernel), message))
            address = int(re.search("0x([0-9a-f]+)", message)[1], 16)
            assert bad.ctypes.data <= address < bad.ctypes.data + bad.nbytes, (name, message)
        assert not wrong, wrong
        check_health()
    """)


def test_one_of_two_operands_names_both_where_it_may_be_either():
    # The machine reads one of them in the instruction that adds.
    run("""
        kernel = jit('''
            def kernel(x, y, out, SIZE: tl.constexpr):
                i = tl.arange(0, SIZE)
                a = tl.load(x + i)
                b = tl.load(y + i)
                tl.store(out + i, a + b)
        ''')
        good, out = np.ones(64, np.float32), np.zeros(64, np.float32)
        for arguments, line in [((hole(), good, out), 3), ((good, hole(), out), 4)]:
            assert re.search(rf":{line}\\b", failure(kernel, (1,), *arguments, SIZE=64).split(": ")[1])
    """)


def test_kernels_of_thousands_of_statements():
    """Their code is cut into many functions."""
    run("""
        for number in (10, 2000, 3990):
            lines = [f"    a = (a * {i + 3}) ^ (n + {i})" for i in range(4000)]
            lines.insert(number, "    a += tl.load(bad + (a & 7))  # fails")
            kernel = jit("def kernel(bad, out, n):\\n    a = n\\n" + "\\n".join(lines) + "\\n    tl.store(out, a)")
            message = failure(kernel, (1,), hole(np.int32), np.zeros(1, np.int32), 3)
            assert marked_line(kernel) in message and "read " in message, (number, message)
        check_health()
    """)


def test_the_program_that_failed():
    run("""
        kernel = jit('''
            def kernel(x, bad, place, SIZE: tl.constexpr):
                number = (tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)) * tl.num_programs(0)
                number += tl.program_id(0)
                i = number * SIZE + tl.arange(0, SIZE)
                tl.store(x + i, i)
                if number == place:
                    tl.store(bad, 1)  # fails
        ''')
        x = np.zeros(64 * 7 * 5 * 3, np.int32)
        for number in [0, 1, 6, 7, 52, 100, 104]:
            message = failure(kernel, (7, 5, 3), x, hole(np.int32), number, SIZE=64)
            assert program_of(message) == (number % 7, number // 7 % 5, number // 35), (number, message)
            assert marked_line(kernel) in message
        check_health()
    """)


def test_calls_that_lead_there():
    run("""
        space = jit('''
            @triton.jit
            def inlined(p):
                return tl.load(p) + 1  # fails

            @triton.jit(noinline=True)
            def called(p):
                return tl.load(p) * 2

            @triton.jit
            def kernel(p, out, INLINE: tl.constexpr):
                if INLINE:
                    x = inlined(p)
                else:
                    x = called(p)
                tl.store(out, x)
        ''')
        out = np.zeros(1, np.float32)
        place = space.source_file
        assert f"{place}:3, called at {place}:12: " in failure(space, (1,), hole(), out, INLINE=True)
        assert f"{place}:7: " in failure(space, (1,), hole(), out, INLINE=False)
    """)


def test_a_hundred_times_in_all_threads():
    run("""
        kernel = jit('''
            def kernel(bad, x, ready, SIZE: tl.constexpr):
                tl.atomic_add(ready, 1)
                while tl.atomic_add(ready, 0) < 2:  # until both halves run
                    pass
                tl.store(bad + tl.program_id(0) * SIZE + tl.arange(0, SIZE), 1.0)  # fails
        ''')
        bad = hole()
        for i in range(100):
            message = failure(kernel, (2,), bad, bad, np.zeros(1, np.int32), SIZE=64)
            assert marked_line(kernel) in message, message
            assert program_of(message)[0] in (0, 1)
            if i % 10 == 0:
                check_health()
    """)


def test_others_that_never_end_are_left():
    run("""
        kernel = jit('''
            def kernel(bad, flag, place):
                if tl.program_id(0) == place:
                    tl.store(bad, 1.0)  # fails
                while tl.load(flag, volatile=True) == 0:
                    pass
        ''')
        for i in range(20):
            assert program_of(failure(kernel, (2,), hole(), np.zeros(1, np.int32), i % 2))[0] == i % 2
        check_health()
    """)


def test_threads_of_the_program():
    run("""
        kernel = jit('''
            def kernel(bad, SIZE: tl.constexpr):
                tl.store(bad + tl.arange(0, SIZE), 1.0)  # fails
        ''')
        messages = []
        def work():
            for _ in range(25):
                messages.append(failure(kernel, (4,), hole(), SIZE=64))
                check_health()
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert len(messages) == 100 and all(marked_line(kernel) in message for message in messages)
    """)


def test_a_file_that_became_shorter(tmp_path):
    run(f"""
        path = {str(tmp_path / "array")!r}
        np.zeros(1 << 20, np.float32).tofile(path)
        x = np.memmap(path, np.float32, "r+")
        os.truncate(path, 4096)
        kernel = jit('''
            def kernel(x, SIZE: tl.constexpr):
                tl.store(x + 100000 + tl.arange(0, SIZE), 1.0)  # fails
        ''')
        assert marked_line(kernel) in failure(kernel, (1,), x, SIZE=64)
        check_health()
    """)


SIMULATED = """
    kernel = jit('''
        def kernel(addresses, out, SIZE: tl.constexpr):
            p = tl.load(addresses + tl.program_id(0)).to(tl.pointer_type(tl.float32), bitcast=True)
            i = tl.arange(0, SIZE)
            {access}  # fails
    ''')
    bad, good, out = hole(), np.ones(64, np.float32), np.zeros(64, np.float32)
    addresses = np.array([array.ctypes.data for array in (good, good, bad, good)])
    for _ in range(20):
        message = failure(kernel, (4,), addresses, out, SIZE=64)
        assert marked_line(kernel) in message and program_of(message) == (2, 0, 0), message
    check_health()
"""


@pytest.mark.parametrize("target", ["cpu", "sim:80", "sim:90"])
@pytest.mark.parametrize(
    "access", ["tl.store(out + i, tl.load(p + i))", "tl.store(p + i, 1.0)", "tl.atomic_add(p, 1.0)"]
)
def test_pointers_that_were_loaded(access, target):
    run(SIMULATED.replace("{access}", access), target)


OTHERS = """
    kernel = jit('''
        def kernel(bad):
            tl.store(bad, 1.0)  # fails
    ''')
    def ours():
        assert marked_line(kernel) in failure(kernel, (1,), hole())
    def theirs():
        ctypes.string_at(hole(np.uint8).ctypes.data, 1)
"""


@pytest.mark.parametrize("before", [True, False])
def test_faults_of_others_are_told_by_faulthandler(before):
    enable = "    faulthandler.enable()\n"
    start = enable + "    ours()\n" if before else "    ours()\n" + enable
    said = run(OTHERS + start + "    theirs()", expect=-signal.SIGSEGV)
    assert "Segmentation fault" in said and "in theirs" in said


def test_faults_of_others_end_the_process():
    run(OTHERS + "    ours()\n    theirs()", expect=-signal.SIGSEGV)
    run(OTHERS + "    ours()\n    threading.Thread(target=theirs).start()", expect=-signal.SIGSEGV)
    run(OTHERS + "    ours()\n    os.kill(os.getpid(), 11)", expect=-signal.SIGSEGV)


def test_a_handler_that_was_installed_later():
    said = run(OTHERS + "    ours()\n    faulthandler.enable()\n    ours()\n    ours()\n    check_health()")
    assert "AssertionError" not in said


def test_handlers_of_the_program_stay():
    run(
        OTHERS
        + """
    import signal
    seen = []
    signal.signal(signal.SIGSEGV, lambda number, frame: seen.append(number))
    ours()
    os.kill(os.getpid(), signal.SIGSEGV)
    ours()
    assert seen == [signal.SIGSEGV]
    """
    )


def test_modes_of_arithmetic_stay():
    run(
        OTHERS
        + """
    import torch
    tiny = torch.full((4,), 1e-40)
    for mode in True, False:
        torch.set_flush_denormal(mode)
        ours()
        assert bool((tiny * 0.5 == 0).all()) == mode
    """
    )


def test_nothing_grows():
    run("""
        kernel = jit('''
            def kernel(bad, x, SIZE: tl.constexpr):
                i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
                tl.store(x + i, tl.load(bad + i))
        ''')
        bad, x = hole(), np.zeros(1 << 18, np.float32)
        def pages():
            return int(open("/proc/self/statm").read().split()[1])
        for i in range(120):
            if i == 40:
                before, threads = pages(), len(os.listdir("/proc/self/task"))
            failure(kernel, (256,), bad, x, SIZE=256)
        assert pages() - before < 500, pages() - before
        assert len(os.listdir("/proc/self/task")) == threads
    """)
