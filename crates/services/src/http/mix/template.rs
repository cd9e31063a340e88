//! Texts with placeholders: `{account}`, `{account:other}`, `{int:1..1000}`,
//! `{decimal:0.01..9.99}`, `{pick:FILE}`. `{{account}}` is the text `{account}`. Other braces are
//! text, for JSON has its own.

use super::pools::{MOST_POOLS, Names, Place, Pools};
use model::Invalid;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use std::io::Write as _;

const FORMS: &str = "{int:1..1000}, {decimal:0.01..99.99} or {pick:FILE}";

/// A text whose placeholders have a value in each request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Text(String),
    /// A whole number between two, both included.
    Int(i64, i64),
    /// A number between two, in units of the last of its digits behind the point.
    Decimal(u64, u64, usize),
    /// A line of a file, by its number among the files.
    Pick(usize),
    /// A value that was taken from an answer.
    Taken(Place),
    /// The same from another answer than `Taken`.
    Other(Place),
}

/// Files that texts name, in the order in which they were met.
pub type Files = Vec<String>;

/// Values that one request draws: each pool once, whatever it names how often.
#[derive(Debug)]
pub struct Draw<'a> {
    pub random: ChaCha8Rng,
    pub pools: &'a Pools,
    /// Rows of each pool that may be drawn.
    pub known: [u32; MOST_POOLS],
    pub lines: &'a [Vec<String>],
    /// A row and another one of each pool, once they are drawn.
    rows: [Option<(u32, u32)>; MOST_POOLS],
}

impl<'a> Draw<'a> {
    pub fn new(
        random: ChaCha8Rng,
        pools: &'a Pools,
        known: [u32; MOST_POOLS],
        lines: &'a [Vec<String>],
    ) -> Self {
        Draw {
            random,
            pools,
            known,
            lines,
            rows: [None; MOST_POOLS],
        }
    }

    fn value(&mut self, place: Place, other: bool) -> &'a str {
        let count = self.known[place.pool].max(1);
        let random = &mut self.random;
        let (row, another) = *self.rows[place.pool].get_or_insert_with(|| {
            let row = random.random_range(0..count);
            let step = random.random_range(1..count.max(2));
            let another = (u64::from(row) + u64::from(step)) % u64::from(count);
            (row, u32::try_from(another).unwrap_or_default())
        });
        let row = if other { another } else { row };
        self.pools.value(place, row as usize)
    }
}

impl Template {
    /// The parts of a text. `names` are those of taken values; files are added to `files`.
    pub fn parse(text: &str, names: &Names, files: &mut Files) -> Result<Self, Invalid> {
        let (mut parts, mut plain) = (Vec::new(), String::new());
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            plain.push_str(&rest[..at]);
            rest = &rest[at..];
            if let Some((inside, after)) = doubled(rest) {
                plain.extend(["{", inside, "}"]);
                rest = after;
                continue;
            }
            let inside = rest[1..].split_once('}');
            match inside.filter(|(inside, _)| is_placeholder(inside)) {
                Some((inside, after)) => {
                    if !plain.is_empty() {
                        parts.push(Part::Text(std::mem::take(&mut plain)));
                    }
                    parts.push(part(inside, names, files)?);
                    rest = after;
                }
                None => {
                    plain.push('{');
                    rest = &rest[1..];
                }
            }
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Template(parts))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Pools that it draws from, and whether it needs two rows of one.
    pub fn pools(&self) -> impl Iterator<Item = (usize, bool)> + '_ {
        self.0.iter().filter_map(|part| match part {
            Part::Taken(place) => Some((place.pool, false)),
            Part::Other(place) => Some((place.pool, true)),
            _ => None,
        })
    }

    /// Appends the text as it is drawn.
    pub fn write(&self, draw: &mut Draw, into: &mut Vec<u8>) {
        self.write_with(draw, into, |value, into| {
            into.extend_from_slice(value.as_bytes())
        });
    }

    /// The same as a part of a URL: what is drawn is encoded where it must be (RFC 3986).
    pub fn write_encoded(&self, draw: &mut Draw, into: &mut Vec<u8>) {
        self.write_with(draw, into, encode);
    }

    fn write_with(&self, draw: &mut Draw, into: &mut Vec<u8>, add: fn(&str, &mut Vec<u8>)) {
        for part in &self.0 {
            // Writing into memory does not fail.
            let _ = match part {
                Part::Text(text) => into.write_all(text.as_bytes()),
                Part::Int(low, high) => write!(into, "{}", draw.random.random_range(*low..=*high)),
                Part::Decimal(low, high, digits) => {
                    let units = draw.random.random_range(*low..=*high);
                    let one = 10_u64.pow(u32::try_from(*digits).unwrap_or_default());
                    write!(into, "{}.{:0digits$}", units / one, units % one)
                }
                Part::Pick(file) => {
                    let lines = &draw.lines[*file];
                    let line = draw.random.random_range(0..lines.len().max(1));
                    lines.get(line).into_iter().for_each(|line| add(line, into));
                    Ok(())
                }
                Part::Taken(place) | Part::Other(place) => {
                    add(draw.value(*place, matches!(part, Part::Other(_))), into);
                    Ok(())
                }
            };
        }
    }
}

