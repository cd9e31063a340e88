//! The file that ui.perfetto.dev opens: a sequence of packets as protocol buffers
//! (protos/perfetto/trace/trace_packet.proto and the files that it imports; numbers of fields
//! are for ever). Only what is written here is described.

use collect::sched_trace::{Event, Happened, Task};
use collect::tasks::{self, Pid};
use load::Worst;
use prost::Message;
use std::collections::BTreeMap;
use std::path::Path;

/// A process of the trial.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Process {
    command: Vec<String>,
    threads: Vec<Pid>,
}

impl Process {
    /// Its command line and threads; empty where it is gone.
    pub fn read(root: &Path, pid: Pid) -> Self {
        let path = root.join(format!("proc/{pid}/cmdline"));
        let bytes = doors::read::kernel_bytes(path).unwrap_or_default();
        let words = bytes
            .split(|byte| *byte == 0)
            .filter(|word| !word.is_empty());
        Process {
            command: words
                .map(|word| String::from_utf8_lossy(word).into_owned())
                .collect(),
            threads: tasks::list_threads(root, pid),
        }
    }
}

/// The subject of a trace, in words.
#[derive(Debug)]
pub struct About<'a> {
    /// Cell, block and arm.
    pub label: &'a str,
    /// Kind of latency.
    pub of: &'a str,
    /// `uname -r`, which says what the states of threads mean.
    pub kernel: String,
}

/// All packets are of one sequence.
const SEQUENCE: u32 = 1;
/// SEQ_INCREMENTAL_STATE_CLEARED: nothing before it is needed.
const CLEARED: u32 = 1;
/// Tracks of the marks.
const WINDOW_TRACK: u64 = 1;
const WORST_TRACK: u64 = 2;

/// The bytes of the file.
pub fn file(
    events: &[Event],
    worst: &Worst,
    about: &About,
    processes: &BTreeMap<Pid, Process>,
) -> Vec<u8> {
    let mut packets = vec![
        Packet {
            sequence_flags: Some(CLEARED),
            system_info: Some(system(&about.kernel)),
            ..Packet::default()
        },
        Packet {
            process_tree: Some(tree(processes)),
            ..Packet::default()
        },
    ];
    packets.extend(marks(worst, about));
    let mut cpus: BTreeMap<u32, Vec<FtraceEvent>> = BTreeMap::new();
    for event in events {
        cpus.entry(event.cpu).or_default().push(event.into());
    }
    packets.extend(cpus.into_iter().map(|(cpu, events)| Packet {
        ftrace_events: Some(Bundle {
            cpu: Some(cpu),
            event: events,
        }),
        ..Packet::default()
    }));
    for packet in &mut packets {
        packet.trusted_packet_sequence_id = Some(SEQUENCE);
    }
    Trace { packet: packets }.encode_to_vec()
}

fn system(kernel: &str) -> SystemInfo {
    SystemInfo {
        utsname: Some(Utsname {
            sysname: Some("Linux".to_owned()),
            release: Some(kernel.to_owned()),
        }),
    }
}

fn tree(processes: &BTreeMap<Pid, Process>) -> ProcessTree {
    let threads = processes.iter().flat_map(|(pid, process)| {
        process.threads.iter().map(|tid| TreeThread {
            tid: Some(*tid),
            tgid: Some(*pid),
        })
    });
    ProcessTree {
        processes: processes
            .iter()
            .map(|(pid, process)| TreeProcess {
                pid: Some(*pid),
                cmdline: process.command.clone(),
            })
            .collect(),
        threads: threads.collect(),
    }
}

/// The window and the latency as slices, and the moment at which it was over.
fn marks(worst: &Worst, about: &About) -> Vec<Packet> {
    let track = |uuid, name: String| Packet {
        track_descriptor: Some(Track {
            uuid: Some(uuid),
            name: Some(name),
        }),
        ..Packet::default()
    };
    let took = model::format_duration_ns(worst.took_ns);
    let name = format!("worst {}: {took} (thread {})", about.of, worst.thread);
    let begin_ns = worst.begin_ns();
    vec![
        track(WINDOW_TRACK, format!("schedlab: {}", about.label)),
        track(WORST_TRACK, format!("schedlab: worst {}", about.of)),
        mark(
            worst.window_begin_ns,
            WINDOW_TRACK,
            BEGIN,
            "window".to_owned(),
        ),
        mark(begin_ns, WORST_TRACK, BEGIN, name),
        mark(worst.end_ns, WORST_TRACK, END, String::new()),
        mark(
            worst.end_ns,
            WORST_TRACK,
            INSTANT,
            format!("end of the worst {}", about.of),
        ),
        mark(worst.window_end_ns, WINDOW_TRACK, END, String::new()),
    ]
}

