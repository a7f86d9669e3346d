//! How a policy is asked for what its prompt does not show: determined by the tools that it declares,
//! and the same for every policy that declares the same tools.

use foldback_core::{ToolCall, ToolDefinition};
use serde_json::{Value, json};

/// The maximum number of hits of a search.
const HITS: u64 = 3;

/// The ways to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// `search_block`, `list_blocks` and `load`.
    Blocks,
    /// `load` alone, which searches if it is given words; blocks are numbered.
    Load,
    /// `grep` and `read_file`.
    Files,
    /// `search_raw` and `read_raw`.
    Raw,
    /// No tools: what left the prompt is gone.
    None,
}

impl Means {
    /// Returns the means that these tools provide.
    #[must_use]
    pub fn of(tools: &[ToolDefinition]) -> Self {
        let has = |name: &str| tools.iter().any(|tool| tool.name == name);
        if has("search_block") && has("list_blocks") && has("load") {
            Self::Blocks
        } else if has("load") {
            Self::Load
        } else if has("grep") && has("read_file") {
            Self::Files
        } else if has("search_raw") && has("read_raw") {
            Self::Raw
        } else {
            Self::None
        }
    }

    /// Returns the single search for a question.
    #[must_use]
    pub fn search(self, question: &str) -> Option<ToolCall> {
        match self {
            Self::Blocks => Some(call("search_block", json!({ "query": question, "k": HITS }))),
            Self::Load => Some(call("load", json!({ "ref": plain(question) }))),
            Self::Files => {
                let pattern = pattern(question)?;
                Some(call("grep", json!({ "pattern": pattern, "regex": true })))
            }
            Self::Raw => Some(call("search_raw", json!({ "pattern": pattern(question)? }))),
            Self::None => None,
        }
    }

    /// Returns the single look at the first place that the search named but did not show in full.
    #[must_use]
    pub fn look(self, answer: &str) -> Option<ToolCall> {
        match self {
            Self::Blocks | Self::Load => {
                let reference = unshown(answer)?;
                Some(call("load", json!({ "ref": reference })))
            }
            Self::Files => {
                let (path, line) = first_match(answer)?;
                let offset = line.saturating_sub(1);
                Some(call("read_file", json!({ "file_path": path, "offset": offset })))
            }
            Self::Raw => {
                let (id, rest) = answer.split_once(':')?;
                let line = rest.split_once(':')?.0;
                Some(call("read_raw", json!({ "id": id, "lines": format!("{line}-") })))
            }
            Self::None => None,
        }
    }
}

/// Returns a call of a tool.
pub(crate) fn call(tool: &str, arguments: Value) -> ToolCall {
    ToolCall::new("recall", tool, &arguments.to_string())
}

/// Returns the call that an answer gives for its continuation: `call load with {..}`.
pub(crate) fn next_call(answer: &str, tool: &str) -> Option<ToolCall> {
    let before = format!("call {tool} with ");
    let (_, rest) = answer.rsplit_once(&before)?;
    let arguments = rest.trim_end().strip_suffix('.')?;
    serde_json::from_str::<Value>(arguments).ok().map(|arguments| call(tool, arguments))
}

/// Returns the references to stored parts in a text, in order.
pub(crate) fn payloads(text: &str) -> impl Iterator<Item = &str> {
    const SCHEME: &str = "store://";
    text.match_indices(SCHEME).filter_map(move |(at, _)| {
        let rest = text.get(at + SCHEME.len()..)?;
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(rest.len());
        let (number, check) = rest.get(..end)?.split_once('-')?;
        let is_one = number.bytes().all(|byte| byte.is_ascii_digit()) && check.len() == 4;
        (is_one && !number.is_empty()).then(|| text.get(at..at + SCHEME.len() + end)).flatten()
    })
}

/// Returns the first reference of an answer that is not shown in full: a stored part, or a block for
/// which the answer says that `load` shows more.
fn unshown(answer: &str) -> Option<&str> {
    let cut = answer.match_indices("load b_").find_map(|(at, _)| {
        let name = answer.get(at + "load ".len()..)?.split_whitespace().next()?;
        Some((at, name))
    });
    let payload = payloads(answer).next();
    let place = |part: &str| part.as_ptr() as usize - answer.as_ptr() as usize;
    match (cut, payload) {
        (Some((at, _)), Some(payload)) if place(payload) < at => Some(payload),
        (Some((_, block)), _) => Some(block),
        (None, payload) => payload,
    }
}

