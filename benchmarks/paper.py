"""The experiments of the paper that Triton comes from, in Triton-C (paper.tc), beside the vendor's libraries.

    python benchmarks/paper.py --json results/paper.json --plot results/paper

Matrix products of three kinds of networks, dense convolutions as implicit products, and shift convolutions, in fp32
(exact products), tf32 and fp16, beside torch: cuBLAS and cuDNN on a GPU, MKL and oneDNN on a CPU, where there is fp32
only and sizes are reduced (--reduce 1 leaves them). Arrays lie as in the paper: products are D * W.T, images N C H W;
and once more, with images C H W N (CHWN in a case's name; cuDNN's convolutions have theirs N C H W).

Each kernel is tried with some tiles and, where there would be too few instances, with K in parts. All are compiled
first, on all cores; then each is timed briefly, and the fastest in full, in turns with the libraries. On a GPU a time
is that of a call in a CUDA graph of many, for everybody: what the host does does not count, and caches are warm.
`tflops` of a row says how much was computed in a second. Figures 8, 10 and 11 of the paper are what --plot draws.
"""

import os
import re
import statistics
from functools import partial
from pathlib import Path

import report

ON_GPU = os.path.exists("/dev/nvidiactl")
if not ON_GPU:
    report.use_threads(len(os.sched_getaffinity(0)))

import torch  # noqa: E402

import triton  # noqa: E402
import triton.c  # noqa: E402
from triton.runtime.parallel import for_each  # noqa: E402

DEVICE = "cuda" if ON_GPU else "cpu"
PRECISIONS = {  # type in Triton-C, products, torch's type, error that may be
    "fp32": ("float", "ieee", torch.float32, 1e-5),
    "tf32": ("float", "tf32", torch.float32, 4e-3),
    "fp16": ("half", "tf32", torch.float16, 4e-3),
}
SQUARES = [(512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048)]
DEEP_SPEECH = [
    (35, 8457, 1760),
    (6144, 32, 1536),
    (3072, 128, 1024),
    (1760, 128, 1760),
    (7680, 64, 2560),
    (1760, 7133, 1760),
]
TRANSFORMER = [(512, 32, 512), (512, 32, 2048), (2048, 32, 512)]
CONVOLUTIONS = [  # height, width, channels, images, filters, their height and width
    (112, 112, 64, 4, 128, 3, 3),
    (56, 56, 128, 4, 256, 3, 3),
    (28, 28, 256, 4, 512, 3, 3),
    (14, 14, 512, 4, 512, 3, 3),
    (7, 7, 512, 4, 512, 3, 3),
    (161, 700, 1, 8, 64, 5, 5),
    (79, 341, 32, 8, 32, 5, 10),
]

# TM, TN, bytes of a row of TK, warps, stages
GPU_TILES = [
    (128, 256, 128, 8, 3),
    (256, 128, 128, 8, 3),
    (128, 128, 128, 8, 3),
    (128, 128, 128, 4, 3),
    (128, 128, 64, 4, 4),
    (128, 64, 128, 4, 4),
    (128, 64, 128, 4, 6),
    (64, 128, 128, 4, 4),
    (64, 128, 128, 4, 6),
    (64, 64, 128, 4, 4),
    (64, 64, 128, 4, 8),
    (64, 64, 256, 4, 3),
    (64, 64, 256, 4, 5),
    (128, 32, 128, 4, 5),
    (64, 32, 128, 4, 5),
    (64, 32, 128, 4, 8),
    (64, 32, 256, 4, 4),
    (32, 64, 256, 4, 4),
    (32, 32, 256, 4, 4),
]
GATHERING_TILES = [
    (128, 256, 128, 8, 3),
    (256, 128, 128, 8, 3),
    (128, 128, 128, 8, 3),
    (128, 128, 64, 4, 3),
    (128, 128, 64, 8, 3),
    (128, 64, 128, 4, 3),
    (128, 64, 128, 8, 3),
    (128, 64, 64, 4, 3),
    (64, 256, 128, 8, 3),
    (64, 256, 128, 8, 4),
    (64, 128, 128, 4, 3),
    (64, 128, 128, 8, 3),
    (64, 64, 128, 4, 3),
    (64, 64, 128, 8, 3),
    (256, 32, 64, 8, 3),
    (128, 32, 128, 4, 3),
    (128, 32, 128, 8, 3),
    (128, 32, 64, 4, 3),
    (64, 32, 128, 4, 3),
    (128, 128, 128, 4, 2),  # of few iterations, or one
    (64, 256, 256, 8, 2),
    (64, 256, 128, 4, 2),
    (64, 128, 128, 4, 1),
    (64, 64, 512, 4, 1),
    (64, 64, 1024, 8, 1),
    (64, 32, 512, 4, 1),
    (64, 32, 1024, 8, 1),
]
EXACT_TILES = [(128, 128, 64, 8, 3), (128, 128, 32, 8, 4), (128, 64, 64, 4, 3), (64, 64, 64, 4, 3), (64, 32, 64, 4, 3),
               (32, 32, 128, 4, 3)]  # fmt: skip
