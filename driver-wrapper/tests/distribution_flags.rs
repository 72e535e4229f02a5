//! A distribution's default flags under a plan: every HIP compile and link succeeds, and the device code is what plain clang
//! makes without the flags that it refuses for a GPU. Each row of the table of such options is needed.

#[allow(dead_code, reason = "other tests use the rest")]
mod common;

use common::{Bench, ok};
use hotswap_driver_wrapper::host_options::HOST_OPTIONS;
use hotswap_userland::{in_turn, say};

/// The default flags of a distribution for programs in C++ on x86-64.
struct Distribution {
    name: &'static str,
    compile: &'static str,
    link: &'static str,
    /// Of `compile`, those that concern device code, or that it is known not to depend on.
    device: &'static str,
    /// Those that clang refuses for a GPU.
    refused: &'static str,
}

const DISTRIBUTIONS: &[Distribution] = &[
    Distribution {
        name: "Debian: dpkg-buildflags of trixie and sid, hardening=+all",
        compile: "-g -O2 -ffile-prefix-map=/build=. -fstack-protector-strong -fstack-clash-protection -Wformat \
                  -Werror=format-security -fcf-protection -fPIE -Wdate-time -D_FORTIFY_SOURCE=2",
        link: "-fPIE -pie -Wl,-z,relro -Wl,-z,now",
        device: "-g -O2 -ffile-prefix-map=/build=.",
        refused: "-fcf-protection",
    },
    Distribution {
        name: "Ubuntu: dpkg-buildflags of noble",
        compile: "-g -O2 -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -ffile-prefix-map=/build=. \
                  -flto=auto -ffat-lto-objects \
                  -fstack-protector-strong -fstack-clash-protection -Wformat -Werror=format-security -fcf-protection \
                  -fdebug-prefix-map=/build=/usr/src/x -Wdate-time -D_FORTIFY_SOURCE=3",
        link: "-Wl,-Bsymbolic-functions -flto=auto -ffat-lto-objects -Wl,-z,relro -Wl,-z,now",
        device: "-g -O2 -fno-omit-frame-pointer -ffile-prefix-map=/build=. -fdebug-prefix-map=/build=/usr/src/x",
        refused: "-fcf-protection",
    },
    Distribution {
        name: "Fedora: redhat-rpm-config, toolchain gcc",
        compile: "-O2 -flto=auto -ffat-lto-objects -fexceptions -g -grecord-gcc-switches -pipe -Wall \
                  -specs=/usr/lib/rpm/redhat/redhat-hardened-cc1 -Wno-complain-wrong-lang -Werror=format-security \
                  -Wp,-U_FORTIFY_SOURCE,-D_FORTIFY_SOURCE=3 -Wp,-D_GLIBCXX_ASSERTIONS -fstack-protector-strong -m64 \
                  -march=x86-64 -mtune=generic -fasynchronous-unwind-tables -fstack-clash-protection -fcf-protection \
                  -mtls-dialect=gnu2 -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer",
        link: "-Wl,-z,relro -Wl,--as-needed -Wl,-z,pack-relative-relocs -Wl,-z,now -Wl,--build-id=sha1 \
               -flto=auto -ffat-lto-objects -mtls-dialect=gnu2",
        device: "-O2 -fexceptions -g -fasynchronous-unwind-tables -fno-omit-frame-pointer",
        refused: "-fcf-protection -mtls-dialect=gnu2",
    },
    Distribution {
        name: "Fedora: redhat-rpm-config, toolchain clang, with the flags of its configuration files",
        compile: "-O2 -fexceptions -g -grecord-gcc-switches -pipe -Wall -Werror=format-security \
                  -Wp,-U_FORTIFY_SOURCE,-D_FORTIFY_SOURCE=3 -Wp,-D_GLIBCXX_ASSERTIONS -fPIE -fstack-protector-strong -m64 \
                  -march=x86-64 -mtune=generic -fasynchronous-unwind-tables -fstack-clash-protection -fcf-protection \
                  -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer",
        link: "-pie -Wl,-z,relro -Wl,--as-needed -Wl,-z,pack-relative-relocs -Wl,-z,now -Wl,--build-id=sha1",
        device: "-O2 -fexceptions -g -fasynchronous-unwind-tables -fno-omit-frame-pointer",
        refused: "-fcf-protection",
    },
    Distribution {
        name: "Gentoo: hardened profile of clang, with return thunks as in its kernel flags",
        compile: "-march=x86-64-v3 -O2 -pipe -fstack-protector-strong -fstack-clash-protection -fcf-protection=full -fPIE \
                  -D_FORTIFY_SOURCE=2 -D_GLIBCXX_ASSERTIONS -mfunction-return=keep -mfpmath=sse",
        link: "-pie -Wl,-O1 -Wl,--as-needed -Wl,-z,relro -Wl,-z,now",
        device: "-O2",
        refused: "-fcf-protection=full -mfunction-return=keep -mfpmath=sse",
    },
    Distribution {
        name: "Arch: makepkg.conf",
        compile: "-march=x86-64 -mtune=generic -O2 -pipe -fno-plt -fexceptions -Wp,-D_FORTIFY_SOURCE=3 -Wformat \
                  -Werror=format-security -fstack-clash-protection -fcf-protection -fno-omit-frame-pointer \
                  -mno-omit-leaf-frame-pointer -Wp,-D_GLIBCXX_ASSERTIONS",
        link: "-Wl,-O1 -Wl,--sort-common -Wl,--as-needed -Wl,-z,relro -Wl,-z,now -Wl,-z,pack-relative-relocs",
        device: "-O2 -fexceptions -fno-omit-frame-pointer",
        refused: "-fcf-protection",
    },
    Distribution {
        name: "Nix: hardening of the compiler's wrapper",
        compile: "-O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fstack-protector-strong --param=ssp-buffer-size=4 -fPIC \
                  -fno-strict-overflow -fstack-clash-protection -Wformat -Wformat-security -Werror=format-security \
                  -fzero-call-used-regs=used-gpr -fpatchable-function-entry=16",
        link: "-Wl,-z,relro -Wl,-z,now",
        device: "-O2 -fno-strict-overflow",
        refused: "-fzero-call-used-regs=used-gpr -fpatchable-function-entry=16",
    },
    Distribution {
        name: "a package's tests with gcov",
        compile: "-O2 --coverage",
        link: "--coverage",
        device: "-O2",
        refused: "--coverage",
    },
];

