"""How long a launch may take, from what the compiler counts in a program before compiling it.

Rough on purpose: it decides which configurations are tried first, and never which one wins. `work` and `facts` are what
`survey` returns; see csrc/python/survey.c.
"""

import math


class CPUModel:
    """Nanoseconds of one core. The products' micro-kernel packs its operands and goes over the sums once a step."""

    MULTIPLICATION, OPERAND_BYTE, SUM_BYTE = 0.02, 0.008, 0.013
    OPERATION, BYTE, EXCHANGED, ROUND, PROGRAM = 0.005, 0.008, 0.3, 5, 300

    multiprocessors = 0  # there are none

    def __init__(self, threads):
        self.threads = threads

    def spills(self, facts, options):
        return False  # it does, to a cache that is near

    takes_long = spills

    def effort(self, facts):
        return 1  # there are no options that it depends on

    def milliseconds(self, work, facts, options, programs):
        one = (
            work["multiplications"] * self.MULTIPLICATION
            + work["operand_bytes"] * self.OPERAND_BYTE
            + work["sum_bytes"] * self.SUM_BYTE
            + work["operations"] * self.OPERATION
            + (work["loaded_bytes"] + work["stored_bytes"]) * self.BYTE
            + (work["exchanged"] + 4 * work["atomics"]) * self.EXCHANGED
            + work["rounds"] * self.ROUND
            + self.PROGRAM
        )
        return math.ceil(programs / self.threads) * one * 1e-6


class GPUModel:
    """Clocks of a multiprocessor: the slowest of its tensor cores, shared memory and second-level cache, its
    arithmetic, and what of the memory's latency neither other programs nor loads ahead hide. The numbers were fitted to
    the times of 2000 points of eleven kernels on an H200 (`benchmarks/space.py`)."""

    REGISTERS, MOST_REGISTERS, THREADS, LAUNCH = 65536, 255, 2048, 4000
    OVERHEAD_REGISTERS, ADDRESSES = 38, 8  # beside tiles: what is likely, and the least in the loop of a product
    TIGHT, SAVED = 0.9, 120  # of the registers, where ptxas begins to save; so many saved take twice as long
    LATENCY, ROUND, PROGRAM = 1100, 40, 500  # of memory; beside its work, of an iteration and of a program
    LEVEL_2, SHARED, CROSSED, ARITHMETIC = 48, 128, 36, 64  # bytes a clock; operations a clock
    MMA = 0.25  # of the tensor cores' speed, where `wgmma` has all of it
    ENOUGH_WARPS = 4  # for the schedulers to have something to do

    def __init__(self, properties):
        self.multiprocessors = properties["multiprocessor_count"]
        self.shared = properties.get("max_shared_mem_per_multiprocessor") or properties["max_shared_mem"]
        self.clock = properties.get("sm_clock_rate") or 1_500_000  # kHz
        self.capability = properties["capability"]
        # Of 16-bit operands, a clock: half the operations of triton.testing.get_max_tensorcore_tflops.
        self.products = {75: 512, 80: 1024, 86: 512, 89: 512, 90: 2048, 100: 4096}.get(self.capability, 512)

    def resident(self, facts, warps):
        """Programs on a multiprocessor at the same time."""
        threads = warps * 32
        registers = min(self.MOST_REGISTERS, facts["registers"] + self.OVERHEAD_REGISTERS)
        limits = [self.REGISTERS // (threads * registers), self.THREADS // threads, 32]
        if facts["shared"]:
            limits.append(self.shared // (facts["shared"] + 1024))
        return max(1, min(limits))

    def spills(self, facts, options):
        """Whether the tiles, and addresses beside those of a product, take more registers than a thread gets."""
        return facts["registers"] + (self.ADDRESSES if facts["tensor_cores"] else 0) > self._registers(options)

    def takes_long(self, facts, options):
        """To compile: where ptxas has to save registers."""
        return self._saved(facts, options) > 0

    def effort(self, facts):
        """Of compiling, beside other points of the kernel: a thread's code has a copy of most operations for each
        register of its tiles."""
        return facts["registers"] + self.OVERHEAD_REGISTERS

    def _saved(self, facts, options):
        """Registers that ptxas would like to have, and does without."""
        return max(0, facts["registers"] + self.OVERHEAD_REGISTERS - self.TIGHT * self._registers(options))

    def _registers(self, options):
        """Of a thread, if a program has its place on a multiprocessor, or so many as the compiler is asked for."""
        threads = 32 * options["num_warps"] * max(1, options.get("programs", 1))
        return min(self.REGISTERS // threads, self.MOST_REGISTERS)

    def milliseconds(self, work, facts, options, programs):
        warps, ahead = options["num_warps"], facts["ahead"]
        resident = min(self.resident(facts, warps), max(1, math.ceil(programs / self.multiprocessors)))
        has_wgmma = "wgmma" in facts["choices"] and options.get("wgmma", 1)
        copies = math.sqrt(max(1, warps / self.ENOUGH_WARPS) if has_wgmma else warps)  # of operands, read in turn
        if facts["tensor_cores"]:
            speed = self.products if has_wgmma or self.capability < 90 else self.products * self.MMA
            if not has_wgmma:  # each scheduler has a tensor core of its own
                speed *= min(1, warps * resident / self.ENOUGH_WARPS)
            product = work["multiplications"] * max(work["operand_width"], 1) / 2 / speed
        else:  # of the threads' own multiply-adds
            product = work["multiplications"] / self.ARITHMETIC
        shared = work["operand_bytes"] * (copies + (ahead > 0)) / self.SHARED
        level_2 = (work["loaded_bytes"] + work["stored_bytes"]) / self.LEVEL_2
        idle = math.sqrt(max(1, self.ENOUGH_WARPS / (warps * resident)))
        plain = (work["operations"] + 2.4 * work["exchanged"]) / self.ARITHMETIC * idle + work["atomics"] / 4
        plain += facts["crossed"] / self.CROSSED + work["rounds"] * self.ROUND + self.PROGRAM
        if ahead:  # all at the same time, nearly
            busy = max(product, shared, level_2) + 0.1 * min(product, level_2) + plain
        else:
            busy = (product + shared + level_2 if product else level_2) + plain
        # What is loaded ahead is under way from the start, for as many iterations.
        waiting = (max(0, work["rounds"] - ahead) / max(1, ahead) + 1) * self.LATENCY
        one_round = max(busy * resident, busy + waiting) * (1 + self._saved(facts, options) / self.SAVED)
        rounds = programs / (self.multiprocessors * resident)
        if rounds > 1:  # the last is seldom as bad as it looks, as programs do not end together
            rounds = (rounds + math.ceil(rounds)) / 2
        return (max(rounds, 1) * one_round + self.LAUNCH) / self.clock