/// TrackEvent.Type.
const BEGIN: i32 = 1;
const END: i32 = 2;
const INSTANT: i32 = 3;

fn mark(at_ns: u64, track: u64, kind: i32, name: String) -> Packet {
    Packet {
        timestamp: Some(at_ns),
        track_event: Some(TrackEvent {
            kind: Some(kind),
            track_uuid: Some(track),
            categories: vec!["schedlab".to_owned()],
            name: (!name.is_empty()).then_some(name),
        }),
        ..Packet::default()
    }
}

impl From<&Event> for FtraceEvent {
    fn from(event: &Event) -> Self {
        let mut into = FtraceEvent {
            timestamp: Some(event.at_ns),
            pid: u32::try_from(event.by).ok(),
            ..FtraceEvent::default()
        };
        match &event.happened {
            Happened::Switch { prev, state, next } => {
                into.sched_switch = Some(Switch {
                    prev_comm: Some(prev.comm.clone()),
                    prev_pid: Some(prev.pid),
                    prev_prio: Some(prev.prio),
                    prev_state: Some(state_bits(state)),
                    next_comm: Some(next.comm.clone()),
                    next_pid: Some(next.pid),
                    next_prio: Some(next.prio),
                });
            }
            Happened::Waking(task, cpu) => into.sched_waking = Some(Wakeup::new(task, *cpu)),
            Happened::Wakeup(task, cpu) => into.sched_wakeup = Some(Wakeup::new(task, *cpu)),
            Happened::WakeupNew(task, cpu) => {
                into.sched_wakeup_new = Some(Wakeup::new(task, *cpu));
            }
            Happened::Migrate(task, from, to) => {
                into.sched_migrate_task = Some(Migrate {
                    comm: Some(task.comm.clone()),
                    pid: Some(task.pid),
                    prio: Some(task.prio),
                    orig_cpu: i32::try_from(*from).ok(),
                    dest_cpu: i32::try_from(*to).ok(),
                });
            }
            Happened::Fork { parent, child } => {
                into.sched_process_fork = Some(Fork {
                    parent_comm: Some(parent.0.clone()),
                    parent_pid: Some(parent.1),
                    child_comm: Some(child.0.clone()),
                    child_pid: Some(child.1),
                });
            }
            Happened::Exec {
                filename,
                pid,
                old_pid,
            } => {
                into.sched_process_exec = Some(Exec {
                    filename: Some(filename.clone()),
                    pid: Some(*pid),
                    old_pid: Some(*old_pid),
                });
            }
            Happened::Exit(task) => {
                into.sched_process_exit = Some(Exit {
                    comm: Some(task.comm.clone()),
                    pid: Some(task.pid),
                    prio: Some(task.prio),
                });
            }
        }
        into
    }
}

/// The letters of tracefs as the bits that they stand for (include/trace/events/sched.h).
fn state_bits(letters: &str) -> i64 {
    let bit = |letter| match letter {
        'S' => 0x01,
        'D' => 0x02,
        'T' => 0x04,
        't' => 0x08,
        'X' => 0x10,
        'Z' => 0x20,
        'P' => 0x40,
        'I' => 0x80,
        '+' => 0x100,
        _ => 0,
    };
    letters.chars().map(bit).fold(0, |all, bit| all | bit)
}

#[derive(Clone, PartialEq, Message)]
struct Trace {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<Packet>,
}

#[derive(Clone, PartialEq, Message)]
struct Packet {
    #[prost(message, optional, tag = "1")]
    ftrace_events: Option<Bundle>,
    #[prost(message, optional, tag = "2")]
    process_tree: Option<ProcessTree>,
    #[prost(uint64, optional, tag = "8")]
    timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    track_event: Option<TrackEvent>,
    #[prost(uint32, optional, tag = "13")]
    sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "45")]
    system_info: Option<SystemInfo>,
    #[prost(message, optional, tag = "60")]
    track_descriptor: Option<Track>,
}

