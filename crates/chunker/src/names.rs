//! Names in texts: files, ids, errors, references.

use crate::paths::each_part;
use crate::terms::is_cjk;
use foldback_core::PayloadRef;

/// The kind of thing that a name denotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    File,
    Id,
    Error,
    Reference,
}

/// Calls `take` with each name in `text`, in order.
pub(crate) fn each_name<'t>(text: &'t str, mut take: impl FnMut(Kind, &'t str)) {
    each_part(text, |token| {
        if !may_name(token) {
            return;
        }
        // A path of the web or of a store holds `:`, which elsewhere ends a name.
        let parts = if token.contains("://") { (token, "") } else { part_at_colon(token) };
        for name in [parts.0, parts.1] {
            let name = name.trim_matches(|c: char| matches!(c, '.' | ':' | '-' | '+' | '%' | '@'));
            if let Some(kind) = kind(name) {
                take(kind, name);
            }
        }
    });
}

/// The longest name. Anything longer is data.
const LONGEST: usize = 120;

/// Returns whether anything in `token` distinguishes a name from a word: most tokens of a text have
/// no such thing.
fn may_name(token: &str) -> bool {
    let tells = |b: &u8| matches!(b, b'0'..=b'9' | b'A'..=b'Z' | b'.' | b'/');
    token.len() >= 3 && token.as_bytes().iter().any(tells)
}

/// `src/a.rs:12` names a file and a line, `ValueError:x` an error and a word.
fn part_at_colon(token: &str) -> (&str, &str) {
    token.split_once(':').unwrap_or((token, ""))
}

fn kind(name: &str) -> Option<Kind> {
    if name.len() < 3 || name.len() > LONGEST || name.contains("..") {
        return None;
    }
    if let Some(rest) = name.strip_prefix(PayloadRef::SCHEME) {
        return rest.contains(|c: char| c.is_ascii_digit()).then_some(Kind::Reference);
    }
    if is_error(name) {
        return Some(Kind::Error);
    }
    if is_file(name) {
        return Some(Kind::File);
    }
    (!name.contains(is_cjk) && is_id(name)).then_some(Kind::Id)
}

fn is_error(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    let is_class = ["Error", "Exception", "Warning", "Panic", "Failure"]
        .iter()
        .any(|end| last.strip_suffix(end).is_some_and(|stem| !stem.is_empty()))
        && last.starts_with(|c: char| c.is_ascii_uppercase());
    let errno = last.starts_with('E') && ERRNO.contains(&last);
    let code = last.strip_prefix('E').is_some_and(|rest| {
        rest.len() == 4 && rest.bytes().all(|b| b.is_ascii_digit()) && name == last
    });
    let signal = ["SIGSEGV", "SIGKILL", "SIGABRT"].contains(&last);
    is_class || errno || code || signal
}

const ERRNO: [&str; 15] = [
    "ENOENT",
    "EACCES",
    "EPERM",
    "EEXIST",
    "ECONNREFUSED",
    "ECONNRESET",
    "ETIMEDOUT",
    "EADDRINUSE",
    "ENOTDIR",
    "EISDIR",
    "ENOSPC",
    "EPIPE",
    "EINVAL",
    "ENOMEM",
    "ENOTFOUND",
];

/// Returns whether `name` is a path or a URL.
pub(crate) fn is_file(name: &str) -> bool {
    if name.starts_with("http://") || name.starts_with("https://") {
        return name.len() > 12;
    }
    if name.contains("://") || name.contains("//") {
        return false;
    }
    let is_rooted = (name.starts_with('/') || name.starts_with("~/") || name.starts_with("./"))
        && name.matches('/').count() >= 2
        && name.contains(char::is_alphabetic);
    has_extension(name) || is_rooted
}

/// Returns whether the last segment of `name` ends like a file.
pub(crate) fn has_extension(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name);
    file.rsplit_once('.').is_some_and(|(stem, extension)| {
        is_extension(extension) && stem.contains(char::is_alphanumeric)
    })
}

fn is_extension(extension: &str) -> bool {
    extension.len() <= 10 && {
        let lower = extension.to_ascii_lowercase();
        EXTENSIONS.binary_search(&lower.as_str()).is_ok()
    }
}

