//! A service in a container. The process that the trial starts is the client of the engine, which passes on
//! what the service prints, and to the service the signal that asks it to end. What is measured and what arms
//! change is the first process of the container with all that it starts.
//!
//! Podman makes that process before it runs its program (`podman init`), so that it is given its part like any
//! other process. Docker does not: there all threads are given it as soon as the container runs.

use super::cgroup::{Cgroup, Settings};
use super::stack::{Layout, farewell};
use super::{Ground, Roles, Running, placement};
use crate::container::{ENGINE_LIMIT, PODMAN, engine_of, read_state, remove_container};
use crate::journal::Undo;
use crate::process::{Origin, Process};
use crate::processes::MARKER;
use crate::stop::Stop;
use collect::tasks::{self, Pid};
use load::Launch;
use model::stack::Container;
use model::{Daemon, Placement, Role, Service};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time between two looks at a container that has no process yet.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Looks at threads that are given their part, until no new ones come.
const MOST_LOOKS: usize = 100;

/// A container that was made, or is about to be.
#[derive(Debug)]
pub(super) struct Made {
    engine: &'static str,
    name: String,
}

/// The first process of a container.
#[derive(Debug)]
pub(super) struct Inside {
    pub leader: Pid,
    /// Environment that its program was started with.
    pub environment: Vec<u8>,
}

impl Roles {
    /// Starts a service in its container.
    pub(super) fn start_container(
        &mut self,
        services: &[Service],
        service: &Service,
        container: &Container,
        ground: &mut Ground,
    ) -> Result<(), Stop> {
        let (engine, name) = (
            engine_of(container),
            self.layout.container_of(&service.name),
        );
        let undo = Undo::RemoveContainer {
            engine: engine.to_owned(),
            name: name.clone(),
        };
        let recorded = ground.journal.record(undo);
        recorded.map_err(|e| Stop::Failed(e.to_string()))?;
        self.containers.push(Made {
            engine,
            name: name.clone(),
        });
        let launch = self.layout.launch(services, service, &service.argv);
        let launch = ground.in_force.launch(&Role::Server, &launch);
        let options = container.options.iter();
        let options = options.map(|text| self.layout.filled(services, Some(service), text));
        let words = Words {
            layout: &self.layout,
            service,
            container,
            mark: &ground.fence.mark,
        };
        let made = words.create(engine, &launch, options);
        self.engine_step(service, &made, ground)?;
        let words = |words: &[&str]| Launch::new(words.iter().map(|w| (*w).to_owned()).collect());
        // Made before it runs its program, it can be given its part before that.
        if engine == PODMAN {
            self.engine_step(service, &words(&[engine, "init", &name]), ground)?;
            let inside = place(engine, &name, service, ground)?;
            self.start_client(
                service,
                &words(&[engine, "start", "--attach", &name]),
                ground,
            )?;
            self.set_inside(inside);
        } else {
            self.start_client(
                service,
                &words(&[engine, "start", "--attach", &name]),
                ground,
            )?;
            self.wait_for_process(engine, &name, service, ground)?;
            let inside = place(engine, &name, service, ground)?;
            self.set_inside(inside);
        }
        Ok(())
    }

    /// A command of the engine that must succeed.
    fn engine_step(
        &mut self,
        service: &Service,
        launch: &Launch,
        ground: &mut Ground,
    ) -> Result<(), Stop> {
        let ended = self.run_to_end(launch, service.ready_limit_ns, ground)?;
        ended.map_err(|end| end.of_service(service))
    }

    /// Starts the client that stays with the container until it ends.
    fn start_client(
        &mut self,
        service: &Service,
        launch: &Launch,
        ground: &mut Ground,
    ) -> Result<(), Stop> {
        let name = format!("service-{}", service.name);
        let origin = Origin {
            executable: ground.executable,
            fence: ground.fence,
        };
        let started = Process::start(launch, origin, ground.journal, |_| Ok(()));
        let process = started.map_err(|error| Stop::Failed(format!("the {name}: {error}")))?;
        self.running.push(Running {
            role: Role::Server,
            name,
            process,
            inside: None,
            group: None,
            cpu_at_begin_ns: 0,
            farewell: Some(farewell(service)),
        });
        Ok(())
    }

    fn wait_for_process(
        &mut self,
        engine: &'static str,
        name: &str,
        service: &Service,
        ground: &Ground,
    ) -> Result<(), Stop> {
        let until = Instant::now() + Duration::from_nanos(service.ready_limit_ns);
        loop {
            if read_state(engine, name).is_ok_and(|(_, pid)| pid > 0) {
                return Ok(());
            }
            if Instant::now() >= until {
                let why = format!("the service {}: its container has no process", service.name);
                return Err(Stop::Failed(why));
            }
            self.check_alive(ground.interrupt)?;
            self.pause(ground.interrupt, LOOK_EVERY)?;
        }
    }

    fn set_inside(&mut self, (inside, group): (Inside, Option<Cgroup>)) {
        if let Some(running) = self.running.last_mut() {
            running.inside = Some(inside);
            running.group = group;
        }
    }

