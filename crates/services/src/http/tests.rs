//! The response parser and the request that is sent.

use super::*;
use crate::openloop::{Done, Fault, Taken};
use model::{Load, OpenLoopParams};
use proptest::prelude::*;

const ASKED: Asked = Asked {
    head_only: false,
    keep_bytes: 100,
};

/// The answer to one request, taken in the pieces that `cuts` make of it.
fn taken(text: &[u8], cuts: &[usize]) -> Result<Taken, Fault> {
    let mut answer = HttpAnswer::new();
    answer.expect(ASKED);
    let mut progress = Taken::More;
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    for piece in cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]) {
        if piece.is_empty() {
            continue;
        }
        if progress != Taken::More {
            return Err(Fault::Garbage);
        }
        progress = answer.take_bytes(piece)?;
    }
    Ok(progress)
}

fn whole(text: &str) -> Result<Taken, Fault> {
    taken(text.as_bytes(), &[])
}

const fn done(ok: bool, keep: bool) -> Result<Taken, Fault> {
    Ok(Taken::Done(Done {
        ok,
        hit: None,
        keep,
    }))
}

const SIZED: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n\
                       5;a=b\r\nhello\r\n00A\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n";

#[test]
fn a_body_ends_at_its_length_or_at_the_last_chunk() {
    assert_eq!(whole(SIZED), done(true, true));
    assert_eq!(whole(CHUNKED), done(true, true));
    assert_eq!(
        whole("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        done(true, true)
    );
}

#[test]
fn answers_without_a_body_end_with_their_head() {
    assert_eq!(whole("HTTP/1.1 204 No Content\r\n\r\n"), done(true, true));
    assert_eq!(
        whole("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n"),
        done(true, true)
    );
    let mut answer = HttpAnswer::new();
    answer.expect(Asked {
        head_only: true,
        keep_bytes: 0,
    });
    assert_eq!(
        answer.take_bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"),
        done(true, true)
    );
}

#[test]
fn an_interim_answer_is_not_the_answer() {
    let interim = "HTTP/1.1 100 Continue\r\n\r\n";
    assert_eq!(whole(interim), Ok(Taken::More));
    assert_eq!(whole(&format!("{interim}{SIZED}")), done(true, true));
}

#[test]
fn errors_are_whole_answers_that_say_no() {
    assert_eq!(
        whole("HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\nno"),
        done(false, true)
    );
}

#[test]
fn a_connection_is_kept_unless_the_server_says_otherwise() {
    let closing = "HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(whole(closing), done(true, false));
    assert_eq!(
        whole("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"),
        done(true, false)
    );
    let kept = "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(whole(kept), done(true, true));
}

#[test]
fn a_body_without_a_length_ends_with_the_connection() {
    let mut answer = HttpAnswer::new();
    answer.expect(ASKED);
    assert_eq!(
        answer.take_bytes(b"HTTP/1.1 200 OK\r\n\r\nabc"),
        Ok(Taken::More)
    );
    assert!(
        answer
            .end_of_stream()
            .is_ok_and(|done| done.ok && !done.keep)
    );
}

#[test]
fn a_connection_that_ends_early_is_a_hang_up_or_half_an_answer() {
    let mut answer = HttpAnswer::new();
    answer.expect(ASKED);
    assert_eq!(answer.end_of_stream(), Err(Fault::HangUp));
    for half in ["H", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell"] {
        answer.expect(ASKED);
        assert_eq!(answer.take_bytes(half.as_bytes()), Ok(Taken::More));
        assert_eq!(answer.end_of_stream(), Err(Fault::HalfAnswer));
    }
}

#[test]
fn garbage_is_refused() {
    let too_long = format!("HTTP/1.1 200 OK\r\nA: {}", "a".repeat(70_000));
    for garbage in [
        "220 mail.example ESMTP\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, world",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab",
        &too_long,
    ] {
        assert_eq!(whole(garbage), Err(Fault::Garbage), "{garbage:.60}");
    }
}

#[test]
fn a_head_that_is_too_long_is_refused_also_when_it_comes_as_a_whole() {
    let head = format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "a".repeat(70_000));
    assert_eq!(whole(&head), Err(Fault::Garbage));
    assert_eq!(
        taken(head.as_bytes(), &[head.len() - 1]),
        Err(Fault::Garbage)
    );
}

