//! The GPU of the machine as HIP states it, and whether HIP would state the right one.

use crate::batches::{ask_hip_command, unstarted_error, wait_for};
use crate::hip_process::read_devices;
use crate::report::CardFacts;
use hotswap_report::{Diagnostic, codes, text};
use hotswap_targets::{Processor, find_processor};
use std::env;
use std::io::Read;
use std::process::Stdio;
use std::time::Duration;

/// The variable by which HIP takes a GPU for another one.
const OVERRIDE: &str = "HSA_OVERRIDE_GFX_VERSION";
const NAMES_LIBRARY: &str = "libhotswap-names";

/// Checks that HIP takes no GPU for another one, which would confirm the wrong claims.
///
/// # Errors
/// [`codes::NO_CARD`] with the variable that changes the GPU's name.
pub fn check_environment() -> Result<(), Diagnostic> {
    if env::var_os(OVERRIDE).is_some_and(|value| !value.is_empty()) {
        return Err(other_name_error(&format!("{OVERRIDE} is set")).advise("unset it"));
    }
    let preloaded = env::var("LD_PRELOAD").unwrap_or_default();
    if preloaded.contains(NAMES_LIBRARY) {
        return Err(other_name_error("LD_PRELOAD has HotSwap's library of shown names").advise("unset it"));
    }
    Ok(())
}

fn other_name_error(what: &str) -> Diagnostic {
    Diagnostic::error(codes::NO_CARD, format!("{what}, so that HIP would state another GPU than there is"))
}

/// The GPU as HIP states it, asked in a process of its own. Whether it is emulated the caller knows.
///
/// # Errors
/// [`codes::NO_CARD`] if HIP finds no GPU or does not answer within the limit, and [`codes::USAGE`] for a number that no GPU has.
pub fn examine_card(number: usize, limit: Duration, is_emulated: bool) -> Result<CardFacts, Diagnostic> {
    let mut command = ask_hip_command()?;
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| unstarted_error(&command, &error))?;
    if wait_for(&mut child, limit).is_none() {
        let _ = child.kill();
        let reason = format!("HIP did not say within {} seconds which GPUs there are", limit.as_secs());
        return Err(Diagnostic::error(codes::NO_CARD, reason));
    }
    let mut answer = String::new();
    // The answer is short: it is in the pipe. One that cannot be read is no answer.
    let _ = child.stdout.take().map(|mut output| output.read_to_string(&mut answer));
    let answer = read_devices(&answer)?;
    let devices = answer["devices"].as_array().map_or(0, Vec::len);
    let device = &answer["devices"][number];
    let (Some(name), Some(target)) = (device["name"].as_str(), device["target"].as_str()) else {
        return Err(Diagnostic::error(codes::USAGE, format!("there is no GPU {number}; HIP finds {devices}")));
    };
    let [runtime, driver] = ["runtime", "driver"].map(|field| answer[field].as_i64().unwrap_or_default() as i32);
    Ok(CardFacts {
        name: text::plain(name).to_string(),
        target: text::plain(target).to_string(),
        runtime,
        driver,
        is_emulated,
    })
}

pub(crate) fn card_processor(card: &CardFacts) -> Result<&'static Processor, Diagnostic> {
    let name = card.target.split(':').next().unwrap_or_default();
    let reason = format!("the GPU is {name}, which HotSwap does not know");
    find_processor(name).ok_or_else(|| Diagnostic::error(codes::UNKNOWN_TARGET, reason))
}
