//! Does a run measure the same while it is watched? Runs of equal arms in turns, without a view and with a
//! page that clients follow: what the load did, its tail, and the CPU time of the runner, which has the page.
//!
//! ```text
//! cargo run --release -p watched -- target/schedlab [ROUNDS] [CLIENTS]
//! ```
//! A round has a run of each sort, whichever comes first. The clients are connections of this program, which
//! reads them all in one thread four times a second.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "what it measured goes to stdout"
)]

use serde_json::Value;
use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const LOOK: Duration = Duration::from_millis(250);
const METRICS: [&str; 2] = ["requests_per_sec", "wakeup_p99"];
/// Trials of two seconds in six blocks of two equal arms, which are not soon found to be the same.
const RUN: &str =
    "run -w wakeup:2 -a default -a nice=0 --duration 2s --max-blocks 6 --smallest-effect 0.01% -o";

/// Figures of one run.
struct Figures {
    levels: Vec<f64>,
    runner_percent: f64,
    verdicts: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let program = args
        .next()
        .ok_or("usage: watched SCHEDLAB [ROUNDS] [CLIENTS]")?;
    let rounds: usize = args.next().map_or(Ok(6), |n| n.parse())?;
    let clients: usize = args.next().map_or(Ok(100), |n| n.parse())?;
    let mut runs: [Vec<Figures>; 2] = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        for position in 0..2 {
            let is_watched = usize::from((round + position) % 2 == 1);
            runs[is_watched].push(measure(&program, is_watched * clients)?);
        }
    }
    let [alone, watched] = &runs;
    println!("{rounds} runs of each sort in turns, {clients} clients:");
    for (index, metric) in METRICS.iter().enumerate() {
        print_figure(
            &format!("{metric}, unwatched"),
            alone.iter().map(|f| f.levels[index]),
        );
        print_figure(
            &format!("{metric}, watched"),
            watched.iter().map(|f| f.levels[index]),
        );
        let both = alone.iter().zip(watched);
        print_figure(
            "  ratio",
            both.map(|(a, w)| w.levels[index] / a.levels[index]),
        );
    }
    print_figure(
        "runner, % of a CPU, unwatched",
        alone.iter().map(|f| f.runner_percent),
    );
    print_figure(
        "runner, % of a CPU, watched",
        watched.iter().map(|f| f.runner_percent),
    );
    let called = |of: &[Figures]| of.iter().map(|f| f.verdicts).sum::<usize>();
    println!(
        "  differences called: {} unwatched, {} watched",
        called(alone),
        called(watched)
    );
    Ok(())
}

fn print_figure(what: &str, values: impl Iterator<Item = f64>) {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    if let (Some(least), Some(most)) = (values.first(), values.last()) {
        let median = values[values.len() / 2];
        println!("  {what:<32} median {median:.3}, from {least:.3} to {most:.3}");
    }
}

fn measure(program: &str, clients: usize) -> Result<Figures, Box<dyn Error>> {
    let dir = std::env::temp_dir().join(format!("schedlab-watched-{}", std::process::id()));
    let mut command = Command::new(program);
    command.args(RUN.split(' ')).arg(&dir).stdout(Stdio::null());
    match clients {
        0 => command.stderr(Stdio::null()),
        _ => command.arg("--live=127.0.0.1:0").stderr(Stdio::piped()),
    };
    let mut runner = command.spawn()?;
    let mut streams = match clients {
        0 => Vec::new(),
        _ => connect(&mut runner, clients)?,
    };
    let (began, mut cpu_ns) = (Instant::now(), 0);
    let mut seconds = 1.0;
    let mut bytes = vec![0; 1 << 16];
    while runner.try_wait()?.is_none() {
        for stream in &mut streams {
            while stream.read(&mut bytes).is_ok_and(|read| read > 0) {}
        }
        // Nothing can be read of a process that has just ended.
        if let Ok(now) = cpu_time(&runner) {
            (cpu_ns, seconds) = (now, began.elapsed().as_secs_f64());
        }
        sleep(LOOK);
    }
    let figures = read_figures(program, &dir, cpu_ns as f64 / 1e7 / seconds);
    fs::remove_dir_all(&dir)?;
    figures
}

/// Clients of the page, whose reads do not wait.
fn connect(runner: &mut Child, clients: usize) -> Result<Vec<TcpStream>, Box<dyn Error>> {
    let errors = runner.stderr.take().ok_or("no standard error")?;
    let mut lines = BufReader::new(errors).lines().map_while(Result::ok);
    let address = lines.find_map(|line| line.strip_prefix("Live     ").map(str::to_owned));
    std::thread::spawn(move || lines.count());
    let address = address.ok_or("the run has no page")?;
    let rest = address.strip_prefix("http://").ok_or("no address")?;
    let (host, secret) = rest.split_once('/').ok_or("no path")?;
    let request = format!("GET /{secret}events HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let made = (0..clients).map(|_| {
        let mut stream = TcpStream::connect(host)?;
        stream.write_all(request.as_bytes())?;
        stream.set_nonblocking(true)?;
        Ok(stream)
    });
    made.collect()
}

/// CPU time of all threads of the runner; those of the agent are of a process of its own.
fn cpu_time(runner: &Child) -> std::io::Result<u64> {
    let mut sum = 0;
    for task in fs::read_dir(format!("/proc/{}/task", runner.id()))? {
        let text = fs::read_to_string(task?.path().join("schedstat"))?;
        let first = text.split_whitespace().next();
        sum += first.and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(sum)
}

fn read_figures(program: &str, dir: &Path, runner_percent: f64) -> Result<Figures, Box<dyn Error>> {
    let output = Command::new(program)
        .arg("report")
        .arg(dir)
        .args(["--format", "json"])
        .output()?;
    let report: Value = serde_json::from_slice(&output.stdout)?;
    let all = report["comparisons"].as_array().ok_or("no comparisons")?;
    let levels = METRICS.map(|metric| {
        let found = all.iter().find(|comparison| comparison["metric"] == metric);
        let level = found.and_then(|comparison| comparison["baseline_level"].as_f64());
        level.ok_or_else(|| format!("no level of {metric}"))
    });
    let is_called = |comparison: &&Value| {
        comparison["deciding"] == true
            && ["better", "worse"]
                .iter()
                .any(|v| comparison["verdict"] == *v)
    };
    Ok(Figures {
        levels: levels.into_iter().collect::<Result<_, _>>()?,
        runner_percent,
        verdicts: all.iter().filter(is_called).count(),
    })
}
