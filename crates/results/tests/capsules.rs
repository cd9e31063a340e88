//! Capsules that `pack` did not make: refused, or every difference is named.

#![allow(clippy::disallowed_methods)]
#![allow(clippy::unwrap_used)]

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use results::ResultsError;
use results::capsule::{
    CAPSULE_FORMAT, Capsule, Limits, Packed, Packer, REPORT, SIGNATURE, SUMS, Tampering,
    check_sums, unpack_capsule,
};
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use tar::{EntryType, Header};
use tempfile::TempDir;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/results-1.0")
}

fn capsule() -> Capsule {
    Capsule {
        format: CAPSULE_FORMAT,
        packed_by_version: "0.1.0".into(),
        packed_by_commit: String::new(),
    }
}

fn pack(dir: &Path, to: &Path) -> Packed {
    let packer = Packer {
        capsule: &capsule(),
        reports: &[(REPORT, "{}\n".to_owned())],
        sign: None,
    };
    packer.pack(dir, to).unwrap()
}

/// The fixture packed, and a place for what is made of it.
fn honest() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("honest.tar.gz");
    pack(&fixture(), &file);
    (dir, file)
}

fn inflated(file: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(fs::File::open(file).unwrap())
        .read_to_end(&mut bytes)
        .unwrap();
    bytes
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

/// Two blocks of zeros.
const END: usize = 1024;

fn header(name: &str, size: u64, kind: EntryType) -> Header {
    let mut header = Header::new_gnu();
    header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_size(size);
    header.set_mode(0o644);
    header.set_entry_type(kind);
    header.set_cksum();
    header
}

fn entry(name: &str, content: &[u8]) -> Vec<u8> {
    let mut bytes = header(name, content.len() as u64, EntryType::Regular)
        .as_bytes()
        .to_vec();
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

/// The honest capsule with something put before its end.
fn with(more: &[u8]) -> Vec<u8> {
    let (_dir, file) = honest();
    let mut tar = inflated(&file);
    tar.truncate(tar.len() - END);
    tar.extend_from_slice(more);
    tar.resize(tar.len() + END, 0);
    tar
}

fn unpacked(gzip: &[u8], limits: Limits) -> Result<(TempDir, PathBuf), ResultsError> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("capsule.tar.gz");
    fs::write(&file, gzip).unwrap();
    let into = dir.path().join("into");
    fs::create_dir(&into).unwrap();
    let top = unpack_capsule(&file, &into, limits, &AtomicBool::new(false))?;
    Ok((dir, top))
}

#[track_caller]
fn refused(gzip: &[u8], said: &str) {
    let error = unpacked(gzip, Limits::default()).unwrap_err().to_string();
    assert!(error.contains(said), "{error}");
}

#[test]
fn what_was_packed_is_unpacked_and_agrees_with_its_list() {
    let (_dir, file) = honest();
    let (_place, top) = unpacked(&fs::read(file).unwrap(), Limits::default()).unwrap();
    let (tampering, fingerprint) = check_sums(&top, true).unwrap().unwrap();
    assert_eq!(tampering, []);
    assert_eq!(fingerprint.len(), 64);
}

#[test]
fn what_is_no_part_of_the_results_is_not_packed() {
    let dir = tempfile::tempdir().unwrap();
    let results = dir.path().join("results");
    copy(&fixture(), &results);
    fs::write(results.join("notes.txt"), "x").unwrap();
    fs::write(results.join("trials/.hidden"), "x").unwrap();
    fs::create_dir(results.join("report")).unwrap();
    fs::write(results.join("report/report.html"), "x").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", results.join("trials/link")).unwrap();
    let packed = pack(&results, &dir.path().join("x.tar.gz"));
    assert_eq!(
        packed.left_out,
        ["notes.txt", "trials/.hidden", "trials/link"]
    );
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let place = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy(&path, &place),
            false => fs::copy(&path, &place).map(|_| ()).unwrap(),
        }
    }
}

#[test]
fn a_second_directory_in_the_archive_is_refused() {
    refused(
        &deflated(&with(&entry("other/manifest.json", b"{}"))),
        "other/manifest.json, beside its one directory",
    );
    // Before the real one, too: the last one won.
    let (_dir, file) = honest();
    let mut tar = entry("aaa/report/report.html", b"<h1>better</h1>");
    tar.extend(inflated(&file));
    refused(&deflated(&tar), "beside its one directory");
}

#[test]
fn a_name_that_is_there_twice_is_refused() {
    let again = entry("results-1.0/manifest.json", b"{}");
    refused(&deflated(&with(&again)), "manifest.json, twice");
}

