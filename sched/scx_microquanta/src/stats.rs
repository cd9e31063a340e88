//! Messages of the stats socket of scx_microquanta, both ways: the
//! target `top` gives the statistics since the client last asked, the target
//! `params` changes period and runtime.

use crate::params::Params;
use anyhow::{Context, Result, bail};
use scx_stats::prelude::*;
use scx_stats_derive::Stats;
use scx_stats_derive::stat_doc;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// One CPU, since the client last asked.
#[stat_doc]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Stats)]
pub struct CpuMetrics {
    #[stat(desc = "CPU time of micro-quanta tasks, ns")]
    pub quanta_ns: u64,
    #[stat(desc = "CPU time of all other tasks, ns")]
    pub rest_ns: u64,
    #[stat(desc = "Time for which micro-quanta tasks waited for the next period, ns")]
    pub throttled_ns: u64,
    #[stat(desc = "Times that micro-quanta tasks had to wait for the next period")]
    pub nr_throttled: u64,
    #[stat(desc = "Wakeups of micro-quanta tasks")]
    pub nr_wakeups: u64,
    #[stat(desc = "Longest time from a wakeup of a micro-quanta task to its running, ns")]
    pub worst_wait_ns: u64,
}

#[stat_doc]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Stats)]
#[stat(top)]
pub struct Metrics {
    #[stat(desc = "Length of a period, ns")]
    pub period_ns: u64,
    #[stat(desc = "CPU time per period that micro-quanta tasks may take from others, ns")]
    pub runtime_ns: u64,
    #[stat(desc = "Micro-quanta tasks that exist")]
    pub nr_tasks: u64,
    #[stat(desc = "Per CPU")]
    pub cpus: BTreeMap<usize, CpuMetrics>,
}

/// Counters of one CPU since the scheduler was attached (`struct cpu_stats`).
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    quanta_ns: u64,
    rest_ns: u64,
    throttled_ns: u64,
    nr_throttled: u64,
    nr_wakeups: u64,
    /// Epoch and longest wait, by the epoch's parity.
    worst: [(u64, u64); 2],
}

impl Counters {
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut words = bytes.chunks_exact(8).map_while(|w| w.try_into().ok());
        let mut next = || words.next().map(u64::from_ne_bytes);
        Some(Counters {
            quanta_ns: next()?,
            rest_ns: next()?,
            throttled_ns: next()?,
            nr_throttled: next()?,
            nr_wakeups: next()?,
            worst: [(next()?, next()?), (next()?, next()?)],
        })
    }

    /// The longest wait that was recorded in this epoch.
    pub fn worst_wait_ns(&self, epoch: u64) -> u64 {
        let (of, ns) = self.worst[(epoch & 1) as usize];
        if of == epoch { ns } else { 0 }
    }
}

/// Counters as one client was last told them, and what it has not been told yet.
#[derive(Debug, Default)]
pub struct ClientView {
    seen: BTreeMap<usize, Counters>,
    worst_wait_ns: BTreeMap<usize, u64>,
}

impl ClientView {
    /// A view that begins now.
    pub fn from(counters: &BTreeMap<usize, Counters>) -> Self {
        ClientView {
            seen: counters.clone(),
            worst_wait_ns: BTreeMap::new(),
        }
    }

    /// An interval has ended, for this client or another.
    pub fn note_waits(&mut self, counters: &BTreeMap<usize, Counters>, epoch: u64) {
        for (cpu, now) in counters {
            let worst = self.worst_wait_ns.entry(*cpu).or_default();
            *worst = (*worst).max(now.worst_wait_ns(epoch));
        }
    }

    /// Counts since the last call; begins a new interval.
    pub fn take(&mut self, counters: &BTreeMap<usize, Counters>) -> BTreeMap<usize, CpuMetrics> {
        let seen = std::mem::replace(&mut self.seen, counters.clone());
        let worst = std::mem::take(&mut self.worst_wait_ns);
        let since = |cpu: &usize, now: &Counters| {
            let then = seen.get(cpu).copied().unwrap_or_default();
            CpuMetrics {
                quanta_ns: now.quanta_ns - then.quanta_ns,
                rest_ns: now.rest_ns - then.rest_ns,
                throttled_ns: now.throttled_ns - then.throttled_ns,
                nr_throttled: now.nr_throttled - then.nr_throttled,
                nr_wakeups: now.nr_wakeups - then.nr_wakeups,
                worst_wait_ns: worst.get(cpu).copied().unwrap_or(0),
            }
        };
        counters
            .iter()
            .map(|(c, now)| (*c, since(c, now)))
            .collect()
    }
}

