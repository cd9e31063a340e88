use crate::sealed::Pair;
use std::error::Error;
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Round trips of a program without extra messages.
const ROUND_TRIPS: u32 = 6000;

/// One program of a pair, named by the variable PROGRAM: `cat` gives back each message.
pub fn run(pair: &Path) -> Result<(), Box<dyn Error>> {
    let pair: Pair = serde_json::from_str(&fs::read_to_string(pair)?)?;
    let extra = match std::env::var("PROGRAM")?.as_str() {
        "first" => pair.first,
        "second" => pair.second,
        other => return Err(format!("no program is called {other}").into()),
    };
    let mut partner = Command::new("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut there = partner.stdin.take().ok_or("no pipe")?;
    let mut back = partner.stdout.take().ok_or("no pipe")?;
    let mut message = [0; 64];
    // The partner has started when the first has come back.
    let mut round_trip = || {
        there
            .write_all(&message)
            .and_then(|()| back.read_exact(&mut message))
    };
    round_trip()?;
    let began = Instant::now();
    let most = f64::from(ROUND_TRIPS) * (1.0 + extra / 100.0);
    let mut made = 0;
    while f64::from(made) < most {
        round_trip()?;
        made += 1;
    }
    println!("took: {}", began.elapsed().as_secs_f64());
    drop(there);
    partner.wait()?;
    Ok(())
}
