//! Requirements of the roles of a workload; nothing is started.

use super::cgroup;
use super::server;
use super::{SERVER, placement, stack};
use crate::container::{self, engine_of};
use crate::network::OwnNetwork;
use load::roles::{ANTAGONISTS, SERVERS};
use model::{Placement, Problem, Role, Service, Way};
use std::path::Path;

/// CPUs that threads of a role are kept to, and the key that says so.
pub struct Kept {
    pub key: String,
    pub cpus: Vec<u32>,
}

/// CPUs that threads of a role are kept to, for those that may not run everywhere.
pub fn kept_to(workload: &model::Workload, role: &Role) -> Vec<Kept> {
    let kept = |of: &str, list: Option<&String>| {
        let list = list?;
        let cpus = model::choose_cpus(list, &load::allowed_cpus()).ok()?;
        let key = format!("{of} = \"{list}\"");
        Some(Kept { key, cpus })
    };
    match role {
        Role::Load => {
            let list = workload
                .client
                .as_ref()
                .and_then(|client| client.load_cpus.as_ref());
            let mut kept: Vec<Kept> = kept("load-cpus", list).into_iter().collect();
            // Each thread has one of them.
            kept.iter_mut().for_each(|kept| kept.cpus.truncate(1));
            kept
        }
        Role::Server => {
            let server = workload.server.as_ref();
            let list = server.and_then(|s| s.placement.cpus.as_ref());
            let of_service = |s: &model::Service| {
                kept(
                    &format!("cpus of the service {}", s.name),
                    s.placement.cpus.as_ref(),
                )
            };
            let services = workload.services.iter().filter_map(of_service);
            kept("the server's cpus", list)
                .into_iter()
                .chain(services)
                .collect()
        }
        Role::Antagonist => {
            let of = |a: &model::Antagonist| {
                let key = format!("cpus of the antagonist {}", a.name);
                kept(&key, a.placement.cpus.as_ref())
            };
            workload.antagonists.iter().filter_map(of).collect()
        }
        Role::Daemon => Vec::new(),
    }
}

/// Threads that a role has for certain; it may have more.
pub fn least_threads(workload: &model::Workload, role: &Role) -> u32 {
    match role {
        Role::Load => workload.client.as_ref().map_or(1, |client| client.threads),
        Role::Server => {
            let of = |s: &model::Server| {
                let program = SERVERS.open(&s.program);
                program.map_or(1, |program| program.least_threads())
            };
            let of_server = workload.server.as_ref().map_or(0, of);
            let services = u32::try_from(workload.services.len()).unwrap_or(u32::MAX);
            of_server.saturating_add(services)
        }
        Role::Antagonist => {
            let of = |a: &model::Antagonist| {
                let program = ANTAGONISTS.open(&a.program);
                program.map_or(1, |program| program.least_threads(&a.placement))
            };
            workload.antagonists.iter().map(of).sum()
        }
        // It has at least one thread.
        Role::Daemon => 1,
    }
}

/// The program that a command names, if it names one.
fn first(command: Option<Vec<String>>) -> Vec<String> {
    command.into_iter().flatten().take(1).collect()
}

/// Problems of the target with the roles of a workload; nothing is started.
pub fn check(root: &Path, workload: &model::Workload) -> Vec<Problem> {
    let mut problems = no_classes(workload);
    let mut roles: Vec<(String, Vec<String>, &Placement)> = Vec::new();
    if let Some(server) = &workload.server {
        let opened = SERVERS.open(&server.program);
        let program = known(&mut problems, workload, SERVER, opened);
        // That of the network is known to the controller, which has the agent listen there.
        let program_here = program
            .as_ref()
            .filter(|_| workload.load_way == Way::Tunnel);
        let found = program_here.and_then(|program| no_address(&**program));
        problems.extend(found.map(|(what, remedy)| Problem {
            object: format!("workload {}, server", workload.name),
            what,
            remedy: remedy.to_owned(),
        }));
        let command = program.map(|program| program.command());
        roles.push((SERVER.to_owned(), first(command), &server.placement));
    }
    for service in &workload.services {
        problems.extend(no_image(workload, service));
        let programs = stack::programs(service).into_iter().map(str::to_owned);
        let name = format!("service {}", service.name);
        roles.push((name, programs.collect(), &service.placement));
    }
    for antagonist in &workload.antagonists {
        let name = format!("antagonist {}", antagonist.name);
        let opened = ANTAGONISTS.open(&antagonist.program);
        let program = known(&mut problems, workload, &name, opened);
        let command = program.map(|program| program.command());
        roles.push((name, first(command), &antagonist.placement));
    }
    for (name, programs, placement) in roles {
        let object = format!("workload {}, {name}", workload.name);
        let missing = programs
            .iter()
            .filter_map(|p| check_program(&object, Some(p)));
        problems.extend(missing);
        let memory = placement.memory_node.map(|_| placement::NUMACTL);
        problems.extend(check_program(&object, memory));
        problems.extend(check_placement(&object, placement));
        let cgroup = placement
            .wants_cgroup()
            .then(|| cgroup::find_obstacle(root));
        problems.extend(cgroup.flatten().map(|(what, remedy)| Problem {
            object,
            what,
            remedy,
        }));
    }
    problems
}

