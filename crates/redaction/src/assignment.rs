//! Secrets that are found by their names: `password = ..`, `"apiKey": ".."`, `--token ..`, `密码：..`.

use crate::checks::Check;
use crate::patience::Patience;
use std::ops::Range;

/// A name of secrets.
pub(crate) struct Name {
    /// In lower case. It may be part of a longer name.
    pub(crate) word: &'static str,
    /// The kind of secret, as named in a mark.
    pub(crate) kind: &'static str,
    check: Check,
}

/// The names of secrets. If one word begins another, the longer one wins, because its match ends later.
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
    token("auth-key", "access-key"),
    token("authkey", "access-key"),
    token("account_key", "access-key"),
    token("account-key", "access-key"),
    token("accountkey", "access-key"),
    token("private_key", "secret"),
    token("private-key", "secret"),
    token("privatekey", "secret"),
    token("encryption_key", "secret"),
    token("encryption-key", "secret"),
    token("encryptionkey", "secret"),
    token("signing_key", "secret"),
    token("signing-key", "secret"),
    token("signingkey", "secret"),
    token("master_key", "secret"),
    token("master-key", "secret"),
    token("masterkey", "secret"),
];

const fn password(word: &'static str) -> Name {
    Name { word, kind: "password", check: Check::Password }
}

const fn token(word: &'static str, kind: &'static str) -> Name {
    Name { word, kind, check: Check::Token }
}

/// Endings of names whose values are not secret: `token_count`, `secret_name`.
const NOT_SECRET: [&str; 24] = [
    "name", "id", "ids", "path", "file", "url", "uri", "type", "count", "limit", "arn", "version",
    "length", "len", "field", "label", "prefix", "expiry", "expires", "ttl", "usage", "budget",
    "policy", "scope",
];

/// The longest rest of a name after its word, and the longest value, in bytes.
const LONGEST_NAME: usize = 40;
const LONGEST_VALUE: usize = 4_096;

/// The value after the name at this place of a text, if it is a secret.
pub(crate) fn value(
    text: &str,
    name: &Name,
    at: Range<usize>,
    patience: &mut Patience,
) -> Option<Range<usize>> {
    let longest = patience.allows(at.start, LONGEST_VALUE)?;
    let rest = text.get(at.end..)?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let more = prefix(head(rest, LONGEST_NAME + 1), is_name);
    if more.len() > LONGEST_NAME || names_no_secret(more) {
        return None;
    }
    let before = text.as_bytes().get(..at.start)?.iter().rev().take(LONGEST_NAME);
    let before = before.take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'-').count();
    let is_flag = text.get(at.start - before..at.start)?.starts_with("--");
    let rest = head(rest.get(more.len()..)?, longest + 3 * LONGEST_NAME);
    let behind = separator(rest, is_flag)?;
    let quotes = prefix(behind, is_quote);
    let value = behind.get(quotes.len()..)?;
    let value = match quotes.is_empty() {
        true => bare(value),
        false => prefix(value, |c| c.is_ascii_graphic() && !is_quote(c)),
    };
    patience.spend(value.len());
    let is_whole = value.len() <= longest && !value.is_empty() && is_literal(value, quotes);
    if !is_whole || !name.check.holds(value) {
        return None;
    }
    let start = at.end + more.len() + (rest.len() - behind.len()) + quotes.len();
    Some(start..start + value.len())
}

/// The first bytes of a text: a bound on the work that a hostile text causes.
fn head(text: &str, most: usize) -> &str {
    text.get(..text.floor_char_boundary(most)).unwrap_or_default()
}

/// The longest prefix of a text whose characters all fit.
fn prefix(text: &str, fits: impl Fn(char) -> bool) -> &str {
    let end = text.find(|c| !fits(c)).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

/// Quotes, and the escapes before them.
fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\'' | '`' | '\\' | '“' | '”' | '「' | '」' | '‘' | '’')
}

fn names_no_secret(more: &str) -> bool {
    let last = more.rsplit(['_', '-', '.']).next().unwrap_or_default();
    let small = last.to_ascii_lowercase();
    // `tokenCount`, `secretName`
    let is_camel = |end: &str| {
        let at = small.len().checked_sub(end.len());
        let begins = at.and_then(|at| last.as_bytes().get(at));
        small.ends_with(end) && begins.is_some_and(u8::is_ascii_uppercase)
    };
    NOT_SECRET.iter().any(|end| small == *end || is_camel(end))
}

/// The text after the sign between a name and its value.
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

/// The text after the sign of `"name": "DB_PASSWORD", "value": ".."`, and of the same in YAML.
fn named_value(rest: &str) -> Option<&str> {
    let rest = rest.trim_start_matches([',', ' ', '\n', '\t', '\r']).trim_start_matches(is_quote);
    let rest = rest.strip_prefix("value").or_else(|| rest.strip_prefix("Value"))?;
    let rest = trim(rest.trim_start_matches(is_quote));
    rest.strip_prefix([':', '=']).map(trim)
}

/// The text without leading blanks, if there are no more than a few.
fn trim(text: &str) -> &str {
    let blanks = prefix(text, |c| c == ' ' || c == '\t');
    if blanks.len() > 16 { text } else { text.get(blanks.len()..).unwrap_or_default() }
}

/// A value without quotes around it.
fn bare(text: &str) -> &str {
    let ends = |c: char| matches!(c, ',' | ';' | ')' | ']' | '}' | '<' | '>' | '|' | '&');
    let value = prefix(text, |c| c.is_ascii_graphic() && !is_quote(c) && !ends(c));
    value.trim_end_matches(['.', ':', '?'])
}

/// Whether a value is written out, rather than an expression of a program or a template.
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
