//! The rounds: all sides in turn, the order turned round each time.

use crate::mcperf::Mcperf;
use crate::schedlab::{Schedlab, Speaks};
use crate::server::Server;
use crate::side::{Load, Run, Side};
use crate::tables::Table;
use crate::wrk::{Wrk, Wrk2};
use crate::{Arguments, Part, floor};
use std::error::Error;

/// Latency is measured at these, CPU time at the other.
const LATENCY_RATES: [f64; 2] = [1000.0, 5000.0];
const CPU_RATE: f64 = 2000.0;
/// Share of the offered rate above which it was sustained.
const SUSTAINED: f64 = 0.99;
/// From one rate to the next when the last one was not sustained.
const STEP: f64 = 0.96;
const MOST_STEPS: usize = 10;

const UNSUSTAINED: Run = Run {
    rate_per_sec: 0.0,
    p50_us: f64::NAN,
    p99_us: f64::NAN,
    cpu_percent: f64::NAN,
};

/// The generators of one protocol.
struct Sides {
    speaks: Speaks,
    open: Vec<Box<dyn Side>>,
    /// Generators of which only the throughput counts.
    closed: Vec<Box<dyn Side>>,
}

pub fn measure(arguments: &Arguments) -> Result<Table, Box<dyn Error>> {
    let mut table = Table::default();
    let mut all = [http(arguments), memcached(arguments)];
    for round in 1..=arguments.rounds {
        eprintln!("round {round} of {}", arguments.rounds);
        for sides in &mut all {
            for part in &arguments.parts {
                measure_part(arguments, *part, sides, &mut table)?;
            }
            sides.open.reverse();
        }
    }
    Ok(table)
}

fn http(arguments: &Arguments) -> Sides {
    let mut sides = own(arguments, Speaks::Http);
    if let Some(program) = arguments.wrk2.clone() {
        sides.open.push(Box::new(Wrk2 { program }));
    }
    if let Some(program) = arguments.wrk.clone() {
        sides.closed.push(Box::new(Wrk { program }));
    }
    sides
}

fn memcached(arguments: &Arguments) -> Sides {
    let mut sides = own(arguments, Speaks::Memcached);
    if let Some(program) = arguments.mcperf.clone() {
        for blocking in [false, true] {
            let program = program.clone();
            sides.open.push(Box::new(Mcperf { program, blocking }));
        }
    }
    sides
}

fn own(arguments: &Arguments, speaks: Speaks) -> Sides {
    let program = arguments.schedlab.clone();
    Sides {
        speaks,
        open: vec![Box::new(Schedlab { program, speaks })],
        closed: Vec::new(),
    }
}

fn measure_part(
    arguments: &Arguments,
    part: Part,
    sides: &Sides,
    table: &mut Table,
) -> Result<(), Box<dyn Error>> {
    match part {
        Part::Sustained => sustained(arguments, sides, table),
        Part::Latency => latency(arguments, sides, table),
        Part::Cpu => cpu(arguments, sides, table),
    }
}

/// Against a real server.
fn sustained(
    arguments: &Arguments,
    sides: &Sides,
    table: &mut Table,
) -> Result<(), Box<dyn Error>> {
    let (cpu, realtime) = (arguments.server_cpu, arguments.realtime);
    let (server, name) = match sides.speaks {
        Speaks::Http => (Server::nginx(cpu, realtime)?, "nginx"),
        Speaks::Memcached => (Server::memcached(cpu, realtime)?, "memcached"),
    };
    let fast = load(arguments, &server, None);
    for side in sides.open.iter().chain(&sides.closed) {
        let is_closed = sides
            .closed
            .iter()
            .any(|closed| closed.name() == side.name());
        let run = if is_closed {
            Some(side.run(&fast)?)
        } else {
            highest_sustained(side.as_ref(), &fast)?
        };
        // A round without a sustained rate stays in the table, and in its place.
        let run = run.unwrap_or(UNSUSTAINED);
        let row = |what: &str| format!("{name}: {what}");
        table.add(&row("highest rate, 1/s"), side.name(), run.rate_per_sec);
        table.add(
            &row("CPU time there, us/request"),
            side.name(),
            run.cpu_us_per_request(),
        );
    }
    Ok(())
}

/// Down from the rate that comes out when far more is offered.
fn highest_sustained(side: &dyn Side, fast: &Load) -> Result<Option<Run>, Box<dyn Error>> {
    let mut rate = side.run(fast)?.rate_per_sec;
    for _ in 0..MOST_STEPS {
        let run = side.run(&Load {
            rate_per_sec: Some(rate),
            ..*fast
        })?;
        if run.rate_per_sec >= SUSTAINED * rate {
            return Ok(Some(run));
        }
        rate *= STEP;
    }
    Ok(None)
}

/// Against schedlab's own server, which adds the least.
fn latency(arguments: &Arguments, sides: &Sides, table: &mut Table) -> Result<(), Box<dyn Error>> {
    let server = echo(arguments)?;
    for rate in LATENCY_RATES {
        let load = load(arguments, &server, Some(rate));
        let floor = floor::measure(&load, sides.speaks)?;
        let speaks = sides.speaks;
        let row = |what: &str| format!("{speaks:?}, {rate}/s: {what}, us");
        table.add(&row("median beside the floor"), "floor", floor.p50_us);
        table.add(&row("p99 beside the floor"), "floor", floor.p99_us);
        for side in &sides.open {
            let run = side.run(&load)?;
            table.add(&row("median beside the floor"), side.name(), run.p50_us);
            table.add(&row("p99 beside the floor"), side.name(), run.p99_us);
            table.add(
                &row("own part of the median"),
                side.name(),
                run.p50_us - floor.p50_us,
            );
            table.add(
                &row("own part of the p99"),
                side.name(),
                run.p99_us - floor.p99_us,
            );
        }
    }
    Ok(())
}

fn cpu(arguments: &Arguments, sides: &Sides, table: &mut Table) -> Result<(), Box<dyn Error>> {
    let server = echo(arguments)?;
    let load = load(arguments, &server, Some(CPU_RATE));
    let row = format!("{:?}, {CPU_RATE}/s: CPU of the generator, %", sides.speaks);
    table.add(&row, "only sleeping", floor::sleeping_percent(&load)?);
    for side in &sides.open {
        table.add(&row, side.name(), side.run(&load)?.cpu_percent);
    }
    Ok(())
}

fn load(arguments: &Arguments, server: &Server, rate_per_sec: Option<f64>) -> Load {
    Load {
        address: server.address,
        rate_per_sec,
        connections: arguments.connections,
        window: arguments.window(),
        cpu: arguments.load_cpu,
        realtime: arguments.realtime,
    }
}

fn echo(arguments: &Arguments) -> Result<Server, Box<dyn Error>> {
    let (cpu, realtime) = (arguments.server_cpu, arguments.realtime);
    Server::echo(&arguments.schedlab, cpu, realtime)
}