proptest! {
    #[test]
    fn an_answer_is_the_same_in_whatever_pieces_it_comes(cuts: Vec<usize>) {
        for text in [SIZED, CHUNKED] {
            prop_assert_eq!(taken(text.as_bytes(), &cuts), done(true, true));
        }
    }

    #[test]
    fn nothing_that_a_server_sends_upsets_the_parser(text: Vec<u8>, cuts: Vec<usize>) {
        prop_assert_eq!(taken(&text, &cuts), taken(&text, &[]));
    }

    #[test]
    fn a_damaged_answer_is_judged_alike_in_whatever_pieces_it_comes(
        at in 0..CHUNKED.len(), byte: u8, cuts: Vec<usize>,
    ) {
        let mut text = CHUNKED.as_bytes().to_vec();
        text[at] = byte;
        prop_assert_eq!(taken(&text, &cuts), taken(&text, &[]));
    }
}

fn client() -> OpenLoopParams {
    OpenLoopParams {
        connections: 4,
        threads: 2,
        arrivals: model::Arrivals::Poisson,
        timeout_ns: 1_000_000_000,
        load_cpus: None,
        busy_poll: false,
        allow_remote: false,
    }
}

fn params(url: &str) -> HttpLoad {
    HttpLoad {
        url: url.to_owned(),
        method: "POST".to_owned(),
        headers: [("X-A".to_owned(), "b".to_owned())].into(),
        body: "xyz".to_owned(),
        requests: Vec::new(),
        setup: Vec::new(),
        ramps: None,
    }
}

/// At 100 requests a second.
fn job(params: &HttpLoad) -> Job {
    let mut job = testing::job(KIND.with_params(params));
    job.load = Load::RatePerSec(100.0);
    job.workload.client = Some(client());
    job
}

fn config(params: HttpLoad) -> Result<Config, String> {
    Config::of(&params, &job(&params))
}

#[test]
fn a_request_has_what_the_experiment_names() {
    let config = config(params("http://127.0.0.1:81/a?b")).unwrap();
    let Sent::One(request) = &config.sent else {
        panic!("there is one request");
    };
    assert_eq!(
        request,
        "POST /a?b HTTP/1.1\r\nHost: 127.0.0.1:81\r\nX-A: b\r\nContent-Length: 3\r\n\r\nxyz"
    );
    assert_eq!(config.open_loop.address.to_string(), "127.0.0.1:81");
}

#[test]
fn traffic_to_other_machines_must_be_allowed() {
    let params = params("http://192.0.2.1/");
    let mut job = job(&params);
    let refused = Config::of(&params, &job).unwrap_err();
    assert!(refused.contains("allow-remote"), "{refused}");
    job.workload.client = Some(OpenLoopParams {
        allow_remote: true,
        ..client()
    });
    assert!(Config::of(&params, &job).is_ok());
}

#[test]
fn headers_that_would_break_the_request_are_refused() {
    for (name, value) in [("A B", "c"), ("A", "b\r\nc: d"), ("content-LENGTH", "7")] {
        let mut params = params("http://127.0.0.1/");
        params.headers = [(name.to_owned(), value.to_owned())].into();
        assert!(config(params).is_err(), "{name}: {value}");
    }
}

#[test]
fn a_path_alone_needs_a_server() {
    assert!(config(params("/x")).unwrap_err().contains("server"));
}

#[test]
fn a_load_that_is_no_rate_is_a_problem() {
    let params = params("http://127.0.0.1/");
    let mut job = job(&params);
    job.load = Load::Count(2);
    let problems = params.require(&job);
    assert!(problems[0].what.contains("rate"), "{problems:?}");
}

#[test]
fn cpus_that_are_not_there_are_a_problem() {
    let params = params("http://127.0.0.1/");
    let mut job = job(&params);
    job.workload.client = Some(OpenLoopParams {
        load_cpus: Some("0,8000".to_owned()),
        ..client()
    });
    let problems = params.require(&job);
    assert!(problems[0].what.contains("no CPU 8000"), "{problems:?}");
}

#[test]
fn a_window_too_short_for_the_metric_that_decides_is_a_problem() {
    let params = params("http://127.0.0.1/");
    let mut job = job(&params);
    job.workload.duration_ns = 2_000_000_000;
    job.workload.metrics = vec!["request_p99".to_owned()];
    let problems = params.require(&job);
    assert!(problems[0].what.contains("200 requests"), "{problems:?}");
    assert!(
        problems[0].remedy.contains("duration = \"13s\""),
        "{problems:?}"
    );
    // Poisson arrivals may well be a few less.
    job.workload.duration_ns = 10_000_000_000;
    assert_eq!(params.require(&job).len(), 1);
    job.workload.duration_ns = 13_000_000_000;
    assert!(params.require(&job).is_empty());
    job.workload.duration_ns = 2_000_000_000;
    job.workload.metrics = vec!["request_p90".to_owned()];
    assert!(params.require(&job).is_empty());
}
