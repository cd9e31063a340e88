//! A table of runs, of whatever tool: CSV with a head, or JSON objects, in which one column says
//! the arm, others the cell, and others the figures.

use crate::files::{file_text, load_from_count};
use crate::{ImportError, Imported, Place, Run, make_figure};
use model::Better;
use model::print::number::{self, Thousands};
use model::print::{table, unit};
use serde_json::{Deserializer, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Name of the tool.
pub const NAME: &str = "table";

const EXAMPLE: &str =
    "schedlab import table runs.csv --arm kernel --cell benchmark --metric 'took lower ms'";
/// Unit of figures that have none.
const NO_UNIT: &str = "count";

/// Meaning of the columns of a table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Columns {
    /// Column with the name of the arm.
    pub arm: String,
    /// Columns whose values are the name of the cell.
    pub cells: Vec<String>,
    /// Columns with figures.
    pub metrics: Vec<Column>,
    /// The sign between groups of three digits.
    pub thousands: Option<Thousands>,
}

/// A column with figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Name of the column.
    pub name: String,
    /// Direction in which the figures improve.
    pub better: Better,
    /// Unit that the figures become; without one that which stands behind them.
    pub unit: Option<String>,
}

impl Column {
    /// The column that `COLUMN lower|higher [UNIT]` is.
    pub fn parse(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let direction = |word: &&str| match *word {
            "lower" => Some(Better::Lower),
            "higher" => Some(Better::Higher),
            _ => None,
        };
        let at = words.iter().rposition(|word| direction(word).is_some());
        let wrong = || {
            format!(
                "`{text}` does not say which direction is better: 'took lower', 'ops higher 1/s'"
            )
        };
        let at = at
            .filter(|at| *at > 0 && at + 2 >= words.len())
            .ok_or_else(wrong)?;
        Ok(Column {
            name: words[..at].join(" "),
            better: direction(&words[at]).ok_or_else(wrong)?,
            unit: words.get(at + 1).map(|unit| (*unit).to_owned()),
        })
    }

    /// Name of the metric: the column's, in snake_case.
    fn metric(&self) -> String {
        let lower = self.name.to_lowercase().replace('%', " percent ");
        let words = lower.split(|c: char| !c.is_ascii_alphanumeric());
        let name = words
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
            .join("_");
        match name.starts_with(|c: char| c.is_ascii_lowercase()) {
            true => name,
            false => format!("figure_{name}"),
        }
    }
}

impl Columns {
    fn names(&self) -> Vec<&str> {
        let metrics = self.metrics.iter().map(|metric| metric.name.as_str());
        let cells = self.cells.iter().map(String::as_str);
        [self.arm.as_str()]
            .into_iter()
            .chain(cells)
            .chain(metrics)
            .collect()
    }
}

/// Reads files without knowing their columns, which says what there is to choose from.
pub fn read_unknown(paths: &[PathBuf]) -> Result<Imported, ImportError> {
    read(paths, &Columns::default())
}

/// Reads files, each with the same columns.
pub fn read(paths: &[PathBuf], columns: &Columns) -> Result<Imported, ImportError> {
    let mut imported = Imported::default();
    let mut units = Units::default();
    for path in paths {
        let text = file_text(path)?;
        if columns.arm.is_empty() || columns.metrics.is_empty() {
            return Err(no_columns(path, &text));
        }
        for row in rows(path, &text, &columns.names())? {
            match run(path, &row, columns, &mut units) {
                Ok(run) => imported.add_run(run),
                Err(fault) => imported.faults.push(fault),
            }
        }
    }
    give_units(&mut imported, columns, &units);
    Ok(imported)
}

/// A 0 has no unit of its own, and may stand before the first figure that has one.
fn give_units(imported: &mut Imported, columns: &Columns, units: &Units) {
    for run in &mut imported.runs {
        for (metric, column) in run.metrics.iter_mut().zip(&columns.metrics) {
            metric.unit = units.unit_of(column);
        }
    }
}

fn no_columns(path: &Path, text: &str) -> ImportError {
    let has = match is_json(text) {
        true => objects(path, text).ok().and_then(|objects| {
            let (_, first) = objects.into_iter().next()?;
            let names = first.as_object()?.keys().cloned().collect::<Vec<_>>();
            Some(names.join(", "))
        }),
        false => text.lines().next().map(str::to_owned),
    };
    let what = format!(
        "which columns are the arm and the figures? It has: {}",
        has.unwrap_or_default()
    );
    ImportError::in_file(path, what, EXAMPLE)
}

