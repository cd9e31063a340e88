//! The BPF half: loaded, configured and attached through libbpf.

use crate::faults::{Fault, Plan};
use bpf_object::{Aligned, include_object};
use libbpf_rs::{Link, MapCore, MapFlags, Object, ObjectBuilder, OpenObject};
use std::error::Error;
use std::ffi::CStr;
use std::time::{Duration, Instant};

static OBJECT: &Aligned<[u8]> = include_object!("faulty.bpf.o");

/// `struct exit_record` of intf.h.
const KIND_LEN: usize = 4;
const REASON_LEN: usize = 128;

/// The last `enum scx_exit_kind` that is not an error: SCX_EXIT_UNREG_KERN.
const LAST_ORDERLY_KIND: i32 = 66;

/// The kernel moves every task to its own classes before it confirms.
const DETACH_LIMIT: Duration = Duration::from_secs(10);

/// Attached while this lives.
pub struct Scheduler {
    object: Object,
    link: Option<Link>,
}

/// Why the kernel ended a scheduler.
pub struct Exit {
    kind: i32,
    reason: String,
    message: String,
}

impl Scheduler {
    pub fn attach(plan: &Plan) -> Result<Self, Box<dyn Error>> {
        let mut open = ObjectBuilder::default()
            .name("scx_faulty")?
            .open_memory(&OBJECT.0)?;
        configure(&mut open, plan)?;
        let mut object = open.load()?;
        let mut ops = object
            .maps_mut()
            .find(|map| map.name() == "faulty_ops")
            .ok_or("the BPF object has no faulty_ops")?;
        let link = ops.attach_struct_ops()?;
        Ok(Scheduler {
            object,
            link: Some(link),
        })
    }

    /// Hand all tasks back to the kernel's own scheduler.
    pub fn detach(mut self) -> Result<Exit, Box<dyn Error>> {
        drop(self.link.take());
        let deadline = Instant::now() + DETACH_LIMIT;
        while Instant::now() < deadline {
            if let Some(exit) = self.exit()? {
                return Ok(exit);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err("the kernel did not confirm that the scheduler is detached".into())
    }

    /// `None` while the kernel has not ended it.
    pub fn exit(&self) -> Result<Option<Exit>, Box<dyn Error>> {
        let map = self.object.maps().find(|m| m.name() == ".data.exit");
        let map = map.ok_or("the BPF object has no exit record")?;
        let record = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY)?;
        Ok(record.and_then(|bytes| read_exit(&bytes)))
    }
}

fn configure(open: &mut OpenObject, plan: &Plan) -> Result<(), Box<dyn Error>> {
    let mut map = open
        .maps_mut()
        .find(|m| m.name() == ".rodata.config")
        .ok_or("the BPF object has no configuration")?;
    Ok(map.set_initial_value(&config(plan))?)
}

/// `struct config` of intf.h.
fn config(plan: &Plan) -> [u8; 16] {
    let fault: u32 = match plan.fault {
        Fault::Stall => 1,
        Fault::Error => 2,
        _ => 0,
    };
    let after_ns = plan.after.as_nanos() as u64;
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&fault.to_ne_bytes());
    bytes[8..].copy_from_slice(&after_ns.to_ne_bytes());
    bytes
}

fn read_exit(record: &[u8]) -> Option<Exit> {
    let (kind, texts) = record.split_first_chunk::<KIND_LEN>()?;
    let (reason, message) = texts.split_at_checked(REASON_LEN)?;
    let kind = i32::from_ne_bytes(*kind);
    (kind != 0).then(|| Exit {
        kind,
        reason: text(reason),
        message: text(message),
    })
}

fn text(bytes: &[u8]) -> String {
    CStr::from_bytes_until_nul(bytes)
        .map(|c| c.to_string_lossy().into_owned())
        .unwrap_or_default()
}

impl Exit {
    pub fn is_error(&self) -> bool {
        self.kind > LAST_ORDERLY_KIND
    }
}

/// As the scx schedulers print it.
impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EXIT: {}", self.reason)?;
        if !self.message.is_empty() {
            write!(f, " ({})", self.message)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: i32, reason: &str, message: &str) -> Vec<u8> {
        let mut bytes = kind.to_ne_bytes().to_vec();
        for (text, len) in [(reason, REASON_LEN), (message, 1024)] {
            let mut field = text.as_bytes().to_vec();
            field.resize(len, 0);
            bytes.extend(field);
        }
        bytes
    }

    #[test]
    fn a_running_scheduler_has_no_exit() {
        assert!(read_exit(&record(0, "", "")).is_none());
    }

    #[test]
    fn an_exit_is_printed_as_scx_schedulers_do() {
        let stall = read_exit(&record(
            1026,
            "runnable task stall",
            "bash[7] failed to run",
        ));
        let stall = stall.expect("the kind says that it ended");
        assert!(stall.is_error());
        let text = "EXIT: runnable task stall (bash[7] failed to run)";
        assert_eq!(stall.to_string(), text);
    }

    #[test]
    fn detaching_is_no_error() {
        let exit = read_exit(&record(64, "unregistered from user space", ""));
        let exit = exit.expect("the kind says that it ended");
        assert!(!exit.is_error());
        assert_eq!(exit.to_string(), "EXIT: unregistered from user space");
    }
}
