//! The Debian package: what is in it, and its use on a Debian that has nothing else.

#![allow(clippy::disallowed_methods)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tests::{Bench, beside_others, expect_code, skipped, stderr, stdout};

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The package of this build; `None`, and the reason said, where there is no dpkg-deb.
fn package(bench: &Bench) -> Option<PathBuf> {
    if Command::new("dpkg-deb").arg("--version").output().is_err() {
        skipped("dpkg-deb is not installed");
        return None;
    }
    let output = Command::new(root().join("scripts/deb"))
        .arg(tests::schedlab())
        .arg(bench.path("package"))
        // The program of a test build is large.
        .env("DPKG_DEB_COMPRESSOR_TYPE", "gzip")
        .env("DPKG_DEB_COMPRESSOR_LEVEL", "1")
        .env("DEBEMAIL", "maintainer@debian.org")
        .output()
        .expect("scripts/deb starts");
    expect_code(&output, 0);
    Some(PathBuf::from(stdout(&output).trim()))
}

/// Debian's packages of the programs that workloads, servers and antagonists use. What is not in
/// its main section has a slash.
fn packages_of_programs() -> Vec<String> {
    let reference = std::fs::read_to_string(root().join("docs/reference.md")).expect("a page");
    let named = reference.split("(Debian package `").skip(1);
    let names = named.filter_map(|rest| rest.split('`').next());
    let names: Vec<_> = names.filter(|name| !name.contains('/')).collect();
    assert!(names.contains(&"memcached"), "{names:?}");
    names.into_iter().map(str::to_owned).collect()
}

pub(crate) fn dpkg_deb(option: &str, package: &Path) -> String {
    let output = Command::new("dpkg-deb").arg(option).arg(package).output();
    let output = output.expect("dpkg-deb starts");
    expect_code(&output, 0);
    stdout(&output)
}

#[test]
fn the_package_has_the_program_its_pages_completions_experiments_and_documents() {
    let bench = Bench::default();
    let Some(package) = package(&bench) else {
        return;
    };
    let listed = dpkg_deb("--contents", &package);
    for path in [
        "/usr/bin/schedlab",
        "/usr/share/man/man1/schedlab.1.gz",
        "/usr/share/man/man1/schedlab-run.1.gz",
        "/usr/share/bash-completion/completions/schedlab",
        "/usr/share/zsh/vendor-completions/_schedlab",
        "/usr/share/fish/vendor_completions.d/schedlab.fish",
        "/usr/share/schedlab/experiments/quickstart.toml",
        "/usr/share/schedlab/experiments/profiles/eevdf/low_latency.conf",
        "/usr/share/doc/schedlab/docs/guide.md",
        "/usr/share/doc/schedlab/docs/guide/arms.md",
        "/usr/share/doc/schedlab/changelog.gz",
        "/usr/share/doc/schedlab/changelog.Debian.gz",
        "/usr/share/doc/schedlab/copyright",
    ] {
        let line = listed.lines().find(|l| l.ends_with(&format!(".{path}")));
        let line = line.unwrap_or_else(|| panic!("no {path} in:\n{listed}"));
        assert!(line.contains("root/root"), "{line}");
        assert!(!line.starts_with("-rw-rw"), "{line}");
    }
    let control = dpkg_deb("--field", &package);
    let version = stdout(&bench.run(&["--version"]));
    let version = version.split_whitespace().nth(1).expect("a version");
    assert!(
        control.contains(&format!("\nVersion: {version}")),
        "{control}"
    );
    assert!(control.contains("\nRecommends: qemu-system-"), "{control}");
    for program in packages_of_programs() {
        assert!(
            control.contains(&format!(" {program}")),
            "{program}: {control}"
        );
    }
}

#[test]
fn lintian_finds_no_error_in_the_package() {
    let bench = Bench::default();
    if Command::new("lintian").arg("--version").output().is_err() {
        return skipped("lintian is not installed");
    }
    let Some(package) = package(&bench) else {
        return;
    };
    // It will not run as root without being told that it may.
    let output = Command::new("lintian")
        .args(["--allow-root", "--fail-on", "error"])
        .arg(package)
        .output()
        .expect("lintian starts");
    expect_code(&output, 0);
}

/// Run in the new Debian, by root: installs, uses and removes the package.
const USE: &str = r#"
    set -eu
    apt-get install --yes --no-install-recommends /schedlab.deb
    schedlab --version
    schedlab list arms | grep -q base_slice
    MANPAGER=cat man schedlab-run | grep -q -e --max-blocks
    bash -c '. /usr/share/bash-completion/completions/schedlab; complete -p schedlab'
    cd /usr/share/schedlab/experiments
    for file in *.toml; do schedlab plan "$file" > /dev/null; done
    cd /tmp
    schedlab run -a default -a batch --max-blocks 2 --quiet --output out -- true
    test -s out/report/report.html
    schedlab verify out
    apt-get purge --yes schedlab
    test ! -e /usr/bin/schedlab
    test ! -e /usr/share/man/man1/schedlab.1.gz
    echo used and removed
"#;

/// Has mmdebstrap make a Debian of the essential packages and man, which runs the script and is removed
/// again. Its mounts are in a namespace of its own.
fn run_in_a_new_debian(bench: &Bench, package: &Path) -> Output {
    let script = bench.file("use.sh", USE);
    let hook = |words: String| format!("--customize-hook={words}");
    Command::new("mmdebstrap")
        .args(["--variant=minbase", "--include=man-db", "--format=null"])
        // Nobody keeps it, so nothing waits until it is on the disk.
        .arg("--dpkgopt=force-unsafe-io")
        .arg(hook("echo the new Debian is there".to_owned()))
        .arg(hook(format!("upload {} /schedlab.deb", package.display())))
        .arg(hook(format!("upload {script} /use.sh")))
        // A program that was built for tests has its lock there; others have that of the machine.
        .arg(hook(
            "chroot \"$1\" env SCHEDLAB_TEST_LOCK=/tmp sh /use.sh".to_owned(),
        ))
        .args(["bookworm", "/dev/null"])
        .env("TMPDIR", bench.dir.path())
        .output()
        .expect("mmdebstrap starts")
}

/// Installs, uses and removes the package where there is nothing else.
pub(crate) fn use_in_a_new_debian(bench: &Bench, package: &Path) {
    let output = run_in_a_new_debian(bench, package);
    let said = stdout(&output) + &stderr(&output);
    if !said.contains("the new Debian is there") {
        let last = said.lines().last().unwrap_or_default();
        return skipped(format!("mmdebstrap makes no Debian here: {last}"));
    }
    expect_code(&output, 0);
    assert!(said.contains("used and removed"), "{said}");
}

#[test]
fn the_package_is_installed_used_and_removed_on_a_debian_that_has_nothing_else() {
    let bench = Bench::default();
    if Command::new("mmdebstrap")
        .arg("--version")
        .output()
        .is_err()
    {
        return skipped("mmdebstrap is not installed");
    }
    let Some(package) = package(&bench) else {
        return;
    };
    let _turn = beside_others();
    use_in_a_new_debian(&bench, &package);
}
