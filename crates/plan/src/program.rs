//! Programs of servers and antagonists: the table of a role with the kind of its program.

use crate::error::PlanError;
use crate::placement::read_role;
use crate::table::{Value, take_kind, unknown_kind};
use load::roles::{ProgramDef, Table};
use model::{Kind, Placement};
use serde::Deserialize;
use toml::de::DeValue;

/// The table of a server or an antagonist: its program, where that runs, and the keys that all
/// kinds of the role have.
pub(crate) fn read_program<'i, W: ?Sized, T: Deserialize<'i>>(
    table: &Table<W>,
    mut value: Value<'i>,
) -> Result<(Kind, Placement, T), PlanError> {
    let names: Vec<_> = table.kinds.iter().map(|def| def.name).collect();
    let kind = take_kind(&mut value, table.role, &names.join(", "))?;
    let def = table
        .find(&kind)
        .ok_or_else(|| unknown_kind(table.role, &kind, names.into_iter()))?;
    check_foreign(table, def, &value)?;
    let (placement, program, common) = read_role(value, |keys| def.read(keys))?;
    Ok((program, placement, common))
}

/// A key that other kinds of the role have, and this one does not, is no misspelt one.
fn check_foreign<W: ?Sized>(
    table: &Table<W>,
    def: &ProgramDef<W>,
    value: &Value,
) -> Result<(), PlanError> {
    let DeValue::Table(written) = value.get_ref() else {
        return Ok(());
    };
    let has = |def: &ProgramDef<W>, name: &str| def.keys.iter().any(|key| key.name == name);
    let keys = written.keys().map(|key| key.get_ref().as_ref());
    for key in keys.filter(|key| !has(def, key)) {
        let others = table.kinds.iter().filter(|other| has(other, key));
        let others: Vec<_> = others.map(|other| other.name).collect();
        if others.is_empty() {
            continue;
        }
        let message = format!("a {} of the kind `{}` has no `{key}`", table.role, def.name);
        return Err(PlanError::new(message)
            .with_help(format!("leave it out; `{}` has it", others.join("` and `")))
            .about_key(key));
    }
    Ok(())
}
