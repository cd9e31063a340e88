//! Gatling's `simulation.log` before 3.13, which is text: a record a line, its fields between tabs.
//!
//! A request is `REQUEST`, in 2.x its scenario, before 3.4 the number of its user, its groups between
//! commas, its name, begin and end (ms since 1970), `OK` or `KO`, and a message. The result stands
//! behind two times in every version, and what is before them is counted from there.

use super::requests::{Collected, Request};
use super::simulation_log::status;

/// Beginnings of such logs.
pub const BEGINNINGS: [&str; 2] = ["RUN\t", "ASSERTION\t"];
/// Records that have no request.
const OTHERS: [&str; 5] = ["RUN", "USER", "GROUP", "ASSERTION", "ERROR"];
/// The end of a message that a server sent unasked.
const WITHOUT_END: &str = "-9223372036854775808";

/// All requests of a log, in the order in which they ended.
pub fn parse(text: &str) -> Result<Vec<Request>, String> {
    let mut all = Collected::default();
    for (index, line) in text.lines().enumerate() {
        let fields: Vec<&str> = line.split('\t').collect();
        match fields.first() {
            Some(&"REQUEST") => {
                let wrong = || format!("line {}: no request of Gatling: `{line}`", index + 1);
                let found = request(&fields, &mut all)?.ok_or_else(wrong)?;
                found.map_or(Ok(()), |request| all.add_request(request))?;
            }
            Some(other) if OTHERS.contains(other) => {}
            other => {
                let other = other.unwrap_or(&"");
                let line = index + 1;
                return Err(format!(
                    "line {line}: a record `{other}`, which is not known"
                ));
            }
        }
    }
    Ok(all.into_requests())
}

/// `None` for what is no request, `Some(None)` for one that has no end.
fn request(fields: &[&str], all: &mut Collected) -> Result<Option<Option<Request>>, String> {
    let time = |text: &str| text.parse::<u64>().ok();
    let is_result = |at: &usize| {
        let ok = matches!(fields[*at], "OK" | "KO");
        ok && (fields[at - 1] == WITHOUT_END || time(fields[at - 1]).is_some())
            && time(fields[at - 2]).is_some()
    };
    let Some(at) = (4..fields.len()).find(is_result) else {
        return Ok(None);
    };
    if fields[at - 1] == WITHOUT_END {
        return Ok(Some(None));
    }
    // Without its groups only where the record itself would be in their place.
    let groups = fields[at - 4..at - 3].iter().filter(|_| at > 4);
    let groups = groups.flat_map(|groups| groups.split(','));
    let names = groups.chain([fields[at - 3]]);
    let names: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
    let reason = fields.get(at + 1).map_or("", |reason| reason.trim());
    let micros = |text: &str| time(text).unwrap_or(0).saturating_mul(1_000);
    Ok(Some(Some(Request {
        name: all.name(&names.join(" / "))?,
        phase: None,
        due_us: None,
        start_us: micros(fields[at - 2]),
        end_us: micros(fields[at - 1]),
        ok: fields[at] == "OK",
        status: status(reason),
        reason: all.message(reason),
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(request: &Request) -> (&str, u64, u64, bool, u16) {
        let Request {
            name,
            start_us,
            end_us,
            ok,
            status,
            ..
        } = request;
        (name, *start_us, *end_us, *ok, *status)
    }

    #[test]
    fn requests_of_each_version_of_the_text_are_read() {
        let v2 = "RUN\tdemo.Shop\t\tshop\t1000\t \t2.0\nUSER\tShop\t1\tSTART\t1000\t1000\n";
        let old = "RUN\tdemo.Shop\tshop\t1000\t \t3.0.3\nUSER\tShop\t1\tSTART\t1000\t1000\n";
        let new = "RUN\tdemo.Shop\tshop\t1000\t \t3.9.5\nUSER\tShop\tSTART\t1000\n";
        let asserted = format!("ASSERTION\tAAECAAI=\n{new}");
        for (head, before) in [
            (v2, "Shop\t1\t"),
            (old, "1\t"),
            (new, ""),
            (asserted.as_str(), ""),
        ] {
            let ko = "status.find.is(200), but actually found 503";
            let text = format!(
                "{head}REQUEST\t{before}\tHome\t1000\t1020\tOK\t \n\
                 REQUEST\t{before}Buy,Pay\tCard\t1005\t1045\tKO\t{ko}\n\
                 REQUEST\t{before}\tPush\t1005\t{WITHOUT_END}\tOK\t \n\
                 GROUP\t{before}Buy\t1005\t1045\t40\tKO\nERROR\tno session\t1050\n"
            );
            let requests = parse(&text).unwrap();
            let rows: Vec<_> = requests.iter().map(row).collect();
            let expected = [
                ("Home", 1_000_000, 1_020_000, true, 0),
                ("Buy / Pay / Card", 1_005_000, 1_045_000, false, 503),
            ];
            assert_eq!(rows, expected, "{before}");
            assert_eq!(&*requests[1].reason, ko);
        }
    }

    #[test]
    fn half_a_request_and_a_strange_record_are_errors_with_their_line() {
        for (line, said) in [
            ("REQUEST\t\tHome\t1000\t10", "line 2: no request"),
            ("REQUEST", "line 2: no request"),
            ("REQUEST\t\tHome\tx\t1020\tOK\t ", "line 2: no request"),
            ("REQ", "line 2: a record `REQ`"),
        ] {
            let error = parse(&format!("RUN\tx\n{line}\n")).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
