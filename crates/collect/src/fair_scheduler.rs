//! The scheduler that the kernel has for ordinary tasks: CFS until Linux 6.5, EEVDF since 6.6, BORE
//! in kernels that are patched with it.

use crate::{read_number, read_trimmed};
use std::path::Path;

/// Scheduler of the fair class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FairScheduler {
    /// Completely Fair Scheduler, until Linux 6.5.
    Cfs,
    /// Earliest Eligible Virtual Deadline First, since Linux 6.6.
    Eevdf,
    /// Burst-Oriented Response Enhancer, a patch of EEVDF that has a switch.
    Bore,
}

/// Scheduler of the fair class of a kernel, and the reading that shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Scheduler in force.
    pub scheduler: FairScheduler,
    /// Reading that shows it: a file and its value, or the release.
    pub because: String,
}

impl FairScheduler {
    const ALL: [FairScheduler; 3] = [
        FairScheduler::Cfs,
        FairScheduler::Eevdf,
        FairScheduler::Bore,
    ];

    /// Scheduler of a name in small letters.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }

    /// Name as arms write it.
    pub fn name(self) -> &'static str {
        match self {
            FairScheduler::Cfs => "cfs",
            FairScheduler::Eevdf => "eevdf",
            FairScheduler::Bore => "bore",
        }
    }

    /// Name as reports show it.
    pub fn display_name(self) -> &'static str {
        match self {
            FairScheduler::Cfs => "CFS",
            FairScheduler::Eevdf => "EEVDF",
            FairScheduler::Bore => "BORE",
        }
    }

    /// Kernels that have it, as a sentence.
    pub fn found_in(self) -> &'static str {
        match self {
            FairScheduler::Cfs => "CFS is in Linux up to 6.5",
            FairScheduler::Eevdf => "EEVDF is in Linux since 6.6",
            FairScheduler::Bore => {
                "BORE is in kernels that are patched with it, while kernel.sched_bore is 1"
            }
        }
    }
}

/// The release of the first kernel with EEVDF.
const FIRST_EEVDF: (u32, u32) = (6, 6);

/// The scheduler of the fair class. Its knobs and features tell more than the release does, since
/// distributions take patches from later kernels. `None` where nothing of the kernel can be read.
pub fn read(root: &Path) -> Option<Found> {
    let found = |scheduler, because: String| Some(Found { scheduler, because });
    if read_number::<u32>(&root.join("proc/sys/kernel/sched_bore")) == Some(1) {
        return found(FairScheduler::Bore, "kernel.sched_bore is 1".to_owned());
    }
    let directory = root.join("sys/kernel/debug/sched");
    if let Some(features) = read_trimmed(&directory.join("features")) {
        return match features.contains("PLACE_LAG") {
            true => found(
                FairScheduler::Eevdf,
                "it has the feature PLACE_LAG".to_owned(),
            ),
            false => found(FairScheduler::Cfs, "it has no feature PLACE_LAG".to_owned()),
        };
    }
    let release = read_trimmed(&root.join("proc/sys/kernel/osrelease"))?;
    let version = major_and_minor(&release)?;
    let because = format!("Linux {release}");
    match version >= FIRST_EEVDF {
        true => found(FairScheduler::Eevdf, because),
        false => found(FairScheduler::Cfs, because),
    }
}

/// `6.12.1-amd64` is 6 and 12.
fn major_and_minor(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::tests::tree;

    fn found(files: &[(&str, &str)]) -> Option<FairScheduler> {
        read(tree(files).path()).map(|found| found.scheduler)
    }

    #[test]
    fn the_release_tells_where_nothing_else_does() {
        let of = |release| found(&[("proc/sys/kernel/osrelease", release)]);
        assert_eq!(of("6.1.0-42-amd64\n"), Some(FairScheduler::Cfs));
        assert_eq!(of("5.15.0\n"), Some(FairScheduler::Cfs));
        assert_eq!(of("6.6.0-rc1\n"), Some(FairScheduler::Eevdf));
        assert_eq!(of("7.2.13+deb14-amd64\n"), Some(FairScheduler::Eevdf));
        assert_eq!(of("unknown\n"), None);
    }

    #[test]
    fn features_tell_more_than_the_release() {
        let release = ("proc/sys/kernel/osrelease", "6.1.99-backports\n");
        let features = "sys/kernel/debug/sched/features";
        let with = |text| found(&[release, (features, text)]);
        assert_eq!(
            with("PLACE_LAG RUN_TO_PARITY\n"),
            Some(FairScheduler::Eevdf)
        );
        assert_eq!(with("GENTLE_FAIR_SLEEPERS\n"), Some(FairScheduler::Cfs));
    }

    #[test]
    fn bore_is_told_by_its_switch() {
        let release = ("proc/sys/kernel/osrelease", "6.18.0-cachyos\n");
        let switch = |text| found(&[release, ("proc/sys/kernel/sched_bore", text)]);
        assert_eq!(switch("1\n"), Some(FairScheduler::Bore));
        assert_eq!(switch("0\n"), Some(FairScheduler::Eevdf));
    }
}
