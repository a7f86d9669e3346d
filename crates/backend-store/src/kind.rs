//! Detects what a payload holds from its content.

use crate::{names::defined_name, sniff::Sniffer};
use foldback_core::PayloadKind;
use serde::de::IgnoredAny;

/// Returns what these bytes hold.
///
/// Bytes that are not UTF-8 are [`PayloadKind::Binary`]. One JSON object or array is
/// [`PayloadKind::Json`]: up to 64 KiB by parsing it, above by parsing the first 64 KiB and looking
/// at the last character. Logs and code are recognised by how many of the first lines look like
/// them. The answer depends only on the bytes, however they arrive.
#[must_use]
pub fn kind_of(bytes: &[u8]) -> PayloadKind {
    let mut sniffer = Sniffer::new();
    sniffer.push(bytes);
    sniffer.kind()
}

/// Returns the kind of a text that begins with `head`, which is the whole text if `whole`.
pub(crate) fn kind_of_head(head: &str, whole: bool, last_ink: Option<u8>) -> PayloadKind {
    if is_json(head, whole, last_ink) {
        return PayloadKind::Json;
    }
    let (mut lines, mut log, mut code, mut certain) = (0_usize, 0_usize, 0_usize, 0_usize);
    for line in head.lines().filter(|line| !line.trim().is_empty()).take(LINES) {
        lines += 1;
        if is_log_line(line) {
            log += 1;
            continue;
        }
        let line = without_number(line);
        let firm = is_firm_code(line);
        certain += usize::from(firm);
        code += usize::from(firm || is_code_like(line));
    }
    // On recorded tool outputs, a third of the lines separated files and test runs from prose and
    // listings. Indented prose and YAML look a little like code, so at least one line must be code
    // beyond doubt. A crash trace says more than the lines around it.
    let crashed =
        head.contains("Traceback (most recent call last)") || head.contains("' panicked at ");
    if (log * 3 >= lines || crashed) && log >= code.max(1) {
        PayloadKind::Log
    } else if code * 3 >= lines && certain > 0 {
        PayloadKind::Code
    } else {
        PayloadKind::Text
    }
}

/// How many lines are looked at.
const LINES: usize = 400;

fn is_json(head: &str, whole: bool, last_ink: Option<u8>) -> bool {
    let close = match head.trim_start().bytes().next() {
        Some(b'{') => b'}',
        Some(b'[') => b']',
        _ => return false,
    };
    if last_ink != Some(close) {
        return false;
    }
    match serde_json::from_str::<IgnoredAny>(head) {
        Ok(_) => whole,
        Err(error) => !whole && error.is_eof(),
    }
}

/// Returns whether a program may have written this line while it ran.
fn is_log_line(line: &str) -> bool {
    const STARTS: [&str; 26] = [
        "Traceback (most",
        "error:",
        "error[",
        "ERROR",
        "Error:",
        "warning:",
        "WARNING",
        "WARN",
        "INFO",
        "DEBUG",
        "FATAL",
        "npm ERR!",
        "npm WARN",
        "make:",
        "make[",
        "test ",
        "PASSED",
        "FAILED",
        "ok ",
        "not ok ",
        "Compiling ",
        "Downloading ",
        "Collecting ",
        "Requirement already",
        "> Task ",
        "Caused by:",
    ];
    let line = line.trim_start();
    if STARTS.iter().any(|start| line.starts_with(start)) {
        // Prose may begin with `test` too.
        return !line.starts_with("test ") || line.contains(" ... ");
    }
    let start: Vec<u8> = line.bytes().take(60).collect();
    has_time(&start) || has_level(&start) || line.starts_with("at ") && line.ends_with(')')
}

/// Returns whether there is a time or a date near the start: `12:34:56`, `2024-01-31`.
fn has_time(start: &[u8]) -> bool {
    let shape: Vec<u8> = start
        .iter()
        .take(40)
        .map(|byte| if byte.is_ascii_digit() { b'0' } else { *byte })
        .collect();
    shape.windows(8).any(|window| window == b"00:00:00")
        || shape.get(..12).unwrap_or(&shape).windows(10).any(|window| {
            window == b"0000-00-00" || window == b"0000/00/00" || window == b"00/Jan/0000"
        })
}

