//! The programs that can disturb.

use load::{Launch, SELF};
use model::{Antagonist, AntagonistProgram, Placement};

/// The program on PATH that it needs; `None` for schedlab itself.
pub fn program(antagonist: &Antagonist) -> Option<&str> {
    match &antagonist.program {
        AntagonistProgram::Spinner { .. } => None,
        AntagonistProgram::StressNg { .. } => Some("stress-ng"),
        AntagonistProgram::Command { argv } => argv.first().map(String::as_str),
    }
}

/// Threads that it has for certain.
pub fn least_threads(antagonist: &Antagonist) -> u32 {
    match &antagonist.program {
        AntagonistProgram::Spinner { threads } => {
            threads.unwrap_or_else(|| cpus(&antagonist.placement))
        }
        AntagonistProgram::StressNg { .. } | AntagonistProgram::Command { .. } => 1,
    }
}

pub fn launch(antagonist: &Antagonist) -> Launch {
    let argv = match &antagonist.program {
        AntagonistProgram::Spinner { threads } => {
            let threads = threads.unwrap_or_else(|| cpus(&antagonist.placement));
            [
                "spin".to_owned(),
                "--threads".to_owned(),
                threads.to_string(),
            ]
            .into_iter()
            .fold(vec![SELF.to_owned()], pushed)
        }
        AntagonistProgram::StressNg { args } => args
            .iter()
            .cloned()
            .fold(vec!["stress-ng".to_owned()], pushed),
        AntagonistProgram::Command { argv } => argv.clone(),
    };
    Launch::new(argv)
}

fn pushed(mut words: Vec<String>, word: String) -> Vec<String> {
    words.push(word);
    words
}

/// One thread for each CPU that it may use.
fn cpus(placement: &Placement) -> u32 {
    let listed = placement
        .cpus
        .as_deref()
        .and_then(|list| model::choose_cpus(list, &load::allowed_cpus()).ok());
    listed.map_or_else(collect::machine::usable_cpus, |cpus| {
        u32::try_from(cpus.len()).unwrap_or(u32::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spinner_has_a_thread_for_each_of_its_cpus() {
        let antagonist = Antagonist {
            name: "spinner".to_owned(),
            program: AntagonistProgram::Spinner { threads: None },
            placement: Placement {
                cpus: Some("0-2,7".to_owned()),
                ..Placement::default()
            },
        };
        assert_eq!(launch(&antagonist).argv[1..], ["spin", "--threads", "4"]);
    }
}
