//! Writes and removes one entry in a section of a JSON file in place, so that every other byte of the file stays.

use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::ops::Range;

/// The members of an object, each with its text.
type Members<'a> = BTreeMap<String, &'a RawValue>;

/// The text with `entry` as the member `name` of the member `section`.
///
/// # Errors
/// What is wrong with the text.
pub(super) fn with(text: &str, section: &str, name: &str, entry: &Value) -> Result<String, String> {
    if text.trim().is_empty() {
        let whole = serde_json::json!({section: {name: entry}});
        return Ok(format!("{whole:#}\n"));
    }
    let members = members(text)?;
    let Some(held) = members.get(section) else {
        let inner = serde_json::json!({name: entry});
        return Ok(inserted(text, text, section, &inner, 1));
    };
    match self::members(held.get())?.get(name) {
        Some(old) => {
            let mut changed = text.to_owned();
            changed.replace_range(span(text, old.get()), &indented(entry, 2));
            Ok(changed)
        }
        None => Ok(inserted(text, held.get(), name, entry, 2)),
    }
}

/// The text without the member `name` of the member `section`, and without the section if nothing else is in it; `None` if
/// there is no such member.
///
/// # Errors
/// What is wrong with the text.
pub(super) fn without(text: &str, section: &str, name: &str) -> Result<Option<String>, String> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let members = members(text)?;
    let Some(held) = members.get(section) else { return Ok(None) };
    let held = self::members(held.get())?;
    let Some(entry) = held.get(name) else { return Ok(None) };
    let left = removed(text, name, entry)?;
    let members = self::members(&left)?;
    let Some(held) = members.get(section) else { return Ok(Some(left)) };
    match self::members(held.get())?.is_empty() {
        true => removed(&left, section, held).map(Some),
        false => Ok(Some(left)),
    }
}

/// The text without the member `key` of an object in it, whose value is `value`.
fn removed(text: &str, key: &str, value: &RawValue) -> Result<String, String> {
    let value = span(text, value.get());
    let cannot = || format!("the entry {key:?} is written in a way that prevents its removal");
    // Go back over the colon and the key.
    let before = text.get(..value.start).and_then(|before| before.trim_end().strip_suffix(':'));
    let before = before.and_then(|before| before.trim_end().strip_suffix(&format!("{key:?}")));
    let before = before.ok_or_else(cannot)?.trim_end();
    let after = text.get(value.end..).ok_or_else(cannot)?;
    Ok(match (before.strip_suffix(','), after.trim_start().strip_prefix(',')) {
        // Removed with the comma before it; after the first of several, the next one takes its place.
        (Some(before), _) => format!("{before}{after}"),
        (None, Some(after)) => format!("{before}{after}"),
        (None, None) => format!("{before}{}", after.trim_start()),
    })
}

fn members(text: &str) -> Result<Members<'_>, String> {
    serde_json::from_str(text)
        .map_err(|error| format!("it is not a readable JSON object ({error})"))
}

/// The position of a part of a text in it.
fn span(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    start..start + part.len()
}

/// The text with a first member in `object`, a part of it at this depth.
fn inserted(text: &str, object: &str, key: &str, value: &Value, depth: usize) -> String {
    let start = span(text, object).start;
    let brace = start + object.find('{').unwrap_or_default() + 1;
    let rest = text.get(brace..).unwrap_or_default();
    let is_only = rest.trim_start().starts_with('}');
    let (indent, outer) = ("  ".repeat(depth), "  ".repeat(depth - 1));
    let end = if is_only { format!("\n{outer}") } else { ",".to_owned() };
    let rest = if is_only { rest.trim_start() } else { rest };
    let before = text.get(..brace).unwrap_or_default();
    format!("{before}\n{indent}{key:?}: {}{end}{rest}", indented(value, depth))
}

/// A value on several lines, all but the first indented.
fn indented(value: &Value, depth: usize) -> String {
    format!("{value:#}").replace('\n', &format!("\n{}", "  ".repeat(depth)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(text: &str, left: Option<&str>) {
        let entry = json!({"command": "foldback", "args": ["mcp"]});
        let added = with(text, "mcpServers", "foldback", &entry).unwrap();
        let read: Value = serde_json::from_str(&added).unwrap();
        assert_eq!(read["mcpServers"]["foldback"], entry, "{added}");
        assert_eq!(with(&added, "mcpServers", "foldback", &entry).unwrap(), added);
        let removed = without(&added, "mcpServers", "foldback").unwrap().unwrap();
        assert_eq!(removed, left.unwrap_or(text));
        assert_eq!(without(&removed, "mcpServers", "foldback").unwrap(), None);
    }

    #[test]
    fn rc5_an_entry_comes_and_goes_and_the_rest_stays() {
        check("{\n  \"mcpServers\": {\n    \"git\": {}\n  },\n  \"n\": 1.0\n}\n", None);
        check(
            "{\"mcpServers\":{\"git\": {\"command\":\"uvx\"}} , \"big\": 123456789012345678901234}",
            None,
        );
        // A section that is then empty is removed, too.
        check("{\n    \"名\": \"{\\\"mcpServers\\\": 1}\"\n}", None);
        check("{\"名\": 1, \"mcpServers\": {}}", Some("{\"名\": 1}"));
        check("{}", None);
        check("", Some("{}\n"));
        let entry = json!({});
        for wrong in ["// a comment\n{}", "[]", "{\"mcpServers\": []}"] {
            assert!(with(wrong, "mcpServers", "foldback", &entry).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rc5_an_entry_between_others_goes() {
        let text = "{\"mcpServers\": {\"a\": 1, \"foldback\": {}, \"b\": 2}}";
        let left = without(text, "mcpServers", "foldback").unwrap().unwrap();
        assert_eq!(left, "{\"mcpServers\": {\"a\": 1, \"b\": 2}}");
    }
}
