//! A virtual machine as a place for trials: its agent runs in a guest with the kernel that
//! the arm names. Guests themselves are in the crate `vm`.

mod guests;
mod session;
mod virtual_time;

use crate::{
    Boot, Can, Host, Keys, Made, ReadError, Session, Short, Shown, Target, TargetDef, TargetError,
};
use ::vm::boot::Guest;
use ::vm::failure::io;
use ::vm::snapshot::Done;
use ::vm::{NAME, Options, Saved, Vm, VmError, VmSpec, keys};
use model::{Calibration, Experiment, Fact, Invalid, Problem, TargetSpec, Warning};
use session::VmSession;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use virtual_time::VirtualSession;

/// Entry in the table of targets.
pub static DEF: TargetDef = TargetDef {
    name: NAME,
    summary: "a virtual machine with its own kernel (QEMU; no root needed)",
    keys: keys::KEYS,
    shorts: &[Short::of_kind(NAME, "kernel")],
    read,
    can: |spec| Ok(guest_abilities(&VmSpec::from_target(spec)?)),
    expose: Some(expose_paths),
    shown: shown_lines,
    make: make_target,
    fleet: Some(|spec, _, _| guests::find_room(spec)),
};

fn read(keys: Keys) -> Result<TargetSpec, ReadError> {
    let vm = keys::read(keys)?;
    vm.check()?;
    Ok(TargetSpec::from(&vm))
}

/// The abilities of a guest. On a Xen host the agent is in dom0, which has one CPU.
pub(crate) fn guest_abilities(spec: &VmSpec) -> Can {
    Can {
        kernels: true,
        reboots: false,
        cpus: Some(match spec.hypervisor {
            Some(_) => 1,
            None => spec.cpus,
        }),
        // Nothing from outside reaches a guest in virtual time.
        apart: !spec.is_virtual(),
        here: true,
        programs_of_here: spec.hypervisor.is_none()
            && spec.architecture().is_of_this_machine()
            && vm::image_path(&spec.root).is_none(),
        // A dom0 starts guests of its own, and is no place to lose CPUs in.
        is_guest: spec.hypervisor.is_none(),
        machines: (spec.guests > 1).then_some(spec.guests),
        reset: spec.reset,
    }
}

pub(crate) fn expose_paths(spec: &mut TargetSpec, paths: &[String]) -> Result<(), Invalid> {
    let mut vm = VmSpec::from_target(spec)?;
    vm.expose.extend(paths.iter().cloned());
    *spec = TargetSpec::from(&vm);
    Ok(())
}

pub(crate) fn shown_lines(spec: &TargetSpec) -> Result<Shown, Invalid> {
    Ok(VmSpec::from_target(spec)?.shown_lines())
}

pub(crate) fn make_target(spec: &TargetSpec, host: &Host) -> Made {
    // One guest, also of a description of several.
    let one = VmSpec {
        guests: 1,
        ..VmSpec::from_target(spec)?
    };
    let vm = Vm::new(one, agent_options(host)?);
    Ok(Box::new(vm.with_interrupt(host.interrupted.clone())))
}

/// The agent and its environment as the host gives them.
pub fn agent_options(host: &Host) -> Result<Options, VmError> {
    let mut options = Options::of_this_process()?;
    if let Some(program) = &host.program {
        options.program = program.clone();
    }
    options.shown.extend(host.needed.iter().cloned());
    let path = options.environment.entry("PATH".to_owned()).or_default();
    *path = host
        .longer_path(OsStr::new(path))
        .to_string_lossy()
        .into_owned();
    let more = host.environment.iter().chain(&host.elsewhere);
    options.environment.extend(more.cloned());
    Ok(options)
}

