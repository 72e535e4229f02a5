//! Packages as their users meet them: installed in a Debian root directory with HIP and nothing else of ours, where a project is
//! built, checked, and the package removed again.
//!
//! The directory is the userland of the tests below an overlay in memory, so nothing of it changes; `/opt`, where the tests have
//! more than Debian, is hidden.

use crate::outcome::{Outcome, fail};
use crate::{paths, run, setup};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Mounts, then the inner script in the root directory. Arguments: the root, an empty directory, the package, the project, the
/// script.
const OUTER: &str = r#"
mount -t tmpfs none "$2"
mkdir "$2/upper" "$2/work" "$2/root"
mount -t overlay none -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$2/root"
mount --rbind /proc "$2/root/proc"
mount --rbind /dev "$2/root/dev"
mount -t tmpfs none "$2/root/opt"
mount -t tmpfs none "$2/root/tmp"
case $3 in
    *.tar.xz) mkdir "$2/root/tmp/x"; tar -xf "$3" -C "$2/root/tmp/x" ;; # a bare Debian has no xz
    *) cp "$3" "$2/root/tmp/" ;;
esac
cp -r "$4" "$2/root/tmp/project"
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LANG=C.UTF-8 chroot "$2/root" /bin/sh -ec "$5" sh "/tmp/${3##*/}"
"#;

/// Builds the project, with HotSwap in the prefix `$P`.
const BUILD: &str = r#"
"$P/bin/hotswap" doctor
cmake -G Ninja -S /tmp/project -B /tmp/build -DCMAKE_PREFIX_PATH="$P" -DCMAKE_HIP_ARCHITECTURES=gfx1030
cmake --build /tmp/build
"$P/bin/hotswap" verify /tmp/build/hello
"$P/bin/hotswap" list /tmp/build/hello
"$P/bin/hotswap" list /tmp/build/hello | grep -q 'gfx1031.*retargeted from gfx1030'
"#;

const DEB: &str = r#"
dpkg -i "$1"
P=/usr
BUILD
dpkg -L hotswap | grep -q /usr/share/man/man1/hotswap-retarget.1.gz # the root may leave pages out
dpkg -r hotswap
left=$(find /usr -name '*hotswap*' -not -path '*/doc/*')
test -z "$left" || { echo "left behind: $left"; exit 1; }
"#;

/// Unpacked in a directory, then moved.
const TARBALL: &str = r#"
mkdir "/tmp/a directory"
mv /tmp/x/* "/tmp/a directory/hotswap"
P="/tmp/a directory/hotswap"
BUILD
test "$(pkg-config --variable=bindir "$P/share/pkgconfig/hotswap-tools.pc" 2>/dev/null || echo none)" != ""
"#;

/// A project with a program for gfx1030 that is retargeted to others.
const PROJECT: &str = "examples/hello-hip";

/// Installs each package in a root directory of its own.
pub(super) fn install_and_build(packages: &[PathBuf]) -> Outcome {
    if !rustix::process::geteuid().is_root() {
        return fail("packages are tried in a Debian root directory, which needs root");
    }
    let (userland, _lock) = setup::ensure()?;
    if userland.is_machine() {
        return fail("packages are tried in the root directory of `cargo xtask setup --userland`");
    }
    for package in packages {
        let name = package.file_name().unwrap_or_default().to_string_lossy();
        let script = match () {
            () if name.ends_with(".tar.xz") => TARBALL,
            () if name.starts_with("hotswap_") => DEB,
            () => continue,
        };
        println!("Trying {name}");
        try_one(userland.root(), package, &script.replace("BUILD", BUILD.trim()))?;
    }
    Ok(())
}

fn try_one(root: &Path, package: &Path, script: &str) -> Outcome {
    let directory = tempfile::tempdir()?;
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "/bin/sh", "-ec", OUTER, "sh"]);
    command.arg(root).arg(directory.path()).arg(package).arg(paths::workspace().join(PROJECT)).arg(script);
    run::quiet(&mut command)
}
