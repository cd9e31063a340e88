//! A first look at the far machine: what its own shell says of it.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// Read by `sh -s`, so that it reaches any login shell as it is. The directory is the cache of
/// schedlab there.
const SCRIPT: &str = r#"
say() { printf '%s=%s\n' "$1" "$2"; }
echo schedlab-look
say machine "$(uname -m)"
say system "$(uname -s)"
say release "$(uname -r)"
say hostname "$(uname -n)"
say uid "$(id -u)"
say clock "$(date +%s)"
say boot "$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)"
umask 077
cache=${SCHEDLAB_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/schedlab}
say cache "$cache"
set -- $SSH_CONNECTION
say address "$3"
mkdir -p "$cache" 2>/dev/null
[ -w "$cache" ] && say writable yes
set -- $(df -Pk "$cache" 2>/dev/null | tail -n 1)
say free_kib "$4"
agent=$cache/agent-$hash
if [ -f "$agent" ]; then
  say agent "$(sha256sum < "$agent" | cut -c 1-64)"
  touch -c "$agent"
fi
if [ -n "$ask_sudo" ] && [ "$(id -u)" != 0 ]; then
  if said=$(sudo -n true 2>&1 </dev/null); then
    say sudo yes
  else
    say sudo "no $(echo "$said" | tail -n 1)"
  fi
fi
echo schedlab-end
"#;

/// The script for an agent with this hash.
pub(super) fn make_script(hash: &str, ask_sudo: bool) -> String {
    let ask_sudo = if ask_sudo { "yes" } else { "" };
    format!("hash={hash}\nask_sudo={ask_sudo}\n{SCRIPT}")
}

/// The findings of a first look.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Look {
    /// Machine, as uname(2) gives it.
    pub machine: String,
    /// `Linux`, or what no agent is for.
    pub system: String,
    /// Release of the running kernel.
    pub release: String,
    pub hostname: String,
    /// Name of its boot, another one after each.
    pub boot: String,
    pub is_root: bool,
    /// Address at which sshd(8) took the connection.
    pub address: Option<IpAddr>,
    /// The directory of agents.
    pub cache: String,
    pub is_writable: bool,
    pub free_kib: Option<u64>,
    /// SHA-256 of the agent in the cache, where there is one.
    pub agent: Option<String>,
    /// Answer of sudo(8) without a password; `None` where it was not asked.
    pub sudo: Option<Result<(), String>>,
    /// Seconds that its clock is ahead of the one here.
    pub ahead_s: i64,
}

impl Look {
    /// From what the script printed, between its own first and last line: a login shell may say
    /// things of its own. `now` is the time here, in seconds.
    pub fn parse(said: &str, now: i64) -> Option<Self> {
        let mut lines = said
            .lines()
            .skip_while(|line| *line != "schedlab-look")
            .skip(1);
        let own: Vec<&str> = lines
            .by_ref()
            .take_while(|line| *line != "schedlab-end")
            .collect();
        said.lines()
            .any(|line| line == "schedlab-end")
            .then_some(())?;
        let named: BTreeMap<&str, &str> = own.iter().filter_map(|l| l.split_once('=')).collect();
        let text = |name| named.get(name).map(|text| (*text).to_owned());
        let sudo = named.get("sudo").map(|said| match said.strip_prefix("no") {
            Some(why) => Err(why.trim().to_owned()),
            None => Ok(()),
        });
        Some(Look {
            machine: text("machine")?,
            system: text("system")?,
            release: text("release")?,
            hostname: text("hostname").unwrap_or_default(),
            boot: text("boot").unwrap_or_default(),
            is_root: named.get("uid") == Some(&"0"),
            address: named.get("address").and_then(|text| text.parse().ok()),
            cache: text("cache")?,
            is_writable: named.contains_key("writable"),
            free_kib: named.get("free_kib").and_then(|kib| kib.parse().ok()),
            agent: text("agent"),
            sudo,
            ahead_s: named
                .get("clock")
                .and_then(|s| s.parse::<i64>().ok())
                .map_or(0, |s| s - now),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    /// The script as the shell of this machine runs it.
    fn looked(environment: &[(&str, &str)]) -> String {
        let mut command = Command::new("sh");
        command.arg("-s").envs(environment.iter().copied());
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin
            .write_all(make_script("abc", true).as_bytes())
            .unwrap();
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn a_machine_is_seen_as_it_is() {
        let cache = tempfile::tempdir().unwrap();
        std::fs::write(cache.path().join("agent-abc"), "abc").unwrap();
        let directory = cache.path().display().to_string();
        let said = looked(&[
            ("SCHEDLAB_CACHE_DIR", &directory),
            ("SSH_CONNECTION", "10.0.0.1 50000 fe80::1 22"),
        ]);
        let look = Look::parse(&format!("Welcome!\n{said}bye\n"), 0).unwrap();
        let uname = rustix::system::uname();
        assert_eq!(look.release, uname.release().to_string_lossy());
        assert_eq!(look.machine, uname.machine().to_string_lossy());
        assert_eq!(look.address, "fe80::1".parse().ok());
        assert_eq!((look.cache, look.is_writable), (directory, true));
        assert!(look.agent.unwrap().starts_with("ba7816bf"));
        assert!(look.free_kib.is_some() && look.ahead_s > 1_700_000_000);
    }

    #[test]
    fn what_sudo_says_is_kept_and_a_half_answer_is_none() {
        let said = "schedlab-look\nmachine=riscv64\nsystem=Linux\nrelease=6.12\nuid=1000\n\
                    clock=90\ncache=/c\nsudo=no sudo: a password is required\nschedlab-end\n";
        let look = Look::parse(said, 100).unwrap();
        let why = "sudo: a password is required".to_owned();
        assert_eq!(look.sudo, Some(Err(why)));
        assert!(!look.is_root && !look.is_writable && look.ahead_s == -10);
        assert_eq!(Look::parse(&said.replace("schedlab-end\n", ""), 100), None);
        assert_eq!(Look::parse("This account is disabled.\n", 100), None);
    }
}
