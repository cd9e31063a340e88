//! Requests of several kinds: what is read, drawn, dealt out and judged.

use super::*;
use crate::http::KIND;
use load::Keys;
use load::params::Params;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;

fn read(written: Value) -> Result<HttpLoad, Invalid> {
    let mut keys = Keys::new(written.as_object().cloned().unwrap());
    let load = HttpLoad::read(&mut keys);
    match keys.into_fault() {
        Some(fault) => Err(fault),
        None => Ok(load),
    }
}

fn mix(written: Value) -> Result<Mix, Invalid> {
    Mix::from_params(&read(written)?, "bank:80")
}

fn fault(written: Value) -> String {
    let fault = mix(written).unwrap_err();
    format!("{}: {}; {}", fault.key, fault.what, fault.remedy)
}

fn accounts(count: u32) -> Value {
    json!({"name": "open", "count": count, "path": "/accounts", "body": "{\"owner\": 1}",
           "expect": {"status": 201}, "take": {"account": "$.id"}})
}

fn thread(mix: Mix, rows: usize) -> MixThread {
    let mut pools = mix.names.empty_pools();
    for row in 0..rows {
        pools.add_row(0, [row.to_string().into_boxed_str()].into());
    }
    let lines = vec![vec!["Bad Ems".to_owned(), "Köln".to_owned()]];
    MixThread::new(
        Arc::new(mix),
        Arc::new(lines),
        pools.into_shared(),
        7,
        Share::WHOLE,
    )
}

fn texts(thread: &mut MixThread, count: usize) -> Vec<String> {
    let text = |thread: &mut MixThread| {
        let drawn = thread.next_request();
        let text = String::from_utf8(thread.bytes(drawn).to_vec()).unwrap();
        assert_eq!(thread.bytes(drawn), text.as_bytes(), "the same bytes again");
        text
    };
    std::iter::repeat_with(|| text(thread))
        .take(count)
        .collect()
}

#[test]
fn a_request_is_put_together_from_its_parts() {
    let mix = mix(json!({"headers": {"Accept": "application/json"}, "setup": [accounts(2)],
        "request": [{"path": "/accounts/{account}?city={pick:cities.txt}", "headers": {"X-To": "{account:other}"},
                     "body": "{\"from\":{account},\"to\":{account:other},\"amount\":{decimal:0.50..0.50},\"n\":{int:-3..-3}}"}]}))
    .unwrap();
    assert_eq!(mix.files, ["cities.txt"]);
    for text in texts(&mut thread(mix, 2), 20) {
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let body: Value = serde_json::from_str(body).unwrap();
        let (from, to) = (&body["from"], &body["to"]);
        assert_ne!(from, to, "a sender is no receiver");
        assert_eq!((&body["amount"], &body["n"]), (&json!(0.5), &json!(-3)));
        let city = ["Bad%20Ems", "K%C3%B6ln"]
            .into_iter()
            .find(|c| head.contains(c));
        let length = text.len() - head.len() - 4;
        let expected = format!(
            "POST /accounts/{from}?city={} HTTP/1.1\r\nHost: bank:80\r\nAccept: application/json\r\n\
             X-To: {to}\r\nContent-Length: {length}",
            city.unwrap()
        );
        assert_eq!(head, expected);
    }
}

#[test]
fn what_is_drawn_depends_on_the_seed_alone_and_covers_its_range() {
    let written = json!({"setup": [accounts(3)], "request": [{"path": "/{account}/{int:1..3}/{decimal:0.8..1.1}"}]});
    let mix = mix(written).unwrap();
    let one = texts(&mut thread(mix.clone(), 3), 400);
    assert_eq!(one, texts(&mut thread(mix, 3), 400));
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for text in &one {
        *seen.entry(text.split(' ').nth(1).unwrap()).or_default() += 1;
    }
    assert_eq!(seen.len(), 3 * 3 * 4, "{seen:?}");
    assert!(seen.contains_key("/0/1/0.8") && seen.contains_key("/2/3/1.1"));
}

