//! What a request is for.

use crate::Api;
use crate::client_message::is_marked;
use crate::headers::text;
use axum::http::HeaderMap;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// The agent's own work, and everything that is not certainly something else.
    Main,
    /// The work of an agent that another agent has started.
    SubAgent,
    /// A summary, with which the client continues in place of the conversation so far.
    Compaction,
    /// A name for the session.
    Title,
    /// A request that only warms the provider's cache.
    Prewarm,
    /// A request to count tokens, without an answer.
    TokenCount,
}

/// The parts of a body that show its class. Nothing else is parsed: a body can have several megabytes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Clues<'b> {
    /// The instructions outside the messages.
    pub(crate) system: Option<&'b RawValue>,
    /// How many tools there are; `None` if there is no list.
    pub(crate) tools: Option<usize>,
    /// The messages, or the items of the Responses API.
    pub(crate) messages: &'b [&'b str],
    pub(crate) output_config: Option<&'b RawValue>,
    pub(crate) thinking: Option<&'b RawValue>,
}

/// Headers in which clients say what a request is for, apart from those in which they say who they are.
pub(crate) const HINTS: [&str; 4] = [CLAUDE_BETAS, CODEX_TURN, CODEX_SUB_AGENT, OPENCODE_PARENT];

const CLAUDE_SESSION: &str = "x-claude-code-session-id";
const CLAUDE_AGENT: &str = "x-claude-code-agent-id";
const CLAUDE_BETAS: &str = "anthropic-beta";
const CODEX_TURN: &str = "x-codex-turn-metadata";
const CODEX_SUB_AGENT: &str = "x-openai-subagent";
const OPENCODE_PARENT: &str = "x-parent-session-id";

/// How the last text of a compaction in Claude Code begins.
const CLAUDE_COMPACTS: &str = "CRITICAL: Respond with TEXT ONLY";

/// How OpenCode's instructions for a title begin, and those for a compaction.
const OPENCODE_TITLES: &str = "You are a title generator";
const OPENCODE_COMPACTS: &str = "You are a context summarization agent";

impl Class {
    /// Returns its name, in one word.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::SubAgent => "sub_agent",
            Self::Compaction => "compaction",
            Self::Title => "title",
            Self::Prewarm => "prewarm",
            Self::TokenCount => "token_count",
        }
    }

    /// Returns the class of a request: by what its client says in headers, otherwise by the structure of the body.
    /// Text alone decides nothing, because a person may write it, too.
    pub(crate) fn of(api: Api, path: &str, headers: &HeaderMap, clues: &Clues<'_>) -> Self {
        if path.trim_end_matches('/').ends_with("/count_tokens") {
            return Self::TokenCount;
        }
        let found = match api {
            Api::Messages if headers.contains_key(CLAUDE_SESSION) => of_claude(headers, clues),
            Api::Responses => of_codex(headers, clues),
            _ => None,
        };
        found.or_else(|| of_opencode(headers, clues)).unwrap_or_else(|| {
            let is_sub_agent = [CLAUDE_AGENT, CODEX_SUB_AGENT, OPENCODE_PARENT]
                .iter()
                .any(|name| headers.contains_key(*name));
            if is_sub_agent { Self::SubAgent } else { Self::Main }
        })
    }
}

/// Returns what Claude Code asks for.
fn of_claude(headers: &HeaderMap, clues: &Clues<'_>) -> Option<Class> {
    let is_bare = clues.tools == Some(0) && clues.messages.len() == 1 && clues.thinking.is_none();
    if is_bare && clues.output_config.is_some_and(wants_title) {
        return Some(Class::Title);
    }
    if let [.., before, last] = clues.messages
        && let Ok(Message { role, content: Some(content) }) = serde_json::from_str(last)
        && role == "user"
    {
        let betas = text(headers, CLAUDE_BETAS).unwrap_or_default();
        // A turn sets a cache mark at its end; a compaction reads what the turn before it has marked.
        let signs = [
            betas.contains("fallback-credit-"),
            is_marked(before) && !is_marked(last),
            begins(blocks(content).last().and_then(|last| text_of(last)), CLAUDE_COMPACTS),
        ];
        // Settings of the client can remove one of the signs.
        if signs.iter().filter(|sign| **sign).count() >= 2 {
            return Some(Class::Compaction);
        }
    }
    let billing = clues.system.and_then(|system| text_of(blocks(system).first()?));
    let is_sub_agent = begins(billing, "x-anthropic-billing-header:")
        && billing.is_some_and(|text| text.get().contains("cc_is_subagent=true"));
    is_sub_agent.then_some(Class::SubAgent)
}