#[test]
fn what_is_hidden_or_does_not_show_is_refused() {
    for name in [
        "results-1.0/.partial-x/trial.json",
        "results-1.0/trials/.x",
        "results-1.0/a\u{1b}[2Jb",
        "results-1.0/a\u{202e}b",
        "results-1.0/../x",
        "results-1.0//x",
        "/etc/x",
        ".results/x",
    ] {
        refused(&deflated(&with(&entry(name, b"x"))), "it holds ");
    }
    let error = unpacked(
        &deflated(&with(&entry("results-1.0/a\u{1b}[2J", b""))),
        Limits::default(),
    );
    let error = error.unwrap_err().to_string();
    assert!(
        !error.contains('\u{1b}') && error.contains("\\u{1b}"),
        "{error:?}"
    );
}

#[test]
fn an_entry_that_tar_would_unpack_as_something_else_is_refused() {
    type Change = fn(&mut Header);
    let headers: [(Change, &str); 7] = [
        (|header| header.set_mode(0o4755), "mode is 4755"),
        (|header| header.set_mode(0o755), "mode is 755"),
        (
            |header| header.as_old_mut().mode = *b"rw-r--r-",
            "mode is no number",
        ),
        (|header| header.set_uid(1), "has an owner"),
        (
            |header| header.as_old_mut().gid = *b"nobody\0\0",
            "has an owner",
        ),
        (|header| header.set_mtime(1), "has a time"),
        (
            |header| header.as_gnu_mut().unwrap().uname[0] = b'x',
            "more in its header",
        ),
    ];
    for (change, said) in headers {
        let mut header = header("results-1.0/x", 0, EntryType::Regular);
        change(&mut header);
        header.set_cksum();
        refused(&deflated(&with(header.as_bytes())), said);
    }
}

#[test]
fn many_small_files_that_are_much_in_memory_are_refused_as_well() {
    let limits = Limits { bytes: 4 << 20 };
    // Less than 256 KiB each, which is what one file may have.
    let notes = format!("[{}0]", "0,".repeat(20_000));
    let entries = (0..2).map(|n| entry(&format!("results-1.0/{n}.json"), notes.as_bytes()));
    let capsule = deflated(&with(&entries.collect::<Vec<_>>().concat()));
    let error = unpacked(&capsule, limits).unwrap_err().to_string();
    assert!(error.contains("JSON would take more than"), "{error}");
}

#[test]
fn a_name_that_is_too_long_for_a_header_is_packed_and_unpacked() {
    let dir = tempfile::tempdir().unwrap();
    let results = dir.path().join("results");
    copy(&fixture(), &results);
    let trials = fs::read_dir(results.join("trials")).unwrap();
    let trial = trials.map(|trial| trial.unwrap().path()).max().unwrap();
    fs::write(trial.join(format!("{}.log", "x".repeat(120))), "x").unwrap();
    let file = dir.path().join("x.tar.gz");
    assert_eq!(pack(&results, &file).left_out, [""; 0]);
    assert!(unpacked(&fs::read(file).unwrap(), Limits::default()).is_ok());
}

#[test]
fn links_devices_and_other_archivers_headers_are_refused() {
    for kind in [
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Fifo,
        EntryType::Char,
        EntryType::Directory,
        EntryType::GNUSparse,
        EntryType::XHeader,
        EntryType::XGlobalHeader,
        EntryType::GNULongLink,
    ] {
        let header = header("results-1.0/x", 0, kind);
        refused(&deflated(&with(header.as_bytes())), "no regular file");
    }
}

#[test]
fn what_follows_the_end_is_refused_wherever_it_hides() {
    let (_dir, file) = honest();
    let hidden = entry("results-1.0/report/report.html", b"x");
    let mut after = inflated(&file);
    after.extend_from_slice(&hidden);
    refused(&deflated(&after), "something follows its end");
    // tar(1) reads the members of a gzip file as one stream.
    let mut tar = inflated(&file);
    tar.truncate(tar.len() - END);
    let mut members = deflated(&tar);
    let mut second = entry("other/x", b"x");
    second.resize(second.len() + END, 0);
    members.extend(deflated(&second));
    refused(&members, "beside its one directory");
    let mut garbage = fs::read(&file).unwrap();
    garbage.extend_from_slice(b"more");
    assert!(unpacked(&garbage, Limits::default()).is_err());
}

#[test]
fn a_file_beyond_its_limit_is_refused_before_it_is_written() {
    let small = Limits { bytes: 16 << 10 };
    let large = entry("results-1.0/trials/x/y.log", &vec![0; 2 << 10]);
    let error = unpacked(&deflated(&with(&large)), small).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("MiB that one file may have"), "{error}");
    assert!(error.contains("--unpack-limit"), "{error}");
    // A header may say what it likes.
    let lie = header("results-1.0/trials/x/y.log", 32 << 30, EntryType::Regular);
    refused(
        &deflated(&with(lie.as_bytes())),
        "has 32768 MiB, more than the 64 MiB",
    );
}

