//! The native HTTP load: open loop, HTTP/1.1 with keep-alive.

mod answer;
mod chunked;
mod mix;
#[cfg(test)]
mod tests;
mod url;

pub use answer::{Asked, HttpAnswer};
pub use mix::{Request, SetUp};

use crate::openloop::{self, Protocol, Ramps, driver, metrics};
use crate::programs::echo::{self, Echo};
use load::{
    Asks, Chosen, Driver, Job, Keys, KindDef, Launch, LoadForms, NativeError, Output, Params,
    Parsed, Phases, Window, Work, phase,
};
use mix::{Mix, MixThread};
use model::{Invalid, KeyDef, Problem};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// HTTP/1.1 with keep-alive: the same request again and again, or several kinds.
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
    /// Kinds of request in place of the one; empty: the one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<Request>,
    /// Requests before the load, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<SetUp>,
    /// Ramps within the window; `None`: a constant rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ramps: Option<Ramps>,
}

impl Params for HttpLoad {
    fn read(keys: &mut Keys) -> Self {
        let url = keys.get("url").unwrap_or_else(|| "/".to_owned());
        let method: Option<String> = keys.get("method");
        let headers = keys.get("headers").unwrap_or_default();
        let body: Option<String> = keys.get("body");
        let requests: Vec<Request> = keys.tables("request", Request::read).unwrap_or_default();
        let setup = keys.tables("setup", SetUp::read).unwrap_or_default();
        let ramps = keys.table("phases", Ramps::read);
        let twice = [("method", method.is_some()), ("body", body.is_some())];
        let twice = twice
            .iter()
            .find(|(_, there)| *there && !requests.is_empty());
        if let Some((key, _)) = twice {
            let what = format!("the workload has both `{key}` and [[workload.request]]");
            keys.refuse(Invalid::new(*key, what).with_remedy("write it into each request"));
        }
        HttpLoad {
            url,
            method: method.unwrap_or_else(|| "GET".to_owned()),
            headers,
            body: body.unwrap_or_default(),
            requests,
            setup,
            ramps,
        }
    }
}

/// One trial of the load.
#[derive(Debug, Clone)]
struct Config {
    open_loop: openloop::Config,
    sent: Sent,
}

/// The requests that are sent.
#[derive(Debug, Clone)]
enum Sent {
    /// Head and body of the one request.
    One(String),
    Mix(Mix),
}

impl Config {
    fn of(params: &HttpLoad, job: &Job) -> Result<Self, String> {
        let url = url::parse(&driver::before_start(&params.url, job))?;
        let address = driver::address(url.authority.as_deref(), 80, job)?;
        let host = url.authority.unwrap_or_else(|| address.to_string());
        let sent = match params.is_mix() {
            true => Sent::Mix(Mix::from_params(params, &host).map_err(|fault| fault.what)?),
            false => Sent::One(request(params, &host, &url.path)?),
        };
        let ramps = params.ramps.unwrap_or_default();
        Ok(Config {
            open_loop: openloop::Config::for_job(job, address)?.with_ramps(ramps),
            sent,
        })
    }
}

impl HttpLoad {
    fn is_mix(&self) -> bool {
        !self.requests.is_empty()
    }
}

