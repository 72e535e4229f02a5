//! Whether this process may use the userland: mounts of its own, by root or in a user namespace; otherwise the reason.
//!
//! Invariants: the answer comes from making the mounts, in a namespace that ends with the trial. The settings of the kernel only
//! explain a refusal.

use crate::outcome::{Outcome, fail};
use crate::run;
use hotswap_userland::{Mount, Namespace, has_mount_right};
use std::fs;
use std::process::Command;

/// Settings of the kernel that take namespaces from processes: file, the value that does, its name.
#[rustfmt::skip]
const SETTINGS: &[(&str, &str, &str)] = &[
    ("/proc/sys/kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone is 0: ordinary users get no user namespaces"),
    ("/proc/sys/user/max_user_namespaces", "0", "user.max_user_namespaces is 0: user namespaces are switched off"),
    ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "kernel.apparmor_restrict_unprivileged_userns is 1: AppArmor keeps mounts from ordinary users"),
];

/// Why the mounts of the userland cannot be made here; `None` when they can.
pub(crate) fn obstacle() -> Outcome<Option<String>> {
    let mut programs = [("unshare", "util-linux"), ("mount", "mount")].into_iter();
    if let Some((program, package)) = programs.find(|(program, _)| which::which(program).is_err()) {
        return Ok(Some(format!("{program} is not on PATH; it is in Debian's package {package}")));
    }
    let directory = tempfile::tempdir()?;
    let namespace = Namespace::default()
        .with(Mount::Memory { target: directory.path().to_owned() })
        .with(Mount::Bind { source: "/proc".into(), target: directory.path().join("proc") });
    let Err(failure) = run::output(&mut namespace.command("true")) else {
        return Ok(None);
    };
    Ok(Some(explain(&failure.to_string())))
}

fn explain(failure: &str) -> String {
    let answer = failure.rsplit(": ").next().unwrap_or(failure);
    if has_mount_right() {
        return format!(
            "mounts are not allowed, although this process has CAP_SYS_ADMIN ({answer}); a container's AppArmor or SELinux profile forbids them"
        );
    }
    let namespaces = run::output(Command::new("unshare").args(["--user", "--map-root-user", "true"]));
    let what =
        if namespaces.is_ok() { "mounts are not allowed in user namespaces" } else { "user namespaces are forbidden" };
    let reason = refusing_setting().or_else(chrooted).or_else(seccomp_filter).unwrap_or_else(|| answer.to_owned());
    format!("{what} ({reason}), and this process has no CAP_SYS_ADMIN to do without")
}

fn refusing_setting() -> Option<String> {
    let refuses =
        |(file, value, _): &&(&str, &str, &str)| fs::read_to_string(file).is_ok_and(|text| text.trim() == *value);
    SETTINGS.iter().find(refuses).map(|(_, _, reason)| (*reason).to_owned())
}

/// In a changed root directory the table of mounts lacks a root.
fn chrooted() -> Option<String> {
    let table = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let has_root = table.lines().any(|line| line.split(' ').nth(4) == Some("/"));
    (!has_root).then(|| "in a root directory changed by chroot the kernel gives none".to_owned())
}

fn seccomp_filter() -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let is_filtered = status.lines().any(|line| line.split_whitespace().eq(["Seccomp:", "2"]));
    is_filtered.then(|| "by a seccomp filter, as containers have one".to_owned())
}

/// Fails with the reason, and with what works instead.
pub(crate) fn refuse<T>(reasons: &[String], obstacle: &str) -> Outcome<T> {
    fail(format!(
        "no usable ROCm is on this machine:\n  {}\nA root directory with one cannot be used here: {obstacle}.\n\
         One of these helps:\n  \
         a ROCm on this machine: HIP 6 or later with its device libraries, clang and lld 22 or later, CMake 3.27 or later, Ninja; \
         ROCM_PATH names it if it does not lie in /opt/rocm\n  \
         root, outside of a container\n  \
         a container with mounts: docker run --cap-add SYS_ADMIN --security-opt seccomp=unconfined --security-opt apparmor=unconfined\n\
         `cargo xtask test --quick` needs none of that.",
        reasons.join("\n  ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forbidden_namespaces_are_reported_as_such() {
        // In a user namespace that allows no further one, and without the right to mount.
        let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set -sys_admin --inh-caps -sys_admin \"$0\" \
                      --exact rights::tests::prints_the_obstacle --nocapture";
        let mut again = Command::new("unshare");
        again.args(["--user", "--map-root-user", "/bin/sh", "-c", script]).arg(std::env::current_exe().unwrap());
        if obstacle().unwrap().is_some() {
            return; // No namespaces here: the message is that of the machine.
        }
        let text = run::output(&mut again).unwrap();
        assert!(text.contains("user namespaces are forbidden (user.max_user_namespaces is 0"), "{text}");
    }

    #[test]
    fn prints_the_obstacle() {
        // The inner half of the test above.
        println!("{}", obstacle().unwrap().unwrap_or_default());
    }
}
