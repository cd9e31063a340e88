//! Scheduling events around the worst latency of a trial, as a Perfetto trace.
//!
//! Two rings of the kernel take turns. While the load runs it says when a latency was worse than
//! all before it ([`load::worst`]): the ring that recorded until then holds it, and the other one
//! begins. A moment later, when nothing worse has come, the first one stops and is kept as it
//! is. So nothing is read or written within the window but some words to tracefs, however long
//! the window is.

mod cause;
mod perfetto;
mod rings;

use super::def::{At, Collected, Collecting, CollectorDef, Lack, Start};
use cause::Shown;
use collect::sched_trace;
use collect::tasks::{self, Pid};
use load::Worst;
use load::worst::{SETTLED, WORSE};
use model::{Severity, TrialSpec, Warning, WorstTrace};
use perfetto::{About, Process};
use rings::Rings;
pub(crate) use rings::now_ns;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Kept before the beginning of the latency.
const BEFORE_NS: u64 = 150_000_000;
/// Kept after its end.
const AFTER_NS: u64 = 100_000_000;
/// Time that reading full rings may take.
const READ_LIMIT: Duration = Duration::from_secs(60);

pub const DEF: CollectorDef = CollectorDef {
    name: "trace",
    text: "scheduling events around the worst latency, as a Perfetto trace (tracefs; what \
           `trace = \"worst\"` turns on)",
    usual: false,
    metrics: &[],
    logs: &[],
    limit: READ_LIMIT,
    missing: |root, _| missing(root),
    start: |at| Some(Box::new(Trace::start(at))),
};

/// PROC_PID_INIT_INO of include/uapi/linux/nsfs.h.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// The lack that keeps the kernel from recording here.
fn missing(root: &Path) -> Lack {
    let lack = |what: String, remedy: &str| Some((what, remedy.to_owned()));
    if !rustix::process::geteuid().is_root() {
        let remedy = "run as root, or in a VM: --vm debian:sid";
        return lack("it needs root".to_owned(), remedy);
    }
    let namespace = std::fs::read_link(root.join("proc/self/ns/pid"));
    if namespace.is_ok_and(|name| name.as_os_str() != FIRST_PID_NAMESPACE) {
        return lack(
            "the kernel's events name threads by their numbers outside of this PID namespace"
                .to_owned(),
            "run outside of the container, or in a VM: --vm debian:sid",
        );
    }
    let why = sched_trace::find_obstacle(root)?;
    lack(
        format!("tracefs cannot be used: {why}"),
        "mount it: mount -t tracefs tracefs /sys/kernel/tracing; the kernel needs CONFIG_FTRACE; \
         or use a VM: --vm debian:sid",
    )
}

/// The log whose worst latency a trial watches; `None` where it keeps no trace.
pub fn watched_log(spec: &TrialSpec) -> Option<String> {
    let wanted = super::wanted_collectors(spec);
    if wanted.iter().all(|def| def.name != DEF.name) {
        return None;
    }
    let trace = spec.observe.trace.clone().unwrap_or_default();
    let log = load::watched_log(&spec.workload, &spec.load, &trace);
    log.ok().map(str::to_owned)
}

#[derive(Debug)]
struct Trace {
    root: PathBuf,
    /// The rings, or why there are none.
    rings: Result<Rings, String>,
    /// Names that were recorded to be removed.
    made: Vec<String>,
    /// The processes of the roles when the window closed.
    processes: BTreeMap<Pid, Process>,
    /// Why there is no trace, and what to do.
    failed: Option<(String, &'static str)>,
}

impl Trace {
    fn start(at: Start) -> Self {
        let mut made = Vec::new();
        let rings = Rings::make(at.root, at.journal, &mut made);
        Trace {
            root: at.root.to_owned(),
            rings,
            made,
            processes: BTreeMap::new(),
            failed: None,
        }
    }

    fn with_rings(&mut self, act: impl FnOnce(&mut Rings) -> std::io::Result<()>) {
        if let Ok(rings) = &mut self.rings
            && let Err(error) = act(rings)
        {
            self.rings = Err(error.to_string());
        }
    }

