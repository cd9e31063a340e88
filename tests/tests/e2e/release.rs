//! The files of a release: built twice in folders of their own, checked as somebody checks them who fetched
//! them, and installed. The folders are kept below target/, so that the next time compiles what changed.

#![allow(clippy::disallowed_methods)]

use crate::package::{dpkg_deb, root, use_in_a_new_debian};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;
use tests::{Bench, expect_code, skipped, stdout, with_lock_of_runs};

fn folder() -> PathBuf {
    let target = root().canonicalize().expect("it is there").join("target");
    target.join("release-of-tests")
}

/// Runs a program, which has to succeed.
fn run(command: &mut Command) -> Output {
    let output = command.output().expect("it starts");
    expect_code(&output, 0);
    output
}

/// A key of ssh that nobody trusts.
static KEY: LazyLock<PathBuf> = LazyLock::new(|| {
    let key = folder().join("key");
    fs::create_dir_all(folder()).expect("made");
    if !key.exists() {
        let words = ["-q", "-t", "ed25519", "-N", "", "-C", "test", "-f"];
        run(Command::new("ssh-keygen").args(words).arg(&key));
    }
    key
});

/// A home of cargo at another path than the usual one, with the same libraries.
fn other_cargo_home() -> PathBuf {
    let usual = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let usual = usual
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))
        .expect("a home");
    let other = folder().join("another-home");
    fs::create_dir_all(&other).expect("made");
    for name in ["registry", "git", "config.toml"] {
        if usual.join(name).exists() && !other.join(name).exists() {
            symlink(usual.join(name), other.join(name)).expect("a link");
        }
    }
    other
}

/// The release of the commit that is checked out, made from a clone in this folder.
fn make_release(name: &str, cargo_home: Option<&Path>) -> PathBuf {
    let clone = folder().join(name);
    let git = |words: &[&str]| run(Command::new("git").arg("-C").arg(&clone).args(words));
    fs::create_dir_all(&clone).expect("made");
    let origin = root().canonicalize().expect("it is there");
    git(&["init", "--quiet"]);
    git(&["fetch", "--quiet", &origin.display().to_string(), "HEAD"]);
    git(&["checkout", "--quiet", "--detach", "FETCH_HEAD"]);
    let output = clone.join("target/files");
    let mut release = Command::new(clone.join("scripts/release"));
    release.arg(&output).env("RELEASE_KEY", &*KEY);
    if let Some(home) = cargo_home {
        release.env("CARGO_HOME", home);
    }
    run(&mut release);
    output
}

/// Its files, made once for all tests.
static FILES: LazyLock<PathBuf> = LazyLock::new(|| make_release("one", None));

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.collect()
}

/// The one file of the release whose name ends so.
fn file(end: &str) -> PathBuf {
    let names = names(&FILES);
    let mut found = names.iter().filter(|name| name.ends_with(end));
    let name = found.next().unwrap_or_else(|| panic!("{end}: {names:?}"));
    assert_eq!(found.next(), None);
    FILES.join(name)
}

#[test]
#[ignore = "make test-long ROWS=release"]
fn two_builds_in_different_folders_have_the_same_bytes() {
    let home = other_cargo_home();
    let other = make_release("another/and/longer/path", Some(&home));
    let names_of_both = [names(&FILES), names(&other)];
    assert_eq!(names_of_both[0], names_of_both[1]);
    assert_eq!(names_of_both[0].len(), 7, "{names_of_both:?}");
    let differs = |name: &&String| {
        let [a, b] = [&FILES, &other].map(|folder| fs::read(folder.join(name)).expect("a file"));
        a != b
    };
    let different: Vec<_> = names_of_both[0].iter().filter(differs).collect();
    assert!(different.is_empty(), "{different:?} in {}", other.display());
    let program = fs::read(file("x86_64-linux")).expect("a program");
    let path = folder().display().to_string();
    let is_in = program.windows(path.len()).any(|w| w == path.as_bytes());
    assert!(!is_in, "the program tells where it was built");
}

/// Whether the signature of the text is one of the key that `signers` trusts.
fn is_signed(text: &Path, signers: &Path) -> bool {
    let words = ["-Y", "verify", "-n", "file", "-I", "releases", "-s"];
    let mut verify = Command::new("ssh-keygen");
    verify.args(words).arg(FILES.join("SHA256SUMS.sig"));
    verify.arg("-f").arg(signers);
    verify.stdin(fs::File::open(text).expect("a text"));
    verify.output().expect("ssh-keygen starts").status.success()
}

