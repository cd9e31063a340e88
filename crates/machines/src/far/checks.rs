//! The findings of `schedlab target check` about a machine.

use super::line::{Failure, Sudo};
use super::look::Look;
use super::{CLOCKS_S, FarTarget};
use crate::{Boot, Looked, Target, TargetError};
use model::{Check, CheckState, Reply, Request, System, format_duration_ns};
use std::time::Duration;

pub(super) const SUDO_REMEDY: &str =
    "allow it without a password (sudoers(5): `USER ALL=(root) NOPASSWD: ALL`), or log in as root";
/// Rules about what a container hides of the machine that it is on.
const OF_A_PLACE: [&str; 4] = ["affinity", "cpu-quota", "namespaces", "knobs"];
/// Time for the answer of an agent that only reads.
const ANSWER: Duration = Duration::from_secs(60);

/// Looks from outside, then with an agent, where one can be started.
pub(super) fn look_at_target(target: &mut FarTarget) -> Result<Looked, Failure> {
    let look = target.look()?;
    let mut looked = Looked {
        checks: of_outside(target, &look)?,
        missing: Vec::new(),
    };
    target.fresh = Some(look.clone());
    let hindered = target.hindrance(&look);
    let seen = match hindered {
        Ok(()) => seen_by_an_agent(target),
        Err(problem) => Err(TargetError::Unmet(problem)),
    };
    match seen {
        Ok(system) => looked.checks.extend(of_inside(&system)),
        Err(TargetError::Unmet(problem)) => looked.missing.push(problem),
        Err(other) => {
            let problem = target
                .line
                .problem(other.to_string(), "look at what it says");
            looked.missing.push(problem);
        }
    }
    Ok(looked)
}

fn seen_by_an_agent(target: &mut FarTarget) -> Result<System, TargetError> {
    let mut session = target.open_session(&Boot::default())?;
    session.send_request(&Request::Probe { experiment: None })?;
    match session.receive_reply(ANSWER)? {
        Some(Reply::System { system }) => Ok(*system),
        other => Err(TargetError::Garbled(format!("{other:?}"))),
    }
}

fn fine(name: &str, value: String) -> Check {
    Check {
        name: name.to_owned(),
        value,
        state: CheckState::Ok,
        effect: String::new(),
        remedy: String::new(),
    }
}

fn caution(name: &str, value: String, effect: &str, remedy: &str) -> Check {
    Check {
        state: CheckState::Caution,
        effect: effect.to_owned(),
        remedy: remedy.to_owned(),
        ..fine(name, value)
    }
}

fn of_outside(target: &mut FarTarget, look: &Look) -> Result<Vec<Check>, Failure> {
    let needed_kib = target.agent()?.bytes.len() as u64 >> 10;
    Ok(vec![
        fine("architecture", look.machine.clone()),
        fine("kernel", look.release.clone()),
        root(target.line.sudo(), look),
        clock(look.ahead_s),
        cache(look, needed_kib),
    ])
}

fn root(sudo: Sudo, look: &Look) -> Check {
    let (said, remedy) = match (&look.sudo, sudo) {
        _ if look.is_root => return fine("root", "logged in as root".to_owned()),
        (Some(Ok(())), _) => return fine("root", "by sudo, without a password".to_owned()),
        (Some(Err(said)), _) => (format!("no: {said}"), SUDO_REMEDY),
        (None, _) => ("no: sudo = \"no\"".to_owned(), "sudo = \"auto\""),
    };
    let effect = "Arms that need root cannot be measured.";
    caution("root", said, effect, remedy)
}

fn clock(ahead_s: i64) -> Check {
    match ahead_s.unsigned_abs() > CLOCKS_S {
        false => fine("clock", "as here".to_owned()),
        true => caution(
            "clock",
            format!("{} of this one", clock_difference(ahead_s)),
            "Times of trials and of files differ from those here.",
            "set it, as by NTP",
        ),
    }
}

/// `3 h ahead`, `5 min behind`.
pub(super) fn clock_difference(ahead_s: i64) -> String {
    let apart = format_duration_ns(ahead_s.unsigned_abs().saturating_mul(1_000_000_000));
    match ahead_s < 0 {
        true => format!("{apart} behind"),
        false => format!("{apart} ahead"),
    }
}

fn cache(look: &Look, needed_kib: u64) -> Check {
    let free = match look.free_kib {
        Some(kib) => format!("{}, {} MiB free", look.cache, kib >> 10),
        None => look.cache.clone(),
    };
    match look
        .free_kib
        .is_some_and(|free| look.agent.is_none() && free < needed_kib)
    {
        false => fine("cache", free),
        true => caution(
            "cache",
            free,
            &format!("The agent needs {} MiB there.", needed_kib >> 10),
            "make room, or name another directory: XDG_CACHE_HOME on the machine",
        ),
    }
}

fn of_inside(system: &System) -> Vec<Check> {
    let programs = system
        .facts
        .keys()
        .filter_map(|name| name.strip_prefix("tool."));
    let programs: Vec<&str> = programs.collect();
    let programs = match programs.is_empty() {
        false => fine("programs", programs.join(", ")),
        true => caution(
            "programs",
            "none of those that workloads start".to_owned(),
            "Only workloads of schedlab itself can run.",
            "install what the experiment names; `schedlab check` says what is missing",
        ),
    };
    let sched_ext = match system.sched_ext {
        true => fine("sched_ext", "in the kernel".to_owned()),
        false => caution(
            "sched_ext",
            "not in the kernel".to_owned(),
            "Arms with a scheduler of sched_ext cannot be measured.",
            "boot a kernel with CONFIG_SCHED_CLASS_EXT, Linux 6.12 or newer",
        ),
    };
    let cpus = fine("CPUs", format!("{}, {}", system.cpus, system.cpu_model));
    let free = fine("other runs", "none under way".to_owned());
    let hidden = system.preflight.iter();
    let hidden = hidden.filter(|check| {
        check.state == CheckState::Caution && OF_A_PLACE.contains(&check.name.as_str())
    });
    let all = [cpus, sched_ext, programs, free].into_iter();
    all.chain(hidden.cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_the_way_is_told_with_its_remedy() {
        let look = Look {
            sudo: Some(Err("a password is required".to_owned())),
            cache: "/home/kim/.cache/schedlab".to_owned(),
            free_kib: Some(2048),
            ..Look::default()
        };
        let root = root(Sudo::Auto, &look);
        assert_eq!(root.state, CheckState::Caution);
        assert!(
            root.value.contains("password") && root.remedy.contains("NOPASSWD"),
            "{root:?}"
        );
        let cache = cache(&look, 8192);
        assert_eq!(cache.state, CheckState::Caution);
        assert!(cache.effect.contains("8 MiB"), "{cache:?}");
        let clock = clock(-7200);
        assert_eq!(clock.state, CheckState::Caution);
        assert!(clock.value.ends_with("behind of this one"), "{clock:?}");
    }
}
