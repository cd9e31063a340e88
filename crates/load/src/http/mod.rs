//! The native HTTP load: open loop, HTTP/1.1 with keep-alive.

mod answer;
mod chunked;
#[cfg(test)]
mod tests;
mod url;

pub use answer::{Asked, HttpAnswer};

use crate::openloop::{self, Protocol, driver, metrics};
use crate::roles::echo::{self, Echo};
use crate::{
    Asks, Chosen, Driver, Job, Keys, KindDef, Launch, LoadForms, NativeError, Output, Params,
    Parsed, Phases, Window, Work, phase,
};
use model::{KeyDef, Problem};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// HTTP/1.1 with keep-alive: the same request again and again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HttpLoad {
    /// `http://HOST[:PORT]/PATH`, or `/PATH` at the workload's own server.
    pub url: String,
    /// Method of the request, such as `GET`.
    pub method: String,
    /// Headers beside those that follow from URL and body, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Text of the body; empty for a request without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
}

impl Params for HttpLoad {
    fn read(keys: &mut Keys) -> Self {
        HttpLoad {
            url: keys.get("url").unwrap_or_else(|| "/".to_owned()),
            method: keys.get("method").unwrap_or_else(|| "GET".to_owned()),
            headers: keys.get("headers").unwrap_or_default(),
            body: keys.get("body").unwrap_or_default(),
        }
    }
}

/// One trial of the load.
#[derive(Debug, Clone, PartialEq)]
struct Config {
    open_loop: openloop::Config,
    /// Head and body, as they are sent.
    request: String,
}

impl Config {
    fn of(params: &HttpLoad, job: &Job) -> Result<Self, String> {
        let url = url::parse(&driver::before_start(&params.url, job))?;
        let address = driver::address(url.authority.as_deref(), 80, job)?;
        let host = url.authority.unwrap_or_else(|| address.to_string());
        Ok(Config {
            open_loop: openloop::Config::of(job, address)?,
            request: request(params, &host, &url.path)?,
        })
    }
}

/// The bytes of the one request that is sent again and again.
fn request(params: &HttpLoad, host: &str, path: &str) -> Result<String, String> {
    if params.method.is_empty() || !params.method.bytes().all(|b| b.is_ascii_alphabetic()) {
        return Err(format!(
            "`{}` is not a method; write \"GET\"",
            params.method
        ));
    }
    let mut text = format!("{} {path} HTTP/1.1\r\n", params.method);
    let is_named = |name: &str| params.headers.keys().any(|k| k.eq_ignore_ascii_case(name));
    if !is_named("host") {
        let _ = write!(text, "Host: {host}\r\n");
    }
    for (name, value) in &params.headers {
        check_header(name, value)?;
        let _ = write!(text, "{name}: {value}\r\n");
    }
    if !params.body.is_empty() {
        let _ = write!(text, "Content-Length: {}\r\n", params.body.len());
    }
    Ok(text + "\r\n" + &params.body)
}

fn check_header(name: &str, value: &str) -> Result<(), String> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_name) || value.contains(['\r', '\n', '\0']) {
        return Err(format!("`{name}: {value}` is not a header"));
    }
    let ours = ["content-length", "transfer-encoding"];
    if ours.iter().any(|own| own.eq_ignore_ascii_case(name)) {
        return Err(format!(
            "the header {name} follows from the body; leave it out"
        ));
    }
    Ok(())
}

/// Sends the same request again and again.
#[derive(Debug)]
struct Http {
    request: Box<[u8]>,
    asked: Asked,
}

impl Protocol for Http {
    type Request = Asked;
    type Answer = HttpAnswer;

    fn next_request(&mut self) -> Asked {
        self.asked
    }

    fn bytes(&mut self, _: Asked) -> &[u8] {
        &self.request
    }

    fn answer(&self) -> HttpAnswer {
        HttpAnswer::new()
    }

    /// RFC 9110, section 9.2.2.
    fn is_idempotent(&self) -> bool {
        let method = self.request.split(|byte| *byte == b' ').next();
        let same = ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"];
        method.is_some_and(|method| same.iter().any(|name| name.as_bytes() == method))
    }
}

const KEYS: &[KeyDef] = &[
    KeyDef::new(
        "url",
        "`/PATH` or `http://HOST:PORT/PATH`",
        "`/`",
        "A path is asked of the server of the workload; a whole URL is asked elsewhere.",
    ),
    KeyDef::new("method", "word", "`GET`", "Method of the requests."),
    KeyDef::new(
        "headers",
        "table of texts",
        "",
        "Header lines besides those that every request has.",
    ),
    KeyDef::new("body", "text", "", "Body of every request."),
];

/// The kind `http`.
pub static KIND: KindDef = KindDef {
    name: "http",
    aliases: &[],
    summary: "HTTP/1.1 requests at an intended rate, timed from their intended start \
              (native, open loop)",
    loads: LoadForms::Rates,
    load_unit: "requests/s",
    window: Window::Phased,
    usual: driver::USUAL,
    keys: KEYS,
    work: Work::of::<HttpLoad>(),
    client: true,
    metrics: metrics::HTTP,
    deciding: metrics::DECIDING,
    logs: metrics::LOGS,
    watched: &["request"],
    tasks: &[],
    programs: &[],
    handicap: false,
};

impl Driver for HttpLoad {
    fn asks(&self) -> Asks {
        let echo = echo::SERVER.of(&Echo { threads: 1 });
        driver::asks(!self.url.starts_with('/'), echo)
    }

    fn chosen(&self) -> Vec<Chosen> {
        vec![Chosen::Address(format!("{} {}", self.method, self.url))]
    }

    fn require(&self, job: &Job) -> Vec<Problem> {
        driver::require(job, Config::of(self, job).map(|config| config.open_loop))
    }

    fn launch(&self, job: &Job) -> Launch {
        phase::launch(job)
    }

    fn generate(&self, job: &Job, phases: &mut Phases) -> Result<Parsed, NativeError> {
        let config = Config::of(self, job).map_err(NativeError::Generator)?;
        let head_only = self.method == "HEAD";
        let protocol = |_| Http {
            request: config.request.as_bytes().into(),
            asked: Asked { head_only },
        };
        openloop::generate(&config.open_loop, protocol, phases)
    }

    fn parse(&self, job: &Job, output: &Output) -> Result<Parsed, String> {
        phase::parse(job, output)
    }
}
