"""@triton.jit: a Python function as a kernel."""

import sys
from functools import cache, partial
from importlib import import_module

from .._C import Kernel, argument_entry, prepare_launches
from .._cached_property import cached_property
from . import environment, interpret
from .source import KernelSource, read_first_block, read_lines

_POSITIONAL_ONLY, _ANY, _VARIADIC, _KEYWORD_ONLY, _META = range(5)  # as inspect numbers them
_NONE = object()


class KernelParam:
    """One parameter of a kernel, and how its arguments are specialised."""

    __slots__ = (
        "num",
        "name",
        "kind",
        "annotation",
        "annotation_type",
        "has_default",
        "_default",
        "is_constexpr",
        "is_const",
        "do_not_specialize",
        "do_not_specialize_on_alignment",
    )

    @property
    def default(self):
        """The default value, or `inspect.Parameter.empty`."""
        if self.has_default:
            return self._default
        import inspect

        return inspect.Parameter.empty

    def __repr__(self):
        return f"KernelParam({self.name!r})"


def _annotations(fn):
    try:
        return fn.__annotations__
    except NameError:  # Python 3.14 evaluates them now, and a name they use is not defined yet
        import annotationlib

        return annotationlib.get_annotations(fn, format=annotationlib.Format.STRING)


def _is_constexpr(annotation):
    if isinstance(annotation, str):
        return "constexpr" in annotation
    return getattr(annotation, "__triton_kind__", None) == "constexpr"


def _evaluated(annotation, fn):
    """The annotation itself; of a text (annotations that are put off) that names `tunable` or a variable, what it
    stands for; of ``Annotated[tl.constexpr, triton.tunable(16, 256)]``, which type checkers take, the latter."""
    if isinstance(annotation, str):
        named = fn.__globals__.get(annotation)
        if "tunable" in annotation:
            annotation = eval(annotation, fn.__globals__)
        elif hasattr(named, "__metadata__"):
            annotation = named
    if hasattr(annotation, "__metadata__"):
        says = [each for each in annotation.__metadata__ if hasattr(each, "__triton_kind__")]
        return says[0] if says else annotation.__origin__
    return annotation


def _is_const(annotation):
    if isinstance(annotation, str):
        return annotation.split(".")[-1] == "const" or annotation.startswith("*k")
    return getattr(annotation, "__name__", None) == "const"


def _annotation_type(annotation):
    """The element type that an annotation names, "*" in front if it is a pointer to it; None for anything else."""
    kind = getattr(type(annotation), "__triton_kind__", None)
    if kind == "dtype":
        return annotation.name
    if kind == "pointer_type":
        return "*" + getattr(annotation.element_ty, "name", "")
    if isinstance(annotation, str):
        return annotation.replace("*k", "*") if annotation else None
    return None


def _signature(fn):
    """Name, kind, default (`_NONE` if there is none) and annotation of each parameter of `fn`, in order: as its
    ``__signature__`` has them, which programs give to functions that they make, or else its code."""
    stated = getattr(fn, "__signature__", None)
    if stated is not None:
        each = stated.parameters.values()
        return [
            (
                p.name,
                int(p.kind),
                _NONE if p.default is p.empty else p.default,
                "" if p.annotation is p.empty else p.annotation,
            )
            for p in each
        ]
    code = fn.__code__
    positional, keyword_only = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames
    only = code.co_posonlyargcount
    entries = [(names[i], _POSITIONAL_ONLY if i < only else _ANY) for i in range(positional)]
    rest = positional + keyword_only
    if code.co_flags & 0x04:  # CO_VARARGS
        entries.append((names[rest], _VARIADIC))
        rest += 1
    entries += [(name, _KEYWORD_ONLY) for name in names[positional : positional + keyword_only]]
    if code.co_flags & 0x08:  # CO_VARKEYWORDS
        entries.append((names[rest], _META))

    defaults = dict(fn.__kwdefaults__ or {})
    given = fn.__defaults__ or ()
    defaults.update(zip(names[positional - len(given) : positional], given, strict=True))
    annotations = _annotations(fn)
    return [(name, kind, defaults.get(name, _NONE), annotations.get(name, "")) for name, kind in entries]


