//! `[[workload.service]]`: the programs that are started, in the order of the file, before
//! the load of a workload.

use crate::error::PlanError;
use crate::placement::{check_placement, read_role};
use crate::table::Value;
use load::units::Duration;
use model::check::check_argv;
use model::stack::{self, CONTAINER, Container, ENGINES, FOLDER, LOAD, PORT, find_placeholders};
use model::{Ready, Service, StopSignal};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};

const SECOND_NS: u64 = 1_000_000_000;
const READY_LIMIT_NS: u64 = 60 * SECOND_NS;
const STOP_LIMIT_NS: u64 = 10 * SECOND_NS;
const MOST_PORTS: usize = 16;
const EXAMPLE: &str = "[\"my-service\", \"--port\", \"{port}\"]";

/// `ready = { path = "/health", status = 200 }`, `{ command = […] }` or `{ log = "…" }`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileReady {
    path: Option<String>,
    status: Option<u16>,
    command: Option<Vec<String>>,
    log: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct FileService {
    name: String,
    command: Option<Vec<String>>,
    image: Option<String>,
    engine: Option<String>,
    options: Option<Vec<String>>,
    container_ports: Option<BTreeMap<String, u16>>,
    env: Option<BTreeMap<String, String>>,
    directory: Option<String>,
    files: Option<BTreeMap<String, String>>,
    before_start: Option<Vec<Vec<String>>>,
    when_ready: Option<Vec<Vec<String>>>,
    ports: Option<Vec<String>>,
    ready: Option<FileReady>,
    ready_limit: Option<Duration>,
    stop_signal: Option<StopSignal>,
    stop_limit: Option<Duration>,
    keep: Option<Vec<String>>,
}

pub(crate) fn services(files: Vec<Value>) -> Result<Vec<Service>, PlanError> {
    let mut spans = Vec::new();
    let mut services = Vec::new();
    for (index, file) in files.into_iter().enumerate() {
        let (span, place) = (file.span(), format!("service.{index}"));
        let service = read(file);
        services.push(service.map_err(|e| e.with_span(span.clone()).in_table(&place))?);
        spans.push(span);
    }
    for (index, span) in spans.into_iter().enumerate() {
        let place = format!("service.{index}");
        check_service(&services, index).map_err(|e| e.with_span(span).in_table(&place))?;
    }
    Ok(services)
}

fn read(value: Value) -> Result<Service, PlanError> {
    let (placement, (), mut file): (_, _, FileService) = read_role(value, |_| ())?;
    let container = container(&mut file)?;
    Ok(Service {
        placement,
        argv: match &container {
            Some(_) => file.command.unwrap_or_default(),
            None => argv(file.command, &file.name)?,
        },
        container,
        name: file.name,
        environment: file.env.unwrap_or_default(),
        directory: file.directory,
        files: file.files.unwrap_or_default(),
        before_start: file.before_start.unwrap_or_default(),
        when_ready: file.when_ready.unwrap_or_default(),
        ports: file.ports.unwrap_or_default(),
        ready: readiness(file.ready)?,
        ready_limit_ns: file.ready_limit.map_or(READY_LIMIT_NS, |d| d.0),
        stop_signal: file.stop_signal.unwrap_or_default(),
        stop_limit_ns: file.stop_limit.map_or(STOP_LIMIT_NS, |d| d.0),
        keep: file.keep.unwrap_or_default(),
    })
}

fn argv(command: Option<Vec<String>>, service: &str) -> Result<Vec<String>, PlanError> {
    match command {
        Some(argv) if !argv.is_empty() => Ok(argv),
        _ => Err(
            PlanError::new(format!("the service `{service}` needs its `command`"))
                .with_help(format!("command = {EXAMPLE}"))
                .about_key("command"),
        ),
    }
}

/// The container of a service that has an image.
fn container(file: &mut FileService) -> Result<Option<Container>, PlanError> {
    let Some(image) = file.image.take() else {
        let keys = [
            ("engine", file.engine.is_some()),
            ("options", file.options.is_some()),
            ("container-ports", file.container_ports.is_some()),
        ];
        return match keys.into_iter().find(|(_, is_there)| *is_there) {
            None => Ok(None),
            Some((key, _)) => Err(PlanError::new(format!(
                "`{key}` is of a container, and the service `{}` has no image",
                file.name
            ))
            .with_help("image = \"localhost/shop:1\"")
            .about_key(key)),
        };
    };
    Ok(Some(Container {
        image,
        engine: file.engine.take(),
        options: file.options.take().unwrap_or_default(),
        ports: file.container_ports.take().unwrap_or_default(),
    }))
}

