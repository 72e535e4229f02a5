//! The order in which LLVM's disassembler tries its tables (AMDGPUDisassembler.cpp, `getInstruction`).
//!
//! Its C++ conditions are features here. The W64 tables have predicates on the wave size of their own.

use crate::model::{Condition, TableStep};

const ALWAYS: &[&str] = &[];
const GFX9: &[&str] = &["gfx9"];
const GFX10: &[&str] = &["gfx10"];
const GFX11: &[&str] = &["gfx11"];
const GFX12: &[&str] = &["gfx12"];
const GFX950: &[&str] = &["gfx950-insts"];
const GFX940: &[&str] = &["gfx940-insts"];
const GFX90A: &[&str] = &["gfx90a-insts"];
const GFX1170: &[&str] = &["gfx11-7-insts"];
const GFX1250: &[&str] = &["gfx1250-insts"];

#[rustfmt::skip]
const STEPS: &[(u8, &str, &[&str])] = &[
    (128, "gfx1250",        GFX1250),
    (96,  "gfx1170",        GFX1170), (96, "gfx1170_fake16", GFX1170),
    (96,  "gfx11",          GFX11),   (96, "gfx11_fake16",   GFX11),
    (96,  "gfx1250",        GFX1250), (96, "gfx1250_fake16", GFX1250),
    (96,  "gfx12",          GFX12),   (96, "gfx12_fake16",   GFX12),
    (96,  "gfx12w64",       GFX12),
    // A second pass, with the eight bytes after the first four as literal.
    (96,  "gfx1250",        &["gfx1250-insts", "64-bit-literals"]),
    (128, "gfx940",         GFX950),
    (64,  "gfx10_b",        &["gfx10_b-encoding"]),
    (64,  "gfx950",         GFX950),
    (64,  "gfx9_dl",        &["fma-mix-insts"]),
    (64,  "gfx940",         GFX940),
    (64,  "gfx90a",         GFX90A),
    (64,  "gfx8",           GFX9),
    (64,  "gfx9",           GFX9),
    (64,  "gfx10",          GFX10),
    (64,  "gfx1250",        GFX1250), (64, "gfx1250_fake16", GFX1250),
    (64,  "gfx12",          GFX12),   (64, "gfx12_fake16",   GFX12),
    (64,  "gfx1170",        GFX1170), (64, "gfx1170_fake16", GFX1170),
    (64,  "gfx11",          GFX11),   (64, "gfx11_fake16",   GFX11),
    (64,  "gfx1170w64",     GFX1170),
    (64,  "gfx11w64",       GFX11),
    (64,  "gfx12w64",       GFX12),
    (32,  "gfx8",           GFX9),
    (32,  "amdgpu",         ALWAYS),
    (32,  "gfx9",           GFX9),
    (32,  "gfx950",         GFX950),
    (32,  "gfx90a",         GFX90A),
    (32,  "gfx10_b",        &["gfx10_b-encoding"]),
    (32,  "gfx10",          GFX10),
    (32,  "gfx1170",        GFX1170), (32, "gfx1170_fake16", GFX1170),
    (32,  "gfx11",          GFX11),   (32, "gfx11_fake16",   GFX11),
    (32,  "gfx1250",        GFX1250), (32, "gfx1250_fake16", GFX1250),
    (32,  "gfx12",          GFX12),   (32, "gfx12_fake16",   GFX12),
];

/// Tables by generation, for the order of columns.
const TABLES: &[&str] = &[
    "gfx8",
    "gfx9",
    "gfx9_dl",
    "gfx90a",
    "gfx940",
    "gfx950",
    "gfx10",
    "gfx10_b",
    "gfx11",
    "gfx11_fake16",
    "gfx11w64",
    "gfx1170",
    "gfx1170_fake16",
    "gfx1170w64",
    "gfx12",
    "gfx12_fake16",
    "gfx12w64",
    "gfx1250",
    "gfx1250_fake16",
    "amdgpu",
];

/// All steps in order.
pub(super) fn table_steps() -> Vec<TableStep> {
    STEPS.iter().map(make_table_step).collect()
}

fn features_condition(features: &[&str]) -> Condition {
    match features {
        [one] => Condition::Has((*one).to_owned()),
        _ => Condition::All(features.iter().map(|name| Condition::Has((*name).to_owned())).collect()),
    }
}

fn make_table_step((bits, table, features): &(u8, &str, &[&str])) -> TableStep {
    TableStep { bits: *bits, table: (*table).to_owned(), condition: features_condition(features) }
}

/// Position of a table in the order of generations.
pub(super) fn table_age(table: &str) -> Option<usize> {
    TABLES.iter().position(|name| *name == table)
}

/// Generation whose encodings a table has: 9, 10, 11 or 12.
pub(super) fn table_generation(table: &str) -> u8 {
    match table {
        _ if table.starts_with("gfx10") => 10,
        _ if table.starts_with("gfx11") => 11,
        _ if table.starts_with("gfx12") => 12,
        _ => 9,
    }
}
