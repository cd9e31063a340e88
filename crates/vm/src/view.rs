//! The view of this machine's files that a guest gets, and the user that QEMU runs as. A guest
//! is where a stranger's scheduler or workload belongs, and is root in there: so it gets the
//! files with the rights of an ordinary user, and only those that work needs: the distribution's, the
//! programs on PATH, the working directory, and what the experiment names, wherever that lies.

use super::failure::unmet_error;
use super::scripted;
use crate::VmError;
use confine::{Confinement, Export, Restriction, User, View, holds_a_home};
use doors::read::{Asked, output_of_child};
use doors::started::tool_command;
use model::Experiment;
use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Names the user that QEMU runs as when root starts it.
pub const USER_VARIABLE: &str = "SCHEDLAB_GUEST_USER";

const OF_THE_KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];
/// Directories with what a distribution and its packages bring: programs, libraries, settings. All
/// else below `/` is somebody's, and is hidden unless it is needed.
const OF_PACKAGES: [&str; 13] = [
    "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/boot", "/etc", "/opt",
    "/nix", "/gnu", "/var",
];
/// Parts of `/var` that packages bring.
const OF_PACKAGES_IN_VAR: [&str; 2] = ["/var/lib", "/var/cache"];
/// Device through which QEMU has KVM.
pub const KVM: &str = "/dev/kvm";
/// QEMU's own.
const DEVICES: [&str; 4] = ["/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"];
/// Files that only root may read, and that a guest of root must not read with root's rights.
const OF_ROOT: [&str; 6] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/ssl/private",
    "/etc/sudoers",
];
/// Directory in which QEMU finds the files that it shares. It needs `/proc/self/fd` itself.
const SHARED: &str = "/run/schedlab-guest";
/// In a home: keys, passwords and tokens.
const SECRETS: [&str; 19] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".password-store",
    ".mozilla",
    ".netrc",
    ".pgpass",
    ".git-credentials",
    ".npmrc",
    ".pypirc",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".local/share/keyrings",
    ".cargo/credentials",
    ".cargo/credentials.toml",
];

/// The purpose of a guest, which says what it has to see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The working directory, programs, the kernel: shown, but for secrets.
    pub paths: BTreeSet<PathBuf>,
    /// Asked for by name: shown whatever they hold.
    pub exposed: Vec<PathBuf>,
    /// Ports of this machine that lead into the guest.
    pub ports: Vec<u16>,
}

/// Confinement with which QEMU is started.
pub fn confinement(wanted: &Wanted) -> Result<Confinement, VmError> {
    let mut user = guest_user()?;
    user.iter_mut()
        .for_each(|user| user.join_group_of(Path::new(KVM)));
    let is_root = rustix::process::geteuid().is_root();
    let home = match &user {
        Some(user) => user.home.clone(),
        None => env::var_os("HOME").map(PathBuf::from),
    };
    let mut view = View::default();
    OF_THE_KERNEL.iter().for_each(|path| view.hide_path(path));
    hide_all_but(&mut view, Path::new("/"), &OF_PACKAGES);
    hide_all_but(&mut view, Path::new("/var"), &OF_PACKAGES_IN_VAR);
    DEVICES.iter().for_each(|path| view.show_path(path));
    // In containers and on cloud machines it often is for root alone, whom QEMU is not.
    let is_kept = |user: &User| !user.may_use(Path::new(KVM));
    let own_devices = match user.as_ref().is_some_and(is_kept) {
        true => vec![KVM.into()],
        false => {
            view.show_path(KVM);
            Vec::new()
        }
    };
    let homes: Vec<PathBuf> = home.into_iter().chain(User::home_directories()).collect();
    // One may be below a directory of packages, as /var/lib/NAME or /opt/NAME.
    homes.iter().for_each(|home| view.hide_path(home));
    if is_root {
        hide_from_guests_of_root(&mut view);
    }
    let show = |view: &mut View, path: &Path| match &user {
        Some(user) => view.show_to(user, path),
        None => view.show_path(path),
    };
    // Where a path leads counts: it may be written with `..`, or be a link.
    let of_root = OF_ROOT.iter().filter(|_| is_root).map(PathBuf::from);
    let kept_back: Vec<PathBuf> = secrets(&homes).chain(of_root).map(real).collect();
    let is_secret = |path: &Path| {
        let path = real(path.to_owned());
        kept_back.iter().any(|secret| path.starts_with(secret))
    };
    let is_needed = |path: &&PathBuf| !is_secret(path) && !holds_a_home(path, &homes);
    for path in wanted.paths.iter().filter(is_needed) {
        show(&mut view, path);
    }
    secrets(&homes).for_each(|secret| view.hide_path(secret));
    for path in &wanted.exposed {
        show(&mut view, path);
    }
    // Whoever asks for all of it gets it.
    let is_whole = view.steps().is_empty();
    Ok(Confinement {
        user,
        view,
        mounts: is_root && !is_whole,
        export: (!is_whole).then(|| Export {
            at: SHARED.into(),
            kept: vec!["/proc".into()],
        }),
        own_devices,
        own_processes: false,
        restriction: Some(Restriction {
            devices: vec!["/dev/null".into(), KVM.into()],
            ports: wanted.ports.clone(),
        }),
    })
}

