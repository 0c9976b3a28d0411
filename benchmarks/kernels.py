"""The tutorials' kernels with arguments to compile them for, for what measures or compares compilations.

CASES is {case: function that makes (kernel, grid, arguments, options)}. Autotuned kernels come with one configuration.
"""

import numpy as np
import report


def array(*shape):
    return np.ones(shape, np.float32)


def vector_add():
    n = 98_432
    arguments = array(n), array(n), array(n), n
    return report.tutorial("01_vector_add").add_kernel, (97,), arguments, {"BLOCK_SIZE": 1024}


def softmax():
    arguments = array(64, 781), array(64, 781), 781, 781, 781
    return report.tutorial("02_fused_softmax").softmax_row_kernel, (64,), arguments, {"BLOCK_SIZE": 1024}


def softmax_persistent():
    arguments = array(64, 781), array(64, 781), 781, 781, 64, 781
    options = {"BLOCK_SIZE": 1024, "STAGES": 4}
    return report.tutorial("02_fused_softmax").softmax_kernel, (8,), arguments, options


def matmul(activation=None):
    strides = 256, 1, 256, 1, 256, 1
    arguments = array(256, 256), array(256, 256), array(256, 256), 256, 256, 256, *strides
    options = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 4, "ACTIVATION": activation}
    return report.tutorial("03_matrix_multiplication").matmul_kernel.fn, (4,), arguments, options


def matmul_leaky_relu():
    return matmul(report.tutorial("03_matrix_multiplication").leaky_relu)


def dropout():
    n = 98_432
    arguments = array(n), array(n), n, 0.5, 7
    return report.tutorial("04_low_memory_dropout").dropout_kernel, (97,), arguments, {"BLOCK_SIZE": 1024}


def layer_norm():
    x, y, w, b, mean, rstd = array(64, 1000), array(64, 1000), *(array(1000) for _ in range(4))
    arguments = y, mean, rstd, x, w, b, 1000, 1e-5
    return report.tutorial("05_layer_norm").forward_kernel, (64,), arguments, {"BLOCK_SIZE": 1024}


def layer_norm_backward(locked=True):
    dy, x, dx, w, dw, db = *(array(64, 1000) for _ in range(3)), *(array(1000) for _ in range(3))
    arguments = dx, dw, db, np.zeros(1, np.int32), dy, x, w, array(64), array(64), 64, 1000
    options = {"LOCKED": locked, "BLOCK_SIZE": 1024}
    return report.tutorial("05_layer_norm").backward_kernel, (2,), arguments, options


def layer_norm_backward_atomic():
    return layer_norm_backward(locked=False)


def attention():
    lesson = report.tutorial("06_fused_attention")
    q, k, v, o, logsum = *(array(8, 256, 64) for _ in range(4)), array(8, 256)
    options = {"D": 64, "CAUSAL": True, **lesson.sizes_by_queries(64)}
    return lesson.forward_kernel, (256 // options["BLOCK_M"], 8), (o, logsum, q, k, v, 256, 64, 1, 0.125), options


def attention_backward():
    lesson = report.tutorial("06_fused_attention")
    q, k, v, do, dk, dv = (array(8, 256, 64) for _ in range(6))
    arguments = dk, dv, q, k, v, do, array(8, 256), array(8, 256), 256, 0.125
    options = {"D": 64, "CAUSAL": True, **lesson.sizes_by_keys(64)}
    return lesson.keys_kernel, (256 // options["BLOCK_N"], 8), arguments, options


CASES = {
    function.__name__: function
    for function in (
        vector_add,
        softmax,
        softmax_persistent,
        matmul,
        matmul_leaky_relu,
        dropout,
        layer_norm,
        layer_norm_backward,
        layer_norm_backward_atomic,
        attention,
        attention_backward,
    )
}
