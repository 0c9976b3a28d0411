"""``triton._C.libtriton.nvidia``: products by cuBLAS to compare with, where torch is there."""

from types import SimpleNamespace


class CublasLt:
    """``CublasLt(workspace).matmul(a, b, c)``: c = a @ b.T, of matrices on a GPU that lie row by row.

    torch calls cuBLAS, and has workspaces of its own.
    """

    def __init__(self, workspace):
        self.workspace = workspace

    def matmul(self, a, b, c):
        import torch

        if a.dtype.itemsize > 1:
            torch.matmul(a, b.T, out=c)
            return
        one = torch.ones((), device=a.device)
        if c.dtype.itemsize > 1:
            torch._scaled_mm(a, b.T, one, one, out_dtype=c.dtype, out=c)
        else:
            c.copy_(torch._scaled_mm(a, b.T, one, one, out_dtype=torch.float16))

    def gemm(self, a, b, c, d, alpha, beta):
        """d = alpha * a @ b.T + beta * c."""
        import torch

        torch.addmm(c, a, b.T, beta=beta, alpha=alpha, out=d)


cublas = SimpleNamespace(CublasLt=CublasLt)