/// `None`: QEMU runs as who started schedlab.
fn guest_user() -> Result<Option<User>, VmError> {
    let Some(name) = env::var(USER_VARIABLE).ok().filter(|name| !name.is_empty()) else {
        return Ok(User::in_place_of_root());
    };
    let user = User::from_name(&name).ok_or_else(|| {
        unmet_error(
            &format!("{USER_VARIABLE}={name}"),
            "there is no such user",
            "name a user of /etc/passwd, or leave it unset: who called sudo, else nobody",
        )
    })?;
    let own = rustix::process::geteuid().as_raw();
    Ok((user.uid != own).then_some(user))
}

/// Hides what a directory has, but for these. A link leads to what is shown or hidden where it is.
fn hide_all_but(view: &mut View, directory: &Path, shown: &[&str]) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if !path.is_symlink() && !shown.iter().any(|shown| path == Path::new(shown)) {
            view.hide_path(path);
        }
    }
}

fn hide_from_guests_of_root(view: &mut View) {
    OF_ROOT.iter().for_each(|path| view.hide_path(path));
    for entry in fs::read_dir("/etc/ssh").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("ssh_host_") && name.ends_with("_key") {
            view.hide_path(entry.path());
        }
    }
}

/// Where a path leads; itself where nothing is there.
fn real(path: PathBuf) -> PathBuf {
    fs::canonicalize(&path).unwrap_or(path)
}

fn secrets(homes: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    homes
        .iter()
        .flat_map(|home| SECRETS.iter().map(move |name| home.join(name)))
}

/// The view that was asked for, and the part of it that works on this host.
#[derive(Debug)]
pub struct Settled {
    pub asked: Confinement,
    pub works: Confinement,
    /// Why that is not all of it, if so.
    pub why: Option<String>,
}

impl Settled {
    /// QEMU must be able to read `needed`, whoever it is.
    pub fn settle_for(asked: Confinement, needed: &[PathBuf]) -> Self {
        let (works, why) = that_works(asked.clone(), needed);
        let why = lacking(&asked, &works, works.can_hide()).map(|lacking| match why {
            Some(why) => format!("{lacking} ({why})"),
            None => lacking,
        });
        Settled { asked, works, why }
    }
}

/// Words for what the guest has or sees that it should not; `hides`: something keeps QEMU from
/// what the view hides.
fn lacking(asked: &Confinement, works: &Confinement, hides: bool) -> Option<String> {
    let mut lacking = Vec::new();
    if asked.user.is_some() && works.user.is_none() {
        lacking.push("QEMU runs as root");
    }
    if !hides && !asked.view.steps().is_empty() {
        lacking.push("it sees all files that QEMU's user may read: no Landlock in this kernel");
    } else if asked.mounts && !works.mounts {
        lacking.push("Landlock alone hides files, and it sees their names and sizes");
    }
    (!lacking.is_empty()).then(|| lacking.join("; "))
}

