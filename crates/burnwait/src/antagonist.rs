//! Workers that burn and wait, beside another load: the antagonist.

use crate::{Company, Set};
use load::roles::{AntagonistProgram, ProgramDef, cpus, words};
use load::{Keys, Launch, Params, SELF, Work};
use model::check::check_count;
use model::{Calibration, Invalid, KeyDef, Placement};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The kind `burnwait`.
pub static ANTAGONIST: ProgramDef<dyn AntagonistProgram> = ProgramDef {
    name: "burnwait",
    summary: "schedlab's own: threads that burn and wait, which want the same in every trial, and \
              whose work is counted (`antagonist_work_per_sec`)",
    keys: &[
        KeyDef::new(
            "set",
            "tables `[[workload.antagonist.set]]`",
            "the published sets A and B",
            "Sets of workers, as the workload `burnwait` has them with `workers = \"threads\"`; \
             they have no `role`.",
        ),
        KeyDef::new(
            "events",
            "list of texts",
            "",
            "Events of the workers of one set (`[\"70 200us\"]`), in place of `set`.",
        ),
        KeyDef::new(
            "count",
            "number",
            "one for each of its CPUs",
            "Number of workers of each set that does not say its own.",
        ),
    ],
    work: Work::for_params::<BurnWait>(),
    tasks: &[],
    program: None,
};

/// Sets of workers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BurnWait {
    /// Sets of workers.
    pub sets: Vec<Set>,
    /// Number of workers of each set; `None`: one for each CPU of the placement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
}

impl Params for BurnWait {
    fn read(keys: &mut Keys) -> Self {
        let sets = keys.tables("set", crate::read_set);
        let events = crate::read_events(keys);
        if sets.is_some() && events.is_some() {
            let both = Invalid::new("events", "`events` are those of the only set");
            keys.refuse(both.with_remedy("leave it out, or the tables `set`"));
        }
        if events.as_ref().is_some_and(Vec::is_empty) {
            let none = Invalid::new("events", "workers need `events`");
            keys.refuse(none.with_remedy("events = [\"70 200us\"]"));
        }
        let one = events.map(|events| vec![Set::new("beside", events)]);
        BurnWait {
            sets: sets.or(one).unwrap_or_else(crate::published_sets),
            count: keys.get("count"),
        }
    }
}

impl BurnWait {
    fn count(&self, placement: &Placement) -> u32 {
        self.count.unwrap_or_else(|| cpus(placement))
    }
}

impl AntagonistProgram for BurnWait {
    fn check(&self) -> Result<(), Invalid> {
        if let Some(count) = self.count {
            check_count("count", count.into())?;
        }
        crate::check_company(&self.sets)
    }

    fn command(&self) -> Vec<String> {
        Vec::new()
    }

    fn least_threads(&self, placement: &Placement) -> u32 {
        let count = u64::from(self.count(placement));
        let each = self.sets.iter().map(|set| set.count.unwrap_or(count));
        u32::try_from(each.fold(0, u64::saturating_add)).unwrap_or(u32::MAX)
    }

    fn calibrate(&self, known: &Calibration) -> BTreeMap<String, u64> {
        crate::calibrate_company(&self.sets, known)
    }

    fn launch(&self, placement: &Placement, calibration: &Calibration) -> Launch {
        let company = Company::new(&self.sets, self.count(placement).into(), calibration);
        Launch::new(words(&[SELF, "burn", &company.in_words()]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(keys: serde_json::Value) -> Result<BurnWait, String> {
        let serde_json::Value::Object(keys) = keys else {
            panic!("{keys}");
        };
        let mut keys = Keys::new(keys);
        let read = BurnWait::read(&mut keys);
        if let Some(fault) = keys.into_fault() {
            return Err(fault.what);
        }
        read.check().map_err(|wrong| wrong.what)?;
        Ok(read)
    }

    #[test]
    fn events_alone_are_one_set_and_nothing_is_the_published_two() {
        let one = read(json!({"events": ["70 200us", "8x10 5ms"], "count": 3})).unwrap();
        assert_eq!((one.sets.len(), one.sets[0].events.len()), (1, 2));
        assert_eq!(one.least_threads(&Placement::default()), 3);
        assert_eq!(read(json!({})).unwrap().sets, crate::published_sets());
    }

    #[test]
    fn what_no_company_can_be_is_refused() {
        let set = json!({"name": "a", "events": ["70 200us"]});
        let with = |key: &str, value: serde_json::Value| {
            let mut set = set.clone();
            set[key] = value;
            read(json!({ "set": [set] })).unwrap_err()
        };
        assert!(with("role", "antagonist".into()).contains("`role`"));
        assert!(with("weight", 300.into()).contains("`weight`"));
        assert!(with("nice", 40.into()).contains("nice 40"));
        assert!(read(json!({"events": ["70"]})).is_err());
        assert!(read(json!({"events": ["0 1ms"]})).is_err());
        assert!(read(json!({"count": 0})).is_err());
        assert!(read(json!({"events": ["1 1ms"], "set": [set]})).is_err());
        assert!(read(json!({"events": []})).is_err());
    }

    #[test]
    fn the_unit_of_work_is_that_of_the_run_where_it_is_known() {
        let known = Calibration {
            values: [("operations_per_kop".to_owned(), 777)].into(),
            ..Calibration::default()
        };
        let company = read(json!({})).unwrap();
        let argv = company.launch(&Placement::default(), &known).argv;
        assert!(
            argv[2].contains("\"operations_per_kop\":777"),
            "{}",
            argv[2]
        );
        let found = company.calibrate(&known);
        assert_eq!(found.get("operations_per_kop"), Some(&777));
    }
}
