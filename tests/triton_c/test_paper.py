"""The listings of the paper that Triton-C comes from, on arrays of any size. docs/triton-c.md names the changes."""

import numpy as np
import pytest
from programs import launch

import triton.c

# Listing 1. `rk * K` became `rk * N` in the pointers to B, which advance by N.
MATMUL = """
// Tile shapes are parametric and can be optimized
// by compilation backends
const tunable int TM = {16, 32, 64, 128};
const tunable int TN = {16, 32, 64, 128};
const tunable int TK = {8, 16};
// C = A * B.T
kernel void matmul_nt(float *a, float *b, float *c,
                      int M, int N, int K)
{
  // 1D tile of indices
  int rm[TM] = get_global_range(0);
  int rn[TN] = get_global_range(1);
  int rk[TK] = 0 ... TK;
  // 2D tile of accumulators
  float C[TM, TN] = 0;
  // 2D tile of pointers
  float *pa[TM, TK] = a + rm[:, newaxis] + rk * M;
  float *pb[TN, TK] = b + rn[:, newaxis] + rk * N;
  for (int k = K; k >= 0; k -= TK) {
    bool check_k[TK] = rk < k;
    bool check_a[TM, TK] = (rm < M)[:, newaxis] && check_k;
    bool check_b[TN, TK] = (rn < N)[:, newaxis] && check_k;
    // load tile operands
    float A[TM, TK] = check_a ? *pa : 0;
    float B[TN, TK] = check_b ? *pb : 0;
    // accumulate
    C += dot(A, trans(B));
    // update pointers
    pa = pa + TK * M;
    pb = pb + TK * N;
  }
  // write-back accumulators
  float *pc[TM, TN] = c + rm[:, newaxis] + rn * M;
  bool check_c[TM, TN] = (rm < M)[:, newaxis] && (rn < N);
  @check_c *pc = C;
}
"""

# Listing 4, in a kernel that gives its tiles values and stores what it computes.
BROADCASTING = """
kernel void f(int *px_1, int *px_2, int *py) {
  int r16[16] = 0 ... 16, r32[32] = 0 ... 32;
  int a[16], b[32, 16], c[16, 1];
  a = r16 * 7;
  b = r32[:, newaxis] * 1000 + r16;
  c = r16[:, newaxis] * 100;
  // a is first reshaped to [1, 16]
  // and then broadcast to [32, 16]
  int x_1[32, 16] = a[newaxis, :] + b;
  // Same as above but implicitly
  int x_2[32, 16] = a + b;
  // a is first reshaped to [1, 16]
  // a is broadcast to [16, 16]
  // c is broadcast to [16, 16]
  int y[16, 16] = a + c;
  *(px_1 + r32[:, newaxis] * 16 + r16) = x_1;
  *(px_2 + r32[:, newaxis] * 16 + r16) = x_2;
  *(py + r16[:, newaxis] * 16 + r16) = y;
}
"""

# Listing 5 is the intermediate form of this program. Its mask, which no line of it uses, is for its
# load and its store.
RELU = """
kernel void relu(float *A, int M, int N) {
  int rm[8] = get_global_range(0);
  int rn[8] = get_global_range(1);
  bool msk[8, 8] = rm[:, newaxis] < M && rn < N;
  float *pa[8, 8] = A + rm[:, newaxis] + rn * M;
  float a[8, 8] = msk ? *pa : 0;
  @msk *pa = fmax(a, 0);
}
"""

# Listing 8. Its loop over `delta` at the top of the file, which lacks a semicolon, runs on the host: see `shift_table`.
SHIFT_CONV = """
const tunable int TM = {16, 32, 64, 128};
const tunable int TN = {16, 32, 64, 128};
const tunable int TK = {8};

__constant__ int* delta = alloc_const int [512];

void shift_conv(restrict read_only float *a,
                restrict read_only float *b, float *c,
                int M, int N, int K) {
  int rxa[TM] = get_global_range[TM](0);
  int ryb[TN] = get_global_range[TN](1);
  int rka[TK] = 0 ... TK;
  int rkb[TK] = 0 ... TK;
  float C[TM, TN] = 0;
  float* pxa[TM, TK] = a + rxa[:, newaxis];
  float* pb[TN, TK] = b + ryb[:, newaxis] + rkb * N;
  __constant__ int* pd[TK] = delta + rka;
  for (int k = K; k > 0; k = k - TK) {
    int delta[TK] = *pd;
    float *pa[TM, TK] = pxa + delta[newaxis, :];
    float a[TM, TK] = *pa;
    float b[TN, TK] = *pb;
    C = dot(a, trans(b), C);
    pb = pb + TK * N;
    pd = pd + TK;
  }
  int rxc[TM] = get_global_range[TM](0);
  int ryc[TN] = get_global_range[TN](1);
  float* pc[TM, TN] = c + rxc[:, newaxis] + ryc * M;
  bool checkc0[TM] = rxc < M;
  bool checkc1[TN] = ryc < N;
  bool checkc[TM, TN] = checkc0[:, newaxis] && checkc1;
  @checkc *pc = C;
}
"""


