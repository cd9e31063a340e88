//! Two networks with a cable between them that takes its time: this one, and one that has nothing else.

use crate::{is_root, program, python_or_skip, skipped};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// `python3 -c CABLE SECONDS HERE THERE`: two interfaces; packets that enter one leave the other so much later.
/// (The queueing discipline netem is not in every kernel.)
const CABLE: &str = r#"
import fcntl, os, queue, struct, sys, threading, time
def end(name):
    fd = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(fd, 0x400454ca, struct.pack("16sH", name.encode(), 0x1001))
    return fd
def take(fd, waiting, delay):
    while True:
        packet = os.read(fd, 65536)
        waiting.put((time.monotonic() + delay, packet))
def carry(waiting, fd):
    while True:
        due, packet = waiting.get()
        time.sleep(max(0, due - time.monotonic()))
        try:
            os.write(fd, packet)
        except OSError:
            pass  # that end is not up
ends = [end(name) for name in sys.argv[2:4]]
for a, b in (ends, ends[::-1]):
    waiting = queue.SimpleQueue()
    threading.Thread(target=take, args=(a, waiting, float(sys.argv[1])), daemon=True).start()
    threading.Thread(target=carry, args=(waiting, b), daemon=True).start()
print(flush=True)
sys.stdin.read()
"#;

/// A cable to another network. Both end with it.
#[derive(Debug)]
pub struct Cable {
    network: Child,
    cable: Child,
    subnet: String,
}

impl Cable {
    /// Lays it; each way takes so long. `None` after it was said why there is none.
    pub fn lay(seconds: f64) -> Option<Cable> {
        let needed = ["ip", "unshare", "nsenter"];
        match needed.iter().find(|name| program(name).is_none()) {
            _ if !is_root() => skipped("interfaces need root"),
            Some(name) => skipped(format!("{name} is not installed")),
            None if !std::path::Path::new("/dev/net/tun").exists() => skipped("no /dev/net/tun"),
            None if python_or_skip() => return Some(Cable::connect(seconds)),
            None => {}
        }
        None
    }

    fn connect(seconds: f64) -> Cable {
        // Tests of one process may have one each.
        static LAID: AtomicU32 = AtomicU32::new(0);
        let (id, number) = (std::process::id(), LAID.fetch_add(1, Ordering::Relaxed));
        let end = |side: &str| format!("lab{id}-{number}{side}");
        let (here, there) = (end("a"), end("b"));
        let mut cable = Command::new("python3");
        cable.args(["-c", CABLE, &seconds.to_string(), &here, &there]);
        let mut network = Command::new("unshare");
        network.args(["--net", "sh", "-c", "echo; exec cat"]);
        let cable = Cable {
            network: start(network),
            cable: start(cable),
            subnet: format!("10.214.{}", (id + number) % 250),
        };
        let address = |last: u8| format!("{}.{last}", cable.subnet);
        let inside = cable.network.id().to_string();
        ip(None, &["link", "set", &there, "netns", &inside]);
        ip(
            None,
            &[
                "addr",
                "add",
                &address(1),
                "peer",
                &cable.address(),
                "dev",
                &here,
            ],
        );
        ip(None, &["link", "set", &here, "up"]);
        let inside = Some(inside.as_str());
        ip(
            inside,
            &[
                "addr",
                "add",
                &cable.address(),
                "peer",
                &address(1),
                "dev",
                &there,
            ],
        );
        ip(inside, &["link", "set", &there, "up"]);
        ip(inside, &["link", "set", "lo", "up"]);
        cable
    }

    /// Address of the other end.
    pub fn address(&self) -> String {
        format!("{}.2", self.subnet)
    }

    /// Cuts it: packets get lost, and both ends are as they were.
    pub fn cut(&self) {
        let cable = self.cable.id().to_string();
        let stopped = Command::new("kill").args(["-STOP", &cable]).status();
        assert!(stopped.is_ok_and(|status| status.success()));
    }

    /// Words that run the words behind them in the other network.
    pub fn way_in(&self) -> Vec<String> {
        let inside = self.network.id().to_string();
        ["nsenter", "--target", &inside, "--net", "--"]
            .map(str::to_owned)
            .to_vec()
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        for child in [&mut self.cable, &mut self.network] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A program that has said a line, and ends with its standard input.
fn start(mut command: Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("it was asked for");
    let read = BufReader::new(stdout).read_line(&mut line);
    assert!(read.is_ok_and(|bytes| bytes > 0), "{command:?} ended");
    child
}

/// ip(8), in the network of a process where one is named.
fn ip(inside: Option<&str>, args: &[&str]) {
    let mut command = match inside {
        None => Command::new("ip"),
        Some(process) => {
            let mut nsenter = Command::new("nsenter");
            nsenter.args(["--target", process, "--net", "ip"]);
            nsenter
        }
    };
    let output = command.args(args).output().expect("ip(8)");
    assert!(output.status.success(), "{args:?}: {output:?}");
}
