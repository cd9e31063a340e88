//! A report for people against the one that its results give now.

/// The first line of `said`, counted from 1, that is not that of `made`. Numbers may differ by
/// one in their last digit: another machine's logarithm may.
pub fn first_difference(said: &str, made: &str) -> Option<usize> {
    let (mut said, mut made) = (said.split('\n'), made.split('\n'));
    for line in 1.. {
        match (said.next(), made.next()) {
            (None, None) => return None,
            (Some(a), Some(b)) if a == b || is_rounded(a, b) => {}
            _ => return Some(line),
        }
    }
    None
}

/// Equal but for the last digits of numbers.
fn is_rounded(a: &str, b: &str) -> bool {
    let (mut a, mut b) = (a, b);
    while !a.is_empty() && !b.is_empty() {
        let (of_a, of_b) = (number(a), number(b));
        if of_a.is_empty() != of_b.is_empty() {
            return false;
        }
        let (in_a, in_b) = match of_a.is_empty() {
            false if is_near(of_a, of_b) => (of_a.len(), of_b.len()),
            true if a.chars().next() == b.chars().next() => {
                let length = a.chars().next().map_or(0, char::len_utf8);
                (length, length)
            }
            _ => return false,
        };
        (a, b) = (&a[in_a..], &b[in_b..]);
    }
    a.is_empty() && b.is_empty()
}

/// The digits and points that `text` begins with.
fn number(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    &text[..end.unwrap_or(text.len())]
}

/// The same digits, or numbers whose last digits differ by one.
fn is_near(a: &str, b: &str) -> bool {
    if a == b {
        return true;
    }
    let decimals = |text: &str| text.split_once('.').map(|(_, decimals)| decimals.len());
    let (Ok(x), Ok(y)) = (a.parse::<f64>(), b.parse::<f64>()) else {
        return false;
    };
    let Some(decimals) = decimals(a).filter(|_| decimals(a) == decimals(b)) else {
        return false;
    };
    (x - y).abs() < 1.5 * 0.1f64.powf(decimals as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_digit_of_a_number_may_differ_and_nothing_else() {
        let made = "a\nx=\"12.34\" +5.0% <p>\nend";
        assert_eq!(first_difference(made, made), None);
        assert_eq!(
            first_difference("a\nx=\"12.35\" +5.1% <p>\nend", made),
            None
        );
        for said in [
            "a\nx=\"12.36\" +5.0% <p>\nend",
            "a\nx=\"12.34\" -5.0% <p>\nend",
            "a\nx=\"12.3\" +5.0% <p>\nend",
            "a\nx=\"12.34\" +5.0% <q>\nend",
            "a\nx=\"12.34\" +5.0% <p>more\nend",
        ] {
            assert_eq!(first_difference(said, made), Some(2), "{said}");
        }
        assert_eq!(first_difference("a", made), Some(2));
        assert_eq!(first_difference("14 of 20", "15 of 20"), Some(1));
    }
}
