//! The order in which tunables are written and put back, as [`RULES`] of the table says.

use super::knob::Knob;
use super::table::{RULES, Rule};
use super::{TunableError, normalise};
use model::Tunables;
use std::path::Path;

/// The share of the root group under CONFIG_RT_GROUP_SCHED, which the global one must not fall
/// below (`tg_rt_schedulable` in kernel/sched/rt.c).
const GROUPS: [&str; 2] = ["sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct"];

/// A tunable that is to get another value.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub name: String,
    pub knob: Knob,
    pub before: String,
    pub value: String,
}

/// One write, and the text that was there before.
pub(super) type Write = (Knob, String);

/// Writes in their order.
#[derive(Debug, Default)]
pub(super) struct Writes {
    pub apply: Vec<Write>,
    pub undo: Vec<Write>,
}

impl Writes {
    /// The writes that put all in force, and those that take all back.
    pub fn plan_writes(root: &Path, mut wanted: Vec<Wanted>) -> Result<Self, TunableError> {
        let mut writes = Writes::default();
        for rule in RULES {
            writes.add_group(root, rule, &mut wanted)?;
        }
        for one in wanted {
            writes.add(&one);
        }
        Ok(writes)
    }

    /// What comes first in one direction comes last in the other.
    fn add(&mut self, one: &Wanted) {
        self.apply.push((one.knob.clone(), one.value.clone()));
        self.undo.insert(0, (one.knob.clone(), one.before.clone()));
    }

    /// Takes what the rule is about out of `wanted`. Its last tunable is the last one in both
    /// directions.
    fn add_group(
        &mut self,
        root: &Path,
        rule: &Rule,
        wanted: &mut Vec<Wanted>,
    ) -> Result<(), TunableError> {
        let is_member = |one: &Wanted| rule.members.contains(&one.name.as_str());
        let (members, others) = std::mem::take(wanted).into_iter().partition(is_member);
        let (last, others): (Vec<_>, Vec<_>) =
            Vec::into_iter(others).partition(|one: &Wanted| one.name == rule.last);
        *wanted = others;
        let members: Vec<Wanted> = members;
        let last = match last.into_iter().next() {
            Some(last) => last,
            None if members.is_empty() => return Ok(()),
            None => match unchanged(root, rule.last)? {
                Some(last) => last,
                None => {
                    members.iter().for_each(|member| self.add(member));
                    return Ok(());
                }
            },
        };
        let share = share_of_groups(root, &members, &last)?;
        let mut undo = Vec::new();
        if let Some(free) = rule.free.filter(|_| !members.is_empty()) {
            self.apply.push((last.knob.clone(), free.to_owned()));
            undo.push((last.knob.clone(), free.to_owned()));
        }
        for member in &members {
            self.apply.push((member.knob.clone(), member.value.clone()));
            undo.push((member.knob.clone(), member.before.clone()));
        }
        let lowered = share.iter().map(|s| (s.knob.clone(), s.value.clone()));
        self.apply.extend(lowered);
        self.apply.push((last.knob.clone(), last.value));
        undo.push((last.knob, last.before));
        undo.extend(share.map(|share| (share.knob, share.before)));
        self.undo.splice(0..0, undo);
        Ok(())
    }
}

/// A tunable with the value that it has; `None` where this kernel has none.
fn unchanged(root: &Path, name: &str) -> Result<Option<Wanted>, TunableError> {
    let knob = match Knob::find(root, name) {
        Err(TunableError::Absent { .. }) => return Ok(None),
        found => found?,
    };
    let before = knob.read()?;
    Ok(Some(Wanted {
        name: name.to_owned(),
        knob,
        value: before.clone(),
        before,
    }))
}

/// The share of the root group, where the new one of all is below it.
fn share_of_groups(
    root: &Path,
    members: &[Wanted],
    last: &Wanted,
) -> Result<Option<Wanted>, TunableError> {
    if last.name != "rt_runtime" {
        return Ok(None);
    }
    let mut groups = GROUPS.iter().map(|group| root.join(group));
    let Some(group) = groups.find(|group| group.join("cpu.rt_runtime_us").is_file()) else {
        return Ok(None);
    };
    let period = match members.first() {
        Some(period) => period.value.clone(),
        None => Knob::find(root, "rt_period")?.read()?,
    };
    let knob = Knob::from_path(
        "rt_runtime of the root group",
        group.join("cpu.rt_runtime_us"),
    );
    let before = knob.read()?;
    let own_period: Option<i64> = collect::read_number(&group.join("cpu.rt_period_us"));
    let (Some(own_period), Some(runtime), Some(period), Some(now)) = (
        own_period,
        number(&last.value),
        number(&period),
        number(&before),
    ) else {
        return Ok(None);
    };
    if runtime < 0 || period <= 0 {
        return Ok(None);
    }
    let most = own_period.saturating_mul(runtime) / period;
    let is_above = now < 0 || now > most;
    Ok(is_above.then(|| Wanted {
        name: String::new(),
        knob,
        before,
        value: most.to_string(),
    }))
}

/// Values that the kernel would refuse of these, with those that stay.
pub(super) fn check(root: &Path, tunables: &Tunables) -> Vec<TunableError> {
    let value = |name: &str| match tunables.get(name) {
        Some(text) => number(&normalise(name, text).ok()?),
        None => number(&Knob::find(root, name).ok()?.read().ok()?),
    };
    let above = |rule: &Rule, member: &str| {
        let is_named = tunables.contains_key(member) || tunables.contains_key(rule.last);
        let (last, most) = (value(rule.last)?, value(member)?);
        let is_above = is_named && rule.free.is_some() && last > most;
        is_above.then(|| TunableError::Above {
            name: rule.last.to_owned(),
            value: last,
            limit: member.to_owned(),
            most,
        })
    };
    let each = |rule: &'static Rule| rule.members.iter().filter_map(move |m| above(rule, m));
    RULES.iter().flat_map(each).collect()
}

fn number(text: &str) -> Option<i64> {
    text.parse().ok()
}

#[cfg(test)]
mod tests;
