# Edits the inputs of one compile one by one; prints a line for each. NAME, LAUNCHER, WORDS, OTHER_PLAN and W are set.
mkdir "$NAME" "$NAME/early" "$NAME/late" && cd "$NAME"
cp ../hip.h .
export CCACHE_DIR=$PWD/ccache SCCACHE_DIR=$PWD/sccache SCCACHE_SERVER_UDS=$PWD/socket SCCACHE_IDLE_TIMEOUT=60
build() { # LAUNCHER…: its exit code
    rm -f o.o o.d
    "$@" "$W" $WORDS $HIP -nogpulib -O1 -Iearly -Ilate -fuse-cuid=none -MD -MF o.d -MT o.o -c a.hip -o o.o >log 2>&1
}
hits() {
    case $LAUNCHER in
    ccache) ccache --print-stats | awk '/^(direct|preprocessed)_cache_hit/ { hits += $2 } END { print hits + 0 }' ;;
    sccache) sccache --show-stats | awk '/^Cache hits  / { print $NF }' ;;
    esac
}
same() { # the object and the rules of the last build are those without a cache
    cmp -s o.o ref.o && cmp -s o.d ref.d
}
exam() { # LABEL
    if build env; then
        mv o.o ref.o && mv o.d ref.d
    else
        mv log ref.log
        if build "$LAUNCHER"; then echo "$1: an object instead of an error"; else echo "$1: error in both"; fi
        return
    fi
    if ! build "$LAUNCHER"; then echo "$1: an error instead of an object: $(head -1 log)"; return; fi
    if ! same; then echo "$1: another object than without a cache"; return; fi
    before=$(hits)
    if ! build "$LAUNCHER"; then echo "$1: an error of the second build: $(cat log)"; return; fi
    if ! same; then echo "$1: another object of the second build"; return; fi
    if [ "$(hits)" -gt "$before" ]; then echo "$1: same, then a hit"; else echo "$1: same, then no hit"; fi
}
source() { # TEXT-FOR-GFX1031 TEXT-FOR-GFX1030
    cat >a.hip <<TEXT
#include "hip.h"
#if defined(__gfx1031__)
$1
#elif defined(__gfx1030__)
$2
#elif defined(__gfx1100__)
#define VALUE ${OTHER:-3}
#else
#define VALUE 1
#endif
__global__ void kernel(int *p) { p[__builtin_amdgcn_workitem_id_x()] = VALUE; }
void launch(int *p) { kernel<<<1, 1>>>(p); }
TEXT
}
source '#define VALUE 1' '#define VALUE 1'
exam 'the same text for all'
source '#define VALUE 2' '#define VALUE 1'
exam 'text for the target'
source '#define VALUE 3' '#define VALUE 1'
exam 'text for the target, again'
source '#define VALUE 3' '#define VALUE 4'
exam 'text for the source'
OTHER=9
source '#define VALUE 3' '#define VALUE 4'
exam 'text for a third'
source '#include "only.h"' '#define VALUE 4'
echo '#define VALUE 5' >late/only.h
exam 'header for the target'
echo '#define VALUE 6' >late/only.h
exam 'text of that header'
if [ -n "${SEARCHES:-}" ]; then
    echo '#define VALUE 7' >early/only.h
    exam 'another header earlier in the search path'
    rm early/only.h
    exam 'that header removed'
fi
source '#error not for this GPU' '#define VALUE 4'
exam 'error for the target'
source '#define VALUE 4' '#define VALUE 4'
exam 'the same text again'
PLAN=$WORDS
WORDS="$PLAN $OTHER_PLAN"
exam 'another plan'
WORDS="$PLAN -Xoffload-linker --hotswap-policy=warn"
exam 'another policy'
WORDS="$PLAN -Xoffload-linker --hotswap-device-symbols=table"
exam 'another option of the plan'
WORDS=$PLAN
exam 'the first plan again'
[ "$LAUNCHER" != sccache ] || sccache --stop-server >&2
