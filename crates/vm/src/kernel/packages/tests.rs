use super::*;
use crate::architecture::X86_64;
use crate::kernel::image::tests::bzimage;
use std::process::Command;

/// Files of a kernel as packages of some distribution have them, below a folder.
fn tree(root: &Path, release: &str, image: &str, modules: &str) {
    let write = |path: String, bytes: &[u8]| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    };
    write(image.replace("REL", release), &bzimage(release));
    write(format!("{modules}/{release}/modules.order"), b"");
    write(format!("{modules}/{release}/kernel/x.ko"), b"module");
    write("etc/x".to_owned(), b"no part of a kernel");
    let link = root.join(format!("{modules}/{release}/build"));
    std::os::unix::fs::symlink("/etc", link).unwrap();
}

/// Output of a shell command, with arguments.
fn shell(script: &str, arguments: &[&Path]) -> Vec<u8> {
    let mut command = Command::new("sh");
    let output = command.args(["-ec", script, "sh"]).args(arguments).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

fn check(packages: &[PathBuf], cache: &Path, release: &str) {
    let paths: Vec<String> = packages
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let name = format!("file:{}", paths.join(","));
    for _again in 0..2 {
        let kernel = super::super::resolve(&name, &X86_64, cache).unwrap();
        assert_eq!(kernel.release, release);
        let modules = kernel.modules_dir.unwrap();
        assert!(
            modules.join("kernel/x.ko").is_file(),
            "{}",
            modules.display()
        );
        assert!(!modules.join("build").exists());
        let package = super::super::dir_name(&packages[0]);
        assert!(kernel.origin.contains(&package), "{}", kernel.origin);
    }
    let kernels = fs::read_dir(cache.join("kernels")).unwrap().flatten();
    let etc = kernels.filter(|entry| entry.path().join("etc").exists());
    assert_eq!(etc.count(), 0);
}

#[test]
fn packages_of_pacman_are_kernels() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    tree(
        &root,
        "6.12.1-2-cachyos",
        "usr/lib/modules/REL/vmlinuz",
        "usr/lib/modules",
    );
    let package = dir
        .path()
        .join("linux-cachyos-6.12.1-2-x86_64_v3.pkg.tar.zst");
    shell(
        "tar -C \"$1\" -cf - . | zstd -q > \"$2\"",
        &[&root, &package],
    );
    check(&[package], &dir.path().join("cache"), "6.12.1-2-cachyos");
}

#[test]
fn an_image_and_its_modules_may_be_two_packages_of_debian_and_its_like() {
    let dir = tempfile::tempdir().unwrap();
    let (image, modules) = (dir.path().join("image"), dir.path().join("modules"));
    let release = "6.8.0-45-generic";
    tree(&image, release, "boot/vmlinuz-REL", "lib/modules");
    fs::remove_dir_all(image.join("lib")).unwrap();
    tree(&modules, release, "unused/REL", "lib/modules");
    let debs = [
        (
            &image,
            "linux-image-6.8.0-45-generic_6.8.0-45.45_amd64.deb",
            "xz",
        ),
        (
            &modules,
            "linux-modules-6.8.0-45-generic_6.8.0-45.45_amd64.deb",
            "zstd",
        ),
    ];
    let debs = debs.map(|(root, name, compression)| {
        let deb = dir.path().join(name);
        let data = shell(
            &format!("tar -C \"$1\" -cf - . | {compression} -c"),
            &[root],
        );
        fs::write(
            &deb,
            ar(&[
                ("debian-binary", b"2.0\n"),
                ("control.tar.xz", b"odd"),
                ("data.tar.x", &data),
            ]),
        )
        .unwrap();
        deb
    });
    check(&debs, &dir.path().join("cache"), release);
}

/// An archive of ar(5).
fn ar(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, data) in members {
        bytes.extend(
            format!(
                "{name:<16}0           0     0     100644  {:<10}`\n",
                data.len()
            )
            .bytes(),
        );
        bytes.extend(*data);
        bytes.extend(vec![b'\n'; data.len() % 2]);
    }
    bytes
}

/// A package of RPM with empty headers, of which the first is filled up.
fn rpm(payload: &[u8]) -> Vec<u8> {
    let mut bytes = b"\xed\xab\xee\xdb".to_vec();
    bytes.resize(96, 0);
    for store in [3, 0] {
        bytes.extend(b"\x8e\xad\xe8\x01\0\0\0\0\0\0\0\0\0\0\0");
        bytes.push(store);
        bytes.resize(
            bytes.len().next_multiple_of(8) + usize::from(store > 0) * 8,
            0,
        );
    }
    bytes.extend(payload);
    bytes
}