/// The strongest of the ways to start QEMU that works here. In a container much may be
/// missing.
fn that_works(asked: Confinement, needed: &[PathBuf]) -> (Confinement, Option<String>) {
    let Err(why) = asked.try_out() else {
        return (asked, None);
    };
    let without_mounts = Confinement {
        mounts: false,
        ..asked.clone()
    };
    let mut without_user = Confinement {
        user: None,
        own_devices: Vec::new(),
        ..asked.clone()
    };
    without_user.view.show_path(KVM);
    let without_both = Confinement {
        user: None,
        ..without_mounts.clone()
    };
    let bare = Confinement {
        restriction: None,
        ..without_both.clone()
    };
    let ways = [without_mounts, without_user, without_both];
    let works = ways
        .into_iter()
        .find(|way| way.try_out().is_ok() && find_unreadable(way, needed).is_empty());
    (works.unwrap_or(bare), Some(why.to_string()))
}

/// Which of these a guest cannot read, because of whom QEMU runs as.
pub fn find_unreadable(confinement: &Confinement, paths: &[PathBuf]) -> Vec<PathBuf> {
    const SCRIPT: &str = "for p; do [ -r \"$p\" ] && { [ ! -d \"$p\" ] || [ -x \"$p\" ]; } || printf '%s\\0' \"$p\"; done";
    let mut command = tool_command("sh");
    command.args(["-c", SCRIPT, "sh"]).args(paths);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command.stderr(Stdio::piped());
    let ask = |child| Ok(output_of_child(child, Asked::default())?);
    let output = confinement.spawn(command).and_then(ask);
    // Without a shell nothing is known, and the guest will tell.
    let said = output.map_or_else(|_| Vec::new(), |output| output.stdout);
    let names = said.split(|b| *b == 0).filter(|name| !name.is_empty());
    names
        .map(|name| PathBuf::from(std::ffi::OsString::from_vec(name.to_vec())))
        .collect()
}

/// The files and directories that an experiment names, in any of its words: programs,
/// their arguments, what scripts on its command lines read.
pub fn named_by(experiment: &Experiment, directory: &Path) -> Vec<PathBuf> {
    let mut named = BTreeSet::new();
    if let Ok(value) = serde_json::to_value(experiment) {
        collect_paths(&value, directory, &mut named);
    }
    named.into_iter().collect()
}

fn collect_paths(value: &serde_json::Value, directory: &Path, named: &mut BTreeSet<PathBuf>) {
    match value {
        serde_json::Value::String(text) => named.extend(paths_in(text, directory)),
        serde_json::Value::Array(values) => {
            values
                .iter()
                .for_each(|v| collect_paths(v, directory, named));
        }
        serde_json::Value::Object(fields) => {
            fields
                .values()
                .for_each(|v| collect_paths(v, directory, named));
        }
        _ => {}
    }
}

/// The whole text, and every word in it that has a slash. `~` and `$HOME` are the home, as in a shell.
fn paths_in(text: &str, directory: &Path) -> Vec<PathBuf> {
    let text = with_home(text);
    let text = text.as_str();
    let between_words = |c: char| c.is_whitespace() || "'\"`;|&()<>=,:{}$".contains(c);
    let words = text.split(between_words).filter(|word| word.contains('/'));
    let words = std::iter::once(text).chain(words);
    let paths = words
        .filter(|word| !word.is_empty())
        .map(|word| directory.join(word));
    paths
        .filter_map(|path| fs::canonicalize(&path).is_ok_and(is_named).then_some(path))
        .collect()
}

fn with_home(text: &str) -> String {
    let home = env::var("HOME").unwrap_or_default();
    ["$HOME/", "${HOME}/", "~/"]
        .iter()
        .fold(text.to_owned(), |text, word| {
            text.replace(word, &format!("{home}/"))
        })
}

/// Who writes `cd ../` does not mean all homes, and `/proc` is the guest's own.
fn is_named(path: PathBuf) -> bool {
    if OF_THE_KERNEL.iter().any(|kernel| path.starts_with(kernel)) {
        return false;
    }
    let own = env::var_os("HOME").map(PathBuf::from);
    let homes: Vec<PathBuf> = own.into_iter().chain(User::home_directories()).collect();
    !holds_a_home(&path, &homes)
}

