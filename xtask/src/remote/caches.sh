# Prints for each compile: who, the plan, the file, the exit code, and the hash of the object or `none`; and for each launcher its
# version, and the compiles that ran elsewhere or came from a cache.
cp -a /mnt/hotswap /opt/hotswap
mkdir -p /srv/build/.hotswap/plans /var/tmp/cache
cd /srv/build
cp /mnt/gemm/*.h* .
ONE=$(/opt/hotswap/bin/hotswap plan 'gfx1030=>gfx1031' --out-dir .hotswap/plans)
OTHER=$(/opt/hotswap/bin/hotswap plan 'gfx1030=>gfx1031,gfx1032' --out-dir .hotswap/plans)
export HOTSWAP_CLANG=/usr/lib/llvm-22/bin/clang++
compile() { # WHO PLAN LAUNCHER…
    who=$1 plan=$2
    shift 2
    for file in naive tiled; do
        rm -f out.o
        code=0
        timeout 100 "$@" -x hip --offload-arch=gfx1030 -O2 -fPIC -fuse-cuid=none -Xoffload-linker "--hotswap-plan=$plan" -I. \
            -c $file.hip -o out.o >&2 || code=$?
        hash=none
        if [ -s out.o ]; then hash=$(sha256sum out.o | cut -c1-64); fi
        echo "$who $plan $file $code $hash"
    done
}
three() { # NAME LAUNCHER…: a plan, the same again, another one
    name=$1
    shift
    compile "$name" $ONE "$@"
    compile "$name-again" $ONE "$@"
    compile "$name-other" $OTHER "$@"
}
version() { echo "version $1 $(dpkg-query -W -f '${Version}' "$1")"; }
W=/opt/hotswap/bin/hotswap-clang++
compile none $ONE $W
compile none-other $OTHER $W

version ccache
export CCACHE_DIR=/var/tmp/cache/ccache CCACHE_COMPILERCHECK=content
three ccache ccache $W
echo "count ccache $(ccache --print-stats | awk '/^(direct|preprocessed)_cache_hit/ { hits += $2 } END { print hits + 0 }')"

version sccache
export SCCACHE_DIR=/var/tmp/cache/sccache SCCACHE_SERVER_UDS=/var/tmp/cache/socket SCCACHE_IDLE_TIMEOUT=600
three sccache sccache $W
echo "count sccache $(sccache --show-stats | awk '/^Cache hits  / { print $NF }')"
sccache --stop-server >&2

version distcc
mkdir -p /var/tmp/distcc
touch /var/tmp/distccd.log
chmod 666 /var/tmp/distccd.log # the daemon is another user
distccd --daemon --allow-private --allow 127.0.0.1 --listen 127.0.0.1 --jobs 2 --log-file=/var/tmp/distccd.log --enable-tcp-insecure \
    --verbose >&2
export DISTCC_DIR=/var/tmp/distcc DISTCC_HOSTS=127.0.0.1
three distcc distcc $W
# The other way round: the compiler that the wrapper starts is distcc's.
mkdir -p /usr/lib/distcc
ln -sf "$(command -v distcc)" /usr/lib/distcc/clang++
(
    export HOTSWAP_CLANG=/usr/lib/distcc/clang++ PATH=/usr/lib/distcc:/usr/lib/llvm-22/bin:$PATH
    three distcc-inside $W
)
echo "count distcc $(grep -c COMPILE_OK /var/tmp/distccd.log || true)"
# It sees that a compile of plain C++ does run elsewhere, or the count means nothing.
echo 'int f() { return 1; }' >plain.cpp
distcc /usr/lib/llvm-22/bin/clang++ -c plain.cpp -o plain.o >&2
echo "count distcc-plain $(grep -c COMPILE_OK /var/tmp/distccd.log || true)"

version icecc
icecc-scheduler -d -l /var/tmp/scheduler.log -n hotswap >&2
iceccd -d -l /var/tmp/iceccd.log -n hotswap -s 127.0.0.1 -m 2 -N worker >&2
export ICECC_TEST_REMOTEBUILD=1 ICECC_DEBUG=debug ICECC_LOGFILE=/var/tmp/icecc.log
mkdir /var/tmp/environment
(cd /var/tmp/environment && timeout 60 icecc-create-env /usr/lib/llvm-22/bin/clang++ >&2) || true
ICECC_VERSION=$(find /var/tmp/environment -type f)
export ICECC_VERSION
sleep 8 # until the daemon has logged in
three icecc icecc $W
(
    mkdir -p /usr/lib/icecc/bin
    ln -sf "$(command -v icecc)" /usr/lib/icecc/bin/clang++
    export HOTSWAP_CLANG=/usr/lib/icecc/bin/clang++ PATH=/usr/lib/icecc/bin:/usr/lib/llvm-22/bin:$PATH
    three icecc-inside $W
)
remote_jobs() { grep -c 'Have to use host\|building remotely\|got exit status from remote' /var/tmp/icecc.log || true; }
echo "count icecc $(remote_jobs)"
# A job counts only if it ends: under load the client has waited for the scheduler for ever.
ended=0
for attempt in 1 2 3; do
    rm -f plain.o
    if timeout 60 icecc /usr/lib/llvm-22/bin/clang++ -c plain.cpp -o plain.o >&2 && [ -s plain.o ]; then
        ended=1
        break
    fi
done
echo "count icecc-plain $((ended * $(remote_jobs)))"
cat /var/tmp/icecc.log /var/tmp/iceccd.log /var/tmp/distccd.log >&2 || true