#[test]
fn packages_of_rpm_are_kernels() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    let release = "6.11.4-301.fc41.x86_64";
    tree(&root, release, "lib/modules/REL/vmlinuz", "lib/modules");
    let mut archive = Vec::new();
    for file in ["vmlinuz", "modules.order", "kernel/x.ko"] {
        let name = format!("./lib/modules/{release}/{file}");
        let data = fs::read(root.join(&name)).unwrap();
        let entry = cpio::NewcBuilder::new(&name).mode(0o100_644);
        let mut writer = entry.write(&mut archive, u32::try_from(data.len()).unwrap());
        io::Write::write_all(&mut writer, &data).unwrap();
        writer.finish().unwrap();
    }
    let outside = cpio::NewcBuilder::new("lib/modules/../../etc/x").mode(0o100_644);
    outside.write(&mut archive, 0).finish().unwrap();
    cpio::newc::trailer(&mut archive).unwrap();
    let raw = dir.path().join("raw");
    fs::write(&raw, archive).unwrap();
    let package = dir.path().join("kernel-core-6.11.4-301.fc41.x86_64.rpm");
    fs::write(&package, rpm(&shell("zstd -qc \"$1\"", &[&raw]))).unwrap();
    check(&[package], &dir.path().join("cache"), release);
}

#[test]
fn a_package_that_is_none_or_is_damaged_is_refused_with_a_remedy_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.display().to_string()
    };
    let root = dir.path().join("root");
    tree(&root, "6.1.0", "boot/vmlinuz-REL", "lib/modules");
    let whole = dir.path().join("whole");
    shell("tar -C \"$1\" -cf - . | zstd -q > \"$2\"", &[&root, &whole]);
    let half = fs::read(&whole).unwrap();
    let half = &half[..half.len() / 2];
    let cache = dir.path().join("cache");
    for (path, what) in [
        (
            write("a.deb", b"text, and no package"),
            "no archive of ar(5)",
        ),
        (write("b.deb", &ar(&[("control.tar", b"x")])), "no data.tar"),
        (write("c.rpm", &[0; 200]), "no RPM package"),
        (
            write("d.pkg.tar.zst", b"text that is longer"),
            "neither zstd",
        ),
        (write("e.pkg.tar.zst", half), "it cannot be unpacked"),
        (format!("{},x.zip", write("f.deb", b"")), "x.zip"),
        ("/no/such.deb".to_owned(), "No such file"),
    ] {
        let error = super::super::resolve(&format!("file:{path}"), &X86_64, &cache).unwrap_err();
        assert!(error.to_string().contains(what), "{path}: {error}");
        let left = fs::read_dir(cache.join("kernels")).into_iter().flatten();
        assert_eq!(
            left.flatten()
                .filter(|entry| super::super::dir_name(&entry.path()).starts_with("file_"))
                .count(),
            0
        );
    }
}

/// A member that says how long its name is may lie, and an honest long name is taken.
#[test]
fn a_name_in_an_archive_takes_no_more_memory_than_a_name_may_have() {
    let packed = |length: usize| {
        let mut archive = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(EntryType::GNULongName);
        header.set_size(length as u64);
        header.set_cksum();
        let name = format!("lib/modules/{}", "x/".repeat(length / 2));
        archive.append(&header, &name.as_bytes()[..length]).unwrap();
        let mut header = tar::Header::new_gnu();
        header.set_size(1);
        header.set_cksum();
        archive.append(&header, &b"k"[..]).unwrap();
        archive.into_inner().unwrap()
    };
    let dir = tempfile::tempdir().unwrap();
    files_of_tar(&packed(200)[..], dir.path()).unwrap();
    assert!(dir.path().join("lib/modules/x/x").is_dir());
    assert!(files_of_tar(&packed(1 << 20)[..], dir.path()).is_err());
    let mut head = [b'0'; CPIO_HEAD];
    head[..6].copy_from_slice(b"070701");
    head[94..102].copy_from_slice(b"ffffffff");
    let error = files_of_cpio(&head[..], dir.path()).unwrap_err();
    assert!(error.to_string().contains("too long"), "{error}");
}
