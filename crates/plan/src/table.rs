//! TOML tables that are taken apart before serde reads them.

use crate::error::PlanError;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub(crate) type Value<'i> = Spanned<DeValue<'i>>;

/// Takes a key out of a table.
pub(crate) fn take<'i>(table: &mut DeTable<'i>, key: &str) -> Option<Value<'i>> {
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
            .at(span)),
    }
}