/// A row with the fields that were asked for, in that order.
struct Row {
    /// Line of a text, or place in a list.
    at: At,
    fields: Vec<Field>,
}

struct Field {
    text: String,
    /// A number of JSON, whose digits are in no groups.
    is_number: bool,
}

enum At {
    Line(usize),
    Item(usize),
}

impl At {
    fn error(&self, path: &Path, what: String, remedy: &str) -> ImportError {
        match self {
            At::Line(line) => ImportError::in_line(path, *line, what, remedy),
            At::Item(item) => ImportError::in_file(path, format!("item {item}: {what}"), remedy),
        }
    }

    fn source(&self, path: &Path) -> String {
        match self {
            At::Line(line) => format!("{}:{line}", path.display()),
            At::Item(item) => format!("{}, item {item}", path.display()),
        }
    }
}

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
}

fn rows(path: &Path, text: &str, names: &[&str]) -> Result<Vec<Row>, ImportError> {
    if is_json(text) {
        let objects = objects(path, text)?.into_iter();
        return objects
            .map(|(at, object)| of_object(path, at, &object, names))
            .collect();
    }
    let remedy = "give CSV whose first line names its columns, or JSON objects";
    let rows = table::read_rows(names, text);
    let rows = rows.map_err(|what| ImportError::in_file(path, what, remedy))?;
    let field = |text| Field {
        text,
        is_number: false,
    };
    let row = |row: table::Row| Row {
        at: At::Line(row.line),
        fields: row.fields.into_iter().map(field).collect(),
    };
    Ok(rows.into_iter().map(row).collect())
}

/// The objects of a text: those of a list, of lines, or of the only list in an object.
fn objects(path: &Path, text: &str) -> Result<Vec<(At, Value)>, ImportError> {
    let mut objects = Vec::new();
    let mut values = Deserializer::from_str(text).into_iter::<Value>();
    let mut counted = text.len() - text.trim_start().len();
    let mut line = 1 + text[..counted].matches('\n').count();
    while let Some(value) = values.next() {
        let value =
            value.map_err(|e| ImportError::in_json(path, &e, "give JSON as its tool wrote it"))?;
        objects.push((At::Line(line), value));
        let end = values.byte_offset();
        let next = text[end..].len() - text[end..].trim_start().len() + end;
        line += text[counted..next].matches('\n').count();
        counted = next;
    }
    match objects.as_mut_slice() {
        [(_, only)] => match list_in(path, only.take())? {
            Value::Array(list) => Ok((1..).map(At::Item).zip(list).collect()),
            object => Ok(vec![(At::Line(1), object)]),
        },
        _ => Ok(objects),
    }
}

/// The only list of objects that an object has; otherwise the value itself.
fn list_in(path: &Path, value: Value) -> Result<Value, ImportError> {
    let Value::Object(members) = &value else {
        return Ok(value);
    };
    let is_list = |value: &Value| {
        let list = value.as_array().filter(|list| !list.is_empty());
        list.is_some_and(|list| list.iter().all(Value::is_object))
    };
    let lists: Vec<&String> = members
        .iter()
        .filter(|(_, v)| is_list(v))
        .map(|(name, _)| name)
        .collect();
    match lists.as_slice() {
        [] => Ok(value),
        [name] => Ok(value[name.as_str()].clone()),
        [first, ..] => {
            let what = format!(
                "it has {} lists of objects; which one has the runs?",
                lists.len()
            );
            let remedy = format!("take one out: jq '.{first}' FILE > runs.json");
            Err(ImportError::in_file(path, what, remedy))
        }
    }
}

fn of_object(path: &Path, at: At, object: &Value, names: &[&str]) -> Result<Row, ImportError> {
    let field = |name: &&str| {
        let value = member(object, name);
        match value {
            Some(Value::String(text)) => Ok(Field {
                text: text.clone(),
                is_number: false,
            }),
            Some(value @ (Value::Number(_) | Value::Bool(_))) => Ok(Field {
                text: value.to_string(),
                is_number: value.is_number(),
            }),
            Some(_) => Err(at.error(path, format!("`{name}` is no text and no number"), "")),
            None => {
                let keys = object
                    .as_object()
                    .map(|o| o.keys().cloned().collect::<Vec<_>>());
                let has = keys.unwrap_or_default().join(", ");
                let what = format!("there is no `{name}`; it has: {has}");
                Err(at.error(
                    path,
                    what,
                    "a member of a member is written with a point: data.value",
                ))
            }
        }
    };
    let fields = names.iter().map(field).collect::<Result<_, _>>()?;
    Ok(Row { at, fields })
}

