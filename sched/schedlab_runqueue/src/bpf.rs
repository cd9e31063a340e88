//! The BPF half: loaded, told the roles, and read through libbpf.

use crate::slots::{self, SLOTS};
use bpf_object::{Aligned, include_object};
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder};
use std::error::Error;

static OBJECT: &Aligned<[u8]> = include_object!("runqueue.bpf.o");

/// As in intf.h.
pub const MAX_ROLES: u8 = 4;
pub const ROLE_OF_CHILDREN: u8 = 0x80;

/// Counts while this lives.
pub struct Collector {
    object: Object,
    links: Vec<Link>,
}

/// The waits of one role on one CPU: how many in each slot that has any.
#[derive(Debug, PartialEq, Eq)]
pub struct Waits {
    pub role: u8,
    pub cpu: usize,
    /// The lowest wait of the slot in nanoseconds, and its count.
    pub counts: Vec<(u64, u64)>,
}

impl Collector {
    /// Attached, but without roles, so it counts nothing yet. Needs CAP_BPF and
    /// CAP_PERFMON, and a kernel with BTF.
    pub fn load() -> Result<Self, Box<dyn Error>> {
        let open = ObjectBuilder::default()
            .name("runqueue")?
            .open_memory(&OBJECT.0)?;
        let object = open.load()?;
        let mut links = Vec::new();
        for program in object.progs_mut() {
            links.push(program.attach()?);
        }
        Ok(Collector { object, links })
    }

    /// From now on the waits of these processes and of what they fork are counted.
    pub fn begin(&self, roles: &[(u8, u32)]) -> Result<(), Box<dyn Error>> {
        let map = self.map("roles")?;
        for (role, process) in roles {
            map.update(&process.to_ne_bytes(), &[*role], MapFlags::ANY)?;
        }
        Ok(())
    }

    pub fn end(&mut self) {
        self.links.clear();
    }

    pub fn waits(&self) -> Result<Vec<Waits>, Box<dyn Error>> {
        let map = self.map("waits")?;
        let mut all: Vec<Waits> = Vec::new();
        for role in 0..MAX_ROLES {
            let mut of_role: Vec<Waits> = Vec::new();
            for slot in 0..SLOTS {
                let key = u32::from(role) * SLOTS + slot;
                let found = map.lookup_percpu(&key.to_ne_bytes(), MapFlags::ANY)?;
                for (cpu, bytes) in found.unwrap_or_default().iter().enumerate() {
                    if of_role.len() <= cpu {
                        let counts = Vec::new();
                        of_role.push(Waits { role, cpu, counts });
                    }
                    let count = number(bytes);
                    if count > 0 {
                        of_role[cpu].counts.push((slots::lowest(slot), count));
                    }
                }
            }
            all.extend(of_role.into_iter().filter(|w| !w.counts.is_empty()));
        }
        Ok(all)
    }

    /// Tasks and processes that are missing because a map was full.
    pub fn lost(&self) -> Result<u64, Box<dyn Error>> {
        let found = self
            .map(".data.lost")?
            .lookup(&0u32.to_ne_bytes(), MapFlags::ANY)?;
        Ok(found.map_or(0, |bytes| number(&bytes)))
    }

    fn map(&self, name: &str) -> Result<MapHandle, Box<dyn Error>> {
        let map = self.object.maps().find(|m| m.name() == name);
        let map = map.ok_or_else(|| format!("the BPF object has no map {name}"))?;
        Ok(MapHandle::try_from(&map)?)
    }
}

fn number(bytes: &[u8]) -> u64 {
    let whole = bytes.first_chunk().copied().unwrap_or_default();
    u64::from_ne_bytes(whole)
}
