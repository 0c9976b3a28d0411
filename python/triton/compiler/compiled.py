"""A compiled kernel: its code on a device, and what can be asked of it."""

import os
from collections import namedtuple
from collections.abc import Mapping
from functools import cache

from .. import _C
from .._cached_property import cached_property
from ..errors import PTXASError
from ..runtime.target import target_of


def cuda_tool(name):
    """Path of a program of the CUDA toolkit, or None. TRITON_PTXAS_PATH says which `ptxas` is meant."""
    import shutil

    asked = os.environ.get(f"TRITON_{name.upper()}_PATH")
    beside = os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin", name)
    return asked or shutil.which(name) or (beside if os.path.exists(beside) else None)


def assemble(ptx):
    """The cubin that ptxas makes, which is the code that the driver loads; None where there is no ptxas.

    Raises PTXASError where it does not take the code: it may be older than the driver.
    """
    import re
    import subprocess
    import tempfile

    ptxas = cuda_tool("ptxas")
    if not ptxas:
        return None
    with tempfile.TemporaryDirectory() as folder:
        source, result = os.path.join(folder, "kernel.ptx"), os.path.join(folder, "kernel.cubin")
        with open(source, "w") as file:
            file.write(ptx)
        architecture = re.search(r"\.target (\w+)", ptx)[1]
        command = [ptxas, f"-arch={architecture}", "-lineinfo", source, "-o", result]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise PTXASError(f"{ptxas} does not take the code of a kernel:\n{done.stderr or done.stdout}")
        with open(result, "rb") as file:
            return file.read()


def disassemble(cubin):
    """The machine code of a cubin as text, with the source lines it comes from."""
    import subprocess
    import tempfile

    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [cuda_tool("nvdisasm"), "--print-code", file.name]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Stages(Mapping):
    """The text of each stage that a kernel went through, made when it is asked for."""

    def __init__(self, compiled):
        self._compiled = compiled
        self._names = compiled._stages()
        if "cubin" in self._names and cuda_tool("nvdisasm"):
            self._names += ("sass",)

    def __getitem__(self, stage):
        if stage not in self._names:
            target = self._compiled.info["target"]
            raise KeyError(f"no stage {stage!r} on target {target!r}; there are: {', '.join(self._names)}")
        if stage == "cubin":
            return self._cubin
        return disassemble(self._cubin) if stage == "sass" else self._compiled._text(stage)

    @property
    def _takes_descriptors(self):
        """Was it asked for with descriptors in its signature? Launchers of such machine code would pass tensor maps."""
        return any(str(kind).startswith("tensordesc<") for kind in self._compiled.src.signature.values())

    @cached_property
    def _assembled(self):
        if self._takes_descriptors:
            return None
        try:
            return assemble(self._compiled._text("ptx"))
        except PTXASError:
            return None

    @property
    def _cubin(self):
        if self._takes_descriptors:
            raise NotImplementedError(
                f"the machine code of {self._compiled.name!r} for other launchers: its descriptors are pointers with "
                "extents and strides, not tensor maps (make them in the kernel, with tl.make_tensor_descriptor)"
            )
        return self._assembled or self._compiled._text("cubin")

    def __iter__(self):
        return iter(self._names)

    def __len__(self):
        return len(self._names)

    def __repr__(self):
        return f"<stages {', '.join(self._names)}>"


@cache
def _metadata_type(names):
    return namedtuple("KernelMetadata", names)


# What runs, whatever was asked for.
_CLUSTER = {"num_ctas": 1, "cluster_dims": (1, 1, 1)}


def _metadata(info, hash):
    """num_warps, num_stages, num_ctas, shared, name, target, signature, constants, timings, ... as a named tuple.

    There is no global_scratch_size and no profile_scratch_size: launchers that find them pass two more arguments, and
    kernels take their own only.
    """
    more = {"target": target_of(info["target"]), "tmem_size": 0, "hash": hash} | _CLUSTER
    fields = info | more
    return _metadata_type(tuple(sorted(fields)))(**fields)


class LaunchMetadata:
    """What launch hooks get: ``get()`` is a dict, put together when it is first asked for."""

    def __init__(self, compiled, grid, stream, arguments):
        self.data = {"name": compiled.name, "function": compiled, "stream": stream}
        self._more = compiled.fn.launch_metadata, (grid, compiled.metadata, arguments)

    def get(self):
        function, arguments = self._more
        if function is not None:
            self.data |= function(*arguments)
            self._more = None, ()
        return self.data


