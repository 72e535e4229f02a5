//! Code for other GPUs, in memory: what `hotswap retarget` and `hotswap rewrite` do with files.
//!
//! Invariant: a caller gets no bytes that `hotswap verify` would reject.

use crate::agent::agent_target;
use crate::call_error::{CallError, c_string};
use crate::worker_threads::run_parallel;
use hotswap_bundle::is_bundle;
use hotswap_code_object::{CodeObject, is_code_object};
use hotswap_compat::names::Disagreement;
use hotswap_compat::{RoutePermissions, Selection, Strategy, Verdict, find_pair, pair_verdict};
use hotswap_load_model::acceptance::check_new_code;
use hotswap_pipeline::{RetargetRequest, TargetOutcome, TargetResult};
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::Processor;
use std::ffi::CString;

/// Bytes that were made, and what was done.
#[derive(Debug)]
pub struct MadeCode {
    pub(crate) bytes: Vec<u8>,
    pub(crate) report: CString,
}

/// The caller's permissions of [`retarget`] beyond confirmed pairs and checked names.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Permissions {
    pub(crate) allow: RoutePermissions,
    /// Code whose host part, which is not in the bytes, may choose kernels by the GPU's name.
    pub(crate) unchecked_names: bool,
}

/// A bundle or code object with code for that processor.
pub(crate) fn retarget_bytes(bytes: &[u8], target: &str, permissions: Permissions) -> Result<MadeCode, CallError> {
    let target = agent_target(target)?.processor;
    run_parallel(|| retarget_now(bytes, target, permissions))?
}

fn retarget_now(bytes: &[u8], target: &'static Processor, permissions: Permissions) -> Result<MadeCode, CallError> {
    let Permissions { allow, unchecked_names } = permissions;
    let request = RetargetRequest { targets: vec![target], allow, unchecked_names, ..RetargetRequest::default() };
    if is_bundle(bytes) {
        let made = hotswap_pipeline::retarget(bytes, &request, &Default::default())?;
        let new = made.draft.map(|draft| draft.to_vec());
        if let (Some(new), Some(expected)) = (&new, &made.expected) {
            expected.check_written(new)?;
        }
        let TargetOutcome { result, .. } = made.outcomes.into_iter().next().ok_or_else(missing_code_object_error)?;
        return finished_code(bytes, new, &result);
    }
    if is_code_object(bytes) {
        let (new, result) = hotswap_pipeline::relabel_standalone(&[bytes], target, &request)?;
        return finished_code(bytes, new, &result);
    }
    let what = "the bytes are neither an offload bundle nor a code object";
    Err(Diagnostic::error(codes::UNKNOWN_FORMAT, what)
        .advise("pass an entry's bytes, or use `hotswap retarget`")
        .into())
}

fn missing_code_object_error() -> CallError {
    CallError::from(Diagnostic::error(codes::NOT_FOUND, "the bundle has no code object"))
}

fn finished_code(old: &[u8], new: Option<Vec<u8>>, result: &TargetResult) -> Result<MadeCode, CallError> {
    let report = match result {
        TargetResult::There => Selection::Native.to_string(),
        TargetResult::Covered(generic) => Selection::Generic { generic }.to_string(),
        TargetResult::Made { source, .. } => match result.left_out_kernels().len() {
            0 => format!("made from {source}"),
            count => format!("made from {source}, {count} kernels left out"),
        },
        TargetResult::Refused { reasons, .. } if !reasons.is_empty() => return Err(CallError::of_all(reasons)),
        TargetResult::Refused { names, .. } => {
            let reasons: Vec<Diagnostic> = names.iter().map(chosen_by_name).collect();
            return Err(CallError::of_all(&reasons));
        }
        TargetResult::Dropped | TargetResult::Superseded(_) => String::new(),
    };
    match new {
        Some(new) => accepted(old, new, report),
        None => Ok(MadeCode { bytes: old.to_vec(), report: c_string(report) }),
    }
}

/// New bytes, if `hotswap verify` accepts them.
fn accepted(old: &[u8], new: Vec<u8>, report: String) -> Result<MadeCode, CallError> {
    check_new_code(old, &new)?;
    Ok(MadeCode { bytes: new, report: c_string(report) })
}

/// The refusal of code that a host part chooses by the GPU's name, with the ways that a caller in C has.
fn chosen_by_name(row: &Disagreement) -> Diagnostic {
    let what = format!("{} for {}, kernel `{}`: {row}", row.source, row.target, row.kernel);
    Diagnostic::error(codes::CHOSEN_BY_NAME, what).advise(
        "compile the code for the target, or pass HOTSWAP_ALLOW_NAMES if you know that its host part starts the kernels of the source",
    )
}

/// A code object whose code was changed for another stepping.
pub(crate) fn rewrite_code(bytes: &[u8], target: &str, keep_machine: bool) -> Result<MadeCode, CallError> {
    let wanted = agent_target(target)?;
    let source = CodeObject::parse(bytes)?.target_id();
    let (from, to) = (source.processor, wanted.processor);
    if from == to {
        return Ok(MadeCode { bytes: bytes.to_vec(), report: c_string("it is for that target already") });
    }
    if let Verdict::Refused { why } = pair_verdict(from, to) {
        return Err(Diagnostic::error(codes::PAIR_REFUSED, format!("{from}=>{to}: {why}")).into());
    }
    if find_pair(from, to).is_none_or(|pair| pair.strategy != Strategy::Rewrite) {
        let what = format!("{from}=>{to}: no code changes between these");
        return Err(Diagnostic::error(codes::PAIR_REFUSED, what).advise("use hotswap_retarget").into());
    }
    let order =
        hotswap_adapt::AdaptRequest { target: hotswap_compat::derive_target_id_for(&source, to)?, keep_machine };
    let made =
        run_parallel(|| hotswap_adapt::adapt_object(bytes, &order))?.map_err(|reasons| CallError::of_all(&reasons))?;
    let changed = made.record.functions.len();
    let report = format!("{changed} functions changed or examined, {:+} bytes of code", made.record.grown);
    accepted(bytes, made.bytes, report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotswap_bundle::Bundle;

    /// A writer that makes an entry of a GPU out of text.
    #[test]
    fn bytes_that_verify_would_reject_reach_no_caller() {
        let bundle = |content: &[u8]| {
            let mut bundle = Bundle::default();
            bundle.push("host-x86_64-unknown-linux-gnu-", Vec::new()).unwrap();
            bundle.push("hipv4-amdgcn-amd-amdhsa--gfx1030", content.to_vec()).unwrap();
            bundle.to_bytes().unwrap().into_owned()
        };
        let (good, bad) = (bundle(b"BC\xc0\xdebitcode"), bundle(b"text of a bad writer"));
        assert!(accepted(&good, good.clone(), String::new()).is_ok());
        let error = accepted(&good, bad.clone(), String::new()).unwrap_err();
        assert!(format!("{error:?}").contains("HS0601"), "{error:?}");
        assert!(accepted(&bad, bad.clone(), String::new()).is_err_and(|error| format!("{error:?}").contains("HS0302")));
        assert!(accepted(&good, good[..good.len() - 4000].to_vec(), String::new()).is_err());
    }
}
