//! The services of a workload: ports and folders are chosen for all of them, then each is
//! started, in order, when the one before it is ready.

use super::server;
use super::server::NotReady;
use super::{Ground, Roles, SERVER, Wait};
use crate::container::engine_of;
use crate::fence::PREFIX;
use crate::files;
use crate::journal::{Journal, Undo};
use crate::process::{Event, Origin, Process};
use crate::stop::Stop;
use doors::written;
use load::Launch;
use model::printable::last_lines;
use model::stack::{LOAD, Named, bracket_address, fill_placeholders, known_names};
use model::{Kind, Listening, Ready, Role, Service, StopSignal, Workload, format_duration_ns};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The directory below that of the journal with the folders of services.
pub const FOLDERS: &str = "folders";
const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// Ports of the address that somebody has at the loopback one, at most, before that is an error.
const MOST_TRIES: usize = 16;
/// The time between two looks at a service that is not ready.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The time that a program of the trial may take to say how it goes on.
const STEP: Duration = Duration::from_secs(1);

/// Addresses and folders of the services of one trial.
#[derive(Debug, Default)]
pub struct Layout {
    folder: PathBuf,
    /// Where the load reaches them; `None`: on the loopback address.
    at: Option<IpAddr>,
    ports: BTreeMap<(String, String), u16>,
}

/// The way in which a service is asked to end, before it is killed.
#[derive(Debug, Clone, Copy)]
pub struct Farewell {
    pub signal: Signal,
    pub limit: Duration,
}

impl Layout {
    /// Chooses ports that are free, and makes the folders with their files. The journal
    /// removes them.
    fn new(
        services: &[Service],
        folder: PathBuf,
        at: Option<IpAddr>,
        journal: &mut Journal,
    ) -> Result<Self, Stop> {
        let undo = Undo::RemoveFolder {
            path: folder.clone(),
        };
        journal
            .record(undo)
            .map_err(|e| Stop::Failed(e.to_string()))?;
        let layout = Layout {
            ports: free_ports(services, at.unwrap_or(LOCALHOST))
                .map_err(|e| failed("choose free ports", &e))?,
            folder,
            at,
        };
        let of_load = written::make_directory(&layout.folder_of(LOAD));
        of_load.map_err(|e| failed("make the folder of the load", &e))?;
        for service in services {
            let made = layout.write_files(services, service);
            made.map_err(|e| failed(&format!("write the files of {}", service.name), &e))?;
        }
        Ok(layout)
    }

    fn write_files(&self, services: &[Service], service: &Service) -> io::Result<()> {
        let folder = self.folder_of(&service.name);
        written::make_directory(&folder)?;
        let fill = |text: &str| self.filled(services, Some(service), text);
        write_all(&folder, &service.files, fill)
    }

    /// The name of a container, which no other trial has.
    pub(super) fn container_of(&self, service: &str) -> String {
        let mark = self.folder.file_name().unwrap_or_default();
        format!("{PREFIX}{}-{service}", mark.to_string_lossy())
    }

    pub(super) fn folder_of(&self, service: &str) -> PathBuf {
        self.folder.join(service)
    }

    pub(super) fn filled(
        &self,
        services: &[Service],
        service: Option<&Service>,
        text: &str,
    ) -> String {
        let names = known_names(services, service.map(|s| s.name.as_str()));
        let text = bracket_address(text, self.ip());
        fill_placeholders(&text, |name| match *names.get(name)? {
            Named::Address => Some(self.ip().to_string()),
            Named::Folder(of) => Some(self.folder_of(of).display().to_string()),
            Named::Container(of) => Some(self.container_of(of)),
            Named::Port(of, port) => Some(self.address(of, port)?.port().to_string()),
        })
    }

    pub(super) fn address(&self, service: &str, port: &str) -> Option<SocketAddr> {
        let port = self.ports.get(&(service.to_owned(), port.to_owned()))?;
        Some((self.ip(), *port).into())
    }

    /// The address at which the load reaches the services.
    pub(super) fn ip(&self) -> IpAddr {
        self.at.unwrap_or(LOCALHOST)
    }