def small_numbers(rng, *shape):
    """Floats whose products and sums are exact in every precision."""
    return rng.integers(-3, 4, shape).astype(np.float32)


@pytest.mark.parametrize("m, n, k", [(16, 16, 8), (37, 45, 50), (64, 48, 33), (1, 130, 7)])
@pytest.mark.parametrize("tiles", [{}, {"TM": 32, "TN": 64, "TK": 16}])
def test_matmul(m, n, k, tiles):
    rng = np.random.default_rng(m)
    a, b = small_numbers(rng, k, m), small_numbers(rng, k, n)  # column-major, as the listing has them
    c = np.full((n, m), np.nan, np.float32)
    launch(MATMUL, a, b, c, m, n, k, size=("M", "N"), **tiles)
    assert (a.T @ b == c.T).all()


def test_matmul_as_printed_reads_the_wrong_elements():
    """The slip is one: for K = N the listing is right as it stands, and for others it is not."""
    printed = MATMUL.replace("rk * N", "rk * K")
    rng = np.random.default_rng(0)
    a, b, c = small_numbers(rng, 16, 32), small_numbers(rng, 16, 16), np.zeros((16, 32), np.float32)
    launch(printed, a, b, c, 32, 16, 16, size=("M", "N"))
    assert (a.T @ b == c.T).all()


def test_broadcasting():
    x_1, x_2, y = np.zeros((32, 16), np.int32), np.zeros((32, 16), np.int32), np.zeros((16, 16), np.int32)
    launch(BROADCASTING, x_1, x_2, y)
    r16, r32 = np.arange(16), np.arange(32)
    a, b, c = r16 * 7, r32[:, None] * 1000 + r16, r16[:, None] * 100
    assert (x_1 == a + b).all() and (x_2 == a + b).all() and (y == a + c).all()


@pytest.mark.parametrize("m, n", [(8, 8), (19, 30), (1, 9)])
def test_relu(m, n):
    a = np.random.default_rng(m).standard_normal((n, m)).astype(np.float32)
    expected = np.maximum(a, 0)
    launch(RELU, a, m, n, size=("M", "N"))
    assert (a == expected).all()


def shift_table(channels, height, width, shift_h, shift_w):
    """delta[c] = c*H*W + shift_h[c]*W + shift_w[c]: the loop that the listing has at its top."""
    return (np.arange(channels) * height * width + shift_h * width + shift_w).astype(np.int32)


@pytest.mark.parametrize("tiles", [{}, {"TM": 64, "TN": 32}])
def test_shift_conv(tiles):
    channels, height, width, filters, border = 24, 10, 12, 21, 2
    rng = np.random.default_rng(3)
    shift_h, shift_w = rng.integers(-1, 2, channels), rng.integers(-1, 2, channels)
    image = small_numbers(rng, channels, height, width)
    weights = small_numbers(rng, channels, filters)
    m = height * width
    # Shifted images reach over their ends, so there is room around them.
    room = 256
    memory = np.zeros(image.size + 2 * room, np.float32)
    memory[room:-room] = image.ravel()
    out = np.zeros((filters, m), np.float32)
    delta = shift_table(channels, height, width, shift_h, shift_w) + room
    b = np.zeros(channels * filters + 256, np.float32)  # whole tiles are read
    b[: weights.size] = weights.ravel()
    launch(SHIFT_CONV, memory, b, out, m, filters, channels, delta=delta, size=("M", "N"), **tiles)

    inner = np.s_[border:-border, border:-border]
    shifted = np.stack([np.roll(image[c], (-shift_h[c], -shift_w[c]), (0, 1)) for c in range(channels)])
    expected = np.einsum("chw,cf->fhw", shifted, weights)
    got = out.reshape(filters, height, width)
    assert (got[:, inner[0], inner[1]] == expected[:, inner[0], inner[1]]).all()


def test_functions_that_nobody_calls_are_kernels_where_none_is_named():
    assert list(triton.c.Program(SHIFT_CONV)) == ["shift_conv"]
    assert list(triton.c.Program("void g(int *p) { *p = 1; } void f(int *p) { g(p); } int h(int x) { return x; }")) == [
        "f"
    ]
