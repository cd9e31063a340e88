//! The guest's root: the host's files over 9p (or a disk image), read-only, below
//! an overlay whose upper half is memory. Nothing that is written survives.

use super::super::frame::{HOST_TAG, PACKED_ROOT, Setup};
use super::mounts::options;
use super::{Failure, at, log};
use rustix::mount::{MountFlags, mount, mount_bind, mount_move};
use rustix::process::chroot;
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Path of this program once the initramfs is out of sight.
pub const PROGRAM: &str = "/run/schedlab/schedlab";
const DISK: &str = "/dev/vda";
const DISK_FORMATS: [&str; 4] = ["ext4", "squashfs", "erofs", "ext2"];
/// The host's files do not change under a guest that is measured, so its kernel may
/// keep what it has read.
const SHARE_OPTIONS: &str = "trans=virtio,version=9p2000.L,msize=262144,cache=loose";

/// Put the root together and make it `/`.
pub fn enter(setup: &Setup) -> Result<(), Failure> {
    if setup.packed {
        return enter_packed();
    }
    let lower = if setup.image {
        mount_image()?
    } else {
        mount_host("/host").map_err(at("mount the host's files"))?;
        "/host"
    };
    cover(lower).map_err(at("put a tmpfs over the root"))?;
    show_program().map_err(at("show this program in the root"))?;
    switch().map_err(at("switch to the root"))
}

/// The files of the initramfs itself, which is memory already.
fn enter_packed() -> Result<(), Failure> {
    let packed = Path::new("/").join(PACKED_ROOT);
    mount_bind(&packed, "/root").map_err(|e| at("show the packed root")(e.into()))?;
    show_program().map_err(at("show this program in the root"))?;
    switch().map_err(at("switch to the root"))
}

fn mount_host(target: &str) -> io::Result<()> {
    let options = options(SHARE_OPTIONS);
    Ok(mount(
        HOST_TAG,
        target,
        "9p",
        MountFlags::RDONLY,
        options.as_c_str(),
    )?)
}

fn mount_image() -> Result<&'static str, Failure> {
    let target = "/image";
    for format in DISK_FORMATS {
        if mount(DISK, target, format, MountFlags::RDONLY, c"").is_ok() {
            return Ok(target);
        }
    }
    Err(Failure(format!(
        "the image {DISK} holds none of the file systems {}",
        DISK_FORMATS.join(", ")
    )))
}

fn cover(lower: &str) -> io::Result<()> {
    mount("tmpfs", "/upper", "tmpfs", MountFlags::empty(), c"mode=755")?;
    fs::create_dir("/upper/data")?;
    fs::create_dir("/upper/work")?;
    let options = options(&format!(
        "lowerdir={lower},upperdir=/upper/data,workdir=/upper/work"
    ));
    Ok(mount(
        "overlay",
        "/root",
        "overlay",
        MountFlags::empty(),
        options.as_c_str(),
    )?)
}

fn show_program() -> io::Result<()> {
    fs::create_dir_all("/root/run")?;
    mount(
        "tmpfs",
        "/root/run",
        "tmpfs",
        MountFlags::empty(),
        c"mode=755",
    )?;
    let shown = Path::new("/root").join(PROGRAM.trim_start_matches('/'));
    fs::create_dir_all(shown.parent().unwrap_or(&shown))?;
    File::create(&shown)?;
    Ok(mount_bind("/init", &shown)?)
}

fn switch() -> io::Result<()> {
    std::env::set_current_dir("/root")?;
    mount_move(".", "/")?;
    chroot(".")?;
    std::env::set_current_dir("/")
}

/// An image may have no name for the loopback address: the hosts file of an exported container is
/// empty, since its engine fills it.
pub fn name_loopback(setup: &Setup) {
    const HOSTS: &str = "/etc/hosts";
    if !setup.image {
        return;
    }
    let named = doors::read::small_file_bytes(HOSTS).or_else(|e| match e.kind() {
        io::ErrorKind::NotFound => Ok(Vec::new()),
        _ => Err(e),
    });
    let named = named.and_then(|hosts| {
        let Some(hosts) = with_loopback(&hosts, &setup.hostname) else {
            return Ok(());
        };
        fs::create_dir_all("/etc")?;
        fs::write(HOSTS, hosts)
    });
    complain("name the loopback address", named);
}

/// The bytes of a hosts file with the names of the loopback address; `None` where it has them.
fn with_loopback(hosts: &[u8], hostname: &str) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(hosts);
    let mut lines = text.lines().filter_map(|line| line.split('#').next());
    let has = lines.any(|line| {
        let mut words = line.split_whitespace();
        let is_loopback = words
            .next()
            .is_some_and(|address| address.starts_with("127."));
        is_loopback && words.any(|name| name == "localhost")
    });
    (!has).then(|| {
        let mut named = format!("127.0.0.1 localhost {hostname}\n").into_bytes();
        named.extend_from_slice(hosts);
        named
    })
}

/// libbpf reads `/boot/config-RELEASE`, modprobe `/lib/modules/RELEASE`.
pub fn show_kernel(setup: &Setup, release: &str, config: &[u8]) {
    if !config.is_empty() {
        let path = format!("/boot/config-{release}");
        let written = fs::create_dir_all("/boot").and_then(|()| fs::write(&path, config));
        complain(&path, written);
    }
    if let Some(modules) = setup.modules.as_ref().filter(|_| !setup.image) {
        let path = format!("/lib/modules/{release}");
        if *modules != Path::new(&path) {
            complain(&path, show_modules(modules, &path));
        }
    }
}

fn show_modules(modules: &Path, path: &str) -> io::Result<()> {
    fs::create_dir_all(path)?;
    Ok(mount_bind(modules, path)?)
}

/// Without these a guest still measures.
fn complain(what: &str, result: io::Result<()>) {
    if let Err(e) = result {
        log(&format!("{what}: {e}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_address_gets_its_names_where_an_image_has_none() {
        let named = |hosts: &str| with_loopback(hosts.as_bytes(), "guest");
        let with = |hosts: &str| Some(format!("127.0.0.1 localhost guest\n{hosts}").into_bytes());
        assert_eq!(named(""), with(""));
        assert_eq!(named("127.0.0.1\tlocalhost\n"), None);
        assert_eq!(named("127.0.1.1 db localhost # both\n"), None);
        // A guest may be without IPv6.
        assert_eq!(named("::1 localhost\n"), with("::1 localhost\n"));
        let commented = "# 127.0.0.1 localhost\n10.0.0.1 db\n";
        assert_eq!(named(commented), with(commented));
        // Names of the image stay, whatever bytes they are.
        let kept = with_loopback(b"10.0.0.1 \xff\n", "guest").unwrap();
        assert!(kept.ends_with(b"10.0.0.1 \xff\n"));
    }
}
