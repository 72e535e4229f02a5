//! Writes the first inputs of each fuzz target.

#![allow(missing_docs)]

use hotswap_plan::Plan;
use std::path::Path;
use std::{env, fs, io};

const COMMANDS: &[&str] = &[
    "-x hip -c a.hip -o a.o --offload-arch=gfx1030 -Xoffload-linker --hotswap-retarget=gfx1030=>gfx1031",
    "a.o b.a -fgpu-rdc --hip-link -o a -Xoffload-linker --hotswap-plan=9bd63cc251b5f59b",
    "--hotswap-explain=json -fhotswap-coalesce --offload-arch=gfx1030,gfx1031 -c a.cpp",
    "-### -E -M -MF d -x c++ - -Xarch_device -O3 -Wl,-x,-y -Xclang -load",
    "--hotswap-version",
    "--hotswap-help=markdown",
    "-fprofile-instr-generate -fcoverage-mapping a.hip --hotswap-no-drain",
];
const RESPONSE: &[&str] = &["-c 'a b' \"c \\\" d\" e\\ f\n@g ''", "\\\n'\\''\t\r\"", "-Wl,@x"];
const EXPORT: &str = r#"{"data":[{"files":[{"filename":"a","segments":[[1,2,3,true,true,false]],"summary":{}}],"functions":[]}],"type":"llvm.coverage.json.export","version":"2.0.1"}"#;

fn main() -> io::Result<()> {
    let Some(directory) = env::args_os().nth(1) else { return Err(io::Error::other("usage: seeds DIRECTORY")) };
    let commands = COMMANDS.iter().map(|line| format!("\u{1}{}", line.replace(' ', "\0")));
    let mut plan = Plan::default();
    plan.add_pairs("gfx1030=>gfx1031,gfx1032;gfx900=>gfx902").map_err(|error| io::Error::other(error.to_string()))?;
    let exports = format!("{EXPORT}\0{EXPORT}");
    let all: [(&str, Vec<String>); 4] = [
        ("arguments", commands.collect()),
        ("response_file", RESPONSE.iter().map(|text| (*text).to_owned()).collect()),
        ("plan", vec![plan.canonical(), "gfx1030=>gfx1031\nwarn\nx".to_owned()]),
        ("coverage_export", vec![EXPORT.to_owned(), exports]),
    ];
    for (target, seeds) in all {
        let directory = Path::new(&directory).join(target);
        fs::create_dir_all(&directory)?;
        for (number, seed) in seeds.iter().enumerate() {
            fs::write(directory.join(format!("seed-{number}")), seed)?;
        }
    }
    Ok(())
}
