//! `[target]`: the keys of a target are read by the target.

use crate::error::PlanError;
use crate::table::{Places, Value, take_kind, unknown_kind};
use model::TargetSpec;
use serde::de::IntoDeserializer;

pub(crate) fn target(mut value: Value) -> Result<TargetSpec, PlanError> {
    let (span, places) = (value.span(), Places::from_value(&value));
    let names: Vec<_> = machines::TARGETS.iter().map(|t| t.name).collect();
    let kind = take_kind(&mut value, "target", &names.join(", "))?;
    let def = machines::find_by_name(&kind).ok_or_else(|| {
        let error = unknown_kind("target", &kind, names.into_iter());
        error.with_span(span.clone()).at_key(&places)
    })?;
    let read = (def.read)(value.into_deserializer());
    read.map_err(|e| PlanError::from(e).with_span(span).at_key(&places))
}