fn readiness(file: Option<FileReady>) -> Result<Ready, PlanError> {
    let Some(file) = file else {
        return Ok(Ready::Ports);
    };
    match (file.path, file.status, file.command, file.log) {
        (Some(path), status, None, None) => Ok(Ready::Http {
            path,
            status: status.unwrap_or(200),
        }),
        (None, None, Some(argv), None) => Ok(Ready::Command { argv }),
        (None, None, None, Some(text)) => Ok(Ready::Log { text }),
        _ => Err(
            PlanError::new("`ready` is one of a path, a command or a text of the log")
                .with_help("ready = { path = \"/health\" }, or { log = \"started\" }; without it the ports must take connections")
                .about_key("ready"),
        ),
    }
}

/// All services of a workload, wherever they come from.
pub(crate) fn check_services(services: &[Service]) -> Result<(), PlanError> {
    (0..services.len()).try_for_each(|index| check_service(services, index))
}

fn check_service(services: &[Service], index: usize) -> Result<(), PlanError> {
    let service = &services[index];
    check_name("a service", &service.name).map_err(|e| e.about_key("name"))?;
    if services[..index].iter().any(|s| s.name == service.name) {
        let twice = format!("there are two services `{}`", service.name);
        return Err(PlanError::new(twice)
            .with_help("give one of them another `name`")
            .about_key("name"));
    }
    check_ports(&service.ports).map_err(|e| e.about_key("ports"))?;
    check_placement(&service.placement)?;
    check_files(&service.files)?;
    check_keep(&service.keep)?;
    check_environment(service).map_err(|e| e.about_key("env"))?;
    check_ready(service).map_err(|e| e.about_key("ready"))?;
    check_container(service)?;
    check_words(services, service)
}

/// Lower-case letters, digits and dashes: it becomes the name of a folder and of a log.
fn check_name(what: &str, name: &str) -> Result<(), PlanError> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_taken = [PORT, FOLDER, CONTAINER, LOAD, "server"].contains(&name);
    if (1..=40).contains(&name.len()) && name.chars().all(fits) && !is_taken {
        return Ok(());
    }
    Err(PlanError::new(format!("`{name}` is no name for {what}")).with_help(
        "use lower-case letters, digits and dashes, at most 40, but not `port`, `folder`, `container`, `load` or `server`",
    ))
}

fn check_ports(ports: &[String]) -> Result<(), PlanError> {
    if ports.len() > MOST_PORTS {
        return Err(PlanError::new(format!(
            "a service has at most {MOST_PORTS} ports"
        )));
    }
    let mut names = BTreeSet::new();
    for port in ports {
        check_name("a port", port)?;
        if !names.insert(port) {
            return Err(PlanError::new(format!("there are two ports `{port}`")));
        }
    }
    Ok(())
}

fn stays_inside(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    let is_plain = parts.all(|part| matches!(part, Component::Normal(_)));
    is_plain && !name.is_empty() && !name.contains('\0')
}

/// Files and folders that a trial keeps are in the folder of whoever made them.
pub(crate) fn check_keep(keep: &[String]) -> Result<(), PlanError> {
    match keep.iter().find(|name| !stays_inside(name)) {
        None => Ok(()),
        Some(name) => Err(
            PlanError::new(format!("`{name}` is no place in the folder"))
                .with_help("keep = [\"report\"]: names without `..` or a slash in front")
                .about_key("keep"),
        ),
    }
}

/// Files stay in the folder of the service or the load that they are written for.
pub(crate) fn check_files(files: &BTreeMap<String, String>) -> Result<(), PlanError> {
    match files.keys().find(|name| !stays_inside(name)) {
        None => Ok(()),
        Some(name) => Err(
            PlanError::new(format!("`{name}` is no file in the folder"))
                .with_help("files = { \"conf/server.properties\" = \"…\" }: names without `..` or a slash in front")
                .about_key("files"),
        ),
    }
}

fn check_environment(service: &Service) -> Result<(), PlanError> {
    let is_wrong = |(name, value): &(&String, &String)| {
        name.is_empty() || name.contains(['=', '\0']) || value.contains('\0')
    };
    match service.environment.iter().find(is_wrong) {
        None => Ok(()),
        Some((name, _)) => Err(PlanError::new(format!(
            "`{name}` is no environment variable"
        ))),
    }
}

