//! A stack: the programs that a workload needs, started in order before its load. A
//! broker, then the application that talks to it.

use crate::service::Placement;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// One program of a stack. A fresh one for each trial.
///
/// Words of its commands, its variables and its files may name ports and folders in
/// braces, see [`fill_placeholders`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Service {
    /// Unique in the workload.
    pub name: String,
    /// Program and arguments; in a container, the words that follow its image, perhaps none.
    pub argv: Vec<String>,
    /// Container that it runs in; `None`: it is a process of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<Container>,
    /// Variables beside those that schedlab has.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// The working directory; `None`: the service's folder, which is made for the trial and
    /// removed after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Texts of files in the service's folder, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// Commands before the start, one after the other (a store that is formatted).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before_start: Vec<Vec<String>>,
    /// Commands once it is ready (topics, a schema, accounts).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub when_ready: Vec<Vec<String>>,
    /// Names of the ports that are chosen for it; the first one is the main one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<String>,
    /// Check by which the service counts as ready.
    #[serde(default)]
    pub ready: Ready,
    /// The longest time until it is ready, and for each of its commands.
    pub ready_limit_ns: u64,
    /// Signal that asks the service to end.
    #[serde(default)]
    pub stop_signal: StopSignal,
    /// The time between the signal and the kill.
    pub stop_limit_ns: u64,
    /// CPUs, weight and policy of the service.
    #[serde(default)]
    pub placement: Placement,
    /// Files and folders of its folder that the trial keeps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keep: Vec<String>,
}

/// A container that a service runs in, made anew for each trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// Image that its engine has.
    pub image: String,
    /// Engine, by the name of its command; `None`: the first of those known that is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Options of the engine's `create`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// Ports that the program listens on in a network of its own, by the names of those of the service. Without
    /// any it has the network of the machine.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ports: BTreeMap<String, u16>,
}

/// Commands of the engines that are known, the first of which that is there is taken.
pub const ENGINES: [&str; 2] = ["podman", "docker"];

/// When a service counts as ready.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "check", rename_all = "kebab-case")]
pub enum Ready {
    /// All of its ports take connections. One without ports is ready when it runs.
    #[default]
    Ports,
    /// A `GET` of the path at the main port is answered with this status.
    Http {
        /// Path of the request, with its slash.
        path: String,
        /// Status code of the answer that counts as ready.
        status: u16,
    },
    /// The command ends with status 0.
    Command {
        /// Program and arguments, run again until it ends with 0.
        argv: Vec<String>,
    },
    /// The program has printed this text, on either of its streams.
    Log {
        /// Text, as a part of a line.
        text: String,
    },
}

/// The signal that asks a service to end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum StopSignal {
    /// `SIGTERM`.
    #[default]
    Term,
    /// `SIGINT`.
    Int,
    /// `SIGQUIT`.
    Quit,
    /// `SIGKILL`: the service has no chance to clean up.
    Kill,
}

/// The name of a port in braces, behind that of its service and a dot.
pub const PORT: &str = "port";
/// The name of a service's folder in braces.
pub const FOLDER: &str = "folder";
/// The name in braces of the container of a service.
pub const CONTAINER: &str = "container";
/// The name in braces of the address at which the load reaches the services.
pub const ADDRESS: &str = "target.address";
/// The name of the load's folder among those of the services.
pub const LOAD: &str = "load";

/// All that may stand in braces for `service`, without the braces: `port`, `port.NAME` and
/// `folder` of its own, and of each service `SERVICE.port`, `SERVICE.port.NAME` and
/// `SERVICE.folder`; of one in a container also `container`; for all [`ADDRESS`]. `service` is `None` for the load, which has a folder and no port.
pub fn known_names<'a>(
    services: &'a [Service],
    service: Option<&str>,
) -> BTreeMap<String, Named<'a>> {
    let mut names = BTreeMap::from([(ADDRESS.to_owned(), Named::Address)]);
    if service.is_none() {
        names.insert(FOLDER.to_owned(), Named::Folder(LOAD));
    }
    for other in services {
        let mut prefixes = vec![format!("{}.", other.name)];
        prefixes.extend((service == Some(&other.name)).then(String::new));
        for prefix in prefixes {
            names.insert(format!("{prefix}{FOLDER}"), Named::Folder(&other.name));
            if other.container.is_some() {
                let named = Named::Container(&other.name);
                names.insert(format!("{prefix}{CONTAINER}"), named);
            }
            for (index, port) in other.ports.iter().enumerate() {
                let named = Named::Port(&other.name, port);
                names.insert(format!("{prefix}{PORT}.{port}"), named);
                if index == 0 {
                    names.insert(format!("{prefix}{PORT}"), named);
                }
            }
        }
    }
    names
}