/// Device code that depends on frame pointers, stack and exceptions, as far as any does.
const SOURCE: &str = r#"#include "hip.h"
struct Table { int at[64]; };
__attribute__((noinline)) __device__ int sum(Table *t, int n) {
  int r = 0;
  for (int i = 0; i < n; ++i)
    r += t->at[i] * i;
  return r;
}
__global__ void kernel(int *p, int n) {
  Table t;
  for (int i = 0; i < 64; ++i)
    t.at[i] = p[i];
  p[__builtin_amdgcn_workitem_id_x()] = sum(&t, n & 63);
}
int main(int n, char **) { return n > 5 ? (kernel<<<1, 1>>>(nullptr, n), 1) : 0; }
"#;

/// Prints `the same`, or what is wrong. COMPILE, LINK, DEVICE, REFUSED and WORDS are set.
const SCRIPT: &str = r#"
common="$HIP -nogpulib -fuse-cuid=none --offload-arch=gfx1030"
TOOLS=$(dirname "$(readlink -f $R)")
bare="--offload-device-only --no-gpu-bundle-output"
! $R $COMPILE $common -c a.hip -o plain.o 2>plain.log || { echo "clang accepts the flags"; exit; }
$R $DEVICE $common $bare -c a.hip -o clang.co || { echo "clang refuses $DEVICE"; exit; }
$W $COMPILE $common $WORDS $bare -c a.hip -o ours.co 2>log || { echo "device: $(cat log)"; exit; }
case $COMPILE in
*-grecord-gcc-switches*) for made in clang ours; do $TOOLS/llvm-objcopy --strip-debug $made.co; done ;;
esac
cmp -s clang.co ours.co || { echo "other device code"; exit; }
$W $COMPILE $common $WORDS -c a.hip -o ours.o 2>log || { echo "object: $(cat log)"; exit; }
for option in $REFUSED; do
    [ "$(grep -c -- "note:.* $option[: ]" log)" = 1 ] || { echo "$option is not named once: $(cat log)"; exit; }
done
[ "$(grep -c 'note:' log)" = 1 ] || { echo "more notes: $(cat log)"; exit; }
printf '%s\n' $COMPILE $common >words.rsp
mv ours.o first.o
$W @words.rsp $WORDS -c a.hip -o ours.o 2>log || { echo "response file: $(cat log)"; exit; }
[ "$(grep -c 'note:' log)" = 1 ] || { echo "more notes for a response file: $(cat log)"; exit; }
cmp -s first.o ours.o || { echo "other object by a response file"; exit; }
$W -E $COMPILE $common $WORDS a.hip -o a.i 2>log || { echo "-E: $(cat log)"; exit; }
$W $LINK $HIP $WORDS --hip-link ours.o $LIBRARY -o app 2>log || { echo "link: $(cat log)"; exit; }
./app || { echo "the program fails"; exit; }
echo the same
"#;