def _parameters(fn, do_not_specialize, do_not_specialize_on_alignment):
    """The parameters of `fn` in the order of its signature."""
    signature = _signature(fn)
    names = [name for name, kind, *_ in signature if kind not in (_VARIADIC, _META)]
    unspecialized = _names("do_not_specialize", do_not_specialize, fn, names)
    unaligned = _names("do_not_specialize_on_alignment", do_not_specialize_on_alignment, fn, names)
    params = []
    for number, (name, kind, default, annotation) in enumerate(signature):
        if kind == _META and name.lower() != "meta":
            raise TypeError(
                f"JIT functions do not support **kwargs: name the parameters of {fn.__name__!r} that **{name} stands "
                "for (only **META, of the first release's kernels, is a mapping of compile-time values)"
            )
        param = KernelParam()
        param.num, param.name, param.kind = number, name, kind
        param.annotation = _evaluated(annotation, fn)
        param.has_default = default is not _NONE
        param._default = default if param.has_default else None
        param.is_constexpr = kind == _META or _is_constexpr(param.annotation)
        param.is_const = _is_const(param.annotation)
        param.annotation_type = None if param.is_constexpr else _annotation_type(param.annotation)
        param.do_not_specialize = bool({name, number} & unspecialized)
        param.do_not_specialize_on_alignment = bool({name, number} & unaligned)
        params.append(param)
    return params


def _names(option, given, fn, known):
    """The names or numbers of parameters in an option of @triton.jit; a warning of those that are none."""
    for name in given or ():
        if name not in known and not (isinstance(name, int) and 0 <= name < len(known)):
            import warnings

            text = f"@triton.jit({option}={given!r}): {fn.__name__!r} has no parameter {name!r}"
            warnings.warn(text, stacklevel=5)
    return set(given or ())


def _own_name(name, specialization):
    return name


class KernelInterface:
    """What can be launched: ``self[grid](...)`` is ``self.run(..., grid=grid)``."""

    def __class_getitem__(cls, item):
        return cls

    def run(self, *args, **kwargs):
        raise NotImplementedError(f"{type(self).__name__} has no run()")

    def __getitem__(self, grid):
        return partial(self.run, grid=grid)


@cache
def _prepare_launches():
    """Import what the first launch needs: the handler of a signal may launch, too, while that one is under way, and
    would find modules half imported."""
    environment.warn_of_others()
    import_module("linecache")
    for name in (
        "errors",
        "language",
        "compiler.compiler",
        "runtime.binding",
        "runtime.torch_bits",
        "runtime.background",
    ):
        import_module(f"triton.{name}")


def _is_imported(name):
    """Whether a module is there as a whole."""
    module = sys.modules.get(name)
    return module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False)


@cache
def prepare_tuning():
    """The same for the first launch of an autotuned kernel."""
    for name in ("concurrent.futures.thread", "triton.knobs", "triton.testing", "triton.runtime._async_compile"):
        import_module(name)


class _Emptied(dict):
    """A dict that says when it is emptied."""

    def __init__(self, items, on_clear):
        super().__init__(items)
        self._on_clear = on_clear

    def clear(self):
        super().clear()
        self._on_clear()


class _Variants(_Emptied):
    """What is put into it stays in `added`."""

    def __init__(self, items, added, on_clear):
        super().__init__({**added, **items}, on_clear)
        self._added = added

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        self._added[key] = value


class _ByDevice(_Emptied):
    """By the number of the device, or torch's object for it; the CPU, which is number 0 here, is "cpu" for torch."""

    def __missing__(self, device):
        number = 0 if str(device) == "cpu" else getattr(device, "index", None)
        if number not in self:
            raise KeyError(device)
        return self[number]


class JITCallable:
    """What `triton.jit` makes: a function of kernels with its source."""