/// Inside of a placeholder that is meant as text, `{{account}}`, and the text after it. No JSON has
/// such braces: an object begins with the name of a field.
fn doubled(text: &str) -> Option<(&str, &str)> {
    let (inside, after) = text.strip_prefix("{{")?.split_once("}}")?;
    let is_one = !inside.contains('}') && is_placeholder(inside);
    is_one.then_some((inside, after))
}

/// Ports and folders of services (`{bank.port}`) are filled in before a load begins.
fn is_placeholder(inside: &str) -> bool {
    let (name, detail) = inside.split_once(':').unwrap_or((inside, ""));
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(fits)
        && !detail.contains(['{', '"'])
        && name != model::stack::FOLDER
}

fn part(inside: &str, names: &Names, files: &mut Files) -> Result<Part, Invalid> {
    let (name, detail) = inside.split_once(':').unwrap_or((inside, ""));
    match name {
        "int" => int(detail).ok_or_else(|| wrong(inside, "{int:1..1000}")),
        "decimal" => decimal(detail).ok_or_else(|| wrong(inside, "{decimal:0.01..99.99}")),
        "pick" if detail.is_empty() => Err(wrong(inside, "{pick:cities.txt}")),
        "pick" => {
            let at = files.iter().position(|file| file == detail);
            Ok(Part::Pick(at.unwrap_or_else(|| {
                files.push(detail.to_owned());
                files.len() - 1
            })))
        }
        _ => match (names.place(name), detail) {
            (Some(place), "") => Ok(Part::Taken(place)),
            (Some(place), "other") => Ok(Part::Other(place)),
            (Some(_), _) => Err(wrong(inside, &format!("{{{name}:other}}"))),
            (None, _) => Err(unknown(inside, name, names)),
        },
    }
}

fn wrong(inside: &str, right: &str) -> Invalid {
    Invalid::new("", format!("`{{{inside}}}` cannot be drawn"))
        .with_remedy(format!("write {right}"))
}

fn unknown(inside: &str, name: &str, names: &Names) -> Invalid {
    let known: Vec<String> = names
        .all_names()
        .map(|name| format!("{{{name}}}"))
        .collect();
    let as_text = format!("{{{{{inside}}}}} is the text itself");
    let remedy = match model::find_nearest(
        name,
        names.all_names().chain(["int", "decimal", "pick"]),
    ) {
        Some(near) => format!("did you mean `{near}`? {as_text}"),
        None if known.is_empty() => format!(
            "take = {{ {name} = \"$.id\" }} in a [[workload.setup]] fills it; without that there \
             are {FORMS}; {as_text}"
        ),
        None => format!("there are {}, {FORMS}; {as_text}", known.join(", ")),
    };
    Invalid::new("", format!("`{{{inside}}}` stands for nothing")).with_remedy(remedy)
}

fn int(detail: &str) -> Option<Part> {
    let (low, high) = detail.split_once("..")?;
    let (low, high) = (low.parse().ok()?, high.parse().ok()?);
    (low <= high).then_some(Part::Int(low, high))
}

/// The bound with more digits behind the point says how many all have.
fn decimal(detail: &str) -> Option<Part> {
    let (low, high) = detail.split_once("..")?;
    let behind = |text: &str| text.split_once('.').map_or(0, |(_, digits)| digits.len());
    let digits = behind(low).max(behind(high)).max(1);
    let (low, high) = (units(low, digits)?, units(high, digits)?);
    (low <= high && digits <= 9).then_some(Part::Decimal(low, high, digits))
}

/// A number such as `12.5` in units of its last digit.
fn units(text: &str, digits: usize) -> Option<u64> {
    let (whole, behind) = text.split_once('.').unwrap_or((text, ""));
    let all = format!("{whole}{behind:0<digits$}");
    all.bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| all.parse().ok())?
}

fn encode(value: &str, into: &mut Vec<u8>) {
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            into.push(byte);
        } else {
            let _ = write!(into, "%{byte:02X}");
        }
    }
}