/// Returns what Codex asks for.
fn of_codex(headers: &HeaderMap, clues: &Clues<'_>) -> Option<Class> {
    #[derive(Deserialize)]
    struct Turn<'t> {
        #[serde(borrow, default)]
        request_kind: Option<Cow<'t, str>>,
        #[serde(borrow, default)]
        thread_source: Option<Cow<'t, str>>,
    }
    #[derive(Deserialize)]
    struct Item<'i> {
        #[serde(borrow, default, rename = "type")]
        kind: Option<Cow<'i, str>>,
    }
    let turn = headers.get(CODEX_TURN);
    let turn = turn.and_then(|turn| serde_json::from_slice::<Turn<'_>>(turn.as_bytes()).ok());
    let last = clues.messages.last().and_then(|last| serde_json::from_str::<Item<'_>>(last).ok());
    let kind = turn.as_ref().and_then(|turn| turn.request_kind.as_deref());
    let source = turn.as_ref().and_then(|turn| turn.thread_source.as_deref());
    if kind == Some("prewarm") {
        return Some(Class::Prewarm);
    }
    let is_compaction = kind == Some("compaction")
        || text(headers, CODEX_SUB_AGENT) == Some("compact")
        || last.is_some_and(|last| last.kind.as_deref() == Some("compaction_trigger"));
    match source {
        _ if is_compaction => Some(Class::Compaction),
        Some("thread_title") => Some(Class::Title),
        Some("subagent") => Some(Class::SubAgent),
        _ => None,
    }
}

/// Returns what OpenCode asks for. Its own agents for titles and summaries have no tools.
fn of_opencode(headers: &HeaderMap, clues: &Clues<'_>) -> Option<Class> {
    let is_opencode =
        text(headers, "user-agent").is_some_and(|agent| agent.starts_with("opencode/"));
    if !is_opencode || clues.tools.is_some_and(|count| count > 0) {
        return None;
    }
    let first = || {
        clues
            .messages
            .first()
            .and_then(|first| serde_json::from_str::<Message<'_>>(first).ok()?.content)
    };
    let instructions = clues.system.or_else(first)?;
    let opening = blocks(instructions).first().and_then(|block| text_of(block));
    if begins(opening, OPENCODE_TITLES) {
        return Some(Class::Title);
    }
    begins(opening, OPENCODE_COMPACTS).then_some(Class::Compaction)
}

/// Returns whether the answer must be an object that holds only a title.
fn wants_title(output_config: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Config<'c> {
        #[serde(borrow)]
        format: Format<'c>,
    }
    #[derive(Deserialize)]
    struct Format<'c> {
        #[serde(borrow)]
        schema: Schema<'c>,
    }
    #[derive(Deserialize)]
    struct Schema<'c> {
        #[serde(borrow)]
        required: Vec<Cow<'c, str>>,
    }
    read::<Config<'_>>(output_config)
        .is_some_and(|config| config.format.schema.required == ["title"])
}

#[derive(Deserialize)]
struct Message<'m> {
    #[serde(borrow)]
    role: Cow<'m, str>,
    #[serde(borrow, default)]
    content: Option<&'m RawValue>,
}

#[derive(Deserialize)]
struct Block<'b> {
    #[serde(borrow)]
    text: &'b RawValue,
}

/// Returns the blocks of a content; a string is one.
fn blocks(content: &RawValue) -> Vec<&RawValue> {
    read(content).unwrap_or_else(|| vec![content])
}

/// Returns the text of a block, as JSON.
fn text_of(block: &RawValue) -> Option<&RawValue> {
    if block.get().starts_with('"') {
        return Some(block);
    }
    read::<Block<'_>>(block).map(|block| block.text)
}