impl Target for Vm {
    fn kind(&self) -> &'static str {
        match self.spec().hypervisor {
            Some(_) => ::vm::XEN,
            None => NAME,
        }
    }

    fn abilities(&self) -> Can {
        guest_abilities(self.spec())
    }

    fn check(&mut self, experiment: &Experiment) -> Vec<Problem> {
        Vm::check(self, experiment)
    }

    fn open_session(&mut self, boot: &Boot) -> Result<Box<dyn Session>, TargetError> {
        if self.spec().is_virtual() {
            let (_, build_id) = self.kernel(boot.kernel.as_deref())?;
            let machine = self.prepare_scripted(boot.kernel.as_deref())?;
            return Ok(Box::new(VirtualSession::new(machine, build_id)));
        }
        if let Some(guest) = self.go_on_from_name(true)? {
            let fact = self.recall_snapshot().map(session::fact_of_named);
            return session_of(self, boot, guest, fact.into_iter().collect());
        }
        let guest = self.boot(boot.kernel.as_deref(), true)?;
        tracing::debug!(
            "guest {} is ready after {:.1} s",
            guest.ready.release,
            guest.boot_time.as_secs_f64()
        );
        session_of(self, boot, guest, Vec::new())
    }

    fn go_on(&mut self, boot: &Boot, saved: &Saved) -> Result<Box<dyn Session>, TargetError> {
        let guest = Vm::go_on(self, boot.kernel.as_deref(), saved)?;
        tracing::debug!("guest goes on after {:.1} s", guest.boot_time.as_secs_f64());
        session_of(self, boot, guest, vec![session::fact_of(saved)])
    }

    fn keep_state(&mut self, saved: Saved, done: Done) -> Result<Option<Saved>, TargetError> {
        Ok((!self.keep_saved(&saved, done)?).then_some(saved))
    }

    fn recall_calibrations(&self) -> Option<BTreeMap<String, Calibration>> {
        let snapshot = self.recall_snapshot()?;
        let done = snapshot.done.as_ref();
        Some(done.map_or_else(BTreeMap::new, |done| done.calibrations.clone()))
    }

    fn opening_step(&self, boot: &Boot) -> String {
        if let Some(snapshot) = self.recall_snapshot() {
            return format!("putting the guest back to the snapshot {}", snapshot.name);
        }
        let with = boot.kernel.as_ref().map(|kernel| format!(" with {kernel}"));
        let how = match (self.spec().is_virtual(), self.is_emulated()) {
            (true, _) => " in virtual time (some 20 s, for each trial again)",
            (false, true) => " (emulated: some 10 s)",
            (false, false) => "",
        };
        let what = match self.spec().hypervisor {
            Some(_) => "Xen and its dom0",
            None => "the guest",
        };
        format!("booting {what}{}{how}", with.unwrap_or_default())
    }

    fn warnings(&self) -> Vec<Warning> {
        Vm::warnings(self)
    }

    fn hidden_in(&self, words: &str) -> Vec<PathBuf> {
        Vm::hidden_in(self, words)
    }

    fn facts(&self) -> BTreeMap<String, String> {
        Vm::facts(self)
    }
}

/// The session of a guest that is ready, with more facts about it.
fn session_of(
    vm: &mut Vm,
    boot: &Boot,
    guest: Guest,
    more: Vec<Fact>,
) -> Result<Box<dyn Session>, TargetError> {
    let watch = vm.pin(&guest)?;
    let (kernel, build_id) = vm.kernel(boot.kernel.as_deref())?;
    let mut facts = session::kernel_facts(&kernel, build_id, &guest.ready);
    facts.extend(more);
    let session = VmSession::new(guest, facts, watch, vm.forwards(), vm.snapshots());
    let session = session.map_err(io("talk to", Path::new("the agent")))?;
    Ok(Box::new(session))
}

impl From<VmError> for TargetError {
    fn from(error: VmError) -> Self {
        match error {
            VmError::Io {
                step,
                object,
                source,
            } => TargetError::Io {
                step,
                object,
                source,
            },
            VmError::Unmet(problem) => TargetError::Unmet(problem),
            VmError::Gone { why, tail } => TargetError::Gone { why, tail },
            VmError::Interrupted => TargetError::Interrupted,
            VmError::Garbled(what) => TargetError::Garbled(what),
        }
    }
}