    /// The address of the main port.
    fn address_of(&self, service: &Service) -> Option<SocketAddr> {
        self.address(&service.name, service.ports.first()?)
    }

    /// The command of a service as it is started.
    pub(super) fn launch(
        &self,
        services: &[Service],
        service: &Service,
        argv: &[String],
    ) -> Launch {
        let fill = |text: &String| self.filled(services, Some(service), text);
        let directory = service.directory.as_ref().map(PathBuf::from);
        Launch {
            directory: Some(directory.unwrap_or_else(|| self.folder_of(&service.name))),
            environment: service
                .environment
                .iter()
                .map(|(name, value)| (name.clone(), fill(value)))
                .collect(),
            ..Launch::new(argv.iter().map(fill).collect())
        }
    }
}

/// Writes files into a folder, each with its text filled.
fn write_all(
    folder: &Path,
    files: &BTreeMap<String, String>,
    fill: impl Fn(&str) -> String,
) -> io::Result<()> {
    for (name, text) in files {
        let path = folder.join(name);
        written::make_directory(path.parent().unwrap_or(folder))?;
        written::write_file(&path, fill(text))?;
    }
    Ok(())
}

/// The value with all its texts filled; names of fields stay.
fn filled_in(value: &Value, fill: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(fill(text)),
        Value::Array(values) => values.iter().map(|value| filled_in(value, fill)).collect(),
        Value::Object(fields) => {
            let filled = |(name, value): (&String, &Value)| (name.clone(), filled_in(value, fill));
            Value::Object(fields.iter().map(filled).collect())
        }
        other => other.clone(),
    }
}

/// The end of a command that did not succeed.
pub(super) struct BadEnd {
    why: String,
    /// Exit status; `None` where it has none.
    code: Option<i32>,
}

impl BadEnd {
    fn new(why: String) -> Self {
        BadEnd { why, code: None }
    }

    /// It ends a trial whose service it prepares.
    pub(super) fn of_service(self, service: &Service) -> Stop {
        let stop = Stop::Failed(format!("the service {}: {}", service.name, self.why));
        stop.by_exit(self.code)
    }
}

fn failed(what: &str, error: &io::Error) -> Stop {
    Stop::Failed(format!("{what}: {error}"))
}

/// All are held until the last is chosen, so that no two are the same.
fn free_ports(services: &[Service], at: IpAddr) -> io::Result<BTreeMap<(String, String), u16>> {
    let mut held = Vec::new();
    let mut ports = BTreeMap::new();
    for service in services {
        for port in &service.ports {
            let (number, listeners) = hold_port(at)?;
            ports.insert((service.name.clone(), port.clone()), number);
            held.extend(listeners);
        }
    }
    Ok(ports)
}

/// A port that nobody has at the address, nor at the loopback one: a service may listen at either, and who listens
/// there already would be taken for it.
fn hold_port(at: IpAddr) -> io::Result<(u16, Vec<TcpListener>)> {
    let mut taken = Vec::new();
    loop {
        let listener = TcpListener::bind((at, 0))?;
        let number = listener.local_addr()?.port();
        if at == LOCALHOST {
            return Ok((number, vec![listener]));
        }
        match TcpListener::bind((LOCALHOST, number)) {
            Ok(at_home) => return Ok((number, vec![listener, at_home])),
            Err(error) if taken.len() == MOST_TRIES => return Err(error),
            // Held, so that the next one is another.
            Err(_) => taken.push(listener),
        }
    }
}

/// The longest time that a service may take to be ready.
pub fn start_limit(service: &Service) -> Duration {
    let commands = service.before_start.len() + service.when_ready.len();
    let steps = u32::try_from(commands)
        .unwrap_or(u32::MAX)
        .saturating_add(1);
    Duration::from_nanos(service.ready_limit_ns).saturating_mul(steps)
}

pub fn farewell(service: &Service) -> Farewell {
    Farewell {
        signal: match service.stop_signal {
            StopSignal::Term => Signal::TERM,
            StopSignal::Int => Signal::INT,
            StopSignal::Quit => Signal::QUIT,
            StopSignal::Kill => Signal::KILL,
        },
        limit: Duration::from_nanos(service.stop_limit_ns),
    }
}