/// Returns whether a JSON text begins with `words`, which contain nothing that JSON escapes.
fn begins(text: Option<&RawValue>, words: &str) -> bool {
    let text = text.and_then(|text| text.get().strip_prefix('"'));
    text.is_some_and(|text| text.starts_with(words))
}

fn read<'j, T: Deserialize<'j>>(json: &'j RawValue) -> Option<T> {
    serde_json::from_str(json.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::{Class, Clues};
    use crate::Api;
    use axum::http::{HeaderMap, HeaderName, HeaderValue};
    use serde_json::value::{RawValue, to_raw_value};
    use serde_json::{Value, json};

    fn class(api: Api, headers: &[(&'static str, &str)], body: &Value) -> Class {
        let header = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        let headers: HeaderMap = headers.iter().map(header).collect();
        let raw = |key: &str| body.get(key).map(|value| to_raw_value(value).unwrap());
        let messages = raw("messages").or_else(|| raw("input")).unwrap();
        let messages: Vec<&RawValue> = serde_json::from_str(messages.get()).unwrap();
        let messages: Vec<&str> = messages.into_iter().map(RawValue::get).collect();
        let (system, output_config, thinking) =
            (raw("system"), raw("output_config"), raw("thinking"));
        let clues = Clues {
            system: system.as_deref(),
            tools: body.get("tools").map(|tools| tools.as_array().unwrap().len()),
            messages: &messages,
            output_config: output_config.as_deref(),
            thinking: thinking.as_deref(),
        };
        Class::of(api, "/v1/messages", &headers, &clues)
    }

    const CLAUDE: (&str, &str) = ("x-claude-code-session-id", "s");

    fn claude(headers: &[(&'static str, &str)], body: &Value) -> Class {
        class(Api::Messages, &[&[CLAUDE], headers].concat(), body)
    }

    /// A turn of Claude Code whose last message is this one.
    fn turn(is_marked: bool, last: &str) -> Value {
        let block = |text: &str, is_marked: bool| match is_marked {
            true => {
                json!({ "type": "text", "text": text, "cache_control": { "type": "ephemeral" } })
            }
            false => json!({ "type": "text", "text": text }),
        };
        json!({
            "system": [block("x-anthropic-billing-header: cc_version=2.1;", false), block("Be brief.", true)],
            "tools": [{ "name": "Read" }],
            "thinking": { "type": "adaptive" },
            "messages": [
                { "role": "user", "content": "Read a.txt" },
                { "role": "assistant", "content": [block("I look.", is_marked)] },
                { "role": "user", "content": [block(last, !is_marked)] },
            ],
        })
    }

    #[test]
    fn gw6_claude_code_says_what_it_asks_for() {
        const COMPACTS: &str = "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.";
        let betas = ("anthropic-beta", "effort-2025-11-24,fallback-credit-2026-06-01");
        assert_eq!(claude(&[], &turn(false, "Well?")), Class::Main);
        let agent = ("x-claude-code-agent-id", "a1");
        assert_eq!(claude(&[agent], &turn(false, "Well?")), Class::SubAgent);
        let mut told = turn(false, "Well?");
        told["system"][0]["text"] = json!("x-anthropic-billing-header: cc_is_subagent=true;");
        assert_eq!(claude(&[], &told), Class::SubAgent);
        // Two signs of three; text alone, a beta alone, and a mark alone are none.
        for (headers, body, expected) in [
            (&[betas][..], turn(true, COMPACTS), Class::Compaction),
            (&[betas], turn(false, COMPACTS), Class::Compaction),
            (&[betas, agent], turn(true, COMPACTS), Class::Compaction),
            (&[], turn(true, COMPACTS), Class::Compaction),
            (&[betas], turn(true, "Sum up."), Class::Compaction),
            (&[], turn(false, COMPACTS), Class::Main),
            (&[], turn(true, "Well?"), Class::Main),
            (&[betas], turn(false, "Well?"), Class::Main),
        ] {
            assert_eq!(claude(headers, &body), expected, "{headers:?} {body}");
        }
    }

    #[test]
    fn gw6_a_title_is_told_by_its_shape() {
        let format =
            |schema: Value| json!({ "format": { "type": "json_schema", "schema": schema } });
        let title = json!({
            "system": [{ "type": "text", "text": "You name a session." }],
            "tools": [],
            "output_config": format(json!({ "type": "object", "required": ["title"] })),
            "messages": [{ "role": "user", "content": "<session>" }],
        });
        assert_eq!(claude(&[], &title), Class::Title);
        // The same from an unknown program, and near misses.
        assert_eq!(class(Api::Messages, &[], &title), Class::Main);
        for (key, value) in [
            ("tools", json!([{ "name": "Read" }])),
            ("thinking", json!({ "type": "adaptive" })),
            ("output_config", json!({ "effort": "medium" })),
            ("output_config", format(json!({ "required": ["title", "text"] }))),
            (
                "messages",
                json!([{ "role": "user", "content": "a" }, { "role": "user", "content": "b" }]),
            ),
        ] {
            let mut other = title.clone();
            other[key] = value;
            assert_eq!(claude(&[], &other), Class::Main, "{other}");
        }
    }

    #[test]
    fn gw6_codex_says_what_it_asks_for() {
        let user = json!({ "type": "message", "role": "user", "content": "hello" });
        let trigger = json!({ "type": "compaction_trigger" });
        let (kind, sub) = ("x-codex-turn-metadata", "x-openai-subagent");
        for (headers, last, expected) in [
            (
                &[(kind, r#"{"request_kind":"turn","thread_source":"user"}"#)][..],
                &user,
                Class::Main,
            ),
            (&[(kind, r#"{"request_kind":"prewarm"}"#)], &user, Class::Prewarm),
            (&[(kind, r#"{"request_kind":"compaction"}"#)], &user, Class::Compaction),
            (&[(kind, r#"{"thread_source":"subagent"}"#)], &user, Class::SubAgent),
            (&[(kind, r#"{"thread_source":"thread_title"}"#)], &user, Class::Title),
            (&[(kind, "no JSON")], &user, Class::Main),
            (&[(sub, "collab_spawn")], &user, Class::SubAgent),
            (&[(sub, "compact")], &user, Class::Compaction),
            (&[(sub, "collab_spawn")], &trigger, Class::Compaction),
            (&[], &trigger, Class::Compaction),
        ] {
            let body = json!({ "input": [user, last] });
            assert_eq!(class(Api::Responses, headers, &body), expected, "{headers:?} {last}");
        }
    }

    #[test]
    fn gw6_opencode_says_what_it_asks_for() {
        let client = ("user-agent", "opencode/1.18.33 ai-sdk");
        for (opening, expected) in [
            ("You are a title generator. Nothing else.", Class::Title),
            ("You are a context summarization agent.", Class::Compaction),
            ("You are OpenCode.", Class::Main),
        ] {
            let user = json!({ "role": "user", "content": "hello" });
            let developer = json!({ "role": "developer", "content": opening });
            let system = json!([{ "type": "text", "text": opening }]);
            let bodies = [
                (Api::Messages, json!({ "system": system, "messages": [user] })),
                (Api::ChatCompletions, json!({ "messages": [developer, user] })),
                (Api::Responses, json!({ "input": [developer, user] })),
            ];
            for (api, mut body) in bodies {
                assert_eq!(class(api, &[client], &body), expected, "{api:?} {opening}");
                assert_eq!(class(api, &[], &body), Class::Main, "{api:?} {opening}");
                let parent = ("x-parent-session-id", "p");
                body["tools"] = json!([{ "name": "read" }]);
                assert_eq!(class(api, &[client], &body), Class::Main, "{api:?} {opening}");
                assert_eq!(class(api, &[client, parent], &body), Class::SubAgent, "{api:?}");
            }
        }
    }

    #[test]
    fn gw6_a_count_of_tokens_is_told_by_its_path() {
        let class =
            |path| Class::of(Api::OtherAnthropic, path, &HeaderMap::new(), &Clues::default());
        assert_eq!(class("/v1/messages/count_tokens"), Class::TokenCount);
        assert_eq!(class("/v1/messages/batches"), Class::Main);
    }
}
