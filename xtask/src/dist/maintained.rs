//! Packages as a distribution's maintainer meets them: `packaging/debian-example` is built with them, twice, and all is removed.
//!
//! The root directory is the userland of the tests below an overlay, so nothing of it changes; the packages of Debian's tools are
//! downloaded there. `maintainer.sh` says each step.

use crate::outcome::{During, Outcome, fail};
use crate::recipe::Part;
use crate::{paths, remove, run, setup};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Mounts, then the script in the root directory. Arguments: the root, the directory of this task, the script.
const OUTER: &str = r#"
mkdir -p "$2/upper" "$2/work" "$2/root"
mount -t overlay none -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$2/root"
mount -t proc none "$2/root/proc"
mount --rbind /dev "$2/root/dev"
mount -t tmpfs none "$2/root/opt"
mount -t tmpfs none "$2/root/tmp" # apt's user writes there
mkdir -p "$2/root/mnt/shared"
mount --bind "$2/shared" "$2/root/mnt/shared"
cp -L /etc/resolv.conf "$2/root/etc/resolv.conf" 2>/dev/null || true
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    chroot "$2/root" /bin/bash -ec "$3" bash /mnt/shared
"#;

const SCRIPT: &str = include_str!("maintainer.sh");

/// A root directory for one script, in a directory of its own.
pub(super) struct Overlay {
    root: PathBuf,
    directory: PathBuf,
    /// The directory that is the argument of the script.
    pub(super) shared: PathBuf,
    _lock: File,
}

impl Overlay {
    /// Makes its directory, empty.
    pub(super) fn prepare(name: &str) -> Outcome<Self> {
        if !rustix::process::geteuid().is_root() {
            return fail("packages are installed in a Debian root directory, which needs root");
        }
        let (userland, lock) = setup::ensure(Part::Tests)?;
        if userland.is_machine() {
            return fail("packages are installed in the root directory of `cargo xtask setup --userland`");
        }
        let directory = paths::scratch(name);
        remove::delete(&directory)?;
        let shared = directory.join("shared");
        fs::create_dir_all(&shared).during("create", &shared)?;
        Ok(Self { root: userland.root().to_owned(), directory, shared, _lock: lock })
    }

    /// Runs the script, which has the network.
    pub(super) fn run(&self, script: &str) -> Outcome {
        let mut command = Command::new("unshare");
        let namespaces = ["--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"];
        command.args(namespaces).args(["/bin/sh", "-ec", OUTER, "sh"]).arg(&self.root).arg(&self.directory).arg(script);
        run::quiet(&mut command)
    }

    pub(super) fn remove(self) -> Outcome {
        remove::delete(&self.directory)
    }
}

/// Copies the Debian packages among these.
pub(super) fn copy_packages(packages: &[PathBuf], directory: &Path) -> Outcome {
    let packages: Vec<&PathBuf> =
        packages.iter().filter(|path| path.extension().is_some_and(|end| end == "deb")).collect();
    if packages.is_empty() {
        return fail("there are no Debian packages to try");
    }
    run::output(Command::new("cp").args(packages).arg(directory)).map(drop)
}

/// Builds the example with the Debian packages among these.
pub(super) fn build_package(packages: &[PathBuf]) -> Outcome {
    let overlay = Overlay::prepare("dist-maintained")?;
    for (from, to) in [("packaging/debian-example", "example"), ("examples/gemm", "gemm"), ("examples/tool", "tool")] {
        let source = paths::workspace().join(from);
        run::output(Command::new("cp").arg("-a").arg(source).arg(overlay.shared.join(to)))?;
    }
    copy_packages(packages, &overlay.shared)?;
    overlay.run(SCRIPT)?;
    overlay.remove()
}
