//! The right answer to a request: its status, a look into its body, and what is taken from it.

use super::params::{Expect, Request, text_of};
use super::pools::{Names, Row};
use crate::openloop::Wrong;
use model::Invalid;
use regex::bytes::Regex;
use serde_json::Value;
use serde_json_path::JsonPath;
use std::borrow::Cow;

/// Bytes of an answer that are looked through.
const MOST_BODY_BYTES: usize = 1 << 20;
/// Bytes of an answer that are kept to be shown, should it be wrong.
const SHOWN_BYTES: usize = 256;

/// The right answer to one kind of request.
#[derive(Debug, Clone)]
pub struct Check {
    status: Option<u16>,
    content: Option<(Find, Option<String>)>,
    take: Vec<Find>,
    pool: Option<usize>,
}

/// Place of a value in an answer.
#[derive(Debug, Clone)]
enum Find {
    Json(JsonPath),
    Regex(Regex),
}

/// The body of an answer, read as JSON where that is asked for.
struct Body<'a> {
    bytes: &'a [u8],
    json: Option<Value>,
}

impl Check {
    pub fn from_request(request: &Request, names: &Names) -> Result<Self, Invalid> {
        let Expect {
            status,
            json,
            regex,
            is,
        } = &request.expect;
        if let Some(status) = status.filter(|status| !(100..=599).contains(status)) {
            let what = format!("{status} is no HTTP status");
            return Err(Invalid::new("expect.status", what).with_remedy("status = 200"));
        }
        let json = json.as_ref().map(|path| json_path("expect.json", path));
        let regex = regex
            .as_ref()
            .map(|regex| expression("expect.regex", regex));
        let content = json.or(regex).transpose()?;
        let find = |(name, place): (&String, &String)| {
            let key = format!("take.{name}");
            match place.starts_with('$') {
                true => json_path(&key, place),
                false => match expression(&key, place)? {
                    Find::Regex(regex) if regex.captures_len() < 2 => Err(Invalid::new(
                        key,
                        format!("`{place}` has no group around the value"),
                    )
                    .with_remedy(
                        "put it in brackets: \"id=(\\\\d+)\", or write a JSONPath: \"$.id\"",
                    )),
                    find => Ok(find),
                },
            }
        };
        Ok(Check {
            status: *status,
            content: content.map(|find| (find, is.clone())),
            take: request.take.iter().map(find).collect::<Result<_, _>>()?,
            pool: names.filled_by(request),
        })
    }

    /// The pool that the answers fill.
    pub fn pool(&self) -> Option<usize> {
        self.pool
    }

    /// Bytes of an answer that must be kept.
    pub fn keep_bytes(&self) -> usize {
        match self.content.is_some() || !self.take.is_empty() {
            true => MOST_BODY_BYTES,
            false => SHOWN_BYTES,
        }
    }

    /// Judges an answer; gives what was taken from it, and the pool that it goes to.
    pub fn judge(&self, status: u16, bytes: &[u8]) -> Result<Option<(usize, Row)>, Wrong> {
        let is_right = self.status.map_or(status < 400, |right| right == status);
        if !is_right {
            return Err(Wrong::Status(status));
        }
        let body = self.body(bytes);
        if let Some((find, is)) = &self.content {
            let found = body.find(find).ok_or(Wrong::Content)?;
            if is.as_ref().is_some_and(|is| *is != found) {
                return Err(Wrong::Content);
            }
        }
        let Some(pool) = self.pool else {
            return Ok(None);
        };
        let value = |find: &Find| {
            let value = body.find(find)?;
            // A line end in a value would be a second header.
            let fits = !value.is_empty() && !value.contains(char::is_control);
            fits.then(|| value.into_owned().into_boxed_str())
        };
        let row: Option<Row> = self.take.iter().map(value).collect();
        Ok(Some((pool, row.ok_or(Wrong::Content)?)))
    }

    fn body<'a>(&self, bytes: &'a [u8]) -> Body<'a> {
        let finds = self.content.iter().map(|(find, _)| find).chain(&self.take);
        let is_json = |find: &Find| matches!(find, Find::Json(_));
        let json = finds.into_iter().any(is_json);
        Body {
            bytes,
            json: json.then(|| serde_json::from_slice(bytes).ok()).flatten(),
        }
    }

    /// In words: `status 201`.
    pub fn status_in_words(&self) -> String {
        self.status.map_or_else(
            || "a status below 400".to_owned(),
            |s| format!("status {s}"),
        )
    }
}

impl Body<'_> {
    fn find(&self, find: &Find) -> Option<Cow<'_, str>> {
        match find {
            Find::Json(path) => match path.query(self.json.as_ref()?).first()? {
                Value::String(text) => Some(Cow::Borrowed(text)),
                Value::Null => None,
                other => Some(Cow::Owned(text_of(other))),
            },
            Find::Regex(regex) => {
                let found = regex.captures(self.bytes)?;
                let found = found.get(1).or_else(|| found.get(0))?;
                Some(String::from_utf8_lossy(found.as_bytes()))
            }
        }
    }
}

fn json_path(key: &str, path: &str) -> Result<Find, Invalid> {
    let parsed = JsonPath::parse(path).map(Find::Json);
    parsed.map_err(|e| {
        let what = format!("`{path}` is no JSONPath: {e}");
        Invalid::new(key, what).with_remedy("write one such as \"$.items[0].id\" (RFC 9535)")
    })
}

fn expression(key: &str, text: &str) -> Result<Find, Invalid> {
    let parsed = Regex::new(text).map(Find::Regex);
    parsed.map_err(|e| Invalid::new(key, format!("`{text}` is no regular expression: {e}")))
}