/// The request by a plan, and by the option of its own.
const PLAN: &str = "-Xoffload-linker --hotswap-retarget=gfx1030=>gfx1031";
const OPTION: &str = "-Xoffload-linker --hotswap-host-options=1";

#[test]
fn default_flags_of_distributions_work() {
    let test = "default_flags_of_distributions_work";
    let Some(bench) = Bench::new(test) else { return };
    std::fs::write(bench.at("a.hip"), SOURCE).unwrap();
    std::fs::write(bench.at("hip.c"), STAND_IN).unwrap();
    let versions = bench.versions();
    ok(&bench.run(versions[0], "$RC -shared -fPIC hip.c -o libamdhip64.so"));
    let by_plan = versions.iter().flat_map(|version| DISTRIBUTIONS.iter().map(move |row| (version, row, PLAN)));
    let by_option = in_turn(test, DISTRIBUTIONS, &versions, |_| false);
    let by_option = by_option.into_iter().map(|(version, row)| (version, row, OPTION));
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (version, Distribution { name, compile, link, device, refused }, words) in by_plan.chain(by_option) {
        let script = format!(
            "COMPILE='{compile}' LINK='{link}' DEVICE='{device}' REFUSED='{refused}' WORDS='{words}'\n\
             LIBRARY='-L. -lamdhip64 -Wl,-rpath,.'\n{SCRIPT}"
        );
        let (lines, _) = ok(&bench.run(*version, &script));
        if lines.trim() != "the same" {
            wrong.push(format!("clang {version}, {name}, {words}: {lines}"));
        }
        count += 1;
    }
    say(&format!("{test}: {count} sets of flags hold but {}", wrong.len()));
    assert_eq!(wrong, [""; 0], "{}", wrong.join("\n"));
}

/// The functions of HIP that the program calls.
const STAND_IN: &str = "void *__hipRegisterFatBinary(void *p) { return p; }\nvoid __hipUnregisterFatBinary(void *p) {}\n\
    void __hipRegisterFunction(void) {}\nvoid __hipRegisterVar(void) {}\nint hipLaunchKernel(void) { return 0; }\n\
    int __hipPushCallConfiguration(void) { return 0; }\nint __hipPopCallConfiguration(void) { return 0; }\n";

/// A whole option of a row, with a value that the host takes.
fn example(name: &str) -> String {
    let value = match name {
        "-fbasic-block-sections=" => "all",
        "-fcf-protection=" => "full",
        "-fpatchable-function-entry=" => "16",
        "-fzero-call-used-regs=" => "used-gpr",
        "-mfpmath=" => "sse",
        "-mfunction-return=" => "keep",
        "-mstack-protector-guard-offset=" => "40",
        "-mstack-protector-guard-reg=" => "fs",
        "-mstack-protector-guard=" => "tls",
        "-mtls-dialect=" => "gnu2",
        _ => "",
    };
    format!("{name}{value}")
}

/// Without the option's row nothing would be wrong if clang took the option for a GPU.
#[test]
fn clang_refuses_each_option_of_the_table() {
    let Some(bench) = Bench::new("clang_refuses_each_option_of_the_table") else { return };
    let versions = bench.versions();
    let mut wrong = Vec::new();
    for (version, option) in in_turn("clang_refuses_each_option_of_the_table", HOST_OPTIONS, &versions, |_| false) {
        let text = example(option.name);
        let script = format!(
            "PLAN='{PLAN}' common=\"$HIP -Werror -nogpulib -O2 -fuse-cuid=none --offload-arch=gfx1030 -c a.hip\"; rm -f *.gcno
             if $R {text} $common -o plain.o 2>log && ! [ -e plain.gcno ]; then echo clang takes it; fi
             $W {OPTION} {text} $common -o ours.o 2>log || cat log
             $W -Xoffload-linker --hotswap-host-options=0 $PLAN {text} $common -o off.o 2>log && ! [ -e off.gcno ] &&
                 echo 'switched off it succeeds'; true"
        );
        let (lines, _) = ok(&bench.run(*version, &script));
        if !lines.is_empty() {
            wrong.push(format!("clang {version}, {text}: {lines}"));
        }
    }
    assert_eq!(wrong, [""; 0], "{}", wrong.join("\n"));
}
