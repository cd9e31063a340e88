//! Proof before the window of guests of Xen: that the toolstack gave each what was asked for.

use super::super::sets::Set;
use load::GuestsIn;
use load::guests::PREFIX;
use model::parse_cpu_list;
use xen::{Guest, Pool, Reservation, Scheduler};

/// Weight of a guest for which none is asked.
const USUAL_WEIGHT: u32 = 256;
/// The word of xl(1) for all CPUs of the host.
pub const ALL_CPUS: &str = "all";

/// Refuses guests that would never run: the null scheduler gives each a CPU for good, and those of
/// others are in the pool already.
pub fn check_room(pool: &Pool, guests: usize) -> Result<(), String> {
    let cpus = pool.cpus.len();
    let domains = guests + pool.domains as usize;
    match pool.scheduler == Scheduler::Null.name() && domains > cpus {
        true => Err(format!(
            "under null each guest has a CPU of its own, and the pool {} has {cpus} for {domains} \
             domains: take smaller loads, or more `cpus`",
            pool.name
        )),
        false => Ok(()),
    }
}

/// Refuses weights and caps that the scheduler of the pool does not have.
pub fn check_shares(pool: &Pool, sets: &[&Set], place: &GuestsIn) -> Result<(), String> {
    let scheduler: Scheduler = pool.scheduler.parse()?;
    let has_shares = |set: &&&Set| {
        let cap = place.cap(set.cap).filter(|cap| *cap > 0);
        place.weight(set.weight).or(cap).is_some()
    };
    match sets.iter().find(has_shares) {
        Some(set) if !scheduler.has_weights() => Err(format!(
            "the set {} has a weight or a cap, which {scheduler}, the scheduler of the pool {}, does not \
             have: credit and credit2 do",
            set.name, pool.name
        )),
        _ => Ok(()),
    }
}

/// Weight and cap of each guest, as the scheduler has them; empty where it has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weights(Vec<(String, u32, u32)>);

impl Weights {
    pub fn read(pool: &Pool) -> Result<Self, String> {
        let known: Option<Scheduler> = pool.scheduler.parse().ok();
        let all = known.map(|scheduler| scheduler.of_guests(&pool.name));
        let all = all
            .transpose()
            .map_err(|e| e.to_string())?
            .unwrap_or_default();
        let ours = all
            .into_iter()
            .filter(|(name, ..)| name.starts_with(PREFIX));
        Ok(Weights(ours.collect()))
    }

    pub fn weight_and_cap(&self, guest: &str) -> (u32, u32) {
        let found = self.0.iter().find(|(name, ..)| name == guest);
        found.map_or((USUAL_WEIGHT, 0), |(_, weight, cap)| (*weight, *cap))
    }

