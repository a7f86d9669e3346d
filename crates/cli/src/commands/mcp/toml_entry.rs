//! Writes and removes one server in a TOML file of Codex: a table at its end, handled as lines, so that every other
//! byte of the file stays.

use toml_edit::ImDocument;

/// The table of all servers.
const SECTION: &str = "mcp_servers";

/// The text with the server of this name added.
///
/// # Errors
/// What is wrong with the text.
pub(super) fn with(
    text: &str,
    name: &str,
    program: &str,
    arguments: &[String],
) -> Result<String, String> {
    let mut text = without(text, name)?.unwrap_or_else(|| text.to_owned());
    if !text.is_empty() {
        text.truncate(text.trim_end().len());
        text.push_str("\n\n");
    }
    let arguments: Vec<_> = arguments.iter().map(|argument| quoted(argument)).collect();
    text.push_str(&format!(
        "[{SECTION}.{name}]\ncommand = {}\nargs = [{}]\n",
        quoted(program),
        arguments.join(", ")
    ));
    has(&text, name)?;
    Ok(text)
}

/// The text without the server of this name; `None` if it has none.
///
/// # Errors
/// What is wrong with the text.
pub(super) fn without(text: &str, name: &str) -> Result<Option<String>, String> {
    if !has(text, name)? {
        return Ok(None);
    }
    let (own, below) = (format!("[{SECTION}.{name}]"), format!("[{SECTION}.{name}."));
    let mut is_own = false;
    let mut left = String::with_capacity(text.len());
    // Comments and blank lines at the end of a table belong to what follows it.
    let mut between = String::new();
    for line in text.split_inclusive('\n') {
        let begun = line.trim_start();
        if begun.starts_with('[') {
            is_own = begun.starts_with(&own) || begun.starts_with(&below);
        }
        match (is_own, begun.is_empty() || begun.starts_with('#')) {
            (true, true) => between.push_str(line),
            (true, false) => between.clear(),
            (false, _) => {
                let blank_is_there = left.is_empty() || left.ends_with("\n\n");
                let kept = if blank_is_there {
                    between.trim_start_matches(['\r', '\n'])
                } else {
                    &between
                };
                left.push_str(kept);
                between.clear();
                left.push_str(line);
            }
        }
    }
    left.push_str(&between);
    // The blank line before it is removed, too.
    if left.ends_with("\n\n") {
        left.pop();
    }
    if has(&left, name)? {
        return Err(format!("{SECTION}.{name} has a form that has to be changed by hand"));
    }
    Ok(Some(left))
}

/// Whether the text has the server.
fn has(text: &str, name: &str) -> Result<bool, String> {
    let read = ImDocument::parse(text)
        .map_err(|error| format!("it is not readable TOML ({})", error.message()))?;
    Ok(read.get(SECTION).and_then(|servers| servers.get(name)).is_some())
}

/// A text as TOML. A JSON string is a TOML string, too.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rc5_a_table_comes_and_goes_and_the_rest_stays() {
        let arguments = ["mcp".to_owned(), "a \"b\"\\c".to_owned()];
        let texts = ["", "model = \"o3\" # mine\n", "[mcp_servers.git]\ncommand = \"uvx\"\n"];
        for text in texts {
            let added = with(text, "foldback", "/opt/杭/foldback", &arguments).unwrap();
            let read = ImDocument::parse(added.as_str()).unwrap();
            let entry = &read["mcp_servers"]["foldback"];
            assert_eq!(entry["command"].as_str(), Some("/opt/杭/foldback"));
            assert_eq!(entry["args"][1].as_str(), Some("a \"b\"\\c"));
            assert_eq!(with(&added, "foldback", "/opt/杭/foldback", &arguments).unwrap(), added);
            assert_eq!(without(&added, "foldback").unwrap().as_deref(), Some(text));
            assert_eq!(without(text, "foldback").unwrap(), None);
        }
        assert!(with("a = [", "foldback", "x", &[]).is_err());
        let inline = "mcp_servers = { foldback = { command = \"x\" } }\n";
        assert!(without(inline, "foldback").unwrap_err().contains("by hand"));
        let between =
            "[mcp_servers.foldback]\ncommand = \"x\"\n[mcp_servers.foldback.env]\nA = \"1\"\n[b]\n";
        assert_eq!(without(between, "foldback").unwrap().as_deref(), Some("[b]\n"));
        let noted =
            "a = 1\n\n[mcp_servers.foldback]\n# its own\ncommand = \"x\"\n\n# 我的 notes\n[b]\n";
        let left = "a = 1\n\n# 我的 notes\n[b]\n";
        assert_eq!(without(noted, "foldback").unwrap().as_deref(), Some(left));
        let last = "[mcp_servers.foldback]\ncommand = \"x\"\n# the end\n";
        assert_eq!(without(last, "foldback").unwrap().as_deref(), Some("# the end\n"));
    }
}
