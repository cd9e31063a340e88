//! `[target]`: the keys of a target are read by the target.

use crate::error::PlanError;
use crate::table::{Places, Value, take_kind};
use model::TargetSpec;
use serde::de::IntoDeserializer;

pub(crate) fn target(mut value: Value) -> Result<TargetSpec, PlanError> {
    let (span, places) = (value.span(), Places::of(&value));
    let known: Vec<String> = ::target::TARGETS
        .iter()
        .map(|t| format!("{:?}", t.name))
        .collect();
    let kind = take_kind(&mut value, "target", &known.join(", "))?;
    let def = ::target::find(&kind).ok_or_else(|| {
        PlanError::new(format!("there is no target `{kind}`"))
            .with_help("`schedlab list targets` has all")
            .at(span.clone())
    })?;
    let read = (def.read)(value.into_deserializer());
    read.map_err(|e| PlanError::from(e).at(span).at_key(&places))
}
