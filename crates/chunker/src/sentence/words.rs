//! Names and quoted words of bounded length.

use foldback_core::abbreviated;

/// The longest word that is shown in full.
pub(crate) const LONGEST_WORD: usize = 48;

/// Returns a name as one word of bounded length.
pub(crate) fn word(text: &str) -> String {
    name(text, LONGEST_WORD)
}

/// Returns a name as one word of at most `longest` characters. The end of a long path says more
/// than its beginning.
pub(super) fn name(text: &str, longest: usize) -> String {
    let name = plain(text).replace(' ', "_");
    let longer = name.chars().count().saturating_sub(longest - 1);
    if longer > 1 && name.contains('/') {
        let rest: String = name.chars().skip(longer).collect();
        let rest = rest.find('/').and_then(|at| rest.get(at..)).filter(|rest| rest.len() > 8);
        if let Some(rest) = rest {
            return format!("…{rest}");
        }
    }
    abbreviated(&name, longest).into_owned()
}

/// Returns one line without control characters or quotation marks that would end the quotation.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
        if !word.is_empty() {
            if !out.is_empty() {
                out.push(' ');
            }
            out.extend(word.chars().map(|c| if c == '"' { '\'' } else { c }));
        }
    }
    out
}

/// Returns at most `most` words, each of bounded length.
pub(super) fn clip(text: &str, most: usize) -> String {
    let mut words = text.split_whitespace();
    let mut kept: Vec<String> = words.by_ref().take(most).map(bounded).collect();
    if words.next().is_some()
        && let Some(last) = kept.last_mut()
        && !last.ends_with('…')
    {
        last.truncate(last.trim_end_matches([',', ';', ':', '.']).len());
        last.push('…');
    }
    kept.join(" ")
}

/// Returns a word of bounded length. The marks that a sentence puts around a name do not count.
fn bounded(word: &str) -> String {
    let bare = word.trim_start_matches('"').trim_end_matches(['"', ',', ';', ':', '.']);
    let marks = word.len() - bare.len();
    let longest = if marks <= 4 { LONGEST_WORD + marks } else { LONGEST_WORD };
    abbreviated(word, longest).into_owned()
}

/// Returns at most `most` names of at most `longest` characters, at least one and at most two, and
/// how many more there are.
pub(super) fn listed(
    names: &[String],
    most: usize,
    longest: usize,
    and: &str,
    more: impl Fn(usize) -> String,
) -> String {
    let shown: Vec<String> = names.iter().take(most).map(|shown| name(shown, longest)).collect();
    match names.len().saturating_sub(most) {
        0 => shown.join(and),
        rest => shown.join(", ") + &more(rest),
    }
}

pub(super) fn count(text: &str) -> usize {
    text.split_whitespace().count()
}