class JITFunction(Kernel, JITCallable, KernelInterface):
    """A function that is compiled when it is launched: ``kernel[grid](*args, **kwargs)``."""

    __triton_kind__ = "jit"

    def __init__(
        self,
        fn,
        version=None,
        do_not_specialize=None,
        do_not_specialize_on_alignment=None,
        debug=None,
        noinline=None,
        repr=None,
        launch_metadata=None,
    ):
        self.fn = fn
        self.do_not_specialize = list(do_not_specialize or ())
        self.do_not_specialize_on_alignment = list(do_not_specialize_on_alignment or ())
        self.params = _parameters(fn, do_not_specialize, do_not_specialize_on_alignment)
        super().__init__(fn.__name__, self.params, debug)
        self.version = version
        self.noinline = bool(noinline)
        self.repr = repr or partial(_own_name, fn.__name__)
        self.launch_metadata = launch_metadata
        self._source, self._known = None, read_lines(fn)
        self._added = {}  # to `device_caches`, by programs
        self._stated = {}  # of a text that was given: its lines and the number of the first one, for tools to show
        self.arg_names = [param.name for param in self.params]
        self.__name__ = fn.__name__
        self.__qualname__ = fn.__qualname__
        self.__module__ = fn.__module__
        self.__doc__ = fn.__doc__
        self.__wrapped__ = fn
        self.__globals__ = fn.__globals__
        interpret.refresh()
        # The language's own functions are no program's kernels, and it is being imported.
        if not (fn.__module__ or "").startswith("triton."):
            _prepare_launches()
            prepare_launches(_is_imported("torch"))

    @property
    def source(self):
        """The `KernelSource`; parsed on first use, for most kernels of a library are never launched."""
        if self._source is None:
            self._source = KernelSource(self.fn, known=self._known)
        elif self._stated and not self._source.is_placed:
            self._source = KernelSource(self.fn, self._source.text, place=self._line_of_def())
        return self._source

    @property
    def _text(self):
        """File, first line and text that say what a compilation would read; None where only that can tell."""
        return read_first_block(self.fn, self._known) if self._source is None else self._source.block

    def parse(self):
        """The `ast.FunctionDef`, its positions as in the file; the same object on every call."""
        for param in self.params:
            if param.is_constexpr and param.do_not_specialize:
                from ..errors import CompilationError

                raise CompilationError(
                    f"{param.name} marked as constexpr and listed in do_not_specialize",
                    location=self.source.location,
                    remedy="each value of a constexpr makes a variant: take it out of one of them",
                )
        return self.source.tree

    @property
    def src(self):
        """The text of the function from its ``def`` on."""
        return self.source.text

    @src.setter
    def src(self, text):
        raise AttributeError(
            f"the source of kernel {self.__name__!r} is changed by _unsafe_update_src(text), before its first launch"
        )

    def warmup(self, *args, **kwargs):
        """Compile for arguments that a launch might have, and return the compiled kernel. A dtype, or a `MockTensor`,
        stands for an array of it. In an `AsyncCompileMode` it returns a `FutureKernel`."""
        from ._async_compile import active_mode

        compile, mode = super().warmup, active_mode()
        return compile(*args, **kwargs) if mode is None else mode.warmup(self, compile, args, kwargs)

    def create_binder(self):
        """The parts of a launch that programs put together themselves: what `device_caches` has for the current
        device, without variants."""
        from ..compiler.compiler import make_backend
        from .binder import Binder
        from .driver import driver

        target = driver.active.get_current_target()
        backend = make_backend(target)
        return {}, {}, target, backend, Binder(self.signature, self.params, backend)

    def _pack_args(self, backend, kwargs, bound_args, specialization, options=None):
        """See `runtime.binder.pack`."""
        from .binder import pack

        return pack(self, backend, kwargs, bound_args, specialization)

    # What the parts are compiled with: the public API has these two as attributes of a kernel, too.

    @property
    def ASTSource(self):
        from ..compiler.compiler import ASTSource

        return ASTSource

    @property
    def compile(self):
        from ..compiler.compiler import compile

        return compile

    def preload(self, specialization_data):
        """Compile the variant that a text describes, which hooks get as ``compile["specialization_data"]``; it is there
        for launches, in this process or another one. Returns the compiled kernel."""
        from .preload import preload

        return preload(self, specialization_data)

    def _unsafe_update_src(self, text):
        """Compile `text`, a definition of the same name and parameters, in place of what stands in the file.

        For tests that make kernels out of templates. Names mean what they meant in the original function.
        """
        if self.variants():
            raise RuntimeError(f"kernel {self.__name__!r} is compiled already; change its source before")
        self._source, self._stated = KernelSource(self.fn, text), {}

    def _line_of_def(self):
        """Where a text that was given is said to stand in the file of its function."""
        lines = self._stated.get("lines", ())
        before = next((i for i, line in enumerate(lines) if line.lstrip().startswith("def ")), 0)
        return self._stated.get("first", 1) + before

    def _state(self, name, value):
        """Programs that write variants of a kernel say where its lines stand: diagnostics and profiles show these."""
        if self._source is None or not self._source.is_given:
            raise AttributeError(
                f"kernel {self.__name__!r} is compiled from its file, whose lines are as they stand there"
            )
        self._stated[name] = value
        self._source.is_placed = False

    @property
    def source_file(self):
        return self.source.file

    @property
    def source_lines(self):
        """The lines of the function with its decorators, as they stand in the file."""
        return self.source.lines

    @property
    def raw_src(self):
        """The same, or what a program said they are."""
        return self._stated.get("lines") or self.source_lines

    @raw_src.setter
    def raw_src(self, lines):
        self._state("lines", list(lines))

    @property
    def first_line(self):
        """The number of the first of these lines."""
        return self.source.first_line

    @property
    def starting_line_number(self):
        """The same, or what a program said it is."""
        return self._stated.get("first") or self.first_line

    @starting_line_number.setter
    def starting_line_number(self, number):
        self._state("first", number)

    # What to add to a column of the tree: nothing, for it was parsed with its indentation.
    column_offset = 0

    @property
    def constexprs(self):
        """The numbers of the parameters that are compile-time values."""
        return [param.num for param in self.params if param.is_constexpr]

    kernel = None  # of the public API, which leaves it so

    def is_gluon(self):
        """Is it of the lower-level language beside the public API? No."""
        return False

    @property
    def module(self):
        """The name of the module that the function was defined in."""
        return self.__module__

    @cached_property
    def signature(self):
        """The parameters, as `inspect.Signature`."""
        from inspect import signature

        return signature(self.fn)

    @property
    def device_caches(self):
        """For the current device: the compiled kernels that launches asked for, by a text that tells them apart, and
        those that programs added, for which launches do not look; a dict for keys, the target, its backend and a
        `runtime.binder.Binder`. After what is being compiled behind launches. ``clear()``, of it or of the kernels,
        makes launches compile anew."""
        from .background import wait
        from .driver import driver
        from .kernel_hooks import asked_variants

        wait()
        variants = _Variants(asked_variants(self), self._added, self._forget_all)
        parts = variants, *self.create_binder()[1:]
        return _ByDevice({driver.active.get_current_device(): parts}, self._forget_all)

    def _forget_all(self):
        self._added.clear()
        self._forget()

    @property
    def cache_key(self):
        """A text that is another one when the source of this function or of one that it calls is, or the value of a
        name outside of them that they use; the same in every process."""
        from .dependencies import Dependencies

        return Dependencies(self).key()

    @property
    def hash(self):
        """The same. Keys are made when they are asked for: code that sets it to None, for one to be made again, may."""
        return self.cache_key

    @hash.setter
    def hash(self, value):
        if value is not None:
            raise AttributeError(
                f"the key of kernel {self.__name__!r} follows from its source; it can only be forgotten"
            )

    # Programs that take a kernel apart, to send it to another process, set this to None, like `fn` and `__globals__`.
    @cached_property
    def used_global_vals(self):
        """The names outside of this function, and of those that it calls, with their values when this was first read:
        (name, id of the dict or cell it stands in) to (value, dict or cell)."""
        from .dependencies import Dependencies

        return Dependencies(self).values

    def get_capture_scope(self):
        """What names outside of the function stand for: its globals, and the variables of functions around it."""
        from inspect import getclosurevars

        return {**self.__globals__, **getclosurevars(self.fn).nonlocals}

    def __reduce__(self):
        """Pickled by name, like a function; what was taken apart (``fn`` is None) without what is missing."""
        if self.fn is not None:
            return self.__qualname__
        kept = [
            "__name__",
            "__qualname__",
            "__module__",
            "__doc__",
            "noinline",
            "version",
            "arg_names",
            "_source",
            "repr",
        ]
        return _without_function, (self.params, self.debug, {name: getattr(self, name) for name in kept})

    def __repr__(self):
        return f"JITFunction({self.__module__}:{self.__qualname__})"

    def __call__(self, *args, **kwargs):
        from ..language._builtin import compute_for_kernel

        if compute := compute_for_kernel():
            return compute(self, args, kwargs)
        raise RuntimeError(
            f"cannot call @triton.jit'd function {self.__name__!r} outside of the scope of a kernel: launch it on a "
            f"grid, {self.__name__}[grid](...), or call it from another @triton.jit function"
        )


