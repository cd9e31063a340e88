//! Arms that start the processes of a role with environment variables: GOMAXPROCS, MALLOC_ARENA_MAX,
//! the place of another build. Each process has them from its start (environ(7)) and passes them on,
//! so there is nothing to undo.

use super::ingredient::{
    Around, At, Change, Form, Ingredient, twice_error, value_of, without_role,
};
use super::requirement::Asked;
use load::{Keys, Launch};
use model::readings;
use model::{Arm, Fact, Invalid, KeyDef, Problem, Role, Workload};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const KEY: &str = "env";
const EXAMPLE: &str = "env = { GOMAXPROCS = \"2\" }";
/// Names that begin so are schedlab's own.
const RESERVED: &str = "SCHEDLAB_";

pub struct Environment;

impl Ingredient for Environment {
    fn name(&self) -> &'static str {
        KEY
    }

    fn keys(&self) -> &'static [KeyDef] {
        const {
            &[KeyDef::new(
                "env",
                "table of texts",
                "",
                "Environment variables with which the processes of the role start; read back of the first \
                     process of the load, of each service or of each antagonist.",
            )]
        }
    }

    fn read(&self, keys: &mut Keys, arm: &mut Arm) {
        if let Some(variables) = keys.get::<Map<String, Value>>(KEY) {
            arm.ingredients.insert(KEY.to_owned(), variables.into());
        }
    }

    fn texts(&self) -> &'static [&'static str] {
        &[KEY]
    }

    fn forms(&self) -> &'static [Form] {
        &[(
            "env.NAME=VALUE",
            "an environment variable of the processes of the role: env.GOMAXPROCS=2",
        )]
    }

    fn parse(&self, change: &str, arm: &mut Arm) -> Option<Result<(), Invalid>> {
        let (name, _) = change.trim().strip_prefix("env.")?.split_once('=')?;
        let value = value_of(change, &format!("env.{}", name.trim()))?;
        let held = arm.ingredients.entry(KEY.to_owned());
        let Value::Object(variables) = held.or_insert_with(|| Map::new().into()) else {
            return None;
        };
        let before = variables.insert(name.trim().to_owned(), value.into());
        Some(match before {
            Some(before) => Err(twice_error(KEY, before.as_str().unwrap_or_default(), value)),
            None => Ok(()),
        })
    }

    fn roles(&self) -> &'static [Role] {
        &Role::ALL
    }

    fn check(&self, arm: &Arm, _: &Around) -> Result<(), Invalid> {
        let Some(held) = arm.ingredients.get(KEY) else {
            return Ok(());
        };
        let wrong = |what: String| Err(Invalid::new(KEY, what).with_remedy(EXAMPLE));
        let Some(variables) = held.as_object().filter(|variables| !variables.is_empty()) else {
            return wrong("it is a table of variables".to_owned());
        };
        for (name, value) in variables {
            if !is_name(name) {
                return wrong(format!("`{name}` is no name of an environment variable"));
            }
            if name.starts_with(RESERVED) {
                return wrong(format!("`{name}` is a variable of schedlab itself"));
            }
            match value.as_str() {
                None => return wrong(format!("the value of `{name}` is a text, in quotes")),
                Some(text) if text.contains('\0') => {
                    return wrong(format!("the value of `{name}` has a zero byte"));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    fn require(&self, _: &Path, arm: &Arm, workloads: &[Workload]) -> Vec<Problem> {
        match of_arm(arm).is_empty() {
            true => Vec::new(),
            false => without_role(arm, KEY, workloads).into_iter().collect(),
        }
    }

    fn asked_facts(&self, arm: &Arm) -> Vec<Asked> {
        let variables = of_arm(arm).into_iter();
        let asked = |(name, value)| {
            Asked::of_role(
                &arm.to,
                &readings::variable_fact_name(name),
                str::to_owned(value),
            )
        };
        variables.map(asked).collect()
    }

    fn make_change<'a>(&self, arm: &'a Arm, _: &'a Workload) -> Option<Box<dyn Change + 'a>> {
        let variables = of_arm(arm);
        let role = &arm.to;
        (!variables.is_empty()).then(|| Box::new(Given { role, variables }) as _)
    }
}

/// A name that shells can set.
fn is_name(name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(is_word) && !name.starts_with(|c: char| c.is_ascii_digit()) && !name.is_empty()
}

fn of_arm(arm: &Arm) -> BTreeMap<&str, &str> {
    let held = arm.ingredients.get(KEY).and_then(Value::as_object);
    let variables = held.into_iter().flatten();
    let texts = variables.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)));
    texts.collect()
}