/// The address, port or folder that a name in braces stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Named<'a> {
    /// The address at which the load reaches the services.
    Address,
    /// The folder of this service.
    Folder(&'a str),
    /// The container of this service.
    Container(&'a str),
    /// A port of this service, by its name.
    Port(&'a str, &'a str),
}

/// The text with every name in braces that `value` knows replaced by its value. All other
/// braces stay, for many configuration files have their own.
pub fn fill_placeholders(text: &str, value: impl Fn(&str) -> Option<String>) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        filled.push_str(before);
        let inside = from[1..].split_once('}');
        match inside.and_then(|(name, after)| Some((value(name)?, after))) {
            Some((value, after)) => {
                filled.push_str(&value);
                rest = after;
            }
            None => {
                filled.push('{');
                rest = &from[1..];
            }
        }
    }
    filled + rest
}

/// The text with brackets around the address of the target where a port follows it or it is the host of a URL, as an
/// address of IPv6 needs them (RFC 3986, section 3.2.2).
pub fn bracket_address(text: &str, at: IpAddr) -> Cow<'_, str> {
    if at.is_ipv4() || !text.contains(ADDRESS) {
        return Cow::Borrowed(text);
    }
    let name = format!("{{{ADDRESS}}}");
    let of_url = text.replace(&format!("//{name}"), &format!("//[{at}]"));
    Cow::Owned(of_url.replace(&format!("{name}:"), &format!("[{at}]:")))
}

/// Names in braces. A word with spaces is a script, whose braces are its own; so are
/// those after a dollar sign.
pub fn find_placeholders(word: &str) -> Vec<&str> {
    let is_name = |name: &&str| {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
        name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(fits)
    };
    if word.contains(char::is_whitespace) {
        return Vec::new();
    }
    let mut opened = word.split('{');
    let mut before = opened.next().unwrap_or_default();
    let mut names = Vec::new();
    for rest in opened {
        let name = rest.split_once('}').map(|(name, _)| name);
        names.extend(name.filter(is_name).filter(|_| !before.ends_with('$')));
        before = rest;
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_lower_case_names_in_braces_outside_of_scripts() {
        assert_eq!(find_placeholders("--listen=:{port}"), ["port"]);
        assert_eq!(find_placeholders("{prot}{port}"), ["prot", "port"]);
        for word in [
            "${HOME}",
            "${home}",
            "awk '{print}'",
            "{}",
            "{\"a\":1}",
            "{a",
            "port",
        ] {
            assert_eq!(find_placeholders(word), [""; 0], "{word}");
        }
    }

    #[test]
    fn names_in_braces_are_replaced_and_other_braces_stay() {
        let value = |name: &str| (name == "port").then(|| "80".to_owned());
        assert_eq!(fill_placeholders("a:{port}/{x}{", value), "a:80/{x}{");
        assert_eq!(fill_placeholders("{{port}}", value), "{80}");
        let at: IpAddr = "fd00::7".parse().unwrap();
        for (text, bracketed) in [
            (
                "http://{target.address}:{port}/x",
                "http://[fd00::7]:{port}/x",
            ),
            ("http://{target.address}/", "http://[fd00::7]/"),
            (
                "listeners={target.address}:9092",
                "listeners=[fd00::7]:9092",
            ),
            ("-l {target.address}", "-l {target.address}"),
        ] {
            assert_eq!(bracket_address(text, at), bracketed);
            assert_eq!(bracket_address(text, [10, 0, 0, 7].into()), text);
        }
        assert_eq!(
            fill_placeholders("server { listen {port}; }", value),
            "server { listen 80; }"
        );
    }

    fn service(name: &str, ports: &[&str]) -> Service {
        Service {
            name: name.to_owned(),
            argv: vec!["true".to_owned()],
            container: None,
            environment: BTreeMap::new(),
            directory: None,
            files: BTreeMap::new(),
            before_start: Vec::new(),
            when_ready: Vec::new(),
            ports: ports.iter().map(|port| (*port).to_owned()).collect(),
            ready: Ready::default(),
            ready_limit_ns: 1,
            stop_signal: StopSignal::default(),
            stop_limit_ns: 1,
            placement: Placement::default(),
            keep: Vec::new(),
        }
    }

    #[test]
    fn a_service_knows_its_own_ports_by_short_names_and_those_of_others() {
        let services = [
            service("broker", &["client", "controller"]),
            service("api", &["http"]),
        ];
        let of_api = known_names(&services, Some("api"));
        assert_eq!(of_api["port"], Named::Port("api", "http"));
        assert_eq!(of_api["broker.port"], Named::Port("broker", "client"));
        assert_eq!(
            of_api["broker.port.controller"],
            Named::Port("broker", "controller")
        );
        assert_eq!(of_api["folder"], Named::Folder("api"));
        assert!(!known_names(&services, None).contains_key("port"));
    }
}