class CompiledKernel(_C.CompiledKernel):
    """The code for one specialisation of a kernel; ``compiled[grid](*args)`` launches it.

    Made by launches, `warmup` and `triton.compile`. It may be pickled where its `ASTSource` may: what is unpickled is
    lowered from its tile IR again.
    """

    @cached_property
    def src(self):
        """The `ASTSource` that it was compiled from."""
        from .compiler import ASTSource

        return ASTSource.of(self.fn, self.info)

    @cached_property
    def hash(self):
        """A text that no other code for another kernel, signature, target or other options has."""
        from hashlib import sha256

        parts = self._ir, self.info["target"], self._settings
        return sha256("\n".join(map(repr, parts)).encode()).hexdigest()

    @property
    def _settings(self):
        """What decides the code beside tile IR and target."""
        from .compiler import DEFAULTS

        return [self.info[name] for name in (*DEFAULTS, "debug", "name")]

    def _code_key(self):
        """What distinguishes its code: equal keys run the same, whatever options they were compiled with."""
        info = self.info
        if info["target"] == "cpu":
            return self._ir, info["enable_fp_fusion"], info["debug"]
        text = self._text("ptx") or self._text("ttgir")
        return text, info["num_warps"], info["launch_cooperative_grid"], info["launch_pdl"], info["debug"]

    def _ignores(self, one, other):
        """Whether two `Config`s that differ in options alone would give this same code: a CPU has no warps, and its
        compiler no stages."""
        return self.info["target"] == "cpu" and not self.info["reads_num_warps"] and one.num_ctas == other.num_ctas

    @cached_property
    def asm(self):
        """The text of each stage by name: ttir, llir, asm, ptx, ... Made when asked for."""
        return Stages(self)

    @cached_property
    def metadata(self):
        """num_warps, num_stages, shared, name, target, signature, ... as a named tuple."""
        return _metadata(self.info, self.hash)

    @cached_property
    def metadata_group(self):
        """The files that hold the kernel, name to path: a cubin for a GPU, where TRITON_CACHE_DIR says and ptxas is."""
        if not self.info["target"].startswith("cuda"):
            return {}
        from ..runtime.cache import keep

        return keep(self.hash, {f"{self.name}.cubin": lambda: self.asm._assembled})

    @cached_property
    def packed_metadata(self):
        """num_warps, num_ctas and shared memory in bytes."""
        return self.num_warps, self.num_ctas, self.shared

    @property
    def kernel(self):
        """The last stage: machine code of a GPU, assembly of a CPU."""
        stages = [stage for stage in self.asm if stage != "sass"]
        return self.asm[stages[-1]]

    name = property(lambda self: self.info["name"], doc="Name of the compiled kernel.")

    @property
    def timings(self):
        """Milliseconds that each phase of compiling took."""
        from ..runtime.tables import Timings

        return Timings(self.info["timings"])

    signature = property(lambda self: self.info["signature"], doc="Types of the parameters by name.")
    shared = property(lambda self: self.info["shared"], doc="Bytes of fast memory that a program keeps.")
    num_warps = property(lambda self: self.info["num_warps"])
    num_ctas = property(lambda self: _CLUSTER["num_ctas"])
    cluster_dims = property(lambda self: self.metadata.cluster_dims)
    run = property(
        lambda self: self._run,
        doc="``run(grid_0, grid_1, grid_2, stream, function, packed_metadata, launch_metadata, enter_hook, exit_hook, "
        "*args)``: launch for these arguments, one for each parameter, of the types that it was compiled for; those of "
        "compile-time parameters are not looked at.",
    )

    def launch_metadata(self, grid, stream, *args):
        """What the hooks of a launch get; None where there is no hook."""
        from .. import knobs

        if not knobs.runtime.launch_enter_hook.calls:
            return None
        return LaunchMetadata(self, grid, stream, dict(zip(self.fn.arg_names, args, strict=True)))

    def __getitem__(self, grid):
        return CompiledLauncher(self, grid)

    def __repr__(self):
        return f"CompiledKernel({self.fn.__name__}, {self.signature})"

    def _repr_html_(self):
        """For notebooks: the stages beside the kernel's lines."""
        from .page import page

        return page(self)

    # ---- pickling: what is kept in `__dict__` makes the code again, for those that restore only that

    def _keep(self):
        """Put into `__dict__` what `_init_handles` makes the code from."""
        self._image = self.image, self.info
        return self.src, self.hash, self.metadata, self.packed_metadata, self.metadata_group

    def _init_handles(self):
        """Load the code onto the current device if that has not happened; OutOfResources if it does not fit there."""
        if "_image" in self.__dict__ and not self._has_code():
            image, info = self._image
            self._restore(self.src.fn, info, image)
        super()._init_handles()

    def __getstate__(self):
        self._keep()
        state = {name: self.__dict__[name] for name in ("_image", "src", "hash", "packed_metadata")}
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)
        image, info = self._image
        self._restore(self.src.fn, info, image)


class CompiledLauncher:
    """compiled[grid]: launches with the compile-time values and options that the kernel was compiled with.

    The arguments are those of the kernel, with or without its compile-time ones. They may need another variant than
    this one (an array that is not aligned): it is that which runs.
    """

    def __init__(self, compiled, grid):
        self._compiled, self._grid = compiled, grid

    def __call__(self, *args, **kwargs):
        kernel, info = self._compiled.fn, self._compiled.info
        constants = {param.name: param for param in kernel.params if param.is_constexpr}
        runtime = [param.name for param in kernel.params if param.name not in constants]
        if len(args) == len(runtime) < len(kernel.params):
            kwargs.update(zip(runtime, args, strict=True))
            args = ()
        given = {*kwargs, *kernel.arg_names[: len(args)]}
        kwargs.update((name, info["constants"][name]) for name in constants if name not in given)
        kwargs.update((name, value) for name, value in info["options"].items() if name not in given)
        self._compiled._rejoin()
        return kernel.run(*args, grid=self._grid, **kwargs)
