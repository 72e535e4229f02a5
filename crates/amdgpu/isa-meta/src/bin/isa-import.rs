//! `isa-import JSON OVERLAY DIRECTORY`: writes the rows of llvm-tblgen's JSON, corrected, into a directory.

use std::fs::File;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [json, overlay, directory] = words.as_slice() else {
        eprintln!("usage: isa-import JSON OVERLAY DIRECTORY");
        return ExitCode::from(2);
    };
    match run(Path::new(json), Path::new(overlay), Path::new(directory)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("isa-import: error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(json: &Path, overlay: &Path, directory: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let model = hotswap_isa_meta::import::import(File::open(json)?, &std::fs::read_to_string(overlay)?)?;
    hotswap_isa_meta::rows::write(directory, &model)?;
    if hotswap_isa_meta::rows::read(directory)? != model {
        return Err("the rows do not say what was written".into());
    }
    let columns: usize = model.rows.iter().map(|row| row.columns.len()).sum();
    let counts = [
        ("rows", model.rows.len()),
        ("encodings", columns),
        ("shapes", model.shapes.len()),
        ("layouts", model.layouts.len()),
        ("kinds", model.kinds.len()),
        ("predicates", model.predicates.len()),
        ("targets", model.targets.len()),
    ];
    println!("{}", counts.map(|(name, count)| format!("{count} {name}")).join(", "));
    Ok(())
}
