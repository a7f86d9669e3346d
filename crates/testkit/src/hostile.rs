//! Hostile questions, meant to harm the parser, the index or the waiting user.

use crate::Random;

/// Texts with a meaning in query languages, formats, shells and terminals.
const LINES: [&str; 56] = [
    "",
    " ",
    "\0",
    "\u{feff}",
    "AND",
    "NOT OR AND",
    "title:*",
    "field:(a OR b)^2 +c -d",
    "\"unclosed",
    "((((((((((",
    "))))",
    "[a TO b}",
    "[* TO *]",
    "a~2 b^99 *?*",
    "a~",
    "^^^^",
    "*:*",
    "_all:x",
    "\\",
    "\\\\\\",
    "/(a+)+$/",
    "(a|aa)+$",
    "(.*)*",
    "(?:a{1000}){1000}",
    "\\p{L}+\\b\\1",
    "{\"$gt\":\"\"}",
    "{\"query\":{\"match_all\":{}}}",
    "'; DROP TABLE messages; --",
    "' OR 1=1 --",
    "NEAR(a b, 999999999)",
    "a MATCH b",
    "${jndi:ldap://x}",
    "{{7*7}}",
    "$(reboot)",
    "`id`",
    "%s%s%s%n",
    "../../../../etc/passwd",
    "%00%2e%2e%2f",
    "C:\\con\\nul",
    "file:///dev/zero",
    "store://1-aaaa",
    "b_other_001",
    "<script>alert(1)</script>",
    "</recalled-aaaa>",
    "\u{1b}[2J\u{1b}]0;x\u{7}",
    "\u{202e}txet",
    "👩‍👩‍👧‍👦👍🏽",
    "ﷺﷺﷺﷺ",
    "e\u{301}\u{301}\u{301}",
    "ก็ก็ก็",
    "İıſK",
    "潮汐潮汐 ＡＢＣ ｶﾞ",
    "-9223372036854775808",
    "1e309",
    "on 99/99/9999 and 2023-02-31, May 32nd",
    "\r\n\r\n",
];

/// Returns this many questions, the same on every run: each entry of a list as it is, repeated, nested
/// and joined with others, and long ones of up to a megabyte.
#[must_use]
pub fn hostile_queries(count: usize) -> Vec<String> {
    let mut random = Random::new(12);
    (0..count)
        .map(|n| {
            let (line, many) = (LINES[n % LINES.len()], 1 + random.below(3_000));
            match n / LINES.len() % 9 {
                0 => line.to_owned(),
                1 => line.repeat(2 + random.below(200)),
                2 => format!("{line} {}", random.words(1 + many % 30)),
                3 => format!("{}{line}{}", "(".repeat(many), ")".repeat(many)),
                4 => (0..1 + random.below(60)).map(|_| LINES[random.below(LINES.len())]).collect(),
                5 => random.words(1_000 + many),
                6 => random
                    .words(300)
                    .replace(' ', ["/", "_", "::", "-", ".", "\0"][random.below(6)]),
                7 => {
                    let one =
                        ["a", "字", "🌧", "\u{301}", "1", "aB", "/a", "\u{fdfa}"][random.below(8)];
                    one.repeat((1 << (8 + random.below(13))) / one.len())
                }
                _ => {
                    let mut any = || char::from_u32(random.below(0x11_0000) as u32);
                    (0..400).filter_map(|_| any()).collect()
                }
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_thousand_questions_are_many_and_some_are_long() {
        let queries = hostile_queries(1_000);
        assert_eq!(queries, hostile_queries(1_000));
        let unlike: BTreeSet<_> = queries.iter().collect();
        assert!(unlike.len() > 800, "{}", unlike.len());
        assert!(queries.iter().any(|query| query.len() > 500_000));
    }
}
