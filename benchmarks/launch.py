"""What a launch costs beyond the work: microseconds a call of a kernel that does next to nothing.

Beside it the smallest calls of torch and NumPy, which have to look at their arguments as well.
"""

import report

results = report.Report("Launch (µs a call; ratio to torch.add)")
report.use_threads(1)

import numpy as np  # noqa: E402
import torch  # noqa: E402

import triton  # noqa: E402
import triton.language as tl  # noqa: E402

torch.set_num_threads(1)


@triton.jit
def five(x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    tl.store(out_ptr, tl.load(x_ptr) + tl.load(y_ptr))


@triton.jit
def sixteen(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    tl.store(c_ptr, tl.load(a_ptr) + tl.load(b_ptr))


def rows(kind, x, y, out, peers):
    one = 1
    for case, call in {
        f"5 arguments, {kind}": lambda: five[(1,)](x, y, out, 16, BLOCK_SIZE=16),
        f"16 arguments, {kind}": lambda: sixteen[(1,)](
            x, y, out, 16, 16, 16, 16, one, 16, one, 16, one, BLOCK_M=16, BLOCK_N=16, BLOCK_K=16, GROUP_M=8
        ),
    }.items():
        if not results.wants(case):
            continue
        call()
        assert float(out[0]) == float(x[0]) + float(y[0]), case
        results.compare(case, "µs", {"ours": call, **peers})


a, b, c = (torch.full((16,), float(i)) for i in (1, 2, 0))
u, v, w = (array.numpy().copy() for array in (a, b, c))
peers = {
    "torch.add": lambda: torch.add(a, b, out=c),
    "numpy.add": lambda: np.add(u, v, out=w),
}
rows("torch tensors", a, b, c, peers)
rows("NumPy arrays", u, v, w, peers)
results.finish()
