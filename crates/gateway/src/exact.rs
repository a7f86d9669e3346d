//! JSON values whose numbers keep their digits.
//!
//! A number of `serde_json` holds 64 bits: an identifier with more digits, or a number that is written in another way,
//! would be sent differently. While a message is changed, such numbers are strings with a mark that no client knows.

use serde_json::Value;
use std::borrow::Cow;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::LazyLock;

/// Begins the strings that stand for numbers. No client or model knows it, so none can send it.
static MARK: LazyLock<String> = LazyLock::new(|| {
    let chance = || RandomState::new().hash_one(MOST_DIGITS);
    format!("\u{10fffd}{:016x}{:016x}:", chance(), chance())
});

/// An integer with at most this many digits is always kept.
const MOST_DIGITS: usize = 18;

/// Reads a value. It is only for [`write()`], and for whatever else passes through [`restored`].
pub(crate) fn read(json: &str) -> Option<Value> {
    serde_json::from_str(&marked(json)).ok()
}

/// As [`read`], for what a model says: a number with a fraction or an exponent becomes what clients make of it when they
/// send it back, so that `19.90` is `19.9`.
pub(crate) fn read_integers(json: &str) -> Option<Value> {
    let is_fraction = |number: &str| number.contains(['.', 'e', 'E']);
    let marked = marked_but(json, |number| is_fraction(number) || is_kept(number));
    serde_json::from_str(&marked).ok()
}

/// Writes a value that was read here.
pub(crate) fn write(value: &Value) -> String {
    restored(value.to_string())
}

/// Returns a JSON text with strings in place of the numbers that a value would not keep as they are written.
pub(crate) fn marked(json: &str) -> Cow<'_, str> {
    marked_but(json, is_kept)
}

/// As [`marked`], but the numbers that are kept stay.
fn marked_but(json: &str, is_kept: impl Fn(&str) -> bool) -> Cow<'_, str> {
    replaced(json, |number| (!is_kept(number)).then(|| format!("\"{}{number}\"", *MARK)))
}

/// Returns whether a string stands for a number.
pub(crate) fn is_number(text: &str) -> bool {
    text.starts_with(MARK.as_str())
}

/// Returns a JSON text with each number as the 64 bits that most clients keep of it, always written in the same way.
pub(crate) fn in_64_bits(json: &str) -> Cow<'_, str> {
    replaced(json, |number| {
        // Such an integer has less than 53 bits.
        let is_short = number.len() <= 15 && number.bytes().all(|byte| byte.is_ascii_digit());
        let kept = || number.parse().ok().filter(|kept: &f64| kept.is_finite());
        let kept = if is_short { None } else { kept() };
        // There is one zero.
        kept.map(|kept| (kept + 0.0).to_string()).filter(|kept| kept != number)
    })
}

/// Returns a JSON text with something else in place of some of its numbers.
fn replaced(json: &str, instead: impl Fn(&str) -> Option<String>) -> Cow<'_, str> {
    let mut out: Option<String> = None;
    let (mut done, mut at) = (0, 0);
    let bytes = json.as_bytes();
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = end_of_string(bytes, at),
            b'-' | b'0'..=b'9' => {
                let rest = bytes.get(at..).unwrap_or_default();
                let len = rest.iter().take_while(|byte| is_of_number(**byte)).count();
                if let Some(instead) = instead(json.get(at..at + len).unwrap_or_default()) {
                    let out = out.get_or_insert_default();
                    out.push_str(json.get(done..at).unwrap_or_default());
                    out.push_str(&instead);
                    done = at + len;
                }
                at += len;
            }
            _ => at += 1,
        }
    }
    match out {
        Some(out) => Cow::Owned(out + json.get(done..).unwrap_or_default()),
        None => Cow::Borrowed(json),
    }
}

