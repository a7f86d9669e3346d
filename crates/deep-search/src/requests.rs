//! The request of each node to its model: the node's own inputs, and nothing of the others.

use crate::{DeepSearchSettings, Marks, Passage, Query, Research, Source};
use foldback_core::{Estimate, Message, Role, excerpt, first_tokens, message_tokens, quoted};
use std::fmt::Write;
use std::sync::Arc;

const QUERIES: &str = include_str!("prompts/queries.md");
const RESEARCH: &str = include_str!("prompts/research.md");
const MARKING: &str = include_str!("prompts/marking.md");
const NO_MARKING: &str = include_str!("prompts/no_marking.md");
const REFLECTION: &str = include_str!("prompts/reflection.md");
const ANSWER: &str = include_str!("prompts/answer.md");
const LINKING: &str = include_str!("prompts/linking.md");
const AFTERWARDS: &str = include_str!("prompts/afterwards.md");

/// The most tokens of the conversation before a question that are passed on with it.
const TOPIC_TOKENS: usize = 4_000;

/// The most tokens of a source's title that a model reads.
const TITLE_TOKENS: usize = 120;

/// Instructions, and their subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prompt {
    pub(crate) system: String,
    pub(crate) user: String,
}

/// Returns the topic: the question, or a conversation that ends with it, turn by turn:
/// `User: …`, `Assistant: …`. Answers of tools (also as observations of a loop), standing instructions
/// and early turns are left out; a last turn that is too long is shortened.
///
/// ```
/// use foldback_deep_search::research_topic;
/// use foldback_core::Message;
///
/// assert_eq!(research_topic(&[], "杭州天气?"), "杭州天气?");
/// let before = [
///     Message::user("杭州天气?").into(),
///     Message::observation("weather: 小雨").into(),
///     Message::assistant("小雨。").into(),
/// ];
/// assert_eq!(
///     research_topic(&before, "明天呢?"),
///     "User: 杭州天气?\nAssistant: 小雨。\nUser: 明天呢?\n",
/// );
/// ```
#[must_use]
pub fn research_topic(before: &[Arc<Message>], question: &str) -> String {
    let mut left = TOPIC_TOKENS;
    let mut turns: Vec<String> = Vec::new();
    for message in before.iter().rev() {
        let speaker = match message.role() {
            _ if message.is_observation() => continue,
            Role::User => "User",
            Role::Assistant => "Assistant",
            _ => continue,
        };
        if message.content().is_blank() {
            continue;
        }
        let tokens = message_tokens(&Estimate, message);
        if tokens > left {
            if turns.is_empty() {
                let part = excerpt(&message.text(), left, &Estimate).text;
                turns.push(format!("{speaker}: {part}\n"));
            }
            break;
        }
        left -= tokens;
        turns.push(format!("{speaker}: {}\n", message.text()));
    }
    if turns.is_empty() {
        return question.to_owned();
    }
    turns.reverse();
    format!("{}User: {question}\n", turns.concat())
}

/// Writes the requests of a run.
#[derive(Debug)]
pub(crate) struct Prompts<'a> {
    pub(crate) settings: &'a DeepSearchSettings,
    /// The agent's standing instructions, which the answer follows.
    pub(crate) system_prompt: &'a str,
    pub(crate) topic: &'a str,
}

