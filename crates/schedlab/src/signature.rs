//! Signatures of capsules with the user's own SSH key: ssh-keygen(1) makes and checks
//! them, so that keys, agents, hardware tokens and lists of signers are those that the
//! user has.

use doors::read::{Asked, output_within};
use doors::started::tool_command;
use model::printable::one_line;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

/// A signature that was made for something else must not pass for one of a capsule.
pub const NAMESPACE: &str = "schedlab-capsule";

/// A person looks for the words of a key, or touches one.
const PERSON: Duration = Duration::from_secs(600);

/// The keys that ssh(1) tries, the usual one first.
const USUAL_KEYS: [&str; 5] = [
    "id_ed25519",
    "id_ecdsa",
    "id_rsa",
    "id_ed25519_sk",
    "id_ecdsa_sk",
];

/// The key that was named, or else the user's usual one.
pub fn key(named: Option<&Path>) -> Result<PathBuf, String> {
    if let Some(key) = named {
        return match key.exists() {
            true => Ok(key.to_owned()),
            false => Err(format!("there is no key {}", key.display())),
        };
    }
    let home = std::env::var_os("HOME").unwrap_or_default();
    let keys = USUAL_KEYS.map(|name| Path::new(&home).join(".ssh").join(name));
    keys.into_iter().find(|key| key.exists()).ok_or_else(|| {
        "there is no SSH key in ~/.ssh; name one with --sign=KEY, or make one with ssh-keygen"
            .to_owned()
    })
}

/// A signature of `text`, as ssh-keygen writes it. A passphrase is asked for on the
/// terminal.
pub fn sign(text: &str, key: &Path) -> Result<String, String> {
    let mut command = ssh_keygen("sign");
    command.arg("-f").arg(key);
    let output = run(command, text.as_bytes())?;
    match output.status.success() {
        true => String::from_utf8(output.stdout).map_err(|e| format!("ssh-keygen: {e}")),
        false => Err(last_words(&output)),
    }
}

/// The key of a signature: all that can be said without knowing whom to trust.
pub fn signing_key(text: &[u8], signature: &Path) -> Result<String, String> {
    let mut command = ssh_keygen("check-novalidate");
    command.arg("-s").arg(signature);
    good(&run(command, text)?)
}

/// Who signed, if it is one of the list of allowed signers (see ssh-keygen(1)).
pub fn signer(text: &[u8], signature: &Path, allowed: &Path) -> Result<String, String> {
    let mut command = ssh_keygen("find-principals");
    command.arg("-s").arg(signature).arg("-f").arg(allowed);
    let found = run(command, text)?;
    let names = String::from_utf8_lossy(&found.stdout).into_owned();
    let mut why = format!("its key is not in {}", allowed.display());
    for name in names.split(['\n', ',']).map(str::trim) {
        if name.is_empty() {
            continue;
        }
        let mut command = ssh_keygen("verify");
        command.arg("-s").arg(signature).arg("-f").arg(allowed);
        command.arg("-I").arg(name);
        match good(&run(command, text)?) {
            Ok(said) => return Ok(said),
            Err(refused) => why = refused,
        }
    }
    Err(why)
}

fn ssh_keygen(action: &str) -> Command {
    let mut command = tool_command("ssh-keygen");
    command.args(["-Y", action, "-n", NAMESPACE]);
    command
}

/// `ED25519 key SHA256:…`, and before it who that is, where ssh-keygen says so.
fn good(output: &Output) -> Result<String, String> {
    let said = String::from_utf8_lossy(&output.stdout);
    let line = said.lines().find_map(|line| line.strip_prefix("Good "));
    match line.filter(|_| output.status.success()) {
        Some(line) => Ok(one_line(line).into_owned()),
        None => Err(last_words(output)),
    }
}

fn run(mut command: Command, input: &[u8]) -> Result<Output, String> {
    let failed = |e: std::io::Error| match e.kind() {
        ErrorKind::NotFound => {
            "ssh-keygen was not found; install the package openssh-client".to_owned()
        }
        _ => format!("ssh-keygen: {e}"),
    };
    let asked = Asked {
        time: PERSON,
        input,
        // It asks for the words of a key on the terminal.
        with_us: true,
        ..Asked::default()
    };
    output_within(&mut command, asked).map_err(|e| failed(e.into()))
}

fn last_words(output: &Output) -> String {
    let said = [&output.stderr, &output.stdout].map(|text| String::from_utf8_lossy(text));
    let lines: Vec<&str> = said.iter().flat_map(|text| text.lines()).collect();
    let words = lines.iter().rev().find(|line| !line.trim().is_empty());
    match words {
        Some(words) => format!("ssh-keygen: {}", one_line(words.trim())),
        None => format!("ssh-keygen ended with {}", output.status),
    }
}