/// Sorted, for a binary search.
const EXTENSIONS: [&str; 96] = [
    "bash",
    "bat",
    "bib",
    "bin",
    "c",
    "cc",
    "cfg",
    "class",
    "cmake",
    "conf",
    "cpp",
    "cs",
    "css",
    "csv",
    "db",
    "diff",
    "dll",
    "doc",
    "docx",
    "env",
    "exe",
    "gif",
    "go",
    "gradle",
    "graphql",
    "gz",
    "h",
    "hpp",
    "htm",
    "html",
    "ini",
    "ipynb",
    "jar",
    "java",
    "jpeg",
    "jpg",
    "js",
    "json",
    "jsonl",
    "jsx",
    "kt",
    "lock",
    "log",
    "lua",
    "md",
    "mjs",
    "mk",
    "mp3",
    "mp4",
    "npy",
    "parquet",
    "patch",
    "pdf",
    "php",
    "pkl",
    "pl",
    "png",
    "pony",
    "ppt",
    "pptx",
    "properties",
    "proto",
    "ps1",
    "py",
    "pyi",
    "rb",
    "rs",
    "rst",
    "scala",
    "sh",
    "so",
    "sql",
    "sqlite",
    "svelte",
    "svg",
    "swift",
    "tar",
    "tex",
    "tgz",
    "toml",
    "ts",
    "tsv",
    "tsx",
    "txt",
    "vue",
    "wav",
    "webp",
    "xls",
    "xlsx",
    "xml",
    "xz",
    "yaml",
    "yml",
    "zip",
    "zsh",
    "zst",
];

/// Letters and digits in one name, in a form that people do not write by chance.
fn is_id(name: &str) -> bool {
    let has = |test: fn(&char) -> bool| name.chars().any(|c| test(&c));
    let digit = has(char::is_ascii_digit);
    let upper = has(char::is_ascii_uppercase);
    let letter = has(|c| c.is_alphabetic());
    let plain = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '#'));
    if !digit || !plain || name.len() < 4 || name.len() > 48 {
        return false;
    }
    // A date, an encoding and a colour are not ids.
    let dated = name.get(..5).is_some_and(|head| {
        head.ends_with('-') && head.bytes().take(4).all(|b| b.is_ascii_digit())
    });
    if dated || name.starts_with("UTF-") || name.starts_with("utf-") || is_colour(name) {
        return false;
    }
    let tagged = name.strip_prefix('#').is_some_and(|rest| rest.len() >= 3);
    let digits = name.bytes().filter(u8::is_ascii_digit).count();
    let needed = if name.starts_with(|c: char| c.is_ascii_digit()) { 4 } else { 2 };
    let joined = letter && digits >= needed && name.contains(['_', '-']);
    let coded = upper && letter && name.len() >= 5;
    tagged || joined || coded
}

fn is_colour(name: &str) -> bool {
    name.strip_prefix('#').is_some_and(|rest| {
        matches!(rest.len(), 3 | 6)
            && rest.bytes().all(|b| b.is_ascii_hexdigit())
            && rest.bytes().any(|b| b.is_ascii_alphabetic())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[(Kind, &str)]) {
        let mut found = Vec::new();
        each_name(text, |kind, name| found.push((kind, name)));
        assert_eq!(found, expected);
    }

    #[test]
    fn an_id_has_digits_and_nothing_but_letters_beside_them() {
        for id in ["ORD-2291", "#4711", "user_1042", "A380B"] {
            assert!(is_id(id), "{id}");
        }
        for other in ["Kubernetes", "ORDERS", "A3.80B", "A1", "2026-11-28", "UTF-16LE", "#ff00aa"] {
            assert!(!is_id(other), "{other}");
        }
    }

    #[test]
    fn extensions_are_sorted_and_short() {
        assert!(EXTENSIONS.is_sorted());
        assert!(EXTENSIONS.iter().all(|extension| extension.len() <= 10));
    }

    #[test]
    fn names_stand_out_of_the_text() {
        use Kind::{Error, File, Id, Reference};
        check("用read工具读data.txt。", &[(File, "data.txt")]);
        check("结果存储至store://3-k4qd", &[(Reference, "store://3-k4qd")]);
        check(
            "see src/main.rs:12, /etc/ssl/certs.",
            &[(File, "src/main.rs"), (File, "/etc/ssl/certs")],
        );
        check("raise json.JSONDecodeError: x", &[(Error, "json.JSONDecodeError")]);
        check("error[E0382]: ENOENT", &[(Error, "E0382"), (Error, "ENOENT")]);
        check(
            "order #W2378156 of omar_davis_3817, H9ZU1C",
            &[(Id, "#W2378156"), (Id, "omar_davis_3817"), (Id, "H9ZU1C")],
        );
        check(
            "On 2024-05-01T10 at 10am, 3.14 e.g. U.S. the 2nd, UTF-8, #6c757d, mt-5, 30-minute",
            &[],
        );
        check(r#"{"path":"data.txt"}"#, &[(File, "data.txt")]);
        check("https://example.org/a?b", &[(File, "https://example.org/a")]);
    }
}