#[test]
#[ignore = "make test-long ROWS=release"]
fn checksums_and_their_signature_hold_and_do_not_for_other_files() {
    let sums = FILES.join("SHA256SUMS");
    let check = ["--check", "--strict", "--quiet", "SHA256SUMS"];
    run(Command::new("sha256sum").args(check).current_dir(&*FILES));
    let text = fs::read_to_string(&sums).expect("sums");
    let summed: BTreeSet<_> = text.lines().map(|line| line[66..].to_owned()).collect();
    let mut expected = names(&FILES);
    expected.retain(|name| !name.starts_with("SHA256SUMS"));
    assert_eq!(summed, expected);
    let bench = Bench::default();
    let key = fs::read_to_string(KEY.with_extension("pub")).expect("a key");
    let signers = PathBuf::from(bench.file("signers", &format!("releases {key}")));
    assert!(is_signed(&sums, &signers));
    let other = PathBuf::from(bench.file("other", &text.replacen('a', "b", 1)));
    assert!(!is_signed(&other, &signers));
}

/// Checks the file by the schema of its version, which the library of CycloneDX has.
const VALIDATE: &str = "import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(open(sys.argv[1]).read())
sys.exit(str(error) if error else 0)";

#[test]
#[ignore = "make test-long ROWS=release"]
fn the_bill_of_materials_is_valid_and_has_what_is_linked_in() {
    let bill = file(".cdx.json");
    let Some(python) = std::env::var_os("SCHEDLAB_TEST_CYCLONEDX") else {
        return skipped("the library of CycloneDX is not installed");
    };
    run(Command::new(python).args(["-c", VALIDATE]).arg(&bill));
    let bill: Value = serde_json::from_slice(&fs::read(bill).expect("a bill")).expect("JSON");
    let components = bill["components"].as_array().expect("components");
    let names: BTreeSet<_> = components
        .iter()
        .filter_map(|c| c["name"].as_str())
        .collect();
    for name in ["serde", "clap", "schedlab-stats", "rust-std", "glibc"] {
        assert!(names.contains(name), "{name}: {names:?}");
    }
    for name in ["serde_derive", "proptest", "cc"] {
        assert!(!names.contains(name), "{name}: {names:?}");
    }
    for component in components {
        assert!(component["licenses"].is_array(), "{component}");
        let name = component["name"].as_str().expect("a name");
        let is_ours = name.starts_with("schedlab") || ["rust-std", "glibc"].contains(&name);
        assert!(is_ours || component["hashes"].is_array(), "{component}");
    }
}

#[test]
#[ignore = "make test-long ROWS=release"]
fn the_package_of_a_release_is_used_on_a_debian_that_has_nothing_else() {
    let package = file("_amd64.deb");
    let _turn = with_lock_of_runs();
    let bench = Bench::default();
    use_in_a_new_debian(&bench, &package);
}

#[test]
#[ignore = "make test-long ROWS=release"]
fn each_package_has_both_builds_and_that_of_arm_runs_under_emulation() {
    let bench = Bench::default();
    let [x86, arm] = ["x86_64", "aarch64"].map(|name| file(&format!("-{name}-linux")));
    for (debian, own, other, other_name) in [
        ("amd64", &x86, &arm, "aarch64"),
        ("arm64", &arm, &x86, "x86_64"),
    ] {
        let package = file(&format!("_{debian}.deb"));
        let control = dpkg_deb("--field", &package);
        assert!(
            control.contains(&format!("\nArchitecture: {debian}\n")),
            "{control}"
        );
        run(Command::new("lintian")
            .args(["--allow-root", "--fail-on", "error"])
            .arg(&package));
        let unpacked = bench.path(debian);
        run(Command::new("dpkg-deb")
            .arg("-x")
            .arg(&package)
            .arg(&unpacked));
        let read = |path: &Path| fs::read(path).expect("a program");
        assert!(read(&unpacked.join("usr/bin/schedlab")) == read(own));
        let beside = unpacked.join(format!("usr/lib/schedlab/schedlab-{other_name}"));
        assert!(read(&beside) == read(other));
        assert!(
            unpacked
                .join("usr/share/man/man1/schedlab-run.1.gz")
                .exists()
        );
    }
    let version = |command: &mut Command| stdout(&run(command.arg("--version")));
    let program = bench.path("arm64/usr/bin/schedlab");
    let emulated = version(Command::new("qemu-aarch64-static").arg(program));
    assert_eq!(emulated, version(&mut Command::new(x86)));
}
