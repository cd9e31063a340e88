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
    let text = fs::read_to_string(HOSTS).unwrap_or_default();
    if let Some(text) = with_loopback(&text, &setup.hostname) {
        let written = fs::create_dir_all("/etc").and_then(|()| fs::write(HOSTS, text));
        complain("name the loopback address", written);
    }
}

/// The text of a hosts file with the names of the loopback address; `None` where it has them.
fn with_loopback(text: &str, hostname: &str) -> Option<String> {
    let mut lines = text.lines().filter_map(|line| line.split('#').next());
    let has = lines.any(|line| {
        line.split_whitespace()
            .skip(1)
            .any(|name| name == "localhost")
    });
    (!has).then(|| format!("127.0.0.1 localhost {hostname}\n{text}"))
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
        let named = Some("127.0.0.1 localhost guest\n".to_owned());
        assert_eq!(with_loopback("", "guest"), named);
        assert_eq!(with_loopback("127.0.0.1\tlocalhost\n", "guest"), None);
        assert_eq!(with_loopback("::1 ip6 localhost # both\n", "guest"), None);
        let commented = "# 127.0.0.1 localhost\n10.0.0.1 db\n";
        assert_eq!(
            with_loopback(commented, "guest"),
            Some(format!("127.0.0.1 localhost guest\n{commented}"))
        );
    }
}
