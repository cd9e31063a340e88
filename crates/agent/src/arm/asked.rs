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
    /// A text with this part, for names of schedulers have versions after them.
    Has(String),
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
            fact.wanted = Some(self.value.wanted(&fact.found));
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
            let wanted = self.value.wanted(&fact.found);
            self.as_fact(&fact.found).wants(wanted).disagrees()
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
    pub(crate) fn wanted(&self, found: &str) -> String {
        match self {
            Value::Is(value) => value.clone(),
            Value::Has(part) if found.contains(part) => found.to_owned(),
            Value::Has(part) => part.clone(),
            Value::Any if found != NONE => found.to_owned(),
            Value::Any => "one".to_owned(),
        }
    }
}
