"""How long a launch may take, from what the compiler counts in a program before compiling it.

Rough on purpose: it decides which configurations are tried first, and never which one wins. `work` and `facts` are what
`survey` returns; see csrc/python/survey.c.
"""

import math


class CPUModel:
    """Nanoseconds of one core. The products' micro-kernel packs its operands and goes over the sums once a step."""

    MULTIPLICATION, OPERAND_BYTE, SUM_BYTE = 0.02, 0.008, 0.013
    OPERATION, BYTE, EXCHANGED, ROUND, PROGRAM = 0.005, 0.008, 0.3, 5, 300

    def __init__(self, threads):
        self.threads = threads

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
    """Clocks of a multiprocessor: the slowest of its tensor cores, shared memory, second-level cache and arithmetic,
    and what of the memory's latency neither other programs nor stages hide."""

    REGISTERS, THREADS, LATENCY, LAUNCH, OVERHEAD_REGISTERS = 65536, 2048, 800, 4000, 40

    def __init__(self, properties):
        self.count = properties["multiprocessor_count"]
        self.shared = properties.get("max_shared_mem_per_multiprocessor") or properties["max_shared_mem"]
        self.clock = properties.get("sm_clock_rate") or 1_500_000  # kHz
        self.capability = properties["capability"]
        # Of 16-bit operands, a clock: half the operations of triton.testing.get_max_tensorcore_tflops.
        self.products = {75: 512, 80: 1024, 86: 512, 89: 512, 90: 2048, 100: 4096}.get(self.capability, 512)

    def resident(self, facts, warps):
        """Programs on a multiprocessor at the same time."""
        threads = warps * 32
        registers = min(255, facts["registers"] + self.OVERHEAD_REGISTERS)
        limits = [self.REGISTERS // (threads * registers), self.THREADS // threads, 32]
        if facts["shared"]:
            limits.append(self.shared // (facts["shared"] + 1024))
        return max(1, min(limits))

    def milliseconds(self, work, facts, options, programs):
        warps, stages = options["num_warps"], options["num_stages"]
        resident = min(self.resident(facts, warps), max(1, math.ceil(programs / self.count)))
        width = max(work["operand_width"], 1)
        tensor = work["multiplications"] * width / 2 / self.products
        if "rows" not in facts["choices"]:  # products of the threads' own multiply-adds
            tensor = work["multiplications"] / 128
        copies = 1 if "wgmma" in facts["choices"] and options.get("wgmma", 1) else math.sqrt(warps)
        shared = work["operand_bytes"] * (1 + copies) / 128
        level_2 = (work["loaded_bytes"] + work["stored_bytes"]) / 48
        plain = (work["operations"] + 4 * work["exchanged"]) / 128 + work["atomics"] / 4
        busy = max(tensor, shared, level_2) + plain
        ahead = max(1, stages - 1) if work["multiplications"] else 1
        waiting = (work["rounds"] + 1) * self.LATENCY / ahead
        spilled = max(0, facts["registers"] + self.OVERHEAD_REGISTERS - 255)
        one_round = max(busy * resident, busy + waiting) * (1 + spilled / 32)
        waves = math.ceil(programs / (self.count * resident))
        return (waves * one_round + self.LAUNCH) / self.clock
