//! Dialogues that were translated turn by turn.

use std::collections::HashSet;
use std::io::{Cursor, Read};
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Map, Value};
use zip::ZipArchive;

use super::Texts;
use super::clean::clean;
use crate::texts::read;

/// The turns of the dialogues that the files `english` and `translated` in `root` have both, under one
/// name, with as many turns. Of a dialogue that is there more than once, the first one counts.
pub(super) fn by_turn(root: &Path, english: &[&str], translated: &[&str]) -> Result<Texts> {
    let all = |paths: &[&str]| -> Result<Vec<(String, Value)>> {
        let mut dialogues = Vec::new();
        for path in paths {
            dialogues.extend(unpacked(&read(&root.join(path))?).context((*path).to_owned())?);
        }
        Ok(dialogues)
    };
    Ok(same_names(all(english)?, all(translated)?))
}

/// The object in the archive of one file.
fn unpacked(bytes: &[u8]) -> Result<Map<String, Value>> {
    let mut archive = ZipArchive::new(Cursor::new(bytes)).context("it is not a zip file")?;
    let mut json = Vec::new();
    archive.by_index(0)?.read_to_end(&mut json)?;
    serde_json::from_slice(&json).context("its first file is not an object of JSON")
}

fn same_names(english: Vec<(String, Value)>, translated: Vec<(String, Value)>) -> Texts {
    let mut seen = HashSet::new();
    let mut others = Map::new();
    for (name, dialogue) in translated {
        others.entry(name).or_insert(dialogue);
    }
    let mut texts = Vec::new();
    for (name, dialogue) in english {
        let Some(other) = others.get(&name) else { continue };
        let (said, other) = (turns(&dialogue), turns(other));
        if seen.insert(name) && said.len() == other.len() {
            texts.extend(said.iter().zip(other).map(|(a, b)| (clean(a), clean(b))));
        }
    }
    texts
}

/// What is said: `text` in `log`, or `content` in `messages`.
fn turns(dialogue: &Value) -> Vec<&str> {
    let turns = dialogue["log"].as_array().or_else(|| dialogue["messages"].as_array());
    turns.into_iter().flatten().map(said).collect()
}

fn said(turn: &Value) -> &str {
    turn["text"].as_str().or_else(|| turn["content"].as_str()).unwrap_or_default()
}

/// Chats of people with their companion, by day: the people stand in the same order in both files, and
/// a day counts that has as many turns in both.
pub(super) fn chats(english: &[u8], translated: &[u8]) -> Result<Texts> {
    let people = |bytes| serde_json::from_slice::<Map<String, Value>>(bytes);
    let (english, translated) = (people(english)?, people(translated)?);
    let mut texts = Vec::new();
    for (one, other) in english.values().zip(translated.values()) {
        for (day, turns) in one["history"].as_object().into_iter().flatten() {
            let (turns, others) = (turns.as_array(), other["history"][day].as_array());
            let (Some(turns), Some(others)) = (turns, others) else { continue };
            if turns.len() != others.len() {
                continue;
            }
            for (turn, other) in turns.iter().zip(others) {
                for part in ["query", "response"] {
                    let text = |turn: &Value| clean(turn[part].as_str().unwrap_or_default());
                    texts.push((text(turn), text(other)));
                }
            }
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn owned<const N: usize>(pairs: [(&str, &str); N]) -> Vec<(String, String)> {
        pairs.map(|(a, b)| (a.to_owned(), b.to_owned())).into()
    }

    #[test]
    fn dialogues_of_one_name_are_paired_by_turn() {
        let english = vec![
            ("a".to_owned(), json!({"log": [{"text": "A hotel?"}, {"text": "Which one?"}]})),
            ("b".to_owned(), json!({"log": [{"text": "Only here."}]})),
            ("c".to_owned(), json!({"log": [{"text": "One turn."}]})),
        ];
        let chinese = vec![
            ("c".to_owned(), json!({"messages": [{"content": "一"}, {"content": "二"}]})),
            ("a".to_owned(), json!({"messages": [{"content": "酒店？"}, {"content": "哪家？"}]})),
            ("a".to_owned(), json!({"messages": [{"content": "又"}, {"content": "来"}]})),
        ];
        let expected = owned([("A hotel?", "酒店？"), ("Which one?", "哪家？")]);
        assert_eq!(same_names(english, chinese), expected);
    }

    #[test]
    fn chats_are_paired_by_person_and_day() {
        let english = r#"{"Zoe": {"history": {"d1": [{"query": "I am tired.", "response": "Rest."}],
            "d2": [{"query": "x", "response": "y"}]}}, "Al": {"history": {"d1": []}}}"#;
        let chinese = r#"{"张三": {"history": {"d1": [{"query": "我累了。", "response": "休息吧。"}],
            "d2": []}}, "阿尔": {"history": {}}}"#;
        let found = chats(english.as_bytes(), chinese.as_bytes()).unwrap();
        assert_eq!(found, owned([("I am tired.", "我累了。"), ("Rest.", "休息吧。")]));
        assert!(chats(b"[]", b"{}").is_err());
    }

    #[test]
    fn people_stand_in_the_order_of_the_file() {
        let of = |name: &str, said: &str| {
            json!({ name: {"history": {"d": [{"query": said, "response": said}]}} }).to_string()
        };
        let both = |a: String, b: String| format!("{},{}", &a[..a.len() - 1], &b[1..]);
        let english = both(of("Zoe", "first"), of("Al", "second"));
        let chinese = both(of("一", "先"), of("丁", "后"));
        let found = chats(english.as_bytes(), chinese.as_bytes()).unwrap();
        let pair = ("first", "先");
        assert_eq!(found, owned([pair, pair, ("second", "后"), ("second", "后")]));
    }
}