/// The programs that a service starts, for a look at what is missing. What has a name in
/// braces is known only in the trial.
pub fn programs(service: &Service) -> Vec<&str> {
    let of_ready = match &service.ready {
        Ready::Command { argv } => Some(argv),
        _ => None,
    };
    let steps = service.before_start.iter().chain(&service.when_ready);
    let first = match &service.container {
        Some(container) => Some(engine_of(container)),
        None => service.argv.first().map(String::as_str),
    };
    let steps = steps.chain(of_ready).filter_map(|argv| argv.first());
    first
        .into_iter()
        .chain(steps.map(String::as_str))
        .filter(|program| !program.contains('{'))
        .collect()
}

impl Roles {
    /// The load reaches what is started from now on at this address.
    pub fn listen_at(&mut self, address: IpAddr) {
        self.layout.at = Some(address);
    }

    /// Lays out all services, before the first of them starts.
    pub fn lay_out(
        &mut self,
        services: &[Service],
        folder: &Path,
        journal: &mut Journal,
    ) -> Result<(), Stop> {
        self.layout = Layout::new(services, folder.to_owned(), self.layout.at, journal)?;
        Ok(())
    }

    /// The folder of a service or of the load, where they have folders.
    pub fn folder_of(&self, name: &str) -> Option<PathBuf> {
        let has_folders = !self.layout.folder.as_os_str().is_empty();
        has_folders.then(|| self.layout.folder_of(name))
    }

    /// Starts one service of the stack and waits until it is ready. A load that asks a
    /// server asks the last one that has a port.
    pub fn start_service(
        &mut self,
        services: &[Service],
        service: &Service,
        mut ground: Ground,
    ) -> Result<(), Stop> {
        for argv in &service.before_start {
            self.step(services, service, argv, &mut ground)?;
        }
        match &service.container {
            Some(container) => self.start_container(services, service, container, &mut ground)?,
            None => self.start_process(services, service, &mut ground)?,
        }
        let wait = Wait {
            what: &format!("the service {}", service.name),
            log: &format!("service-{}.log", service.name),
            limit_ns: service.ready_limit_ns,
            every: LOOK_EVERY,
        };
        self.wait_until(&wait, ground.interrupt, |roles, left| {
            roles.is_ready(services, service, left, &mut ground)
        })?;
        self.read_environment_inside(ground.root);
        for argv in &service.when_ready {
            self.step(services, service, argv, &mut ground)?;
        }
        self.server = self.layout.address_of(service).or(self.server);
        Ok(())
    }

    fn start_process(
        &mut self,
        services: &[Service],
        service: &Service,
        ground: &mut Ground,
    ) -> Result<(), Stop> {
        let launch = self.layout.launch(services, service, &service.argv);
        let name = format!("service-{}", service.name);
        self.run(Role::Server, name, &launch, &service.placement, ground)?;
        if let Some(running) = self.running.last_mut() {
            running.farewell = Some(farewell(service));
        }
        Ok(())
    }

    /// One look; the inner error says what the service does not do yet.
    fn is_ready(
        &mut self,
        services: &[Service],
        service: &Service,
        left: Duration,
        ground: &mut Ground,
    ) -> Result<Result<(), NotReady>, Stop> {
        let main = self.layout.address_of(service).map(server::find_answering);
        match &service.ready {
            Ready::Ports => {
                let of = |port: &String| self.layout.address(&service.name, port);
                let addresses = service.ports.iter().filter_map(of);
                let mut addresses = addresses.map(server::find_answering);
                let connects = addresses.try_for_each(|at| server::connect_to(at).map(drop));
                Ok(connects.map_err(NotReady::from))
            }
            Ready::Http { path, status } => Ok(match main {
                Some(address) => server::check_answer(address, path, *status, left),
                None => Err("it has no port".to_owned().into()),
            }),
            Ready::Log { text } => {
                let printed = self.running.last().map(|r| r.process.has_printed(text));
                Ok(match printed {
                    Some(Ok(true)) => Ok(()),
                    Some(Err(error)) => Err(error.to_string().into()),
                    _ => Err(format!("it has not printed `{text}`").into()),
                })
            }
            Ready::Command { argv } => {
                let ended = self.command(services, service, argv, ground)?;
                Ok(ended.map_err(|end| end.why.into()))
            }
        }
    }

