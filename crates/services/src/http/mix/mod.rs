//! Several kinds of request, mixed by their weights.
//!
//! Each thread deals its requests out so that after any number of them each kind has its share,
//! give or take one or two; the seed says which comes first. What a request contains is drawn
//! from the seed too, in the order in which requests are due, so that every arm of a block is
//! asked the same.

mod expect;
mod params;
mod pools;
mod setup;
mod template;
#[cfg(test)]
mod tests;

pub use params::{Request, SetUp};

use super::{Asked, HttpAnswer, HttpLoad, check_header, is_idempotent, is_method, url};
use crate::openloop::{Done, Protocol, Wrong};
use expect::Check;
use load::pacing::Share;
use model::Invalid;
use pools::{MOST_POOLS, Names, Pools};
use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use template::{Draw, Files, Template};

/// Streams of the seed; those below are of the intended starts.
const SET_UP_STREAM: u64 = 1 << 40;
const THREAD_STREAM: u64 = 1 << 41;
/// Room for a request that is put together; longer ones take more once.
const USUAL_BYTES: usize = 4096;

/// One kind of request, ready to be drawn.
#[derive(Debug, Clone)]
struct Prepared {
    name: String,
    /// In thousandths.
    weight: i64,
    /// `GET `, before the path.
    begin: String,
    path: Template,
    /// From the end of the path to the last header that the file names.
    headers: Template,
    body: Template,
    asked: Asked,
    idempotent: bool,
    check: Check,
}

/// All requests of a workload, as they are sent to one host.
#[derive(Debug, Clone)]
pub struct Mix {
    requests: Vec<Prepared>,
    setup: Vec<(u32, Prepared)>,
    names: Names,
    /// Files that values are picked from.
    pub files: Files,
}

impl Mix {
    /// The requests of the parameters, or the fault by its key.
    pub fn from_params(params: &HttpLoad, host: &str) -> Result<Self, Invalid> {
        check_url(params)?;
        let key = |index: usize| match index.checked_sub(params.setup.len()) {
            None => format!("setup.{index}"),
            Some(index) => format!("request.{index}"),
        };
        let of_setup = params.setup.iter().map(|setup| &setup.request);
        let all = || of_setup.clone().chain(&params.requests);
        let within = |(index, fault): (usize, Invalid)| match fault.key.is_empty() {
            true => Invalid {
                key: key(index),
                ..fault
            },
            false => fault.in_table(&key(index)),
        };
        let names = Names::from_requests(all()).map_err(within)?;
        let mut files = Files::new();
        let mut prepared = Vec::new();
        for (index, request) in all().enumerate() {
            let request = prepare(params, request, host, &names, &mut files);
            prepared.push(request.map_err(|fault| within((index, fault)))?);
        }
        let requests = prepared.split_off(params.setup.len());
        let counts = params.setup.iter().map(|setup| setup.count);
        let mix = Mix {
            requests,
            setup: counts.zip(prepared).collect(),
            names,
            files,
        };
        mix.check_pools().map_err(within)?;
        Ok(mix)
    }

    /// A value that is drawn has been taken before: by a set-up, which comes before all load.
    fn check_pools(&self) -> Result<(), (usize, Invalid)> {
        let mut rows = [0_u64; MOST_POOLS];
        let setup = self.setup.iter().map(|(count, request)| (*count, request));
        for (index, (count, request)) in setup
            .chain(self.requests.iter().map(|request| (0, request)))
            .enumerate()
        {
            let texts = [&request.path, &request.headers, &request.body];
            let mut drawn = texts.into_iter().flat_map(Template::pools);
            if let Some((pool, _)) = drawn.find(|(pool, two)| rows[*pool] < 1 + u64::from(*two)) {
                let name = self.names.first_of(pool);
                let what = format!(
                    "`{}` draws from the values of `{name}`, and the set-up before it takes {}",
                    request.name, rows[pool]
                );
                let remedy = format!(
                    "a [[workload.setup]] with count = 100 and take = {{ {name} = … }} fills them"
                );
                return Err((index, Invalid::new("", what).with_remedy(remedy)));
            }
            if let Some(pool) = request.check.pool() {
                rows[pool] += u64::from(count);
            }
        }
        Ok(())
    }

