//! The threads that ask.

use super::hello::{Hello, buffer};
use super::{Protocol, Rr};
use crate::pairs;
use load::crew;
use load::figures::Figures;
use load::gate::Gate;
use load::recording::{Recorder, Recording};
use load::stalls::{REQUEST_NS, REQUEST_STALLS};
use load::turn_values::InTurns;
use load::worst::At;
use load::{Job, NativeError, Parsed, Phases, steady, sys};
use load::{latency as m, phase};
use model::Turns;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, SystemTime};

/// Name of the threads, as the agent sees it in `/proc/PID/task/TID/comm`.
pub const THREAD: &str = "rr-load";
/// Longest time without a response: a datagram was lost, or the server starves.
const LONGEST: Duration = Duration::from_secs(10);

/// Runs one thread for each pair and puts their figures together.
pub fn generate(params: &Rr, job: &Job, phases: &mut Phases) -> Result<Parsed, phase::NativeError> {
    let server = job.server.ok_or("the load was not told its server");
    let server = server.map_err(|e| NativeError::Generator(e.to_owned()))?;
    let pairs = job.load_count();
    let works = (0..pairs).map(|_| {
        let (params, job) = (params.clone(), job.clone());
        let work = move |gate: &Gate| Pair::new(&params, server, &job)?.run(gate);
        Box::new(work) as crew::Work<Recorder>
    });
    let (opened, recorders) = crew::run(THREAD, works.collect(), job, phases)?;
    figures(params, recorders, opened, job).map_err(NativeError::Generator)
}

/// One pair, whose server's thread waits for the first request.
struct Pair {
    transport: Transport,
    request: Vec<u8>,
    response: Vec<u8>,
    recorder: Recorder,
}

enum Transport {
    Tcp(TcpStream),
    Udp(UdpSocket),
}

impl Pair {
    fn new(params: &Rr, server: SocketAddr, job: &Job) -> Result<Self, String> {
        let duration_ns = job.measured_ns();
        if let Some([cpu, _]) = params.pair_cpus {
            sys::pin_to(cpu).map_err(|e| format!("run on CPU {cpu}: {e}"))?;
        }
        let longest_ns = duration_ns.saturating_mul(2).max(20_000_000_000);
        Ok(Pair {
            transport: Transport::open(params, server)
                .map_err(|e| format!("open a pair with the server at {server}: {e}"))?,
            request: buffer(params.request_bytes),
            response: buffer(params.response_bytes),
            recorder: Recorder::new(duration_ns, longest_ns)?
                .with_stalls_from(REQUEST_NS)
                .watched_as("request", At::End)
                .in_turns(job.turns.as_ref())
                .told_as(m::REQUEST, Some(m::REQUESTS_PER_SEC)),
        })
    }

    /// From the gate to the end of the window. Each response is the start of the next request,
    /// so that one reading of the clock is enough.
    fn run(mut self, gate: &Gate) -> Result<Recorder, String> {
        let Some(timing) = gate.wait() else {
            return Ok(self.recorder);
        };
        self.recorder.open(timing.window);
        let mut started_ns = sys::now_ns();
        while started_ns < timing.window.end_ns && !gate.is_stopped() {
            let asked = self.transport.ask(&self.request, &mut self.response);
            asked.map_err(|e| no_response(&e))?;
            let ended_ns = sys::now_ns();
            self.recorder.record(ended_ns, ended_ns - started_ns);
            started_ns = ended_ns;
        }
        Ok(self.recorder)
    }
}

fn no_response(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => format!(
            "no response within {} s: a datagram was lost, or the server had no CPU",
            LONGEST.as_secs()
        ),
        _ => format!("ask the server: {error}"),
    }
}

impl Transport {
    fn open(params: &Rr, server: SocketAddr) -> io::Result<Self> {
        let mut stream = TcpStream::connect(server)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LONGEST))?;
        let socket = match params.protocol {
            Protocol::Tcp => None,
            Protocol::Udp => Some(UdpSocket::bind((stream.local_addr()?.ip(), 0))?),
        };
        let own_port = match &socket {
            None => 0,
            Some(socket) => socket.local_addr()?.port(),
        };
        Hello::from_params(params, own_port).write_to(&mut stream)?;
        let mut port = [0; 2];
        stream.read_exact(&mut port)?;
        let Some(socket) = socket else {
            return Ok(Transport::Tcp(stream));
        };
        socket.connect((server.ip(), u16::from_le_bytes(port)))?;
        socket.set_read_timeout(Some(LONGEST))?;
        Ok(Transport::Udp(socket))
    }

    fn ask(&mut self, request: &[u8], response: &mut [u8]) -> io::Result<()> {
        match self {
            Transport::Tcp(stream) => {
                stream.write_all(request)?;
                stream.read_exact(response)
            }
            Transport::Udp(socket) => {
                socket.send(request)?;
                match socket.recv(response)? == response.len() {
                    true => Ok(()),
                    false => Err(io::ErrorKind::InvalidData.into()),
                }
            }
        }
    }
}

/// Figures of each turn of arms that change places.
fn in_turns(turns: &Turns, recorders: Vec<Recorder>, opened: SystemTime) -> Result<Parsed, String> {
    let mut figures = InTurns::new(turns, opened);
    figures.latency("request", m::REQUEST, Some(m::REQUESTS_PER_SEC), recorders)?;
    Ok(figures.finish())
}

fn figures(
    params: &Rr,
    recorders: Vec<Recorder>,
    opened: SystemTime,
    job: &Job,
) -> Result<Parsed, String> {
    if let Some(turns) = &job.turns {
        return in_turns(turns, recorders, opened);
    }
    let seconds = job.workload.duration_ns as f64 / 1e9;
    let rates: Vec<f64> = recorders
        .iter()
        .filter_map(|recorder| Recording::merge([recorder.clone()]))
        .map(|recording| recording.count() as f64 / seconds)
        .collect();
    let slowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let mut figures = Figures::new(opened);
    let request = figures.latency("request", m::REQUEST, recorders)?;
    if request.count() == 0 {
        return Err("no request was answered in the window; use a longer duration".to_owned());
    }
    figures.push(m::REQUESTS_PER_SEC, request.count() as f64 / seconds);
    figures.push(m::SLOWEST_PAIR, slowest);
    let (drift, warning) = steady::judge(&request);
    figures.parsed.metrics.extend(drift);
    figures.parsed.warnings.extend(warning);
    figures.stalls(&[("request", REQUEST_STALLS, &request)]);
    let mut parsed = figures.finish();
    let cpus = params.pair_cpus;
    parsed
        .files
        .push(pairs::table(m::REQUESTS_PER_SEC.name, &rates, cpus));
    parsed.warnings.extend(pairs::two_rates(&rates, cpus));
    Ok(parsed)
}