CPU_TILES = [(64, 64, 256, 4, 1), (32, 32, 256, 4, 1), (128, 64, 128, 4, 1)]
SHARED = 200 << 10  # bytes that the tiles of all stages may take
MOST_DEPTH = 512  # of tiles, so much longer than K tables are
BRIEF, FULL = 0.5, 3  # milliseconds that a graph takes, which is replayed ten times
FINALISTS, ROUNDS = 3, 3
MANY = 512  # programs, which share operands in the second cache if they go through the tiles in bands


def processors():
    properties = triton.runtime.driver.active.utils.get_device_properties(0)
    return properties["multiprocessor_count"]


def tiles_for(precision, m, n, tiles):
    """(TM, TN, TK, warps, stages) worth trying: not much larger than the result, and not a great many."""
    tiles = CPU_TILES if not ON_GPU else EXACT_TILES if precision == "fp32" else tiles
    size = PRECISIONS[precision][2].itemsize

    def suits(rows, columns, row_bytes, stages):
        least, most = (rows <= max(m, 64), columns <= max(n, 32)), 64 * processors()
        few = triton.cdiv(m, rows) * triton.cdiv(n, columns) <= most
        return all(least) and few and row_bytes * (rows + columns) * stages <= SHARED

    chosen = [(a, b, row // size, warps, s) for a, b, row, warps, s in tiles if suits(a, b, row, s)]
    return chosen or [(a, b, row // size, warps, s) for a, b, row, warps, s in tiles[-1:]]


def parts_for(tile, m, n, k):
    """How many parts K may have: so that there is work for all multiprocessors where M and N are small."""
    programs = triton.cdiv(m, tile[0]) * triton.cdiv(n, tile[1])
    steps = triton.cdiv(k, tile[2])
    few, many = (0, 2) if not ON_GPU else (processors() // 3, 4 * processors())
    return [1, *(parts for parts in (2, 3, 4, 6, 8, 12, 16) if parts <= steps and few <= parts * programs <= many)]


def kernel_of(name, precision):
    kind, products, _, _ = PRECISIONS[precision]
    key = name, precision
    if key not in KERNELS:
        text = (Path(__file__).parent / "paper.tc").read_text()
        text = re.sub(r"\bPRECISION\b", f'"{products}"', re.sub(r"\bT\b", kind, text))
        KERNELS[key] = triton.c.compile(text, name)
    return KERNELS[key]


KERNELS = {}


class Choice:
    """A launch of a kernel with some tile, and K in some parts."""

    def __init__(self, kernel, arguments, out, m, n, tile, parts, constants):
        """The arguments are those before `sums`, and those between `counts` and `parts`."""
        first, last = arguments
        rows, columns, depth, warps, stages = tile
        grid = triton.cdiv(m, rows), triton.cdiv(n, columns), parts
        programs = grid[0] * grid[1]
        sums = torch.empty(programs * parts * rows * columns if parts > 1 else 1, device=DEVICE)
        counts = torch.zeros(programs if parts > 1 else 1, device=DEVICE, dtype=torch.int32)
        options = dict(TM=rows, TN=columns, TK=depth, num_warps=warps, num_stages=stages)
        options |= dict(SPLIT=int(parts > 1), BAND=8 if programs > MANY else 0) | constants
        self.name = "x".join(map(str, (*tile, parts)))
        self.out, self.failure = out, None
        self.compile = partial(kernel.warmup, *first, sums, counts, *last, parts, grid=grid, **options)
        self.launch = partial(kernel[grid], *first, sums, counts, *last, parts, **options)

    def prepare(self):
        """Compile and load; `failure` says why that cannot be."""
        try:
            self.compile()._init_handles()
        except (triton.OutOfResources, triton.CUDAError) as error:
            self.failure = error


def all_choices(kernel, arguments, out, sizes, tiles, **constants):
    m, n, k = sizes
    return [
        Choice(kernel, arguments, out, m, n, tile, parts, constants)
        for tile in tiles
        for parts in parts_for(tile, m, n, k)
    ]


class Case:
    """What is computed: our launches, the peers' functions, what checks a result, and the number of operations."""

    def __init__(self, name, precision, choices, peers, reference, operations):
        self.name, self.precision, self.choices = f"{name} {precision}", precision, choices
        self.peers, self.reference, self.operations = peers, reference, operations

    def check(self, result, expected):
        error = ((result.double() - expected).norm() / expected.norm()).item()
        if not error < PRECISIONS[self.precision][3]:
            raise AssertionError(f"{self.name}: the relative error is {error:.1e}")


# ---- matrix products ------------------------------------------------------------------------------------------------


def matmul(name, m, n, k, precision):
    dtype = PRECISIONS[precision][2]
    d, w = (torch.randn(rows, k, device=DEVICE).to(dtype) for rows in (m, n))
    out, other = (torch.empty(m, n, device=DEVICE, dtype=dtype) for _ in range(2))
    arguments = (d, w, out), (m, n, k)
    tiles = tiles_for(precision, m, n, GPU_TILES)
    choices = all_choices(kernel_of("matmul", precision), arguments, out, (m, n, k), tiles)
    peers = {"cuBLAS" if ON_GPU else "torch": lambda: torch.matmul(d, w.T, out=other)}
    return Case(name, precision, choices, peers, lambda: d.double() @ w.double().T, 2 * m * n * k)


# ---- convolutions ---------------------------------------------------------------------------------------------------


def conv_choices(precision, x, w, columns, shape, pads, last):
    """Launches of the implicit product of x with w, (filters, columns). `columns` has for each column of the product
    the channel and the element of the window. Images lie C H W N if they are to be `last`. Also the number of
    operations."""
    images, channels, height, width = x.shape
    channel, row, column = columns
    delta, tap = channel * height * width + row * width + column, (1 << row) | (65536 << column)
    neighbours = images if last else 1
    tables = [
        torch.nn.functional.pad(table, (0, MOST_DEPTH), value=beyond).to(torch.int32).to(DEVICE)
        for table, beyond in ((delta * neighbours, 0), (tap, -1))
    ]
    m, n, k = images * shape[0] * shape[1], *w.shape
    y = torch.empty(images, n, *shape, device=DEVICE, dtype=x.dtype)
    x, y = (images_last(each) if last else each for each in (x, y))
    arguments = (x, w, y), (*tables, m, n, k, channels, height, width, *shape, *pads)
    tiles = tiles_for(precision, m, n, GATHERING_TILES)
    choices = all_choices(kernel_of("conv", precision), arguments, y, (m, n, k), tiles, LAST=neighbours)
    for choice in choices:
        choice.out = y.permute(3, 0, 1, 2) if last else y
    return choices, 2 * m * n * k


def images_last(x):
    return x.permute(1, 2, 3, 0).contiguous()


def convolution(name, height, width, channels, images, filters, r, s, precision, last=False):
    dtype = PRECISIONS[precision][2]
    x = torch.randn(images, channels, height, width, device=DEVICE).to(dtype)
    w = (torch.randn(filters, channels, r, s, device=DEVICE) / (channels * r * s) ** 0.5).to(dtype)
    pads = (r - 1) // 2, (s - 1) // 2
    column = torch.arange(channels * r * s)
    columns = column // (r * s), column // s % r, column % s
    shape = height + 2 * pads[0] - r + 1, width + 2 * pads[1] - s + 1
    choices, operations = conv_choices(precision, x, w.view(filters, -1), columns, shape, pads, last)
    convolve = torch.nn.functional.conv2d
    peers = {"cuDNN" if ON_GPU else "torch": lambda: convolve(x, w, padding=pads)}
    reference = lambda: convolve(x.double(), w.double(), padding=pads)  # noqa: E731
    return Case(name, precision, choices, peers, reference, operations)


def shift_convolution(name, height, width, channels, images, filters, r, s, precision, last=False):
    """Each channel is shifted by one of the r times s distances, and then the channels are mixed."""
    dtype = PRECISIONS[precision][2]
    x = torch.randn(images, channels, height, width, device=DEVICE).to(dtype)
    w = (torch.randn(filters, channels, device=DEVICE) / channels**0.5).to(dtype)
    channel = torch.arange(channels)
    rows, columns = channel % (r * s) // s, channel % s
    pads = (r - 1) // 2, (s - 1) // 2
    choices, operations = conv_choices(precision, x, w, (channel, rows, columns), (height, width), pads, last)
    windows = [(i, j) for i in range(r) for j in range(s)]
    places = [(torch.nonzero((rows == i) & (columns == j)).ravel().to(DEVICE), i, j) for i, j in windows]

    def shifted(x):
        wide = torch.nn.functional.pad(x, (pads[1], s - 1 - pads[1], pads[0], r - 1 - pads[0]))
        out = torch.empty_like(x)
        for which, i, j in places:
            out[:, which] = wide[:, which, i : i + height, j : j + width]
        return out

    convolve = partial(torch.nn.functional.conv2d, weight=w[:, :, None, None])
    flat = images_last(x).view(channels, -1) if last else x.view(images, channels, -1)
    peers = {
        "1x1, product": lambda: torch.matmul(w, flat),
        "1x1, conv2d": lambda: convolve(x),
        "shift, then 1x1": lambda: torch.matmul(w, shifted(x).view(images, channels, -1)),
    }
    reference = partial(torch.nn.functional.conv2d, weight=w.double()[:, :, None, None])
    return Case(name, precision, choices, peers, lambda: reference(shifted(x).double()), operations)


# ---- the measurements -----------------------------------------------------------------------------------------------


def milliseconds(function, length):
    if ON_GPU:
        return triton.testing.do_bench_cudagraph(function, rep=length, return_mode="median")
    return report.measure({"it": function}, rounds=5, sample=0.01)["it"] * 1e3


def fastest(case):
    """The choices that are timed in full, which give the right result."""
    works = [choice for choice in case.choices if choice.failure is None]
    brief = {choice: milliseconds(choice.launch, BRIEF) for choice in works}
    chosen = sorted(works, key=brief.get)[:FINALISTS]
    expected = case.reference()
    for choice in chosen:
        choice.out.fill_(float("nan"))
        choice.launch()
        case.check(choice.out, expected)
    return chosen


def run(rows, case):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = case.precision == "tf32"
    contenders = {choice.name: choice.launch for choice in fastest(case)}
    ours = list(contenders)
    contenders |= case.peers
    rounds = [{name: milliseconds(each, FULL) for name, each in contenders.items()} for _ in range(ROUNDS)]
    times = {name: statistics.median(each[name] for each in rounds) for name in contenders}
    chosen = min(ours, key=times.get)
    theirs = {name: times[name] for name in case.peers}
    rates = {name: case.operations / time * 1e-9 for name, time in {"ours": times[chosen], **theirs}.items()}
    rows.add(case.name, "ms", times[chosen], theirs, tile=chosen, tflops=rates)


def reduced(number, factor):
    return max(number // factor, min(number, 8))


def cases(factor):
    """Names, and what makes each for a precision."""
    for kind, shapes in {"square": SQUARES, "DeepSpeech2": DEEP_SPEECH, "transformer": TRANSFORMER}.items():
        for shape in shapes:
            m, n, k = (reduced(extent, factor) for extent in shape)
            yield partial(matmul, f"matmul {kind} {m}x{n}x{k}", m, n, k)
    for kind, make, layers, last in (
        ("conv", convolution, CONVOLUTIONS, False),
        ("shift", shift_convolution, CONVOLUTIONS[:5], False),
        ("conv CHWN", convolution, CONVOLUTIONS, True),
        ("shift CHWN", shift_convolution, CONVOLUTIONS[:5], True),
    ):
        for h, w, c, b, k, r, s in layers:
            sizes = [
                max(reduced(h, factor), r),
                max(reduced(w, factor), s),
                *(reduced(each, factor) for each in (c, b, k)),
            ]
            yield partial(make, f"{kind} {'x'.join(map(str, (*sizes, r, s)))}", *sizes, r, s, last=last)


def summary(rows):
    """Geometric means of the ratios to the first peer, by kind and precision."""
    groups = {}
    for row in rows:
        kind, *rest, precision = row["case"].split()
        groups.setdefault((kind, *rest[:-1], precision), []).append(row["ratio"])
    return {" ".join(key): statistics.geometric_mean(ratios) for key, ratios in groups.items()}


# ---- plots ----------------------------------------------------------------------------------------------------------

FIGURES = {  # of the paper: what it shows, and the cases
    "8": ("Matrix products, D * W.T", "matmul "),
    "10": ("Convolutions as implicit products", "conv "),
    "11": ("Shift convolutions", "shift "),
}
COLOURS = "#1f5fa8", "#9aa5b1", "#c9a66b", "#d5dae0"


def plot(prefix, rows, precisions):
    """A picture for each figure: TFLOP/s of all contenders, a row of panels for each precision."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    for number, (title, start) in FIGURES.items():
        shown = [
            [row for row in rows if row["case"].startswith(start) and row["case"].endswith(precision)]
            for precision in precisions
        ]
        shown = [each for each in shown if each]
        if not shown:
            continue
        figure, panels = pyplot.subplots(len(shown), 1, figsize=(11, 3.3 * len(shown)), squeeze=False)
        for panel, cases in zip(panels[:, 0], shown, strict=True):
            draw(panel, cases, start)
        panels[0, 0].set_title(f"{title} (numbers: ours to {list(shown[0][0]['tflops'])[1]})", loc="left")
        figure.tight_layout()
        figure.savefig(f"{prefix}-figure-{number}.png", dpi=110)
        pyplot.close(figure)


def draw(panel, cases, start):
    names = list(cases[0]["tflops"])
    width = 0.8 / len(names)
    for i, name in enumerate(names):
        heights = [row["tflops"][name] for row in cases]
        places = [at + (i - (len(names) - 1) / 2) * width for at in range(len(cases))]
        panel.bar(places, heights, width, label=name, color=COLOURS[i % len(COLOURS)])
        if name == "ours":
            for at, height, row in zip(places, heights, cases, strict=True):
                panel.annotate(f"{row['ratio']:.2f}", (at, height), ha="center", va="bottom", fontsize=7)
    labels = [row["case"].removeprefix(start).rsplit(" ", 1)[0].replace(" ", "\n") for row in cases]
    if len(cases) > 8:  # one extent a line
        labels = [label.replace("x", "\n") for label in labels]
    panel.set_xticks(range(len(cases)), labels, fontsize=7)
    panel.set_ylabel(f"TFLOP/s, {cases[0]['case'].rsplit(' ', 1)[1]}")
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(fontsize=8, frameon=False, ncols=len(names))


def main():
    rows = report.Report(
        "Experiments of the paper, in Triton-C",
        arguments=[
            ("--reduce", {"type": int, "default": 1 if ON_GPU else 4, "help": "divide extents (on a CPU by 4)"}),
            ("--precisions", {"default": "fp32,tf32,fp16" if ON_GPU else "fp32"}),
            ("--plot", {"metavar": "PREFIX", "help": "also draw PREFIX-figure-8.png and so on"}),
        ],
    )
    precisions = rows.options.precisions.split(",")
    torch.backends.cudnn.benchmark = True
    found = [make(precision=precision) for make in cases(rows.options.reduce) for precision in precisions]
    found = [case for case in found if rows.wants(case.name)]
    for_each(Choice.prepare, [choice for case in found for choice in case.choices])
    for case in found:
        run(rows, case)
    if ON_GPU:
        rows.machine["gpu"] = torch.cuda.get_device_name()
    rows.finish()
    for name, ratio in summary(rows.rows).items():
        print(f"  {name}: geometric mean {ratio:.2f}")
    if rows.options.plot:
        plot(rows.options.plot, rows.rows, precisions)


if __name__ == "__main__":
    main()
