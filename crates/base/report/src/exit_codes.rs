//! The exit codes: one table for the help texts, for `docs/guide/compiler.md` and for the codes of diagnostics.
//!
//! Each number has one meaning in every command. 0 says that the files are as requested *and* that the command made them so:
//! a command that was asked for a change and had nothing to change ends with [`UNCHANGED_EXIT`], whatever the command is,
//! because a script cannot see the difference otherwise (a filter that matched nothing, a package that was processed before).
//! Scripts for which both are right say so by `--allow-unchanged`.

/// The exit code of a command that had nothing to change.
pub const UNCHANGED_EXIT: u8 = 17;

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExitRow {
    pub code: u8,
    /// A few words, for the help.
    pub help: &'static str,
    /// A sentence without a final stop, for the page.
    pub meaning: &'static str,
}

const fn exit_row(code: u8, help: &'static str, meaning: &'static str) -> ExitRow {
    ExitRow { code, help, meaning }
}

/// Every exit code, in ascending order.
#[rustfmt::skip]
pub const EXIT_ROWS: &[ExitRow] = &[
    exit_row(0, "done", "done"),
    exit_row(1, "a tool that HotSwap ran has failed", "a tool that HotSwap ran has failed; its own message precedes. `hotswap-clang` returns clang's exit code"),
    exit_row(2, "command line not understood", "the command line is invalid"),
    exit_row(10, "environment or installation", "no usable clang, lld or HIP, or a part of HotSwap is missing"),
    exit_row(11, "plan or target", "the plan: syntax, unknown target, pair not allowed, plan missing or changed under the build"),
    exit_row(12, "input not readable or damaged", "an input is damaged, of an unknown format, or has no device code (HS0304), in a package as in a file"),
    exit_row(13, "refused", "refused: it cannot be done, or not safely"),
    exit_row(14, "file not readable or writable", "a file cannot be read or written; an old file is unchanged. A closed or full standard output (HS0503)"),
    exit_row(15, "own output failed verification", "the output does not read back as planned; nothing was replaced"),
    exit_row(16, "a required rule was not judged", "`hotswap lint --require`: a rule cannot be judged for the target"),
    exit_row(UNCHANGED_EXIT, "nothing was to be changed", "nothing done: a command that changes files had nothing to change (HS0470); with `--allow-unchanged` it is 0"),
    exit_row(70, "defect of HotSwap", "a defect of HotSwap"),
];

/// The rows as the table of the page.
#[must_use]
pub fn exit_table() -> String {
    let rows = EXIT_ROWS.iter().map(|row| format!("| {} | {} |\n", row.code, row.meaning));
    "| code | meaning |\n| --- | --- |\n".to_owned() + &rows.collect::<String>()
}

/// The rows as one paragraph of a help text.
#[must_use]
pub fn exit_help() -> String {
    let rows: Vec<String> = EXIT_ROWS.iter().map(|row| format!("{} {}", row.code, row.help)).collect();
    format!("Exit codes: {}. `hotswap explain CODE` says more about an error.", rows.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::CODES;
    use std::path::Path;

    #[test]
    fn every_code_of_a_diagnostic_has_a_row() {
        assert!(EXIT_ROWS.windows(2).all(|pair| pair[0].code < pair[1].code));
        for code in CODES {
            assert!(EXIT_ROWS.iter().any(|row| row.code == code.exit), "{}: {}", code.id, code.exit);
        }
    }

    #[test]
    fn the_page_has_this_table() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/guide/compiler.md");
        let page = std::fs::read_to_string(&file).unwrap();
        assert!(page.contains(&exit_table()), "docs/guide/compiler.md, exit codes:\n{}", exit_table());
    }
}
