# Prints what build systems find out about a C++ compiler, a line for each answer: `SYSTEM COMPILER QUESTION ANSWER`. The compilers are
# the real clang and both names of HotSwap's. With each a static library of device code, with the host's part optimised when it is
# linked, is built for the plan's GPUs and linked into a program.
cp -a /mnt/hotswap /opt/hotswap
mkdir -p /srv/probes
cd /srv/probes
LLVM=/usr/lib/llvm-22/bin
export HOTSWAP_CLANG=$LLVM/clang++
# Tools of this machine that have the names of LLVM's would be found beside no compiler.
rm -f /usr/bin/llvm-* /usr/bin/clang* /usr/bin/lld* /usr/bin/ld.lld*
cat >kernel.cpp <<'TEXT'
#include <hip/hip_runtime.h>
__global__ void fill(int *p) { p[threadIdx.x] = 42; }
extern "C" void launch(int *p) { fill<<<1, 1>>>(p); }
TEXT
cat >main.cpp <<'TEXT'
#include <cmath>
#include <thread>
extern "C" void launch(int *);
int main(int argc, char **) {
    std::thread([] {}).join();
    if (argc > 100) launch(nullptr);
    return std::sqrt(float(argc)) == 1 ? 0 : 1;
}
TEXT
# Device code of the host's link-time optimisation would be that of another driver.
FLAGS='-x hip --offload-arch=gfx1030 -O2 -fno-lto'
# From the environment, so that no shell of a build system reads its `>`.
PLAN='gfx1030=>gfx1031'
say() { # QUESTION ANSWER, without the compiler's own path
    answer=$(printf '%s' "$2" | sed "s,$CXX,CXX,g; s,$CC,CC,g" | tr -s ' \n' '__')
    echo "$SYSTEM $WHO $1 ${answer:-none}"
}
maker() { # PROGRAM: who made it
    "$1" --version 2>&1 | grep -o -m1 'LLVM version [0-9]*\|LLD [0-9]*\|GNU [a-z]*' | head -1
}
examine() { # PROGRAM
    code=0
    "$1" >&2 || code=$?
    say runs "$code"
    say gpus "$(/opt/hotswap/bin/hotswap list "$1" | grep -o 'gfx[0-9]*' | sort -u | tr '\n' ' ')"
}
with_meson() {
    cat >meson.build <<TEXT
project('probes', 'c', 'cpp', default_options: ['b_lto=true', 'buildtype=release'])
cpp = meson.get_compiler('cpp')
words = run_command('sh', '-c', 'printf "%s\n" "\$WORDS"', check: true).stdout().strip().split()
kernel = static_library('kernel', 'kernel.cpp', cpp_args: words, override_options: ['b_lto=false'])
executable('app', 'main.cpp', link_with: kernel, dependencies: [dependency('threads'), cpp.find_library('amdhip64')])
foreach name : ['-fcf-protection', '-Wno-such-warning', '-fvisibility=hidden', '-flto=thin']
  message('answer', name, cpp.has_argument(name))
endforeach
message('answer', 'id', cpp.get_id())
message('answer', 'syntax', cpp.get_argument_syntax())
message('answer', 'linker', cpp.get_linker_id())
message('answer', 'header', cpp.has_header('filesystem'))
message('answer', 'function', cpp.has_function('clock_gettime'))
message('answer', 'sizeof', cpp.sizeof('long'))
message('answer', 'version', cpp.version())
TEXT
    meson setup build >meson.log 2>&1 || { cat meson.log >&2; say configures no; return; }
    grep -o 'Message: answer .*' meson.log | while read -r _ _ question answer; do say "$question" "$answer"; done
    say archiver "$(maker "$(sed -n 's/^ command = rm.*&& \([^ ]*\).*/\1/p' build/build.ninja | head -1)")"
    ninja -C build >ninja.log 2>&1 || { cat ninja.log >&2; say builds no; return; }
    examine build/app
}
with_autotools() {
    cat >configure.ac <<'TEXT'
AC_INIT([probes], [1])
AM_INIT_AUTOMAKE([foreign])
AC_CONFIG_FILES([Makefile])
AM_PROG_AR
AC_PROG_CC
AC_PROG_CXX
LT_INIT([static])
AC_LANG([C++])
AC_CHECK_HEADERS([filesystem])
AC_SEARCH_LIBS([pthread_create], [pthread])
AC_SEARCH_LIBS([hipGetDeviceCount], [amdhip64])
AC_C_BIGENDIAN
AC_CHECK_SIZEOF([long])
AC_OUTPUT
TEXT
    cat >Makefile.am <<'TEXT'
lib_LTLIBRARIES = libkernel.la
libkernel_la_SOURCES = kernel.cpp
libkernel_la_CXXFLAGS = $(WORDS)
bin_PROGRAMS = app
app_SOURCES = main.cpp
app_LDADD = libkernel.la
TEXT
    autoreconf -fi >autoreconf.log 2>&1 || { cat autoreconf.log >&2; say configures no; return; }
    ./configure --disable-shared --disable-dependency-tracking CC="$CC" CXX="$CXX" >configure.log 2>&1 || {
        tail -30 config.log >&2
        say configures no
        return
    }
    # Everything that it found, but the names of its own files.
    sed -n "/^## Cache variables/,/^## confdefs/p" config.log | grep -E "^(ac_cv|lt_cv|am_cv)" | grep -v "_env_\|path_install\|lt_cv_sys_max" |
        while IFS='=' read -r question answer; do say "$question" "$answer"; done
    for tool in AR RANLIB NM STRIP OBJDUMP LD; do
        say $tool "$(maker "$(sed -n "s/^$tool='\([^' ]*\).*/\1/p" config.log | head -1)")"
    done
    make -s WORDS="$WORDS" >make.log 2>&1 || { cat make.log >&2; say builds no; return; }
    examine ./app
}
with_scons() {
    cat >SConstruct <<'TEXT'
import os
env = Environment(ENV=os.environ, CC=os.environ["CC"], CXX=os.environ["CXX"])
conf = Configure(env)
for name, answer in [
    ("CheckCC", conf.CheckCC()),
    ("CheckCXX", conf.CheckCXX()),
    ("header", conf.CheckCXXHeader("filesystem")),
    ("pthread", conf.CheckLib("pthread", language="C++")),
    ("sizeof", conf.CheckTypeSize("long", language="C++")),
    ("archiver", env["AR"]),
    ("CXXVERSION", env.get("CXXVERSION")),
    ("tools", [tool for tool in env["TOOLS"] if tool in ("gcc", "g++", "clang", "clangxx", "gnulink", "ar")]),
]:
    print("answer", name, answer)
env = conf.Finish()
kernel = env.StaticLibrary("kernel", [env.Object("kernel.cpp", CXXFLAGS=os.environ["WORDS"].split())])
env.Program("app", ["main.cpp", kernel], LIBS=["amdhip64", "pthread", kernel])
TEXT
    scons -Q >scons.log 2>&1 || { cat scons.log >&2; say builds no; return; }
    grep '^answer ' scons.log | while read -r _ question answer; do say "$question" "$answer"; done
    examine ./app
}
for SYSTEM in meson autotools scons; do
    for WHO in clang bin lib; do
        case $WHO in
        clang) CC=$LLVM/clang CXX=$LLVM/clang++ HOTSWAP_RETARGET= ;;
        bin) CC=/opt/hotswap/bin/hotswap-clang CXX=/opt/hotswap/bin/hotswap-clang++ HOTSWAP_RETARGET=$PLAN ;;
        lib) CC=/opt/hotswap/lib/hotswap/clang/clang CXX=/opt/hotswap/lib/hotswap/clang/clang++ HOTSWAP_RETARGET=$PLAN ;;
        esac
        WORDS=$FLAGS
        export CC CXX WORDS HOTSWAP_RETARGET
        mkdir "$SYSTEM-$WHO"
        cp kernel.cpp main.cpp "$SYSTEM-$WHO/"
        cd "$SYSTEM-$WHO"
        "with_$SYSTEM"
        cd ..
    done
    case $SYSTEM in
    meson) echo "version $SYSTEM $(meson --version)" ;;
    autotools) echo "version $SYSTEM $(autoconf --version | sed -n '1s/.* //p')" ;;
    scons) echo "version $SYSTEM $(scons --version | grep -o 'v[0-9][0-9.]*' | head -1)" ;;
    esac
done
