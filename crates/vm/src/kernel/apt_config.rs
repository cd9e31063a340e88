//! Configuration of apt (apt.conf(5)): nothing of the host's but how a mirror is reached. The
//! host's configuration may run programs after an update, and may allow lists that are old or
//! not signed, which would be a way to an old kernel. Old lists are taken where it says so, but
//! not in silence.

use crate::architecture::Architecture;
use doors::started::tool_command;

/// In place of `/etc/apt/apt.conf` and `apt.conf.d`. The trust settings are apt's own
/// defaults, and said here so that nothing weakens them.
const OWN: &str = r#"Dir::Etc::main "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
APT::Sandbox::User "";
APT::Get::AllowUnauthenticated "false";
Acquire::AllowInsecureRepositories "false";
Acquire::AllowWeakRepositories "false";
Acquire::AllowDowngradeToInsecureRepositories "false";
Acquire::Check-Valid-Until "true";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
"#;

/// Proxies, certificates and the like. The archive's signature is what is trusted, and
/// not the way on which it came.
const FROM_THE_HOST: [&str; 4] = [
    "Acquire::http::",
    "Acquire::https::",
    "Acquire::ForceIPv",
    "Acquire::Retries ",
];

/// The whole text of the configuration.
pub fn config_text(of: &Architecture) -> String {
    let of = of.debian;
    let own = format!("{OWN}APT::Architecture \"{of}\";\nAPT::Architectures {{ \"{of}\"; }};\n");
    own + &transport(&host_configuration())
}

/// True if the administrator has told apt to take lists that are past their end, as for a
/// mirror that stands still. Such lists are taken, and that is said.
pub fn host_accepts_old_lists() -> bool {
    accepts_old_lists(&host_configuration())
}

fn accepts_old_lists(configuration: &str) -> bool {
    let setting = "Acquire::Check-Valid-Until ";
    let mut values = configuration
        .lines()
        .filter_map(|l| l.strip_prefix(setting));
    let words = [
        "\"false\";",
        "\"0\";",
        "\"no\";",
        "\"off\";",
        "\"without\";",
    ];
    values
        .next_back()
        .is_some_and(|value| words.contains(&value))
}

/// One setting a line. Without apt-config there is no apt either, which is said later.
fn host_configuration() -> String {
    let mut command = tool_command("apt-config");
    command
        .args(["dump", "--no-empty", "--format", "%F \"%v\";%n"])
        .env("LC_ALL", "C.UTF-8");
    doors::read::output_of(&mut command).map_or_else(
        |_| String::new(),
        |o| String::from_utf8_lossy(&o.stdout).into_owned(),
    )
}

fn transport(configuration: &str) -> String {
    let wanted = |line: &&str| FROM_THE_HOST.iter().any(|name| line.starts_with(name));
    let lines = configuration.lines().filter(wanted);
    // A value with a quote in it would end the setting, and begin another.
    let lines = lines.filter(|line| line.ends_with("\";") && line.matches('"').count() == 2);
    lines.flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_lists_are_taken_only_where_the_administrator_says_so() {
        assert!(accepts_old_lists("Acquire::Check-Valid-Until \"false\";\n"));
        assert!(accepts_old_lists(
            "A \"\";\nAcquire::Check-Valid-Until \"0\";\n"
        ));
        for text in [
            "",
            "Acquire::Check-Valid-Until \"true\";\n",
            "Acquire::Check-Date \"false\";",
        ] {
            assert!(!accepts_old_lists(text), "{text}");
        }
    }

    #[test]
    fn the_host_says_how_a_mirror_is_reached_and_nothing_else() {
        let host = "Acquire \"\";\nAcquire::http::Proxy \"http://proxy.example:3128\";\n\
                    Acquire::https::mirror.example::CaInfo \"/etc/ca.pem\";\n\
                    Acquire::Check-Valid-Until \"false\";\nAcquire::ForceIPv4 \"true\";\n\
                    Acquire::AllowInsecureRepositories \"true\";\nAcquire::Retries \"3\";\n\
                    APT::Update::Post-Invoke:: \"rm -rf /var/cache/apt\";\n\
                    Acquire::http::X \"a\"; APT::Update::Pre-Invoke:: \"evil\";\n";
        assert_eq!(
            transport(host),
            "Acquire::http::Proxy \"http://proxy.example:3128\";\n\
             Acquire::https::mirror.example::CaInfo \"/etc/ca.pem\";\n\
             Acquire::ForceIPv4 \"true\";\nAcquire::Retries \"3\";\n"
        );
    }
}
