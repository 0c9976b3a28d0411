"""What public test suites look at the frontend with: `run_parser`. What they expect of its text is another compiler's
representation, and says nothing of tile IR."""

from functools import wraps

from .backends.compiler import GPUTarget

stub_target = GPUTarget("cuda", 100, 32)


def run_parser(kernel_fn, args=(), kwargs=None, target=stub_target):
    """What the frontend makes of a kernel for arguments: a module to look at (`triton.compiler.view`). Raises what
    compiling it would up to there.

    :param kwargs: further arguments, and options of a launch.
    """
    from .compiler import ASTSource, make_backend
    from .runtime.binder import Binder

    backend, kwargs = make_backend(target), {"sanitize_overflow": False} | (kwargs or {})
    bound, specialization, _ = Binder(kernel_fn.signature, kernel_fn.params, backend)(*args, **kwargs)
    options, signature, constants, attrs = kernel_fn._pack_args(backend, kwargs, bound, specialization)
    source = ASTSource(kernel_fn, signature, constants, attrs)
    return source.make_ir(target, options, {}, {}, None)


def run_filecheck(name, module_str, check_template):
    """Compare a text with expectations in the language of LLVM's FileCheck. There is none here."""
    _not_compared()


def run_filecheck_test(kernel_fn, args=(), kwargs=None):
    """Whether the frontend takes a kernel; pytest counts it as skipped then, for its text is not compared with the
    expectations in comments."""
    run_parser(kernel_fn, args, kwargs)
    _not_compared()


def filecheck_test(fn):
    """Make a test of a kernel without parameters: `run_filecheck_test`."""

    @wraps(getattr(fn, "fn", fn))
    def test_fn():
        run_filecheck_test(fn)

    return test_fn


def _not_compared():
    text = (
        "the frontend took the kernel; what is expected of its text is MLIR, and kernels are compiled through tile IR"
    )
    try:
        import pytest
    except ImportError:
        from .errors import UnsupportedError

        raise UnsupportedError(text) from None
    pytest.skip(text)
