//! The files of this machine that a guest sees, and those that it does not.

use super::{Vm, check, qemu, view};
use model::{Problem, Warning};
use std::fs;
use std::path::PathBuf;

impl Vm {
    /// Files of this machine that these words name, and that the guest does not see.
    pub fn hidden_in(&self, text: &str) -> Vec<PathBuf> {
        let settled = self.confined.as_ref().filter(|_| self.shows_the_host());
        settled.map_or_else(Vec::new, |settled| {
            view::hidden_in(text, &settled.works.view)
        })
    }

    /// Problems that keep QEMU from being started as it should be; known after the first start.
    pub(crate) fn lacks_of_confinement(&self) -> Vec<Warning> {
        let Some(settled) = &self.confined else {
            return Vec::new();
        };
        let no_sandbox = "its QEMU was built without seccomp (-sandbox), which Debian's has";
        let no_sandbox = (!qemu::sandbox_works(self.spec.architecture())).then_some(no_sandbox);
        let lacks = settled.why.as_deref().into_iter().chain(no_sandbox);
        lacks.map(check::less_confined).collect()
    }

    /// A warning where the working directory is too much to be shown.
    pub(crate) fn unseen_directory(&self) -> Option<Warning> {
        let settled = self.confined.as_ref().filter(|_| self.shows_the_host())?;
        let directory = fs::canonicalize(&self.options.directory).ok()?;
        let is_seen = settled.works.view.is_visible(&directory);
        (!is_seen).then(|| check::unseen_warning(&directory))
    }

    /// QEMU is another user where root starts it.
    pub(crate) fn check_what_is_named(&mut self) -> Vec<Problem> {
        let Some(bootable) = self.bootable.values().next().cloned() else {
            return Vec::new();
        };
        let launch = match self.launch(&bootable) {
            Ok(launch) => launch,
            Err(e) => return vec![check::as_problem("target vm", e)],
        };
        let Some(user) = launch.user() else {
            return Vec::new();
        };
        let unreadable = view::find_unreadable(&launch.confinement, &self.named);
        let problem = |path: &PathBuf| check::unreadable_problem(path, &user.name);
        unreadable.iter().map(problem).collect()
    }
}
