//! Room on this host for several guests at once: CPUs for each of them alone, and memory for all.

use crate::check::pinning;
use crate::failure::unmet_error;
use crate::host::{available_memory, usable_cpus};
use crate::{VmError, VmSpec};

impl VmSpec {
    /// The guests that this describes, one by one: where there are several, each is pinned to CPUs that no
    /// other has. An error where the host lacks CPUs or memory.
    pub fn find_room(self) -> Result<Vec<VmSpec>, VmError> {
        if self.guests == 1 {
            return Ok(vec![self]);
        }
        self.find_room_on(usable_cpus(), available_memory())
    }

    fn find_room_on(self, usable: Vec<u32>, memory: Option<u64>) -> Result<Vec<VmSpec>, VmError> {
        let named = self.host_cpus.as_deref();
        if let Some(problem) = named.and_then(|list| pinning(list, &usable)) {
            return Err(unmet_error("target vm", &problem.what, &problem.remedy));
        }
        let (cpus, whence) = match named {
            Some(_) => (self.pinned_cpus(), "`host-cpus` has"),
            None => (usable, "this process may use"),
        };
        let own = self.cpus.max(1);
        self.hold_to("CPUs", own.into(), whence, cpus.len() as u64)?;
        if let Some(free) = memory {
            let mib = self.memory_bytes >> 20;
            self.hold_to("MiB of memory", mib, "free are", free >> 20)?;
        }
        let guest = |own: &[u32]| VmSpec {
            guests: 1,
            host_cpus: Some(own.iter().map(u32::to_string).collect::<Vec<_>>().join(",")),
            ..self.clone()
        };
        let each = cpus.chunks_exact(own as usize).map(guest);
        Ok(each.take(self.guests as usize).collect())
    }

    /// Refuses more guests than there is room for.
    fn hold_to(&self, what: &str, own: u64, whence: &str, there: u64) -> Result<(), VmError> {
        let wanted = own.saturating_mul(self.guests.into());
        if wanted <= there {
            return Ok(());
        }
        let remedy = match there / own.max(1) {
            0 => "give a guest less of this host".to_owned(),
            most => format!("--guests {most} at most"),
        };
        let guests = self.guests;
        let what = format!("{guests} guests at once need {wanted} {what}, and {whence} {there}");
        Err(unmet_error("target vm", &what, &remedy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a host with ten CPUs.
    fn guests(guests: u32, cpus: &str) -> Result<Vec<VmSpec>, VmError> {
        let spec = VmSpec::new("debian:sid", 2, 1 << 20);
        let host_cpus = Some(cpus.to_owned());
        let spec = VmSpec {
            guests,
            host_cpus,
            ..spec
        };
        match guests {
            1 => spec.find_room(),
            _ => spec.find_room_on((0..10).collect(), None),
        }
    }

    #[test]
    fn each_guest_has_cpus_that_no_other_has() {
        let own = guests(3, "0-1,4-7,9").unwrap().into_iter();
        let own: Vec<_> = own
            .map(|guest| (guest.guests, guest.host_cpus.unwrap()))
            .collect();
        let expected = ["0,1", "4,5", "6,7"].map(|list| (1, list.to_owned()));
        assert_eq!(own, expected);
        let one = guests(1, "0-9").unwrap();
        assert_eq!(one[0].host_cpus.as_deref(), Some("0-9"), "as it was");
    }

    #[test]
    fn too_little_room_is_an_error_that_says_for_how_many_guests_there_is_some() {
        for (cpus, said) in [
            (
                "0-3",
                "3 guests at once need 6 CPUs, and `host-cpus` has 4; --guests 2 at most",
            ),
            (
                "0",
                "need 6 CPUs, and `host-cpus` has 1; give a guest less of this host",
            ),
            (
                "4-11",
                "`host-cpus` names CPU 10, which this process may not use",
            ),
        ] {
            let error = guests(3, cpus).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