/// The problem of a service whose container cannot be made; a missing engine is told with other programs.
fn no_image(workload: &model::Workload, service: &Service) -> Option<Problem> {
    // A command before the start may make the image.
    let container = service.container.as_ref()?;
    let container = Some(container).filter(|_| service.before_start.is_empty())?;
    which::which(engine_of(container)).ok()?;
    let (what, remedy) = container::find_obstacle(container)?;
    Some(Problem {
        object: format!("workload {}, service {}", workload.name, service.name),
        what,
        remedy,
    })
}

/// Problems of services of Java without their classes, unless commands of services may make them.
fn no_classes(workload: &model::Workload) -> Vec<Problem> {
    let makes = |s: &Service| !s.before_start.is_empty() || !s.when_ready.is_empty();
    let services = workload.services.iter();
    let services = services.take_while(|service| !makes(service));
    let problems = services.filter_map(|service| {
        let directory = service.directory.as_deref().map(Path::new);
        let what = load::program::no_class_path(&service.argv, directory)?;
        Some(Problem {
            object: format!("workload {}, service {}", workload.name, service.name),
            what,
            remedy: load::program::BUILD_CLASSES.to_owned(),
        })
    });
    problems.collect()
}

/// Why a server cannot listen where it has to, and what to do about it.
fn no_address(program: &dyn load::roles::ServerProgram) -> Option<(String, &'static str)> {
    if program.has_own_network() {
        let remedy = "run as root, or in a guest (`--vm`)";
        return OwnNetwork::find_obstacle().map(|what| (what, remedy));
    }
    let what = server::address(program, std::net::Ipv4Addr::LOCALHOST.into()).err()?;
    Some((what, "end what listens there, or leave out `port`"))
}

/// The program of a role, unless this version does not know it.
fn known<W: ?Sized>(
    problems: &mut Vec<Problem>,
    workload: &model::Workload,
    role: &str,
    opened: Result<Box<W>, String>,
) -> Option<Box<W>> {
    let unknown = |what| Problem {
        object: format!("workload {}, {role}", workload.name),
        what,
        remedy: "use the same schedlab here and where the experiment is from".to_owned(),
    };
    opened.map_err(|what| problems.push(unknown(what))).ok()
}

fn check_program(object: &str, program: Option<&str>) -> Option<Problem> {
    let program = program.filter(|name| which::which(name).is_err())?;
    Some(Problem {
        object: object.to_owned(),
        what: format!("the program {program} is not there"),
        remedy: load::program::remedy(program),
    })
}

fn check_placement(object: &str, placement: &Placement) -> Vec<Problem> {
    let problem = |what: String, remedy: &str| Problem {
        object: object.to_owned(),
        what,
        remedy: remedy.to_owned(),
    };
    let mut problems = Vec::new();
    let allowed = load::allowed_cpus();
    if let Some(list) = &placement.cpus {
        let missing = match model::choose_cpus(list, &allowed) {
            Ok(cpus) => cpus.into_iter().find(|cpu| !allowed.contains(cpu)),
            Err(_) => None,
        };
        problems.extend(missing.map(|cpu| {
            let what = format!("cpus = \"{list}\": there is no CPU {cpu} to run on here");
            problem(what, "name CPUs of this machine that the agent may use")
        }));
    }
    let Some(policy) = placement::wanted_policy(placement) else {
        return problems;
    };
    if let Err(error) = crate::arm::policy::try_on_this_machine(&policy) {
        let remedy = "change the policy, or run where it is allowed";
        problems.push(problem(error.to_string(), remedy));
    } else if let Some(list) = &placement.cpus
        && let Ok(cpus) = model::choose_cpus(list, &allowed)
        && crate::arm::policy::is_refused_on(&policy, &cpus)
    {
        let what = format!(
            "policy {policy}: the kernel gives it only to threads that may run on all CPUs, and \
             cpus = \"{list}\" keeps them to some"
        );
        problems.push(problem(what, "leave out cpus, or take another policy"));
    }
    problems
}
