//! Processes that listen on a TCP port: `/proc/net/tcp` and `tcp6` have the sockets (Documentation/networking/proc_net_tcp.rst),
//! the files of a process say whose they are.

use crate::tasks::{self, Pid};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// State of a socket that listens.
const LISTENING: &str = "0A";

/// Processes that have a socket which listens on the port, in the network of this process. Files of other
/// users' processes are seen by root only.
pub fn find_listening(root: &Path, port: u16) -> Vec<Pid> {
    let sockets = listening_sockets(root, port);
    if sockets.is_empty() {
        return Vec::new();
    }
    let has_one = |pid: &Pid| {
        let files = fs::read_dir(root.join(format!("proc/{pid}/fd")));
        let mut files = files.into_iter().flatten().flatten();
        files.any(|file| {
            fs::read_link(file.path()).is_ok_and(|to| sockets.contains(&*to.to_string_lossy()))
        })
    };
    let all = tasks::list_processes(root).into_iter();
    all.filter(has_one).collect()
}

/// Names of the sockets, as links of open files have them: `socket:[4711]`.
fn listening_sockets(root: &Path, port: u16) -> BTreeSet<String> {
    let tables =
        ["proc/net/tcp", "proc/net/tcp6"].map(|name| doors::read::kernel_text(root.join(name)));
    let tables = tables.into_iter().filter_map(Result::ok);
    tables.flat_map(|table| sockets_in(&table, port)).collect()
}

fn sockets_in(table: &str, port: u16) -> Vec<String> {
    let wanted = format!(":{port:04X}");
    let listens = |columns: &Vec<&str>| {
        columns.get(3) == Some(&LISTENING)
            && columns.get(1).is_some_and(|local| local.ends_with(&wanted))
    };
    let rows = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let inodes = rows
        .filter(listens)
        .filter_map(|columns| columns.get(9).copied());
    inodes.map(|inode| format!("socket:[{inode}]")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_port_has_the_process_that_listens_on_it_and_no_other_port_has() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let root = Path::new("/");
        let own = std::process::id().cast_signed();
        assert!(find_listening(root, port).contains(&own));
        drop(listener);
        assert!(!find_listening(root, port).contains(&own));
    }

    #[test]
    fn a_connection_from_or_to_the_port_does_not_listen() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 41 1\n\
            1: 0100007F:1F90 0100007F:A000 01 00000000:00000000 00:00000000 00000000     0        0 42 1\n\
            2: 0100007F:A000 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 43 1\n";
        assert_eq!(sockets_in(table, 8080), ["socket:[41]"]);
    }
}
