//! Containers of services, by the commands of their engines: podman(1) and docker(1).

use crate::fence::PREFIX;
use collect::tasks::Pid;
use doors::read::{Asked, output_within};
use doors::started::tool_command;
use model::printable::last_lines;
use model::stack::{Container, ENGINES};
use std::time::Duration;

/// Time for a question to an engine, and for the removal of a container.
pub const ENGINE_LIMIT: Duration = Duration::from_secs(30);
/// The engine that makes the first process of a container before it runs its program.
pub const PODMAN: &str = ENGINES[0];

/// The command of the engine of a container.
pub fn engine_of(container: &Container) -> &'static str {
    let is_taken = |name: &&str| match &container.engine {
        Some(engine) => engine == name,
        None => which::which(name).is_ok(),
    };
    ENGINES.into_iter().find(is_taken).unwrap_or(PODMAN)
}

/// Why there can be no container of this image, and what to do about it.
pub fn find_obstacle(container: &Container) -> Option<(String, String)> {
    let (engine, image) = (engine_of(container), &container.image);
    let asked = ["image", "inspect", "--format", "{{.Id}}", image];
    let why = ask_engine(engine, &asked).err()?;
    Some((
        format!("{engine} has no image {image} that it could start: {why}"),
        format!("{engine} pull {image}, or build it; schedlab fetches no image"),
    ))
}

/// The ID of a container and its first process, which is 0 where there is none.
pub fn read_state(engine: &'static str, name: &str) -> Result<(String, Pid), String> {
    let asked = [
        "container",
        "inspect",
        "--format",
        "{{.Id}} {{.State.Pid}}",
        name,
    ];
    let said = ask_engine(engine, &asked)?;
    let state = said.split_once(' ');
    let state = state.and_then(|(id, pid)| Some((id.to_owned(), pid.parse().ok()?)));
    state.ok_or_else(|| format!("{engine} says of container {name}: {said}"))
}

/// Ends and removes a container of schedlab's; false where there was none.
pub fn remove_container(engine: &str, name: &str) -> Result<bool, String> {
    let known = ENGINES.into_iter().find(|known| *known == engine);
    // A line that somebody wrote must not lead to the containers of others.
    let Some(engine) = known.filter(|_| name.starts_with(PREFIX)) else {
        return Err(format!(
            "remove the container {name} of {engine}: it is not schedlab's"
        ));
    };
    let quick: &[&str] = match engine {
        PODMAN => &["--time=0"],
        _ => &[],
    };
    let words = [&["rm", "--force"][..], quick, &[name]].concat();
    match ask_engine(engine, &words) {
        Ok(said) => Ok(!said.is_empty()),
        Err(why) if why.to_ascii_lowercase().contains("no such container") => Ok(false),
        Err(why) => Err(format!("remove the container {name}: {why}")),
    }
}

fn ask_engine(engine: &'static str, words: &[&str]) -> Result<String, String> {
    let mut command = tool_command(engine);
    command.args(words);
    let asked = Asked {
        time: ENGINE_LIMIT,
        ..Asked::default()
    };
    let output = output_within(&mut command, asked).map_err(|e| format!("{engine}: {e}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(last_lines(
            &String::from_utf8_lossy(&output.stderr),
            2,
            " | ",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_containers_that_schedlab_made_are_removed() {
        for (engine, name) in [("podman", "shop"), ("rm", "schedlab-1-x")] {
            let why = remove_container(engine, name).unwrap_err();
            assert!(why.contains("it is not schedlab's"), "{why}");
        }
    }

    #[test]
    fn the_engine_that_is_named_is_taken() {
        let container = |engine: Option<&str>| Container {
            image: "x".to_owned(),
            engine: engine.map(str::to_owned),
            options: Vec::new(),
            ports: std::collections::BTreeMap::new(),
        };
        assert_eq!(engine_of(&container(Some("docker"))), "docker");
        assert!(ENGINES.contains(&engine_of(&container(None))));
    }
}
