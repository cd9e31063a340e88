//! The native HTTP load: open loop, HTTP/1.1 with keep-alive.

mod answer;
mod chunked;
#[cfg(test)]
mod tests;
mod url;

pub use answer::{Asked, HttpAnswer};

use crate::native::{Generator, NativeError, Phases};
use crate::openloop::{self, Protocol, driver, metrics};
use crate::{Driver, Job, KindDef, Launch, LoadForms, Output, Parsed, Window};
use model::{HttpParams, Problem};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::io::Write;

/// The job line of `schedlab load` for this generator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Config {
    pub open_loop: openloop::Config,
    /// Head and body, as they are sent.
    pub request: String,
    pub head_only: bool,
}

impl Config {
    pub fn of(params: &HttpParams, job: &Job) -> Result<Self, String> {
        let url = url::parse(&params.url)?;
        let address = driver::address(url.authority.as_deref(), 80, job)?;
        let host = url.authority.unwrap_or_else(|| address.to_string());
        Ok(Config {
            open_loop: openloop::Config::of(job, address)?,
            request: request(params, &host, &url.path)?,
            head_only: params.method == "HEAD",
        })
    }
}

/// The bytes of the one request that is sent again and again.
fn request(params: &HttpParams, host: &str, path: &str) -> Result<String, String> {
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

/// Runs the load that `config` asks for, in the phases that the agent gives.
pub fn generate<W: Write>(config: &Config, phases: &mut Phases<W>) -> Result<Parsed, NativeError> {
    let protocol = |_| Http {
        request: config.request.as_bytes().into(),
        asked: Asked {
            head_only: config.head_only,
        },
    };
    openloop::generate(&config.open_loop, protocol, phases)
}

/// Starts the generator as `schedlab load` and reads its result line.
#[derive(Debug, Clone)]
pub struct HttpLoad {
    params: HttpParams,
}

impl HttpLoad {
    pub fn new(params: HttpParams) -> Self {
        HttpLoad { params }
    }
}

/// The kind `http`.
pub static KIND: KindDef = KindDef {
    name: "http",
    aliases: &[],
    summary: "HTTP/1.1 requests at an intended rate, timed from their intended start \
              (native, open loop)",
    loads: LoadForms::Rates,
    load_unit: "requests/s",
    window: Window::Phased,
    client: true,
    metrics: metrics::HTTP,
    deciding: metrics::DECIDING,
    logs: metrics::LOGS,
    tasks: &[],
    programs: &[],
    handicap: false,
};

impl Driver for HttpLoad {
    fn require(&self, job: &Job) -> Vec<Problem> {
        let config = Config::of(&self.params, job);
        let open_loop = config.as_ref().map(|c| &c.open_loop).map_err(Clone::clone);
        driver::require(job, open_loop)
    }

    fn launch(&self, job: &Job) -> Launch {
        match Config::of(&self.params, job) {
            Ok(config) => driver::launch(&Generator::Http(config)),
            Err(why) => driver::refuse(&why),
        }
    }

    fn parse(&self, _job: &Job, output: &Output) -> Result<Parsed, String> {
        driver::parse("the HTTP load", output)
    }
}
