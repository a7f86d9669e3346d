//! Tokens: where they end, and what their spelling says about them.

use foldback_core::script::{
    is_hangul, is_ideograph, is_ideograph_mark, is_jamo, is_kana, is_small_katakana,
    is_unspaced_alphabet,
};
use unicode_normalization::char::is_combining_mark;

/// Returns whether words in this character's script are written without spaces between them, or, as in Korean, with
/// endings that a search must see through.
pub(super) fn is_unspaced(c: char) -> bool {
    is_ideograph_mark(c)
        || (is_kana(c) && c != '・')
        || is_small_katakana(c)
        || is_ideograph(c)
        || is_jamo(c)
        || is_hangul(c)
        || is_unspaced_alphabet(c)
}

pub(super) fn is_word(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric();
    }
    (c.is_alphanumeric() || is_combining_mark(c)) && !is_unspaced(c)
}

/// Returns whether a word may begin with `c`. A combining mark belongs to the character before it.
pub(super) fn begins_word(c: char) -> bool {
    is_word(c) && (c.is_ascii() || !is_combining_mark(c))
}

/// Returns whether `c` joins two words into one token when it is between them.
pub(super) fn is_link(c: char) -> bool {
    is_path_link(c) || is_inner_link(c) || c == ','
}

pub(super) fn is_path_link(c: char) -> bool {
    matches!(c, '/' | '\\' | ':' | '@' | '#')
}

pub(super) fn is_inner_link(c: char) -> bool {
    matches!(c, '_' | '-' | '.' | '+' | '\'' | '\u{2019}')
}

/// Returns where the token at the beginning of `text` ends: words, joined by up to three links. A comma joins the
/// groups of three digits of one number only.
pub(super) fn token_end(text: &str) -> usize {
    let mut end = 0;
    // Where the last word begins, and how many groups of a number the token ends with.
    let mut word = 0;
    let mut groups = 1;
    let mut chars = text.char_indices().peekable();
    loop {
        while let Some(&(at, c)) = chars.peek()
            && is_word(c)
        {
            end = at + c.len_utf8();
            chars.next();
        }
        let mut links = 0;
        let mut ahead = chars.clone();
        let mut comma = false;
        while let Some(&(_, c)) = ahead.peek()
            && is_link(c)
            && links < 3
        {
            comma |= c == ',';
            links += 1;
            ahead.next();
        }
        let Some(&(at, next)) = ahead.peek() else { break };
        let joins = links > 0
            && begins_word(next)
            && (!comma || (links == 1 && joins_groups(&text[word..end], groups, &text[at..])));
        if !joins {
            break;
        }
        groups = match (comma, groups) {
            (true, groups) => groups + 1,
            (false, 1) => 1,
            // What follows the groups is a fraction.
            (false, _) => MAX_GROUPS,
        };
        (word, end) = (at, at);
        chars = ahead;
    }
    // C++ and C# are names of their own.
    let tail = &text[end..];
    if end == 1 && tail.starts_with("++") {
        end += 2;
    } else if end == 1 && tail.starts_with('#') {
        end += 1;
    }
    end
}

/// A number has at most this many groups of digits; more of them are a list of numbers.
const MAX_GROUPS: usize = 5;

/// Returns whether a comma belongs to one number, as in 1,000,000, and not to a list of ids: it comes after `word`,
/// which ends with the last of `groups`, and before `behind`. The cost does not depend on the length of the list.
fn joins_groups(word: &str, groups: usize, behind: &str) -> bool {
    let last = word.bytes().rev().take(4).take_while(u8::is_ascii_digit).count();
    let fits = if groups == 1 { (1..=3).contains(&last) } else { last == 3 && word.len() == 3 };
    fits && groups < MAX_GROUPS
        && leading_digits(behind) == 3
        && (groups > 1 || !is_long_list(behind))
}

/// Returns how many digits `text` begins with, counted up to four.
fn leading_digits(text: &str) -> usize {
    text.bytes().take(4).take_while(u8::is_ascii_digit).count()
}

