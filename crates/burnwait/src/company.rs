//! Workers beside another load: they burn and wait until they are killed, and keep count of what
//! they have done in a file in memory, where the agent reads it at both ends of the window.

use super::pipe::Pipe;
use super::sets::Set;
use super::worker::{self, Member, Own, Shape, Worker};
use super::{OPERATIONS_PER_KOP, Settled, Workers, burn, set_rules};
use load::gate::{Gate, Timing};
use load::recording::Window;
use load::work_counts::{NUMBER_BYTES, WORK_COUNTS};
use model::{Calibration, Invalid};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::fs::{MemfdFlags, memfd_create};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, mpsc};

/// Lengths that no worker of this kind comes to the end of.
const SHAPE_NS: u64 = 1_000_000_000;
/// No time is measured by the workers themselves.
const NEVER: Window = Window {
    begin_ns: u64::MAX - 1,
    end_ns: u64::MAX,
};

/// Workers of one antagonist, as its process is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Company {
    /// Sets of workers.
    pub sets: Vec<Set>,
    /// Number of workers of each set that does not say its own.
    pub count: u64,
    /// Unit of work; `None`: it is measured before the workers start.
    pub operations_per_kop: Option<u64>,
    /// Reads that take a millisecond, by the size of the memory in bytes; one that is not there is
    /// measured before the workers start.
    pub reads_per_ms: BTreeMap<u64, u64>,
}

/// Name under which the reads of a memory of this size that take a millisecond are kept.
fn reads_name(bytes: u64) -> String {
    format!("reads_per_ms.{bytes}")
}

/// Problem of the sets, by the key in the file.
pub fn check(sets: &[Set]) -> Result<(), Invalid> {
    if let Some(index) = sets.iter().position(|set| !set.is_judged()) {
        let what = "all workers of an antagonist are one: its sets have no `role`";
        let wrong = Invalid::new(format!("set.{index}.role"), what);
        return Err(wrong.with_remedy("leave it out"));
    }
    if sets.is_empty() {
        return Err(Invalid::new("set", "there are no sets of workers"));
    }
    set_rules::check(sets, Workers::Threads)
}

/// Unit of work, and reads of the memories of the sets, where they are not known yet: all trials of
/// a run have the same.
pub fn calibrate(sets: &[Set], known: &Calibration) -> BTreeMap<String, u64> {
    let value = |name: &str| known.values.get(name).copied();
    let unit = value(OPERATIONS_PER_KOP).unwrap_or_else(burn::operations_per_us);
    let mut found = BTreeMap::from([(OPERATIONS_PER_KOP.to_owned(), unit)]);
    for memory in sets.iter().filter_map(|set| set.memory) {
        let name = reads_name(memory.bytes);
        let reads = value(&name).unwrap_or_else(|| burn::reads_per_ms(memory.bytes));
        found.insert(name, reads);
    }
    found
}

/// Count that a worker keeps of its own work.
#[derive(Debug)]
pub struct Counter {
    file: Arc<File>,
    place: u64,
    kops: u64,
}

impl Counter {
    /// Adds a piece that has ended.
    pub fn add(&mut self, kops: u64) {
        self.kops = self.kops.wrapping_add(kops);
        // Memory that is there is written to.
        let _ = self.file.write_at(&self.kops.to_ne_bytes(), self.place);
    }
}

/// The life of `schedlab burn`: it ends only where a worker cannot start or go on.
pub fn beside_main(company: &str) -> Result<(), String> {
    let company: Company =
        serde_json::from_str(company).map_err(|e| format!("the workers cannot be read: {e}"))?;
    let name = std::ffi::CString::new(worker::THREAD).map_err(|e| e.to_string())?;
    rustix::thread::set_name(&name).map_err(|e| format!("set the name of the process: {e}"))?;
    let counts = memfd_create(WORK_COUNTS, MemfdFlags::CLOEXEC);
    let counts = counts.map_err(|e| format!("make the memory of the counts: {e}"))?;
    let works = company.works(&Arc::new(File::from(counts)))?;
    run(works)
}

/// Work of one thread until it is killed.
type Life = Box<dyn FnOnce(&Gate) -> Result<(), String> + Send>;

/// Starts all workers at the same moment. The error of the first that ends.
fn run(lives: Vec<Life>) -> Result<(), String> {
    let gate = Arc::new(Gate::default());
    let threads = u32::try_from(lives.len()).unwrap_or(u32::MAX);
    let (ended, ends) = mpsc::channel();
    for life in lives {
        let (gate, ended) = (Arc::clone(&gate), ended.clone());
        let work = move || {
            let end = life(&gate);
            if let Err(why) = &end {
                gate.fail(why.clone());
            }
            // Nobody listens where another one has ended the process.
            let _ = ended.send(end);
        };
        let thread = std::thread::Builder::new().name(worker::THREAD.to_owned());
        thread
            .spawn(work)
            .map_err(|e| format!("start a worker: {e}"))?;
    }
    drop(ended);
    gate.gather(threads)?;
    gate.open(Timing {
        start_ns: load::sys::now_ns(),
        window: NEVER,
    });
    match ends.recv() {
        Ok(Err(why)) => Err(why),
        Ok(Ok(())) | Err(_) => Err("a worker ended by itself".to_owned()),
    }
}

