//! Heat: throttling (`/sys/devices/system/cpu/cpuN/thermal_throttle`, x86) and
//! temperatures (`/sys/class/thermal`, `/sys/class/hwmon`;
//! Documentation/driver-api/thermal/sysfs-api.rst, hwmon/sysfs-interface.rst).

use crate::{read_number, read_trimmed};
use std::fs;
use std::path::{Path, PathBuf};

/// Events of all cores and packages since boot. Threads of a core count the same
/// event again: good for "none" and for "some", not for a number of events.
pub fn throttle_count(root: &Path) -> Option<u64> {
    let cpus = directories(&root.join("sys/devices/system/cpu"));
    let counts: Vec<u64> = cpus
        .iter()
        .flat_map(|cpu| {
            ["core_throttle_count", "package_throttle_count"]
                .map(|file| cpu.join("thermal_throttle").join(file))
        })
        .filter_map(|file| read_number(&file))
        .collect();
    (!counts.is_empty()).then(|| counts.iter().sum())
}

/// hwmon drivers that measure CPUs.
const CPU_SENSORS: &[&str] = &["coretemp", "k10temp", "zenpower", "cpu_thermal"];

/// The hottest CPU sensor, else the hottest thermal zone.
pub fn hottest_celsius(root: &Path) -> Option<f64> {
    hottest(&sensor_files(root)).or_else(|| {
        let zones = directories(&root.join("sys/class/thermal"));
        hottest(
            &zones
                .iter()
                .map(|zone| zone.join("temp"))
                .collect::<Vec<_>>(),
        )
    })
}

/// Files that count in thousandths of a degree.
fn hottest(files: &[PathBuf]) -> Option<f64> {
    let readings = files.iter().filter_map(|file| read_number::<f64>(file));
    readings
        .map(|thousandths| thousandths / 1000.0)
        .max_by(f64::total_cmp)
}

fn sensor_files(root: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for device in directories(&root.join("sys/class/hwmon")) {
        let name = read_trimmed(&device.join("name")).unwrap_or_default();
        if CPU_SENSORS.contains(&name.as_str()) {
            files.extend(
                directories(&device)
                    .into_iter()
                    .filter(|file| is_temperature(file)),
            );
        }
    }
    files
}

/// `temp1_input`, `temp2_input`, …
fn is_temperature(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("temp") && name.ends_with("_input")
}

fn directories(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::tests::tree;

    #[test]
    fn throttling_is_summed_over_cores_and_packages() {
        let directory = "sys/devices/system/cpu/cpu0/thermal_throttle";
        let (core, package) = (
            format!("{directory}/core_throttle_count"),
            format!("{directory}/package_throttle_count"),
        );
        let root = tree(&[(&core, "2\n"), (&package, "1\n")]);
        assert_eq!(throttle_count(root.path()), Some(3));
        assert_eq!(throttle_count(tree(&[]).path()), None);
    }

    #[test]
    fn the_hottest_cpu_sensor_counts_and_a_disk_does_not() {
        let root = tree(&[
            ("sys/class/hwmon/hwmon0/name", "nvme\n"),
            ("sys/class/hwmon/hwmon0/temp1_input", "90000\n"),
            ("sys/class/hwmon/hwmon1/name", "k10temp\n"),
            ("sys/class/hwmon/hwmon1/temp1_input", "51250\n"),
            ("sys/class/hwmon/hwmon1/temp2_input", "47000\n"),
        ]);
        assert_eq!(hottest_celsius(root.path()), Some(51.25));
    }

    #[test]
    fn thermal_zones_are_read_where_there_is_no_sensor() {
        let root = tree(&[("sys/class/thermal/thermal_zone0/temp", "40000\n")]);
        assert_eq!(hottest_celsius(root.path()), Some(40.0));
        assert_eq!(hottest_celsius(tree(&[]).path()), None);
    }
}