/// Returns whether `text` begins with more groups of three digits than a number has.
fn is_long_list(text: &str) -> bool {
    (0..MAX_GROUPS).all(|group| {
        let at = 4 * group;
        let is_parted = group == 0 || text.as_bytes().get(at - 1) == Some(&b',');
        is_parted && text.get(at..).is_some_and(|behind| leading_digits(behind) == 3)
    })
}

/// Returns where the number begins that holds the first comma of `token`; `None` when there is no comma.
pub(super) fn number_start(token: &str) -> Option<usize> {
    let before = token.get(..token.find(',')?)?;
    Some(before.trim_end_matches(|c: char| c.is_ascii_digit()).len())
}

/// Returns whether groups of digits between commas may be numbers of their own: 200,404 but not 1,000,000.
pub(super) fn may_be_list(number: &str) -> bool {
    number.split(',').skip(1).all(|group| !group.starts_with('0'))
}

/// Returns whether it is letters with apostrophes among them, and no capital after a small letter.
pub(super) fn is_plain_word(token: &str) -> bool {
    let mut small = false;
    let mut capitals = 0;
    for c in token.chars() {
        if c == '\'' || c == '\u{2019}' {
            continue;
        }
        if c.is_numeric() || !is_word(c) {
            return false;
        }
        if c.is_uppercase() {
            if small {
                return false;
            }
            capitals += 1;
        } else {
            // HTTPServer has its hump before the last capital.
            if c.is_lowercase() && !small && capitals > 2 {
                return false;
            }
            small |= c.is_lowercase();
        }
    }
    true
}

/// Returns whether a token that is more than a word names one thing.
pub(super) fn is_name(token: &str) -> bool {
    let chars = token.chars().count();
    if matches!(token, "C++" | "c++" | "C#" | "c#") {
        return true;
    }
    if chars < 3 {
        return false;
    }
    let digits = token.chars().filter(char::is_ascii_digit).count();
    let letters = token.chars().filter(|c| c.is_alphabetic()).count();
    if letters == 0 {
        // A version or an address, or a long number: an order, a ticket, a phone.
        return token.matches('.').count() >= 2 || digits >= 5;
    }
    if token.contains('_') || token.contains("::") || token.contains('@') || token.contains('#') {
        return true;
    }
    if token.contains(['/', '\\']) {
        let links = token.matches(['/', '\\']).count();
        return links >= 2 || digits > 0 || token.contains(['.', '-']);
    }
    if let Some((stem, ending)) = token.rsplit_once('.')
        && stem.chars().count() >= 2
        && ending.chars().any(char::is_alphabetic)
    {
        return true;
    }
    if digits > 0 {
        let first_is_letter = token.starts_with(char::is_alphabetic);
        // E0502, gpt-4 and 7f3a9c2d, but not 10k, 3pm and 20th.
        let changes = humps(token).len();
        return (first_is_letter && chars >= 4) || (chars >= 6 && changes > 2);
    }
    // parseArgs and ContextManager, but not McDonald or self-driving.
    !token.contains(['-', '\'', '\u{2019}'])
        && (token.starts_with(char::is_lowercase) && humps(token).len() > 1
            || humps(token).iter().filter(|hump| hump.chars().count() >= 3).count() > 1)
}

/// Returns where the segments of a path begin.
pub(super) fn segment_starts(path: &str) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut before = '/';
    for (at, c) in path.char_indices() {
        if is_path_link(before) && !is_path_link(c) {
            starts.push(at);
        }
        before = c;
    }
    starts
}

/// Returns the pieces of `parseHTTPHeader2`: parse, HTTP, Header, 2.
pub(super) fn humps(part: &str) -> Vec<&str> {
    let chars: Vec<(usize, char)> = part.char_indices().collect();
    let mut pieces = Vec::new();
    let mut start = 0;
    for (i, pair) in chars.windows(2).enumerate() {
        let [(_, a), (at, b)] = pair else { continue };
        let next_is_small = chars.get(i + 2).is_some_and(|(_, c)| c.is_lowercase());
        let cut = (a.is_lowercase() && b.is_uppercase())
            || (a.is_uppercase() && b.is_uppercase() && next_is_small)
            || (a.is_numeric() != b.is_numeric());
        if cut {
            pieces.push(&part[start..*at]);
            start = *at;
        }
    }
    pieces.push(&part[start..]);
    pieces
}
