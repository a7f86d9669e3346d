//! A first look at a JSON text, before anything parses it.

use crate::{Error, Limits, Place};

/// The result of one pass over the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scan {
    /// The greatest depth of nested objects and arrays.
    pub(crate) depth: usize,
    /// Whether every object, array and string that was begun is ended.
    pub(crate) complete: bool,
}

/// Counts brackets outside strings. It needs no stack, so no depth can exhaust it.
pub(crate) fn scan(json: &[u8]) -> Scan {
    let (mut depth, mut open) = (0usize, 0usize);
    let mut bytes = json.iter();
    let mut in_string = false;
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => in_string = !in_string,
            b'\\' if in_string => {
                bytes.next();
            }
            b'{' | b'[' if !in_string => {
                open += 1;
                depth = depth.max(open);
            }
            b'}' | b']' if !in_string => open = open.saturating_sub(1),
            _ => {}
        }
    }
    Scan { depth, complete: open == 0 && !in_string }
}

/// Refuses a text that is nested too deeply.
pub(crate) fn check_depth(json: &str, place: &Place, limits: &Limits) -> Result<(), Error> {
    let depth = scan(json.as_bytes()).depth;
    if depth > limits.depth {
        return Err(Error::TooDeep { place: place.clone(), depth, limit: limits.depth });
    }
    Ok(())
}

/// Returns the error of a JSON reader, with the place in the file and a text that names the usual causes.
pub(crate) fn json_error(error: &serde_json::Error, text: &str, place: &Place) -> Error {
    let row = error.line().saturating_sub(1);
    let line = text.split('\n').nth(row).unwrap_or("");
    let reason = if let Some(word) = not_a_number(line, error.column()) {
        format!("{word} is not JSON, although Python writes it; expected a number or null")
    } else if error.is_eof() {
        "the JSON ends too early, as in a file that was cut off; expected the rest of it".into()
    } else {
        // The parser's own message ends with a place that counts from the wrong beginning.
        let said = error.to_string();
        let said = said.rsplit_once(" at line ").map_or(said.as_str(), |(said, _)| said);
        format!("this is not JSON: {said}")
    };
    let place = Place { file: place.file.clone(), line: place.line + row as u64 };
    Error::Json { place, column: error.column().max(1), reason }
}

/// Returns the special float at this column of `line`, if there is one.
fn not_a_number(line: &str, column: usize) -> Option<&'static str> {
    let bytes = line.as_bytes();
    let is_part = |at: usize| bytes.get(at).is_some_and(|b| b.is_ascii_alphabetic() || *b == b'-');
    let mut start = column.saturating_sub(1);
    while start > 0 && is_part(start - 1) {
        start -= 1;
    }
    let rest = line.get(start..)?;
    ["NaN", "Infinity", "-Infinity"].into_iter().find(|word| {
        rest.strip_prefix(word)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_in_strings_do_not_count() {
        #[track_caller]
        fn check(json: &str, depth: usize, complete: bool) {
            assert_eq!(scan(json.as_bytes()), Scan { depth, complete }, "{json}");
        }
        check("", 0, true);
        check(r#"{"a":[1,{"b":"]}"}]}"#, 3, true);
        check(r#"{"a":"\"[[["}"#, 1, true);
        check(r#"{"a":"\\"}"#, 1, true);
        check(r#"{"a":"x"#, 1, false);
        check("[[", 2, false);
        check("[", 1, false);
        check("\"中[文", 0, false);
        check(&"[".repeat(100_000), 100_000, false);
    }
}