#[test]
fn each_kind_has_its_share_of_any_number_of_requests() {
    let weights = [10.0, 19.0, 1.0, 14.25, 0.75];
    let request = |weight: &f64| json!({"path": "/", "weight": weight});
    let requests: Vec<Value> = weights.iter().map(request).collect();
    let mut thread = thread(mix(json!({"request": requests})).unwrap(), 0);
    let mut counts = [0_u32; 5];
    for number in 1..=4_500_u32 {
        counts[thread.next_request().kind] += 1;
        for (count, weight) in counts.iter().zip(weights) {
            let share = f64::from(number) * weight / 45.0;
            assert!(
                (f64::from(*count) - share).abs() < 2.5,
                "{counts:?} of {number}"
            );
        }
    }
}

fn judged(request: Value, status: u16, body: &str) -> Result<Option<Vec<String>>, Wrong> {
    let mut request = request;
    request["path"] = json!("/");
    let mix = mix(json!({"request": [request]})).unwrap();
    let taken = mix.requests[0].check.judge(status, body.as_bytes())?;
    Ok(taken.map(|(_, row)| row.iter().map(ToString::to_string).collect()))
}

#[test]
fn a_right_answer_has_the_status_and_the_content_that_are_expected() {
    let any = json!({});
    assert_eq!(judged(any.clone(), 302, ""), Ok(None));
    assert_eq!(judged(any, 404, ""), Err(Wrong::Status(404)));
    let refused = json!({"expect": {"status": 422, "json": "$.type", "is": "fraud"}});
    assert_eq!(
        judged(refused.clone(), 422, "{\"type\":\"fraud\"}"),
        Ok(None)
    );
    assert_eq!(
        judged(refused.clone(), 201, "{\"type\":\"fraud\"}"),
        Err(Wrong::Status(201))
    );
    for wrong in ["{\"type\":\"other\"}", "{\"type\":null}", "{}", "no JSON"] {
        assert_eq!(
            judged(refused.clone(), 422, wrong),
            Err(Wrong::Content),
            "{wrong}"
        );
    }
    let number = json!({"expect": {"json": "$.primes", "is": 9592}});
    assert_eq!(judged(number, 200, "{\"primes\":9592}"), Ok(None));
    let there = json!({"expect": {"json": "$.weights[0]"}});
    assert_eq!(judged(there.clone(), 200, "{\"weights\":[0.5]}"), Ok(None));
    assert_eq!(judged(there, 200, "{\"weights\":[]}"), Err(Wrong::Content));
    let text = json!({"expect": {"regex": "state=(\\w+)", "is": "up"}});
    assert_eq!(judged(text.clone(), 200, "state=up!"), Ok(None));
    assert_eq!(judged(text, 200, "state=down"), Err(Wrong::Content));
}

#[test]
fn values_of_one_answer_stay_together() {
    let take = json!({"take": {"token": "t=(\\w+)", "id": "$.id"}});
    assert_eq!(
        judged(take.clone(), 200, "{\"id\": 7, \"x\": \"t=abc\"}"),
        Ok(Some(vec!["7".to_owned(), "abc".to_owned()]))
    );
    assert_eq!(
        judged(take.clone(), 200, "{\"id\": 7}"),
        Err(Wrong::Content)
    );
    // A line end in a value would be a header of its own.
    assert_eq!(
        judged(take, 200, "{\"id\": \"a\\r\\nX: y\", \"x\": \"t=abc\"}"),
        Err(Wrong::Content)
    );
}

