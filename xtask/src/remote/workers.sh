# Two workers of sccache's distributed mode, and two of distcc. Prints for each compile who, the plan, the file, the exit code, and
# the hash of the object or `none`; `worker WHO NUMBER COMPILES` for each worker, and `version NAME VERSION`.
cp -a /mnt/hotswap /opt/hotswap
S=/mnt/sccache T=/var/tmp/dist
chmod +x $S/sccache $S/sccache-dist
mkdir -p /srv/build $T
mount -t tmpfs none $T # the workers mount overlays there, which an overlay cannot carry
cd /srv/build
cp /mnt/gemm/*.h* .
cat >named.hip <<'SOURCE'
#include <hip/hip_runtime.h>
#ifdef __gfx1031__
__global__ void named(int *out) { *out = 1031; }
#else
__global__ void named(int *out) { *out = 0; }
#endif
SOURCE
for number in 1 2 3 4; do echo "int f$number() { return $number; }" >host$number.cpp; done
W=/opt/hotswap/bin/hotswap-clang++ CLANG=/usr/lib/llvm-22/bin/clang++
export HOTSWAP_CLANG=$CLANG
PAIRS='--hotswap-retarget=gfx1030=>gfx1031'
OTHER='--hotswap-retarget=gfx1030=>gfx1031,gfx1032'
HASH=--hotswap-plan=$(/opt/hotswap/bin/hotswap plan 'gfx1030=>gfx1031' --out-dir .hotswap/plans)
compile() { # WHO PLAN FILE COMMAND…
    who=$1 plan=$2 file=$3 code=0 hash=none
    shift 3
    timeout 900 "$@" -o "$who/$file.o" >"$who/$file.said" 2>&1 || code=$?
    if [ -s "$who/$file.o" ]; then hash=$(sha256sum "$who/$file.o" | cut -c1-64); fi
    echo "$who $plan $file $code $hash"
    if [ $code != 0 ]; then head -4 "$who/$file.said" | sed "s/^/  $who $file: /"; fi
}
three() { # WHO PLAN COMPILER…: at the same time, so that both workers are asked; the plan `none` stands for no plan
    who=$1 plan=$2 jobs=
    shift 2
    mkdir -p "$who"
    if [ "$plan" != none ]; then set -- "$@" -Xoffload-linker "$plan"; fi
    for file in naive tiled named; do
        compile "$who" "$plan" $file "$@" -x hip --offload-arch=gfx1030 -O2 -fPIC -fuse-cuid=none -I. -c $file.hip &
        jobs="$jobs $!"
    done
    wait $jobs
}
four() { # WHO COMPILER…: C++
    who=$1 jobs=
    shift
    mkdir -p "$who"
    for file in host1 host2 host3 host4; do
        compile "$who" none $file "$@" -O2 -c $file.cpp &
        jobs="$jobs $!"
    done
    wait $jobs
}
retarget_step() { # WHO: the objects without a plan, retargeted afterwards
    mkdir -p "$1-step"
    for file in naive tiled; do
        compile "$1-step" none $file /opt/hotswap/bin/hotswap retarget "$1/$file.o" --to gfx1031
    done
}
three local "$PAIRS" $W
three local-hash "$HASH" $W
three local-other "$OTHER" $W
three local-plain none $W
retarget_step local-plain
four local-host $W

# What a worker needs: the listed files at their places, and the plan that a hash in a command names.
TREE=$T/tree
mkdir -p $TREE/usr/lib $TREE/lib64 $TREE/srv/build/.hotswap
mkdir -m 1777 $TREE/tmp # where clang makes its temporary files
ln -s usr/lib $TREE/lib
cp -L /lib64/ld-linux-x86-64.so.2 $TREE/lib64/
/opt/hotswap/bin/hotswap toolchain --files $CLANG >$T/files
sed 's,^/,,' $T/files | tar -C / -cf - --files-from=- 2>/dev/null | tar -C $TREE -xkf - 2>/dev/null || true
cp -a .hotswap/plans $TREE/srv/build/.hotswap/
tar -C $TREE -cf - . | gzip -1 >$T/toolchain.tar.gz
rm -r $TREE

echo "version sccache $($S/sccache --version | cut -d' ' -f2)"
cat >$T/scheduler.conf <<'CONF'
public_addr = "127.0.0.1:10600"
[client_auth]
type = "token"
token = "client"
[server_auth]
type = "token"
token = "server"
CONF
SCCACHE_NO_DAEMON=1 SCCACHE_LOG=info $S/sccache-dist scheduler --config $T/scheduler.conf >$T/scheduler.log 2>&1 &
sleep 3 # until it listens: a server that finds none stops
for number in 1 2; do
    cat >$T/server$number.conf <<CONF
cache_dir = "$T/toolchains$number"
public_addr = "127.0.0.1:1050$number"
scheduler_url = "http://127.0.0.1:10600"
[builder]
type = "overlay"
build_dir = "$T/build$number"
bwrap_path = "/usr/bin/bwrap"
[scheduler_auth]
type = "token"
token = "server"
CONF
    SCCACHE_NO_DAEMON=1 SCCACHE_LOG=info $S/sccache-dist server --config $T/server$number.conf >$T/server$number.log 2>&1 &
done
# The client's configuration, and a cache of its own.
cat >$T/client.conf <<CONF
[dist]
scheduler_url = "http://127.0.0.1:10600"
[dist.auth]
type = "token"
token = "client"
[[dist.toolchains]]
type = "path_override"
compiler_executable = "$W"
archive = "$T/toolchain.tar.gz"
archive_compiler_executable = "$W"
CONF
export SCCACHE_CONF=$T/client.conf SCCACHE_DIR=$T/cache SCCACHE_SERVER_UDS=$T/socket SCCACHE_IDLE_TIMEOUT=0
for attempt in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
    if $S/sccache --dist-status 2>/dev/null | grep -q '"num_servers":2'; then break; fi
    sleep 2
done
three sccache "$PAIRS" $S/sccache $W
three sccache-again "$PAIRS" $S/sccache $W
three sccache-hash "$HASH" $S/sccache $W
three sccache-other "$OTHER" $S/sccache $W
three sccache-plain none $S/sccache $W
retarget_step sccache-plain
four sccache-host $S/sccache $W
$S/sccache --show-stats >$T/stats
awk '$1 ~ /^127[.]0[.]0[.]1:1050/ { print "worker sccache", substr($1, 15), $2 }' $T/stats
echo "count sccache $(awk '/^Cache hits  / { print $NF }' $T/stats)"
$S/sccache --stop-server >/dev/null

echo "version distcc $(dpkg-query -W -f '${Version}' distcc)"
mkdir -p /usr/lib/distcc $T/distcc
ln -sf "$(command -v distcc)" /usr/lib/distcc/hotswap-clang++ # what a daemon may start
for number in 1 2; do
    touch $T/distccd$number.log
    chmod 666 $T/distccd$number.log # the daemon is another user
    PATH=/opt/hotswap/bin:$PATH distccd --daemon --allow-private --allow 127.0.0.1 --listen 127.0.0.1 --port 363$number --jobs 2 \
        --log-file=$T/distccd$number.log --enable-tcp-insecure --verbose >&2
done
export DISTCC_DIR=$T/distcc DISTCC_HOSTS='127.0.0.1:3631/2 127.0.0.1:3632/2' DISTCC_FALLBACK=1
three distcc "$PAIRS" distcc $W
echo "count distcc $(cat $T/distccd?.log | grep -c COMPILE_OK || true)"
four distcc-host distcc $W
for number in 1 2; do echo "worker distcc-host $number $(grep -c COMPILE_OK $T/distccd$number.log || true)"; done
cat $T/server?.log $T/scheduler.log $T/distccd?.log >&2