    /// A command that must succeed.
    fn step(
        &mut self,
        services: &[Service],
        service: &Service,
        argv: &[String],
        ground: &mut Ground,
    ) -> Result<(), Stop> {
        let ended = self.command(services, service, argv, ground)?;
        ended.map_err(|end| end.of_service(service))
    }

    /// Runs a command of the service to its end; the inner error is how it failed.
    fn command(
        &mut self,
        services: &[Service],
        service: &Service,
        argv: &[String],
        ground: &mut Ground,
    ) -> Result<Result<(), BadEnd>, Stop> {
        let launch = self.layout.launch(services, service, argv);
        let launch = ground.in_force.launch(&Role::Server, &launch);
        self.run_to_end(&launch, service.ready_limit_ns, ground)
    }

    /// Runs a command to its end, at most so long; the inner error is how it failed.
    pub(super) fn run_to_end(
        &mut self,
        launch: &Launch,
        limit_ns: u64,
        ground: &mut Ground,
    ) -> Result<Result<(), BadEnd>, Stop> {
        let words = launch.argv.join(" ");
        let origin = Origin {
            executable: ground.executable,
            fence: ground.fence,
        };
        let started = Process::start(launch, origin, ground.journal, |_| Ok(()));
        let mut process = match started {
            Ok(process) => process,
            Err(error) => return Ok(Err(BadEnd::new(error.to_string()))),
        };
        let limit = Duration::from_nanos(limit_ns);
        let waited = self.wait_for_command(&mut process, Instant::now() + limit, ground);
        let killed = process.kill_session().map_err(Stop::Failed);
        let output = process.reap().map_err(|e| failed(&words, &e));
        let (is_over, (output, _)) = (waited?, (killed.and(output))?);
        Ok(match (is_over, output.success) {
            (false, _) => Err(BadEnd::new(format!(
                "`{words}` had not ended after {}",
                format_duration_ns(limit_ns)
            ))),
            (true, true) => Ok(()),
            (true, false) => {
                let lines = last_lines(&(output.stdout + &output.stderr), 3, " | ");
                Err(BadEnd {
                    why: format!("`{words}` ended with {}: {lines}", output.status),
                    code: output.code,
                })
            }
        })
    }

    /// True if the command ended by itself before the deadline.
    fn wait_for_command(
        &mut self,
        process: &mut Process,
        deadline: Instant,
        ground: &Ground,
    ) -> Result<bool, Stop> {
        loop {
            let until = deadline.min(Instant::now() + STEP);
            match process.wait(ground.interrupt, until) {
                Event::Exited => return Ok(true),
                Event::Interrupted => return Err(Stop::interrupted()),
                Event::Line(_) | Event::Timeout => self.check_alive(ground.interrupt)?,
            }
            if Instant::now() >= deadline {
                return Ok(false);
            }
        }
    }

    /// The ports that the services and the server listen on.
    pub fn listening_ports(&self) -> Vec<Listening> {
        let of_services = self.layout.ports.iter();
        let mut listening: Vec<Listening> = of_services
            .map(|((service, port), number)| Listening {
                service: service.clone(),
                port: port.clone(),
                number: *number,
                is_asked: self.server.is_some_and(|asked| asked.port() == *number),
            })
            .collect();
        if let Some(asked) = self
            .server
            .filter(|_| listening.iter().all(|l| !l.is_asked))
        {
            listening.push(Listening {
                service: SERVER.to_owned(),
                port: String::new(),
                number: asked.port(),
                is_asked: true,
            });
        }
        listening
    }

    /// Another agent runs them; they are reached at these ports.
    pub fn run_elsewhere(&mut self, listening: &[Listening]) {
        let ip = self.layout.ip();
        let key = |l: &Listening| (l.service.clone(), l.port.clone());
        self.layout.ports = listening.iter().map(|l| (key(l), l.number)).collect();
        let asked = listening.iter().find(|l| l.is_asked);
        self.server = asked.map(|l| (ip, l.number).into());
    }

