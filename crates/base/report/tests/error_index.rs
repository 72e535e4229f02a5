//! `docs/reference/errors.md` is the table of diagnostic codes. `HOTSWAP_BLESS=1` writes it.

use hotswap_report::codes::CODES;
use hotswap_report::explanations::EXPLANATIONS;
use hotswap_userland::golden;
use std::path::Path;

const HEAD: &str = "\
# Errors

For users who see a message of HotSwap: the meaning of its code, what to do, the cause and an example.

Each message of HotSwap has a code in brackets: `hotswap: error: [HS0304] app: no device code was found; …`. Its first two digits
are the area, and all codes of an area have the same [exit code](../guide/compiler.md#exit-codes), except where the table states another
one. `hotswap explain HS0304` prints a row of this table, with the
cause and an example, which are [below](#causes-and-examples). Warnings have codes from the same table and the exit code 0; the
note of a command that had nothing to change (HS0470) has 17.

The page is generated from the tables in `crates/base/report/src/codes.rs` and `explanations.rs` (`HOTSWAP_BLESS=1 cargo test -p hotswap-report`).

| code | exit code | meaning | what to do |
| --- | ---: | --- | --- |
";

#[test]
fn the_page_is_the_table() {
    let cell = |text: &str| text.replace('|', "\\|").replace('<', "&lt;");
    let mut page = HEAD.to_owned();
    for code in CODES {
        page += &format!("| `{}` | {} | {} | {} |\n", code.id, code.exit, cell(code.summary), cell(code.advice));
    }
    page += "\n## Causes and examples\n";
    for explanation in EXPLANATIONS {
        let code = explanation.code;
        let (id, cause, example) = (code.id, explanation.cause, explanation.example);
        page += &format!("\n### {id}: {}\n\n{cause}\n\n```text\n{example}\n```\n", code.summary);
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/errors.md");
    golden(&file, &page).unwrap_or_else(|difference| panic!("{difference}"));
}
