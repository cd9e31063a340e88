use super::*;
use crate::Outcome;
use stats::wealth::SHARE;

fn asked(question: &str) -> Asked {
    Asked {
        identity: Identity {
            question: question.to_owned(),
            subject: "subject".to_owned(),
        },
        words: question.to_owned(),
        comparisons: 2,
    }
}

fn answer(of: &Registered, outcome: Outcome) -> Answer {
    Answer {
        session: of.question.session,
        number: of.question.number,
        at: String::new(),
        outcome,
        findings: Vec::new(),
        results: None,
    }
}

const SHELL: WhichSession = WhichSession::Newest(Asker::Shell);

struct Place(tempfile::TempDir, Ledger);

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(&dir.path().join("referee")).unwrap();
        Place(dir, ledger)
    }
}

#[test]
fn each_question_pays_before_it_is_measured_and_only_what_was_accepted_is_paid_back() {
    let Place(_dir, ledger) = Place::new();
    let left = |ledger: &Ledger| ledger.read_books().unwrap().sessions()[0].wealth.left();
    let first = ledger.register_question(SHELL, &asked("a")).unwrap();
    assert_eq!(first.question.price, OF_SESSION * SHARE);
    assert_eq!(first.confidence(), 1.0 - OF_SESSION * SHARE / 2.0);
    assert_eq!(left(&ledger), OF_SESSION - first.question.price);
    ledger
        .record_answer(answer(&first, Outcome::NotAccepted))
        .unwrap();
    let second = ledger.register_question(SHELL, &asked("b")).unwrap();
    assert!(second.question.price < first.question.price);
    ledger
        .record_answer(answer(&second, Outcome::Accepted))
        .unwrap();
    // A second answer changes nothing.
    ledger
        .record_answer(answer(&first, Outcome::Accepted))
        .unwrap();
    assert!((left(&ledger) - (OF_SESSION - first.question.price)).abs() < 1e-12);
}

#[test]
fn a_session_that_has_spent_its_error_is_refused_and_a_new_one_knows_which_it_is() {
    let Place(_dir, ledger) = Place::new();
    let spent = loop {
        match ledger.register_question(SHELL, &asked("a")) {
            Ok(question) => ledger
                .record_answer(answer(&question, Outcome::NotAccepted))
                .unwrap(),
            Err(error) => break error,
        }
    };
    assert!(
        spent.to_string().contains("session 1 has spent its error"),
        "{spent}"
    );
    let new = WhichSession::New(Asker::Shell);
    let again = ledger.register_question(new, &asked("b")).unwrap();
    assert_eq!(again.question.session, 2);
    assert_eq!(again.earlier.in_other_sessions, 0);
    assert_eq!(again.earlier.sessions_on_subject, 1);
    let third = ledger.register_question(new, &asked("a")).unwrap();
    assert_eq!(third.earlier.in_other_sessions, 1);
    assert_eq!(third.earlier.sessions_on_subject, 2);
}

#[test]
fn half_a_line_of_a_killed_writer_was_never_registered() {
    let Place(_dir, ledger) = Place::new();
    ledger.register_question(SHELL, &asked("a")).unwrap();
    let whole = std::fs::read(ledger.path()).unwrap();
    let last = whole[..whole.len() - 1]
        .iter()
        .rposition(|b| *b == b'\n')
        .unwrap()
        + 1;
    for cut in last..whole.len() - 1 {
        std::fs::write(ledger.path(), &whole[..cut]).unwrap();
        assert_eq!(
            ledger.read_books().unwrap().sessions()[0].questions.len(),
            0
        );
    }
    let again = ledger.register_question(SHELL, &asked("b")).unwrap();
    assert_eq!(again.question.number, 1);
    let books = ledger.read_books().unwrap();
    assert_eq!(books.sessions()[0].questions[0].0.words, "b");
}

#[test]
fn a_line_that_was_changed_or_taken_out_is_named() {
    let Place(_dir, ledger) = Place::new();
    for question in ["first", "second", "third"] {
        ledger.register_question(SHELL, &asked(question)).unwrap();
    }
    let text = std::fs::read_to_string(ledger.path()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let without_second = [lines[0], lines[1], lines[3], ""].join("\n");
    for (changed, line) in [
        (
            text.replace("\"words\":\"second\"", "\"words\":\"other\""),
            4,
        ),
        (without_second, 3),
        (format!("{text}{{}}\n"), 5),
    ] {
        std::fs::write(ledger.path(), changed).unwrap();
        let error = ledger.register_question(SHELL, &asked("x")).unwrap_err();
        assert!(
            matches!(error, LedgerError::Changed { line: at, .. } if at == line),
            "{error}"
        );
    }
}

#[test]
fn writers_beside_each_other_lose_nothing_and_pay_for_each_question() {
    let Place(_dir, ledger) = Place::new();
    ledger.begin_session(Asker::Agent).unwrap();
    let write = |_| {
        let ledger = ledger.clone();
        std::thread::spawn(move || {
            for _ in 0..5 {
                let of = WhichSession::Number(1);
                ledger.register_question(of, &asked("a")).unwrap();
            }
        })
    };
    let writers: Vec<_> = (0..4).map(write).collect();
    writers
        .into_iter()
        .for_each(|writer| writer.join().unwrap());
    let books = ledger.read_books().unwrap();
    let session = books.find_session(1).unwrap();
    let numbers: Vec<u32> = session.questions.iter().map(|(q, _)| q.number).collect();
    assert_eq!(numbers, (1..=20).collect::<Vec<_>>());
    let left = OF_SESSION * (1.0 - SHARE).powi(20);
    assert!((session.wealth.left() - left).abs() < 1e-12);
}

#[test]
fn a_session_that_is_not_there_is_refused() {
    let Place(_dir, ledger) = Place::new();
    let error = ledger.register_question(WhichSession::Number(7), &asked("a"));
    assert!(matches!(error, Err(LedgerError::NoSession(7))));
}
