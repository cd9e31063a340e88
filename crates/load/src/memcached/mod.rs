//! The native memcached load: open loop, `get` and `set` of the text protocol.

mod answer;
mod preload;
mod request;
mod sizes;
#[cfg(test)]
mod tests;

pub use answer::MemcachedAnswer;
pub use request::{Operation, Request};

use crate::native::{Generator, NativeError, Phases};
use crate::openloop::{self, Protocol, driver, metrics};
use crate::pacing::Share;
use crate::{Driver, Job, KindDef, Launch, LoadForms, Output, Parsed, Window};
use model::{MemcachedParams, Problem, Sizes};
use request::{Keys, Requests};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::sync::Arc;

/// The job line of `schedlab load` for this generator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Config {
    pub open_loop: openloop::Config,
    pub gets_percent: f64,
    pub keys: u64,
    pub key_size: Sizes,
    pub value_size: Sizes,
    pub preload: bool,
}

const USUAL_PORT: u16 = 11211;
/// Bounds the memory of the generator, not of the server.
const MOST_KEYS: u64 = 100_000_000;

impl Config {
    pub fn of(params: &MemcachedParams, job: &Job) -> Result<Self, String> {
        if !(0.0..=100.0).contains(&params.gets_percent) {
            return Err(format!(
                "gets = {}% is outside 0% to 100%",
                params.gets_percent
            ));
        }
        if !(1..=MOST_KEYS).contains(&params.keys) {
            return Err(format!(
                "keys = {} is outside 1 to {MOST_KEYS}",
                params.keys
            ));
        }
        let address = driver::address(params.address.as_deref(), USUAL_PORT, job)?;
        Ok(Config {
            open_loop: openloop::Config::of(job, address)?,
            gets_percent: params.gets_percent,
            keys: params.keys,
            key_size: params.key_size,
            value_size: params.value_size,
            preload: params.preload,
        })
    }
}

impl Protocol for Requests {
    type Request = Request;
    type Answer = MemcachedAnswer;

    fn next_request(&mut self) -> Request {
        self.draw()
    }

    fn bytes(&mut self, request: Request) -> &[u8] {
        self.text(request)
    }

    fn answer(&self) -> MemcachedAnswer {
        MemcachedAnswer::new()
    }

    /// Only gets and sets are sent.
    fn is_idempotent(&self) -> bool {
        true
    }
}

/// Runs the load that `config` asks for, in the phases that the agent gives.
pub fn generate<W: Write>(config: &Config, phases: &mut Phases<W>) -> Result<Parsed, NativeError> {
    let keys = Arc::new(Keys::new(config.keys, config.key_size, config.value_size));
    if config.preload {
        preload::preload(config.open_loop.address, &keys)
            .map_err(|e| NativeError::Generator(e.to_string()))?;
    }
    let seed = config.open_loop.seed;
    let requests =
        |share: Share| Requests::new(Arc::clone(&keys), config.gets_percent, seed, share.index);
    openloop::generate(&config.open_loop, requests, phases)
}

/// Starts the generator as `schedlab load` and reads its result line.
#[derive(Debug, Clone)]
pub struct Memcached {
    params: MemcachedParams,
}

impl Memcached {
    pub fn new(params: MemcachedParams) -> Self {
        Memcached { params }
    }
}

/// The kind `memcached`.
pub static KIND: KindDef = KindDef {
    name: "memcached",
    aliases: &[],
    summary: "memcached gets and sets at an intended rate, timed from their intended \
              start (native, open loop)",
    loads: LoadForms::Rates,
    load_unit: "requests/s",
    window: Window::Phased,
    client: true,
    metrics: metrics::MEMCACHED,
    deciding: metrics::DECIDING,
    logs: metrics::LOGS,
    tasks: &[],
    programs: &[],
    handicap: false,
};

impl Driver for Memcached {
    fn require(&self, job: &Job) -> Vec<Problem> {
        let config = Config::of(&self.params, job);
        let open_loop = config.as_ref().map(|c| &c.open_loop).map_err(Clone::clone);
        driver::require(job, open_loop)
    }

    fn launch(&self, job: &Job) -> Launch {
        match Config::of(&self.params, job) {
            Ok(config) => driver::launch(&Generator::Memcached(config)),
            Err(why) => driver::refuse(&why),
        }
    }

    fn parse(&self, _job: &Job, output: &Output) -> Result<Parsed, String> {
        driver::parse("the memcached load", output)
    }
}