    /// Lines of the files that values are picked from.
    pub fn lines(&self) -> Result<Vec<Vec<String>>, String> {
        self.files.iter().map(|file| lines_of(file)).collect()
    }

    /// Makes the requests of the set-up. The pools that they fill.
    pub fn set_up(
        &self,
        address: SocketAddr,
        lines: &[Vec<String>],
        seed: u64,
    ) -> Result<Pools, String> {
        let random = stream(seed, SET_UP_STREAM);
        setup::run(self, address, lines, random)
    }
}

/// The paths are those of the requests.
fn check_url(params: &HttpLoad) -> Result<(), Invalid> {
    let url = url::parse(&params.url).map_err(|what| Invalid::new("url", what))?;
    if url.path == "/" {
        return Ok(());
    }
    let what = format!(
        "the URL `{}` has a path, and each request has one",
        params.url
    );
    Err(Invalid::new("url", what).with_remedy("url = \"http://HOST:PORT\", or leave it out"))
}

fn stream(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(stream);
    random
}

/// The most that is read of a file with values.
const MOST_VALUES_BYTES: u64 = 64 << 20;

fn lines_of(file: &str) -> Result<Vec<String>, String> {
    let failed = |why: String| format!("read the values of {{pick:{file}}}: {why}");
    let text =
        doors::read::file_text(file, MOST_VALUES_BYTES).map_err(|e| failed(e.to_string()))?;
    let lines: Vec<String> = text
        .lines()
        .filter(|l| !l.is_empty())
        .map(str::to_owned)
        .collect();
    match lines.is_empty() {
        true => Err(failed("it has no line".to_owned())),
        false => Ok(lines),
    }
}

fn prepare(
    params: &HttpLoad,
    request: &Request,
    host: &str,
    names: &Names,
    files: &mut Files,
) -> Result<Prepared, Invalid> {
    let weight = weight_of(request)?;
    if !is_method(&request.method) {
        let what = format!("`{}` is not a method", request.method);
        return Err(Invalid::new("method", what).with_remedy("method = \"GET\""));
    }
    let of = |key: &str| {
        let key = key.to_owned();
        move |fault: Invalid| Invalid { key, ..fault }
    };
    if !request.path.starts_with('/') {
        let what = format!("`{}` is no path", request.path);
        return Err(Invalid::new("path", what).with_remedy("begin it with a slash"));
    }
    let path = url::parse(&request.path).map_err(|what| Invalid::new("path", what))?;
    let mut headers = " HTTP/1.1\r\n".to_owned();
    let mut all = params.headers.clone();
    all.extend(request.headers.clone());
    if !all.keys().any(|name| name.eq_ignore_ascii_case("host")) {
        headers += &format!("Host: {host}\r\n");
    }
    for (name, value) in &all {
        check_header(name, value).map_err(|what| Invalid::new("headers", what))?;
        headers += &format!("{name}: {value}\r\n");
    }
    let check = Check::from_request(request, names)?;
    Ok(Prepared {
        name: request.name.clone(),
        weight,
        begin: format!("{} ", request.method),
        path: Template::parse(&path.path, names, files).map_err(of("path"))?,
        headers: Template::parse(&headers, names, files).map_err(of("headers"))?,
        body: Template::parse(&request.body, names, files).map_err(of("body"))?,
        asked: Asked {
            head_only: request.method == "HEAD",
            keep_bytes: check.keep_bytes(),
        },
        idempotent: is_idempotent(&request.method),
        check,
    })
}

/// The weight in thousandths; one below them would never have its turn.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the weight is at most a million"
)]
fn weight_of(request: &Request) -> Result<i64, Invalid> {
    let weight = request.weight;
    if (0.001..=1e6).contains(&weight) {
        return Ok((weight * 1000.0).round() as i64);
    }
    let what = format!("`{}` cannot have the weight {weight}", request.name);
    Err(Invalid::new("weight", what).with_remedy("a number from 0.001 to 1000000: weight = 30"))
}

