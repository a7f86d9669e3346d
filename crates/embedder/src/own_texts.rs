//! The project's own texts, for measuring a model when no conversations are available.

use crate::calibration::{CalibrateError, Calibration, Conversation, Question, calibrate};
use foldback_core::Embedder;
use foldback_core::script::{is_hangul, is_ideograph, is_jamo, is_of_cjk_blocks};
use std::cmp::Reverse;

/// Conversations in one language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnTexts {
    /// The language's name in English.
    pub language: &'static str,
    /// The conversations.
    pub conversations: Vec<Conversation>,
}

/// Returns the texts that come with the program: English and Chinese.
#[must_use]
pub fn own_texts() -> Vec<OwnTexts> {
    let sections = TEXTS.split("\n= ").skip(1);
    sections
        .filter_map(|section| {
            let (language, talk) = section.split_once('\n')?;
            Some(OwnTexts { language, conversations: vec![parse(talk)] })
        })
        .collect()
}

/// The measurements of a model on the texts of one language.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnCalibration {
    /// The language's name in English.
    pub language: &'static str,
    /// The measurements.
    pub measured: Calibration,
}

/// Measures a model on the texts of each language separately: a model that knows only one of them has a scale for that
/// one, and noise for the other. The one to use comes first: that of the language in which `sample`, a text of the
/// intended conversations, is written; otherwise the one whose topics the model separates best.
///
/// # Errors
/// When the model cannot be run, or makes no vectors.
pub fn calibrate_on_own_texts(
    embedder: &dyn Embedder,
    sample: &str,
) -> Result<Vec<OwnCalibration>, CalibrateError> {
    let mut found = Vec::new();
    for OwnTexts { language, conversations } in own_texts() {
        let measured = calibrate(embedder, &[conversations])?;
        found.push(OwnCalibration { language, measured });
    }
    let spoken = language_of(sample);
    found.sort_by_key(|own| {
        let accuracy = (own.measured.balanced_accuracy * 1e6) as i64;
        (Some(own.language) != spoken, Reverse(accuracy))
    });
    Ok(found)
}

/// Scales whose "same topic" differ by more than this are reported as different.
pub const SCALES_DIFFER: f32 = 0.08;

/// Returns the language of the own texts that is nearest to the given text; `None` if it has no letters. Only scripts
/// are distinguished.
fn language_of(text: &str) -> Option<&'static str> {
    let (mut spaced, mut unspaced) = (0_usize, 0_usize);
    for letter in text.chars().filter(|c| c.is_alphabetic()) {
        // A character of these carries about as much as half a word.
        if is_jamo(letter) || is_of_cjk_blocks(letter) || is_hangul(letter) || is_ideograph(letter)
        {
            unspaced += 3;
        } else {
            spaced += 1;
        }
    }
    match spaced + unspaced {
        0 => None,
        _ if unspaced > spaced => Some("Chinese"),
        _ => Some("English"),
    }
}

/// A language per section (`= name`), a topic per paragraph, a message per line; a line after `?` is a question that
/// the message before it answers.
const TEXTS: &str = include_str!("../assets/calibration.txt");

fn parse(talk: &str) -> Conversation {
    let mut conversation = Conversation::default();
    for line in talk.lines() {
        let next = conversation.messages.len();
        if line.is_empty() {
            conversation.changes.push(next);
        } else if let Some(question) = line.strip_prefix("? ") {
            let answers = next.checked_sub(1).into_iter().collect();
            conversation.questions.push(Question { text: question.to_owned(), answers });
        } else {
            conversation.messages.push(line.to_owned());
        }
    }
    let end = conversation.messages.len();
    conversation.changes.retain(|change| (1..end).contains(change));
    conversation.changes.dedup();
    conversation
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_topics_of_eight_messages_or_more_with_two_questions() {
        let sets = own_texts();
        let languages: Vec<_> = sets.iter().map(|set| set.language).collect();
        assert_eq!(languages, ["English", "Chinese"]);
        for OwnTexts { conversations, .. } in &sets {
            let [conversation] = conversations.as_slice() else { panic!("one was expected") };
            let end = conversation.messages.len();
            let starts = std::iter::once(&0).chain(&conversation.changes);
            let ends = conversation.changes.iter().chain(std::iter::once(&end));
            let topics: Vec<_> = starts.zip(ends).map(|(start, end)| *start..*end).collect();
            assert!(topics.len() >= 12, "{} topics", topics.len());
            for topic in topics {
                assert!(topic.len() >= 8, "{topic:?}");
                let asked = conversation.questions.iter();
                let asked = asked.filter(|question| topic.contains(&question.answers[0])).count();
                assert_eq!(asked, 2, "{topic:?}");
            }
        }
        let is_chinese = |c: char| ('\u{4e00}'..='\u{9fff}').contains(&c);
        let chinese = &sets[1].conversations[0].messages;
        assert!(chinese.iter().all(|message| message.chars().any(is_chinese)));
    }

    #[test]
    fn a_question_is_of_the_line_that_answers_it() {
        let english = &own_texts()[0].conversations[0];
        let answer = |start: &str| {
            let mut asked = english.questions.iter();
            let asked = asked.find(|question| question.text.starts_with(start)).unwrap();
            english.messages[asked.answers[0]].as_str()
        };
        assert!(answer("How much of the order").starts_with("The 39 euros will be on your card"));
        assert!(answer("Where do we stay").contains("guesthouse in Alfama"));
    }

    #[test]
    fn a_sample_tells_its_language_by_its_script() {
        assert_eq!(language_of("Which port does it use?"), Some("English"));
        assert_eq!(language_of("OrderService 的超时时间是多少秒？"), Some("Chinese"));
        assert_eq!(language_of("포트는 몇 번입니까"), Some("Chinese"));
        assert_eq!(language_of("8443 !"), None);
    }
}
