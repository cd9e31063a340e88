//! The server of the figures. It runs beside a measurement and may be asked by anybody who reaches
//! its port, so it is one thread that looks at one small request at a time.

use httparse::{EMPTY_HEADER, Request, Status};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Media type of OpenMetrics 1.0.
const TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The most bytes of a request.
const MOST_BYTES: usize = 8 << 10;
/// The most headers of a request.
const MOST_HEADERS: usize = 64;
/// Time in which a request must be there, and time in which its answer must be taken.
const LIMIT: Duration = Duration::from_secs(2);
/// Time after an error of the system, such as no free file descriptor.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers one request after the other.
pub fn serve(listener: &TcpListener, text: &Mutex<String>) {
    for stream in listener.incoming() {
        match stream {
            // Who does not take the answer misses it.
            Ok(stream) => drop(answer(stream, text)),
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

fn answer(mut stream: TcpStream, text: &Mutex<String>) -> io::Result<()> {
    let (status, body) = match asked(&mut stream) {
        Ok(Asked::Figures) => {
            let text = text.lock().unwrap_or_else(PoisonError::into_inner).clone();
            ("200 OK", text)
        }
        Ok(Asked::Other) => ("404 Not Found", "the figures are at /metrics\n".to_owned()),
        Err(Refused { status, why }) => (status, format!("{why}\n")),
    };
    let kind = match status {
        "200 OK" => TYPE,
        _ => "text/plain; charset=utf-8",
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    write_within(&mut stream, (head + &body).as_bytes())?;
    stream.shutdown(Shutdown::Write)
}

/// A write of its own for each part, so that a reader of one byte a second is not waited for.
fn write_within(stream: &mut TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    let end = Instant::now() + LIMIT;
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(left(end)?))?;
        match stream.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(size) => bytes = &bytes[size..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn left(end: Instant) -> io::Result<Duration> {
    let left = end.saturating_duration_since(Instant::now());
    match left.is_zero() {
        true => Err(ErrorKind::TimedOut.into()),
        false => Ok(left),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Figures,
    Other,
}

#[derive(Debug, PartialEq, Eq)]
struct Refused {
    status: &'static str,
    why: &'static str,
}

fn refused<T>(status: &'static str, why: &'static str) -> Result<T, Refused> {
    Err(Refused { status, why })
}

const LATE: Refused = Refused {
    status: "408 Request Timeout",
    why: "a request comes within two seconds",
};

fn asked(stream: &mut TcpStream) -> Result<Asked, Refused> {
    let end = Instant::now() + LIMIT;
    let (mut bytes, mut length) = ([0; MOST_BYTES], 0);
    loop {
        let wait = left(end).map_err(|_| LATE)?;
        stream.set_read_timeout(Some(wait)).map_err(|_| LATE)?;
        length += match stream.read(&mut bytes[length..]) {
            Ok(0) => return refused("400 Bad Request", "the request does not end"),
            Ok(size) => size,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => return Err(LATE),
        };
        if let Some(asked) = read(&bytes[..length])? {
            return Ok(asked);
        }
        if length == MOST_BYTES {
            return refused(
                "431 Request Header Fields Too Large",
                "a request has at most 8 KiB",
            );
        }
    }
}

/// Request; `None` where more must come.
fn read(bytes: &[u8]) -> Result<Option<Asked>, Refused> {
    let mut headers = [EMPTY_HEADER; MOST_HEADERS];
    let mut request = Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(Status::Partial) => return Ok(None),
        Ok(Status::Complete(_)) => {}
        Err(_) => return refused("400 Bad Request", "that is no request"),
    }
    if request.method != Some("GET") {
        return refused("405 Method Not Allowed", "the figures can only be read");
    }
    let mut hosts = request
        .headers
        .iter()
        .filter(|header| header.name.eq_ignore_ascii_case("host"));
    let host = hosts.next().map(|host| host.value);
    if hosts.next().is_some() || !host.is_some_and(is_ours) {
        return refused(
            "421 Misdirected Request",
            "ask with an address, localhost or the name of this machine as host",
        );
    }
    let path = request.path.unwrap_or_default();
    Ok(Some(match path.split('?').next() {
        Some("/metrics") => Asked::Figures,
        _ => Asked::Other,
    }))
}

/// True for hosts that are no name of others. A page in a browser can have its own name lead to
/// this machine, and would read the figures otherwise.
fn is_ours(host: &[u8]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else {
        return false;
    };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']');
    let machine = rustix::system::uname();
    let machine = machine.nodename().to_string_lossy();
    address.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || (!machine.is_empty() && name.eq_ignore_ascii_case(&machine))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;
    use std::sync::Arc;

    fn started() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let text = Arc::new(Mutex::new("figures\n# EOF\n".to_owned()));
        std::thread::spawn(move || serve(&listener, &text));
        address
    }

    fn said(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        // It may have answered before all of it came.
        let _ = stream.write_all(request);
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    fn of_host(host: &str) -> Vec<u8> {
        format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes()
    }

    #[test]
    fn figures_are_given_to_who_asks_for_them_by_an_own_name() {
        let address = started();
        let machine = rustix::system::uname();
        let machine = machine.nodename().to_string_lossy().into_owned();
        for host in ["127.0.0.1:9464", "[::1]:9464", "LocalHost", &machine] {
            let answer = said(address, &of_host(host));
            assert!(answer.starts_with("HTTP/1.1 200"), "{host}: {answer}");
            assert!(answer.ends_with("figures\n# EOF\n"), "{answer}");
        }
        for host in ["evil.example:9464", "127.0.0.1.evil.example", ""] {
            let answer = said(address, &of_host(host));
            assert!(answer.starts_with("HTTP/1.1 421"), "{host}: {answer}");
            assert!(!answer.contains("figures\n# EOF"), "{answer}");
        }
        let without = said(address, b"GET /metrics HTTP/1.0\r\n\r\n");
        assert!(without.starts_with("HTTP/1.1 421"), "{without}");
        let twice = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: x\r\n\r\n";
        assert!(said(address, twice).starts_with("HTTP/1.1 421"));
        let elsewhere = said(address, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert!(elsewhere.starts_with("HTTP/1.1 404"), "{elsewhere}");
        let post = said(
            address,
            b"POST /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
        );
        assert!(post.starts_with("HTTP/1.1 405"), "{post}");
    }

    #[test]
    fn a_request_that_is_too_long_or_does_not_end_is_left() {
        let address = started();
        let endless = [
            b"GET /metrics HTTP/1.1\r\nX: ".to_vec(),
            vec![b'x'; 4 << 20],
        ]
        .concat();
        // The rest of it was not read, so the answer may not arrive.
        let answer = said(address, &endless);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"));
        let mut half = TcpStream::connect(address).unwrap();
        half.write_all(b"GET /metrics").unwrap();
        let answer = said(address, &of_host("localhost"));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let mut answer = String::new();
        half.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    }
}