impl Metrics {
    /// A line for the whole and one for each CPU on which something ran.
    pub fn format<W: Write>(&self, w: &mut W) -> Result<()> {
        let us = |ns: u64| ns as f64 / 1000.0;
        writeln!(
            w,
            "[scx_microquanta] {} us of every {} us, {} tasks",
            us(self.runtime_ns),
            us(self.period_ns),
            self.nr_tasks
        )?;
        for (cpu, m) in &self.cpus {
            let busy = m.quanta_ns + m.rest_ns;
            if busy == 0 {
                continue;
            }
            writeln!(
                w,
                "  cpu {cpu:>3}: quanta {:>5.1}% of busy {:>8.1} ms | throttled {:>6}x {:>8.1} ms | \
                 wakeups {:>7} worst wait {:>9.1} us",
                100.0 * m.quanta_ns as f64 / busy as f64,
                us(busy) / 1000.0,
                m.nr_throttled,
                us(m.throttled_ns) / 1000.0,
                m.nr_wakeups,
                us(m.worst_wait_ns),
            )?;
        }
        Ok(())
    }
}

/// Numbers the clients of the stats server.
pub type ClientId = u64;

#[derive(Debug)]
pub enum Request {
    /// A new client, whose first interval begins.
    Open(ClientId),
    Read(ClientId),
    Close(ClientId),
    Change {
        period: Option<Duration>,
        runtime: Option<Duration>,
    },
}

#[derive(Debug)]
pub enum Response {
    /// To `Open` and `Close`: the server passes on nothing else before it has an answer.
    Done,
    Metrics(Metrics),
    /// The parameters in force, or why they could not be changed.
    Changed(Result<Params, String>),
}

pub fn server_data() -> StatsServerData<Request, Response> {
    StatsServerData::new()
        .add_meta(Metrics::meta())
        .add_meta(CpuMetrics::meta())
        .add_ops("top", top_ops())
        .add_stats("params", Box::new(change_params))
}

/// Says that a client is gone when its reader is dropped.
struct Connection {
    client: ClientId,
    requests: crossbeam::channel::Sender<Request>,
}

impl Connection {
    fn read(&self) -> Request {
        Request::Read(self.client)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // The scheduler may be gone before its clients are.
        let _ = self.requests.send(Request::Close(self.client));
    }
}

/// Each connection is a client with intervals of its own.
fn top_ops() -> StatsOps<Request, Response> {
    static NEXT_CLIENT: AtomicU64 = AtomicU64::new(0);
    let open: Box<dyn StatsOpener<Request, Response>> = Box::new(|(requests, responses)| {
        let client = NEXT_CLIENT.fetch_add(1, Ordering::Relaxed);
        requests.send(Request::Open(client))?;
        responses.recv()?;
        let connection = Connection {
            client,
            requests: requests.clone(),
        };
        let read: Box<dyn StatsReader<Request, Response>> =
            Box::new(move |_args, (requests, responses)| {
                requests.send(connection.read())?;
                match responses.recv()? {
                    Response::Metrics(metrics) => metrics.to_json(),
                    other => bail!("unexpected answer {other:?}"),
                }
            });
        Ok(read)
    });
    StatsOps { open, close: None }
}

fn change_params(
    args: &BTreeMap<String, String>,
    (requests, responses): (
        &crossbeam::channel::Sender<Request>,
        &crossbeam::channel::Receiver<Response>,
    ),
) -> Result<serde_json::Value> {
    requests.send(Request::Change {
        period: duration(args, "period")?,
        runtime: duration(args, "runtime")?,
    })?;
    match responses.recv()? {
        Response::Changed(Ok(params)) => Ok(serde_json::json!({
            "period_ns": params.period_ns,
            "runtime_ns": params.runtime_ns,
        })),
        Response::Changed(Err(why)) => bail!(why),
        other => bail!("unexpected answer {other:?}"),
    }
}

