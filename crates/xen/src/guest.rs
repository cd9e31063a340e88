//! Paravirtual guests of one virtual CPU: made paused, started, seen and destroyed.

use crate::console::Console;
use crate::table::split_rows;
use crate::toolstack::{XenError, read_store_key, run_xl};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The daemon of the consoles has found a guest's by then.
const CONSOLE_LIMIT: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(50);
/// Name of a domain without one, as xl prints it.
const NAMELESS: &str = "(null)";
/// Beginning of the UUIDs of all guests that are made here, by any process: version 4, drawn once.
const UUID: &str = "5c4d91ab-7e02-4b6f-9d35-";

/// Description of a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestConfig {
    /// Name, unique on the host.
    pub name: String,
    /// Image of its kernel.
    pub kernel: PathBuf,
    /// First file system.
    pub initramfs: PathBuf,
    /// Arguments of its kernel.
    pub arguments: String,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Pool whose CPUs it runs on.
    pub pool: String,
    /// More lines of xl.cfg(5), such as `cpu_weight=512`.
    pub lines: Vec<String>,
}

impl GuestConfig {
    /// Text of its configuration file.
    fn text(&self) -> String {
        let quoted = |path: &Path| path.display().to_string();
        let mut text = format!(
            "type=\"pv\"\nname=\"{}\"\nuuid=\"{}\"\nkernel=\"{}\"\nramdisk=\"{}\"\nextra=\"{}\"\nmemory={}\n\
             vcpus=1\npool=\"{}\"\ntsc_mode=\"native\"\non_poweroff=\"preserve\"\n\
             on_reboot=\"preserve\"\non_crash=\"preserve\"\n",
            self.name,
            uuid_of(&self.name),
            quoted(&self.kernel),
            quoted(&self.initramfs),
            self.arguments,
            self.memory_mib,
            self.pool
        );
        self.lines.iter().for_each(|line| {
            text.push_str(line);
            text.push('\n');
        });
        text
    }

    /// Makes the guest, which is paused. Its configuration is written into `directory` for xl.
    pub fn create_guest(&self, directory: &Path) -> Result<Guest, XenError> {
        let file = directory.join(format!("{}.cfg", self.name));
        doors::written::write_file(&file, self.text())
            .map_err(|e| XenError::State(format!("write {}: {e}", file.display())))?;
        // Without -e, xl stays and watches the guest.
        run_xl(&["create", "-e", "-p", &file.display().to_string()])?;
        Ok(Guest {
            name: self.name.clone(),
        })
    }
}

/// A guest that was made here. Dropping it destroys it.
#[derive(Debug)]
pub struct Guest {
    name: String,
}

impl Guest {
    /// Name, as xl has it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Lets it run.
    pub fn start(&self) -> Result<(), XenError> {
        run_xl(&["unpause", &self.name]).map(drop)
    }

    /// Its console, where the daemon of the consoles has it.
    pub fn open_console(&self) -> Result<Console, XenError> {
        let id = run_xl(&["domid", &self.name])?;
        let key = format!("/local/domain/{}/console/tty", id.trim());
        let start = Instant::now();
        loop {
            match read_store_key(&key) {
                Ok(path) if !path.is_empty() => return Console::open(Path::new(&path)),
                Err(XenError::NotInstalled(program)) => {
                    return Err(XenError::NotInstalled(program));
                }
                _ if start.elapsed() > CONSOLE_LIMIT => {
                    return Err(XenError::State(format!(
                        "the guest {} has no console ({key}): is xenconsoled running?",
                        self.name
                    )));
                }
                _ => std::thread::sleep(LOOK),
            }
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // One that stays is named by the next look, and destroyed by the journal.
        let _ = run_xl(&["destroy", &self.name]);
    }
}

/// A domain as `xl list` has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Running {
    /// Name.
    pub name: String,
    /// Letters of its state: r, b, p, s, c, d.
    pub state: String,
    /// CPU time in seconds.
    pub cpu_seconds: f64,
    /// CPU pool that it is in.
    pub pool: String,
}

impl Running {
    /// All domains of the host.
    pub fn list_all() -> Result<Vec<Self>, XenError> {
        Ok(parse(&run_xl(&["list", "-c"])?))
    }

    /// How it ended, if it did.
    pub fn end_reason(&self) -> Option<&'static str> {
        let is = |letter| self.state.contains(letter);
        match () {
            () if is('c') => Some("crashed"),
            () if is('s') => Some("shut down"),
            () if is('d') => Some("is dying"),
            () => None,
        }
    }
}

/// The columns from the right: a name may have spaces in it.
fn parse(text: &str) -> Vec<Running> {
    let row = |row: Vec<&str>| match row[..] {
        [name, _, _, _, state, seconds, pool] => Some(Running {
            name: name.to_owned(),
            state: state.to_owned(),
            cpu_seconds: seconds.parse().ok()?,
            pool: pool.to_owned(),
        }),
        _ => None,
    };
    split_rows(text).filter_map(row).collect()
}

