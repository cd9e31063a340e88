//! Settings that an arm asks of the machine, known before anything is read.

use model::readings::NONE;
use model::{Evidence, Fact, Role};

/// A value that a fact must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    what: String,
    role: Option<Role>,
    value: Value,
}

/// Value that an arm asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Exactly this text.
    Is(String),
    /// The name of a sched_ext scheduler, which the kernel has with a version and a target after
    /// it: `lavd_1.1.3_x86_64_unknown_linux_gnu`.
    Scheduler {
        /// Name without `scx_`.
        name: String,
        /// Version that the arm names, where it names one.
        version: Option<String>,
    },
    /// Any value but none.
    Any,
}

impl Asked {
    /// Value that a fact about the whole machine must have.
    pub fn of_machine(what: impl Into<String>, value: Value) -> Self {
        Asked {
            what: what.into(),
            role: None,
            value,
        }
    }

    /// Text that a fact about the processes of one role must be.
    pub fn of_role(role: &Role, what: &str, value: String) -> Self {
        Asked {
            what: what.to_owned(),
            role: Some(role.clone()),
            value: Value::Is(value),
        }
    }

    fn is_about(&self, fact: &Fact) -> bool {
        fact.subject() == (&self.what, self.role.as_ref())
    }

    /// Says in the fact what is asked, unless that is known more exactly already.
    pub(crate) fn put_into(&self, fact: &mut Fact) {
        if fact.wanted.is_none() && self.is_about(fact) {
            fact.wanted = Some(self.value.wanted_value(&fact.found));
        }
    }

    /// Was it read, and found as it is asked whenever it was?
    pub(crate) fn is_in(&self, evidence: &Evidence) -> Result<(), String> {
        let facts = evidence.all_facts();
        let found: Vec<&Fact> = facts.filter(|fact| self.is_about(fact)).collect();
        if found.is_empty() {
            return Err(format!("the {} was not read", self.as_fact("").name()));
        }
        let differs = |fact: &&Fact| {
            let wanted = self.value.wanted_value(&fact.found);
            self.as_fact(&fact.found)
                .with_wanted(wanted)
                .find_disagreement()
        };
        found.iter().find_map(differs).map_or(Ok(()), Err)
    }

    fn as_fact(&self, found: &str) -> Fact {
        Fact {
            what: self.what.clone(),
            role: self.role.clone(),
            wanted: None,
            found: found.to_owned(),
        }
    }
}

impl Value {
    /// The value that a fact needs, beside the one that was found.
    pub(crate) fn wanted_value(&self, found: &str) -> String {
        match self {
            Value::Is(value) => value.clone(),
            Value::Scheduler { name, version } => wanted_scheduler(name, version.as_deref(), found),
            Value::Any if found != NONE => found.to_owned(),
            Value::Any => "one".to_owned(),
        }
    }
}

/// The name that was found, where it is that of the scheduler and not that of another version. A
/// scheduler that tells the kernel no version is known by its name alone; the program's hash is
/// in the results.
fn wanted_scheduler(name: &str, version: Option<&str>, found: &str) -> String {
    let tells_version = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    let fits = match (version, found.split_once(&format!("{name}_"))) {
        (Some(version), Some((_, rest))) if tells_version(rest) => {
            rest == version || rest.starts_with(&format!("{version}_"))
        }
        _ => found.contains(name),
    };
    match (fits, version) {
        (true, _) => found.to_owned(),
        (false, Some(version)) => format!("{name}_{version}"),
        (false, None) => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name that an arm with this scheduler wants, where the kernel names that one.
    fn wanted(name: &str, version: Option<&str>, found: &str) -> String {
        let (name, version) = (name.to_owned(), version.map(str::to_owned));
        Value::Scheduler { name, version }.wanted_value(found)
    }

    #[test]
    fn a_version_is_wanted_where_the_arm_and_the_kernel_name_one() {
        let found = "lavd_1.1.3_x86_64_unknown_linux_gnu";
        assert_eq!(wanted("lavd", None, found), found);
        assert_eq!(wanted("lavd", Some("1.1.3"), found), found);
        assert_eq!(wanted("lavd", Some("1.1"), found), "lavd_1.1");
        assert_eq!(wanted("lavd", Some("1.1.30"), found), "lavd_1.1.30");
        assert_eq!(wanted("rusty", Some("1.1.3"), found), "rusty_1.1.3");
        assert_eq!(wanted("lavd", Some("1.1.3"), "lavd"), "lavd");
    }
}
