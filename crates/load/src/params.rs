//! Parameters: read from keys of an experiment file, stored by name, and opened again as
//! what does the work. Workloads, servers and antagonists have theirs in this way.

use crate::{Driver, Keys};
use model::Kind;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::fmt;

/// The parameters of a kind, which do its work. They are stored as they are serialized.
pub trait Params: Serialize + DeserializeOwned + 'static {
    /// From the keys of the experiment file.
    fn read(keys: &mut Keys) -> Self;
}

/// Parameters that do the work of `W`: of a workload, of a server or of an antagonist.
pub trait Does<W: ?Sized>: Params {
    /// The work itself.
    fn boxed(self) -> Box<W>;
}

impl<P: Params + Driver> Does<dyn Driver> for P {
    fn boxed(self) -> Box<dyn Driver> {
        Box::new(self)
    }
}

/// The work that stored parameters mean, or why they mean none.
type Opened<W> = Result<Box<W>, String>;

/// Reader of the parameters of a kind, from keys and from what was stored.
pub struct Work<W: ?Sized> {
    read: fn(&mut Keys) -> Map<String, Value>,
    open: fn(&Map<String, Value>) -> Opened<W>,
}

impl<W: ?Sized> Work<W> {
    /// The parameters of one type.
    pub const fn for_params<P: Does<W>>() -> Self {
        Work {
            read: |keys| stored(&P::read(keys)),
            open: |params| match serde_json::from_value::<P>(Value::Object(params.clone())) {
                Ok(params) => Ok(params.boxed()),
                Err(error) => Err(error.to_string()),
            },
        }
    }

    /// The kind of this name with the parameters that the keys give. Faults stay in the keys.
    pub fn read(&self, name: &str, keys: &mut Keys) -> Kind {
        named(name, (self.read)(keys))
    }

    /// The names of the keys that it asks for.
    pub fn asked_keys(&self) -> Vec<&'static str> {
        let mut keys = Keys::default();
        (self.read)(&mut keys);
        keys.asked_keys().to_vec()
    }

    /// The work that stored parameters mean; an error if they mean none.
    pub fn open(&self, params: &Map<String, Value>) -> Opened<W> {
        (self.open)(params)
    }
}

// Derived, these would ask the same of `W`, of which nothing is kept here.
impl<W: ?Sized> Clone for Work<W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W: ?Sized> Copy for Work<W> {}

impl<W: ?Sized> fmt::Debug for Work<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Work")
    }
}

/// The kind of this name with these parameters, which must be its own.
pub fn kind(name: &str, params: &impl Params) -> Kind {
    named(name, stored(params))
}

fn named(name: &str, params: Map<String, Value>) -> Kind {
    let with = |kind: Kind, (name, value): (String, Value)| kind.with_param(&name, value);
    params.into_iter().fold(Kind::new(name), with)
}

/// Parameters are a struct of plain values, which always becomes a map.
fn stored(params: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(params) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    }
}
