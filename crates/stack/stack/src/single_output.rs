//! One output made without its tree, with the record by which a run takes it.

use crate::hash;
use crate::made::{MadeRecord, SingleAction};
use crate::maker::OutputMaker;
use crate::output::{OutputRequest, OutputWay, is_large_output};
use hotswap_report::Diagnostic;
use std::path::Path;

/// Makes an output and its record.
///
/// # Errors
/// The reasons why it cannot be made.
pub fn make_single_output(
    single: &SingleAction,
    output: &Path,
    maker: &OutputMaker<'_>,
) -> Result<(), Vec<Diagnostic>> {
    let action = single.action_hash().map_err(single_diagnostic_list)?;
    let planned = single.action_with_output(output);
    let order = OutputRequest {
        action: &planned,
        output,
        is_large: is_large_output(&planned),
        before_named: &|sha256| MadeRecord { action: action.clone(), sha256, is_copy: false }.write(output),
    };
    if maker.make_output(&order)? == OutputWay::Unchanged {
        let input = hotswap_files::open_input(&single.input).map_err(single_diagnostic_list)?;
        let record = MadeRecord { sha256: hash::of_input(&input), action, is_copy: true };
        record.write(output).map_err(single_diagnostic_list)?;
        hotswap_files::replace_like(output, &input, &single.input).map_err(single_diagnostic_list)?;
    }
    Ok(())
}

fn single_diagnostic_list(error: Diagnostic) -> Vec<Diagnostic> {
    vec![error]
}