/// Files that these programs need to start: what their links lead to, the interpreters of scripts, and
/// libraries, which may lie in a home. What is needed and not there, the guest will tell.
pub fn needs_of(programs: &[PathBuf]) -> Vec<PathBuf> {
    let mut needed = BTreeSet::new();
    let mut waiting = programs.to_vec();
    while let Some(path) = waiting.pop() {
        let Ok(file) = fs::canonicalize(path) else {
            continue;
        };
        if needed.insert(file.clone()) {
            waiting.extend(scripted::pack::needs_of(&file));
        }
    }
    needed.into_iter().collect()
}

/// Paths in these words that are here, and that a guest with this view does not see.
pub fn hidden_in(text: &str, view: &View) -> Vec<PathBuf> {
    let mut paths = paths_in(text, Path::new("/"));
    paths.retain(|path| path.is_absolute());
    paths.retain(|path| fs::canonicalize(path).is_ok_and(|path| !view.is_visible(&path)));
    paths.sort();
    paths.dedup();
    paths
}

/// Paths that were asked for by name; `~/` is the home of who asks.
pub fn exposed_paths(names: &[String], directory: &Path) -> Vec<PathBuf> {
    let home = env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let path = |name: &String| match name.strip_prefix("~/") {
        Some(rest) => home.join(rest),
        None => directory.join(name),
    };
    names.iter().map(path).collect()
}