    /// Has each guest what its set and the arm ask for?
    pub fn check(&self, guests: &[Guest], sets: &[&Set], place: &GuestsIn) -> Result<(), String> {
        for (guest, set) in guests.iter().zip(sets) {
            let (weight, cap) = self.weight_and_cap(guest.name());
            for (what, wanted, found) in [
                ("weight", place.weight(set.weight), weight),
                ("cap", place.cap(set.cap), cap),
            ] {
                if let Some(wanted) = wanted.filter(|wanted| *wanted != found) {
                    let name = guest.name();
                    return Err(format!(
                        "the guest {name} has the {what} {found} and not {wanted}: does the \
                         scheduler of its pool have {what}s?"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Settings of a guest beside its weight, as the toolstack has them.
#[derive(Debug, Clone, PartialEq)]
pub struct AsMade {
    /// CPUs that it prefers (soft affinity), as a list or `all`.
    pub soft_cpus: String,
    /// Its reservation; `None` under another scheduler than rtds.
    pub reserved: Option<Reservation>,
}

/// Settings of each guest. An error where they are not what was asked for.
pub fn as_made(
    guests: &[Guest],
    sets: &[&Set],
    place: &GuestsIn,
    pool: &Pool,
) -> Result<Vec<AsMade>, String> {
    let host = xen::Host::read().map_err(|e| e.to_string())?;
    let all_cpus = host.all_cpus();
    let preferred = xen::preferred_cpus().map_err(|e| e.to_string())?;
    let has_budgets = pool.scheduler == Scheduler::Rtds.name();
    let reservations = match has_budgets {
        true => xen::list_reservations().map_err(|e| e.to_string())?,
        false => Vec::new(),
    };
    let one = |(guest, set): (&Guest, &&Set)| {
        let name = guest.name();
        let soft = preferred.iter().find(|(guest, _)| guest == name);
        let (_, soft) = soft.ok_or_else(|| format!("xl vcpu-list has no guest {name}"))?;
        check_preferred(set, place, soft, &all_cpus)
            .map_err(|why| format!("the guest {name} {why}"))?;
        let reserved = reservations.iter().find(|(guest, _)| guest == name);
        let reserved = reserved.map(|(_, reservation)| *reservation);
        if has_budgets && reserved.is_none() {
            return Err(format!("xl sched-rtds has no guest {name}"));
        }
        check_reserved(place, reserved).map_err(|why| format!("the guest {name} {why}"))?;
        Ok(AsMade {
            soft_cpus: soft.to_owned(),
            reserved,
        })
    };
    guests.iter().zip(sets).map(one).collect()
}

/// Refuses other CPUs than its set asks for, or those of a NUMA node although the arm keeps the
/// toolstack from choosing one.
fn check_preferred(
    set: &Set,
    place: &GuestsIn,
    found: &str,
    all_cpus: &[u32],
) -> Result<(), String> {
    let (wanted, why) = match &set.soft_cpus {
        Some(cpus) => (cpus.as_str(), "has the host these CPUs?"),
        None if place.numa_placement == Some(false) => {
            (ALL_CPUS, "the toolstack chose a NUMA node all the same")
        }
        None => return Ok(()),
    };
    let cpus = |list: &str| match list {
        ALL_CPUS => Ok(all_cpus.to_vec()),
        list => parse_cpu_list(list),
    };
    match cpus(wanted) == cpus(found) {
        true => Ok(()),
        false => Err(format!("prefers the CPUs {found} and not {wanted}: {why}")),
    }
}

/// Refuses another budget, period or right to more than the arm asks for.
fn check_reserved(place: &GuestsIn, found: Option<Reservation>) -> Result<(), String> {
    let Some(wanted) = place.reservation() else {
        return Ok(());
    };
    match found {
        None => Err("has no budget: is its pool one of rtds?".to_owned()),
        Some(found) if found == wanted => Ok(()),
        Some(found) => Err(format!("has {} and not {}", shown(found), shown(wanted))),
    }
}

fn shown(reservation: Reservation) -> String {
    let Reservation {
        budget_us,
        period_us,
        extratime,
    } = reservation;
    let more = if extratime { "with" } else { "without" };
    format!("{budget_us} us in {period_us} us {more} extratime")
}

#[cfg(test)]
mod tests {
    use super::super::super::sets::published_sets;
    use super::*;

    fn place() -> GuestsIn {
        GuestsIn::pool("lab")
    }

    #[test]
    fn weights_and_caps_are_refused_before_a_boot_where_the_scheduler_has_none() {
        let of = |weight, cap, scheduler: &str| {
            let set = Set {
                weight,
                cap,
                ..published_sets().remove(0)
            };
            let pool = Pool {
                name: "lab".to_owned(),
                scheduler: scheduler.to_owned(),
                cpus: vec![1],
                domains: 0,
            };
            check_shares(&pool, &[&published_sets()[1], &set], &place())
        };
        for (weight, cap) in [(Some(512), None), (None, Some(30))] {
            for scheduler in ["rtds", "null"] {
                let why = of(weight, cap, scheduler).unwrap_err();
                assert!(why.contains("the set A has a weight or a cap"), "{why}");
            }
            assert_eq!(of(weight, cap, "credit2"), Ok(()));
        }
        assert_eq!(of(None, Some(0), "rtds"), Ok(()));
    }

    #[test]
    fn a_reservation_is_the_one_that_the_arm_asks_for() {
        let found = Reservation {
            budget_us: 2000,
            period_us: 8000,
            extratime: true,
        };
        let asked = GuestsIn {
            reservation: Some((2000, 8000)),
            ..place()
        };
        assert_eq!(check_reserved(&place(), None), Ok(()));
        assert_eq!(check_reserved(&asked, Some(found)), Ok(()));
        assert!(check_reserved(&asked, None).unwrap_err().contains("rtds"));
        assert_eq!(asked.cpu_limit(), 1.0);
        let hard = GuestsIn {
            extratime: Some(false),
            ..asked
        };
        assert_eq!(hard.cpu_limit(), 0.25);
        assert_eq!(
            check_reserved(&hard, Some(found)).unwrap_err(),
            "has 2000 us in 8000 us with extratime and not 2000 us in 8000 us without extratime"
        );
    }

    #[test]
    fn a_guest_has_the_weight_of_its_set_or_of_the_arm_and_the_lower_of_their_caps() {
        let asked = GuestsIn {
            weight: Some(512),
            cap: Some(40),
            ..place()
        };
        assert_eq!(
            (asked.weight(None), asked.weight(Some(64))),
            (Some(512), Some(64))
        );
        let caps = [None, Some(0), Some(20), Some(80)];
        assert_eq!(
            caps.map(|cap| asked.cap(cap)),
            [Some(40), Some(40), Some(20), Some(40)]
        );
        assert_eq!(caps.map(|cap| place().cap(cap)), caps);
        assert_eq!((asked.cpu_limit(), place().cpu_limit()), (0.4, 1.0));
    }

    #[test]
    fn a_guest_prefers_what_its_set_asks_for_or_no_node() {
        let set = |soft: Option<&str>| Set {
            soft_cpus: soft.map(str::to_owned),
            ..published_sets().remove(0)
        };
        let off = GuestsIn {
            numa_placement: Some(false),
            ..place()
        };
        let all = [0, 1, 2, 3];
        assert_eq!(check_preferred(&set(None), &place(), "2-3", &all), Ok(()));
        assert_eq!(check_preferred(&set(None), &off, "0-3", &all), Ok(()));
        let why = check_preferred(&set(None), &off, "2-3", &all).unwrap_err();
        assert!(why.contains("chose a NUMA node"), "{why}");
        let why = check_preferred(&set(Some("9")), &place(), "2-3", &all).unwrap_err();
        assert!(why.contains("2-3 and not 9: has the host"), "{why}");
        assert_eq!(
            check_preferred(&set(Some("2,3")), &off, "2-3", &all),
            Ok(())
        );
    }
}
