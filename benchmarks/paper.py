"""The experiments of the paper that Triton comes from, in Triton-C (paper.tc), beside the vendor's libraries.

    python benchmarks/paper.py --json results/paper.json

Matrix products of three kinds of networks, dense convolutions as implicit products, and shift convolutions, in fp32
(exact products), tf32 and fp16, beside torch: cuBLAS and cuDNN on a GPU, MKL and oneDNN on a CPU, where there is fp32
only and sizes are reduced (--reduce 1 leaves them). Each kernel is tried with some tiles, and the best of them counts.
`tflops` of a row says how much was computed in a second.
"""

import os
import statistics
import sys
from functools import partial
from pathlib import Path

import report

ON_GPU = os.path.exists("/dev/nvidiactl")
if not ON_GPU:
    report.use_threads(len(os.sched_getaffinity(0)))

import torch  # noqa: E402

import triton  # noqa: E402
import triton.c  # noqa: E402

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

# TM, TN, TK, warps, stages
GPU_TILES = [
    (128, 256, 64, 8, 3),
    (128, 128, 64, 4, 3),
    (128, 128, 32, 8, 3),
    (128, 64, 32, 4, 4),
    (64, 128, 32, 4, 4),
    (64, 64, 64, 4, 4),
    (64, 32, 64, 4, 4),
    (32, 64, 64, 4, 4),
    (32, 32, 64, 4, 5),
]
EXACT_TILES = [(128, 128, 16, 8, 3), (128, 128, 8, 8, 4), (128, 64, 16, 4, 3), (64, 64, 16, 4, 3), (64, 32, 16, 4, 3),
               (32, 32, 32, 4, 3)]  # fmt: skip
CPU_TILES = [(64, 64, 64, 4, 1), (32, 32, 64, 4, 1), (128, 64, 32, 4, 1)]
SHARED = 160 << 10  # bytes that the tiles of all stages may take


def tiles_for(precision, m, n):
    """The tiles worth trying: not much larger than the result."""
    tiles = CPU_TILES if not ON_GPU else EXACT_TILES if precision == "fp32" else GPU_TILES
    size = PRECISIONS[precision][2].itemsize
    small = [t for t in tiles if t[0] < 2 * max(m, 32) and t[1] < 2 * max(n, 32)]
    return [t for t in small if size * t[2] * (t[0] + t[1]) * t[4] <= SHARED] or tiles[-1:]


def kernel_of(name, precision):
    kind, products, _, _ = PRECISIONS[precision]
    key = name, precision
    if key not in KERNELS:
        text = (Path(__file__).parent / "paper.tc").read_text()
        for word, meaning in (("const T *", f"const {kind} *"), ("PRECISION", f'"{products}"')):
            text = text.replace(word, meaning)
        text = text.replace(" T ", f" {kind} ")
        KERNELS[key] = triton.c.compile(text, name)
    return KERNELS[key]


KERNELS = {}


def options(tile):
    rows, columns, depth, warps, stages = tile
    return dict(TM=rows, TN=columns, TK=depth, num_warps=warps, num_stages=stages)


# ---- matrix products ------------------------------------------------------------------------------------------------