def _without_function(params, debug, attributes):
    """A kernel to look at, whose function stayed in another process."""
    kernel = JITFunction.__new__(JITFunction)
    Kernel.__init__(kernel, attributes["__name__"], params, debug)
    own = {"fn": None, "__globals__": None, "launch_metadata": None, "_added": {}, "_stated": {}}
    vars(kernel).update(attributes, params=params, **own)
    return kernel


def mangle_type(argument, specialize=False):
    """The type of an argument in a signature: "*fp32", "i32", "tensordesc<fp32[16, 16]>", ..., "constexpr", or a tuple
    of these.

    :param specialize: whether the value makes a difference, as that of a 1 does.
    """
    from ..compiler.compiler import spelled_type

    return spelled_type(argument_entry(argument, False, not specialize, not specialize))


def get_device_key():
    """What distinguishes the current target from others, in the names of files."""
    from .driver import driver
    from .target import target_name

    return target_name(driver.active.get_current_target()).replace(":", "_")


def native_specialize_impl(backend, argument, is_const=False, specialize_value=True, align=True):
    """The type of an argument, and a key of what else makes its variant: a compile-time value itself, "D" or "" for
    what is a multiple of 16 or not (`BaseBackend.parse_attr`), None for what has no more; of a tuple, tuples."""
    from ..compiler.compiler import divisibility_of, spelled_type

    if isinstance(argument, tuple):
        pairs = [native_specialize_impl(backend, each) for each in argument]
        made = getattr(type(argument), "_make", tuple)
        return made(kind for kind, _ in pairs), made(key for _, key in pairs)
    entry = argument_entry(argument, is_const, not specialize_value, not align)
    kind = spelled_type(entry)
    if kind == "constexpr":
        return kind, argument.cache_key if isinstance(argument, JITCallable) else argument
    divisibility = divisibility_of(entry) if specialize_value else None
    has_divisor = kind[0] == "*" or kind[1:] in ("8", "16", "32", "64")  # other than floats, and descriptors
    key = backend.attr_key(divisibility) or "" if has_divisor and divisibility is not None else None
    return "u1" if kind == "i1" else kind, key


