# Prints for each output of an action: who, the file, 0, and its hash; and how many actions ran where. The input tree of stage.sh is
# Bazel's workspace: so the paths of its files are those in the sandbox of the engine.
export HOME=/var/tmp/home
mkdir -p $HOME
python3 /mnt/bazel.py >/var/tmp/forwarder.log 2>&1 & forwarder=$!
python3 -c '
import socket, sys, time
for port in 50051, 50052: # until the engine and the forwarder listen
    for attempt in range(100):
        if socket.socket().connect_ex(("127.0.0.1", port)) == 0: break
        time.sleep(0.1)
    else: sys.exit("nothing listens on port %d" % port)
'
T=/var/tmp/tree
CLANG=/usr/lib/llvm-22/bin/clang++
ARGUMENTS='-x hip --offload-arch=gfx1030 -O2 -fPIC -fuse-cuid=none -Xoffload-linker --hotswap-plan-file=src/gemm.plan -Isrc -c'
report() { # WHO FILE OUTPUT
    echo "$1 $2 0 $(sha256sum "$3" | cut -c1-64)"
}
mkdir -p $T/out
for file in naive tiled; do
    (cd $T && HOTSWAP_HERMETIC=1 HOTSWAP_CLANG=$CLANG /opt/hotswap/bin/hotswap-clang++ $ARGUMENTS src/$file.hip -o out/$file.o)
    /opt/hotswap/bin/hotswap retarget $T/out/$file.o --to gfx1033 -o $T/out/$file.more.o >&2
    report local $file $T/out/$file.o
    report local $file.more $T/out/$file.more.o
done
rm -r $T/out
# Bazel stops at links that lead nowhere, and follows those to a directory above themselves for ever.
find $T/usr $T/opt -type l | while read -r link; do
    target=$(realpath -e "$link" 2>/dev/null) || { rm "$link"; continue; }
    case "$link" in "$target"/*) rm "$link" ;; esac
done
cp /mnt/hotswap.bzl $T/
touch $T/WORKSPACE
words=$(for word in $ARGUMENTS; do printf '"%s", ' "$word"; done)
cat >$T/BUILD <<END
load(":hotswap.bzl", "hip_object")
filegroup(name = "toolchain", srcs = glob(["usr/**", "opt/**", "lib64/**"]))
[hip_object(
    name = name,
    source = "src/%s.hip" % name,
    headers = glob(["src/*.h*", "src/*.plan"]),
    toolchain = [":toolchain"],
    arguments = [$words],
) for name in ["naive", "tiled"]]
END
build() { # WHO: in output directories of its own, so that only the engine can have results
    (cd $T && bazel --batch "--output_user_root=/var/tmp/$1" build --noenable_bzlmod --enable_workspace \
        --remote_executor=grpc://127.0.0.1:50051 --spawn_strategy=remote --noremote_local_fallback --remote_download_outputs=all \
        --remote_timeout=900 --experimental_convenience_symlinks=ignore --jobs=1 :naive :tiled) >"/var/tmp/$1.log" 2>&1 ||
        { tail -40 "/var/tmp/$1.log" >&2; return 1; }
    for file in naive naive.more tiled tiled.more; do
        report "$1" $file "$(find "/var/tmp/$1" -path "*/bin/$file.o" | head -1)"
    done
    echo "actions $1 $(grep -o '[0-9]* processes:.*' "/var/tmp/$1.log" | tail -1)"
}
build bazel-1
build bazel-2
kill $forwarder
