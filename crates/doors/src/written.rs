//! Files and directories that schedlab makes, replaces or removes.
//!
//! schedlab runs as root, also below directories where others may put and swap names. So whatever
//! it writes goes through here, and four rules hold:
//!
//! - The way to a place is looked at from `/` on ([`make_directory`], [`real_place`]): no link of
//!   another user is followed, and root writes only below directories of its own or of the user who
//!   called sudo(8).
//! - A file is whole or absent ([`write_file`], [`write_file_durably`]).
//! - What is removed was made by schedlab, which a value or a mark knows and not a name
//!   ([`Marked`], [`Part`]).
//! - Files of the kernel (`/proc`, `/sys`, cgroups) are another thing: they are never made
//!   ([`write_kernel_file`]).
//!
//! The places are checked by name and not held by file descriptors (`openat2`, `cap-std`): where
//! every directory on the way is one in which nobody else can swap names, the name is as good, and
//! every program that is given the name is safe too.

mod file;
mod lines;
mod mark;
mod way;

pub use file::{
    Beside, PARTIAL, copy_file, create_file, create_new_file, make_cgroup, move_durably, open_file,
    open_log, remove_cgroup, remove_empty_directory, remove_file, remove_partials_of,
    remove_recorded, sync_parent, write_file, write_file_durably, write_file_with_rights,
    write_kernel_file, write_link,
};
pub use lines::{LockedLines, is_punched, read_whole_lines};
pub use mark::{
    Holds, MARK, Marked, Part, Patience, has_mark, is_held, no_patience, remove_marked,
};
pub use way::{
    Exposed, How, Trust, find_exposed, make_directory, make_new_directory, make_private_directory,
    real_directory, real_path, real_place,
};
