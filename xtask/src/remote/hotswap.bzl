"""Objects of HIP, and the same with code for one more GPU: two actions for each source."""

ENVIRONMENT = {"HOTSWAP_HERMETIC": "1", "HOTSWAP_CLANG": "/usr/lib/llvm-22/bin/clang++", "TMPDIR": "/tmp"}

def _hip_object(ctx):
    compiled = ctx.actions.declare_file(ctx.label.name + ".o")
    more = ctx.actions.declare_file(ctx.label.name + ".more.o")
    ctx.actions.run(
        executable = "/opt/hotswap/bin/hotswap-clang++",
        arguments = ctx.attr.arguments + [ctx.file.source.path, "-o", compiled.path],
        inputs = depset([ctx.file.source] + ctx.files.headers + ctx.files.toolchain),
        outputs = [compiled],
        env = ENVIRONMENT,
        mnemonic = "HotSwapCompile",
    )
    ctx.actions.run(
        executable = "/opt/hotswap/bin/hotswap",
        arguments = ["retarget", compiled.path, "--to", "gfx1033", "-o", more.path],
        inputs = depset([compiled] + ctx.files.toolchain),
        outputs = [more],
        env = ENVIRONMENT,
        mnemonic = "HotSwapRetarget",
    )
    return DefaultInfo(files = depset([compiled, more]))

hip_object = rule(implementation = _hip_object, attrs = {
    "source": attr.label(allow_single_file = True),
    "headers": attr.label_list(allow_files = True),
    "toolchain": attr.label_list(allow_files = True),
    "arguments": attr.string_list(),
})
