# Another clang takes the place of the first one; prints a line for each check. NAME, LAUNCHER, COMMAND, W, OLD and NEW are set.
mkdir "$NAME" && cd "$NAME"
cp ../hip.h ../a.hip ../main.cpp .
export CCACHE_DIR=$PWD/ccache SCCACHE_DIR=$PWD/sccache SCCACHE_SERVER_UDS=$PWD/socket SCCACHE_IDLE_TIMEOUT=60
export HOTSWAP_CLANG=$PWD/llvm/bin/clang++
# The line of docs/guide/remote-builds.md.
export CCACHE_COMPILERCHECK='%compiler% --hotswap-identity'
build() { # LAUNCHER…
    rm -f o.o
    SCCACHE_C_CUSTOM_CACHE_BUSTER=$("$W" --hotswap-identity) "$@" "$W" -nogpuinc -nogpulib -fuse-cuid=none $COMMAND -c -o o.o 2>log ||
        cat log
}
check() { # LABEL FILE…
    label=$1
    shift
    if cmp "$@" >&2; then echo "$label: as it should be"; else echo "$label: another object"; fi
}
ln -s "/usr/lib/llvm-$OLD" llvm
build env && mv o.o old.o
build "$LAUNCHER"
check 'the first compiler' o.o old.o
rm llvm && ln -s "/usr/lib/llvm-$NEW" llvm
build env && mv o.o new.o
build "$LAUNCHER"
check 'the second compiler' o.o new.o
if cmp -s old.o new.o; then echo 'the two compilers: the same object'; else echo 'the two compilers: as it should be'; fi
[ "$LAUNCHER" != sccache ] || sccache --stop-server >&2