    /// Reads the environment of a program that has been started in its container.
    pub(super) fn read_environment_inside(&mut self, root: &Path) {
        let inside = self.running.last_mut().and_then(|r| r.inside.as_mut());
        if let Some(inside) = inside {
            inside.environment = tasks::read_environment(root, inside.leader);
        }
    }

    /// Removes all containers, the last one first; gives what could not be removed.
    pub(super) fn remove_containers(&mut self) -> Vec<String> {
        let made = self.containers.drain(..).rev();
        made.filter_map(|made| remove_container(made.engine, &made.name).err())
            .collect()
    }

    /// The longest that removing them takes.
    pub(super) fn removal_limit(&self) -> Duration {
        ENGINE_LIMIT * u32::try_from(self.containers.len()).unwrap_or(u32::MAX)
    }
}

/// The parts of the command that makes a container.
struct Words<'a> {
    layout: &'a Layout,
    service: &'a Service,
    container: &'a Container,
    mark: &'a str,
}

impl Words<'_> {
    /// The command. The mark of the trial is in the environment of the container, whose processes are no
    /// descendants of schedlab's where a daemon starts them.
    fn create(
        &self,
        engine: &str,
        launch: &Launch,
        options: impl Iterator<Item = String>,
    ) -> Launch {
        let (service, folder) = (self.service, self.layout.folder_of(&self.service.name));
        let name = self.layout.container_of(&service.name);
        let mut words = vec![engine.to_owned(), "create".to_owned()];
        words.push("--pull=never".to_owned());
        words.push(format!("--name={name}"));
        words.push(format!("--env={MARKER}={}", self.mark));
        let variables = launch.environment.iter();
        words.extend(variables.map(|(name, value)| format!("--env={name}={value}")));
        words.push(format!("--volume={0}:{0}", folder.display()));
        match self.container.ports.is_empty() {
            true => words.push("--network=host".to_owned()),
            false => words.extend(self.published()),
        }
        let directory = service.directory.iter();
        words.extend(directory.map(|directory| format!("--workdir={directory}")));
        words.extend(options);
        words.push(self.container.image.clone());
        words.extend(launch.argv.iter().cloned());
        Launch::new(words)
    }

    fn published(&self) -> impl Iterator<Item = String> {
        self.container.ports.iter().filter_map(|(port, inside)| {
            let outside = self.layout.address(&self.service.name, port)?;
            Some(format!("--publish={outside}:{inside}"))
        })
    }
}

/// Gives the threads of a container what placement and arm have for them, and its cgroup the weight and the quota.
fn place(
    engine: &'static str,
    name: &str,
    service: &Service,
    ground: &mut Ground,
) -> Result<(Inside, Option<Cgroup>), Stop> {
    let void = |why: String| Stop::Void(format!("the service {}: {why}", service.name));
    let (id, leader) = read_state(engine, name).map_err(void)?;
    if leader <= 0 {
        return Err(void(format!("its container {name} has no process")));
    }
    if engine == PODMAN {
        // Counted from where a program is run; by Docker that has been.
        let (root, role) = (ground.root, &Role::Server);
        ground.events.open(root, role, leader).map_err(void)?;
    }
    let of_arm = ground.in_force.group_settings(&Role::Server);
    let settings = placement::group_settings(&service.placement).overlaid(of_arm);
    let group = group_of(ground.root, id, settings).map_err(void)?;
    give_to_threads(leader, &service.placement, ground).map_err(void)?;
    let inside = Inside {
        leader,
        environment: Vec::new(),
    };
    Ok((inside, group))
}

/// The cgroup of a container, with these settings; `None` where there are none.
fn group_of(root: &Path, id: String, settings: Settings) -> Result<Option<Cgroup>, String> {
    if settings == Settings::default() {
        return Ok(None);
    }
    let below = collect::daemon::find_cgroup(root, &Daemon::Container(id));
    let below = below.map_err(|e| e.to_string())?;
    let group = Cgroup::find_group(root, &below).ok_or_else(|| {
        let path = below.display();
        format!("its cgroup /{path} has no controller for CPU time; leave out weight and quota")
    })?;
    group.set(settings).map_err(|e| e.to_string())?;
    Ok(Some(group))
}

fn give_to_threads(leader: Pid, placed: &Placement, ground: &Ground) -> Result<(), String> {
    let (root, mut known) = (ground.root, BTreeSet::new());
    let give = |tid: Pid| -> Result<(), String> {
        placement::apply(tid, placed, None)?;
        ground.in_force.before_exec(root, &Role::Server, tid)
    };
    for _ in 0..MOST_LOOKS {
        let processes = tasks::process_tree(root, leader).into_iter();
        let threads = processes.flat_map(|pid| tasks::list_threads(root, pid));
        let new: Vec<Pid> = threads.filter(|tid| known.insert(*tid)).collect();
        if new.is_empty() {
            break;
        }
        for tid in new {
            let given = give(tid);
            // One that has ended meanwhile needs nothing.
            if given.is_err() && tasks::read_stat(root, tid).is_some() {
                return given;
            }
        }
    }
    Ok(())
}