struct Given<'a> {
    role: &'a Role,
    variables: BTreeMap<&'a str, &'a str>,
}

impl Change for Given<'_> {
    fn prepare_launch(&self, role: &Role, launch: &mut Launch) {
        if self.role == role {
            let owned = |(name, value): (&&str, &&str)| ((*name).to_owned(), (*value).to_owned());
            launch.environment.extend(self.variables.iter().map(owned));
        }
    }

    /// Variables that the processes were started with, since a program may write over its own.
    fn facts(&self, at: &At) -> Vec<Fact> {
        let leaders = at.leaders.iter().filter(|(role, _)| role == self.role);
        let given = leaders.filter_map(|(role, pid)| at.roles.environment_of(role, *pid));
        let environments: Vec<&[u8]> = given.collect();
        if environments.is_empty() {
            return Vec::new();
        }
        let fact = |name: &&str| {
            let found = environments
                .iter()
                .map(|environment| value_in(environment, name));
            let found: BTreeSet<String> = found.collect();
            let found: Vec<String> = found.into_iter().collect();
            Fact::new(readings::variable_fact_name(name), found.join(" and ")).about_role(self.role)
        };
        self.variables.keys().map(fact).collect()
    }
}

fn value_in(environment: &[u8], name: &str) -> String {
    let mut entries = environment.split(|byte| *byte == 0);
    let value = entries.find_map(|entry| {
        let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        Some(String::from_utf8_lossy(value).into_owned())
    });
    value.unwrap_or_else(|| readings::NONE.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(changes: &[&str]) -> Arm {
        let mut arm = Arm::unchanged("a");
        for change in changes {
            Environment.parse(change, &mut arm).unwrap().unwrap();
        }
        arm
    }

    fn fault(arm: &Arm) -> String {
        let around = Around {
            boots: false,
            reboots: false,
            workloads: &[],
        };
        Environment.check(arm, &around).unwrap_err().what
    }

    #[test]
    fn a_table_and_changes_of_the_command_line_say_the_same() {
        let table = serde_json::json!({ "env": { "A": "1", "B": "x=y" } });
        let mut read = Arm::unchanged("a");
        let mut keys = Keys::new(table.as_object().unwrap().clone());
        Environment.read(&mut keys, &mut read);
        assert_eq!(read, arm(&["env.A=1", "env.B=x=y"]));
        let mut twice = arm(&["env.A=1"]);
        let second = Environment.parse("env.A=2", &mut twice).unwrap();
        assert!(second.unwrap_err().what.contains("`1` and `2`"));
        assert!(Environment.parse("vm.swappiness=10", &mut twice).is_none());
    }

    #[test]
    fn what_no_process_could_have_is_refused() {
        for (change, says) in [
            ("env.=1", "no name"),
            ("env.1A=1", "no name"),
            ("env.A B=1", "no name"),
            ("env.SCHEDLAB_CACHE=x", "schedlab itself"),
        ] {
            let said = fault(&arm(&[change]));
            assert!(said.contains(says), "{change}: {said}");
        }
        let mut number = Arm::unchanged("a");
        let variables = serde_json::json!({ "A": 1 });
        number.ingredients.insert(KEY.to_owned(), variables);
        assert!(fault(&number).contains("a text, in quotes"));
    }

    #[test]
    fn a_process_of_the_role_has_the_variables_and_its_own() {
        let arm = arm(&["env.A=2"]);
        let mut launch = Launch::new(vec!["true".to_owned()]);
        launch.environment.insert("A".to_owned(), "1".to_owned());
        launch.environment.insert("B".to_owned(), "1".to_owned());
        let workload = crate::fixture::command();
        let in_force = crate::arm::changes::InForce::new(&arm, &workload);
        let load = in_force.launch(&Role::Load, &launch);
        assert_eq!(
            (&*load.environment["A"], &*load.environment["B"]),
            ("2", "1")
        );
        assert_eq!(in_force.launch(&Role::Server, &launch), launch);
        assert_eq!(value_in(b"AB=3\0A=2\0", "A"), "2");
        assert_eq!(value_in(b"AB=3\0", "A"), readings::NONE);
    }
}
