//! Programs that are confined, as root and as anybody.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)]

use confine::{Confinement, Export, Restriction, User, View};
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn sh(confinement: &Confinement, script: &str) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = confinement.spawn(command).unwrap();
    child.wait_with_output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// A home that only its owner may enter, with a project and a key.
fn home() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().canonicalize().unwrap();
    for (file, text) in [
        ("project/data", "for all"),
        ("key", "secret"),
        (".ssh/id", "secret"),
    ] {
        let path = home.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).unwrap();
    (dir, home)
}

/// Confinement that a guest of root gets.
fn as_nobody(home: &Path) -> Confinement {
    let user = User::in_place_of_root().unwrap();
    let mut view = View::default();
    for path in ["/proc", "/sys", "/dev", "/root"] {
        view.hide_path(path);
    }
    view.show_path("/dev/null");
    view.show_to(&user, home.join("project"));
    Confinement {
        user: Some(user),
        view,
        mounts: true,
        restriction: Some(Restriction {
            devices: vec!["/dev/null".into()],
            ports: Vec::new(),
        }),
        ..Confinement::default()
    }
}

#[test]
fn in_a_view_of_its_own_a_program_sees_what_is_shown_and_nothing_else() {
    if !is_root() {
        return ::tests::skipped("only root can give a program mounts of its own");
    }
    let (_dir, home) = home();
    let confinement = as_nobody(&home);
    let script = format!(
        "id -u; ls -A /proc /sys /root | wc -w; ls {h}; cat {h}/project/data; echo > /dev/null && \
         cat /etc/passwd > /dev/null && echo; ls /dev",
        h = home.display()
    );
    let output = sh(&confinement, &script);
    // Three headings are all that the three empty directories have.
    assert_eq!(said(&output), "65534\n3\nproject\nfor all\nnull\n");
    for write in [
        "/tmp/x",
        &format!("{}/project/x", home.display()),
        "/root/x",
    ] {
        let output = sh(&confinement, &format!("echo > {write}"));
        assert!(!output.status.success(), "{write}: {}", said(&output));
    }
    assert!(Path::new("/proc/self").exists(), "the host keeps its own");
}

#[test]
fn what_is_served_to_others_lacks_what_the_program_needs_itself() {
    if !is_root() {
        return ::tests::skipped("only root can give a program mounts of its own");
    }
    let (_dir, home) = home();
    let mut confinement = as_nobody(&home);
    confinement.view.hide_path("/run");
    confinement.export = Some(Export {
        at: "/run/for-others".into(),
        kept: vec!["/proc".into()],
    });
    assert_eq!(confinement.exported_path(), Path::new("/run/for-others"));
    let script = format!(
        "readlink /proc/self; cd /run/for-others && ls -A proc sys root run; cat .{}/project/data; ls .{}",
        home.display(),
        home.display()
    );
    let said = said(&sh(&confinement, &script));
    let (own, theirs) = said.split_once('\n').unwrap();
    assert!(own.parse::<u32>().is_ok(), "{said}");
    let theirs = theirs.replace("for-others\n", "");
    assert_eq!(theirs, "proc:\n\nroot:\n\nrun:\n\nsys:\nfor allproject\n");
}

/// Setting as in a root that was made with debootstrap(8) and entered with chroot(8).
#[test]
fn in_a_chroot_whose_root_is_no_mount_it_is_the_same() {
    if !is_root() {
        return ::tests::skipped("only root can give a program mounts of its own");
    }
    if !::tests::own_mounts_or_skip() {
        return;
    }
    const ENTER: &str = "cd \"$1\" && mkdir sys run root && for dir in /[!.]*; do \
        case $dir in /sys|/run|/root) continue;; esac; \
        if [ -L $dir ]; then cp -P $dir .; \
        elif [ -d $dir ]; then mkdir .$dir && mount --rbind $dir .$dir || exit 9; fi; done; \
        shift; exec chroot . \"$@\"";
    let (dir, here) = (
        tempfile::tempdir().unwrap(),
        std::env::current_dir().unwrap(),
    );
    let mut command = ::tests::shell_with_own_mounts(&[], ENTER);
    command.arg("sh").arg(dir.path());
    command
        .arg("env")
        .arg("-C")
        .arg(here)
        .arg(std::env::current_exe().unwrap());
    command.args(["--exact", "--nocapture"]).args([
        "in_a_view_of_its_own_a_program_sees_what_is_shown_and_nothing_else",
        "what_is_served_to_others_lacks_what_the_program_needs_itself",
    ]);
    let output = command.output().unwrap();
    assert!(said(&output).contains("2 passed"), "{}", said(&output));
}

#[test]
fn a_program_works_where_it_was_started_but_not_in_what_is_hidden() {
    if !is_root() {
        return ::tests::skipped("only root can give a program mounts of its own");
    }
    let (_dir, home) = home();
    let confinement = as_nobody(&home);
    let in_directory = |at: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", "/bin/pwd; cat data id 2> /dev/null"]);
        command.current_dir(home.join(at)).stdout(Stdio::piped());
        let child = confinement.spawn(command).unwrap();
        said(&child.wait_with_output().unwrap())
    };
    let project = home.join("project").display().to_string();
    assert_eq!(in_directory("project"), format!("{project}\nfor all"));
    assert_eq!(in_directory(".ssh"), "/\n");
}

#[test]
fn a_hidden_file_is_an_empty_one_and_a_hidden_part_of_what_is_shown_stays_hidden() {
    if !is_root() {
        return ::tests::skipped("only root can give a program mounts of its own");
    }
    let (_dir, home) = home();
    let mut view = View::default();
    view.hide_path(home.join("key"));
    view.hide_path(home.join(".ssh"));
    let confinement = Confinement {
        view,
        mounts: true,
        ..Confinement::default()
    };
    let h = home.display();
    let output = sh(
        &confinement,
        &format!("cat {h}/key; ls -A {h}/.ssh; cat {h}/project/data"),
    );
    assert_eq!(said(&output), "for all");
}

