//! Bazel with remote execution: each source is compiled and its object retargeted by two actions on the engine, whose outputs are those
//! of the same commands without Bazel; a second client gets all of them from the engine's action cache.
//!
//! Absent on purpose: Bazel's rules for C++, which compile no HIP.

use crate::outcome::{Outcome, fail};

pub(super) const OUTER: &str = include_str!("bazel-outer.sh");

/// Outputs of the two sources.
const OUTPUTS: usize = 4;

/// Judges the lines `WHO FILE 0 HASH` and `actions WHO NUMBER processes: …`.
pub(super) fn judge(text: &str) -> Outcome {
    let local = outputs(text, "local ");
    if local.len() != OUTPUTS {
        return fail("the compiles without Bazel failed: see their messages");
    }
    judge_client(text, "bazel-1", &local, "4 remote.")?;
    judge_client(text, "bazel-2", &local, "4 remote cache hit")?;
    println!("{OUTPUTS} outputs are the same with Bazel and without; the second client ran no action");
    Ok(())
}

/// A client has those outputs, and all its actions ended at that place.
fn judge_client(text: &str, client: &str, expected: &[&str], place: &str) -> Outcome {
    if outputs(text, &format!("{client} ")) != expected {
        return fail(format!("{client} has other outputs than the commands without Bazel"));
    }
    let actions = text.lines().find_map(|line| line.strip_prefix(&format!("actions {client} "))).unwrap_or("none");
    if format!("{actions}.").contains(place) {
        return Ok(());
    }
    fail(format!("{client}: `{place}` is expected of all actions: {actions}"))
}

fn outputs<'t>(text: &'t str, who: &str) -> Vec<&'t str> {
    text.lines().filter_map(|line| line.strip_prefix(who)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> String {
        let lines = |who: &str| format!("{who} a 0 x\n{who} a.more 0 y\n{who} b 0 z\n{who} b.more 0 w\n");
        let actions = "actions bazel-1 5 processes: 1 internal, 4 remote.\n\
                       actions bazel-2 5 processes: 4 remote cache hit, 1 internal.\n";
        ["local", "bazel-1", "bazel-2"].map(lines).concat() + actions
    }

    #[test]
    fn other_bytes_and_actions_on_this_machine_are_failures() {
        let good = good();
        judge(&good).unwrap();
        let faults = [
            ("bazel-1 b 0 z", "bazel-1 b 0 q"),
            ("bazel-2 a.more 0 y\n", ""),
            ("4 remote.", "2 remote, 2 local."),
            ("4 remote cache hit", "4 remote"),
            ("local a 0 x\n", ""),
        ];
        for (old, new) in faults {
            assert!(good.contains(old) && judge(&good.replace(old, new)).is_err(), "{old}");
        }
    }
}