impl Company {
    /// Workers of the sets with what was found of this machine.
    pub fn new(sets: &[Set], count: u64, calibration: &Calibration) -> Self {
        let value = |name: &str| calibration.values.get(name).copied();
        let memories = sets.iter().filter_map(|set| set.memory);
        let reads = memories.filter_map(|memory| {
            let bytes = memory.bytes;
            Some((bytes, value(&reads_name(bytes))?))
        });
        Company {
            sets: sets.to_vec(),
            count,
            operations_per_kop: value(OPERATIONS_PER_KOP),
            reads_per_ms: reads.collect(),
        }
    }

    /// The words that the process is told.
    pub fn in_words(&self) -> String {
        // Plain values always become JSON.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// One worker of each set, over and over.
    fn members(&self) -> Vec<Member> {
        let count_of = |set: &Set| set.count.unwrap_or(self.count);
        let most = self.sets.iter().map(count_of).max().unwrap_or_default();
        let round = |round: u64| {
            let number = usize::try_from(round).unwrap_or(usize::MAX);
            let sets = self.sets.iter().enumerate();
            let left = sets.filter(move |(_, set)| round < count_of(set));
            left.map(move |(set, _)| Member { set, number })
        };
        (0..most).flat_map(round).collect()
    }

    fn works(&self, counts: &Arc<File>) -> Result<Vec<Life>, String> {
        let shape = Shape {
            duration_ns: SHAPE_NS,
            interval_ns: SHAPE_NS,
            operations_per_kop: self
                .operations_per_kop
                .unwrap_or_else(burn::operations_per_us),
        };
        let members = self.members();
        let numbers = members.len() as u64;
        counts
            .set_len(numbers * NUMBER_BYTES)
            .map_err(|e| format!("make the memory of the counts: {e}"))?;
        let order: Vec<usize> = members.iter().map(|member| member.set).collect();
        let pipes = Pipe::lay_pipes(&self.sets, &order);
        let reads: Vec<u64> = self.sets.iter().map(|set| self.reads(set)).collect();
        // All trials have the same waits and the same distances.
        let mut random = ChaCha8Rng::seed_from_u64(0);
        let life = |(index, (member, pipe)): (u64, (Member, Pipe))| -> Life {
            let set = self.sets[member.set].clone();
            let own = Own {
                after_ns: random.random_range(0..=set.apart_ns()),
                seed: random.random(),
                pipe,
                reads_per_ms: reads[member.set],
            };
            let counter = Counter {
                file: Arc::clone(counts),
                place: index * NUMBER_BYTES,
                kops: 0,
            };
            Box::new(move |gate| {
                let settled = Settled::new(member, &set, shape, own)?;
                settled.counted(counter).run(gate).map(drop)
            })
        };
        Ok((0..)
            .zip(members.into_iter().zip(pipes))
            .map(life)
            .collect())
    }

    fn reads(&self, set: &Set) -> u64 {
        let known = |bytes: u64| self.reads_per_ms.get(&bytes).copied();
        set.memory.map_or(0, |memory| {
            known(memory.bytes).unwrap_or_else(|| burn::reads_per_ms(memory.bytes))
        })
    }
}

impl Settled {
    fn counted(mut self, counter: Counter) -> Self {
        self.worker = Worker::counted(self.worker, counter);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sets;

    fn company(count: u64) -> Company {
        Company {
            sets: sets::published_sets(),
            count,
            operations_per_kop: Some(10),
            reads_per_ms: BTreeMap::new(),
        }
    }

    fn counts() -> Arc<File> {
        Arc::new(File::from(
            memfd_create(WORK_COUNTS, MemfdFlags::CLOEXEC).unwrap(),
        ))
    }

    #[test]
    fn workers_count_what_they_do_while_they_do_it() {
        let file = counts();
        let works = company(2).works(&file).unwrap();
        assert_eq!(works.len(), 4);
        assert_eq!(load::kops_in(&file).unwrap(), 0);
        // They end with the tests.
        std::thread::spawn(move || run(works));
        let mut seen = 0;
        for _ in 0..2 {
            let before = seen;
            while seen == before {
                std::thread::yield_now();
                seen = load::kops_in(&file).unwrap();
            }
            assert!(seen > before);
        }
    }

    #[test]
    fn a_set_that_says_its_number_has_it() {
        let mut company = company(1);
        company.sets[1].count = Some(3);
        let members = company.members();
        let of_set = |set| members.iter().filter(|member| member.set == set).count();
        assert_eq!((of_set(0), of_set(1)), (1, 3));
    }

    #[test]
    fn a_worker_that_cannot_start_ends_all_of_them() {
        let mut company = company(1);
        company.sets[0].cpus = Some("100000".to_owned());
        let why = run(company.works(&counts()).unwrap()).unwrap_err();
        assert!(why.contains("100000"), "{why}");
    }

    #[test]
    fn what_the_process_is_told_is_what_was_meant() {
        let text = serde_json::to_string(&company(3)).unwrap();
        let read: Company = serde_json::from_str(&text).unwrap();
        assert_eq!(read, company(3));
    }
}
