//! Requests of clients.

use httparse::{EMPTY_HEADER, Request, Status};
use std::net::SocketAddr;

/// Headers of a request.
const MOST_HEADERS: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    Page,
    Events,
}

/// Why a request is refused: status and words.
pub type Refused = (&'static str, &'static str);

/// The part of the page that these bytes ask for; `None` where more must come.
pub fn parse(bytes: &[u8], secret: &str, at: SocketAddr) -> Option<Result<Asked, Refused>> {
    let mut headers = [EMPTY_HEADER; MOST_HEADERS];
    let mut request = Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(Status::Partial) => return None,
        Ok(Status::Complete(_)) => {}
        Err(_) => return Some(Err(("400 Bad Request", "that is no request"))),
    }
    Some(read(&request, secret, at))
}

fn read(request: &Request, secret: &str, at: SocketAddr) -> Result<Asked, Refused> {
    let header = |name: &str| {
        let mut found = request.headers.iter();
        let found = found.find(|header| header.name.eq_ignore_ascii_case(name));
        found.map(|header| String::from_utf8_lossy(header.value).into_owned())
    };
    if request.method != Some("GET") {
        return Err(("405 Method Not Allowed", "the page can only be read"));
    }
    let hosts = [at.to_string(), format!("localhost:{}", at.port())];
    if !header("host").is_some_and(|host| hosts.contains(&host)) {
        return Err(("421 Misdirected Request", "the host is not this page's"));
    }
    let is_own = |origin: String| hosts.iter().any(|host| origin == format!("http://{host}"));
    if !header("origin").is_none_or(is_own) {
        return Err(("403 Forbidden", "another page may not read this one"));
    }
    let path = request.path.unwrap_or_default();
    match path
        .strip_prefix('/')
        .and_then(|path| path.strip_prefix(secret))
    {
        Some("/") => Ok(Asked::Page),
        Some("/events") => Ok(Asked::Events),
        _ => Err((
            "404 Not Found",
            "take the whole address that schedlab has printed",
        )),
    }
}
