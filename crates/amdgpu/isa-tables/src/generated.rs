//! The generated enums and tables.

use crate::effect::place::*;
use crate::encoding::{
    CheckBlock, EntryData, FieldData, FieldLayout, FormatData, LayoutData, LayoutField, OperandCheck, Piece, RowData,
    Slot, SlotData,
};
use crate::image::{Image, ImageBase};
use crate::kind::{Decode, KindRow, OperandType, RegClass};
use crate::record::table;
use crate::size::{SizePrefixes, SizeRuleData};
use crate::target::{Subtarget, Target};
use crate::text::{StepData, TextLine, TextRange, TextStep};
use crate::{EntryEffectsData, PlaceData};

include!(concat!(env!("OUT_DIR"), "/enums.rs"));
include!(concat!(env!("OUT_DIR"), "/tables.rs"));
