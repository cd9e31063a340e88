//! Architectures of guests: all that is different between them, in one table. A guest of this
//! machine's can be virtual; every other one is emulated.

use model::Invalid;
use std::path::{Path, PathBuf};

/// Name of this program.
const PROGRAM: &str = "schedlab";

/// An architecture that guests can have.
#[derive(Debug, PartialEq, Eq)]
pub struct Architecture {
    /// Name that uname(2) gives to its machines.
    pub name: &'static str,
    /// Name that Debian gives to it.
    pub debian: &'static str,
    /// `e_machine` of its programs (elf(5)).
    pub machine: u16,
    /// Name of its QEMU, looked for on `PATH`.
    pub qemu: &'static str,
    /// Package of Debian with that QEMU.
    pub(crate) qemu_package: &'static str,
    /// Package of Debian that leads to the newest kernel. The full flavour: the cloud flavour has no
    /// 9p.
    pub(crate) kernel_package: &'static str,
    /// Image of a kernel in a built tree.
    pub(crate) built_image: &'static str,
    /// Kind of an image in words.
    pub(crate) image: &'static str,
    /// Machine that QEMU emulates.
    pub(crate) board: &'static str,
    /// CPU of an emulated guest.
    pub(crate) emulated_cpu: &'static str,
    /// Device of its first serial port.
    pub(crate) console: &'static str,
    /// Level of the topology that has the last-level cache, as QEMU calls it.
    pub(crate) caches: &'static str,
    /// Arguments of an emulated kernel about its clock.
    pub(crate) emulated_clock: &'static str,
    /// The same where instructions are counted.
    pub(crate) counted_clock: &'static str,
}

/// 64-bit PCs.
///
/// CPU: without SMAP, since code that the kernel patches at boot has crashed in about one of twenty
/// boots with it under QEMU 7.2. Without ERMS, since a kernel that sees it clears and copies pages by string
/// instructions of single bytes, which are fast in hardware, and of which QEMU emulates each byte: a boot took
/// a tenth longer with it. Clock: emulated time-stamp counters agree, but a busy host delays the
/// watchdog that compares them with slower clocks, and the kernel would fall back to those.
///
/// Page-table isolation in virtual time: QEMU grows and shrinks its emulated TLB by the time of this
/// machine (`tlb_mmu_resize_locked`), so a busy machine decides which translations are still there. Linux
/// may go on with one that it has changed and not yet flushed: of two threads, one is preempted in the
/// middle of a fork and the other writes. Then the machine decides whether that write faults. With
/// isolation each entry to the kernel and each exit flushes, and there is nothing left to decide.
pub static X86_64: Architecture = Architecture {
    name: "x86_64",
    debian: "amd64",
    machine: 62,
    qemu: "qemu-system-x86_64",
    qemu_package: "qemu-system-x86",
    kernel_package: "linux-image-amd64",
    built_image: "arch/x86/boot/bzImage",
    image: "x86-64 bzImage",
    board: "pc,hpet=off,usb=off,vmport=off",
    emulated_cpu: "max,-smap,-erms",
    console: "ttyS0",
    caches: "dies",
    emulated_clock: "tsc=reliable",
    counted_clock: "tsc=reliable pti=on",
};

/// 64-bit ARM. The board of QEMU has all its devices on PCI and describes itself by a device tree. Of
/// pointer authentication the CPU has QEMU's own method: the architected one costs half of the time of
/// emulation.
pub static AARCH64: Architecture = Architecture {
    name: "aarch64",
    debian: "arm64",
    machine: 183,
    qemu: "qemu-system-aarch64",
    qemu_package: "qemu-system-arm",
    kernel_package: "linux-image-arm64",
    built_image: "arch/arm64/boot/Image",
    image: "arm64 Image",
    board: "virt,gic-version=max",
    emulated_cpu: "max,pauth-impdef=on",
    console: "ttyAMA0",
    caches: "clusters",
    emulated_clock: "",
    counted_clock: "",
};

/// All of them.
pub static ALL: [&Architecture; 2] = [&X86_64, &AARCH64];

impl Architecture {
    /// The one of this name, as uname(2) or Debian has it.
    pub fn find(name: &str) -> Option<&'static Self> {
        let all = ALL.into_iter();
        all.clone()
            .find(|known| known.name == name || known.debian == name)
    }

    /// The architecture of this program; that of PCs where guests cannot have its own.
    pub fn of_this_machine() -> &'static Self {
        Self::find(std::env::consts::ARCH).unwrap_or(&X86_64)
    }

    /// True if this machine's CPUs can be those of a guest.
    pub fn is_of_this_machine(&self) -> bool {
        self.name == std::env::consts::ARCH
    }

    /// The architecture that a key names; without one, that of this machine.
    pub fn named(name: Option<&str>) -> Result<&'static Self, Invalid> {
        let Some(name) = name else {
            return Ok(Self::of_this_machine());
        };
        Self::find(name).ok_or_else(|| {
            let known = ALL.map(|one| one.name).join(" or ");
            let what = format!("no guest has the architecture {name:?}");
            Invalid::new("architecture", what).with_remedy(format!("write {known}"))
        })
    }

    /// This program, built for the architecture, beside the file of this one.
    pub fn find_program(&self, own: &Path) -> Option<PathBuf> {
        find_build(self.name, own)
    }
}

/// This program, built for machines of this name: `schedlab-NAME` in the folder of this one or, as packages
/// have it, in `lib/schedlab` beside that folder.
pub fn find_build(machine: &str, own: &Path) -> Option<PathBuf> {
    let folder = std::fs::canonicalize(own).ok()?.parent()?.to_owned();
    let name = format!("{PROGRAM}-{machine}");
    let places = [
        folder.join(&name),
        folder.join("../lib/schedlab").join(&name),
    ];
    places.into_iter().find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn an_architecture_has_two_names_and_others_are_refused() {
        assert_eq!(Architecture::find("arm64"), Some(&AARCH64));
        assert_eq!(Architecture::named(Some("x86_64")), Ok(&X86_64));
        let refused = Architecture::named(Some("vax")).unwrap_err();
        assert_eq!(refused.key, "architecture");
        let own = Architecture::named(None).unwrap();
        assert!(own.is_of_this_machine() && own.name == std::env::consts::ARCH);
    }

    #[test]
    fn a_build_for_another_architecture_lies_beside_the_program_or_below_lib() {
        let root = tempfile::tempdir().unwrap();
        let (bin, lib) = (root.path().join("bin"), root.path().join("lib/schedlab"));
        fs::create_dir_all(&bin).unwrap();
        fs::create_dir_all(&lib).unwrap();
        let own = bin.join("schedlab");
        fs::write(&own, "").unwrap();
        assert_eq!(AARCH64.find_program(&own), None);
        fs::write(lib.join("schedlab-aarch64"), "lib").unwrap();
        let found = |at: Option<PathBuf>| fs::read_to_string(at.unwrap()).unwrap();
        assert_eq!(found(AARCH64.find_program(&own)), "lib");
        fs::write(bin.join("schedlab-aarch64"), "bin").unwrap();
        assert_eq!(found(AARCH64.find_program(&own)), "bin");
    }
}