    /// Writes the files of the load, which may name the ports and folders of the services.
    pub fn write_files_of_load(&self, workload: &Workload) -> Result<(), Stop> {
        let fill = |text: &str| self.layout.filled(&workload.services, None, text);
        let folder = self.layout.folder_of(LOAD);
        let written = write_all(&folder, &workload.files, fill);
        written.map_err(|e| failed("write the files of the load", &e))
    }

    /// The kind of the load, with the ports and folders of the services that its parameters
    /// name.
    pub fn named_in(&self, services: &[Service], kind: &Kind) -> Kind {
        if self.folder_of(LOAD).is_none() {
            return kind.clone();
        }
        let fill = |text: &str| self.layout.filled(services, None, text);
        let params = kind.params().iter();
        params.fold(Kind::new(kind.name()), |kind, (name, value)| {
            kind.with_param(name, filled_in(value, &fill))
        })
    }

    /// Removes the folders of the services, whose processes are gone.
    pub fn remove_folders(&self) -> Result<(), String> {
        match self.layout.folder.as_os_str().is_empty() {
            true => Ok(()),
            false => files::remove_folder(&self.layout.folder),
        }
    }

    /// Asks the services to end, the last one first, each for as long as it may take.
    pub(super) fn say_farewell(&mut self) {
        for running in self.running.iter_mut().rev() {
            let Some(farewell) = running.farewell else {
                continue;
            };
            let pid = rustix::process::Pid::from_raw(running.process.pid);
            // One that is gone needs no signal.
            let told = pid.map(|pid| rustix::process::kill_process(pid, farewell.signal));
            if told.is_some_and(|told| told.is_ok()) {
                running.process.wait_for_end(farewell.limit);
            }
        }
    }

    /// The longest that [`Roles::say_farewell`] takes.
    pub fn farewell_limit(&self) -> Duration {
        let farewells = self.running.iter().filter_map(|r| r.farewell);
        let farewells: Duration = farewells.map(|farewell| farewell.limit).sum();
        farewells + self.removal_limit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_port_at_another_address_is_nobodys_at_the_loopback_one() {
        let (number, held) = hold_port([127, 0, 0, 2].into()).unwrap();
        let at = held.iter().map(|listener| listener.local_addr().unwrap());
        let at: Vec<String> = at.map(|address| address.to_string()).collect();
        assert_eq!(
            at,
            [format!("127.0.0.2:{number}"), format!("127.0.0.1:{number}")]
        );
    }

    #[test]
    fn every_port_of_a_stack_is_another_and_files_name_them() {
        let text = r#"[
            {"name": "broker", "argv": ["true"], "ports": ["client", "controller"],
             "files": {"conf/a": "{port.controller} {folder} {x}"},
             "ready_limit_ns": 1, "stop_limit_ns": 1},
            {"name": "api", "argv": ["serve", "{broker.port}"], "ports": ["http"],
             "environment": {"BROKER": "127.0.0.1:{broker.port}"},
             "ready_limit_ns": 1, "stop_limit_ns": 1}
        ]"#;
        let services: Vec<Service> = serde_json::from_str(text).unwrap();
        let state = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(state.path()).unwrap();
        let folder = state.path().join(FOLDERS);
        let layout = Layout::new(&services, folder.clone(), None, &mut journal).unwrap();
        let ports: std::collections::BTreeSet<u16> = layout.ports.values().copied().collect();
        assert_eq!(ports.len(), 3);
        let port = |name: &str| layout.ports[&("broker".to_owned(), name.to_owned())];
        let written = fs::read_to_string(folder.join("broker/conf/a")).unwrap();
        let expected = format!(
            "{} {} {{x}}",
            port("controller"),
            folder.join("broker").display()
        );
        assert_eq!(written, expected);
        let launch = layout.launch(&services, &services[1], &services[1].argv);
        assert_eq!(launch.argv[1], port("client").to_string());
        assert_eq!(
            launch.environment["BROKER"],
            format!("127.0.0.1:{}", port("client"))
        );
        assert_eq!(launch.directory, Some(folder.join("api")));
        journal.replay().unwrap();
        assert!(!folder.exists(), "the journal removes the folders");
    }
}
