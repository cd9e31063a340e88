//! For whom an arm is: a role of the workload, or a daemon of the target (`to`).

use model::{Arm, Daemon, Role};
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use std::fmt;

/// The words of roles that an arm may be for.
const ROLES: &[&str] = &["load", "server", "antagonist"];
/// Example of a daemon in a file.
const DAEMON: &str = "a daemon is written { unit = \"mysqld.service\" }, or with cgroup, container, \
                      pid, name or port";

/// A role, or the daemon that stands for the role of its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Whose {
    role: Role,
    daemon: Option<Daemon>,
}

impl From<Role> for Whose {
    fn from(role: Role) -> Self {
        Whose { role, daemon: None }
    }
}

impl From<Daemon> for Whose {
    fn from(daemon: Daemon) -> Self {
        Whose {
            role: Role::Daemon,
            daemon: Some(daemon),
        }
    }
}

impl Whose {
    /// The one that stands in front of a change of the command line, and the change: `server:nice=5`,
    /// `unit=mysqld.service:nice=5`.
    pub(crate) fn split(written: &str) -> Result<(Option<Whose>, &str), String> {
        let Some((word, change)) = written.split_once(':') else {
            return Ok((None, written));
        };
        let role = Role::ALL.into_iter().find(|role| role.name() == word);
        let daemon = word
            .split_once('=')
            .and_then(|(key, text)| Daemon::from_key(key, text));
        let whose = match (role, daemon) {
            (Some(role), _) => Some(role.into()),
            (None, Some(daemon)) => Some(daemon?.into()),
            (None, None) => None,
        };
        Ok(match whose {
            Some(whose) => (Some(whose), change.trim()),
            None => (None, written),
        })
    }

    pub(crate) fn role(&self) -> &Role {
        &self.role
    }

    /// `server`, `unit mysqld.service`.
    pub(crate) fn name(&self) -> String {
        let daemon = self.daemon.as_ref().map(Daemon::to_string);
        daemon.unwrap_or_else(|| self.role.name().to_owned())
    }

    /// Makes the arm one for it.
    pub(crate) fn apply_to(self, arm: &mut Arm) {
        arm.to = self.role;
        arm.daemon = self.daemon;
    }
}

impl<'de> Deserialize<'de> for Whose {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Written)
    }
}

struct Written;

impl<'de> Visitor<'de> for Written {
    type Value = Whose;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("the word of a role, or a table with a daemon")
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<Whose, E> {
        let role = Role::ALL.into_iter().find(|role| role.name() == word);
        role.map(Whose::from)
            .ok_or_else(|| E::unknown_variant(word, ROLES))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Whose, A::Error> {
        let mut daemon = None;
        while let Some(key) = map.next_key::<String>()? {
            let text = match key.as_str() {
                "pid" => map.next_value::<i32>()?.to_string(),
                _ => map.next_value::<String>()?,
            };
            let read = Daemon::from_key(&key, &text)
                .ok_or_else(|| de::Error::unknown_field(&key, &Daemon::KEYS))?;
            if daemon.replace(read.map_err(de::Error::custom)?).is_some() {
                return Err(de::Error::custom(format!(
                    "there are two keys, and {DAEMON}"
                )));
            }
        }
        daemon
            .map(Whose::from)
            .ok_or_else(|| de::Error::custom(format!("the table is empty; {DAEMON}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Whose, String> {
        #[derive(serde::Deserialize)]
        struct Keys {
            to: Whose,
        }
        let keys = toml::from_str::<Keys>(text);
        keys.map(|keys| keys.to).map_err(|e| e.message().to_owned())
    }

    #[test]
    fn a_file_and_a_command_line_name_the_same_daemon() {
        for (file, line) in [
            ("{ unit = \"mysqld.service\" }", "unit=mysqld.service"),
            ("{ cgroup = \"/a/b\" }", "cgroup=/a/b"),
            ("{ container = \"bench\" }", "container=bench"),
            ("{ name = \"mysqld\" }", "name=mysqld"),
            ("{ pid = 7 }", "pid=7"),
            ("\"antagonist\"", "antagonist"),
        ] {
            let line = format!("{line}:nice=5");
            let (whose, change) = Whose::split(&line).unwrap();
            assert_eq!(read(&format!("to = {file}")), Ok(whose.unwrap()));
            assert_eq!(change, "nice=5");
        }
    }

    #[test]
    fn what_is_no_daemon_is_refused_with_what_is() {
        for (text, said) in [
            ("{}", "the table is empty"),
            ("{ pid = 7, name = \"a\" }", "there are two keys"),
            (
                "{ service = \"a\" }",
                "unknown field `service`, expected one of `cgroup`",
            ),
            ("{ pid = \"a\" }", "expected i32"),
            ("\"daemon\"", "unknown variant `daemon`"),
            ("5", "the word of a role"),
        ] {
            let why = read(&format!("to = {text}")).unwrap_err();
            assert!(why.contains(said), "{text}: {why}");
        }
        assert!(Whose::split("pid=x:nice=5").unwrap_err().contains("no ID"));
        assert_eq!(Whose::split("fifo:10"), Ok((None, "fifo:10")));
        assert_eq!(Whose::split("env.A=x:y"), Ok((None, "env.A=x:y")));
    }
}