def get_jit_fn_file_line(fn):
    """The file of a kernel, of what tunes one too, and the number of the line with its ``def``."""
    while not isinstance(fn, JITCallable):
        fn = fn.fn
    return fn.source_file, fn.parse().lineno


# Names of the public API's module that live elsewhere.
_ELSEWHERE = {
    "DependenciesFinder": "runtime.dependencies",
    "JitFunctionInfo": "runtime.kernel_hooks",
    "MockTensor": "runtime.wrapper",
    "TensorWrapper": "runtime.wrapper",
    "_find_paths_if_leaf_is_constexpr": "_utils",
    "_find_paths_if_leaf_is_str": "_utils",
    "compute_cache_key": "runtime.binder",
    "constexpr_function": "language",
    "create_function_from_signature": "runtime.binder",
    "reinterpret": "runtime.wrapper",
    "type_canonicalisation_dict": "_utils",
}


def __getattr__(name):
    if name == "ConstexprFunction":
        name = "constexpr_function"
    if name in _ELSEWHERE:
        return getattr(import_module(f"triton.{_ELSEWHERE[name]}"), name)
    if name == "T":
        from typing import TypeVar

        return TypeVar("T")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def jit(
    fn=None,
    *,
    version=None,
    repr=None,
    launch_metadata=None,
    do_not_specialize=None,
    do_not_specialize_on_alignment=None,
    debug=None,
    noinline=None,
):
    """Make a Python function a kernel, compiled for the types and values it is launched with.

    ``kernel[grid](*args)`` runs one program for each point of the grid. Arrays arrive as pointers to their
    first element, numbers by value, and parameters annotated ``tl.constexpr`` are compile-time values.
    Inside, the function sees the language of `triton.language`, Python's own operators and control flow, and
    other ``@triton.jit`` functions.

    A kernel is compiled when it is first launched with arguments of these types, and compiled anew when a global
    or a function it uses has another value than it was compiled with. ``TRITON_TARGET`` and ``TRITON_DEBUG`` are
    read when a kernel is compiled.

    :param do_not_specialize: parameters (names or numbers) whose value 1 or divisibility does not make a new variant.
    :param do_not_specialize_on_alignment: parameters whose divisibility alone makes none.
    :param debug: check bounds, overflow and `tl.device_assert` while it runs.
    :param noinline: called from another kernel, stay a function of its own.
    :param repr: function of the specialisation that names the compiled kernel.
    :param launch_metadata: function of grid, metadata and arguments; its dict is what hooks of launches get.
    :param version: kept as an attribute.
    """

    def decorate(fn):
        if getattr(type(fn), "__triton_kind__", None) == "jit":
            fn = fn.fn
        if hasattr(fn, "base_fn"):
            raise TypeError("@triton.jit goes below @triton.autotune and @triton.heuristics, right above the function")
        while hasattr(fn, "__wrapped__"):  # staticmethod, functools.wraps: the innermost has the source
            fn = fn.__wrapped__
        if not hasattr(fn, "__code__"):
            raise TypeError(f"@triton.jit takes a function made by def, not {type(fn).__name__!r} ({fn!r})")
        return JITFunction(
            fn,
            version=version,
            do_not_specialize=do_not_specialize,
            do_not_specialize_on_alignment=do_not_specialize_on_alignment,
            debug=debug,
            noinline=noinline,
            repr=repr,
            launch_metadata=launch_metadata,
        )

    return decorate if fn is None else decorate(fn)
