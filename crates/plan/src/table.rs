//! TOML tables that are taken apart before serde reads them.

use crate::error::PlanError;
pub(crate) use crate::places::{Places, Value};
use load::Keys;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde_json::Map;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Takes a key out of a table.
pub(crate) fn take_key<'i>(table: &mut DeTable<'i>, key: &str) -> Option<Value<'i>> {
    let found = table.keys().find(|k| k.get_ref() == key)?.clone();
    table.remove(&found)
}

/// The tables of `[[key]]`.
pub(crate) fn items<'i>(value: Option<Value<'i>>, key: &str) -> Result<Vec<Value<'i>>, PlanError> {
    let Some(value) = value else {
        return Ok(Vec::new());
    };
    let span = value.span();
    match value.into_inner() {
        DeValue::Array(array) => Ok(array.into_iter().collect()),
        _ => Err(PlanError::new(format!("`{key}` is a list of tables"))
            .with_help(format!("write [[{key}]] with two brackets"))
            .with_span(span)),
    }
}

/// Keys and values of a table, for those who ask for their keys one by one.
pub(crate) fn keys_of(value: &Value) -> Result<Keys, PlanError> {
    let map = Map::deserialize(value.clone().into_deserializer())?;
    Ok(Keys::new(map))
}

pub(crate) fn no_fault(keys: Keys) -> Result<(), PlanError> {
    keys.into_fault().map_or(Ok(()), |fault| Err(fault.into()))
}

/// These keys of a table, as a table of their own.
pub(crate) fn split<'i>(value: &mut Value<'i>, keys: &[&str]) -> Value<'i> {
    let mut own = DeTable::new();
    if let DeValue::Table(table) = value.get_mut() {
        let is_own = |key: &Spanned<_>| keys.contains(&<_ as AsRef<str>>::as_ref(key.get_ref()));
        let found: Vec<_> = table.keys().filter(|key| is_own(key)).cloned().collect();
        for key in found {
            own.extend(table.remove_entry(&key));
        }
    }
    Value::new(value.span(), DeValue::Table(own))
}

/// The keys that are left of a table, where these were taken out before: an unknown key may
/// be meant as one of them.
pub(crate) fn own_keys<'i, T: Deserialize<'i>>(
    value: Value<'i>,
    taken: &[&'static str],
) -> Result<T, PlanError> {
    let names: Vec<_> = match value.get_ref() {
        DeValue::Table(table) => table.keys().map(Spanned::span).collect(),
        _ => Vec::new(),
    };
    T::deserialize(value.into_deserializer()).map_err(|error| {
        let is_name = error.span().is_some_and(|span| names.contains(&span));
        match is_name {
            true => PlanError::from(error).beside_keys(taken.iter().copied()),
            false => error.into(),
        }
    })
}

/// The text of `kind`, taken out of a table.
pub(crate) fn take_kind(value: &mut Value, what: &str, known: &str) -> Result<String, PlanError> {
    let span = value.span();
    let missing = || {
        PlanError::new(format!("this {what} has no kind"))
            .with_help(format!("kind = one of {known}"))
            .with_span(span.clone())
    };
    let DeValue::Table(table) = value.get_mut() else {
        return Err(
            PlanError::new(format!("there is one {what}, not a list of them"))
                .with_help("write its table with one bracket: [workload.server], [target]")
                .with_span(span.clone()),
        );
    };
    let kind = take_key(table, "kind").ok_or_else(missing)?;
    match kind.get_ref() {
        DeValue::String(kind) => Ok(kind.to_string()),
        _ => Err(missing()),
    }
}

/// The error for a kind that no table has.
pub(crate) fn unknown_kind(
    what: &str,
    kind: &str,
    names: impl Iterator<Item = &'static str>,
) -> PlanError {
    let names: Vec<_> = names.collect();
    let help = match model::find_nearest(kind, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("one of {}", names.join(", ")),
    };
    PlanError::new(format!("there is no {what} `{kind}`"))
        .with_help(help)
        .about_key("kind")
}
