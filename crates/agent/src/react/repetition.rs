//! Detection of a text that repeats itself.

/// The length of the end of a text that is examined, in characters.
const LOOKED_AT: usize = 2_000;

/// The longest repeated passage, in characters, that counts as a loop.
const LONGEST: usize = 400;

/// The fewest repetitions in a row.
const TIMES: usize = 4;

/// The shortest total length of the repetitions, in characters: a line of dashes is not a loop.
const LEAST: usize = 400;

/// Returns the shortest passage that a text repeats, if it does. The repetitions fill most of the text, or all
/// of its examined end. A text that only ends in a row of zeros or blanks may still continue sensibly.
pub(crate) fn repetition(text: &str) -> Option<String> {
    let text = text.trim_end();
    let mut end: Vec<char> = text.chars().rev().take(LOOKED_AT).collect();
    end.reverse();
    let count = end.len();
    let least = if count == LOOKED_AT { count } else { LEAST.max(count / 2 + 1) };
    let period = (1..=LONGEST.min(count / TIMES)).find(|period| {
        let same = |back: &usize| end[count - 1 - back] == end[count - 1 - back - period];
        let matching = (0..count - period).take_while(same).count();
        matching + period >= least.max(TIMES * period)
    })?;
    Some(end[count - period..].iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_loop_is_found_wherever_it_is_cut() {
        let sentence = "I will read the file again. ";
        for text in [
            sentence.repeat(30),
            format!("First this. {}I will re", sentence.repeat(20)),
            "再读一次文件。".repeat(70),
            "a".repeat(400),
        ] {
            let passage = repetition(&text).unwrap();
            assert!(passage.chars().count() <= sentence.len(), "{passage}");
            assert!(text.matches(&passage).count() >= TIMES, "{passage}");
        }
    }

    #[test]
    fn what_is_only_alike_is_no_loop() {
        let lines = |n: usize| format!("| {n} | port {} | {} m |\n", n * 7, n * 3);
        let table: String = (0..90).map(lines).collect();
        for text in [table.as_str(), "", "一", &"-".repeat(80), &"Three times. ".repeat(3)] {
            assert_eq!(repetition(text), None, "{text}");
        }
        // Data that was cut in a row of equal values while being written.
        let row = |value: &str| format!("{table}let row = [{}", value.repeat(400 / value.len()));
        for text in ["0, ", "A", " "].map(row) {
            assert_eq!(repetition(&text), None, "{text}");
        }
        assert!(repetition(&format!("{table}{}", "0, ".repeat(1_000))).is_some());
    }

    proptest! {
        #[test]
        fn what_is_found_stands_at_the_end_again_and_again(
            before in "[ab上🌧\u{301} ]{0,300}",
            passage in "[ab上🌧\u{301}]{20,40}",
            times in 0..=20_usize,
        ) {
            let text = before + &passage.repeat(times);
            let found = repetition(&text);
            // They are most of the text, and 400 characters at least.
            prop_assert!(found.is_some() || times < 20);
            if let Some(found) = found {
                prop_assert!(text.trim_end().ends_with(&found.repeat(TIMES)), "{}", found);
            }
        }
    }
}
