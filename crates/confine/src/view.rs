//! The files of this machine as a program sees them: everything, but for what is hidden.

use std::fs;
use std::path::{Path, PathBuf};

use crate::user::User;

/// Later steps win over earlier ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A directory and all below it, or a file.
    Hide(PathBuf),
    /// A directory and all below it, or a file, whatever was hidden before.
    Show(PathBuf),
}

impl Step {
    /// Path that is hidden or shown.
    pub fn path(&self) -> &Path {
        match self {
            Step::Hide(path) | Step::Show(path) => path,
        }
    }
}

/// Paths have no link in them, but for the last part of what is shown, and exist.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    steps: Vec<Step>,
}

impl View {
    /// Steps in the order in which they take effect.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Hides a path. One that is not there need not be hidden.
    pub fn hide_path(&mut self, path: impl AsRef<Path>) {
        if let Ok(path) = fs::canonicalize(path)
            && path.parent().is_some()
            && (self.is_visible(&path) || self.shows_within(&path))
        {
            self.steps.push(Step::Hide(path));
        }
    }

    /// Whether something below a path was shown.
    fn shows_within(&self, path: &Path) -> bool {
        let is_within = |step: &Step| matches!(step, Step::Show(shown) if shown.starts_with(path));
        self.steps.iter().any(is_within)
    }

    /// Show a path, and what it links to; the root shows everything again.
    pub fn show_path(&mut self, path: impl AsRef<Path>) {
        let path = path.as_ref();
        let Ok(target) = fs::canonicalize(path) else {
            return;
        };
        let link = path.parent().zip(path.file_name());
        let link = link.and_then(|(dir, name)| Some(fs::canonicalize(dir).ok()?.join(name)));
        if target.parent().is_none() {
            self.steps.clear();
        }
        for path in [Some(target), link].into_iter().flatten() {
            if !self.is_visible(&path) {
                self.steps.push(Step::Show(path));
            }
        }
    }

    /// Show a path to a user who may not enter the directories above it: what else they
    /// hold is hidden.
    pub fn show_to(&mut self, user: &User, path: impl AsRef<Path>) {
        let path = path.as_ref();
        if let Ok(target) = fs::canonicalize(path) {
            let mut above: Vec<&Path> = target.ancestors().skip(1).collect();
            above.pop(); // the root
            let barred = above.iter().rfind(|dir| !may_enter(user, dir));
            if let Some(barred) = barred.filter(|dir| self.is_visible(dir)) {
                self.hide_path(barred);
            }
        }
        self.show_path(path);
    }

    /// True unless the last step that is about the path, or about a directory above it, hides it.
    pub fn is_visible(&self, path: &Path) -> bool {
        let last = self.steps.iter().rfind(|s| path.starts_with(s.path()));
        !matches!(last, Some(Step::Hide(_)))
    }

    /// The path that was shown and has this one in it, where the last step about it shows it.
    pub(crate) fn shown_by(&self, path: &Path) -> Option<&Path> {
        let last = self.steps.iter().rfind(|s| path.starts_with(s.path()));
        match last {
            Some(Step::Show(shown)) => Some(shown),
            _ => None,
        }
    }

    /// The fewest paths that, each with all below it, are what can be seen.
    pub fn visible_paths(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        self.walk(PathBuf::from("/"), &mut found);
        found
    }

    fn walk(&self, path: PathBuf, found: &mut Vec<PathBuf>) {
        let inside = |s: &Step| s.path().starts_with(&path) && s.path() != path;
        if !self.steps.iter().any(inside) {
            if self.is_visible(&path) {
                found.push(path);
            }
            return;
        }
        let entries = fs::read_dir(&path).into_iter().flatten().flatten();
        for entry in entries {
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            let shown = self.steps.contains(&Step::Show(entry.path()));
            // What a link leads to is found where it is.
            if !is_link || shown {
                self.walk(entry.path(), found);
            }
        }
    }
}

fn may_enter(user: &User, dir: &Path) -> bool {
    const SEARCH: u32 = 1;
    user.can_access(SEARCH, dir)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// `home/me/project/file`, `home/me/.ssh/key`, `home/you/file`.
    fn homes() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for file in ["me/project/file", "me/.ssh/key", "you/file"] {
            let path = root.join("home").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        (dir, root)
    }

    #[test]
    fn later_steps_win() {
        let (_dir, root) = homes();
        let home = root.join("home");
        let mut view = View::default();
        view.hide_path(&home);
        view.show_path(home.join("me"));
        view.hide_path(home.join("me/.ssh"));
        view.hide_path(root.join("not there"));
        assert!(view.is_visible(&root));
        assert!(!view.is_visible(&home) && !view.is_visible(&home.join("you/file")));
        assert!(view.is_visible(&home.join("me/project/file")));
        assert!(!view.is_visible(&home.join("me/.ssh/key")));
        let below = |path: &PathBuf| path.starts_with(&root);
        let visible: Vec<PathBuf> = view.visible_paths().into_iter().filter(below).collect();
        assert_eq!(visible, [home.join("me/project")]);
        assert!(view.visible_paths().contains(&PathBuf::from("/usr")));
        view.show_path("/");
        assert_eq!(view.visible_paths(), [PathBuf::from("/")]);
    }

    #[test]
    fn what_is_hidden_last_is_hidden_also_where_something_in_it_was_shown() {
        let (_dir, root) = homes();
        let home = root.join("home");
        let mut view = View::default();
        view.hide_path(&home);
        view.show_path(home.join("me/.ssh/key"));
        view.hide_path(home.join("me/.ssh"));
        assert!(!view.is_visible(&home.join("me/.ssh/key")));
    }

    #[test]
    fn a_link_is_shown_with_what_it_leads_to() {
        let (_dir, root) = homes();
        let home = root.join("home");
        let link = home.join("you/link");
        symlink("../me/project/file", &link).unwrap();
        let mut view = View::default();
        view.hide_path(&home);
        view.show_path(&link);
        assert!(view.is_visible(&link) && view.is_visible(&home.join("me/project/file")));
        assert!(!view.is_visible(&home.join("you/file")));
        assert!(!view.is_visible(&home.join("me/.ssh/key")));
    }

    #[test]
    fn what_lies_beside_a_shown_path_in_a_barred_directory_is_hidden() {
        let (_dir, root) = homes();
        let home = root.join("home");
        fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).unwrap();
        let user = User {
            name: "other".to_owned(),
            uid: 54_321,
            gid: 54_321,
            groups: Vec::new(),
            home: None,
        };
        let mut view = View::default();
        view.show_to(&user, home.join("me/project"));
        assert!(view.is_visible(&home.join("me/project/file")));
        assert!(!view.is_visible(&home.join("you/file")));
    }
}
