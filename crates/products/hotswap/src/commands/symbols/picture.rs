//! Pictures of graphs, drawn by Graphviz.

use hotswap_report::{Diagnostic, codes};
use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;

/// The picture of a graph, by Graphviz.
///
/// # Errors
/// `NOT_STARTED` where `dot` does not exist, `CHILD_FAILED` where it fails.
pub(super) fn draw(graph: &str) -> Result<String, Diagnostic> {
    let mut child = Command::new("dot")
        .arg("-Tsvg")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(graphviz_start_error)?;
    let mut input = child.stdin.take();
    let output = thread::scope(|scope| {
        // A picture may begin before the graph ends.
        thread::Builder::new()
            .spawn_scoped(scope, move || input.as_mut().map(|input| input.write_all(graph.as_bytes())))
            .and_then(|_| hotswap_files::child_output(child))
    });
    let output = output.map_err(graphviz_start_error)?;
    if !output.status.success() {
        return Err(Diagnostic::error(codes::CHILD_FAILED, format!("`dot -Tsvg`: {}", output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn graphviz_start_error(error: std::io::Error) -> Diagnostic {
    Diagnostic::error(codes::NOT_STARTED, format!("`dot`: {error}"))
        .advise("install Graphviz, or write the graph by --format dot")
}