    fn trace(&self, worst: &Worst, about: &About) -> Result<Kept, (String, &'static str)> {
        let cannot = |why: String| (why, "see what the kernel's tracefs lacks");
        let rings = self.rings.as_ref().map_err(|why| cannot(why.clone()))?;
        let from_ns = worst.begin_ns().saturating_sub(BEFORE_NS);
        let span_ns = from_ns..=worst.end_ns.saturating_add(AFTER_NS);
        let recorded = rings.read(worst, span_ns);
        let recorded = recorded.map_err(|error| cannot(error.to_string()))?;
        if recorded.whole_from_ns > worst.begin_ns() {
            let bytes = bytesize::ByteSize(rings.bytes).display().iec();
            let why = format!("its beginning is not in the ring, which has {bytes} for each CPU");
            return Err((why, "use a lower load, which makes fewer events"));
        }
        let shown = Shown::from_events(&recorded.events, worst);
        let bytes = perfetto::file(&recorded.events, worst, about, &self.processes);
        let kept = WorstTrace {
            of: about.of.to_owned(),
            took_ns: worst.took_ns,
            end_ns: worst.end_ns.saturating_sub(worst.window_begin_ns),
            thread: worst.thread,
            thread_name: shown.thread_name,
            cpu: shown.cpu,
            waited_ns: shown.waited_ns,
            ran: shown.ran,
            events: recorded.events.len() as u64,
            lost: recorded.lost + recorded.unread,
        };
        Ok((kept, bytes))
    }
}

impl Collecting for Trace {
    /// The first ring records since before the load began: a latency that ends soon after the
    /// window opens began before that.
    fn begin_window(&mut self, _: &At) {}

    fn hear_line(&mut self, line: &str) {
        match line {
            WORSE => self.with_rings(Rings::keep_worse),
            SETTLED => self.with_rings(Rings::keep_settled),
            _ => {}
        }
    }

    fn end_window(&mut self, at: &At) {
        self.with_rings(Rings::end_window);
        for (_, leader) in at.leaders {
            for pid in tasks::process_tree(at.root, *leader) {
                self.processes.insert(pid, Process::read(at.root, pid));
            }
        }
    }

    fn collected_results(&self) -> Collected {
        let of_rings = self.rings.as_ref().err();
        let of_rings = of_rings.map(|why| (why.as_str(), "see what the kernel's tracefs lacks"));
        let failed = self
            .failed
            .as_ref()
            .map(|(why, remedy)| (why.as_str(), *remedy));
        let warning = |(why, remedy)| Warning {
            severity: Severity::Caution,
            what: format!("no trace of the worst latency: {why}"),
            remedy: format!("leave `trace` out, or {remedy}"),
        };
        Collected {
            warnings: of_rings.or(failed).map(warning).into_iter().collect(),
            ..Collected::default()
        }
    }

    fn keep_trace(&mut self, worst: Option<&Worst>, label: &str, of: &str) -> Option<Kept> {
        let worst = match worst {
            Some(worst) => worst,
            None => {
                let why = "nothing was late in the window".to_owned();
                self.failed = Some((why, "use a longer window"));
                return None;
            }
        };
        let kernel = collect::machine::kernel_release();
        let about = About { label, of, kernel };
        match self.trace(worst, &about) {
            Ok(kept) => Some(kept),
            Err(failed) => {
                self.failed = Some(failed);
                None
            }
        }
    }

    fn stop(&mut self) -> Result<(), String> {
        // Their files must be closed first.
        if let Ok(rings) = &self.rings {
            let _ = rings.stop_all();
        }
        self.rings = Err("it was taken away".to_owned());
        while let Some(name) = self.made.last() {
            sched_trace::remove_ring(&self.root, name)
                .map_err(|e| format!("remove the ring {name} of tracefs: {e}"))?;
            self.made.pop();
        }
        Ok(())
    }
}

/// A trial that nobody undoes leaves no ring.
impl Drop for Trace {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

/// A trace and its bytes.
pub type Kept = (WorstTrace, Vec<u8>);
