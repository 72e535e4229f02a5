# Prints for each compile: who, the file, the exit code, and the hash of the object or `none`.
ARGUMENTS='-x hip --offload-arch=gfx1030 -O2 -fPIC -fuse-cuid=none -Xoffload-linker --hotswap-plan-file=src/gemm.plan -Isrc -c'
CLANG=/usr/lib/llvm-22/bin/clang++
report() { # WHO FILE CODE OBJECT
    hash=none
    if [ -s "$4" ]; then hash=$(sha256sum "$4" | cut -c1-64); fi
    echo "$1 $2 $3 $hash"
}
remote() { # WHO ENGINE TREE FILE
    code=0
    rm -f "$3.got/out/$4.o"
    trexe --remote="http://127.0.0.1:5005$2" --do-not-follow-symlinks --input-path="$3" --output-path="out/$4.o" \
        --d="$3.got" --env=HOTSWAP_HERMETIC=1 --env=HOTSWAP_CLANG=$CLANG --env=TMPDIR=/tmp \
        /opt/hotswap/bin/hotswap-clang++ $ARGUMENTS "src/$4.hip" -o "out/$4.o" 1>&2 || code=$?
    report "$1" "$4" $code "$3.got/out/$4.o"
}
python3 -c '
import socket, sys, time
for port in 50051, 50052: # until the engines listen
    for attempt in range(100):
        if socket.socket().connect_ex(("127.0.0.1", port)) == 0: break
        time.sleep(0.1)
    else: sys.exit("no engine listens on port %d" % port)
'
T=/var/tmp/tree
mkdir -p $T/out
for file in naive tiled; do
    code=0
    (cd $T && HOTSWAP_HERMETIC=1 HOTSWAP_CLANG=$CLANG /opt/hotswap/bin/hotswap-clang++ $ARGUMENTS src/$file.hip -o out/$file.o) || code=$?
    report local $file $code $T/out/$file.o
    rm -f $T/out/$file.o
done
mkdir -p "/var/tmp/one" "/srv/another and/deeper"
cp -al $T /var/tmp/one/tree
cp -al $T "/srv/another and/deeper/tree"
for file in naive tiled; do remote client-1 1 /var/tmp/one/tree $file; done
for file in naive tiled; do remote client-2 2 "/srv/another and/deeper/tree" $file; done
# Faults: a tree without the device linker of HotSwap, and one with another plan than the command's hash.
cp -al $T /var/tmp/without
rm /var/tmp/without/opt/hotswap/libexec/hotswap/lld
remote without-linker 1 /var/tmp/without naive
HASH=$(/opt/hotswap/bin/hotswap plan 'gfx1030=>gfx1033')
ARGUMENTS="$ARGUMENTS -Xoffload-linker --hotswap-plan=$HASH"
remote other-plan 1 /var/tmp/one/tree tiled
