//! The knowledge of a model before it saw a result.

use foldback_core::script::{is_ideograph, is_of_cjk_blocks, is_thai_or_lao};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet};

/// Texts that could be read, values that could be referred to, and results that were seen in between.
#[derive(Debug, Default)]
pub(super) struct Known {
    words: HashSet<String>,
    foreseen: BTreeSet<(Reverse<usize>, String)>,
    seen: HashSet<String>,
}

impl Known {
    /// Adds a text that was there before.
    pub(super) fn learn(&mut self, text: &str) {
        self.words.extend(words(text));
    }

    /// Adds a value that a plan could name by a reference.
    pub(super) fn foresee(&mut self, value: &str) {
        if !value.is_empty() {
            // The longest first, because a value may be part of another.
            self.foreseen.insert((Reverse(value.len()), value.to_lowercase()));
        }
    }

    /// Adds a result that came in between.
    pub(super) fn seen(&mut self, text: &str) {
        self.seen.extend(words(text));
    }

    /// Returns whether `text` consists of what was known and what could be referred to.
    pub(super) fn covers(&self, text: &str) -> bool {
        words(&self.without_foreseen(text)).all(|word| self.words.contains(&word))
    }

    /// Returns the same for code, in which a model's own words are allowed as long as no result has them.
    pub(super) fn covers_code(&self, text: &str) -> bool {
        words(&self.without_foreseen(text))
            .all(|word| self.words.contains(&word) || !self.seen.contains(&word))
    }

    /// Returns `text` without the values that a reference could have supplied.
    fn without_foreseen(&self, text: &str) -> String {
        let mut rest = text.to_lowercase();
        for (_, value) in &self.foreseen {
            rest = remove_whole(&rest, value);
        }
        rest
    }
}

/// Returns whether a request makes the work depend on something.
pub(super) fn is_conditional(request: &str) -> bool {
    const WORDS: [&str; 7] = ["if", "when", "unless", "otherwise", "else", "depending", "whether"];
    const PARTS: [&str; 13] = [
        "如果",
        "若",
        "要是",
        "假如",
        "否则",
        "的话",
        "就",
        "取决于",
        "则",
        "もし",
        "場合",
        "만약",
        "만일",
    ];
    let request = request.to_lowercase();
    let mut words = request.split(|c: char| !c.is_alphanumeric());
    words.any(|word| WORDS.contains(&word)) || PARTS.iter().any(|part| request.contains(part))
}

/// Returns `text` without the occurrences of `value` that are not part of a longer word or number.
fn remove_whole(text: &str, value: &str) -> String {
    let joins = |outside: Option<char>, inside: Option<char>| {
        let joined = |c: char| c.is_alphanumeric() && !is_unspaced(c);
        outside.is_some_and(joined) && inside.is_some_and(joined)
    };
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(value) {
        let (before, found) = rest.split_at(at);
        let (found, after) = found.split_at(value.len());
        out.push_str(before);
        let outside = before.chars().next_back().or_else(|| out.chars().next_back());
        if joins(outside, found.chars().next())
            || joins(after.chars().next(), found.chars().next_back())
        {
            out.push_str(found);
        } else {
            out.push(' ');
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Returns the words of a text in lower case: runs of letters and digits; in scripts that are written
/// without spaces, each pair of neighbours (or a single isolated character).
fn words(text: &str) -> impl Iterator<Item = String> {
    let mut found = Vec::new();
    let lower = text.to_lowercase();
    for run in lower.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty()) {
        let mut word = String::new();
        let mut unspaced: Vec<char> = Vec::new();
        for c in run.chars().chain([' ']) {
            if !is_unspaced(c) && !unspaced.is_empty() {
                match unspaced.as_slice() {
                    [alone] => found.push(alone.to_string()),
                    several => found.extend(several.windows(2).map(String::from_iter)),
                }
                unspaced.clear();
            }
            if c == ' ' || is_unspaced(c) {
                if !word.is_empty() {
                    found.push(std::mem::take(&mut word));
                }
                unspaced.extend((c != ' ').then_some(c));
            } else {
                word.push(c);
            }
        }
    }
    found.into_iter()
}

/// Returns whether a character belongs to a script that is written without spaces.
fn is_unspaced(c: char) -> bool {
    is_of_cjk_blocks(c) || is_ideograph(c) || is_thai_or_lao(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn et11_words_of_any_script() {
        let of = |text| words(text).collect::<Vec<_>>();
        assert_eq!(
            of("Book flight CA-1801 to 杭州西湖, 岛!"),
            ["book", "flight", "ca", "1801", "to", "杭州", "州西", "西湖", "岛"]
        );
        assert_eq!(of("价格42元"), ["价格", "42", "元"]);
    }

    #[test]
    fn et11_a_value_inside_a_longer_one_is_not_it() {
        let mut known = Known::default();
        known.learn("age");
        known.foresee("54");
        assert!(known.covers("age = 54"));
        assert!(!known.covers("age = 541"));
        assert!(!known.covers("age = 154"));
        known.foresee("杭州");
        assert!(known.covers("杭州 age"), "a name of another script stands for itself");
        assert!(!known.covers("苏州"));
    }

    #[test]
    fn et11_conditions_are_seen_in_several_languages() {
        for request in [
            "Book it if it rains.",
            "如果晴朗就订餐厅",
            "下雨就点外卖",
            "When it rains, order in",
            "もし雨なら",
            "비가 오면 만약",
        ] {
            assert!(is_conditional(request), "{request}");
        }
        for request in ["Find the gift for Elif.", "查一下杭州的天气", "notify everybody"] {
            assert!(!is_conditional(request), "{request}");
        }
    }
}
