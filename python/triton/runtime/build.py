"""Extension modules in C that a program builds while it runs, as backends do. Launches of ours need none."""

import importlib.util
import os
import platform
import shutil
import subprocess
import sysconfig
import tempfile
from functools import cache


@cache
def platform_key():
    """What tells systems apart whose modules the others cannot load."""
    from hashlib import sha256

    parts = platform.machine(), platform.system(), *platform.architecture(), sysconfig.get_config_var("EXT_SUFFIX")
    return sha256(",".join(map(str, parts)).encode()).hexdigest()


@cache
def _find_compiler(language):
    """The path of the system's compiler for "c" or "c++"."""
    names = ["g++", "clang++"] if language == "c++" else ["gcc", "clang"]
    for name in reversed(names) if platform.system() == "Darwin" else names:
        if found := shutil.which(name):
            return found
    raise RuntimeError(f"there is no {' and no '.join(names)} to compile {language}; CC or CXX may name a compiler")


def _build(name, src, srcdir, library_dirs=(), include_dirs=(), libraries=(), ccflags=(), language="c"):
    """Compile a file to a shared library in `srcdir` that Python can import, and return its path."""
    from .. import knobs

    if knobs.build.impl is not None:
        return knobs.build.impl(name, src, srcdir, library_dirs, include_dirs, libraries)
    path = os.path.join(srcdir, name + sysconfig.get_config_var("EXT_SUFFIX"))
    folders = *include_dirs, srcdir, sysconfig.get_paths()["include"], *knobs.build.backend_dirs
    compiler = os.environ.get("CXX" if language == "c++" else "CC") or _find_compiler(language)
    command = [*compiler.split(), src, "-O3", "-shared", "-fPIC", "-Wno-psabi", "-o", path]
    command += [f"-I{folder}" for folder in folders] + [f"-L{folder}" for folder in library_dirs]
    command += [f"-l{library}" for library in libraries] + list(ccflags)
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the compiler refused {name}: {' '.join(command)}\n{done.stderr}")
    return path


def _load_module_from_path(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compile_module_from_src(
    src, name, library_dirs=None, include_dirs=None, libraries=None, ccflags=None, language="c"
):
    """The extension module that a text in C (or C++) defines, built unless it is kept from an earlier time.

    :param name: of the module; the text has a function ``PyInit_NAME``.
    """
    from hashlib import sha256

    from .cache import get_cache_manager

    asked = src, name, library_dirs, include_dirs, libraries, ccflags, language, platform_key()
    manager = get_cache_manager(sha256(repr(asked).encode()).hexdigest())
    file = name + sysconfig.get_config_var("EXT_SUFFIX")
    if path := manager.get_file(file):
        try:
            return _load_module_from_path(name, path)
        except ImportError:
            pass  # it is no module, or of another system: it is built anew
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, f"{name}.{'cpp' if language == 'c++' else 'c'}")
        with open(source, "w") as text:
            text.write(src)
        each = library_dirs or (), include_dirs or (), libraries or (), ccflags or (), language
        with open(_build(name, source, folder, *each), "rb") as built:
            path = manager.put(built.read(), file, binary=True)
    return _load_module_from_path(name, path)


def compile_module_from_file(src_path, name, library_dirs=None, include_dirs=None, libraries=None, ccflags=None):
    """The same of the text of a file."""
    with open(src_path) as file:
        return compile_module_from_src(file.read(), name, library_dirs, include_dirs, libraries, ccflags)


__all__ = ["compile_module_from_file", "compile_module_from_src", "platform_key"]