/// Returns the file and the number of the first line that a pattern search found.
fn first_match(answer: &str) -> Option<(&str, u64)> {
    let mut lines = answer.lines();
    let path = lines.next()?.strip_suffix(':')?;
    let line = lines.next()?.split_once(':')?.0.parse().ok()?;
    Some((path, line))
}

/// Returns a pattern of the question's words, any of which may match a line; words that occur
/// everywhere are left out. A word consists of letters, digits and underscores, which match themselves
/// in a pattern.
fn pattern(question: &str) -> Option<String> {
    let mut seen = std::collections::BTreeSet::new();
    let mut told = Vec::new();
    for word in words(question) {
        let lower = word.to_lowercase();
        let says_little = word.chars().count() < 3 && word.is_ascii();
        if !says_little && !STOP_WORDS.contains(&lower.as_str()) && seen.insert(lower) {
            told.push(word);
        }
    }
    (!told.is_empty()).then(|| format!("(?i){}", told.join("|")))
}

/// Returns a question that cannot be taken for a reference.
fn plain(question: &str) -> String {
    let question = question.replace("://", " ").replace("b_", "b ");
    question.trim_start_matches(|c: char| !c.is_alphanumeric()).to_owned()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// English stop words.
const STOP_WORDS: &[&str] = &[
    "about", "after", "all", "also", "and", "any", "are", "because", "been", "but", "can", "could",
    "did", "does", "for", "from", "had", "has", "have", "her", "here", "him", "his", "how", "into",
    "its", "just", "like", "may", "more", "not", "now", "one", "our", "out", "please", "she",
    "should", "some", "than", "that", "the", "their", "them", "then", "there", "they", "this",
    "was", "what", "when", "where", "which", "who", "why", "will", "with", "would", "you", "your",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_means_are_those_of_the_tools() {
        let of = |names: &[&str]| {
            let tool = |name: &&str| ToolDefinition {
                name: (*name).to_owned(),
                description: String::new(),
                parameters: "{}".to_owned(),
            };
            Means::of(&names.iter().map(tool).collect::<Vec<_>>())
        };
        assert_eq!(of(&["search_block", "list_blocks", "load"]), Means::Blocks);
        assert_eq!(of(&["load"]), Means::Load);
        assert_eq!(of(&["grep", "read_file"]), Means::Files);
        assert_eq!(of(&["read_raw", "search_raw"]), Means::Raw);
        assert_eq!(of(&["grep"]), Means::None);
        assert_eq!(Means::None.search("boat"), None);
    }

    #[test]
    fn a_pattern_takes_the_words_that_say_something() {
        assert_eq!(
            pattern("Please move the boat to 大阪, BOAT move_boat"),
            Some("(?i)move|boat|大阪|move_boat".to_owned())
        );
        assert_eq!(pattern("to the"), None);
    }

    #[test]
    fn the_first_place_that_is_not_shown_whole_is_looked_at() {
        let whole = "[search_block: \"x\" is answered by b_t_001]\n<recalled-kdmt>\nall\n</recalled-kdmt>\n";
        let parts =
            "in store://12-k4qd, lines 4-9:\n[#4 to #9 are left out; load b_t_002 shows them]";
        let look = |answer: &str| Means::Blocks.look(answer).map(|call| call.arguments);
        assert_eq!(look(whole), None);
        assert_eq!(look(parts).as_deref(), Some(r#"{"ref":"store://12-k4qd"}"#));
        assert_eq!(
            look("load b_t_002 shows more; store://12-k4qd").as_deref(),
            Some(r#"{"ref":"b_t_002"}"#)
        );
        let files = Means::Files.look("/history.md:\n12: the boat\n14: a boat");
        assert_eq!(files.unwrap().arguments, r#"{"file_path":"/history.md","offset":11}"#);
        let raw = Means::Raw.look("r7:2: the boat\n");
        assert_eq!(raw.unwrap().arguments, r#"{"id":"r7","lines":"2-"}"#);
        assert_eq!(
            payloads("store://x store://1-ab store://3-abcd.").collect::<Vec<_>>(),
            ["store://3-abcd"]
        );
    }
}