/// Returns whether the name of a level is near the start, separate from other letters.
fn has_level(start: &[u8]) -> bool {
    const LEVELS: [&[u8]; 9] = [
        b"ERROR",
        b"WARN",
        b"WARNING",
        b"INFO",
        b"DEBUG",
        b"TRACE",
        b"FATAL",
        b"CRITICAL",
        b"SEVERE",
    ];
    start.split(|byte| !byte.is_ascii_alphabetic()).any(|word| LEVELS.contains(&word))
}

/// Returns whether the line is code beyond doubt.
fn is_firm_code(line: &str) -> bool {
    const STARTS: [&str; 14] = [
        "#include",
        "#!/",
        "#define ",
        "use crate::",
        "use std::",
        "from __future__",
        "package ",
        "@@ -",
        "diff --git ",
        "<?php",
        "<?xml",
        "<!DOCTYPE",
        "#[derive",
        "@Override",
    ];
    let line = line.trim();
    STARTS.iter().any(|start| line.starts_with(start))
        || (line.starts_with("import ") && !line.ends_with('.'))
        || (line.starts_with("from ") && line.contains(" import "))
        || (line.ends_with(';') && (line.contains('(') || line.contains(" = ")))
        || defined_name(line).is_some()
}

/// Returns whether the line looks more like code than like prose.
fn is_code_like(line: &str) -> bool {
    const STARTS: [&str; 20] = [
        "//", "/*", "* ", "*/", "#", "return", "if (", "if(", "for (", "while (", "else", "elif ",
        "try", "except", "raise ", "let ", "var ", "const ", "self.", "assert ",
    ];
    let line = line.trim();
    STARTS.iter().any(|start| line.starts_with(start))
        || line.ends_with(['{', '}', ';', '('])
        || line.ends_with("):")
        || line.ends_with("),")
        || line.ends_with("=>")
        || (line.ends_with(')') && line.contains('('))
        || line.split_once(" = ").is_some_and(|(left, _)| !left.contains(' '))
}

/// Returns the line without the number that a viewer put before it: `12<tab>x`, `12:x`, `12|x`.
pub(crate) fn without_number(line: &str) -> &str {
    let rest = line.trim_start();
    let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    if after.len() == rest.len() {
        return line;
    }
    match after.strip_prefix(['\t', ':', '|', '→']) {
        Some(code) => code,
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: PayloadKind) {
        assert_eq!(kind_of(text.as_bytes()), expected, "{text:?}");
    }

    #[test]
    fn bs1_kinds_are_told_from_the_content() {
        use PayloadKind::{Code, Json, Log, Text};
        check("", Text);
        check("An answer in prose.\nIt has two lines.", Text);
        check("第一段文字。\n第二段文字。", Text);
        check("42", Text);
        check("{\"a\": 1}", Json);
        check("  [1, 2,\n 3]\n", Json);
        check("{\"a\": 1} and more", Text);
        check("{not json}", Text);
        check("2024-05-01 10:00:00 INFO start\n2024-05-01 10:00:01 ERROR no disk\n", Log);
        check("[12:00:01] a\n[12:00:02] b\n", Log);
        check(
            "{\"t\":\"12:00:01\",\"level\":\"INFO\"}\n{\"t\":\"12:00:02\",\"level\":\"WARN\"}\n",
            Log,
        );
        check("running 2 tests\ntest a::b ... ok\ntest a::c ... FAILED\n", Log);
        check("fn main() {\n    let x = 1;\n    println!(\"{x}\");\n}\n", Code);
        check("     1\timport os\n     2\t\n     3\tdef f(x):\n     4\t    return x\n", Code);
        check("4:    int n = next();\n5:    if (n > 0) {\n6:        emit(n);\n7:    }\n", Code);
        check(
            "Running it.\nTraceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 3\n",
            Log,
        );
        check("12:package main\n13:\n14:func main() {\n15:}\n", Code);
        check("# Title\n\nSome prose follows here.\n\n- a point\n- another point\n", Text);
        check("README.md\nsrc/lib.rs\nsrc/main.rs\nCargo.toml\n", Text);
    }

    #[test]
    fn large_json_is_told_without_parsing_it_whole() {
        let items = vec!["{\"name\": \"张三\", \"age\": 3}"; 20_000].join(",\n");
        check(&format!("[{items}]\n"), PayloadKind::Json);
        check(&format!("[{items}"), PayloadKind::Text);
        assert_ne!(kind_of(format!("[{items}] tail").as_bytes()), PayloadKind::Json);
        // Depth does not use up the stack.
        check(&"[".repeat(200_000), PayloadKind::Text);
        check(&format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)), PayloadKind::Json);
    }
}
