//! Columns of tables in CSV, with or without a head, and with lines before it.

use csv::{ReaderBuilder, StringRecord, Trim};

/// Signs between columns.
const SEPARATORS: [u8; 3] = *b",;\t";

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Line of the text, from 1 on.
    pub line: usize,
    /// The columns that were asked for, in that order.
    pub fields: Vec<String>,
    /// All columns, with commas between them.
    pub whole: String,
}

/// The rows of the table that has all these columns, each a name in its head or a number, `#2`.
pub fn read_rows(names: &[&str], text: &str) -> Result<Vec<Row>, String> {
    let Some(table) = Table::in_text(names, text)? else {
        return Ok(Vec::new());
    };
    let mut rows = Vec::new();
    let mut width = table.width;
    let below = &text[table.from..];
    for record in records(below, table.separator) {
        let record = record?;
        let line = table.lines_before + line_of(&record, below);
        let whole = joined(&record);
        let (here, columns) = (record.len(), *width.get_or_insert(record.len()));
        if here != columns {
            return Err(format!(
                "line {line}, `{whole}`, has {here} columns and those before it {columns}; is it of the table?"
            ));
        }
        let fields = names.iter().zip(&table.columns).map(|(name, at)| {
            let field = record.get(*at).map(str::to_owned);
            field.ok_or_else(|| format!("line {line}, `{whole}`, has no column {name}"))
        });
        let fields = fields.collect::<Result<_, _>>()?;
        rows.push(Row {
            line,
            fields,
            whole,
        });
    }
    Ok(rows)
}

/// Line of the text on which a record of it begins, from 1 on. The position of a record is that of the end
/// of the one before it, so empty lines between the two are passed over.
fn line_of(record: &StringRecord, text: &str) -> usize {
    let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    let place = record.position();
    let (byte, line) = place.map_or((0, 1), |place| (number(place.byte()), number(place.line())));
    let rest = text.get(byte..).unwrap_or_default();
    let empty = rest.lines().take_while(|line| line.is_empty()).count();
    line + empty
}

/// Where a table is in a text.
struct Table {
    separator: u8,
    /// Byte at which its rows begin.
    from: usize,
    lines_before: usize,
    /// Columns that were asked for.
    columns: Vec<usize>,
    /// Number of columns of the head.
    width: Option<usize>,
}

impl Table {
    /// The table that has all the columns; `None` in an empty text. The head is the first line, or
    /// the first one below it that has the names and no figures.
    fn in_text(names: &[&str], text: &str) -> Result<Option<Table>, String> {
        let mut end = 0;
        let mut first = None;
        for (index, line) in text.split_inclusive('\n').enumerate() {
            let begin = end;
            end += line.len();
            if line.trim().is_empty() {
                continue;
            }
            if let Some(columns) = numbered(names) {
                return Ok(Some(Table {
                    separator: separator_of(line),
                    from: begin,
                    lines_before: index,
                    columns,
                    width: None,
                }));
            }
            let is_first = first.is_none();
            first.get_or_insert(line);
            if let Some((separator, fields, columns)) = head(names, line, is_first)? {
                return Ok(Some(Table {
                    separator,
                    from: end,
                    lines_before: index + 1,
                    columns,
                    width: Some(fields.len()),
                }));
            }
        }
        first.map_or(Ok(None), |first| Err(no_head(names, first)))
    }
}

fn no_head(names: &[&str], first: &str) -> String {
    let first = one_record(first, separator_of(first)).unwrap_or_default();
    format!(
        "no column is called `{}`; its first line is `{}`, and csv = \"#2\" is the second column of \
         a table whose columns have no names",
        names.join("`, `"),
        joined(&first)
    )
}

/// The columns, if the line is a head that has them: a line of names, unless it is the first.
fn head(
    names: &[&str],
    line: &str,
    is_first: bool,
) -> Result<Option<(u8, StringRecord, Vec<usize>)>, String> {
    for separator in SEPARATORS {
        let Some(fields) = one_record(line, separator) else {
            continue;
        };
        let has_figures = fields.iter().any(|field| field.parse::<f64>().is_ok());
        let has = |name: &&str| number_of(name).is_some() || fields.iter().any(|f| f == *name);
        if names.iter().all(has) && (is_first || !has_figures) {
            let columns = names.iter().map(|name| column(name, &fields));
            let columns = columns.collect::<Result<_, _>>()?;
            return Ok(Some((separator, fields, columns)));
        }
    }
    Ok(None)
}

fn column(name: &str, fields: &StringRecord) -> Result<usize, String> {
    if let Some(number) = number_of(name) {
        return Ok(number);
    }
    let mut found = fields
        .iter()
        .enumerate()
        .filter(|(_, field)| *field == name);
    match (found.next(), found.next()) {
        (Some((at, _)), None) => Ok(at),
        _ => Err(format!("two columns are called `{name}`")),
    }
}

/// The column that `#2` is, counted from 0.
fn number_of(name: &str) -> Option<usize> {
    let number: usize = name.strip_prefix('#')?.parse().ok()?;
    number.checked_sub(1)
}

fn numbered(names: &[&str]) -> Option<Vec<usize>> {
    names.iter().map(|name| number_of(name)).collect()
}

fn separator_of(line: &str) -> u8 {
    let mut separators = SEPARATORS.into_iter();
    let found = separators.find(|separator| line.as_bytes().contains(separator));
    found.unwrap_or(SEPARATORS[0])
}

fn records(text: &str, separator: u8) -> impl Iterator<Item = Result<StringRecord, String>> {
    let reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(separator)
        .trim(Trim::All)
        .from_reader(text.as_bytes());
    let records = reader.into_records();
    records.map(|record| record.map_err(|error| error.to_string()))
}

fn one_record(line: &str, separator: u8) -> Option<StringRecord> {
    records(line, separator).next()?.ok()
}

fn joined(record: &StringRecord) -> String {
    record.iter().collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Line and fields of each row.
    fn read(names: &[&str], text: &str) -> Result<Vec<(usize, Vec<String>)>, String> {
        let rows = read_rows(names, text)?.into_iter();
        Ok(rows.map(|row| (row.line, row.fields)).collect())
    }

    #[test]
    fn the_head_is_the_first_line_or_one_below_it_that_has_the_names_and_no_figures() {
        let banner = "RUN of 12, \"x\n\na;b\n1;\"2;3\"\n\n4;5\n";
        let expected = vec![(4, vec!["2;3".to_owned()]), (6, vec!["5".to_owned()])];
        assert_eq!(read(&["b"], banner).unwrap(), expected);
        assert!(read(&["5"], "a,b\n4,5\n6,7\n").is_err());
        assert_eq!(
            read(&["50"], "50,99\n4,5\n").unwrap(),
            [(2, vec!["4".to_owned()])]
        );
        assert_eq!(read(&["a"], "\n").unwrap(), []);
        assert!(
            read(&["a"], "a,a\n1,2\n")
                .unwrap_err()
                .contains("two columns")
        );
    }

    #[test]
    fn columns_without_a_name_have_a_number() {
        let expected = vec![(1, vec!["2".to_owned(), "1".to_owned()])];
        assert_eq!(read(&["#2", "#1"], "1\t2\n").unwrap(), expected);
        let mixed = read(&["b", "#1"], "a,b\n1,2\n").unwrap();
        assert_eq!(mixed, [(2, vec!["2".to_owned(), "1".to_owned()])]);
        assert!(read(&["#3"], "1,2\n").unwrap_err().contains("no column #3"));
        assert!(read(&["#0"], "1,2\n").is_err());
    }
}
