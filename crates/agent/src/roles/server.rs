//! The programs that a server can be, and when one is ready.
//!
//! All of them are told to listen on the IPv4 loopback address only, on a port that
//! was free a moment ago.

use load::{Launch, SELF};
use model::{Readiness, Server, ServerProgram, Workload};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

const PROBE_LIMIT: Duration = Duration::from_millis(500);
/// memcached's own default.
const USUAL_CONNECTIONS: u32 = 1024;

/// Address on which the server shall listen. An error if the port that it names is taken.
pub fn address(server: &Server) -> Result<SocketAddr, String> {
    let wanted = match &server.program {
        ServerProgram::Command { port, .. } => port.unwrap_or(0),
        _ => 0,
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, wanted))
        .map_err(|e| format!("port {wanted} of the server cannot be listened on: {e}"))?;
    listener
        .local_addr()
        .map_err(|e| format!("choose a port for the server: {e}"))
}

/// The program on PATH that the server needs; `None` for schedlab itself.
pub fn program(server: &Server) -> Option<&str> {
    match &server.program {
        ServerProgram::Echo { .. } => None,
        program => Some(program.name()),
    }
}

/// Threads that it has for certain.
pub fn least_threads(server: &Server) -> u32 {
    match &server.program {
        ServerProgram::Echo { threads } | ServerProgram::Memcached { threads, .. } => *threads,
        // Beside them the master.
        ServerProgram::Nginx { workers } => workers.saturating_add(1),
        ServerProgram::HttpEcho | ServerProgram::Command { .. } => 1,
    }
}

pub fn launch(server: &Server, workload: &Workload, address: SocketAddr) -> Launch {
    let port = address.port().to_string();
    let mut launch = Launch::default();
    launch.argv = match &server.program {
        ServerProgram::Echo { threads } => words(&[
            SELF,
            "serve",
            "--threads",
            &threads.to_string(),
            "--port",
            &port,
        ]),
        ServerProgram::Memcached { threads, args } => memcached(*threads, args, workload, &port),
        ServerProgram::Nginx { workers } => {
            launch.stdin = nginx_configuration(*workers, &port);
            // The configuration is a memory file; nothing is written to the disk.
            words(&["nginx", "-c", "/dev/stdin"])
        }
        ServerProgram::HttpEcho => {
            let listen = format!("-listen={address}");
            words(&["http-echo", &listen, "-text=ok"])
        }
        ServerProgram::Command { argv, .. } => argv
            .iter()
            .map(|word| word.replace("{port}", &port))
            .collect(),
    };
    launch
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn memcached(threads: u32, args: &[String], workload: &Workload, port: &str) -> Vec<String> {
    let client = workload.client.as_ref();
    let connections = client
        .map_or(0, |client| client.connections)
        .saturating_add(64)
        .max(USUAL_CONNECTIONS);
    let mut argv = words(&["memcached", "-l", "127.0.0.1", "-U", "0", "-p", port]);
    argv.extend(words(&[
        "-t",
        &threads.to_string(),
        "-c",
        &connections.to_string(),
    ]));
    if rustix::process::geteuid().is_root() {
        // It refuses to run as root otherwise.
        argv.extend(words(&["-u", "nobody"]));
    }
    argv.extend(args.iter().cloned());
    argv
}

/// A constant answer, no logs, no limit on requests per connection. The file of its
/// process id is its standard output: nothing is left on the disk.
fn nginx_configuration(workers: u32, port: &str) -> String {
    format!(
        "daemon off;\n\
         worker_processes {workers};\n\
         pid /proc/self/fd/1;\n\
         error_log stderr;\n\
         events {{ worker_connections 8192; }}\n\
         http {{\n\
         \x20 access_log off;\n\
         \x20 keepalive_requests 1000000000;\n\
         \x20 keepalive_timeout 3600s;\n\
         \x20 server {{\n\
         \x20   listen 127.0.0.1:{port} backlog=8192;\n\
         \x20   location / {{ default_type text/plain; return 200 \"ok\\n\"; }}\n\
         \x20 }}\n\
         }}\n"
    )
}

/// One look; the error says what the server does not do yet.
pub fn probe(server: &Server, address: SocketAddr) -> Result<(), String> {
    match &server.program {
        ServerProgram::Command {
            ready: Readiness::Http { path, status },
            ..
        } => answers(address, path, *status),
        _ => connects(address).map(drop),
    }
}

pub fn connects(address: SocketAddr) -> Result<TcpStream, String> {
    TcpStream::connect_timeout(&address, PROBE_LIMIT)
        .map_err(|e| format!("{address} takes no connection ({e})"))
}

/// A `GET` of the path is answered with this status.
pub fn answers(address: SocketAddr, path: &str, status: u16) -> Result<(), String> {
    match http_status(connects(address)?, address, path) {
        Ok(found) if found == status => Ok(()),
        Ok(found) => Err(format!(
            "GET {path} was answered with {found}, not {status}"
        )),
        Err(e) => Err(format!("GET {path}: {}", fault(&e))),
    }
}

/// Words for the failure of a request for a status.
fn fault(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "the connection was closed without an answer".to_owned(),
        io::ErrorKind::WouldBlock => "no answer came".to_owned(),
        io::ErrorKind::InvalidData => "the answer is not HTTP".to_owned(),
        _ => error.to_string(),
    }
}

fn http_status(mut stream: TcpStream, address: SocketAddr, path: &str) -> io::Result<u16> {
    stream.set_read_timeout(Some(PROBE_LIMIT))?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut start = [0u8; 12];
    stream.read_exact(&mut start)?;
    let text = std::str::from_utf8(&start).ok();
    let status = text
        .filter(|text| text.starts_with("HTTP/"))
        .and_then(|text| text.get(9..)?.parse().ok());
    status.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Placement;

    fn command(port: Option<u16>, ready: Readiness) -> Server {
        Server {
            program: ServerProgram::Command {
                argv: words(&["serve", "--listen=:{port}"]),
                port,
                ready,
            },
            placement: Placement::default(),
            ready_limit_ns: 1,
        }
    }

    #[test]
    fn a_port_that_is_taken_is_named() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        let error = address(&command(Some(port), Readiness::Tcp)).unwrap_err();
        assert!(error.contains(&format!("port {port}")), "{error}");
        assert_ne!(address(&command(None, Readiness::Tcp)).unwrap().port(), 0);
    }

    fn answering(answer: &'static [u8]) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.read(&mut [0; 1024]);
                let _ = stream.write_all(answer);
            }
        });
        address
    }

    fn ready(status: u16) -> Readiness {
        Readiness::Http {
            path: "/health".to_owned(),
            status,
        }
    }

    #[test]
    fn what_is_no_answer_is_said_in_words() {
        let said = |answer| probe(&command(None, ready(200)), answering(answer)).unwrap_err();
        assert_eq!(
            said(b"220 smtp.example ESMTP\r\n"),
            "GET /health: the answer is not HTTP"
        );
        assert!(said(b"HTTP/1.1").contains("without an answer"));
    }

    #[test]
    fn readiness_by_http_needs_the_right_status() {
        let address = answering(b"HTTP/1.1 503 Not yet\r\n\r\n");
        assert_eq!(probe(&command(None, ready(503)), address), Ok(()));
        let error = probe(&command(None, ready(200)), address).unwrap_err();
        assert_eq!(error, "GET /health was answered with 503, not 200");
    }
}