#[derive(Clone, PartialEq, Message)]
struct Bundle {
    #[prost(uint32, optional, tag = "1")]
    cpu: Option<u32>,
    #[prost(message, repeated, tag = "2")]
    event: Vec<FtraceEvent>,
}

#[derive(Clone, PartialEq, Message)]
struct FtraceEvent {
    #[prost(uint64, optional, tag = "1")]
    timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "2")]
    pid: Option<u32>,
    #[prost(message, optional, tag = "4")]
    sched_switch: Option<Switch>,
    #[prost(message, optional, tag = "17")]
    sched_wakeup: Option<Wakeup>,
    #[prost(message, optional, tag = "20")]
    sched_waking: Option<Wakeup>,
    #[prost(message, optional, tag = "114")]
    sched_wakeup_new: Option<Wakeup>,
    #[prost(message, optional, tag = "237")]
    sched_process_exec: Option<Exec>,
    #[prost(message, optional, tag = "238")]
    sched_process_exit: Option<Exit>,
    #[prost(message, optional, tag = "239")]
    sched_process_fork: Option<Fork>,
    #[prost(message, optional, tag = "491")]
    sched_migrate_task: Option<Migrate>,
}

#[derive(Clone, PartialEq, Message)]
struct Switch {
    #[prost(string, optional, tag = "1")]
    prev_comm: Option<String>,
    #[prost(int32, optional, tag = "2")]
    prev_pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    prev_prio: Option<i32>,
    #[prost(int64, optional, tag = "4")]
    prev_state: Option<i64>,
    #[prost(string, optional, tag = "5")]
    next_comm: Option<String>,
    #[prost(int32, optional, tag = "6")]
    next_pid: Option<i32>,
    #[prost(int32, optional, tag = "7")]
    next_prio: Option<i32>,
}

/// The same fields for waking, wakeup and wakeup_new.
#[derive(Clone, PartialEq, Message)]
struct Wakeup {
    #[prost(string, optional, tag = "1")]
    comm: Option<String>,
    #[prost(int32, optional, tag = "2")]
    pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    prio: Option<i32>,
    #[prost(int32, optional, tag = "4")]
    success: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    target_cpu: Option<i32>,
}

impl Wakeup {
    fn new(task: &Task, cpu: u32) -> Self {
        Wakeup {
            comm: Some(task.comm.clone()),
            pid: Some(task.pid),
            prio: Some(task.prio),
            success: Some(1),
            target_cpu: i32::try_from(cpu).ok(),
        }
    }
}

