//! A real Chromium without a window, which is asked over its debugging pipe, and a line to a page that can be
//! cut.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tests::skipped;

/// Time after which something never came about.
const LIMIT: Duration = Duration::from_secs(90);
const LOOK: Duration = Duration::from_millis(100);

/// One page in a browser, which ends when this is dropped.
#[derive(Debug)]
pub struct Browser {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    id: u64,
    session: Option<String>,
}

impl Browser {
    /// Starts it with a profile in this directory; `None` after it was said why there is none.
    pub fn start(profile: &Path) -> Option<Self> {
        let Some(program) = tests::program("chromium") else {
            skipped("chromium is not installed");
            return None;
        };
        // The pipe is descriptors 3 and 4 of the browser.
        let script = "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null";
        let mut child = Command::new("sh")
            .args(["-c", script, "sh"])
            .arg(program)
            .args(["--headless", "--no-sandbox", "--disable-gpu"])
            .args(["--disable-dev-shm-usage", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh starts");
        let (input, output) = (child.stdin.take(), child.stdout.take());
        Some(Browser {
            child,
            input: input.expect("a pipe"),
            output: BufReader::new(output.expect("a pipe")),
            id: 0,
            session: None,
        })
    }

    /// Opens an address on a screen of this width, as a telephone has it.
    pub fn open(&mut self, address: &str, width: u32) {
        let made = self.ask("Target.createTarget", json!({ "url": "about:blank" }));
        let target = &made["targetId"];
        let attached = self.ask(
            "Target.attachToTarget",
            json!({ "targetId": target, "flatten": true }),
        );
        self.session = attached["sessionId"].as_str().map(str::to_owned);
        let screen =
            json!({ "width": width, "height": 844, "deviceScaleFactor": 1, "mobile": true });
        self.ask("Emulation.setDeviceMetricsOverride", screen);
        self.ask("Page.navigate", json!({ "url": address }));
    }

    /// Value of an expression in the page; null where it fails.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let asked = json!({ "expression": expression, "returnByValue": true });
        self.ask("Runtime.evaluate", asked)["result"]["value"].clone()
    }

    /// Waits until an expression is true in the page.
    pub fn expect(&mut self, expression: &str) {
        let limit = Instant::now() + LIMIT;
        while self.evaluate(expression) != true {
            let text = "document.body ? document.body.innerText : ''";
            assert!(
                Instant::now() < limit,
                "never came about: {expression}\n{}",
                self.evaluate(text)
            );
            std::thread::sleep(LOOK);
        }
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.id += 1;
        let mut request = json!({ "id": self.id, "method": method, "params": params });
        if let Some(session) = &self.session {
            request["sessionId"] = json!(session);
        }
        self.input
            .write_all(format!("{request}\0").as_bytes())
            .expect("the browser reads");
        loop {
            let mut message = Vec::new();
            self.output.read_until(0, &mut message).expect("a message");
            let said = message.strip_suffix(b"\0").expect("the browser answers");
            let said: Value = serde_json::from_slice(said).expect("JSON");
            // All else are events.
            if said["id"] == self.id {
                return said["result"].clone();
            }
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A line to a page under another address, which can be cut and mended.
#[derive(Debug)]
pub struct Line {
    address: String,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    is_cut: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

impl Line {
    /// A line to this address.
    pub fn lay_to(address: &str) -> Line {
        let rest = address.strip_prefix("http://").expect("an address");
        let (host, path) = rest.split_once('/').expect("a path");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let here = listener.local_addr().expect("an address").to_string();
        let state = Arc::<State>::default();
        let (shared, host) = (Arc::clone(&state), host.to_owned());
        let own = here.clone();
        // It ends with the test.
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (state, host, own) = (Arc::clone(&shared), host.clone(), own.clone());
                std::thread::spawn(move || carry(&state, client, &host, &own));
            }
        });
        Line {
            address: format!("http://{here}/{path}"),
            state,
        }
    }

    /// Address of this end.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Ends all connections, and lets no new one through.
    pub fn cut(&self) {
        self.state.is_cut.store(true, Ordering::SeqCst);
        for stream in self.state.open.lock().expect("sound").drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Lets connections through again.
    pub fn mend(&self) {
        self.state.is_cut.store(false, Ordering::SeqCst);
    }
}

/// One request and its answer, with the name of the host that the page knows.
fn carry(state: &State, mut client: TcpStream, host: &str, own: &str) {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") {
        match client.read(&mut byte) {
            Ok(1) => request.push(byte[0]),
            _ => return,
        }
    }
    if state.is_cut.load(Ordering::SeqCst) {
        return;
    }
    let request = String::from_utf8_lossy(&request).replace(own, host);
    let Ok(mut page) = TcpStream::connect(host) else {
        return;
    };
    let copies = (client.try_clone(), page.try_clone());
    if let (Ok(one), Ok(other)) = copies {
        state.open.lock().expect("sound").extend([one, other]);
    }
    if page.write_all(request.as_bytes()).is_ok() {
        let mut buffer = [0; 16 << 10];
        while let Ok(size @ 1..) = page.read(&mut buffer) {
            if client.write_all(&buffer[..size]).is_err() {
                break;
            }
        }
    }
    let _ = client.shutdown(Shutdown::Both);
}
