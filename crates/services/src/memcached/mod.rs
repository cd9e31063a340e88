//! The native memcached load: open loop, `get` and `set` of the text protocol.

mod answer;
mod preload;
mod request;
mod sizes;
#[cfg(test)]
mod tests;

pub use answer::MemcachedAnswer;
pub use request::{Operation, Request};

use crate::openloop::{self, Protocol, driver, metrics};
use crate::programs;
use load::pacing::Share;
use load::{
    Asks, Chosen, Driver, Job, KindDef, Launch, LoadForms, NativeError, Output, Params, Parsed,
    Phases, Window, Work, phase,
};
use model::{Invalid, KeyDef, Problem};
use request::{Keys, Requests};
use serde::{Deserialize, Serialize};
pub use sizes::Sizes;
use sizes::WrittenSizes;
use std::sync::Arc;

/// The memcached text protocol, `get` and `set`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Memcached {
    /// `HOST:PORT`; `None`: the workload's own server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Share of `get` among the requests.
    pub gets_percent: f64,
    /// Different keys, asked for with equal probability.
    pub keys: u64,
    /// Sizes of the keys.
    pub key_size: Sizes,
    /// Sizes of the values.
    pub value_size: Sizes,
    /// Store every key before the load begins.
    pub preload: bool,
}

/// Keys, values and mix are those of Facebook's pool ETC unless the file says otherwise.
impl Params for Memcached {
    fn read(keys: &mut load::Keys) -> Self {
        let mut sizes = |key| {
            keys.get(key)
                .map_or(Sizes::Etc, |WrittenSizes(sizes)| sizes)
        };
        let (key_size, value_size) = (sizes("key-size"), sizes("value-size"));
        Memcached {
            address: keys.get("address"),
            // 30 gets for a set.
            gets_percent: keys.percent("gets").unwrap_or(100.0 * 30.0 / 31.0),
            keys: keys.get("keys").unwrap_or(10_000),
            key_size,
            value_size,
            preload: keys.get("preload").unwrap_or(true),
        }
    }
}

const USUAL_PORT: u16 = 11211;
/// Bounds the memory of the generator, not of the server.
const MOST_KEYS: u64 = 100_000_000;

impl Memcached {
    fn open_loop(&self, job: &Job) -> Result<openloop::Config, String> {
        let written = self.address.as_ref();
        let written = written.map(|address| driver::before_start(address, job));
        let address = driver::address(written.as_deref(), USUAL_PORT, job)?;
        openloop::Config::for_job(job, address)
    }
}

impl Protocol for Requests {
    type Request = Request;
    type Answer = MemcachedAnswer;

    fn next_request(&mut self) -> Request {
        self.draw()
    }

    fn bytes(&mut self, request: Request) -> &[u8] {
        self.request_text(request)
    }

    fn answer(&self) -> MemcachedAnswer {
        MemcachedAnswer::new()
    }

    /// True, since only gets and sets are sent.
    fn is_idempotent(&self, _: Request) -> bool {
        true
    }
}

const KEYS: &[KeyDef] = &[
    KeyDef::new(
        "key-size",
        "`64B`, `16B-1KiB` or `etc`",
        "`etc`",
        "Sizes of keys: fixed, uniform between two, or those of Facebook's pool ETC (Atikoglu \
         et al., SIGMETRICS 2012).",
    ),
    KeyDef::new("value-size", "as `key-size`", "`etc`", "Sizes of values."),
    KeyDef::new(
        "address",
        "`HOST:PORT`",
        "the server of the workload",
        "A memcached that is there already.",
    ),
    KeyDef::new(
        "gets",
        "percent",
        "30 of 31",
        "Share of `get` among the requests; the others are `set`.",
    ),
    KeyDef::new(
        "keys",
        "number",
        "10000",
        "Different keys, all asked for with equal probability.",
    ),
    KeyDef::new(
        "preload",
        "`true` or `false`",
        "`true`",
        "Whether every key is stored before the load begins.",
    ),
];

/// The kind `memcached`.
pub static KIND: KindDef = KindDef {
    name: "memcached",
    aliases: &[],
    summary: "memcached gets and sets at an intended rate, timed from their intended \
              start (native, open loop)",
    loads: LoadForms::Rates,
    load_unit: "requests/s",
    window: Window::Phased,
    usual: driver::USUAL,
    keys: KEYS,
    work: Work::for_params::<Memcached>(),
    client: true,
    metrics: metrics::MEMCACHED,
    deciding: metrics::DECIDING,
    logs: metrics::LOGS,
    watched: &["request"],
    tasks: &[],
    programs: &[],
    handicap: false,
    turns: true,
};

impl Driver for Memcached {
    fn check(&self) -> Result<(), Invalid> {
        if !(0.0..=100.0).contains(&self.gets_percent) {
            return Err(Invalid::new("gets", "`gets` is 0% to 100%"));
        }
        if !(1..=MOST_KEYS).contains(&self.keys) {
            return Err(Invalid::new("keys", format!("`keys` is 1 to {MOST_KEYS}")));
        }
        self.key_size.check("key-size")?;
        self.value_size.check("value-size")
    }

    fn request_receiver(&self) -> Asks {
        let usual = programs::memcached::Memcached {
            threads: 1,
            args: Vec::new(),
        };
        let usual = programs::memcached::SERVER.with_params(&usual);
        driver::request_receiver(self.address.is_some(), usual)
    }

    fn chosen_programs(&self) -> Vec<Chosen> {
        let address = self.address.as_deref().unwrap_or("its own server");
        vec![Chosen::Address(address.to_owned())]
    }

    fn require(&self, job: &Job) -> Vec<Problem> {
        driver::require(job, self.open_loop(job))
    }

    fn launch(&self, job: &Job) -> Launch {
        phase::launch(job)
    }

    fn generate(&self, job: &Job, phases: &mut Phases) -> Result<Parsed, NativeError> {
        let checked = self.check().map_err(|fault| fault.what);
        let config = checked.and_then(|()| self.open_loop(job));
        let config = config.map_err(NativeError::Generator)?;
        let keys = Arc::new(Keys::new(self.keys, self.key_size, self.value_size));
        if self.preload {
            preload::preload(config.address, &keys)
                .map_err(|e| NativeError::Generator(e.to_string()))?;
        }
        let requests = |share: Share| {
            Requests::new(Arc::clone(&keys), self.gets_percent, job.seed, share.index)
        };
        openloop::generate(&config, requests, phases)
    }

    fn parse(&self, job: &Job, output: &Output) -> Result<Parsed, String> {
        phase::parse(job, output)
    }
}