impl Prepared {
    /// The bytes of one request, in `into`.
    fn write(&self, draw: &mut Draw, body: &mut Vec<u8>, into: &mut Vec<u8>) {
        into.clear();
        body.clear();
        into.extend_from_slice(self.begin.as_bytes());
        self.path.write_encoded(draw, into);
        self.headers.write(draw, into);
        self.body.write(draw, body);
        if !self.body.is_empty() {
            // Writing into memory does not fail.
            let _ = write!(into, "Content-Length: {}\r\n", body.len());
        }
        into.extend_from_slice(b"\r\n");
        into.extend_from_slice(body);
    }
}

/// Deals kinds out by their weights: always the one that is most behind its share.
#[derive(Debug)]
struct Dealer {
    weights: Vec<i64>,
    total: i64,
    behind: Vec<i64>,
}

impl Dealer {
    fn new(weights: Vec<i64>, random: &mut ChaCha8Rng) -> Self {
        let total = weights.iter().sum::<i64>().max(1);
        let behind = weights.iter().map(|_| random.random_range(0..total));
        Dealer {
            total,
            behind: behind.collect(),
            weights,
        }
    }

    fn next(&mut self) -> usize {
        let mut most = 0;
        for (kind, weight) in self.weights.iter().enumerate() {
            self.behind[kind] += weight;
            if self.behind[kind] > self.behind[most] {
                most = kind;
            }
        }
        self.behind[most] -= self.total;
        most
    }
}

/// One request: its kind, and what it draws from.
#[derive(Debug, Clone, Copy)]
pub struct Drawn {
    kind: usize,
    asked: Asked,
    seed: u64,
    /// Rows of the pools when it was drawn.
    known: [u32; MOST_POOLS],
}

impl From<Drawn> for Asked {
    fn from(drawn: Drawn) -> Self {
        drawn.asked
    }
}

/// The requests of one thread.
#[derive(Debug)]
pub struct MixThread {
    mix: Arc<Mix>,
    lines: Arc<Vec<Vec<String>>>,
    pools: Pools,
    random: ChaCha8Rng,
    dealer: Dealer,
    body: Vec<u8>,
    bytes: Vec<u8>,
}

impl MixThread {
    pub fn new(
        mix: Arc<Mix>,
        lines: Arc<Vec<Vec<String>>>,
        pools: Pools,
        seed: u64,
        share: Share,
    ) -> Self {
        let mut random = stream(seed, THREAD_STREAM + u64::from(share.index));
        let weights = mix.requests.iter().map(|request| request.weight);
        let dealer = Dealer::new(weights.collect(), &mut random);
        MixThread {
            dealer,
            mix,
            lines,
            pools,
            random,
            body: Vec::with_capacity(USUAL_BYTES),
            bytes: Vec::with_capacity(USUAL_BYTES),
        }
    }
}

impl Protocol for MixThread {
    type Request = Drawn;
    type Answer = HttpAnswer;

    fn next_request(&mut self) -> Drawn {
        let kind = self.dealer.next();
        Drawn {
            kind,
            asked: self.mix.requests[kind].asked,
            seed: self.random.next_u64(),
            known: self.pools.lengths(),
        }
    }

    fn bytes(&mut self, drawn: Drawn) -> &[u8] {
        let random = ChaCha8Rng::seed_from_u64(drawn.seed);
        let mut draw = Draw::new(random, &self.pools, drawn.known, &self.lines);
        let request = &self.mix.requests[drawn.kind];
        request.write(&mut draw, &mut self.body, &mut self.bytes);
        &self.bytes
    }

    fn answer(&self) -> HttpAnswer {
        HttpAnswer::new()
    }

    /// RFC 9110, section 9.2.2.
    fn is_idempotent(&self, drawn: Drawn) -> bool {
        self.mix.requests[drawn.kind].idempotent
    }

    fn names(&self) -> Vec<String> {
        let requests = self.mix.requests.iter();
        requests.map(|request| request.name.clone()).collect()
    }

    fn kind(&self, drawn: Drawn) -> usize {
        drawn.kind
    }

    fn judge(&mut self, drawn: Drawn, answer: &HttpAnswer, _: Done) -> Result<(), Wrong> {
        let check = &self.mix.requests[drawn.kind].check;
        if let Some((pool, row)) = check.judge(answer.status(), answer.body())? {
            self.pools.add_row(pool, row);
        }
        Ok(())
    }
}