def parts_for(m, n, k, tile):
    """How often K is split: so that there is work for all multiprocessors where M and N are small."""
    programs = triton.cdiv(m, tile[0]) * triton.cdiv(n, tile[1])
    processors = triton.runtime.driver.active.utils.get_device_properties(0)["multiprocessor_count"]
    most = max(1, k // (4 * tile[2]))
    return [1, *(parts for parts in (2, 4, 8, 16) if parts <= most and parts * programs <= 4 * processors)]


def matmul(m, n, k, precision):
    """The contenders, and what checks a result."""
    dtype = PRECISIONS[precision][2]
    d, w = (torch.randn(rows, k, device=DEVICE).to(dtype) for rows in (m, n))
    out, other, sums = (torch.empty(m, n, device=DEVICE, dtype=t) for t in (dtype, dtype, torch.float32))
    kernel = kernel_of("matmul", precision)

    def ours(tile, parts):
        grid = (triton.cdiv(m, tile[0]) * triton.cdiv(n, tile[1]), parts)
        if parts > 1:
            sums.zero_()
        kernel[grid](d, w, out, sums, m, n, k, PARTS=parts, **options(tile))
        if parts > 1:
            out.copy_(sums)
        return out

    choices = {}
    for tile in tiles_for(precision, m, n):
        for parts in parts_for(m, n, k, tile):
            choices["x".join(map(str, (*tile, parts)))] = partial(ours, tile, parts)
    peers = {"cuBLAS" if ON_GPU else "torch": lambda: torch.matmul(d, w.T, out=other)}
    return choices, peers, lambda: d.double() @ w.double().T, 2 * m * n * k


# ---- convolutions ---------------------------------------------------------------------------------------------------


def conv_kernel(precision, x, w, delta, tap, shape, pads):
    """The launches of the implicit product of x with w, (filters, columns), for each choice of tiles."""
    images, channels, height, width = x.shape
    filters, columns = w.shape
    p, q = shape
    m = images * p * q
    y = torch.empty(images, filters, p, q, device=DEVICE, dtype=x.dtype)
    kernel = kernel_of("conv", precision)

    def ours(tile):
        grid = (triton.cdiv(m, tile[0]) * triton.cdiv(filters, tile[1]),)
        sizes = m, filters, columns, channels, height, width, p, q, *pads
        kernel[grid](x, w, y, delta, tap, *sizes, **options(tile))
        return y

    tiles = tiles_for(precision, m, filters)
    return {"x".join(map(str, tile)): partial(ours, tile) for tile in tiles}, 2 * m * filters * columns


def tables(channel, rows, columns, height, width):
    """`delta` and `tap` for arrays of channels and of distances in height and width."""
    delta = channel * height * width + rows * width + columns
    return (torch.as_tensor(t).to(torch.int32).to(DEVICE) for t in (delta, 256 * rows + columns))


def convolution(height, width, channels, images, filters, r, s, precision):
    dtype = PRECISIONS[precision][2]
    x = torch.randn(images, channels, height, width, device=DEVICE).to(dtype)
    w = (torch.randn(filters, channels, r, s, device=DEVICE) / (channels * r * s) ** 0.5).to(dtype)
    pads = (r - 1) // 2, (s - 1) // 2
    column = torch.arange(channels * r * s)
    delta, tap = tables(column // (r * s), column // s % r, column % s, height, width)
    shape = height + 2 * pads[0] - r + 1, width + 2 * pads[1] - s + 1
    choices, operations = conv_kernel(precision, x, w.view(filters, -1), delta, tap, shape, pads)
    convolve = torch.nn.functional.conv2d
    peers = {"cuDNN" if ON_GPU else "torch": lambda: convolve(x, w, padding=pads)}
    return choices, peers, lambda: convolve(x.double(), w.double(), padding=pads), operations


def shift_convolution(height, width, channels, images, filters, r, s, precision):
    """Each channel is shifted by one of the r times s distances, and then the channels are mixed."""
    dtype = PRECISIONS[precision][2]
    x = torch.randn(images, channels, height, width, device=DEVICE).to(dtype)
    w = (torch.randn(filters, channels, device=DEVICE) / channels**0.5).to(dtype)
    channel = torch.arange(channels)
    rows, columns = channel % (r * s) // s, channel % s
    pads = (r - 1) // 2, (s - 1) // 2
    delta, tap = tables(channel, rows, columns, height, width)
    choices, operations = conv_kernel(precision, x, w, delta, tap, (height, width), pads)
    windows = [(i, j) for i in range(r) for j in range(s)]
    places = [(torch.nonzero((rows == i) & (columns == j)).ravel().to(DEVICE), i, j) for i, j in windows]

    def shifted(x):
        wide = torch.nn.functional.pad(x, (pads[1], s - 1 - pads[1], pads[0], r - 1 - pads[0]))
        out = torch.empty_like(x)
        for which, i, j in places:
            out[:, which] = wide[:, which, i : i + height, j : j + width]
        return out

    convolve = partial(torch.nn.functional.conv2d, weight=w[:, :, None, None])
    peers = {"shift, then 1x1": lambda: convolve(shifted(x)), "1x1 alone": lambda: convolve(x)}
    reference = partial(torch.nn.functional.conv2d, weight=w.double()[:, :, None, None])
    return choices, peers, lambda: reference(shifted(x).double()), operations


# ---- the measurements -----------------------------------------------------------------------------------------------


def milliseconds(function):
    if ON_GPU:
        return triton.testing.do_bench(function, warmup=25, rep=100, return_mode="median")
    return report.measure({"it": function}, rounds=5, sample=0.01)["it"] * 1e3


def best(choices, check):
    """Name and time of the fastest of the choices that give the right result."""
    times = {}
    for name, launch in choices.items():
        try:
            check(launch())
            times[name] = milliseconds(launch)
        except (triton.OutOfResources, triton.CUDAError) as error:
            print(f"    {name}: {type(error).__name__}", file=sys.stderr)
    name = min(times, key=times.get)
    return name, times[name]


def run(rows, case, make, precision):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    choices, peers, reference, operations = make()
    expected = reference()

    def check(result):
        error = ((result.double() - expected).norm() / expected.norm()).item()
        if not error < PRECISIONS[precision][3]:
            raise AssertionError(f"{case}: the relative error is {error:.1e}")

    chosen, ours = best(choices, check)
    theirs = {name: statistics.median(milliseconds(function) for _ in range(3)) for name, function in peers.items()}
    rates = {name: operations / time * 1e-9 for name, time in {"ours": ours, **theirs}.items()}
    rows.add(case, "ms", ours, theirs, tile=chosen, tflops=rates)


def reduced(number, factor):
    return max(number // factor, min(number, 8))


def cases(factor):
    """Names, and what makes each for a precision."""
    for kind, shapes in {"square": SQUARES, "DeepSpeech2": DEEP_SPEECH, "transformer": TRANSFORMER}.items():
        for shape in shapes:
            m, n, k = (reduced(extent, factor) for extent in shape)
            yield f"matmul {kind} {m}x{n}x{k}", partial(matmul, m, n, k)
    for kind, make, layers in (
        ("conv", convolution, CONVOLUTIONS),
        ("shift", shift_convolution, CONVOLUTIONS[:5]),
    ):
        for h, w, c, b, k, r, s in layers:
            sizes = [
                max(reduced(h, factor), r),
                max(reduced(w, factor), s),
                *(reduced(each, factor) for each in (c, b, k)),
            ]
            yield f"{kind} {'x'.join(map(str, (*sizes, r, s)))}", partial(make, *sizes, r, s)


def main():
    rows = report.Report(
        "Experiments of the paper, in Triton-C",
        arguments=[
            ("--reduce", {"type": int, "default": 1 if ON_GPU else 4, "help": "divide extents (on a CPU by 4)"}),
            ("--precisions", {"default": "fp32,tf32,fp16" if ON_GPU else "fp32"}),
        ],
    )
    for name, make in cases(rows.options.reduce):
        for precision in rows.options.precisions.split(","):
            case = f"{name} {precision}"
            if rows.wants(case):
                run(rows, case, partial(make, precision=precision), precision)
    if ON_GPU:
        rows.machine["gpu"] = torch.cuda.get_device_name()
    rows.finish()


if __name__ == "__main__":
    main()
