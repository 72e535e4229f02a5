//! `rewrite-exam corpus FOLDER`: writes the corpus, to look at it or to compile it by hand.

use clap::Parser;
use hotswap_rewrite_exam::corpus::units;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(about = "Exams of code that is made for gfx1250-strict from code for gfx1250")]
enum Words {
    /// Write the sources of the corpus.
    Corpus {
        /// An existing folder.
        folder: PathBuf,
    },
}

fn main() -> ExitCode {
    let Words::Corpus { folder } = Words::parse();
    for unit in units() {
        let file = folder.join(format!("{}.c", unit.name));
        if let Err(error) = std::fs::write(&file, unit.source()) {
            eprintln!("rewrite-exam: error: {}: {error}", file.display());
            return ExitCode::FAILURE;
        }
        println!("{}: {} kernels", file.display(), unit.kernels);
    }
    ExitCode::SUCCESS
}
