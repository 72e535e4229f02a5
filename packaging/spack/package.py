"""Example of a package for Spack: HotSwap as a build tool for packages with an amdgpu_target variant."""

from spack.package import *


class Hotswap(Package):
    """Makes one HIP build run on more AMD GPUs."""

    homepage = "https://example.invalid/hotswap"
    url = "https://example.invalid/hotswap-0.1.0.tar.xz"
    license("Apache-2.0 WITH LLVM-exception")

    version("0.1.0", sha256="0" * 64)

    depends_on("rust@1.91:", type="build")
    depends_on("c", type="build")
    depends_on("hip@7:", type="run")
    depends_on("llvm-amdgpu@7:", type="run")

    def install(self, spec, prefix):
        cargo = which("cargo")
        clang = spec["llvm-amdgpu"].prefix.bin.join("amdclang++")
        cargo("xtask", "install", "--prefix", prefix, "--clang", clang)

    def setup_dependent_build_environment(self, env, dependent_spec):
        # One compile for the first GPU; the plan makes the others.
        targets = dependent_spec.variants.get("amdgpu_target")
        names = list(targets.value) if targets else []
        if len(names) > 1:
            env.set("HOTSWAP_RETARGET", "{0}=>{1}".format(names[0], ",".join(names[1:])))
        env.set("HIPCXX", self.prefix.bin.join("hotswap-clang++"))
