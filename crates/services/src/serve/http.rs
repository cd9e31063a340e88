//! HTTP/1.1: every request is answered with 200 and its own body, or `ok`.

use super::Step;
use std::io::Write;

const MOST_HEADERS: usize = 64;
const MOST_HEAD_BYTES: usize = 64 * 1024;
const MOST_BODY_BYTES: usize = 16 << 20;
const PLAIN_BODY: &[u8] = b"ok\n";

pub fn answer(input: &[u8], output: &mut Vec<u8>) -> Step {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let head = match request.parse(input) {
        Ok(httparse::Status::Complete(head)) if head <= MOST_HEAD_BYTES => head,
        Ok(httparse::Status::Partial) if input.len() <= MOST_HEAD_BYTES => return Step::More,
        _ => return refuse("400 Bad Request", output),
    };
    let length = match body_length(request.headers) {
        Ok(length) if length <= MOST_BODY_BYTES => length,
        Ok(_) => return refuse("413 Content Too Large", output),
        Err(()) => return refuse("411 Length Required", output),
    };
    let Some(body) = input.get(head..head + length) else {
        return Step::More;
    };
    let body = if body.is_empty() { PLAIN_BODY } else { body };
    let close = asks_to_close(&request);
    write_head("200 OK", body.len(), close, output);
    if request.method != Some("HEAD") {
        output.extend_from_slice(body);
    }
    if close {
        Step::Last
    } else {
        Step::Answered(head + length)
    }
}

fn refuse(status: &str, output: &mut Vec<u8>) -> Step {
    write_head(status, 0, true, output);
    Step::Last
}

fn write_head(status: &str, length: usize, close: bool, output: &mut Vec<u8>) {
    let close = if close { "Connection: close\r\n" } else { "" };
    // Writing to memory does not fail.
    let _ = write!(
        output,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n{close}\r\n"
    );
}

/// An error where the body has no plain length.
fn body_length(headers: &[httparse::Header]) -> Result<usize, ()> {
    let mut length = 0;
    for header in headers {
        if header.name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(());
        }
        if header.name.eq_ignore_ascii_case("content-length") {
            let text = std::str::from_utf8(header.value).map_err(|_| ())?;
            length = text.trim().parse().map_err(|_| ())?;
        }
    }
    Ok(length)
}

fn asks_to_close(request: &httparse::Request) -> bool {
    let mut values = request
        .headers
        .iter()
        .filter(|h| h.name.eq_ignore_ascii_case("connection"))
        .map(|h| h.value.trim_ascii());
    match request.version {
        Some(0) => !values.any(|value| value.eq_ignore_ascii_case(b"keep-alive")),
        _ => values.any(|value| value.eq_ignore_ascii_case(b"close")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(input: &str) -> (Step, String) {
        let mut output = Vec::new();
        let step = answer(input.as_bytes(), &mut output);
        (step, String::from_utf8(output).unwrap())
    }

    #[test]
    fn a_request_is_answered_with_its_own_body() {
        let request = "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc";
        let (step, text) = answered(&format!("{request}GET / HTTP/1.1\r\n"));
        assert_eq!(step, Step::Answered(request.len()));
        assert!(
            text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("\r\n\r\nabc"),
            "{text}"
        );
    }

    #[test]
    fn a_request_that_is_not_whole_is_waited_for() {
        assert_eq!(answered("GET / HT"), (Step::More, String::new()));
        assert_eq!(
            answered("PUT / HTTP/1.1\r\nContent-Length: 3\r\n\r\nab").0,
            Step::More
        );
    }

    #[test]
    fn head_has_the_length_but_no_body() {
        let (_, text) = answered("HEAD / HTTP/1.1\r\n\r\n");
        assert!(
            text.contains("Content-Length: 3") && text.ends_with("\r\n\r\n"),
            "{text}"
        );
    }

    #[test]
    fn what_cannot_be_read_ends_the_connection() {
        for wrong in [
            "NO\0PE\r\n\r\n",
            "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "PUT / HTTP/1.1\r\nContent-Length: many\r\n\r\n",
        ] {
            let (step, text) = answered(wrong);
            assert!(
                step == Step::Last && text.contains(" 41") || text.contains(" 400"),
                "{text}"
            );
        }
        assert_eq!(
            answered("GET / HTTP/1.1\r\nConnection: close\r\n\r\n").0,
            Step::Last
        );
    }
}