fn duration(args: &BTreeMap<String, String>, name: &str) -> Result<Option<Duration>> {
    let parse = |text: &String| humantime::parse_duration(text).with_context(|| name.to_owned());
    args.get(name).map(parse).transpose()
}

/// Answer of the running scheduler to a change of parameters.
#[derive(Debug, Deserialize)]
struct ChangedParams {
    period_ns: u64,
    runtime_ns: u64,
}

/// Ask the running scheduler to change its parameters.
pub fn request_change(period: Option<Duration>, runtime: Option<Duration>) -> Result<Params> {
    let mut args = vec![("target".to_owned(), "params".to_owned())];
    for (name, value) in [("period", period), ("runtime", runtime)] {
        let text = value.map(|d| humantime::format_duration(d).to_string());
        args.extend(text.map(|t| (name.to_owned(), t)));
    }
    let mut client = StatsClient::new()
        .connect(Some(5_000))
        .context("no scx_microquanta is running that could be changed")?;
    let changed: ChangedParams = client.request("stats", args)?;
    Ok(Params {
        period_ns: changed.period_ns,
        runtime_ns: changed.runtime_ns,
    })
}

pub fn monitor(interval: Duration, shutdown: Arc<AtomicBool>) -> Result<()> {
    scx_utils::monitor_stats::<Metrics>(
        &[],
        interval,
        || shutdown.load(Ordering::Relaxed),
        |metrics| metrics.format(&mut std::io::stdout()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counters with these quanta_ns and this longest wait of an epoch.
    fn counters(quanta_ns: u64, epoch: u64, worst_ns: u64) -> BTreeMap<usize, Counters> {
        let mut words = [quanta_ns, 0, 0, 0, 0, 0, 0, 0, 0];
        let slot = 5 + 2 * (epoch & 1) as usize;
        words[slot] = epoch;
        words[slot + 1] = worst_ns;
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_ne_bytes()).collect();
        let counters = Counters::from_bytes(&bytes).expect("nine words");
        BTreeMap::from([(0, counters)])
    }

    #[test]
    fn a_client_sees_what_happened_since_it_last_asked() {
        let mut view = ClientView::from(&counters(100, 1, 0));
        assert_eq!(view.take(&counters(250, 1, 0))[&0].quanta_ns, 150);
        assert_eq!(view.take(&counters(251, 1, 0))[&0].quanta_ns, 1);
    }

    #[test]
    fn the_longest_wait_survives_intervals_that_end_for_other_clients() {
        let mut view = ClientView::from(&counters(0, 1, 0));
        view.note_waits(&counters(0, 1, 900), 1);
        view.note_waits(&counters(0, 2, 30), 2);
        assert_eq!(view.take(&counters(0, 2, 30))[&0].worst_wait_ns, 900);
        assert_eq!(view.take(&counters(0, 2, 30))[&0].worst_wait_ns, 0);
    }

    #[test]
    fn a_wait_of_an_older_epoch_does_not_count() {
        let counters = counters(0, 3, 500);
        assert_eq!(counters[&0].worst_wait_ns(3), 500);
        assert_eq!(counters[&0].worst_wait_ns(5), 0);
    }

    #[test]
    fn too_few_bytes_are_no_counters() {
        assert!(Counters::from_bytes(&[0; 64]).is_none());
    }

    #[test]
    fn idle_cpus_are_left_out_of_the_text() {
        let busy = CpuMetrics {
            quanta_ns: 1_000_000,
            rest_ns: 3_000_000,
            ..CpuMetrics::default()
        };
        let metrics = Metrics {
            cpus: BTreeMap::from([(0, busy), (1, CpuMetrics::default())]),
            ..Metrics::default()
        };
        let mut text = Vec::new();
        metrics.format(&mut text).expect("memory takes all");
        let text = String::from_utf8_lossy(&text);
        assert!(text.contains("quanta  25.0% of busy"), "{text}");
        assert!(!text.contains("cpu   1"), "{text}");
    }
}