#[derive(Clone, PartialEq, Message)]
struct Exec {
    #[prost(string, optional, tag = "1")]
    filename: Option<String>,
    #[prost(int32, optional, tag = "2")]
    pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    old_pid: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct Exit {
    #[prost(string, optional, tag = "1")]
    comm: Option<String>,
    #[prost(int32, optional, tag = "2")]
    pid: Option<i32>,
    #[prost(int32, optional, tag = "4")]
    prio: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct Fork {
    #[prost(string, optional, tag = "1")]
    parent_comm: Option<String>,
    #[prost(int32, optional, tag = "2")]
    parent_pid: Option<i32>,
    #[prost(string, optional, tag = "3")]
    child_comm: Option<String>,
    #[prost(int32, optional, tag = "4")]
    child_pid: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct Migrate {
    #[prost(string, optional, tag = "1")]
    comm: Option<String>,
    #[prost(int32, optional, tag = "2")]
    pid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    prio: Option<i32>,
    #[prost(int32, optional, tag = "4")]
    orig_cpu: Option<i32>,
    #[prost(int32, optional, tag = "5")]
    dest_cpu: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct ProcessTree {
    #[prost(message, repeated, tag = "1")]
    processes: Vec<TreeProcess>,
    #[prost(message, repeated, tag = "2")]
    threads: Vec<TreeThread>,
}

#[derive(Clone, PartialEq, Message)]
struct TreeProcess {
    #[prost(int32, optional, tag = "1")]
    pid: Option<i32>,
    #[prost(string, repeated, tag = "3")]
    cmdline: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct TreeThread {
    #[prost(int32, optional, tag = "1")]
    tid: Option<i32>,
    #[prost(int32, optional, tag = "3")]
    tgid: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct SystemInfo {
    #[prost(message, optional, tag = "1")]
    utsname: Option<Utsname>,
}

#[derive(Clone, PartialEq, Message)]
struct Utsname {
    #[prost(string, optional, tag = "1")]
    sysname: Option<String>,
    #[prost(string, optional, tag = "3")]
    release: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct Track {
    #[prost(uint64, optional, tag = "1")]
    uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackEvent {
    #[prost(int32, optional, tag = "9")]
    kind: Option<i32>,
    #[prost(uint64, optional, tag = "11")]
    track_uuid: Option<u64>,
    #[prost(string, repeated, tag = "22")]
    categories: Vec<String>,
    #[prost(string, optional, tag = "23")]
    name: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::super::cause::tests::late_wakeup;
    use super::*;

    fn read() -> Trace {
        let (events, worst) = late_wakeup();
        let about = About {
            label: "wakeup 100% b3 batch",
            of: "wakeup",
            kernel: "6.18.44".to_owned(),
        };
        let process = Process {
            command: vec!["schedlab".to_owned(), "load".to_owned()],
            threads: vec![6, 7],
        };
        let processes = BTreeMap::from([(6, process)]);
        Trace::decode(&*file(&events, &worst, &about, &processes)).unwrap()
    }

    #[test]
    fn the_events_of_each_cpu_are_read_back_in_their_order() {
        let trace = read();
        let bundles = trace.packet.iter().filter_map(|p| p.ftrace_events.as_ref());
        let bundles: Vec<(u32, usize)> = bundles
            .map(|bundle| (bundle.cpu(), bundle.event.len()))
            .collect();
        assert_eq!(bundles, [(0, 1), (1, 5)]);
        let of_cpu_1 = trace.packet.last().unwrap().ftrace_events.as_ref().unwrap();
        let times: Vec<u64> = of_cpu_1.event.iter().map(|e| e.timestamp()).collect();
        assert!(times.is_sorted(), "{times:?}");
        let preempted = of_cpu_1.event[1].sched_switch.as_ref().unwrap();
        assert_eq!(
            (preempted.prev_comm(), preempted.prev_state()),
            ("hog", 0x100)
        );
    }

    #[test]
    fn the_distance_from_waking_to_running_is_in_the_file_beside_its_mark() {
        let trace = read();
        let events: Vec<&FtraceEvent> = trace
            .packet
            .iter()
            .filter_map(|packet| packet.ftrace_events.as_ref())
            .flat_map(|bundle| &bundle.event)
            .collect();
        let at = |is: &dyn Fn(&FtraceEvent) -> bool| {
            let found = events.iter().find(|event| is(event));
            found.unwrap().timestamp()
        };
        let woken = at(&|e| e.sched_waking.as_ref().is_some_and(|w| w.pid() == 7));
        let runs = at(&|e| e.sched_switch.as_ref().is_some_and(|s| s.next_pid() == 7));
        let marks: Vec<(u64, i32, u64)> = trace
            .packet
            .iter()
            .filter_map(|packet| {
                let mark = packet.track_event.as_ref()?;
                Some((mark.track_uuid(), mark.kind(), packet.timestamp()))
            })
            .collect();
        assert_eq!(runs - woken, 3_000_000);
        assert!(marks.contains(&(WORST_TRACK, BEGIN, 995_000)), "{marks:?}");
        assert!(
            marks.contains(&(WORST_TRACK, INSTANT, 4_005_000)),
            "{marks:?}"
        );
        assert!(marks.contains(&(WINDOW_TRACK, BEGIN, 0)), "{marks:?}");
        assert!(
            marks.contains(&(WINDOW_TRACK, END, 10_000_000)),
            "{marks:?}"
        );
    }

    #[test]
    fn the_file_names_arm_kernel_and_processes() {
        let trace = read();
        let mut tracks = trace
            .packet
            .iter()
            .filter_map(|p| p.track_descriptor.as_ref());
        assert!(tracks.any(|track| track.name() == "schedlab: wakeup 100% b3 batch"));
        let system = trace.packet[0].system_info.as_ref().unwrap();
        assert_eq!(system.utsname.as_ref().unwrap().release(), "6.18.44");
        let tree = trace.packet[1].process_tree.as_ref().unwrap();
        assert_eq!(tree.processes[0].cmdline, ["schedlab", "load"]);
        assert_eq!((tree.threads[1].tid(), tree.threads[1].tgid()), (7, 6));
    }
}
