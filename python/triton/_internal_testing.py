"""Helpers under the names that public test suites of the Triton language import them by.

They need NumPy, torch and pytest. What they ask of the hardware, the target that kernels are compiled for answers.
"""

import importlib
import multiprocessing
import os
import pickle
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np
import pytest
import torch

import triton
import triton.language as tl
from triton._utils import type_canonicalisation_dict as type_canonicalisation_dict

int_dtypes = ["int8", "int16", "int32", "int64"]
uint_dtypes = ["uint8", "uint16", "uint32", "uint64"]
integral_dtypes = int_dtypes + uint_dtypes
float_dtypes = ["float16", "float32", "float64"]
float_dtypes_with_bfloat16 = [*float_dtypes, "bfloat16"]
dtypes = integral_dtypes + float_dtypes
dtypes_with_bfloat16 = [*dtypes, "bfloat16"]
torch_float8_dtypes = ["float8_e4m3fn", "float8_e5m2"]
torch_dtypes = ["bool", *int_dtypes, "uint8", *float_dtypes_with_bfloat16]
tma_dtypes = sorted(set(dtypes_with_bfloat16) - {"int64", "uint64", "float64"})

_OTHER_NAMES = {"bool": "int1", "float8_e4m3fn": "float8e4nv", "float8_e5m2": "float8e5"}
_OTHER_NAMES |= {"float8_e4m3fnuz": "float8e4b8", "float8_e5m2fnuz": "float8e5b16"}


# ---- the target


def get_current_target():
    """The target, with `backend` and `arch`."""
    return triton.runtime.driver.active.get_current_target()


def is_interpreter():
    """Are kernels run in Python, not compiled?"""
    return triton.knobs.runtime.interpret


def is_cuda():
    return get_current_target().backend == "cuda"


def _major():
    return torch.cuda.get_device_capability()[0] if is_cuda() else 0


def is_ampere_or_newer():
    return _major() >= 8


def is_rubin():
    return is_cuda() and torch.cuda.get_device_capability() == (10, 7)


def is_hopper():
    return _major() == 9


def is_hopper_or_newer():
    return _major() >= 9


def is_blackwell():
    return _major() == 10


def is_blackwell_ultra():
    return is_cuda() and torch.cuda.get_device_capability() == (10, 3)


def is_sm12x():
    return _major() == 12


def _never():
    return False


is_hip = is_hip_cdna = is_hip_cdna2 = is_hip_cdna3 = is_hip_cdna4 = is_hip_cdna3_or_newer = _never
is_hip_rdna = is_hip_rdna3 = is_hip_rdna4 = is_hip_rdna4m = is_hip_mi200 = is_hip_mi300 = is_hip_mi350 = _never
is_hip_gfx11 = is_hip_gfx12 = is_hip_gfx1250 = is_xpu = _never


def get_arch():
    return str(get_current_target().arch)


def get_hip_lds_size():
    """Of AMD's GPUs, which kernels are not compiled for."""
    return 65536


def supports_tma(byval_only=False):
    """Tensor memory access is generated, but not for all that tests which ask expect of it."""
    return False


def supports_ws():
    """Neither are specialised warps."""
    return False


def supports_clc():
    """Nor do programs ask a running one for its place (cluster launch control)."""
    return False


def is_compile_warmup():
    """Are tests run for what they compile alone? No: nothing here does that."""
    return False


def tma_skip_msg(byval_only=False):
    return "tensor memory access is generated for operands of products alone"


requires_tma = pytest.mark.skipif(not supports_tma(), reason=tma_skip_msg())


# ---- values


