# As a distribution's maintainer: HotSwap's packages, and a package of a HIP library that is built with them. Runs in a Debian root
# directory with HIP. $1: a directory with HotSwap's packages, `example` (packaging/debian-example), `gemm`
# and `tool` (of examples).
# Prints a line for each thing that was seen.
cd "$1"
rm -f /etc/dpkg/dpkg.cfg.d/* # a small root directory has no man pages
apt-get update -q -o Acquire::Check-Valid-Until=false >/dev/null
apt-get install -q -y --no-install-recommends build-essential debhelper dwz fakeroot man-db pkgconf pkg-rocm-tools zsh fish >apt.log 2>&1 || {
    cat apt.log
    exit 1
}
find / -xdev -path "$1" -prune -o -path /var -prune -o -path /tmp -prune -o -print | LC_ALL=C sort >before.txt

dpkg -i ./*hotswap*.deb >/dev/null
for page in /usr/share/man/man1/hotswap*.1.gz; do
    name=${page##*/}
    man --warnings "${name%.1.gz}" >page.txt 2>page.err
    test -s page.txt && test ! -s page.err || { echo "man ${name%.1.gz}: $(cat page.err)"; exit 1; }
done
bash -n /usr/share/bash-completion/completions/hotswap
zsh -n /usr/share/zsh/vendor-completions/_hotswap
fish -n /usr/share/fish/vendor_completions.d/hotswap.fish
echo "man shows $(ls /usr/share/man/man1/hotswap*.1.gz | wc -l) pages; bash, zsh and fish read their completions"
hotswap doctor >doctor.txt || { cat doctor.txt; exit 1; }

# Two builds in directories of different names and depths.
for place in /build /srv/another/place; do
    mkdir -p "$place/gemm"
    cp gemm/*.cpp gemm/*.h* gemm/CMakeLists.txt "$place/gemm/"
    cp -r example/debian "$place/gemm/"
    (cd "$place/gemm" && SOURCE_DATE_EPOCH=1764115200 dpkg-buildpackage -us -uc -b) >"$1/build.log" 2>&1 || { tail -40 "$1/build.log"; exit 1; }
done
for package in /build/*.deb; do
    cmp "$package" "/srv/another/place/${package##*/}"
    echo "${package##*/} is the same from both directories"
done
dpkg-deb -f /build/libgemm_*.deb X-ROCm-GPU-Architecture

dpkg -i /build/libgemm_*.deb >/dev/null
L=$(dpkg -L libgemm | grep 'gemm/libgemm.so')
R=$(dpkg -L libgemm | grep 'relocatable/libgemm.so')

# A tool with the C library, by pkg-config and by CMake.
cc tool/callees.c $(pkg-config --cflags --libs hotswap) -o callees
cmake -S tool -B tool/build >tool.log && cmake --build tool/build >>tool.log || { cat tool.log; exit 1; }
for program in callees tool/build/callees tool/build/callees_static; do
    ./$program "$L" amdgcn-amd-amdhsa--gfx1031 _ZN12_GLOBAL__N_15naiveE9GemmShapePKfS2_Pf | grep -q 'these are all'
done
echo "a tool finds the C library by pkg-config and by CMake"

for library in "$L" "$R"; do
    made=6 # three GPUs, of each of two sources
    if [ "$library" = "$R" ]; then made=3; fi
    hotswap verify "$library"
    for gpu in gfx1031 gfx1101 gfx1102; do hotswap list "$library" | grep -q "$gpu.*retargeted from" || { echo "no $gpu"; exit 1; }; done
    hotswap inspect --format spdx "$library" >one.json
    hotswap inspect --format intoto "$library" >two.json
    python3 - "$library" $made <<'PYTHON'
import hashlib, json, sys
spdx = json.load(open("one.json"))
statements = [json.loads(line) for line in open("two.json")]
made = [one for one in spdx["relationships"] if one["relationshipType"] == "GENERATED_FROM"]
own = hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest()
assert own in json.dumps(spdx), "the library's hash"
assert len(made) == len(statements) == int(sys.argv[2]), (made, statements)
print("SPDX and in-toto name", len(made), "code objects that were made of others")
PYTHON
done

# Tools that change the library as it was linked; dh_strip and dh_dwz have changed the installed one.
cp /build/gemm/obj-plain/libgemm.so whole.so
strip -o stripped.so whole.so
strip --strip-debug -o less.so whole.so
objcopy --only-keep-debug whole.so whole.debug
objcopy --strip-unneeded --add-gnu-debuglink=whole.debug whole.so linked.so
objcopy --compress-debug-sections=zlib whole.so compressed.so
dwz -o shared.so whole.so
for file in stripped.so less.so linked.so compressed.so shared.so; do hotswap verify $file; done
dbg=$(dpkg-deb -c /build/libgemm-dbgsym_*.deb | grep -c '\.debug$')
echo "verified after strip, objcopy and dwz; $dbg files of debug information"

# Upgrade and removal.
for package in ./*hotswap*.deb; do
    dpkg-deb -R "$package" newer
    sed -i 's/^Version: .*/&.1/; s/(= \([^)]*\))/(= \1.1)/' newer/DEBIAN/control
    dpkg-deb -b newer "newer-${package#./}" >/dev/null
    rm -r newer
done
dpkg -i newer-*.deb >/dev/null
dpkg -l hotswap | grep '^ii'
hotswap verify "$L"
dpkg -P libgemm >/dev/null
dpkg -P hotswap libhotswap-dev libhotswap0 >/dev/null
rm -r /build /srv/another
find / -xdev -path "$1" -prune -o -path /var -prune -o -path /tmp -prune -o -print | LC_ALL=C sort >after.txt
left=$(LC_ALL=C comm -13 before.txt after.txt | grep -v '^/etc/ld.so.cache' || true)
test -z "$left" || { echo "left behind: $left"; exit 1; }
echo "nothing is left of the packages"
