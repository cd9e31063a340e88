//! Landlock (landlock(7)): without any privilege, a program gives up what it does not
//! need. Here: it opens no file outside its view and writes none at all, uses no TCP
//! port but its own, and sends no signal to others, as far as the kernel knows how.

use crate::view::View;
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, NetPort, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, Scope,
};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// Rights that remain besides reading.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restriction {
    /// Devices that are written to and controlled.
    pub devices: Vec<PathBuf>,
    /// TCP ports that are listened on.
    pub ports: Vec<u16>,
}

/// The newest version that is made use of: scopes, of Linux 6.12.
const VERSION: ABI = ABI::V6;

pub fn is_there() -> bool {
    let nothing = make_ruleset(&View::default(), &Restriction::default());
    nothing.is_ok_and(|rules| rules.is_some())
}

/// `None` where the kernel has no Landlock.
pub fn make_ruleset(
    view: &View,
    restriction: &Restriction,
) -> Result<Option<OwnedFd>, RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(VERSION))?
        .handle_access(AccessNet::from_all(VERSION))?
        .scope(Scope::from_all(VERSION))?
        .create()?;
    // Names of entries may be read everywhere: a rule for a directory holds for all below it.
    let mut paths = vec![(PathBuf::from("/"), AccessFs::ReadDir.into())];
    let visible = view.visible_paths().into_iter();
    paths.extend(visible.map(|path| (path, AccessFs::from_read(VERSION))));
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    paths.extend(
        restriction
            .devices
            .iter()
            .map(|path| (path.clone(), device)),
    );
    for (path, access) in paths {
        // What is gone by now, or is not for this user, needs no rule.
        if let Ok(file) = PathFd::new(path) {
            rules = rules.add_rule(PathBeneath::new(file, access))?;
        }
    }
    for port in &restriction.ports {
        rules = rules.add_rule(NetPort::new(*port, AccessNet::BindTcp))?;
    }
    Ok(rules.into())
}
