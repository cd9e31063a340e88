//! Options of command lines as getopt_long(3) takes them: those that schedlab gives a program itself
//! must not be among the arguments of an experiment.

use model::Invalid;

/// An option that schedlab gives a program.
#[derive(Debug)]
pub struct Own {
    /// Its letter.
    pub short: char,
    /// Its long name, without dashes.
    pub long: &'static str,
    /// Key that says it in an experiment, or why none may.
    pub instead: &'static str,
}

/// The options of a program: those of schedlab, and the letters that take no value.
#[derive(Debug)]
pub struct Options {
    /// Options that schedlab gives.
    pub own: &'static [Own],
    /// Letters that take no value.
    pub flags: &'static str,
}

impl Options {
    /// An error that names all options of schedlab's own among the arguments.
    pub fn check(&self, key: &str, program: &str, args: &[String]) -> Result<(), Invalid> {
        let found = self.found(args);
        if found.is_empty() {
            return Ok(());
        }
        let (words, instead): (Vec<String>, Vec<String>) = found
            .iter()
            .map(|(word, own)| (format!("`{word}`"), format!("{word}: {}", own.instead)))
            .unzip();
        let what = format!("schedlab gives {program} {} itself", words.join(", "));
        Err(Invalid::new(key, what).with_remedy(format!(
            "leave out of `{key}`, or say elsewhere: {}",
            instead.join("; ")
        )))
    }

    /// The words of the arguments that are options of schedlab, as they are written.
    fn found<'a>(&self, args: &'a [String]) -> Vec<(&'a str, &'static Own)> {
        let mut found = Vec::new();
        let mut words = args.iter().map(String::as_str);
        while let Some(word) = words.next() {
            if word == "--" {
                break;
            }
            if let Some(long) = word.strip_prefix("--") {
                found.extend(self.long(long).map(|own| (word, own)));
            } else if let Some(letters) = word.strip_prefix('-') {
                let (own, takes_next) = self.short(letters);
                found.extend(own.map(|own| (word, own)));
                if takes_next {
                    words.next();
                }
            }
        }
        found
    }

    /// A long option may be cut short: `--thr=4`.
    fn long(&self, word: &str) -> Option<&'static Own> {
        let name = word.split('=').next().unwrap_or_default();
        self.own
            .iter()
            .find(|own| !name.is_empty() && own.long.starts_with(name))
    }

    /// The first option of schedlab among letters that stand together, and whether the next word is a
    /// value: `-Lt4` is `-L -t 4`, and `-Mt` is `-M t`.
    fn short(&self, letters: &str) -> (Option<&'static Own>, bool) {
        let mut letters = letters.chars();
        while let Some(letter) = letters.next() {
            let takes_value = !self.flags.contains(letter);
            let own = self.own.iter().find(|own| own.short == letter);
            if own.is_some() || takes_value {
                return (own, takes_value && letters.as_str().is_empty());
            }
        }
        (None, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: Options = Options {
        own: &[
            Own {
                short: 't',
                long: "threads",
                instead: "the load",
            },
            Own {
                short: 'j',
                long: "json",
                instead: "it is read",
            },
        ],
        flags: "L",
    };

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn an_option_is_found_in_every_way_of_writing_it() {
        for args in [
            "-t 4",
            "-t4",
            "-Lt 4",
            "-Lt4",
            "--threads 4",
            "--threads=4",
            "--thr 4",
            "-L -F 5 -t 4",
        ] {
            let error = SOME.check("args", "x", &words(args)).unwrap_err();
            let said = error.to_string();
            assert!(said.contains("schedlab gives x `-"), "{args}: {said}");
        }
        let both = SOME
            .check("args", "x", &words("-t 4 --json -"))
            .unwrap_err();
        let said = both.to_string();
        assert!(said.contains("`-t`, `--json`"), "{said}");
    }

    #[test]
    fn values_and_other_options_are_none() {
        for args in [
            "-Mt", "-M t", "-M -t", "-F 128", "-L -n 0", "-- -t", "threads", "--three",
        ] {
            assert!(SOME.check("args", "x", &words(args)).is_ok(), "{args}");
        }
    }
}