/// Directories that programs are found in: those of PATH, and of toolchains.
pub fn of_programs() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let toolchains = ["JAVA_HOME", "RUSTUP_HOME"];
    let toolchains = toolchains.iter().filter_map(env::var_os).map(PathBuf::from);
    // The usual place of RUSTUP_HOME.
    let rustup = env::var_os("HOME").map(|home| PathBuf::from(home).join(".rustup"));
    let all = env::split_paths(&path).chain(toolchains).chain(rustup);
    all.filter(|dir| dir.is_absolute()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Confinement {
        let mut view = View::default();
        view.hide_path("/proc");
        Confinement {
            user: User::from_name("root"),
            view,
            mounts: true,
            restriction: Some(Restriction::default()),
            ..Confinement::default()
        }
    }

    #[test]
    fn what_a_guest_lacks_of_its_confinement_is_said() {
        let works = asked();
        assert_eq!(lacking(&asked(), &works, true), None);
        let by_landlock = Confinement {
            mounts: false,
            ..asked()
        };
        let said = lacking(&asked(), &by_landlock, true).unwrap();
        assert!(said.starts_with("Landlock alone"), "{said}");
        // An ordinary user's guest has never anything else.
        assert_eq!(lacking(&by_landlock, &by_landlock, true), None);
        let as_root = Confinement {
            user: None,
            ..by_landlock.clone()
        };
        let said = lacking(&asked(), &as_root, false).unwrap();
        assert!(
            said.starts_with("QEMU runs as root; it sees all files"),
            "{said}"
        );
        assert!(lacking(&by_landlock, &by_landlock, false).is_some());
    }

    fn seen_of(paths: &[&Path]) -> View {
        let wanted = Wanted {
            paths: paths.iter().map(|path| path.to_path_buf()).collect(),
            ..Wanted::default()
        };
        confinement(&wanted).unwrap().view
    }

    #[test]
    fn a_guest_sees_what_packages_bring_and_what_is_needed_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir(root.join("project")).unwrap();
        fs::write(root.join("secret"), "").unwrap();
        let view = seen_of(&[&root.join("project")]);
        for seen in [
            &*root.join("project"),
            Path::new("/usr/bin"),
            Path::new("/etc/passwd"),
        ] {
            let seen = seen.canonicalize().unwrap();
            assert!(view.is_visible(&seen), "{seen:?}");
        }
        for hidden in [
            &*root.join("secret"),
            Path::new("/var/tmp"),
            Path::new("/run"),
        ] {
            let Ok(hidden) = hidden.canonicalize() else {
                continue;
            };
            assert!(!view.is_visible(&hidden), "{hidden:?}");
        }
        let said = format!(
            "cat: {0}/secret: Permission denied, {0}/project",
            root.display()
        );
        assert_eq!(hidden_in(&said, &view), [root.join("secret")]);
    }

    /// Who starts a run in a home, or in `/`, does not mean all that is there.
    #[test]
    fn a_home_is_not_shown_because_somebody_works_in_it() {
        let home = PathBuf::from(env::var_os("HOME").unwrap());
        let key = home.join(".not-on-any-list");
        for place in [Path::new("/"), home.parent().unwrap(), &home] {
            let view = seen_of(&[place]);
            let whole = view.steps().is_empty();
            assert!(!whole && !view.is_visible(&key), "{place:?}");
        }
        let exposed = Wanted {
            exposed: vec!["/".into()],
            ..Wanted::default()
        };
        let view = confinement(&exposed).unwrap().view;
        assert!(view.is_visible(&key), "who asks for all gets it");
    }

    /// A file of a stranger may name a key in any way.
    #[test]
    fn a_key_in_a_home_is_not_shown_however_it_is_written() {
        let home = PathBuf::from(env::var_os("HOME").unwrap())
            .canonicalize()
            .unwrap();
        let ssh = home.join(".ssh");
        let made = fs::create_dir(&ssh).is_ok();
        let key = tempfile::NamedTempFile::new_in(&ssh).unwrap();
        let name = key.path().file_name().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(key.path(), &link).unwrap();
        let around = dir.path().join("home");
        std::os::unix::fs::symlink(&home, &around).unwrap();
        let roundabout = ssh.join("../.ssh").join(name);
        for named in [
            key.path(),
            &link,
            &roundabout,
            &around.join(".ssh").join(name),
        ] {
            assert!(!seen_of(&[named]).is_visible(key.path()), "{named:?}");
        }
        let path = key.path().to_owned();
        drop(key);
        assert!(!path.exists());
        if made {
            fs::remove_dir(&ssh).unwrap();
        }
    }

    #[test]
    fn a_program_is_shown_with_what_it_is_started_with() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (program, script) = (root.join("true"), root.join("script"));
        ::tests::write_program(&program, fs::read("/bin/true").unwrap());
        ::tests::write_program(&script, format!("#!{}\n", program.display()));
        let link = root.join("link");
        std::os::unix::fs::symlink(&script, &link).unwrap();
        let needed = needs_of(&[link]);
        assert!(needed.contains(&script) && needed.contains(&program));
        let is_libc = |path: &PathBuf| path.to_string_lossy().contains("libc.so");
        assert!(needed.iter().any(is_libc), "{needed:?}");
    }

    /// `/dev/kvm` may be there for root alone, for a group, for all, or not at all.
    #[test]
    fn a_guest_of_root_can_use_kvm_where_root_can() {
        if !rustix::process::geteuid().is_root() {
            return ::tests::skipped("only root's guests are another user's");
        }
        let opened = fs::File::options().read(true).write(true).open(KVM);
        let settled = Settled::settle_for(confinement(&Wanted::default()).unwrap(), &[]);
        let may_mount = settled.works.mounts;
        assert!(settled.works.user.is_some());
        let can = settled.works.can_use(Path::new(KVM));
        assert!(
            can == opened.is_ok() || !may_mount,
            "root: {opened:?}, QEMU's user: {can}"
        );
    }

    #[test]
    fn files_that_an_experiment_names_are_found_in_its_words_but_for_the_kernels() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("script.sh"), "").unwrap();
        let script = [dir.path().join("script.sh")];
        let named = script[0].display();
        let words = format!("sh -c 'cat /proc/version > /dev/null; . {named}'");
        assert_eq!(paths_in(&words, Path::new("/")), script);
        assert_eq!(paths_in("script.sh", dir.path()), script);
        // As a shell reads it.
        let home = env::var("HOME").unwrap();
        assert_eq!(
            with_home("cat ~/x $HOME/y"),
            format!("cat {home}/x {home}/y")
        );
        assert_eq!(
            paths_in("cd /; ls /root", Path::new("/no/such")),
            Vec::<PathBuf>::new()
        );
    }
}
