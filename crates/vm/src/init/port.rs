//! Named virtio serial ports. There is no udev, so the names are read from
//! `/sys/class/virtio-ports`.

use super::{Failure, at};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(2);

/// Open the port called `name` for both ways; the driver may still be at it.
pub fn open(name: &str) -> Result<File, Failure> {
    let start = Instant::now();
    loop {
        if let Some(device) = find(Path::new("/sys/class/virtio-ports"), name) {
            return File::options()
                .read(true)
                .write(true)
                .open(Path::new("/dev").join(&device))
                .map_err(at(format!("open port {name}")));
        }
        if start.elapsed() > LIMIT {
            return Err(Failure(format!("the port {name} did not appear")));
        }
        std::thread::sleep(LOOK);
    }
}

fn find(class: &Path, name: &str) -> Option<PathBuf> {
    fs::read_dir(class)
        .ok()?
        .flatten()
        .find(|port| {
            doors::read::kernel_text(port.path().join("name")).is_ok_and(|text| text.trim() == name)
        })
        .map(|port| PathBuf::from(port.file_name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_found_by_its_name() {
        let class = tempfile::tempdir().unwrap();
        for (port, name) in [("vport0p1", "one\n"), ("vport0p2", "two\n")] {
            fs::create_dir(class.path().join(port)).unwrap();
            fs::write(class.path().join(port).join("name"), name).unwrap();
        }
        assert_eq!(find(class.path(), "two"), Some(PathBuf::from("vport0p2")));
        assert_eq!(find(class.path(), "three"), None);
    }
}
