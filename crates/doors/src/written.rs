//! Files and directories that schedlab makes, replaces or removes.
