//! Processors with their features.

use super::conditions::mentioned;
use super::json::Records;
use super::{ImportError, wrong};
use crate::model::{Model, Target};
use std::collections::BTreeSet;

/// Processors of these generations, generic ones included.
const GENERATIONS: &[&str] = &["gfx9", "gfx10", "gfx11", "gfx12"];

/// Features that LLVM's disassembler, printer or encoder asks for beside those in predicates.
const ASKED: &[&str] = &[
    "Feature1024AddressableVGPRs",
    "Feature64BitLiterals",
    "FeatureA16",
    "FeatureArchitectedFlatScratch",
    "FeatureDPALU_DPP",
    "FeatureDPPSrc1SGPR",
    "FeatureFlatSignedOffset",
    "FeatureFmaMixInsts",
    "FeatureG16",
    "FeatureGCN3Encoding",
    "FeatureGDS",
    "FeatureGFX10",
    "FeatureGFX10Insts",
    "FeatureGFX10_3Insts",
    "FeatureGFX10_AEncoding",
    "FeatureGFX10_BEncoding",
    "FeatureGFX11",
    "FeatureGFX11Insts",
    "FeatureGFX11_7Insts",
    "FeatureGFX12",
    "FeatureGFX12Insts",
    "FeatureGFX1250Insts",
    "FeatureGFX9",
    "FeatureGFX9Insts",
    "FeatureGFX90AInsts",
    "FeatureGFX940Insts",
    "FeatureGFX950Insts",
    "FeatureInv2PiInlineImm",
    "FeatureMAIInsts",
    "FeatureMIMG_R128",
    "FeatureNSAEncoding",
    "FeaturePartialNSAEncoding",
    "FeatureR128A16",
    "FeatureRealTrue16Insts",
    "FeatureTrue16BitInsts",
    "FeatureSetregVGPRMSBFixup",
    "FeatureSupportsXNACK",
    "FeatureUnpackedD16VMem",
    "FeatureVOP3Literal",
    "FeatureVOPDInsts",
    "FeatureWavefrontSize32",
    "FeatureWavefrontSize64",
    "FeatureXNACK",
    "FeatureDX10ClampAndIEEEMode",
    "FeatureOffset3fBug",
    "FeatureKernargPreload",
    "FeatureApertureRegs",
];

/// Processors with all their features.
pub(super) struct Processors {
    targets: Vec<Target>,
    asked: BTreeSet<String>,
}

/// All processors of our generations.
pub(super) fn all(records: &Records) -> Result<Processors, ImportError> {
    let mut targets = Vec::new();
    for record in &records.processors {
        let name = record.text("Name");
        if GENERATIONS.iter().any(|generation| name.starts_with(generation)) {
            let mut features = BTreeSet::new();
            for feature in record.names("Features") {
                add(records, name, feature, &mut features)?;
            }
            let wave = |size: &str| features.contains(size);
            if !wave("wavefrontsize32") && !wave("wavefrontsize64") {
                features.insert("wavefrontsize32".to_owned());
            }
            targets.push(Target { name: name.to_owned(), features: features.into_iter().collect() });
        }
    }
    targets.sort_by_key(|target| order(&target.name));
    let asked = ASKED.iter().map(|name| records.find("targets", name).map(|record| record.text("Name").to_owned()));
    Ok(Processors { targets, asked: asked.collect::<Result<_, _>>()? })
}

/// gfx900 before gfx1010, generics after the processors of their generation.
fn order(name: &str) -> (usize, bool, String) {
    let generic = name.contains('-');
    let digits = name.trim_start_matches("gfx").split('-').next().unwrap_or_default();
    let generation = if digits.len() > 3 || (generic && digits.len() > 1) { digits.get(..2) } else { digits.get(..1) };
    (generation.and_then(|text| text.parse().ok()).unwrap_or(0), generic, name.to_owned())
}

fn add(records: &Records, user: &str, name: &str, features: &mut BTreeSet<String>) -> Result<(), ImportError> {
    let record = records.find(user, name)?;
    if record.text("Name").is_empty() {
        return wrong(name, "a feature without a name");
    }
    if features.insert(record.text("Name").to_owned()) {
        for implied in record.names("Implies") {
            add(records, name, implied, features)?;
        }
    }
    Ok(())
}

impl Processors {
    /// Whether a condition can hold on some processor, with either wave size and either spelling of true16.
    pub(super) fn any(&self, holds: impl Fn(&dyn Fn(&str) -> bool) -> bool) -> bool {
        self.targets.iter().any(|target| {
            let listed = |name: &str| target.features.binary_search_by(|feature| feature.as_str().cmp(name)).is_ok();
            [(false, false), (false, true), (true, false), (true, true)].iter().any(|(wide, spelled)| {
                holds(&|name| match name {
                    "wavefrontsize32" => !*wide,
                    "wavefrontsize64" => *wide,
                    "real-true16" => *spelled && listed("true16"),
                    _ => listed(name),
                })
            })
        })
    }
}

/// Puts the processors into the model, with the features that somebody asks for.
pub(super) fn fill(model: &mut Model, processors: Processors) {
    let mut used: BTreeSet<&str> = processors.asked.iter().map(String::as_str).collect();
    model.predicates.iter().for_each(|item| mentioned(&item.condition, &mut used));
    model.steps.iter().for_each(|item| mentioned(&item.condition, &mut used));
    let mut targets = processors.targets;
    for target in &mut targets {
        target.features.retain(|feature| used.contains(feature.as_str()));
    }
    model.targets = targets;
}
