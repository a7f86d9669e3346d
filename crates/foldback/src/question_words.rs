//! The words of a question, for showing where an answer has them.

use foldback_chunker::says_nothing;
use foldback_core::script::{is_hangul, is_ideograph, is_kana};

/// Returns the words of a question that are worth marking in a line, in lower case, each once. Chinese, Japanese and
/// Korean are split into pairs of characters, because they have few or no spaces. Words that say nothing about a topic
/// are left out, unless the question has no others.
///
/// ```
/// use foldback::question_words;
///
/// assert_eq!(question_words("Where is the retry_limit?"), ["retry_limit"]);
/// assert_eq!(question_words("我们的端口是 8443"), ["端口", "8443"]);
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
    let telling: Vec<_> = all.iter().filter(|word| !says_nothing(word)).cloned().collect();
    if telling.is_empty() { all } else { telling }
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
        check("重复的通知", &["重复", "通知"]);
        check("我们用哪个端口", &["端口"]);
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