def numpy_random(shape, dtype_str, rs=None, low=None, high=None):
    """Random values as NumPy holds them, the same on every call unless `rs` is given.

    Integers are never 0, so that they can divide; bfloat16 comes as float32 with a short mantissa, float8 as bytes.
    """
    rs = np.random.RandomState(17) if rs is None else rs
    shape = (shape,) if isinstance(shape, int) else shape
    if dtype_str in integral_dtypes:
        limits = np.iinfo(dtype_str)
        low = limits.min if low is None else max(low, limits.min)
        high = limits.max if high is None else min(high, limits.max)
        values = rs.randint(low, high, shape, dtype=dtype_str)
        values[values == 0] = 1
        return values
    if "float8" in dtype_str:
        return rs.randint(20, 40, shape, dtype=np.int8)
    values = rs.normal(0, 1, shape)
    if dtype_str in ("bool", "int1", "bool_"):
        return values > 0
    if dtype_str == "bfloat16":
        return (values.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    if dtype_str not in float_dtypes:
        raise ValueError(f"there is no dtype {dtype_str!r}")
    return values.astype(dtype_str)


def random_int(low, high, *, warmup_value=None, **options):
    """One of torch's random integers from `low` to below `high`. `warmup_value` is for `is_compile_warmup`."""
    return torch.randint(low, high, (), **options).item()


def random_float(*, warmup_value=0.5, **options):
    """One of torch's random numbers in [0, 1)."""
    return torch.rand((), **options).item()


def to_triton(x, device, dst_type=None):
    """A NumPy array as an argument on `device`; `dst_type` names the type where NumPy has none of it."""
    name = x.dtype.name
    if name in uint_dtypes:
        return triton.reinterpret(torch.tensor(x.astype(name[1:]), device=device), getattr(tl, name))
    tensor = torch.tensor(x, device=device)
    if dst_type and "float8" in dst_type:
        return triton.reinterpret(tensor, getattr(tl, dst_type))
    return tensor.bfloat16() if name == "float32" and dst_type == "bfloat16" else tensor


def to_numpy(x):
    """An argument's values as NumPy holds them, bfloat16 as float32."""
    if isinstance(x, triton.TensorWrapper):
        return x.base.cpu().numpy().astype(torch_dtype_name(x.dtype))
    if not isinstance(x, torch.Tensor):
        raise ValueError(f"not an argument of a kernel: {x!r}")
    return (x.float() if x.dtype is torch.bfloat16 else x).cpu().numpy()


def unwrap_tensor(t):
    return t.base if isinstance(t, triton.TensorWrapper) else t


def torch_dtype_name(dtype):
    """The name of a dtype of torch or of the language: "int64"."""
    if isinstance(dtype, torch.dtype):
        return str(dtype).removeprefix("torch.")
    if isinstance(dtype, tl.dtype):
        return repr(dtype).removeprefix("triton.language.")
    raise TypeError(f"not a dtype of torch or of triton.language: {dtype!r}")


def str_to_triton_dtype(x):
    """The language's dtype of a name of torch or NumPy."""
    return getattr(tl, _OTHER_NAMES.get(x, x))


# ---- another process


@dataclass
class ProcessResult:
    """How a process that `run_in_process` started ended: its exception or None, and what was written to its stderr."""

    exc: BaseException | None
    driver_stderr_output: str


def _serve(connection, module):
    """What a process of `_Worker` does: calls, one after the other, until one raises: it may have lost its device."""
    if module:
        importlib.import_module(module)
    error = None
    while error is None:
        try:
            function, args, kwargs, env, path = connection.recv()
        except EOFError:
            return
        error = _call(function, args, kwargs, env, path)
        try:
            pickle.dumps(error)
        except Exception:
            error = RuntimeError(f"{type(error).__name__}: {error}")
        connection.send(error)


def _call(function, args, kwargs, env, path):
    """The exception of a call or None; what is written to stderr meanwhile, by the driver as well, goes to a file."""
    file, own = os.open(path, os.O_WRONLY | os.O_CREAT), os.dup(2)
    os.dup2(file, 2)
    try:
        with pytest.MonkeyPatch.context() as patch, ExitStack() as kept:
            for group in _groups().values():
                kept.enter_context(group.scope())
            for name, text in env.items():
                patch.setenv(name, text)
            function(*args, **kwargs)
    except Exception as raised:
        return raised
    finally:
        os.dup2(own, 2)
        os.close(own)
        os.close(file)


class _Worker:
    """A process for calls of functions of modules, which may lose its device or its life."""

    def __init__(self, module=None, env=None):
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, module))
        with pytest.MonkeyPatch.context() as patch:  # what it imports sees these, too
            for name, text in (env or {}).items():
                patch.setenv(name, text)
            self.process.start()
        theirs.close()

    def run(self, function, args, kwargs, env):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "stderr")
            self.connection.send((function, args, kwargs or {}, env or {}, path))
            try:
                error = self.connection.recv()
            except EOFError:
                self.process.join()
                error = RuntimeError(f"the process ended with the exit code {self.process.exitcode}")
            written = ""
            if os.path.exists(path):
                with open(path, errors="replace") as file:
                    written = file.read()
        return ProcessResult(error, written)

    def close(self):
        self.connection.close()
        self.process.join()


class _Pool:
    """A worker that has imported a module, and a new one where it failed."""

    def __init__(self, module):
        self.module, self.worker = module, _Worker(module)

    def run(self, function, args=(), kwargs=None, env=None):
        result = self.worker.run(function, args, kwargs, env)
        if result.exc is not None:
            self.worker.close()
            self.worker = _Worker(self.module)
        return result


_pools = []


@contextmanager
def use_process_pool(preload_module):
    """Inside, `run_in_process` takes one process for call after call, as long as they succeed: it has imported a module
    already, and is not to be started each time."""
    pool = _Pool(preload_module)
    _pools.append(pool)
    try:
        yield pool
    finally:
        _pools.remove(pool)
        pool.worker.close()


def run_in_process(client_fn, args=(), kwargs=None, env=None):
    """Call a function of a module in a fresh process, or in that of `use_process_pool`; it may lose its device or life.

    :param env: variables of its environment beside those of this one.
    :return: a `ProcessResult`; one that ends without a word has a RuntimeError that names its exit code.
    """
    if _pools:
        return _pools[-1].run(client_fn, args, kwargs, env)
    worker = _Worker(env=env)
    try:
        return worker.run(client_fn, args, kwargs, env)
    finally:
        worker.close()


def default_alloc_fn(size, align, stream):
    """Memory on the GPU, for `triton.set_allocator`."""
    return torch.empty(size, dtype=torch.int8, device="cuda")


# ---- settings


def _groups():
    """The groups of `triton.knobs` by name."""
    from triton import knobs

    return {name: group for name, group in vars(knobs).items() if isinstance(group, knobs.base_knobs)}


def _fresh_knobs_impl(skipped_attr=()):
    """Two functions: one takes away whatever the groups of `triton.knobs` hold, those in the environment included, and
    returns the module; the other puts it back."""
    from triton import knobs

    groups = [group for name, group in _groups().items() if name not in (skipped_attr or ())]
    kept, propagates = ExitStack(), knobs.propagate_env

    def fresh_function():
        for group in groups:
            kept.enter_context(group.scope())
            group.reset()
            for setting in group.knob_descriptors.values():
                os.environ.pop(setting.key, None)
                setting.changed(group)
        knobs.propagate_env = True
        return knobs

    def reset_function():
        knobs.propagate_env = propagates
        kept.close()

    return fresh_function, reset_function