/// Returns a JSON text with the numbers in their places again.
pub(crate) fn restored(json: String) -> String {
    let mark = format!("\"{}", *MARK);
    if !json.contains(&mark) {
        return json;
    }
    let mut parts = json.split(&mark);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (number, rest) = part.split_once('"').unwrap_or((part, ""));
        out.push_str(number);
        out.push_str(rest);
    }
    out
}

/// Returns the place behind the string that begins here.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    loop {
        match bytes.get(at) {
            Some(b'"') | None => return at + 1,
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
        }
    }
}

fn is_of_number(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E')
}

/// Returns whether a value would write this number exactly as it stands here. Also returns true for text that is not a
/// number, which needs no stand-in.
fn is_kept(number: &str) -> bool {
    let is_short = number.len() <= MOST_DIGITS && number.bytes().all(|byte| byte.is_ascii_digit());
    let is_same = |value: serde_json::Number| value.to_string() == number;
    is_short || serde_json::from_str(number).map_or_else(|_| !is_beyond(number), is_same)
}

/// Returns whether this is a number, though one that no value can hold.
fn is_beyond(number: &str) -> bool {
    serde_json::from_str::<&serde_json::value::RawValue>(number).is_ok()
}

#[cfg(test)]
mod tests {
    use super::{in_64_bits, marked, read, read_integers, restored, write};
    use serde_json::json;
    use std::borrow::Cow;

    #[test]
    fn gw5_numbers_keep_their_digits() {
        let text = r#"{"id":123456789012345678901234567890,"a":[-0,1e5,1.0E+2,0.1000,0.12345678901234567891],"港口":"12345678901234567890123 \" 1e5","b":[18446744073709551615,18446744073709551616,-9223372036854775809,1.5,7],"c":1e999}"#;
        let value = read(text).unwrap();
        assert_eq!(write(&value), text);
        assert_eq!((&value["b"][0], &value["b"][3]), (&json!(u64::MAX), &json!(1.5)));
        let said = read_integers(r#"[19.90,1E2,123456789012345678901234567890]"#).unwrap();
        assert_eq!(write(&said), "[19.9,100.0,123456789012345678901234567890]");
        let plain = r#"{"a":[1,-2,0.5,"1e5","\\"],"b":18446744073709551615}"#;
        assert!(matches!(marked(plain), Cow::Borrowed(same) if same == plain));
        assert_eq!(restored(plain.to_owned()), plain);
    }

    /// What JavaScript and Python make of the numbers that a model wrote is the same here.
    #[test]
    fn numbers_that_clients_take_for_the_same_are_the_same() {
        for (wrote, sent) in [
            ("123456789012345678901234567890", "1.2345678901234568e+29"),
            ("9007199254740993", "9007199254740992"),
            ("12345678901234567890", "12345678901234567000"),
            ("-9223372036854775809", "-9223372036854776000"),
            ("19.90", "19.9"),
            ("1E5", "100000.0"),
            ("-0", "0"),
            ("1e-7", "0.0000001"),
        ] {
            let [wrote, sent] = [wrote, sent]
                .map(|number| in_64_bits(&format!("{{\"港 1e5\":[{number},7]}}")).into_owned());
            assert_eq!(wrote, sent);
            assert!(wrote.starts_with("{\"港 1e5\":["));
        }
        for same in ["[1,-2,0.5,\"1e5\",900719925474099]", "1e999", "-", "[1e"] {
            assert!(matches!(in_64_bits(same), Cow::Borrowed(kept) if kept == same), "{same}");
        }
        assert_ne!(in_64_bits("9007199254740992"), in_64_bits("9007199254740994"));
    }

    #[test]
    fn what_is_no_json_stays_none() {
        for text in
            ["", "{", "\"", "\"\\", "-", "1e", "[1e5", "{\"a\":1e+}", "港 12345678901234567890123"]
        {
            assert_eq!(read(text), None, "{text}");
            assert_eq!(restored(marked(text).into_owned()), text);
        }
    }
}
