//! One guest with its agent: messages over the serial port, and the guest's death
//! told apart from the agent's.

use crate::stream::Stream;
use crate::{Session, TargetError};
use model::{Fact, Measurement, Reply, Request};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use vm::Saved;
use vm::boot::{Guest, death, gone_error};
use vm::failure::io;
use vm::forwards::Forwards;
use vm::frame::{FrameKind, Ready};
use vm::host::Watch;
use vm::kernel::Kernel;
use vm::snapshot::Snapshot;

/// A guest that takes no bytes for this long is hung.
const WRITE_LIMIT: Duration = Duration::from_secs(20);
/// A guest that is silent for this long gets an empty line. Emulated guests were seen to be silent until the
/// next request came, and to answer the one before it then, as if an interrupt had been lost.
const SILENCE: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub struct VmSession {
    guest: Guest,
    stream: Stream,
    watch: Watch,
    facts: Vec<Fact>,
    forwards: Forwards,
    /// Directory for the guest when it is saved.
    snapshots: PathBuf,
    /// The last request or empty line.
    last_sent: Instant,
    /// The machine has ended, and its agent said nothing before.
    is_dead: bool,
}

impl VmSession {
    /// `facts` are what is known of the guest for as long as it runs.
    pub fn new(
        guest: Guest,
        facts: Vec<Fact>,
        watch: Watch,
        forwards: Forwards,
        snapshots: PathBuf,
    ) -> std::io::Result<Self> {
        guest.agent.set_write_timeout(Some(WRITE_LIMIT))?;
        let stream = Stream::new(guest.agent.try_clone()?, guest.agent.try_clone()?);
        Ok(VmSession {
            guest,
            stream,
            watch,
            facts,
            forwards,
            snapshots,
            last_sent: Instant::now(),
            is_dead: false,
        })
    }

    fn gone(&self, why: String) -> TargetError {
        gone_error(why, &self.guest.machine.console).into()
    }

    /// A stream that ended says little: the machine knows more.
    fn explain(&mut self, error: TargetError) -> TargetError {
        match error {
            TargetError::Gone { .. } => self.end(),
            other => other,
        }
    }

    /// The agent's port is closed: by its own end, or by the machine's.
    fn end(&mut self) -> TargetError {
        let why = death(&self.guest.machine);
        let agent = self
            .guest
            .events
            .try_iter()
            .find(|f| f.kind == FrameKind::AgentEnded);
        self.is_dead |= agent.is_none();
        match agent {
            Some(frame) => self.gone(format!(
                "the agent in the guest ended with {}",
                frame.payload_text()
            )),
            None => self.gone(why),
        }
    }
}

/// The kernel of the image beside the one that the guest runs. The text of a version can be
/// the same for two builds; the build ID is a hash of what was linked.
pub fn kernel_facts(kernel: &Kernel, build_id: Option<String>, ready: &Ready) -> Vec<Fact> {
    let mut facts = vec![kernel_booted(kernel, ready)];
    if let (Some(wanted), Some(found)) = (build_id, &ready.build_id) {
        facts.push(Fact::new("kernel build ID", found).with_wanted(wanted));
    }
    facts
}

/// The state that a guest goes on from. It holds no other before its first trial: QEMU takes all
/// of it or none.
pub fn fact_of(saved: &Saved) -> Fact {
    Fact::new(
        "guest goes on from",
        format!("a snapshot of {} bytes", saved.bytes),
    )
}

/// The state under a name that a guest goes on from. What has this hash was proven to be there just before, with the kernel and
/// the image that it was saved with.
pub fn fact_of_named(snapshot: &Snapshot) -> Fact {
    let found = format!("the {}", snapshot.in_words());
    let parts =
        ["kernel", "image"].map(|part| snapshot.parts.get(part).cloned().unwrap_or_default());
    let [kernel, image] = parts;
    Fact::new(
        "guest goes on from",
        format!("{found}, kernel {kernel}, image {image}"),
    )
}

/// Release and version.
fn kernel_booted(kernel: &Kernel, ready: &Ready) -> Fact {
    let named = |release: &str, version: &str| format!("{release} {version}");
    let (wanted, found) = match &kernel.version {
        Some(version) => (
            named(&kernel.release, version),
            named(&ready.release, &ready.version),
        ),
        None => (kernel.release.clone(), ready.release.clone()),
    };
    Fact::new("kernel", found).with_wanted(wanted)
}

impl Session for VmSession {
    fn forward_ports(&mut self, ports: &[u16]) -> Result<Vec<u16>, TargetError> {
        let changed = self.forwards.change_ports(&self.guest.machine, ports);
        Ok(changed.map_err(io("forward ports of", Path::new("the guest")))?)
    }

    fn save_machine(self: Box<Self>) -> Result<Saved, TargetError> {
        Ok(self.guest.save(&self.snapshots)?)
    }

    fn machine_facts(&mut self) -> Vec<Fact> {
        self.facts.clone()
    }

    fn send_request(&mut self, request: &Request) -> Result<(), TargetError> {
        let sent = self.stream.send_request(request);
        self.last_sent = Instant::now();
        sent.map_err(|e| self.explain(e))
    }

    fn receive_reply(&mut self, wait: Duration) -> Result<Option<Reply>, TargetError> {
        match self.stream.receive_reply(wait) {
            // A kernel that panicked may leave QEMU running.
            Ok(None) if self.guest.machine.console.panic().is_some() => Err(self.end()),
            Ok(None) if self.last_sent.elapsed() >= SILENCE => {
                self.last_sent = Instant::now();
                let sent = self.stream.send_empty_line();
                sent.map(|()| None).map_err(|e| self.explain(e))
            }
            result => result.map_err(|e| self.explain(e)),
        }
    }

    fn read_console(&mut self) -> Option<String> {
        Some(self.guest.machine.console.take_text())
    }

    fn state_of_machine(&mut self) -> Option<String> {
        Some(self.guest.machine.state())
    }

    fn is_machine_dead(&self) -> bool {
        self.is_dead
    }

    fn host_readings(&mut self) -> Vec<Measurement> {
        self.watch.readings()
    }
}