/// The CPUs that the virtual CPUs of each domain prefer (soft affinity), as a list or `all`.
pub fn preferred_cpus() -> Result<Vec<(String, String)>, XenError> {
    Ok(parse_preferred(&run_xl(&["vcpu-list"])?))
}

/// Rows such as `schedlab-2   2   0   1   r--   3.9  1-2 / 2`; one that is paused has `-` for its CPU.
fn parse_preferred(text: &str) -> Vec<(String, String)> {
    let of_row = |row: Vec<&str>| match row[..] {
        [name, _, _, _, _, _, _, "/", soft] => Some((name.to_owned(), soft.to_owned())),
        _ => None,
    };
    split_rows(text).filter_map(of_row).collect()
}

/// Destroys all guests whose names begin so, and those of ours that have no name yet; gives their
/// names. It may be done again.
pub fn destroy_all(prefix: &str) -> Result<Vec<String>, XenError> {
    let ours = ours(&run_xl(&["list", "-v"])?, prefix);
    let mut failed = Ok(());
    for (id, _) in &ours {
        // The others go all the same.
        failed = failed.and(run_xl(&["destroy", id]).map(drop));
    }
    let name = |(id, name): (String, String)| match name.as_str() {
        NAMELESS => format!("without a name (ID {id})"),
        _ => name,
    };
    failed.map(|()| ours.into_iter().map(name).collect())
}

/// ID and name of each domain of ours that does not end already, of `xl list -v`. One whose making
/// was killed has no name, and has its UUID.
fn ours(text: &str, prefix: &str) -> Vec<(String, String)> {
    let of_row = |row: Vec<&str>| match row[..] {
        [name, id, _, _, state, _, uuid, ..]
            if !state.contains('d') && (name.starts_with(prefix) || uuid.starts_with(UUID)) =>
        {
            Some((id.to_owned(), name.to_owned()))
        }
        _ => None,
    };
    split_rows(text).filter_map(of_row).collect()
}

/// A UUID for the guest of this name, which no other process gives.
fn uuid_of(name: &str) -> String {
    let digits: String = name.chars().filter(char::is_ascii_digit).collect();
    let number = digits.parse::<u16>().unwrap_or_default();
    format!("{UUID}{:08x}{number:04x}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_domains_has_states_and_cpu_times() {
        let text = "Name                                        ID   Mem VCPUs\tState\tTime(s)         Cpupool\n\
                    Domain-0                                     0   768     1     r-----      38.2           Pool-0\n\
                    schedlab-2                                   2    80     1     ---sc-      13.9         schedlab\n";
        let domains = parse(text);
        assert_eq!(
            (domains[0].end_reason(), domains[0].pool.as_str()),
            (None, "Pool-0")
        );
        assert_eq!(
            (domains[1].end_reason(), domains[1].cpu_seconds),
            (Some("crashed"), 13.9)
        );
    }

    #[test]
    fn the_list_of_virtual_cpus_has_what_they_prefer() {
        let text = "Name                                ID  VCPU   CPU State   Time(s) Affinity (Hard / Soft)\n\
                    Domain-0                             0     0    0   r--      12.3  0 / all\n\
                    schedlab-worker-0                    1     0    -   --p       0.0  all / 1-2\n";
        let preferred = parse_preferred(text);
        let worker = ("schedlab-worker-0".to_owned(), "1-2".to_owned());
        assert_eq!(preferred[1..], [worker]);
        assert_eq!(preferred[0].1, "all");
    }

    #[test]
    fn a_guest_of_ours_without_a_name_is_known_by_its_uuid() {
        let row = |name: &str, id: u32, state: &str, uuid: &str| {
            format!("{name} {id} 80 1 {state} 1.2 {uuid} - -\n")
        };
        let theirs = "00000000-0000-0000-0000-000000000000";
        let mine = uuid_of("schedlab-worker-3");
        assert_eq!(mine.len(), theirs.len());
        let text = [
            "Name ID Mem VCPUs State Time(s) UUID Reason-Code Security Label\n".to_owned(),
            row("Domain-0", 0, "r-----", theirs),
            row("(null)", 4, "--p---", &mine),
            row("schedlab-worker-1", 5, "-b----", theirs),
            row("(null)", 6, "--p--d", &mine),
            row("(null)", 7, "--p---", theirs),
        ];
        let ids: Vec<String> = ours(&text.concat(), "schedlab-worker-")
            .into_iter()
            .map(|(id, _)| id)
            .collect();
        assert_eq!(ids, ["4", "5"]);
    }

    #[test]
    fn a_configuration_has_the_lines_of_its_scheduler() {
        let config = GuestConfig {
            name: "w-1".to_owned(),
            kernel: "/boot/vmlinuz".into(),
            initramfs: "/run/i".into(),
            arguments: "quiet".to_owned(),
            memory_mib: 96,
            pool: "p".to_owned(),
            lines: vec!["cpu_weight=512".to_owned()],
        };
        let text = config.text();
        assert!(
            text.contains("memory=96\n") && text.ends_with("cpu_weight=512\n"),
            "{text}"
        );
    }
}
