//! The kernel and the first file system of the guests. The kernel is dom0's own, and the file
//! system holds this very program.

use cpio::NewcBuilder;
use cpio::newc::trailer;
use doors::written;
use load::guests::DIRECTORY;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

const PROGRAM: u32 = 0o100_755;
const DIRECTORY_MODE: u32 = 0o040_755;
const DEVICE: u32 = 0o020_600;
/// Needed by the kernel beside the file system, which is there twice while it is unpacked.
const KERNEL_MIB: u64 = 96;

/// Files that guests start from. Dropping it removes them.
#[derive(Debug)]
pub struct Image {
    /// Kernel.
    pub kernel: PathBuf,
    /// First file system.
    pub initramfs: PathBuf,
    /// Directory for more files.
    pub directory: PathBuf,
}

impl Image {
    /// Makes the file system.
    pub fn make() -> Result<Self, String> {
        let kernel = kernel();
        if !kernel.is_file() {
            return Err(lacks_kernel(&kernel));
        }
        let directory = PathBuf::from(DIRECTORY);
        let initramfs = directory.join("initramfs.cpio");
        let failed = |e| format!("make {}: {e}", initramfs.display());
        written::make_directory(&directory).map_err(failed)?;
        let program = doors::read::large_file_bytes("/proc/self/exe").map_err(failed)?;
        let bytes = archive(&program).map_err(failed)?;
        written::write_file(&initramfs, bytes).map_err(failed)?;
        Ok(Image {
            kernel,
            initramfs,
            directory,
        })
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        // The journal removes it where this does not.
        let _ = written::remove_recorded(&self.directory);
    }
}

/// Memory of a guest. Its first file system may have half of what is left beside the packed program, and the
/// program is unpacked into it.
pub fn memory_mib() -> u64 {
    let program = fs::metadata("/proc/self/exe").map_or(0, |file| file.len());
    KERNEL_MIB + 3 * program.div_ceil(1 << 20)
}

/// Kernel that dom0 runs, where distributions put it.
pub fn kernel() -> PathBuf {
    let release = rustix::system::uname();
    let release = release.release().to_string_lossy();
    Path::new("/boot").join(format!("vmlinuz-{release}"))
}

/// Problem of a dom0 without the image of its kernel.
pub fn lacks_kernel(kernel: &Path) -> String {
    format!(
        "the guests run dom0's kernel, and {} is not there",
        kernel.display()
    )
}

fn archive(program: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut out = Vec::new();
    for directory in ["dev", "proc"] {
        NewcBuilder::new(directory)
            .mode(DIRECTORY_MODE)
            .nlink(1)
            .write(&mut out, 0)
            .finish()?;
    }
    // Where the kernel opens the standard streams of the first process.
    NewcBuilder::new("dev/console")
        .mode(DEVICE)
        .nlink(1)
        .rdev_major(5)
        .rdev_minor(1)
        .write(&mut out, 0)
        .finish()?;
    let size = u32::try_from(program.len()).map_err(std::io::Error::other)?;
    let mut writer = NewcBuilder::new("init")
        .mode(PROGRAM)
        .nlink(1)
        .write(&mut out, size);
    writer.write_all(program)?;
    writer.finish()?;
    trailer(&mut out)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_system_has_the_program_and_the_console() {
        let bytes = archive(b"program").unwrap();
        let mut names = Vec::new();
        let mut rest = &bytes[..];
        loop {
            let reader = cpio::NewcReader::new(rest).unwrap();
            if reader.entry().is_trailer() {
                break;
            }
            names.push((reader.entry().name().to_owned(), reader.entry().mode()));
            rest = reader.finish().unwrap();
        }
        assert_eq!(names[2], ("dev/console".to_owned(), DEVICE));
        assert_eq!(names[3], ("init".to_owned(), PROGRAM));
    }
}