fn check_ready(service: &Service) -> Result<(), PlanError> {
    match &service.ready {
        Ready::Http { path, .. } if service.ports.is_empty() => Err(PlanError::new(format!(
            "the service `{}` is asked for `{path}`, but has no port",
            service.name
        ))
        .with_help("ports = [\"http\"], and {port} in its command")),
        Ready::Http { path, .. } if !path.starts_with('/') => {
            Err(PlanError::new(format!("`{path}` is no path")).with_help("begin it with a slash"))
        }
        Ready::Command { argv } => Ok(check_argv("ready", argv)?),
        Ready::Log { text } if text.is_empty() => {
            Err(PlanError::new("every log has an empty text").with_help("log = \"started\""))
        }
        _ => Ok(()),
    }
}

/// Options that the engine gets from schedlab, which would not find the container again.
const OWN_OPTIONS: [&str; 4] = ["--name", "--detach", "-d", "--rm"];

fn check_container(service: &Service) -> Result<(), PlanError> {
    let Some(container) = &service.container else {
        return Ok(());
    };
    check_image(&container.image).map_err(|e| e.about_key("image"))?;
    check_engine(container)?;
    let mut ports = container.ports.keys();
    if let Some(unknown) = ports.find(|port| !service.ports.contains(port)) {
        return Err(PlanError::new(format!("`{unknown}` is none of its ports"))
            .with_help("ports = [\"http\"] and container-ports = { http = 80 }")
            .about_key("container-ports"));
    }
    match service.placement.memory_node {
        None => Ok(()),
        Some(node) => Err(
            PlanError::new("the engine says where the memory of a container is")
                .with_help(format!("options = [\"--cpuset-mems={node}\"]"))
                .about_key("memory-node"),
        ),
    }
}

fn check_image(image: &str) -> Result<(), PlanError> {
    let is_shown = image.chars().all(|c| c.is_ascii_graphic());
    match is_shown && !image.is_empty() && !image.starts_with('-') {
        true => Ok(()),
        false => Err(PlanError::new(format!("`{image}` is no name of an image"))
            .with_help("image = \"localhost/shop:1\"")),
    }
}

/// The engine is known, and its options are not those that it gets from schedlab.
fn check_engine(container: &Container) -> Result<(), PlanError> {
    let engine = container.engine.as_deref();
    if let Some(other) = engine.filter(|name| !ENGINES.contains(name)) {
        let known = ENGINES.map(|engine| format!("engine = \"{engine}\""));
        return Err(
            PlanError::new(format!("`{other}` is no engine that schedlab knows"))
                .with_help(known.join(", or "))
                .about_key("engine"),
        );
    }
    let is_own =
        |option: &&String| OWN_OPTIONS.contains(&option.split('=').next().unwrap_or_default());
    match container.options.iter().find(is_own) {
        None => Ok(()),
        Some(own) => Err(
            PlanError::new(format!("`{own}` is given by schedlab itself"))
                .with_help("leave it out; `{container}` is the name in other texts")
                .about_key("options"),
        ),
    }
}

/// Commands can be started, and what they have in braces is known.
fn check_words(services: &[Service], service: &Service) -> Result<(), PlanError> {
    let known = stack::known_names(services, Some(&service.name));
    let check = |key: &str, argv: &[String]| {
        check_argv(key, argv)?;
        check_braces(&known, argv).map_err(|e| e.about_key(key))
    };
    match &service.container {
        Some(container) => {
            check_braces(&known, &service.argv).map_err(|e| e.about_key("command"))?;
            check_braces(&known, &container.options).map_err(|e| e.about_key("options"))?;
        }
        None => check("command", &service.argv)?,
    }
    if let Ready::Command { argv } = &service.ready {
        check("ready", argv)?;
    }
    let mut before = service.before_start.iter();
    before.try_for_each(|argv| check("before-start", argv))?;
    let mut after = service.when_ready.iter();
    after.try_for_each(|argv| check("when-ready", argv))?;
    let values: Vec<String> = service.environment.values().cloned().collect();
    check_braces(&known, &values).map_err(|e| e.about_key("env"))
}

fn check_braces<T>(known: &BTreeMap<String, T>, words: &[String]) -> Result<(), PlanError> {
    let mut names = words.iter().flat_map(|word| find_placeholders(word));
    let Some(unknown) = names.find(|name| !known.contains_key(*name)) else {
        return Ok(());
    };
    let all = || known.keys().map(String::as_str);
    let help = match model::find_nearest(unknown, all()) {
        Some(near) => format!("did you mean `{{{near}}}`?"),
        None if known.is_empty() => "name its ports first: ports = [\"http\"]".to_owned(),
        None => format!("known here are {}", all().collect::<Vec<_>>().join(", ")),
    };
    Err(PlanError::new(format!("`{{{unknown}}}` stands for nothing")).with_help(help))
}