#[test]
fn values_that_requests_take_are_drawn_by_those_after_them() {
    let written = json!({"setup": [accounts(1)], "request": [
        {"path": "/{account}", "body": "x", "take": {"account": "$.id"}}]});
    let mut thread = thread(mix(written).unwrap(), 1);
    let before = thread.next_request();
    let mut answer = thread.answer();
    answer.expect(Asked {
        head_only: false,
        keep_bytes: 1000,
    });
    let text = b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n{\"id\":9}";
    let crate::openloop::Taken::Done(done) = answer.take_bytes(text).unwrap() else {
        panic!("it is whole");
    };
    thread.judge(before, &answer, done).unwrap();
    // The request that was drawn before has the same bytes when it is sent again.
    assert!(thread.bytes(before).starts_with(b"POST /0 "));
    let after = texts(&mut thread, 50);
    assert!(after.iter().any(|text| text.starts_with("POST /9 ")));
    assert!(after.iter().any(|text| text.starts_with("POST /0 ")));
}

/// A request, the place of its fault below it, and words of what is said.
const WRONG_REQUESTS: [&str; 17] = [
    r#"{} =>  => needs its path"#,
    r#"{"path": "x"} => .path => slash"#,
    r#"{"path": "/", "weight": 0} => .weight => weight 0"#,
    r#"{"path": "/", "method": "GET /"} => .method => method"#,
    r#"{"path": "/{acount}"} => .path => did you mean `account`?"#,
    r#"{"path": "/", "body": "{int:9..1}"} => .body => {int:1..1000}"#,
    r#"{"path": "/", "body": "{decimal:1}"} => .body => {decimal:0.01..99.99}"#,
    r#"{"path": "/", "body": "{account:x}"} => .body => {account:other}"#,
    r#"{"path": "/", "body": "{account:other}"} =>  => takes 1"#,
    r#"{"path": "/", "expect": {"status": 99}} => .expect.status => 99"#,
    r#"{"path": "/", "expect": {"json": "id"}} => .expect.json => JSONPath"#,
    r#"{"path": "/", "expect": {"is": 1}} => .expect.is => not where"#,
    r#"{"path": "/", "expects": 1} => .expects => unknown field"#,
    r#"{"path": "/", "take": {"id": "id=\\d"}} => .take.id => group"#,
    r#"{"path": "/", "take": {"int": "$.id"}} => .take => no name"#,
    r#"{"path": "/", "take": {"account": "$.id", "x": "$.x"}} => .take => together"#,
    r#"{"path": "/", "headers": {"Content-Length": "1"}} => .headers => follows"#,
];

/// The same of whole workloads.
const WRONG_WORKLOADS: [&str; 4] = [
    r#"{"request": [{"path": "/{account}"}]} => request.0.path => [[workload.setup]]"#,
    r#"{"body": "x", "request": [{"path": "/"}]} => body => into each request"#,
    r#"{"url": "/x", "request": [{"path": "/"}]} => url => has a path"#,
    r#"{"setup": [{"path": "/{a}", "take": {"a": "$.id"}}], "request": [{"path": "/"}]} => setup.0 => takes 0"#,
];

#[test]
fn what_is_wrong_is_said_with_its_place_and_a_remedy() {
    let check = |row: &str, of: &dyn Fn(Value) -> Value, within: &str| {
        let parts: Vec<&str> = row.split(" => ").collect();
        let said = fault(of(serde_json::from_str(parts[0]).unwrap()));
        let place = format!("{within}{}: ", parts[1]);
        assert!(
            said.starts_with(&place) && said.contains(parts[2]),
            "{row}: {said}"
        );
    };
    let one = |request: Value| json!({"setup": [accounts(1)], "request": [request]});
    for row in WRONG_REQUESTS {
        check(row, &one, "request.0");
    }
    for row in WRONG_WORKLOADS {
        check(row, &|workload| workload, "");
    }
}

#[test]
fn braces_that_are_no_placeholders_stay() {
    let body = "{\"a\": {\"b\": {int:5..5}}, \"c\": {}, {bank.port} {folder} {A}";
    let mix = mix(json!({"request": [{"path": "/", "body": body}]})).unwrap();
    let text = &texts(&mut thread(mix, 0), 1)[0];
    assert!(text.ends_with(&body.replace("{int:5..5}", "5")), "{text}");
}

#[test]
fn a_placeholder_in_double_braces_is_the_text_of_it() {
    let body = "{{account}} {{no-such}} {{int:1..9}} {{pick:no.txt}} {\"a\":{\"b\":{int:5..5}}} \
                {{{int:5..5}} {{\"c\"}} {{A}}";
    let mix = mix(json!({"request": [{"path": "/{{id}}/x", "body": body}]})).unwrap();
    assert!(mix.files.is_empty(), "{:?}", mix.files);
    let text = &texts(&mut thread(mix, 0), 1)[0];
    assert!(text.starts_with("POST /{id}/x HTTP/1.1\r\n"), "{text}");
    let expected = "{account} {no-such} {int:1..9} {pick:no.txt} {\"a\":{\"b\":5}} {{int:5..5} \
                    {{\"c\"}} {{A}}";
    assert!(text.ends_with(&format!("\r\n\r\n{expected}")), "{text}");
    let unknown = fault(json!({"request": [{"path": "/{id}"}]}));
    assert!(unknown.contains("{{id}} is the text itself"), "{unknown}");
}

#[test]
fn parameters_are_read_back_as_they_were_stored() {
    let load = read(
        json!({"setup": [accounts(5)], "phases": {"ramp-up": "1s", "from": "20%"},
        "request": [{"path": "/{account}", "weight": 2.5, "expect": {"is": true, "json": "$.x"}}]}),
    )
    .unwrap();
    assert_eq!(load.requests[0].name, "GET /{account}");
    assert_eq!(load.ramps.unwrap().up_ns, 1_000_000_000);
    let kind = KIND.with_params(&load);
    let params = Value::Object(kind.params().clone());
    assert_eq!(serde_json::from_value::<HttpLoad>(params).unwrap(), load);
    let plain = json!({"url": "/", "method": "GET"});
    let old: HttpLoad = serde_json::from_value(plain.clone()).unwrap();
    assert_eq!(
        Value::Object(KIND.with_params(&old).params().clone()),
        plain
    );
}

/// A server that answers each request on its one connection with the next of these.
fn server(answers: Vec<String>) -> (SocketAddr, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = move || {
        let mut heads = Vec::new();
        let (stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        for answer in answers {
            let (mut head, mut length) = (String::new(), 0);
            while !head.ends_with("\r\n\r\n") {
                let start = head.len();
                if reader.read_line(&mut head).unwrap() == 0 {
                    return heads;
                }
                let line = &head[start..];
                length = line
                    .strip_prefix("Content-Length: ")
                    .map_or(length, |l| l.trim().parse().unwrap());
            }
            reader.read_exact(&mut vec![0; length]).unwrap();
            heads.push(head);
            stream.write_all(answer.as_bytes()).unwrap();
        }
        heads
    };
    (address, std::thread::spawn(serve))
}

fn created(id: u32) -> String {
    let body = format!("{{\"id\":{id}}}");
    format!(
        "HTTP/1.1 201 Created\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[test]
fn the_set_up_fills_the_pools_before_the_load() {
    let written = json!({"setup": [accounts(3), {"path": "/{account}", "count": 2}],
                         "request": [{"path": "/{account}"}]});
    let mix = mix(written).unwrap();
    let empty = || "HTTP/1.1 204 No Content\r\n\r\n".to_owned();
    let (address, server) = server(vec![created(4), created(5), created(6), empty(), empty()]);
    let pools = mix.set_up(address, &[], 1).unwrap();
    assert_eq!(pools.lengths()[0], 3);
    let heads = server.join().unwrap();
    assert!(heads[0].starts_with("POST /accounts HTTP/1.1\r\nHost: bank:80\r\n"));
    let drawn = ["GET /4 ", "GET /5 ", "GET /6 "];
    assert!(
        heads[3..]
            .iter()
            .all(|head| drawn.iter().any(|d| head.starts_with(d))),
        "{heads:?}"
    );
}

#[test]
fn a_set_up_that_fails_says_at_which_request_and_why() {
    let mix = mix(json!({"setup": [accounts(3)], "request": [{"path": "/"}]})).unwrap();
    let broken = "HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\nboom".to_owned();
    let (address, server) = server(vec![created(4), broken]);
    let error = mix.set_up(address, &[], 1).unwrap_err();
    assert_eq!(
        error,
        "set-up, `open` (2 of 3): status 500, expected status 201: boom"
    );
    server.join().unwrap();
    let error = mix.set_up(address, &[], 1).unwrap_err();
    assert!(error.contains("refused"), "{error}");
}

#[test]
fn a_file_of_values_that_is_not_there_is_named() {
    let mix = mix(json!({"request": [{"path": "/{pick:no-such.txt}"}]})).unwrap();
    let error = mix.lines().unwrap_err();
    assert!(
        error.contains("{pick:no-such.txt}: No such file"),
        "{error}"
    );
}
