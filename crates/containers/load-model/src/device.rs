//! A GPU as HIP presents it: a processor in one mode of XNACK and SRAMECC.
//!
//! HIP asks for code with the full target ID of the device, for example `gfx90a:sramecc+:xnack-`. A name without features
//! therefore means several devices, one for each mode that the hardware can be in.

use hotswap_targets::{Support, TargetId};

/// A requested GPU with all of its modes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceModes {
    /// The GPU as it was named.
    pub requested: TargetId,
    /// Its modes with every feature stated that the processor has; at least one.
    pub modes: Vec<TargetId>,
}

impl DeviceModes {
    /// The modes that agree with the features that `requested` states.
    pub fn of_target(requested: TargetId) -> Self {
        let processor = requested.processor;
        let mut modes = Vec::new();
        for sramecc in possible_settings(requested.sramecc, processor.sramecc) {
            for xnack in possible_settings(requested.xnack, processor.xnack) {
                modes.push(TargetId { processor, xnack, sramecc });
            }
        }
        Self { requested, modes }
    }
}

/// The settings of a feature in which the device can be.
fn possible_settings(stated: Option<bool>, support: Support) -> Vec<Option<bool>> {
    match (stated, support) {
        (Some(on), _) => vec![Some(on)],
        (None, Support::No) => vec![None],
        (None, Support::Yes | Support::Unsettled) => vec![Some(true), Some(false)],
    }
}

#[cfg(test)]
mod tests {
    use super::DeviceModes;

    #[test]
    fn unstated_features_mean_every_mode() {
        for (requested, expected) in [
            ("gfx1030", vec!["gfx1030"]),
            ("gfx900", vec!["gfx900:xnack+", "gfx900:xnack-"]),
            ("gfx90a:sramecc+", vec!["gfx90a:sramecc+:xnack+", "gfx90a:sramecc+:xnack-"]),
            ("gfx90a:sramecc-:xnack+", vec!["gfx90a:sramecc-:xnack+"]),
        ] {
            let modes = DeviceModes::of_target(requested.parse().unwrap()).modes;
            assert_eq!(modes.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
        }
    }
}
