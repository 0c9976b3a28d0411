"""How good the search of a space is: `configs="auto"` beside timing every point, for kernels of several kinds.

A row's `ours` is how long the search takes from nothing, its peer how long it takes to compile and time every point of
the space (hopeless ones are given up early there too, as in any list); of a space of more than --points points, so many
are timed that a seed chooses, with the half that the cost model likes best, and their seconds count for all in
proportion. `of the best` is the time of the best point of both over that of the point which the search found, all of
these timed once more in turns. The JSON holds each point with its time. With that, --judge FILE says on any machine how
the cost model orders the points, and what a search would find and time: neither a GPU nor a compilation is needed.
"""

import heapq
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

import report

GOAL = 10  # times as fast as timing every point
TURNS = 15  # of timing the best again
OURS = str(report.ROOT / "python")

# ---- the kernels; whoever imports this module for its list of cases need not have torch


def kernels():
    import torch
    import tuning

    import triton
    import triton.language as tl

    half, single, fp8 = torch.float16, torch.float32, torch.float8_e4m3fn
    forward = report.tutorial("06_fused_attention").forward_kernel
    forward.fn.__annotations__.update(BLOCK_M=triton.tunable(32, 128), BLOCK_N=triton.tunable(32, 128))
    forward = triton.jit(forward.fn)
    matmul = tuning.make_kernel()

    @triton.jit
    def softmax(x_ptr, y_ptr, rows, columns, BLOCK: tl.constexpr, ROWS: triton.tunable([1, 2, 4, 8, 16])):
        row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        column = tl.arange(0, BLOCK)
        inside = (row[:, None] < rows) & (column[None, :] < columns)
        x = tl.load(x_ptr + row[:, None] * columns + column[None, :], mask=inside, other=-float("inf")).to(tl.float32)
        e = tl.exp(x - tl.max(x, axis=1)[:, None])
        tl.store(y_ptr + row[:, None] * columns + column[None, :], e / tl.sum(e, axis=1)[:, None], mask=inside)

    @triton.jit
    def layer_norm(x_ptr, y_ptr, w_ptr, b_ptr, rows, columns, eps, BLOCK: triton.tunable(128, 16384)):
        row = tl.program_id(0).to(tl.int64) * columns
        sums = tl.zeros((BLOCK,), tl.float32)
        squares = tl.zeros((BLOCK,), tl.float32)
        for start in range(0, columns, BLOCK):
            column = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + row + column, mask=column < columns, other=0.0).to(tl.float32)
            sums += x
            squares += x * x
        mean = tl.sum(sums) / columns
        scale = tl.rsqrt(tl.sum(squares) / columns - mean * mean + eps)
        for start in range(0, columns, BLOCK):
            column = start + tl.arange(0, BLOCK)
            inside = column < columns
            x = tl.load(x_ptr + row + column, mask=inside, other=0.0).to(tl.float32)
            w = tl.load(w_ptr + column, mask=inside)
            b = tl.load(b_ptr + column, mask=inside)
            tl.store(y_ptr + row + column, (x - mean) * scale * w + b, mask=inside)

    @triton.jit
    def column_sums(
        x_ptr, y_ptr, rows, columns, BLOCK: triton.tunable(16, 256), ROWS: triton.tunable(8, 128),
        STEPS: triton.tunable([4, 16, 64, 256]),
    ):  # fmt: skip
        column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        sums = tl.zeros((ROWS, BLOCK), tl.float32)
        for step in range(STEPS):
            row = (tl.program_id(1) * STEPS + step) * ROWS + tl.arange(0, ROWS)
            inside = (row[:, None] < rows) & (column[None, :] < columns)
            sums += tl.load(x_ptr + row[:, None] * columns + column[None, :], mask=inside, other=0.0)
        tl.atomic_add(y_ptr + column, tl.sum(sums, axis=0), mask=column < columns)

    @triton.jit
    def transpose(x_ptr, y_ptr, rows, columns, BM: triton.tunable(8, 256), BN: triton.tunable(8, 256)):
        row = tl.program_id(0) * BM + tl.arange(0, BM)
        column = tl.program_id(1) * BN + tl.arange(0, BN)
        inside = (row[:, None] < rows) & (column[None, :] < columns)
        x = tl.load(x_ptr + row[:, None] * columns + column[None, :], mask=inside)
        tl.store(y_ptr + column[:, None] * rows + row[None, :], x.T, mask=inside.T)

    def empty(device, dtype, *shape):
        return torch.empty(shape, dtype=dtype, device=device)

    def filled(device, dtype, *shape):
        return torch.randn(shape, device=device).to(dtype) if device != "cpu" else empty(device, dtype, *shape)

    def product(dtype, result, m, n, k):
        def make(device):
            a, b, c = filled(device, dtype, m, k), filled(device, dtype, k, n), empty(device, result, m, n)
            return matmul, lambda meta: (triton.cdiv(m, meta["BM"]) * triton.cdiv(n, meta["BN"]),), (
                a, b, c, m, n, k, k, n, n,
            ), {}  # fmt: skip

        return make

    def attention(heads, n, columns, causal):
        def make(device):
            q, k, v = (filled(device, half, heads, n, columns) for _ in range(3))
            o, logsum = empty(device, half, heads, n, columns), empty(device, single, heads, n)
            arguments = o, logsum, q, k, v, n, columns, 1, columns**-0.5
            given = {"D": columns, "CAUSAL": causal}
            return forward, lambda meta: (triton.cdiv(n, meta["BLOCK_M"]), heads), arguments, given

        return make

    def rows_of(kernel, dtype, rows, columns):
        def make(device):
            x, y = filled(device, dtype, rows, columns), empty(device, dtype, rows, columns)
            if kernel is softmax:
                block = triton.next_power_of_2(columns)
                return softmax, lambda meta: (triton.cdiv(rows, meta["ROWS"]),), (x, y, rows, columns), {"BLOCK": block}
            w, b = filled(device, dtype, columns), filled(device, dtype, columns)
            return layer_norm, lambda meta: (rows,), (x, y, w, b, rows, columns, 1e-5), {}

        return make

    def sums_of(rows, columns):
        def make(device):
            x, y = filled(device, single, rows, columns), empty(device, single, columns).zero_()

            def grid(meta):
                return triton.cdiv(columns, meta["BLOCK"]), triton.cdiv(rows, meta["ROWS"] * meta["STEPS"])

            return column_sums, grid, (x, y, rows, columns), {}

        return make

    def transposed(dtype, rows, columns):
        def make(device):
            x, y = filled(device, dtype, rows, columns), empty(device, dtype, columns, rows)

            def grid(meta):
                return triton.cdiv(rows, meta["BM"]), triton.cdiv(columns, meta["BN"])

            return transpose, grid, (x, y, rows, columns), {}

        return make

    return {
        "product fp16 4096³": product(half, half, 4096, 4096, 4096),
        "product fp16 512³": product(half, half, 512, 512, 512),
        "product fp16 64×8192×8192": product(half, half, 64, 8192, 8192),
        "product tf32 2048³": product(single, single, 2048, 2048, 2048),
        "product fp8 4096³": product(fp8, half, 4096, 4096, 4096),
        "attention fp16 32×4096×128": attention(32, 4096, 128, False),
        "attention fp16 causal 64×2048×64": attention(64, 2048, 64, True),
        "softmax fp16 8192×1000": rows_of(softmax, half, 8192, 1000),
        "layer norm fp16 4096×8192": rows_of(layer_norm, half, 4096, 8192),
        "column sums fp32 32768×2048": sums_of(32768, 2048),
        "transpose fp16 8192×8192": transposed(half, 8192, 8192),
    }


