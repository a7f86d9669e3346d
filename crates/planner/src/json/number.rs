//! Numbers by their value.

/// Returns whether two JSON numbers have the same value: `5`, `5.0` and `50e-1` do. Exact, however many
/// digits there are; exponents that do not fit a machine integer are compared as written.
pub(crate) fn same_number(one: &str, other: &str) -> bool {
    one == other || decimal(one).is_some_and(|value| Some(value) == decimal(other))
}

/// The sign, the digits from the first to the last non-zero one, and the power of ten of the last.
fn decimal(text: &str) -> Option<(bool, String, i64)> {
    let (is_negative, text) = match text.strip_prefix('-') {
        Some(text) => (true, text),
        None => (false, text),
    };
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let kept = digits.trim_end_matches('0');
    let zeros = i64::try_from(digits.len() - kept.len()).ok()?;
    let kept = kept.trim_start_matches('0');
    if kept.is_empty() {
        return Some((false, String::new(), 0));
    }
    let exponent: i64 = exponent.parse().ok()?;
    let power = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?.checked_add(zeros)?;
    Some((is_negative, kept.to_owned(), power))
}

#[cfg(test)]
mod tests {
    use super::same_number;

    /// OP12: numbers are compared by value, whatever their digits.
    #[test]
    fn op12_numbers_are_compared_by_value() {
        for (one, other) in [
            ("5", "5.0"),
            ("5", "50e-1"),
            ("5", "0.05E+2"),
            ("-0", "0.00"),
            ("0e99999999999999999999", "0"),
            ("1200", "1.2e3"),
            ("123456789012345678901234567890", "123456789012345678901234567890.0"),
        ] {
            assert!(same_number(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("5", "-5"),
            ("5", "50"),
            ("0.1", "0.10000000000000000001"),
            ("12345678901234567890", "12345678901234567891"),
            ("1e99999999999999999999", "1"),
            ("true", "false"),
            ("null", "0"),
        ] {
            assert!(!same_number(one, other), "{one} {other}");
        }
    }
}
