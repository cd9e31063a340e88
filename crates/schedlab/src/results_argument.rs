//! Results that are given as a directory or as a capsule.

use crate::args::UnpackArgs;
use crate::exit::{self, CliError};
use crate::measure;
use doors::written::{self, Part};
use results::capsule::{self, Limits};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// The directory of some results; an unpacked capsule is removed at the end.
pub struct Opened {
    dir: PathBuf,
    /// Directory of an unpacked capsule.
    unpacked: Option<Unpacked>,
}

impl Opened {
    pub fn open(path: &Path, limits: &UnpackArgs) -> Result<Opened, CliError> {
        if path.is_dir() {
            return Ok(Opened {
                dir: path.to_owned(),
                unpacked: None,
            });
        }
        if !path.exists() {
            return Err(CliError::usage(
                format!("{} does not exist", path.display()),
                "give a results directory, or a capsule that `schedlab pack` made",
            ));
        }
        let unpacked = Unpacked::make().map_err(CliError::internal)?;
        let limits = Limits {
            bytes: limits.unpack_limit,
        };
        Ok(Opened {
            dir: unpacked.unpack(path, limits)?,
            unpacked: Some(unpacked),
        })
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn is_capsule(&self) -> bool {
        self.unpacked.is_some()
    }
}

/// A directory for what a capsule unpacks to. It is removed at the end, and by a signal; after a kill
/// the next command that unpacks one removes it.
struct Unpacked {
    into: PathBuf,
    /// Locked while something is written there: what is removed meanwhile would be made again.
    part: Arc<Mutex<Option<Part>>>,
    interrupted: Arc<AtomicBool>,
    signals: Handle,
}

impl Unpacked {
    fn make() -> std::io::Result<Self> {
        let part = Part::create_in(&std::env::temp_dir())?;
        let into = part.path();
        written::make_private_directory(&into)?;
        let part = Arc::new(Mutex::new(Some(part)));
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let handle = signals.handle();
        let interrupted = Arc::<AtomicBool>::default();
        let of_thread = (Arc::clone(&part), Arc::clone(&interrupted));
        std::thread::spawn(move || {
            let (part, interrupted) = of_thread;
            for _ in signals.forever() {
                // A run that is under way ends in order.
                if !measure::ends_in_order() {
                    interrupted.store(true, Ordering::SeqCst);
                    remove(&part);
                    std::process::exit(exit::INTERRUPTED.into());
                }
            }
        });
        Ok(Unpacked {
            into,
            part,
            interrupted,
            signals: handle,
        })
    }
}

impl Unpacked {
    fn unpack(&self, capsule: &Path, limits: Limits) -> Result<PathBuf, CliError> {
        let _writing = self.part.lock();
        let unpacked = capsule::unpack_capsule(capsule, &self.into, limits, &self.interrupted);
        match self.interrupted.load(Ordering::SeqCst) {
            true => Err(CliError::Interrupted),
            false => Ok(unpacked?),
        }
    }
}

fn remove(part: &Mutex<Option<Part>>) {
    if let Ok(mut part) = part.lock() {
        part.take();
    }
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        self.signals.close();
        remove(&self.part);
    }
}
