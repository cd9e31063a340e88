use super::*;
use report::picture::Picture;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

fn page() -> Page {
    Page::listen_at("127.0.0.1:0".parse().unwrap()).unwrap()
}

/// Host with port, and the path.
fn parts(page: &Page) -> (String, String) {
    let rest = page.address().strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    (host.to_owned(), format!("/{path}"))
}

fn ask(page: &Page, path: &str, headers: &str) -> TcpStream {
    let (host, _) = parts(page);
    let mut stream = TcpStream::connect(&host).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

fn status(page: &Page, path: &str, headers: &str) -> String {
    let mut text = String::new();
    ask(page, path, headers).read_to_string(&mut text).unwrap();
    text.lines().next().unwrap_or_default().to_owned()
}

fn named(name: &str) -> Scene {
    Scene {
        picture: Picture {
            name: name.to_owned(),
            ..Picture::default()
        },
        ..Scene::default()
    }
}

#[test]
fn only_the_page_itself_can_read_it() {
    let page = page();
    let (host, path) = parts(&page);
    let own = format!("Host: {host}\r\n");
    assert_eq!(status(&page, &path, &own), "HTTP/1.1 200 OK");
    assert_eq!(status(&page, "/", &own), "HTTP/1.1 404 Not Found");
    let other = "Host: example.com\r\n";
    assert_eq!(
        status(&page, &path, other),
        "HTTP/1.1 421 Misdirected Request"
    );
    let origin = format!("{own}Origin: http://example.com\r\n");
    assert_eq!(status(&page, &path, &origin), "HTTP/1.1 403 Forbidden");
    let long = format!("X: {}\r\n", "x".repeat(9000));
    let said = status(&page, &path, &long);
    assert_eq!(said, "HTTP/1.1 431 Request Header Fields Too Large");
}

#[test]
fn a_client_gets_the_last_scene_then_each_new_one_and_the_report() {
    let page = page();
    let (host, path) = parts(&page);
    page.show(&named("first"));
    page.show(&named("second"));
    let events = format!("{path}events");
    let mut lines = BufReader::new(ask(&page, &events, &format!("Host: {host}\r\n"))).lines();
    let mut next = |begin: &str| loop {
        let line = lines.next().expect("a line").unwrap();
        if line.starts_with(begin) {
            return line;
        }
    };
    assert!(next("data: ").contains("\"second\""));
    page.show(&named("third"));
    assert!(next("data: ").contains("\"third\""));
    page.show_report("<h1>\nresult</h1>");
    assert_eq!(next("event: "), "event: report");
    assert_eq!(next("data: "), "data: \"<h1>\\nresult</h1>\"");
    drop(page);
    assert!(lines.all(|line| line.is_ok_and(|line| line.is_empty())));
}

#[test]
fn clients_beyond_the_most_are_served_after_others_have_gone() {
    let page = page();
    let (host, path) = parts(&page);
    page.show(&named("run"));
    let events = format!("{path}events");
    let headers = format!("Host: {host}\r\n");
    let mut held = Vec::new();
    for _ in 0..MOST_CLIENTS {
        let mut lines = BufReader::new(ask(&page, &events, &headers)).lines();
        let found = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains("\"run\"")));
        assert!(found.is_some());
        held.push(lines);
    }
    let late = ask(&page, &path, &headers);
    late.set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    let mut late = late;
    assert!(late.read(&mut [0; 1]).is_err(), "nobody has gone");
    held.pop();
    late.set_read_timeout(None).unwrap();
    let mut text = String::new();
    late.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");
}

#[test]
fn many_clients_get_the_last_scene_of_a_while_and_not_each_one() {
    let page = page();
    let (host, path) = parts(&page);
    let events = format!("{path}events");
    page.show(&named("first"));
    let headers = format!("Host: {host}\r\n");
    let mut held: Vec<_> = (0..50)
        .map(|_| BufReader::new(ask(&page, &events, &headers)).lines())
        .collect();
    let mut next = |client: usize| loop {
        let line = held[client].next().expect("a line").unwrap();
        if line.starts_with("data: ") {
            return line;
        }
    };
    for client in 0..50 {
        assert!(next(client).contains("\"first\""));
    }
    page.show(&named("second"));
    assert!(next(0).contains("\"second\""));
    page.show(&named("third"));
    std::thread::sleep(Duration::from_millis(20));
    page.show(&named("fourth"));
    assert!(next(0).contains("\"fourth\""), "nobody is sent the third");
    page.show_report("over");
    assert!(next(0).contains("\"over\""));
}

#[test]
fn the_page_is_small_and_names_no_other_host() {
    assert!(PAGE.len() < 150 << 10);
    assert!(!PAGE.contains("http://") && !PAGE.contains("https://"));
}
