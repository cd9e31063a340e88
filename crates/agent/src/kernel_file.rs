//! Writing to files of the kernel's, which are never created.

use std::io;
use std::path::Path;

/// Replaces what the file says, in one write.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    #[cfg(test)]
    fake::ask(path, text)?;
    doors::written::write_kernel_file(path, text)?;
    #[cfg(test)]
    fake::tell(path);
    Ok(())
}

/// A kernel that behaves as a test says, for the thread of that test.
#[cfg(test)]
pub mod fake {
    use std::cell::RefCell;
    use std::io;
    use std::path::Path;

    /// Behaviour of a kernel when one of its files is written.
    pub trait Kernel {
        /// May this be written?
        fn takes(&mut self, path: &Path, text: &str) -> bool;
        /// It was written.
        fn was_written(&mut self, path: &Path);
    }

    thread_local! {
        static KERNEL: RefCell<Option<Box<dyn Kernel>>> = const { RefCell::new(None) };
    }

    pub fn ask(path: &Path, text: &str) -> io::Result<()> {
        let takes = |kernel: &mut Box<dyn Kernel>| kernel.takes(path, text);
        match KERNEL.with_borrow_mut(|kernel| kernel.as_mut().is_none_or(takes)) {
            true => Ok(()),
            false => Err(io::Error::from_raw_os_error(libc::EINVAL)),
        }
    }

    pub fn tell(path: &Path) {
        KERNEL.with_borrow_mut(|kernel| {
            if let Some(kernel) = kernel {
                kernel.was_written(path);
            }
        });
    }

    /// Until the end of this thread.
    pub fn boot(kernel: impl Kernel + 'static) {
        KERNEL.set(Some(Box::new(kernel)));
    }
}
