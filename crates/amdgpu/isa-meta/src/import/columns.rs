//! Whether an encoding exists on any of our processors.

use super::conditions::condition_holds;
use super::targets::Processors;
use crate::model::{Condition, EncodingColumn, Model};

/// Whether some processor tries the column's table and fulfils all its predicates.
pub(super) fn has_processor(column: &EncodingColumn, model: &Model, processors: &Processors) -> bool {
    let conditions: Vec<&Condition> = column
        .predicates
        .iter()
        .filter_map(|name| model.predicates.iter().find(|predicate| predicate.name == *name))
        .map(|predicate| &predicate.condition)
        .collect();
    let steps: Vec<&Condition> =
        model.steps.iter().filter(|step| step.table == column.table).map(|step| &step.condition).collect();
    processors.any_processor(|has| {
        conditions.iter().all(|c| condition_holds(c, has)) && steps.iter().any(|c| condition_holds(c, has))
    })
}
