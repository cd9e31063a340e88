//! Parameters of the requests of a mix, as the experiment file writes them.

use load::Keys;
use model::Invalid;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

const EXAMPLE: &str = "[[workload.request]] with path = \"/api/accounts/{account}\"";

/// One kind of request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Name, under which it is counted.
    pub name: String,
    /// How many of them there are beside the weights of the others.
    pub weight: f64,
    /// Method, such as `GET`.
    pub method: String,
    /// Path with its query, with placeholders.
    pub path: String,
    /// Headers beside those of the workload, with placeholders.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Text of the body, with placeholders; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
    /// The right answer.
    #[serde(default)]
    pub expect: Expect,
    /// Values that are taken from the right answer: a JSONPath or a regular expression, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub take: BTreeMap<String, String>,
}

/// A request of the set-up, made `count` times before the load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetUp {
    /// How often it is made.
    pub count: u32,
    /// The request; its weight means nothing.
    pub request: Request,
}

/// The right answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Expect {
    /// Its status; `None`: any below 400.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// JSONPath (RFC 9535) of a value that its body has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<String>,
    /// Regular expression that matches its body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
    /// The value that is found, as text; `None`: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is: Option<String>,
}

impl Request {
    /// From the keys of one `[[workload.request]]`. Faults stay in the keys.
    pub fn read(keys: &mut Keys) -> Self {
        let name: Option<String> = keys.get("name");
        let weight = keys.get("weight").unwrap_or(1.0);
        Request {
            weight,
            ..Self::read_rest(name, keys)
        }
    }

    fn read_rest(name: Option<String>, keys: &mut Keys) -> Self {
        let method: Option<String> = keys.get("method");
        let path: Option<String> = keys.get("path");
        let headers = keys.get("headers").unwrap_or_default();
        let body: String = keys.get("body").unwrap_or_default();
        let expect = keys.table("expect", Expect::read).unwrap_or_default();
        let take = keys.get("take").unwrap_or_default();
        let usual = if body.is_empty() { "GET" } else { "POST" };
        let method = method.unwrap_or_else(|| usual.to_owned());
        let path = path.unwrap_or_else(|| {
            keys.refuse(Invalid::new("", "a request needs its path").with_remedy(EXAMPLE));
            String::new()
        });
        Request {
            name: name.unwrap_or_else(|| format!("{method} {path}")),
            weight: 1.0,
            method,
            path,
            headers,
            body,
            expect,
            take,
        }
    }
}

impl SetUp {
    /// From the keys of one `[[workload.setup]]`. Faults stay in the keys.
    pub fn read(keys: &mut Keys) -> Self {
        let name = keys.get("name");
        let count = keys.get("count").unwrap_or(1);
        let request = Request::read_rest(name, keys);
        SetUp { count, request }
    }
}

impl Expect {
    fn read(keys: &mut Keys) -> Self {
        let expect = Expect {
            status: keys.get("status"),
            json: keys.get("json"),
            regex: keys.get("regex"),
            is: keys.get("is").map(|value: Value| text_of(&value)),
        };
        let places = usize::from(expect.json.is_some()) + usize::from(expect.regex.is_some());
        if places > 1 {
            let what = "the answer is looked through with `json` or with `regex`";
            keys.refuse(Invalid::new("regex", what).with_remedy("leave one of them out"));
        }
        if places == 0 && expect.is.is_some() {
            let what = "`is` says what is found, but not where";
            let remedy = "json = \"$.status\", or regex = \"status=(\\\\w+)\"";
            keys.refuse(Invalid::new("is", what).with_remedy(remedy));
        }
        expect
    }
}

/// A JSON value as it is sent and compared: a text without its quotes.
pub fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