#[test]
fn all_files_together_have_a_limit_that_can_be_raised() {
    let each = vec![0; 64 << 10];
    let mut more = Vec::new();
    for n in 0..70 {
        more.extend(entry(&format!("results-1.0/trials/x/{n}.log"), &each));
    }
    let gzip = deflated(&with(&more));
    let error = unpacked(&gzip, Limits { bytes: 4 << 20 }).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("unpacks to more than 4 MiB"), "{error}");
    assert!(unpacked(&gzip, Limits::default()).is_ok());
}

#[test]
fn a_long_name_has_a_limit() {
    let name = vec![b'a'; 1 << 20];
    let mut long = header("././@LongLink", name.len() as u64, EntryType::GNULongName)
        .as_bytes()
        .to_vec();
    long.extend_from_slice(&name);
    refused(
        &deflated(&with(&long)),
        "a name in it has 1048576 bytes; the most is 4096",
    );
}

#[test]
fn a_capsule_that_is_cut_off_is_no_capsule() {
    let (_dir, file) = honest();
    let whole = fs::read(&file).unwrap();
    for length in [0, 1, 10, whole.len() / 2, whole.len() - 1] {
        assert!(
            unpacked(&whole[..length], Limits::default()).is_err(),
            "{length}"
        );
    }
}

/// The unpacked honest capsule, changed.
fn tampered(change: impl Fn(&Path)) -> Result<Vec<Tampering>, String> {
    let (_dir, file) = honest();
    let (_place, top) = unpacked(&fs::read(file).unwrap(), Limits::default()).unwrap();
    change(&top);
    let found = check_sums(&top, true).map_err(|e| e.to_string())?;
    Ok(found.unwrap().0)
}

#[test]
fn a_report_that_pack_did_not_write_is_named() {
    let found = tampered(|top| fs::write(top.join("report/report.html"), "x").unwrap());
    assert_eq!(
        found,
        Ok(vec![Tampering::Added("report/report.html".into())])
    );
}

#[test]
fn a_link_is_named_whatever_it_leads_to() {
    let found = tampered(|top| {
        let file = top.join("system.json");
        let elsewhere = top.with_file_name("elsewhere");
        fs::rename(&file, &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
    });
    assert_eq!(
        found,
        Ok(vec![
            Tampering::NoFile("system.json".into()),
            Tampering::Missing("system.json".into()),
        ])
    );
}

#[test]
fn the_list_itself_must_be_one_that_all_read_alike() {
    let listed = |change: &dyn Fn(&mut String)| {
        tampered(|top| {
            let path = top.join(SUMS);
            let mut text = fs::read_to_string(&path).unwrap();
            change(&mut text);
            fs::write(path, text).unwrap();
        })
    };
    let first = |text: &str| text.lines().next().unwrap().to_owned() + "\n";
    for (change, said) in [
        (
            &(|text: &mut String| *text += &first(text)) as &dyn Fn(&mut String),
            "for the second time",
        ),
        (&|text| text.push_str("# a remark\n"), "is not a hash"),
        (
            &|text| *text += &format!("{}  ../x\n", "0".repeat(64)),
            "names what no capsule has",
        ),
    ] {
        let error = listed(change).unwrap_err();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn a_file_that_is_listed_and_no_part_of_results_is_named() {
    let found = tampered(|top| {
        fs::write(top.join("README"), "x").unwrap();
        let path = top.join(SUMS);
        let mut text = fs::read_to_string(&path).unwrap();
        text += &format!("{}  README\n", results::capsule::sha256(b"x"));
        fs::write(path, text).unwrap();
    });
    assert_eq!(found, Ok(vec![Tampering::Foreign("README".into())]));
}

#[test]
fn a_signature_is_of_the_list_and_no_part_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("signed.tar.gz");
    let sign = |sums: &str| {
        Ok(format!(
            "signature of {}",
            results::capsule::sha256(sums.as_bytes())
        ))
    };
    let packer = Packer {
        capsule: &capsule(),
        reports: &[(REPORT, "{}\n".to_owned())],
        sign: Some(&sign),
    };
    let packed = packer.pack(&fixture(), &file).unwrap();
    let (_place, top) = unpacked(&fs::read(&file).unwrap(), Limits::default()).unwrap();
    let (tampering, fingerprint) = check_sums(&top, true).unwrap().unwrap();
    assert_eq!((tampering, &fingerprint), (Vec::new(), &packed.fingerprint));
    let signature = fs::read_to_string(top.join(SIGNATURE)).unwrap();
    assert_eq!(signature, format!("signature of {fingerprint}"));
}

#[test]
fn a_capsule_that_cannot_be_signed_is_not_left_behind() {
    let dir = tempfile::tempdir().unwrap();
    let sign = |_: &str| Err("no key".to_owned());
    let packer = Packer {
        capsule: &capsule(),
        reports: &[(REPORT, "{}\n".to_owned())],
        sign: Some(&sign),
    };
    let error = packer.pack(&fixture(), &dir.path().join("x")).unwrap_err();
    assert_eq!(error.to_string(), "signing the capsule: no key");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}
