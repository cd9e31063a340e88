//! The set-up: requests before the load, one after the other, which count nowhere.

use super::pools::Pools;
use super::template::Draw;
use super::{HttpAnswer, Mix, Prepared};
use crate::openloop::{Done, Taken, Wrong, own_limit};
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The first request of a service that has just started may take long.
const LIMIT: Duration = Duration::from_secs(60);
const SHOWN_BYTES: usize = 200;

/// Makes the requests of the set-up in their order. The pools that they fill.
pub fn run(
    mix: &Mix,
    address: SocketAddr,
    lines: &[Vec<String>],
    mut random: ChaCha8Rng,
) -> Result<Pools, String> {
    let mut pools = mix.names.empty_pools();
    let mut client = Client::new(address);
    let (mut body, mut bytes) = (Vec::new(), Vec::new());
    for (count, request) in &mix.setup {
        for number in 1..=*count {
            let failed =
                |why: String| format!("set-up, `{}` ({number} of {count}): {why}", request.name);
            let own = ChaCha8Rng::seed_from_u64(random.next_u64());
            let mut draw = Draw::new(own, &pools, pools.lengths(), lines);
            request.write(&mut draw, &mut body, &mut bytes);
            let asked = client.ask(request, &bytes);
            asked.map_err(|e| failed(in_words(address, &e)))?;
            let answer = &client.answer;
            let judged = request.check.judge(answer.status(), answer.body());
            match judged {
                Ok(Some((pool, row))) => pools.add_row(pool, row),
                Ok(None) => {}
                Err(wrong) => return Err(failed(wrong_in_words(request, answer, wrong))),
            }
        }
    }
    Ok(pools.into_shared())
}

fn in_words(address: SocketAddr, error: &io::Error) -> String {
    match error.kind() {
        // How a socket says that its time-out is over.
        ErrorKind::WouldBlock => format!("{address} did not answer for {} s", LIMIT.as_secs()),
        _ => own_limit(address, error).unwrap_or_else(|| format!("{address}: {error}")),
    }
}

fn wrong_in_words(request: &Prepared, answer: &HttpAnswer, wrong: Wrong) -> String {
    let body = answer.body();
    let shown = String::from_utf8_lossy(&body[..body.len().min(SHOWN_BYTES)]);
    match wrong {
        Wrong::Status(status) => format!(
            "status {status}, expected {}: {shown}",
            request.check.status_in_words()
        ),
        Wrong::Refused | Wrong::Content => format!("the answer is not the right one: {shown}"),
    }
}

/// One connection, which waits for each answer.
struct Client {
    address: SocketAddr,
    stream: Option<TcpStream>,
    answer: HttpAnswer,
    buffer: Vec<u8>,
}

impl Client {
    fn new(address: SocketAddr) -> Self {
        Client {
            address,
            stream: None,
            answer: HttpAnswer::new(),
            buffer: vec![0; 64 * 1024],
        }
    }

    /// Sends a request and takes its answer.
    fn ask(&mut self, request: &Prepared, bytes: &[u8]) -> io::Result<()> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => connect(self.address)?,
        };
        stream.write_all(bytes)?;
        self.answer.expect(request.asked);
        let done = self.take_answer(&mut stream)?;
        self.stream = done.keep.then_some(stream);
        Ok(())
    }

    fn take_answer(&mut self, stream: &mut TcpStream) -> io::Result<Done> {
        let garbage = |fault| io::Error::other(format!("no HTTP answer ({fault:?})"));
        loop {
            let count = stream.read(&mut self.buffer)?;
            if count == 0 {
                return self.answer.end_of_stream().map_err(garbage);
            }
            let taken = self.answer.take_bytes(&self.buffer[..count]);
            if let Taken::Done(done) = taken.map_err(garbage)? {
                return Ok(done);
            }
        }
    }
}

fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, LIMIT)?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.set_write_timeout(Some(LIMIT))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
