//! The words of a question, for showing where an answer has them.

use foldback_chunker::says_nothing;
use foldback_core::script::{is_hangul, is_ideograph, is_kana};

/// Returns the words of a question that are worth marking in a line, in lower case, each once. Chinese, Japanese and
/// Korean are split into pairs of characters, because they have few or no spaces. Words that say nothing about a topic
/// and single letters are left out, unless the question has no others.
///
/// ```
/// use foldback::question_words;
///
/// assert_eq!(question_words("Where is the retry_limit?"), ["retry_limit"]);
/// assert_eq!(question_words("我们的端口是 8443"), ["的端", "端口", "口是", "8443"]);
/// assert_eq!(question_words("to be or not"), ["to", "be", "or", "not"]);
/// ```
#[must_use]
pub fn question_words(question: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':');
    for run in question.split(|c| !is_word(c)) {
        let run: Vec<char> = run.to_lowercase().chars().collect();
        for part in run.chunk_by(|a, b| is_cjk(*a) == is_cjk(*b)) {
            let words: Vec<String> = if part.first().is_some_and(|c| is_cjk(*c)) && part.len() > 2 {
                part.windows(2).map(|pair| pair.iter().collect()).collect()
            } else {
                let word: String = part.iter().collect();
                vec![word.trim_matches(['-', '.', '/', ':']).to_owned()]
            };
            for word in words {
                if !word.is_empty() && !all.contains(&word) {
                    all.push(word);
                }
            }
        }
    }
    let is_telling = |word: &&String| !says_nothing(word) && !is_letter(word);
    let telling: Vec<_> = all.iter().filter(is_telling).cloned().collect();
    if telling.is_empty() { all } else { telling }
}

/// Whether a word is a single character that is neither a digit nor Chinese, Japanese or Korean: it is in most lines.
fn is_letter(word: &str) -> bool {
    let mut chars = word.chars();
    let first = chars.next();
    chars.next().is_none() && first.is_some_and(|c| !c.is_numeric() && !is_cjk(c))
}

fn is_cjk(c: char) -> bool {
    is_kana(c) || is_ideograph(c) || is_hangul(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(question: &str, expected: &[&str]) {
        assert_eq!(question_words(question), expected, "{question}");
    }

    #[test]
    fn in11_words_that_say_nothing_are_not_marked() {
        check(
            "What is the retry_limit in config/default.toml?",
            &["retry_limit", "config/default.toml"],
        );
        check("where did we decide the port", &["decide", "port"]);
        check("重复的通知", &["重复", "复的", "的通", "通知"]);
        check("我们用哪个端口", &["个端", "端口"]);
        // Words with one character that is elsewhere a word without a topic.
        check("目的、对象、会议、能力、不同", &["目的", "对象", "会议", "能力", "不同"]);
        check("哪个，什么，端口", &["端口"]);
        check("Is step C or 5 in région é?", &["step", "5", "région"]);
        check("C", &["c"]);
        check("port端口：8443。", &["port", "端口", "8443"]);
        check("応答が遅いのはなぜですか", &["応答", "答が", "が遅", "遅い"]);
        check("날짜 변경", &["날짜", "변경"]);
        check("泊", &["泊"]);
        // There is nothing else.
        check("what is the", &["what", "is", "the"]);
        check("我们的", &["我们", "们的"]);
        check("?!", &[]);
    }
}