impl Prompts<'_> {
    pub(crate) fn queries(&self, most: u32) -> Prompt {
        let system = self.dated(&QUERIES.replace("{most}", &most.to_string()));
        Prompt { system, user: self.topic.to_owned() }
    }

    /// `marks` says how the summary marks its sources, if it does.
    pub(crate) fn research(
        &self,
        query: &Query,
        found: &[(usize, &Passage)],
        marks: Option<&Marks>,
    ) -> Prompt {
        let citing = match marks {
            Some(marks) => {
                let both = format!("{}{}", marks.mark(1), marks.mark(2));
                MARKING.replace("{mark}", &marks.mark(1)).replace("{both}", &both)
            }
            None => NO_MARKING.to_owned(),
        };
        let system = self.dated(&format!("{RESEARCH}{citing}"));
        let mut user = format!("Query: {}\n", quoted(&query.query));
        found.iter().for_each(|found| user.push_str(&self.source_line(found)));
        Prompt { system, user }
    }

    /// Returns a source with its text, on one line.
    fn source_line(&self, (number, found): &(usize, &Passage)) -> String {
        let text = head(&found.text, self.settings.passage_tokens);
        let (title, text) = (quoted(head(&found.title, TITLE_TOKENS)), quoted(text));
        format!("\n{{\"number\":{number},\"title\":{title},\"text\":{text}}}")
    }

    pub(crate) fn reflection(&self, results: &[Research]) -> Prompt {
        let most = self.settings.max_follow_up_queries.to_string();
        let system = self.dated(&REFLECTION.replace("{most}", &most));
        let told = results.iter().map(|result| {
            let query = quoted(&result.query.query);
            format!("Query: {query}\n\n{}", told(result, |summary| summary.text.clone()))
        });
        Prompt { system, user: self.with_summaries(told) }
    }

    pub(crate) fn answer(&self, results: &[Research], gap: Option<&str>, links: bool) -> Prompt {
        let citing = if links { LINKING } else { NO_MARKING };
        let instructions = self.dated(&format!("{ANSWER}{citing}"));
        let parts = [self.system_prompt.trim_end(), &instructions];
        let parts = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
        let told = results.iter().map(|result| {
            told(result, |summary| if links { summary.with_links() } else { summary.text.clone() })
        });
        let mut user = self.with_summaries(told);
        if let Some(gap) = gap {
            let _ = write!(user, "\n\nWhat could not be found: {}", quoted(gap));
        }
        Prompt { system: parts.join("\n\n"), user }
    }

    /// Asks for the citations of a query's summary.
    pub(crate) fn citations_of_summary(&self, draft: &str, found: &[(usize, &Passage)]) -> Prompt {
        let mut user = format!("The draft: {}\n\nThe sources:", quoted(draft));
        found.iter().for_each(|found| user.push_str(&self.source_line(found)));
        Prompt { system: AFTERWARDS.trim_end().to_owned(), user }
    }

    /// Asks for the citations of the answer, from summaries that have their own.
    pub(crate) fn citations_of_answer(
        &self,
        draft: &str,
        results: &[Research],
        sources: &[Source],
    ) -> Prompt {
        let summaries = results.iter().filter_map(|result| result.outcome.as_ref().ok());
        let marks = Marks::avoiding(summaries.clone().map(|summary| summary.text.as_str()));
        let number = |source: &Source| {
            sources.iter().position(|other| other.url == source.url).map_or(0, |at| at + 1)
        };
        let mut user = format!("The draft: {}\n\nThe sources:", quoted(draft));
        for (at, source) in sources.iter().enumerate() {
            let title = quoted(head(&source.title, TITLE_TOKENS));
            let _ = write!(user, "\n{{\"number\":{},\"title\":{title}}}", at + 1);
        }
        let _ =
            write!(user, "\n\nWhat they say, with {} after what source 1 says:\n\n", marks.mark(1));
        let summaries = summaries.map(|summary| summary.with_marks(&marks, number));
        user.push_str(&joined(summaries));
        Prompt { system: AFTERWARDS.trim_end().to_owned(), user }
    }

    fn with_summaries(&self, told: impl Iterator<Item = String>) -> String {
        format!("The question:\n\n{}\n\nThe summaries:\n\n{}", self.topic, joined(told))
    }

    fn dated(&self, instructions: &str) -> String {
        let instructions = instructions.trim_end();
        match &self.settings.today {
            Some(today) => format!("{instructions}\n\nToday is {today}."),
            None => instructions.to_owned(),
        }
    }
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join("\n\n---\n\n")
}

/// Returns the result of a query as text.
fn told(result: &Research, summary: impl Fn(&crate::Summary) -> String) -> String {
    match &result.outcome {
        Ok(found) => summary(found),
        Err(why) => {
            let (query, why) = (quoted(&result.query.query), quoted(head(why, WHY_TOKENS)));
            format!("The search for {query} failed: {why}")
        }
    }
}

/// The most tokens of the reason why a search failed.
const WHY_TOKENS: usize = 100;

/// Returns the longest beginning of a text of at most `tokens` tokens.
pub(crate) fn head(text: &str, tokens: usize) -> &str {
    first_tokens(text, tokens, &Estimate)
}