/// The member of this name, or of these names with points between them.
fn member<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    value.get(name).or_else(|| {
        let (first, rest) = name.split_once('.')?;
        member(value.get(first)?, rest)
    })
}

fn run(path: &Path, row: &Row, columns: &Columns, units: &mut Units) -> Result<Run, ImportError> {
    let empty = |what: &str| row.at.error(path, format!("the {what} is empty"), "");
    let names = columns.cells.len() + 1;
    let mut fields = row.fields.iter().take(names).map(|field| field.text.trim());
    let arm = fields.next().filter(|arm| !arm.is_empty());
    let arm = arm.ok_or_else(|| empty(&format!("column `{}`", columns.arm)))?;
    let cell: Vec<&str> = fields.collect();
    if let Some((at, _)) = cell.iter().enumerate().find(|(_, part)| part.is_empty()) {
        return Err(empty(&format!("column `{}`", columns.cells[at])));
    }
    let figures = row.fields.iter().skip(names);
    let metrics = columns.metrics.iter().zip(figures).map(|(column, field)| {
        let (value, unit) = units.read(path, row, column, field, columns.thousands)?;
        Ok(make_figure(&column.metric(), &unit, column.better, value))
    });
    let workload = match cell.is_empty() {
        true => path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        false => cell.join(" "),
    };
    let place = Place {
        benchmark: cell
            .first()
            .map_or_else(|| workload.clone(), |first| (*first).to_owned()),
        workload,
        load: load_from_count(None),
        load_name: String::new(),
    };
    Ok(Run {
        metrics: metrics.collect::<Result<_, ImportError>>()?,
        ..Run::new(arm, place, row.at.source(path))
    })
}

/// Units of the columns, as the first figures have them.
#[derive(Default)]
struct Units {
    /// The unit and the place where it was, by column.
    of: BTreeMap<String, (Option<String>, String)>,
}

impl Units {
    /// A figure in the unit of its column.
    fn read(
        &mut self,
        path: &Path,
        row: &Row,
        column: &Column,
        field: &Field,
        thousands: Option<Thousands>,
    ) -> Result<(f64, String), ImportError> {
        let thousands = thousands.filter(|_| !field.is_number);
        let (name, field) = (&column.name, field.text.trim());
        let wrong = |what: String| {
            let what = format!("`{field}` in the column `{name}`: {what}");
            row.at.error(
                path,
                what,
                "mend the field, or leave the row out with --skip-bad",
            )
        };
        let plain = number::normalize_number(field, thousands).map_err(wrong)?;
        let split =
            unit::split_number(&plain).ok_or_else(|| wrong("it is no number".to_owned()))?;
        let (number, unit) = split;
        let declared = column.unit.as_deref();
        let converted = unit
            .map(|unit| unit::find_conversion(unit, declared))
            .transpose();
        let (value, unit) = match converted.map_err(wrong)? {
            Some((factor, unit)) => (factor.convert(number), Some(unit)),
            None => (number, None),
        };
        let here = row.at.source(path);
        if unit.is_some() || number != 0.0 {
            let (first, place) = self.of.entry(name.clone()).or_insert((unit.clone(), here));
            if *first != unit {
                let said = |unit: &Option<String>| {
                    unit.as_ref()
                        .map_or("no unit".to_owned(), |u| format!("the unit {u}"))
                };
                return Err(wrong(format!(
                    "it has {}, and {place} has {}",
                    said(&unit),
                    said(first)
                )));
            }
        }
        Ok((value, self.unit_of(column)))
    }

    /// The unit of a column, as far as it is known.
    fn unit_of(&self, column: &Column) -> String {
        let known = self.of.get(&column.name);
        let known = known.and_then(|(unit, _)| unit.clone());
        let unit = column.unit.clone().or(known);
        unit.unwrap_or_else(|| NO_UNIT.to_owned())
    }
}

#[cfg(test)]
mod tests;
