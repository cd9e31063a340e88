//! Paravirtual guests of one virtual CPU: made paused, started, seen and destroyed.

use crate::console::Console;
use crate::table::rows;
use crate::toolstack::{XenError, stored, xl};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The daemon of the consoles has found a guest's by then.
const CONSOLE_LIMIT: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(50);

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
            "type=\"pv\"\nname=\"{}\"\nkernel=\"{}\"\nramdisk=\"{}\"\nextra=\"{}\"\nmemory={}\n\
             vcpus=1\npool=\"{}\"\ntsc_mode=\"native\"\non_poweroff=\"preserve\"\n\
             on_reboot=\"preserve\"\non_crash=\"preserve\"\n",
            self.name,
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
    pub fn create(&self, directory: &Path) -> Result<Guest, XenError> {
        let file = directory.join(format!("{}.cfg", self.name));
        std::fs::write(&file, self.text())
            .map_err(|e| XenError::State(format!("write {}: {e}", file.display())))?;
        // Without -e, xl stays and watches the guest.
        xl(&["create", "-e", "-p", &file.display().to_string()])?;
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
        xl(&["unpause", &self.name]).map(drop)
    }

    /// Its console, where the daemon of the consoles has it.
    pub fn console(&self) -> Result<Console, XenError> {
        let id = xl(&["domid", &self.name])?;
        let key = format!("/local/domain/{}/console/tty", id.trim());
        let start = Instant::now();
        loop {
            match stored(&key) {
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
        let _ = xl(&["destroy", &self.name]);
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
}

impl Running {
    /// All domains of the host.
    pub fn all() -> Result<Vec<Self>, XenError> {
        Ok(parse(&xl(&["list"])?))
    }

    /// How it ended, if it did.
    pub fn end(&self) -> Option<&'static str> {
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
        [name, _, _, _, state, seconds] => Some(Running {
            name: name.to_owned(),
            state: state.to_owned(),
            cpu_seconds: seconds.parse().ok()?,
        }),
        _ => None,
    };
    rows(text).filter_map(row).collect()
}

/// Destroys all guests whose names begin so; gives their names. It may be done again.
pub fn destroy_all(prefix: &str) -> Result<Vec<String>, XenError> {
    let names = Running::all()?.into_iter().map(|running| running.name);
    let names: Vec<String> = names.filter(|name| name.starts_with(prefix)).collect();
    for name in &names {
        xl(&["destroy", name])?;
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_domains_has_states_and_cpu_times() {
        let text = "Name                                        ID   Mem VCPUs\tState\tTime(s)\n\
                    Domain-0                                     0   768     1     r-----      38.2\n\
                    schedlab-2                                   2    80     1     ---sc-      13.9\n";
        let domains = parse(text);
        assert_eq!(domains[0].end(), None);
        assert_eq!(
            (domains[1].end(), domains[1].cpu_seconds),
            (Some("crashed"), 13.9)
        );
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
