"""Builds an extension by PyTorch's own torch.utils.cpp_extension: its hipify, its options, its ninja.

Arguments: the directory of PyTorch's wheel, the extension's source. PYTORCH_NVCC and PYTORCH_ROCM_ARCH are read by PyTorch. Its native
part is not loaded: the few values of it that are asked for here are those of PyTorch for ROCm. Its libraries are not linked.
"""

import os
import shutil
import sys
import types


def module(name, path=None, **values):
    made = types.ModuleType(name)
    made.__dict__.update(values)
    if path is not None:
        made.__path__ = [path]
    sys.modules[name] = made
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, made)
    return made


def load_cpp_extension(wheel):
    torch = os.path.join(wheel, "torch")
    version = {}
    with open(os.path.join(torch, "version.py")) as file:
        exec(file.read(), version)
    module("torch", torch, __file__=os.path.join(torch, "__init__.py"))
    module("torch.version", __version__=version["__version__"], hip="7.2.0", cuda=None, xpu=None)
    module("torch._C", _PYBIND11_COMPILER_TYPE="_gcc", _PYBIND11_STDLIB="_libstdcpp", _PYBIND11_BUILD_ABI="_cxxabi1018")
    module("torch.cuda", is_available=lambda: False, _is_compiled=lambda: True)
    module("torch.xpu", _is_compiled=lambda: False, get_arch_list=list)
    module("torch.ops", load_library=lambda path: None)
    module("torch.utils", os.path.join(torch, "utils"))
    from torch.utils import cpp_extension

    return cpp_extension


def lay_out_rocm(directory):
    """ROCm in a directory of its own: with Debian's /usr in its place, -isystem /usr/include would hide headers of C++."""
    os.makedirs(os.path.join(directory, "include"))
    for name in ("hip", "hsa"):
        os.symlink(os.path.join("/usr/include", name), os.path.join(directory, "include", name))
    os.environ["ROCM_HOME"] = directory


def main():
    wheel, source = sys.argv[1:]
    # One directory for all builds: objects contain its name.
    directory = os.path.abspath("../extension")
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    source = shutil.copy(source, directory)
    lay_out_rocm(os.path.join(directory, "rocm"))
    os.environ.setdefault("CXX", "/usr/lib/llvm-22/bin/clang++")
    cpp_extension = load_cpp_extension(wheel)
    cpp_extension._prepare_ldflags = lambda flags, *_: flags
    cpp_extension.load(
        "scale",
        [source],
        extra_cuda_cflags=["-O2", "-w", "-cuid=scale"],
        extra_ldflags=["-lamdhip64"],
        build_directory=directory,
        is_python_module=False,
        verbose="PRINT" in os.environ,
    )
    shutil.copy(os.path.join(directory, "scale.so"), "scale.so")


main()