def tuner_of(make, device):
    """A tuner of a case's space that has tuned nothing, and what to launch it with."""
    import triton

    kernel, grid, arguments, given = make(device)
    return triton.autotune("auto", key=[])(kernel), grid, arguments, given


# ---- in the child


def search(make, device):
    tuner, grid, arguments, given = tuner_of(make, device)
    tuner[grid](*arguments, **given)
    return {**tuner.timings[-1], "considered": tuner.considered}


def every(make, device, count, seed):
    import triton
    from triton.runtime.estimates import config_of

    tuner, grid, arguments, given = tuner_of(make, device)
    points = tuner._estimate(arguments, {"grid": grid, **given}, whole=True).ordered(all_of_them=True)
    total = len(points)
    if total > count:
        front = points[: count // 2]
        points = front + random.Random(seed).sample(points[count // 2 :], count - len(front))
    each = triton.autotune([config_of(point) for point in points], key=[])(tuner.kernel)
    each.fn = watch = Watch(tuner.kernel, given)
    each[grid](*arguments, **given)
    found = each.timings[-1]
    for entry in found["configurations"]:
        entry["compile_seconds"] = watch.seconds.get(text_of(entry["values"]))
    return {**found, "works": total}


class Watch:
    """A kernel that notes how long each configuration takes to compile, which is what its keywords have beside those
    that are given."""

    def __init__(self, kernel, given):
        self.kernel, self.given, self.seconds = kernel, {"grid", *given}, {}

    def __getattr__(self, name):
        return getattr(self.kernel, name)

    def warmup(self, *args, **kwargs):
        start = time.perf_counter()
        compiled = self.kernel.warmup(*args, **kwargs)
        compiled._prepare()
        text = text_of({name: value for name, value in kwargs.items() if name not in self.given})
        self.seconds.setdefault(text, time.perf_counter() - start)
        return compiled


def confirm(make, device, configs):
    """Milliseconds of configurations: the median of short turns in an order that changes, for a GPU's clock depends on
    what ran before."""
    import triton

    tuner, grid, arguments, given = tuner_of(make, device)
    numbers, times, order = list(range(len(configs))), [[] for _ in configs], random.Random(0)
    for _ in range(TURNS):
        order.shuffle(numbers)
        for number in numbers:
            times[number].append(
                triton.testing.do_bench(
                    lambda config=configs[number]: tuner.kernel[grid](*arguments, **given, **config),
                    warmup=5,
                    rep=10,
                    return_mode="median",
                )
            )
    return [statistics.median(found) for found in times]


def child(what, count, seed, only, best):
    """Prints a line of JSON for each case."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    cases = kernels()
    kernel, x = cases["transpose fp16 8192×8192"](device)[0], torch.zeros(16, 16, device=device)
    kernel[(1, 1)](x, x.clone(), 16, 16, BM=16, BN=16)  # libraries and contexts are there
    for name, make in cases.items():
        if not is_wanted(name, only):
            continue
        if what == "search":
            result = search(make, device)
        elif what == "every":
            result = every(make, device, count, seed)
        else:
            result = {"times": confirm(make, device, best[name])}
        print(json.dumps({"case": name, **result}), flush=True)


# ---- in the parent


def run(what, options, table, best=None):
    """Adds to the table what a fresh process with an empty cache finds of each case, and tells of it as it comes."""
    found = table[what] = {}
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"TRITON_CACHE_DIR": cache, "CUDA_CACHE_DISABLE": "1"}
        environment.setdefault("PYTHONPATH", OURS)
        given = [what, str(options.points), str(options.seed), options.only, json.dumps(best or {})]
        command = [sys.executable, __file__, "--child", *given]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                if not line.startswith('{"case"'):
                    continue
                data = json.loads(line)
                found[data.pop("case")] = data
                if options.table:
                    with open(options.table, "w") as file:
                        json.dump(table, file)
                if "seconds" in data:
                    print(f"    {what}: {data['seconds']:.2f} s for {len(data['configurations'])}", file=sys.stderr)
    return found


def main():
    results = report.Report(
        "Searching spaces of configurations (s)",
        arguments=[
            ("--points", {"type": int, "default": 256, "help": "points that are timed at most (256)"}),
            ("--seed", {"type": int, "default": 0, "help": "of which points these are"}),
            ("--table", {"metavar": "FILE", "help": "write each point's time there, as JSON"}),
            ("--judge", {"metavar": "FILE", "help": "say what the model makes of such a table, and time nothing"}),
        ],
    )
    options = results.options
    if options.judge:
        return judge(options.judge, options.only)
    table = {"device": properties(), "cores": core_count()}
    searched, exhausted = run("search", options, table), run("every", options, table)
    best = {}
    for name, whole in exhausted.items():
        values = [searched[name]["best"], *(each["values"] for each in whole["configurations"][:2])]
        best[name] = list({text_of(each): _given(each) for each in values}.values())
    confirmed = run("confirm", options, table, best)
    for name, ours in searched.items():
        whole, times = exhausted[name], confirmed[name]["times"]
        timed = len(whole["configurations"])
        parts = {
            "points": whole["works"],
            "timed": len(ours["configurations"]),
            "estimating": ours["estimate_seconds"],
            "compiling": ours["compile_seconds"],
            "best (ms)": times[0],
            "of the best": min(times) / times[0],
        }
        peers = {"every point": whole["seconds"] * whole["works"] / timed}
        results.add(name, "s", ours["seconds"], peers, GOAL, parts=parts, best=str(ours["best"]))
    results.finish()


def is_wanted(name, only):
    """Of a case: whether it has one of the texts that "|" divides."""
    return any(text in name for text in only.split("|"))


def _given(values):
    return {name: value for name, value in values.items() if value is not None}


def core_count():
    from triton.runtime.parallel import core_count

    return core_count()


def properties():
    import torch

    from triton.runtime.driver import driver

    if not torch.cuda.is_available():
        return {}
    return driver.active.utils.get_device_properties(driver.active.get_current_device())


# ---- off-line


def judge(path, only):
    """For each case: where in the model's order the first points within 1 and 3 % of the best are, what a search would
    find, how many points it would time, and the share of an exhaustive search's time."""
    from triton.runtime import cost_model, space, space_tuner

    with open(path) as file:
        table = json.load(file)
    device = table["device"]
    space_tuner.SpaceTuner._target = lambda tuner, args, kwargs: f"cuda:{device['capability']}"
    space_tuner._model = lambda target: cost_model.GPUModel(device)
    cases = kernels()
    print(f"{'case':34} {'points':>6} {'1 %':>5} {'3 %':>5} {'found':>6} {'timed':>6} {'share':>6}")
    for name, whole in table["every"].items():
        if not is_wanted(name, only):
            continue
        tuner, grid, arguments, given = tuner_of(cases[name], "cpu")
        estimates = tuner._estimate(arguments, {"grid": grid, **given})
        replay = Replay(tuner, estimates, table, name)
        worth = estimates.worth(space.SMALL)
        points = [point for point in worth if replay.time(point) < math.inf]
        least = min(each["milliseconds"][0] for each in whole["configurations"] if each["milliseconds"])
        near = [[place for place, p in enumerate(points) if replay.time(p) <= least * slack] for slack in (1.01, 1.03)]
        how = tuner._how(estimates, points)
        how["budget"] = space.budget_of(round(len(worth) * estimates.share()))
        beside = [point for point in how["beside"]() if replay.time(point) < math.inf]
        how["beside"] = lambda beside=beside: beside
        how["rounds"] = space.rounds_of(whole["works"], replay.cores)
        replay.total = whole["works"] if how["rounds"] > 1 else math.inf
        _, best = space.search(points, replay.near, replay, **how)
        seconds = replay.now + replay.estimating
        share = seconds * len(whole["configurations"]) / (whole["seconds"] * whole["works"])
        share = f"{share:6.3f}" if replay.has_seconds else f"{'-':>6}"
        places = " ".join(f"{min(some, default='-'):>5}" for some in near)
        print(f"{name:34} {len(worth):6} {places} {best / least:6.3f} {len(replay.done):6} {share}")


class Replay:
    """What a search would find and how long it would take, from a table's times."""

    COMPILATION, LAUNCHES = 0.2, 4e-4  # seconds, of what the table has no figure for, and around each timing

    def __init__(self, tuner, estimates, table, name):
        self.tuner, self.estimates = tuner, estimates
        self._times, self._seconds, self.has_seconds = {}, {}, False
        for each in table["every"][name]["configurations"] + table["search"][name]["configurations"]:
            if each["milliseconds"]:
                text = self._text(each["values"])
                self._times[text] = min(self._times.get(text, math.inf), each["milliseconds"][0])
                seconds = each.get("compile_seconds")
                self.has_seconds |= seconds is not None
                alike = self._text({**each["values"], "choices": None})
                self._seconds.setdefault(text, seconds or self._seconds.get(alike) or self.COMPILATION)
        self.estimating = table["search"][name]["estimate_seconds"]
        self.now, self.done, self.cores, self.total = 0.0, set(), table.get("cores", 16), math.inf
        self._free, self._under_way = [0.0] * self.cores, []  # when each core is, and what is compiled till when
        self._made = []  # from when to when

    def _text(self, values):
        return text_of(self.estimates.firsts.get(text_of(values), values))

    def time(self, point, share=0.0):
        """Milliseconds; the search asks for them with how long they are measured."""
        self.now += ((self.tuner._WARMUP + self.tuner._REP) * 1e-3 * share + self.LAUNCHES) * (share > 0)
        return self._times.get(self._text(point), math.inf)

    def near(self, point):
        return [other for other in self.tuner._neighbours(self.estimates, point) if self.time(other) < math.inf]

    # ---- what the search asks

    @property
    def count(self):
        return len(self._under_way)

    def start(self, points):
        for point in points:
            text = self._text(point)
            seconds = 0.0 if text in self.done else self._seconds[text]
            self.done.add(text)
            end = max(self._free[0], self.now) + seconds
            self._made.append((end - seconds, end))
            heapq.heapreplace(self._free, end)
            heapq.heappush(self._under_way, (end, len(self.done), self.count, point))

    def has_ready(self):
        return self.count > 0 and self._under_way[0][0] <= self.now

    def waits(self):
        from triton.runtime.space import TENTH
        from triton.runtime.space_tuner import TIMED

        busy = sum(max(0.0, min(end, self.now) - start) for start, end in self._made)
        each = busy / max(1, sum(end <= self.now for _, end in self._made)) / self.cores + TIMED
        limit = TENTH * self.total * each - self.estimating
        in_time = self._under_way[0][0] < limit
        self.now = self.now if in_time else max(self.now, limit)
        return in_time

    def take(self, share):
        end, *_, point = heapq.heappop(self._under_way)
        self.now = max(self.now, end)
        return point, self.time(point, share)


def text_of(values):
    """Of a point, or of a configuration's values."""
    from triton.runtime.autotuner import config_text
    from triton.runtime.estimates import config_of

    return config_text(config_of(_given(values)))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5], json.loads(sys.argv[6]))
    else:
        main()
