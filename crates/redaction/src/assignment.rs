//! Secrets by their names: `password = ..`, `"apiKey": ".."`, `--token ..`, `密码：..`.

use crate::checks::Check;
use std::ops::Range;

/// What secrets are called.
pub(crate) struct Name {
    /// In small letters; it may stand in a longer name.
    pub(crate) word: &'static str,
    /// What it is, as a mark names it.
    pub(crate) kind: &'static str,
    check: Check,
}

/// What secrets are called. Where one word is the beginning of another, the longer one decides by standing later in a text.
pub(crate) static NAMES: &[Name] = &[
    password("password"),
    password("passwd"),
    password("passphrase"),
    password("pwd"),
    password("密码"),
    password("密碼"),
    password("口令"),
    password("パスワード"),
    password("비밀번호"),
    password("passwort"),
    password("contraseña"),
    password("mot de passe"),
    token("secret", "secret"),
    token("credential", "secret"),
    token("密钥", "secret"),
    token("密鑰", "secret"),
    token("token", "token"),
    token("令牌", "token"),
    token("トークン", "token"),
    token("api_key", "api-key"),
    token("api-key", "api-key"),
    token("apikey", "api-key"),
    token("api key", "api-key"),
    token("access_key", "access-key"),
    token("accesskey", "access-key"),
    token("access-key", "access-key"),
    token("auth_key", "access-key"),
    token("authkey", "access-key"),
    token("account_key", "access-key"),
    token("private_key", "secret"),
    token("encryption_key", "secret"),
    token("encryptionkey", "secret"),
    token("signing_key", "secret"),
    token("master_key", "secret"),
];

const fn password(word: &'static str) -> Name {
    Name { word, kind: "password", check: Check::Password }
}

const fn token(word: &'static str, kind: &'static str) -> Name {
    Name { word, kind, check: Check::Token }
}

/// What ends a name whose value is no secret: `token_count`, `secret_name`.
const TOLD: [&str; 24] = [
    "name", "id", "ids", "path", "file", "url", "uri", "type", "count", "limit", "arn", "version",
    "length", "len", "field", "label", "prefix", "expiry", "expires", "ttl", "usage", "budget",
    "policy", "scope",
];

/// So long a name may be behind its word, and so long a value.
const LONGEST_NAME: usize = 40;
const LONGEST_VALUE: usize = 4_096;

/// The value that follows on a name in this place of a text, where it is a secret.
pub(crate) fn value(text: &str, name: &Name, at: Range<usize>) -> Option<Range<usize>> {
    let rest = text.get(at.end..)?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let more = prefix(head(rest, LONGEST_NAME + 1), is_name);
    if more.len() > LONGEST_NAME || is_told(more) {
        return None;
    }
    let before = text.as_bytes().get(..at.start)?.iter().rev().take(LONGEST_NAME);
    let before = before.take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'-').count();
    let is_flag = text.get(at.start - before..at.start)?.starts_with("--");
    let rest = head(rest.get(more.len()..)?, LONGEST_VALUE + 3 * LONGEST_NAME);
    let behind = separator(rest, is_flag)?;
    let quotes = prefix(behind, is_quote);
    let value = behind.get(quotes.len()..)?;
    let value = match quotes.is_empty() {
        true => bare(value),
        false => prefix(value, |c| c.is_ascii_graphic() && !is_quote(c)),
    };
    let is_whole = value.len() <= LONGEST_VALUE && !value.is_empty() && is_literal(value, quotes);
    (is_whole && name.check.holds(value)).then(|| {
        let start = at.end + more.len() + (rest.len() - behind.len()) + quotes.len();
        start..start + value.len()
    })
}

/// The first bytes of a text, so that a hostile one costs no more than its length.
fn head(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or_default()
}

/// What of a text fits, from its beginning on.
fn prefix(text: &str, fits: impl Fn(char) -> bool) -> &str {
    let end = text.find(|c| !fits(c)).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

/// Quotes, and the escapes in front of them.
fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\'' | '`' | '\\' | '“' | '”' | '「' | '」' | '‘' | '’')
}

fn is_told(more: &str) -> bool {
    let last = more.rsplit(['_', '-', '.']).next().unwrap_or_default();
    let small = last.to_ascii_lowercase();
    // `tokenCount`, `secretName`
    let is_camel = |told: &str| {
        let at = small.len().checked_sub(told.len());
        let begins = at.and_then(|at| last.as_bytes().get(at));
        small.ends_with(told) && begins.is_some_and(u8::is_ascii_uppercase)
    };
    TOLD.iter().any(|told| small == *told || is_camel(told))
}

/// What stands behind the sign between name and value.
fn separator(rest: &str, is_flag: bool) -> Option<&str> {
    let unquoted = rest.trim_start_matches(is_quote);
    let spaced = trim(unquoted);
    if is_flag && spaced.len() < unquoted.len() && !spaced.starts_with(['=', ':', '-']) {
        return Some(spaced);
    }
    // `密码是：..`, `パスワードは ..`
    let said = spaced.trim_start_matches(['是', '为', '為', 'は']);
    for sign in ["=>", ":=", "===", "==", "=", ":", "：", ">"] {
        let Some(behind) = said.strip_prefix(sign) else { continue };
        // `<password>..`, but not `a > b`.
        if sign == ">" && spaced.len() != rest.len() {
            return None;
        }
        return Some(trim(behind));
    }
    if said.len() < spaced.len() {
        return Some(trim(said));
    }
    named_value(spaced)
}

/// Behind `"name": "DB_PASSWORD", "value": ".."`, and the same in YAML.
fn named_value(rest: &str) -> Option<&str> {
    let rest = rest.trim_start_matches([',', ' ', '\n', '\t', '\r']).trim_start_matches(is_quote);
    let rest = rest.strip_prefix("value").or_else(|| rest.strip_prefix("Value"))?;
    let rest = trim(rest.trim_start_matches(is_quote));
    rest.strip_prefix([':', '=']).map(trim)
}

/// Without the blanks in front, of which there are few.
fn trim(text: &str) -> &str {
    let blanks = prefix(text, |c| c == ' ' || c == '\t');
    if blanks.len() > 16 { text } else { text.get(blanks.len()..).unwrap_or_default() }
}

/// A value that stands in no quotes.
fn bare(text: &str) -> &str {
    let ends = |c: char| matches!(c, ',' | ';' | ')' | ']' | '}' | '<' | '>' | '|' | '&');
    let value = prefix(text, |c| c.is_ascii_graphic() && !is_quote(c) && !ends(c));
    value.trim_end_matches(['.', ':', '?'])
}

/// Whether a value is written out, and no expression of a program or of a template.
fn is_literal(value: &str, quotes: &str) -> bool {
    let templates = ["${", "{{", "%(", "$(", "<", "#{"];
    if templates.iter().any(|one| value.contains(one)) {
        return false;
    }
    if !quotes.is_empty() {
        return !value.starts_with(['$', '{', '%']);
    }
    let calls = ["(", "[", "{", "::", "->", "=>"];
    !value.starts_with(['$', '%', '&', '*', '@', '-'])
        && !calls.iter().any(|one| value.contains(one))
}
