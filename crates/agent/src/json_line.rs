//! JSON on one line, with its values as they were written.

/// Removes the white space between the tokens of JSON text; numbers, escapes and the order of keys stay.
pub(crate) fn compact(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let (mut inside, mut escaped) = (false, false);
    for c in json.chars() {
        if inside || !c.is_ascii_whitespace() {
            out.push(c);
        }
        if c == '"' && !escaped {
            inside = !inside;
        }
        escaped = inside && c == '\\' && !escaped;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn et16_nothing_but_white_space_between_tokens_goes() {
        let pretty = "{\n \"b\": \"x \\\" \\\\\",\r\n\t\"a\": [ 1.50, \"两 个\" ] }";
        assert_eq!(compact(pretty), r#"{"b":"x \" \\","a":[1.50,"两 个"]}"#);
        assert_eq!(compact(&compact(pretty)), compact(pretty));
    }
}