fn is_method(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// RFC 9110, section 9.2.2.
fn is_idempotent(method: &str) -> bool {
    ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"].contains(&method)
}

/// The bytes of the one request that is sent again and again.
fn request(params: &HttpLoad, host: &str, path: &str) -> Result<String, String> {
    if !is_method(&params.method) {
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
    idempotent: bool,
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

    fn is_idempotent(&self, _: Asked) -> bool {
        self.idempotent
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
    KeyDef::new(
        "request",
        "tables `[[workload.request]]`",
        "",
        "Several kinds of request in place of the one. Each has a `path`; further `name`, under \
         which it is counted, `weight` (1), `method` (`GET`, with a body `POST`), `headers`, \
         `body`, `expect`, the right answer (`status`; `json`, a JSONPath, or `regex`; `is`, what \
         is found there), and `take`, values to keep of the answer by name (a JSONPath, or a \
         regular expression with a group). In path, headers and body `{NAME}` stands for a value \
         that was taken, `{NAME:other}` for another one, `{int:1..9}` and \
         `{decimal:0.01..9.99}` for a number, `{pick:FILE}` for a line of a file, and `{{NAME}}` \
         for the text `{NAME}`.",
    ),
    KeyDef::new(
        "setup",
        "tables `[[workload.setup]]`",
        "",
        "Requests that are made one after the other before the load and count nowhere: the keys \
         of a `request` but for the weight, and `count` (1).",
    ),
    Ramps::KEY,
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
    work: Work::for_params::<HttpLoad>(),
    client: true,
    metrics: metrics::HTTP,
    deciding: metrics::DECIDING,
    logs: metrics::LOGS,
    watched: &["request"],
    tasks: &[],
    programs: &[],
    handicap: false,
    turns: true,
};

impl Driver for HttpLoad {
    fn request_receiver(&self) -> Asks {
        let echo = echo::SERVER.with_params(&Echo { threads: 1 });
        driver::request_receiver(!self.url.starts_with('/'), echo)
    }

    fn check(&self) -> Result<(), Invalid> {
        if self.is_mix() {
            return Mix::from_params(self, "host").map(drop);
        }
        match self.setup.is_empty() {
            true => Ok(()),
            false => Err(Invalid::new(
                "setup",
                "there is a set-up, but no [[workload.request]] after it",
            )
            .with_remedy("write the request of the load as a [[workload.request]]")),
        }
    }

    fn chosen_programs(&self) -> Vec<Chosen> {
        if !self.is_mix() {
            return vec![Chosen::Address(format!("{} {}", self.method, self.url))];
        }
        let of_setup = self.setup.iter().map(|setup| &setup.request);
        let all = of_setup.chain(&self.requests);
        let base = self.url.trim_end_matches('/');
        let address = |r: &Request| Chosen::Address(format!("{} {base}{}", r.method, r.path));
        let files = Mix::from_params(self, "host").map(|mix| mix.files);
        let files = files.unwrap_or_default().into_iter().map(Chosen::File);
        all.map(address).chain(files).collect()
    }

    fn require(&self, job: &Job) -> Vec<Problem> {
        let config = Config::of(self, job);
        let missing = match config.as_ref().map(|config| &config.sent) {
            Ok(Sent::Mix(mix)) => mix.lines().err(),
            _ => None,
        };
        let remedy = "name a text file with a value in each line; a path counts from the directory \
                      where schedlab runs";
        let missing = missing.map(|what| job.problem(what, remedy));
        let mut problems = driver::require(job, config.map(|config| config.open_loop));
        problems.extend(missing);
        problems
    }

    fn launch(&self, job: &Job) -> Launch {
        phase::launch(job)
    }

    fn generate(&self, job: &Job, phases: &mut Phases) -> Result<Parsed, NativeError> {
        let config = Config::of(self, job).map_err(NativeError::Generator)?;
        match config.sent {
            Sent::One(request) => {
                let asked = Asked {
                    head_only: self.method == "HEAD",
                    keep_bytes: 0,
                };
                let protocol = |_| Http {
                    request: request.as_bytes().into(),
                    asked,
                    idempotent: is_idempotent(&self.method),
                };
                openloop::generate(&config.open_loop, protocol, phases)
            }
            Sent::Mix(mix) => {
                let lines = mix.lines().map_err(NativeError::Generator)?;
                let pools = mix.set_up(config.open_loop.address, &lines, job.seed);
                let pools = pools.map_err(NativeError::Generator)?;
                let (mix, lines) = (Arc::new(mix), Arc::new(lines));
                let protocol = |share| {
                    let (mix, lines) = (Arc::clone(&mix), Arc::clone(&lines));
                    MixThread::new(mix, lines, pools.clone(), job.seed, share)
                };
                openloop::generate(&config.open_loop, protocol, phases)
            }
        }
    }

    fn parse(&self, job: &Job, output: &Output) -> Result<Parsed, String> {
        phase::parse(job, output)
    }
}
