//! Values of options that are names of a table.

use clap::builder::{
    NonEmptyStringValueParser, PossibleValue, PossibleValuesParser, TypedValueParser,
};
use model::print::number::Thousands;

/// The formats of a report, by name.
pub fn format() -> impl TypedValueParser<Value = &'static report::Format> {
    let names = report::FORMATS.iter().map(|format| format.name);
    PossibleValuesParser::new(names)
        .map(|name| report::Format::find_by_name(&name).unwrap_or(&report::FORMATS[0]))
}

/// The signs between groups of digits.
pub fn thousands() -> impl TypedValueParser<Value = Thousands> {
    NonEmptyStringValueParser::new().try_map(Thousands::try_from)
}

/// The tools whose results can be imported, by name.
pub fn import_tool() -> impl TypedValueParser<Value = &'static import::Tool> {
    let names = import::TOOLS
        .iter()
        .map(|tool| PossibleValue::new(tool.name).help(tool.summary));
    let names: Vec<PossibleValue> = names.collect();
    PossibleValuesParser::new(names)
        .map(|name| import::Tool::find_by_name(&name).unwrap_or(&import::TOOLS[0]))
}
