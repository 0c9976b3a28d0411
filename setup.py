"""Builds triton._C: compiles what changed in csrc/ and links LLVM in; the result needs only libc and libm.

Environment:
    TRITON_BUILD   release (default), dev (assertions, debug information) or asan (dev with sanitizers)
    TRITON_WERROR  1 makes warnings errors, as CI=true does
    LLVM_CONFIG    the llvm-config to use, of LLVM 19 or newer
    CC             the C compiler
"""

import os
import shlex
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import copyfile, which

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, LinkError, PlatformError

LLVM_VERSIONS = range(22, 18, -1)
LLVM_COMPONENTS = ["native", "nvptx", "orcjit", "passes", "irreader", "linker"]

LATE = "csrc/codegen/late.ld"

SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
VARIANTS = {  # compiler flags, linker flags
    "release": (["-O2", "-DNDEBUG"], ["-s"]),
    "dev": (["-O2", "-g"], []),
    "asan": (["-O1", "-g", "-fno-omit-frame-pointer", *SANITIZE], SANITIZE),
}

CC = shlex.split(os.environ.get("CC", "gcc"))

if sysconfig.get_config_var("Py_GIL_DISABLED"):
    raise SystemExit(
        "tritonc does not build for free-threaded Python (3.13t, 3.14t): the one binary for every Python is made "
        "against the limited API, which these interpreters do not have, and the tables that launches look kernels up "
        "in are guarded by the interpreter's lock. Use a Python with the lock: compiling, kernels on the CPU and "
        "launches on a GPU run without it, in as many threads as there are."
    )


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def find_llvm_config():
    places = "llvm-config-{}", "/usr/lib/llvm-{}/bin/llvm-config"
    names = [place.format(n) for n in LLVM_VERSIONS for place in places]
    chosen = os.environ.get("LLVM_CONFIG")
    found = next(filter(None, map(which, [chosen] if chosen else names)), None)
    if not found:
        asked = f"LLVM_CONFIG={chosen} does not run" if chosen else "no llvm-config found"
        raise PlatformError(f"{asked}: run scripts/setup, or set LLVM_CONFIG to that of LLVM 19 or newer")
    version = output(found, "--version")
    if int(version.split(".")[0]) < LLVM_VERSIONS[-1]:
        raise PlatformError(f"{found} is LLVM {version}: version {LLVM_VERSIONS[-1]} or newer is needed")
    return found


def archive(name):
    """The static library if there is one, so that it does not become a dependency."""
    path = output(*CC, f"-print-file-name=lib{name}.a")
    return path if os.path.isabs(path) else f"-l{name}"


def dependencies(depfile):
    return depfile.read_text().replace("\\\n", " ").split()[1:]


def modified(path, missing=sys.maxsize):
    return os.stat(path).st_mtime_ns if os.path.exists(path) else missing


class Build(build_ext):
    def finalize_options(self):
        super().finalize_options()
        self.variant = os.environ.get("TRITON_BUILD", "release")
        if self.variant not in VARIANTS:
            raise PlatformError(f"TRITON_BUILD={self.variant} is none of {', '.join(VARIANTS)}")
        self.objects = Path("build", self.variant)

    def build_extension(self, ext):
        llvm = find_llvm_config()
        sources = sorted(Path("csrc").rglob("*.c"))
        objects = [self.objects / source.with_suffix(".o") for source in sources]
        self.compile(self.compile_command(llvm), sources, objects)
        linked = self.link(self.link_command(llvm, objects), objects)
        library = Path(self.get_ext_fullpath(ext.name))
        library.parent.mkdir(parents=True, exist_ok=True)
        library.unlink(missing_ok=True)  # a process that has it mapped keeps the old one
        copyfile(linked, library)

    def compile_command(self, llvm):
        import numpy

        # System directories: no warnings from them, and no dependencies on them.
        system = [output(llvm, "--includedir"), sysconfig.get_path("include"), numpy.get_include()]
        werror = os.environ.get("CI") == "true" or os.environ.get("TRITON_WERROR") == "1"
        return [
            *CC, "-c", "-MMD", "-std=gnu17", "-Wall", "-Wextra", *["-Werror"] * werror,
            *VARIANTS[self.variant][0],
            "-fPIC", "-fvisibility=hidden", "-ffunction-sections", "-fdata-sections",
            "-ftls-model=initial-exec",  # signal handlers read such variables, which others may allocate at that moment
            "-DPy_LIMITED_API=0x030B0000", "-DNPY_NO_DEPRECATED_API=NPY_2_0_API_VERSION",
            f'-DTT_VERSION="{self.distribution.get_version()}"',
            "-Icsrc", *[word for path in system for word in ("-isystem", path)],
            *shlex.split(os.environ.get("CFLAGS", "")),
        ]  # fmt: skip

    def link_command(self, llvm, objects):
        # lld links this in a tenth of the time that GNU ld takes.
        bin_dir = output(llvm, "--bindir")
        linker = [f"-B{bin_dir}", "-fuse-ld=lld"] if which("ld.lld", path=bin_dir) else []
        return [
            *CC, "-shared", *linker, *VARIANTS[self.variant][1], "-static-libgcc",
            f"-Wl,-T,{LATE}", "-Wl,--gc-sections", "-Wl,--exclude-libs,ALL", "-Wl,--build-id=sha1", *map(str, objects),
            *output(llvm, "--link-static", "--ldflags", "--libs", *LLVM_COMPONENTS).split(),
            *map(archive, ("stdc++", "zstd", "z")), "-lm", "-o", str(self.objects / "_C.so"),
        ]  # fmt: skip

    def compile(self, command, sources, objects):
        """Compiles the sources newer than their objects, or all of them when the command is a new one."""
        same = self.unchanged("compile", command)
        for old in set(self.objects.rglob("*.o")) - set(objects if same else []):
            old.unlink()

        def stale(target):
            depfile = target.with_suffix(".d")
            if not (target.exists() and depfile.exists()):
                return True
            return max(map(modified, dependencies(depfile))) >= modified(target)

        color = [f"-fdiagnostics-color={'always' if sys.stderr.isatty() else 'auto'}"]

        def compile_one(pair):
            source, target = pair
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            done = subprocess.run([*command, *color, source, "-o", target], capture_output=True, text=True)
            print(f"cc {source}\n{done.stderr}", end="", flush=True)
            return done.returncode == 0

        todo = [(source, target) for source, target in zip(sources, objects, strict=True) if stale(target)]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            compiled = list(pool.map(compile_one, todo))
        if not all(compiled):
            raise CompileError("the C sources do not compile")

    def link(self, command, objects):
        library = self.objects / "_C.so"
        sources = [*objects, LATE]
        if not self.unchanged("link", command) or max(map(modified, sources)) >= modified(library, missing=0):
            print("ld triton._C", flush=True)
            library.unlink(missing_ok=True)
            if subprocess.run(command).returncode:
                raise LinkError("triton._C does not link")
        return library

    def unchanged(self, name, command):
        """Whether the command is the recorded one; records it."""
        record = self.objects / f"{name}.command"
        text = shlex.join(command)
        if record.exists() and record.read_text() == text:
            return True
        record.parent.mkdir(parents=True, exist_ok=True)
        record.write_text(text)
        return False


setup(
    ext_modules=[Extension("triton._C", [], py_limited_api=True)],
    cmdclass={"build_ext": Build},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