#[test]
fn landlock_alone_keeps_a_program_from_what_is_hidden_and_from_writing() {
    let (_dir, home) = home();
    let mut view = View::default();
    view.hide_path("/proc");
    view.hide_path(home.join(".ssh"));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let confinement = Confinement {
        view,
        restriction: Some(Restriction::default()),
        ..Confinement::default()
    };
    if sh(&confinement, "cat /proc/version").status.success() {
        return ::tests::skipped("this kernel has no Landlock");
    }
    let h = home.display();
    let output = sh(
        &confinement,
        &format!("cat {h}/project/data {h}/key && ls /usr"),
    );
    assert!(output.status.success(), "{}", said(&output));
    for script in [
        format!("cat {h}/.ssh/id"),
        format!("echo > {h}/project/new"),
        format!("rm {h}/key"),
        format!("kill -0 {}", std::process::id()),
        format!(
            "exec 3<> /dev/tcp/127.0.0.1/{}",
            listener.local_addr().unwrap().port()
        ),
    ] {
        let mut command = Command::new("bash");
        command.args(["-c", &script]).stderr(Stdio::null());
        let status = confinement.spawn(command).unwrap().wait().unwrap();
        assert!(!status.success(), "{script}");
    }
}

/// A device of root's alone, as `/dev/kvm` is in containers and on many cloud machines. `/dev/zero`
/// answers as it does, whatever its node is called.
#[test]
fn a_device_of_roots_alone_is_opened_through_a_node_of_the_users_own() {
    if !is_root() {
        return ::tests::skipped("only root can make a device");
    }
    let (_dir, home) = home();
    let elsewhere = tempfile::tempdir().unwrap();
    let devices = elsewhere.path().canonicalize().unwrap();
    fs::set_permissions(&devices, fs::Permissions::from_mode(0o755)).unwrap();
    let zero = devices.join("zero");
    let mut mknod = Command::new("mknod");
    mknod.args(["-m", "600"]).arg(&zero).args(["c", "1", "5"]);
    assert!(mknod.status().unwrap().success());
    let mut confinement = as_nobody(&home);
    confinement.view.hide_path(&devices);
    assert!(!confinement.can_use(&zero));
    assert!(!confinement.user.as_ref().unwrap().may_use(&zero));

    confinement.own_devices = vec![zero.clone()];
    assert!(confinement.can_use(&zero));
    let script = format!(
        "head -c 3 {z} | wc -c; echo > {z} && stat -c %a:%u {z}",
        z = zero.display()
    );
    assert_eq!(said(&sh(&confinement, &script)), "3\n600:65534\n");
    // What is the machine's stays as it was, and there is no node where nothing is hidden.
    let about = fs::metadata(&zero).unwrap();
    assert_eq!(
        (about.permissions().mode() & 0o777, about.uid()),
        (0o600, 0)
    );
    confinement.view.show_path(&zero);
    assert!(!confinement.can_use(&zero));
    assert_eq!(fs::read_dir(&devices).unwrap().count(), 1);
}

#[test]
fn what_cannot_be_done_is_an_error_that_names_the_step() {
    let missing = Confinement::default().spawn(Command::new("/no/such/program"));
    assert_eq!(missing.unwrap_err().kind(), std::io::ErrorKind::NotFound);
    let (dir, home) = home();
    let mut view = View::default();
    view.hide_path(home.join("project"));
    drop(dir);
    let confinement = Confinement {
        view,
        mounts: true,
        ..Confinement::default()
    };
    let error = confinement.try_out().unwrap_err().to_string();
    let step = match is_root() {
        true => "project: No such file",
        false => "give it mounts of its own: Operation not permitted",
    };
    assert!(error.contains(step), "{error}");
}

/// A program with processes of its own, as the builds of root are.
fn alone() -> Confinement {
    let mut view = View::default();
    view.hide_path("/root");
    Confinement {
        user: User::for_builds(),
        view,
        mounts: true,
        own_processes: true,
        ..Confinement::default()
    }
}

#[test]
fn a_program_with_processes_of_its_own_sees_no_other_and_leaves_none() {
    if !is_root() {
        return ::tests::skipped("only root can give a program processes of its own");
    }
    let mark = format!("6{}", std::process::id());
    // The shell counts, and not a program, which may be there already or not.
    let script =
        format!("sleep {mark} & setsid sleep {mark} & set -- /proc/[0-9]*; echo $# $$; exit 7");
    let output = sh(&alone(), &script);
    assert_eq!(said(&output), "3 1\n");
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(running(&mark), 0);
}

#[test]
fn whoever_ends_a_program_with_processes_of_its_own_ends_all_of_them() {
    if !is_root() {
        return ::tests::skipped("only root can give a program processes of its own");
    }
    let mark = format!("7{}", std::process::id());
    let mut command = Command::new("sh");
    command.args(["-c", &format!("setsid sleep {mark} & sleep {mark}")]);
    command.stdin(Stdio::null());
    let mut child = alone().spawn(command).unwrap();
    while running(&mark) < 2 {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    let status = child.wait().unwrap();
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&status),
        Some(9)
    );
    while running(&mark) > 0 {
        std::thread::yield_now();
    }
}

/// Processes of this machine with the word on their command line.
fn running(mark: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let is_it = |entry: &fs::DirEntry| {
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        words
            .split(|byte| *byte == 0)
            .any(|word| word == mark.as_bytes())
    };
    processes.filter(is_it).count()
}
