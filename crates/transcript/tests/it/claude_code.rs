//! Session logs of Claude Code.

use crate::converted::{
    PARTIAL, all_there, comes_back, errors, fixture, json, mark, read, roles, source,
};
use foldback_transcript::{Conversation, FindingKind, Format, anthropic, read_bytes, read_file};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The session of the `n`-th fixture.
fn session_id(n: u64) -> String {
    format!("6f0c2d1e-aaaa-4bbb-8ccc-{n:012}")
}

pub(crate) fn chained(kind: &str, uuid: &str, parent: Option<&str>, more: Value) -> Value {
    let mut line = json!({
        "type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s", "isSidechain": false,
    });
    for (key, value) in more.as_object().unwrap() {
        line[key] = value.clone();
    }
    line
}

pub(crate) fn user(uuid: &str, parent: Option<&str>, content: Value) -> Value {
    chained("user", uuid, parent, json!({"message": {"role": "user", "content": content}}))
}

pub(crate) fn assistant(uuid: &str, parent: Option<&str>, id: &str, content: Value) -> Value {
    let message = json!({"role": "assistant", "id": id, "model": "m", "content": content});
    chained("assistant", uuid, parent, json!({"message": message}))
}

pub(crate) fn texts(conversation: &Conversation) -> Vec<String> {
    conversation.messages.iter().map(|message| message.text().into_owned()).collect()
}

#[test]
fn a_session_becomes_messages_and_records() {
    let [session] = fixture("claude-code/session.jsonl").try_into().unwrap();
    assert_eq!(session.id, Some(session_id(1)));
    assert_eq!(session.envelope.format(), Format::ClaudeCodeLog);
    assert_eq!(
        roles(&session),
        [
            "user",
            "assistant",
            "tool",
            "tool",
            "user",
            "user",
            "assistant",
            "tool",
            "user",
            "user",
            "user",
            "assistant",
            "assistant"
        ]
    );
    let [prompt, first, count, readme, skill, queued, second, stub, caveat, command, ..] =
        &std::array::from_fn::<_, 11, _>(|at| json(&session, at));
    assert_eq!(prompt["content"], "数一下 src 里的文件，然后读 README。");
    assert_eq!(prompt["timestamp"], "2026-05-01T10:00:01.000Z");
    assert_eq!(prompt["source"]["uuid"], "u-1");
    assert_eq!(prompt["source"].get("cwd"), None, "what all lines say stands in the envelope");

    assert_eq!(first["content"], "我先数文件。");
    assert_eq!(first["thinking_blocks"][0]["signature"], "c2ln==");
    let call = &first["tool_calls"][0];
    assert_eq!(call["id"], "toolu_1");
    assert_eq!(call["function"]["arguments"], r#"{"command":"ls src | wc -l","n":1.50}"#);
    assert_eq!(first["tool_calls"][1]["id"], "toolu_2");
    assert_eq!(first["source"]["response"], "msg_a");
    assert_eq!(first["source"]["model"], "claude-test-1");
    assert_eq!(first["source"]["stop_reason"], "tool_use");
    assert_eq!(first["source"]["requestId"], "req_1");
    let kept = source(&session);
    let further: Vec<_> =
        kept["further_lines"].as_array().unwrap().iter().map(|l| &l["uuid"]).collect();
    assert_eq!(further, ["a-2", "a-3", "a-4", "a-6"]);
    assert_eq!(kept["further_lines"][0]["of"], first["source"]["line"]);
    assert_eq!(kept.get("unfinished_response"), None, "each response says how it ended");

    assert_eq!((&count["tool_call_id"], &count["content"]), (&json!("toolu_1"), &json!("12")));
    assert_eq!(count["source"]["toolUseResult"]["stdout"], "12");
    assert_eq!(count["source"]["sourceToolAssistantUUID"], "a-3");
    assert_eq!(readme["content"][0]["text"], "# App\n说明");
    assert_eq!(readme["content"][1]["source"]["data"], "iVBORw0KGgo=");
    assert_eq!(readme["source"]["toolUseResult"], "Error: none");
    assert_eq!(skill["content"], "Base directory for this skill: /s");
    assert_eq!(queued["content"], "顺便看看测试");
    assert_eq!(queued["source"]["queued"], true);
    assert_eq!(queued["source"].get("injected"), None);
    assert_eq!(queued["source"]["attachment"]["origin"]["kind"], "human");
    assert_eq!(second["tool_calls"][0]["id"], "toolu_3");
    assert_eq!(stub["is_error"], true);
    assert_eq!(stub["source"]["stub"], true);
    assert!(stub["content"].as_str().unwrap().starts_with("<persisted-output>"));
    let file = "/home/ada/.claude/projects/x/tool-results/toolu_3.txt".to_owned();
    let spilled = FindingKind::Spilled { file };
    assert!(session.check().iter().any(|odd| (odd.at, &odd.kind) == (Some(7), &spilled)));
    for injected in [caveat, command] {
        assert_eq!(injected["source"]["injected"], true, "{injected}");
    }
    let thanks = &session.messages[10];
    assert_eq!(thanks.text(), "谢谢\nbye");
    assert_eq!(session.messages[11].text(), "再见 \u{fffd}");
    assert!(session.messages[11].json().contains(r"\ud83d"));
    let failed = json(&session, 12);
    assert_eq!(failed["source"]["synthetic"], true);
    assert_eq!(failed["source"].get("prompt_tokens"), None, "no model was asked");

    assert_eq!(kept["format"], "claude_code_log");
    assert_eq!(kept["cwd"], "/home/ada/app");
    assert_eq!(kept["gitBranch"], "main");
    let counts = json!({
        "summary": 1, "file-history-snapshot": 1, "attachment/skill_listing": 1,
        "progress/bash_progress": 1, "system/local_command": 1, "queue-operation": 1,
        "brand-new-type": 1, "last-prompt": 1,
    });
    assert_eq!(kept["counts"], counts);
    let unknown = kept["records"].as_array().unwrap().iter().find(|r| r["line"] == 23).unwrap();
    assert_eq!(unknown["record"]["data"][1]["k"], "v");
    assert!(session.envelope.get("source").unwrap().contains("[1.50, {"), "kept as it was written");
}

/// Usage is on each line of a response, and final on one of them.
#[test]
fn usage_is_counted_once_a_response() {
    let [session] = fixture("claude-code/session.jsonl").try_into().unwrap();
    let tokens: Vec<_> = (0..session.messages.len())
        .filter(|at| *at != 11)
        .filter_map(|at| {
            let source = &json(&session, at)["source"];
            Some((source.get("prompt_tokens")?.as_u64()?, source["completion_tokens"].as_u64()?))
        })
        .collect();
    assert_eq!(tokens, [(1109, 57), (1109, 41)]);

    let line = |uuid: &str, parent, usage: Value| {
        let mut line =
            assistant(uuid, Some(parent), "msg", json!([{"type": "text", "text": uuid}]));
        line["message"]["usage"] = usage;
        line
    };
    let [read] = read(&[
        user("u", None, json!("hi")),
        line("a", "u", json!({"input_tokens": 900, "output_tokens": 1})),
        line("b", "a", json!({"input_tokens": 5, "output_tokens": 7})),
        line("c", "b", json!({"input_tokens": 6, "output_tokens": 7})),
        line("d", "c", json!({"input_tokens": 700, "output_tokens": 2})),
    ])
    .try_into()
    .unwrap();
    let usage = json(&read, 1)["source"]["usage"].clone();
    assert_eq!(usage, json!({"input_tokens": 6, "output_tokens": 7}), "the whole of one line");
}

/// Some versions write the content of a line as a plain text.
#[test]
fn a_response_of_texts_keeps_them_all() {
    let [read] = read(&[
        user("u", None, json!("hi")),
        assistant("a", Some("u"), "m", json!("ALPHA 甲")),
        assistant("b", Some("a"), "m", json!("BETA")),
        assistant("c", Some("b"), "m", json!([{"type": "text", "text": "GAMMA"}])),
    ])
    .try_into()
    .unwrap();
    assert_eq!(texts(&read), ["hi", "ALPHA 甲\nBETA\nGAMMA"]);
}

#[test]
fn a_large_value_stands_beside_the_messages() {
    let result = json!([{"type": "tool_result", "tool_use_id": "c", "content": "ok"}]);
    let mut answer = user("r", Some("a"), result);
    answer["toolUseResult"] = json!({"originalFile": "长".repeat(2_000)});
    answer["sourceToolAssistantUUID"] = json!("a");
    let call = json!([{"type": "tool_use", "id": "c", "name": "Edit", "input": {}}]);
    let [read] =
        read(&[user("u", None, json!("hi")), assistant("a", Some("u"), "m", call), answer.clone()])
            .try_into()
            .unwrap();
    assert!(read.messages[2].json().len() < 1_000);
    let message = json(&read, 2);
    assert_eq!(message["source"]["in_records"], json!(["toolUseResult"]));
    assert_eq!(message["source"]["sourceToolAssistantUUID"], "a", "what is small stays");
    let moved = json!({
        "line": 3, "message": 2, "key": "toolUseResult", "record": answer["toolUseResult"],
    });
    assert_eq!(source(&read)["records"], json!([moved]));
}

/// The run that sums up a session for a compaction does not belong to the session.
#[test]
fn the_summariser_is_passed_over() {
    let mut line = user("u", None, json!("Summarise 总结"));
    line["isSidechain"] = json!(true);
    line["agentId"] = json!("acompact-1");
    let [error] = errors(&line.to_string()).try_into().unwrap();
    assert!(error.contains("no message") && error.contains("sums a session up"), "{error}");
    let both = read(&[user("m", None, json!("hi")), line]);
    assert_eq!(both.len(), 2, "inside the session's own file it is a side chain");
}

#[test]
fn what_stands_beside_the_file_of_an_agent_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut line = user("u", None, json!("look 看"));
    line["isSidechain"] = json!(true);
    line["agentId"] = json!("7");
    let meta = r#"{"agentType":"Explore","description":"d 描述","toolUseId":"toolu_9"}"#;
    for (name, beside, expected) in [
        ("agent-7.jsonl", Some(meta), Some("toolu_9")),
        ("agent-8.jsonl.zst", Some(meta), Some("toolu_9")),
        ("agent-9.jsonl", Some("{\"cut"), None),
        ("agent-10.jsonl", None, None),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, line.to_string()).unwrap();
        if let Some(beside) = beside {
            let stem = name.split('.').next().unwrap();
            std::fs::write(folder.path().join(format!("{stem}.meta.json")), beside).unwrap();
        }
        let read = read_file(&path).unwrap().next().unwrap().unwrap();
        comes_back(&read);
        let kept = source(&read);
        assert_eq!(kept.get("parent_call").and_then(Value::as_str), expected, "{name}");
        let description = kept.get("meta").map(|meta| meta["description"].clone());
        assert_eq!(description, expected.map(|_| json!("d 描述")), "{name}");
    }
}

#[test]
fn branches_are_conversations_with_their_fork_point() {
    let [main, branch] = fixture("claude-code/branches.jsonl").try_into().unwrap();
    assert_eq!(
        texts(&main),
        [
            "Write a haiku",
            "Old pond",
            "Make it about 月",
            "月が出た",
            "And about rain",
            "Rain on leaves"
        ]
    );
    assert_eq!(source(&main)["seams"], json!([7]), "the parent of that line is missing");
    assert_eq!(source(&main)["repeated_lines"], json!([9]));
    assert_eq!(texts(&branch), ["Make it about 雪", "雪が降る"]);
    assert_eq!(branch.id, Some(session_id(2) + "-branch-1"));
    assert_eq!(source(&branch)["fork_point"], json!({"line": 2, "uuid": "a-1"}));
    assert_eq!(source(&branch).get("records"), None);
}

#[test]
fn side_chains_are_conversations_that_name_their_call() {
    let [main, look, count] = fixture("claude-code/side-chains.jsonl").try_into().unwrap();
    assert_eq!(roles(&main), ["user", "assistant", "tool", "tool", "assistant"]);
    assert_eq!(main.messages[2].tool_call_id().unwrap().as_str(), "toolu_count");
    assert_eq!(json(&main, 2)["source"]["toolUseResult"]["agentId"], "a7f");
    assert_eq!(texts(&look), ["Look at 目录", "Three files"]);
    assert_eq!(look.id, Some(session_id(3) + "-side-1"));
    assert_eq!(source(&look)["parent_call"], "toolu_look", "its prompt is the call's");
    assert_eq!(roles(&count), ["user", "assistant", "tool", "assistant"]);
    assert_eq!(count.id, Some(session_id(3) + "-agent-a7f"));
    assert_eq!(source(&count)["parent_call"], "toolu_count", "the call's result names the agent");
    assert_eq!(source(&count)["isSidechain"], true);
    assert_eq!(source(&count)["parent_session"], json!(session_id(3)));
    for conversation in [main, look, count] {
        assert_eq!(conversation.check(), [], "{:?}", conversation.id);
    }
}

#[test]
fn the_file_of_an_agent_is_its_thread() {
    let [agent] = fixture("claude-code/agent.jsonl").try_into().unwrap();
    assert_eq!(texts(&agent), ["Count lines", "四十行"]);
    assert_eq!(agent.id, Some(session_id(4) + "-agent-a7f"));
    assert_eq!(source(&agent)["agentId"], "a7f");
    assert_eq!(source(&agent)["parent_session"], json!(session_id(4)));
}

#[test]
fn a_compaction_keeps_the_whole_history() {
    let [session] = fixture("claude-code/compaction.jsonl").try_into().unwrap();
    assert_eq!(texts(&session), ["Plan the release", "计划：三步", "Do step one", "Done"]);
    let kept = source(&session);
    assert_eq!(kept["counts"], json!({"system/compact_boundary": 1, "user/compact_summary": 1}));
    assert_eq!(kept.get("partial"), None);
}

#[test]
fn what_stands_in_another_file_is_said_to_be_missing() {
    let [session] = fixture("claude-code/continued.jsonl").try_into().unwrap();
    assert_eq!(roles(&session), ["user", "assistant"]);
    assert_eq!(json(&session, 0)["source"]["injected"], true, "the summary is all there is");
    assert_eq!(source(&session)["partial"], true);
    assert!(session.check().contains(&PARTIAL), "{:?}", session.check());

    let [resumed] = read(&[
        user("u", Some("in-the-older-file"), json!("go on")),
        assistant("a", Some("u"), "msg", json!([{"type": "text", "text": "好"}])),
    ])
    .try_into()
    .unwrap();
    assert_eq!(texts(&resumed), ["go on", "好"]);
    assert_eq!(source(&resumed)["partial"], true);
    assert_eq!(resumed.check(), [PARTIAL]);
}

#[test]
fn a_log_without_messages_names_what_it_holds() {
    let text = include_str!("../fixtures/claude-code/empty.jsonl");
    let [error] = errors(text).try_into().unwrap();
    for expected in ["Claude Code", "no message", "\"summary\" (2)", "\"last-prompt\" (1)"] {
        assert!(error.contains(expected), "{expected}: {error}");
    }
    // The stream output of the same program and histories of prompts are different formats.
    for foreign in [
        r#"{"type":"system","subtype":"init","session_id":"s","uuid":"u"}"#,
        r#"{"display":"hi","timestamp":1,"project":"/p"}"#,
    ] {
        let [error] = errors(foreign).try_into().unwrap();
        assert!(error.contains("not a session log") || error.contains("history"), "{error}");
    }
}

#[test]
fn results_stand_behind_their_calls() {
    let call = |id| json!({"type": "tool_use", "id": id, "name": "t", "input": {}});
    let result = |id| json!([{"type": "tool_result", "tool_use_id": id, "content": id}]);
    let [read] = read(&[
        user("u", None, json!("go")),
        assistant("a", Some("u"), "m1", json!([call("c1")])),
        assistant("b", Some("a"), "m1", json!([call("c2")])),
        user("r1", Some("a"), result("c1")),
        user("typed", Some("b"), json!("meanwhile")),
        user("r2", Some("typed"), result("c2")),
        user("lone", Some("r2"), result("c9")),
        assistant("z", Some("lone"), "m2", json!([call("c3")])),
    ])
    .try_into()
    .unwrap();
    assert_eq!(texts(&read), ["go", "", "c1", "c2", "meanwhile", "c9", ""]);
    let odd: Vec<_> = read.check().into_iter().map(|finding| (finding.at, finding.kind)).collect();
    let orphan = FindingKind::OrphanResult { id: Some("c9".to_owned()) };
    let open = FindingKind::UnansweredCall { id: "c3".to_owned() };
    assert_eq!(odd, [(Some(5), orphan), (Some(6), open)]);
}

/// Some versions write a response again and again, with more of it each time.
#[test]
fn blocks_that_grow_are_taken_once() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let call = json!({"type": "tool_use", "id": "c", "name": "t", "input": {"q": "雪"}});
    let [read] = read(&[
        user("u", None, json!("go")),
        assistant("a", Some("u"), "m", json!([text("今")])),
        assistant("b", Some("a"), "m", json!([text("今日")])),
        assistant("c", Some("b"), "m", json!([text("今日"), call])),
        assistant("d", Some("c"), "m", json!([call])),
        assistant("e", Some("d"), "m", json!([text("Next")])),
    ])
    .try_into()
    .unwrap();
    assert_eq!(texts(&read), ["go", "今日\nNext"]);
    assert_eq!(read.messages[1].tool_calls().len(), 1);
    assert_eq!(json(&read, 1)["source"]["replaced"][0]["text"], "今");
}

/// Parallel calls make a tree, and a skill's text is a child of the result of its call.
#[test]
fn what_one_chain_cannot_hold_is_added_back() {
    let call = |id| json!([{"type": "tool_use", "id": id, "name": "Skill", "input": {}}]);
    let result = |id| json!([{"type": "tool_result", "tool_use_id": id, "content": id}]);
    let mut skill = user("m1", Some("r1"), json!([{"type": "text", "text": "# Skill 技能"}]));
    skill["isMeta"] = json!(true);
    let read = read(&[
        user("u", None, json!("go")),
        assistant("a", Some("u"), "m1", call("c1")),
        assistant("b", Some("u"), "m1", call("c2")),
        user("r1", Some("a"), result("c1")),
        skill,
        user("r2", Some("b"), result("c2")),
        chained("progress", "p", Some("r2"), json!({"data": {"type": "hook_progress"}})),
        assistant("z", Some("p"), "m2", json!([{"type": "text", "text": "done"}])),
    ]);
    let [read] = read.try_into().unwrap();
    assert_eq!(texts(&read), ["go", "", "c1", "c2", "# Skill 技能", "done"]);
    assert_eq!(read.check(), []);
}

#[test]
fn the_last_prompt_may_name_another_leaf() {
    let lines = [
        user("u", None, json!("go")),
        user("old", Some("u"), json!("first")),
        user("new", Some("u"), json!("second")),
        json!({"type": "last-prompt", "sessionId": "s", "leafUuid": "old"}),
    ];
    let [main, branch] = read(&lines).try_into().unwrap();
    assert_eq!(
        (texts(&main), texts(&branch)),
        (vec!["go".into(), "first".into()], vec!["second".to_owned()])
    );
    // A hint that was written before the end is stale, and one inside the thread is not another leaf.
    for (at, leaf) in [(2, "old"), (3, "u")] {
        let mut lines = lines.to_vec();
        let mut hint = lines.pop().unwrap();
        hint["leafUuid"] = json!(leaf);
        lines.insert(at, hint);
        assert_eq!(texts(&read(&lines)[0]), ["go", "second"], "{leaf}");
    }
}

#[test]
fn cycles_end() {
    let [read] = read(&[
        user("a", None, json!("begin")),
        user("b", Some("c"), json!("b")),
        user("c", Some("b"), json!("c")),
        user("d", Some("d"), json!("myself")),
    ])
    .try_into()
    .unwrap();
    assert_eq!(texts(&read), ["begin", "b", "c", "myself"]);
    assert_eq!(source(&read)["seams"], json!([2, 4]));
}

#[test]
fn what_cannot_be_read_is_kept_with_the_reason() {
    let call = json!([{"type": "tool_use", "name": "t", "input": {}}]);
    let result = json!([{"type": "tool_result", "tool_use_id": "c", "content": 7}]);
    let [read] = read(&[
        user("u", None, json!("go")),
        user("v", Some("u"), json!(7)),
        chained("user", "w", Some("v"), json!({"message": null})),
        assistant("x", Some("w"), "m", call),
        user("y", Some("x"), result),
        json!([1, "no object"]),
        user("z", Some("y"), json!("还在")),
    ])
    .try_into()
    .unwrap();
    assert_eq!(texts(&read), ["go", "还在"], "the chain goes on");
    let kept = source(&read);
    let why = |line: &str| kept["unread_lines"][line].as_str().unwrap().to_owned();
    assert!(why("2").contains("content is 7"), "{kept}");
    assert!(why("3").contains("no \"message\""), "{kept}");
    assert!(why("4").contains("no \"id\""), "{kept}");
    assert!(why("5").contains("\"c\""), "{kept}");
    assert_eq!(kept["counts"], json!({"user": 3, "assistant": 1, "no object": 1}));
}

/// Blocks of Anthropic's API are written as they were read.
#[test]
fn a_session_is_a_valid_request() {
    let [session] = fixture("claude-code/session.jsonl").try_into().unwrap();
    let body = anthropic::body(&session.messages, &[], &Default::default());
    assert!(body.contains(r#""signature":"c2ln==""#), "{body}");
    assert!(!body.contains("toolUseResult"), "side data is not sent");
}

/// Lines of which every parent, scope, response and call is drawn at random.
fn any_lines() -> impl Strategy<Value = Vec<Value>> {
    let line = (0..9usize, 0..30usize, 0..30usize, 0..4usize, 0..6usize, any::<bool>());
    prop::collection::vec(line, 1..40).prop_map(|lines| {
        let lines = lines.into_iter().enumerate();
        let mut all: Vec<_> = lines
            .map(|(at, (kind, parent, uuid, agent, id, meta))| {
                let uuid = if uuid == 7 { "n3".to_owned() } else { format!("n{at}") };
                let parent = (parent != 0).then(|| format!("n{parent}"));
                let parent = parent.as_deref();
                let mut line = match kind {
                    0 | 1 => user(&uuid, parent, json!(format!("文 {at}"))),
                    2 | 3 => {
                        let call = json!({"type": "tool_use", "id": format!("c{at}"), "name": "t", "input": {"a": "b"}});
                        let text = json!({"type": "text", "text": format!("{at}")});
                        let content = match (meta, kind) {
                            (true, _) => json!([call]),
                            (_, 2) => json!([text]),
                            _ => json!(format!("plain {at}")),
                        };
                        let mut line = assistant(&uuid, parent, &format!("m{id}"), content);
                        line["message"]["usage"] = json!({"output_tokens": agent, "tier": "t"});
                        line["message"]["stop_reason"] = json!(["end", "tool"].get(agent));
                        line
                    }
                    4 | 5 => {
                        let result = json!({"type": "tool_result", "tool_use_id": format!("c{}", at / 2), "content": "r"});
                        user(&uuid, parent, json!([result]))
                    }
                    6 => chained("system", &uuid, None, json!({
                        "subtype": "compact_boundary", "logicalParentUuid": parent,
                    })),
                    7 => chained("progress", &uuid, parent, json!({"data": {}})),
                    _ => json!({"type": "mode", "sessionId": "s", "leafUuid": parent}),
                };
                if agent > 1 && kind < 8 {
                    line["isSidechain"] = json!(true);
                    if agent > 2 {
                        line["agentId"] = json!(format!("g{}", id % 2));
                    }
                }
                if meta && kind < 2 {
                    line["isMeta"] = json!(true);
                }
                if id == 5 && kind == 1 {
                    line["isCompactSummary"] = json!(true);
                }
                line
            })
            .collect();
        all.push(user("end", Some("n0"), json!("end")));
        all
    })
}

/// The lines that conversations account for.
fn lines_of(conversations: &[Conversation]) -> Vec<u64> {
    let mut lines = Vec::new();
    let number = |value: &Value| value["line"].as_u64().unwrap();
    for conversation in conversations {
        let kept = source(conversation);
        lines.extend(kept["records"].as_array().into_iter().flatten().map(number));
        lines.extend(kept["further_lines"].as_array().into_iter().flatten().map(number));
        lines.extend(
            kept["repeated_lines"].as_array().into_iter().flatten().map(|l| l.as_u64().unwrap()),
        );
        let mut said = BTreeSet::new();
        for message in &conversation.messages {
            let fields = message.fields();
            let source = fields.iter().find(|(key, _)| key == "source").unwrap().1.get();
            // Half a surrogate pair is not JSON to this reader.
            let source: Value = serde_json::from_str(&source.replace(r"\ud83d", "?")).unwrap();
            said.insert(number(&source));
        }
        lines.extend(said);
    }
    lines.sort_unstable();
    lines
}

#[test]
fn every_line_of_a_fixture_is_somewhere() {
    for (name, lines) in [
        ("session", 24),
        ("branches", 9),
        ("side-chains", 12),
        ("agent", 2),
        ("compaction", 6),
        ("continued", 3),
    ] {
        let read = fixture(&format!("claude-code/{name}.jsonl"));
        assert_eq!(lines_of(&read), (1..=lines).collect::<Vec<_>>(), "{name}");
    }
}

proptest! {
    /// Whatever the lines say about each other, reading ends, each line is in exactly one place
    /// with everything that it says, and the same lines give the same conversations.
    #[test]
    fn every_line_is_in_one_place(mut lines in any_lines()) {
        let mut marks = Vec::new();
        lines.iter_mut().for_each(|line| mark(line, &mut marks));
        let conversations = read(&lines);
        prop_assert_eq!(lines_of(&conversations), (1..=lines.len() as u64).collect::<Vec<_>>());
        prop_assert_eq!(&read(&lines), &conversations);
        let ids: BTreeSet<_> = conversations.iter().map(|c| c.id.clone()).collect();
        prop_assert_eq!(ids.len(), conversations.len());
        all_there(&marks, &conversations);
    }
}

/// Chains are as long as sessions; no walk may use up the stack, or take quadratic time.
#[test]
fn long_chains_and_many_branches_are_read() {
    let count = 60_000;
    let mut lines = vec![user("n0", None, json!("begin"))];
    for at in 1..count {
        // Every third line is a branch that nobody follows, and some parents are missing.
        let parent = match at % 3 {
            _ if at % 1000 == 0 => format!("lost{at}"),
            0 => format!("n{}", at - 2),
            1 if at > 3 => format!("n{}", at - 2),
            _ => format!("n{}", at - 1),
        };
        lines.push(user(&format!("n{at}"), Some(&parent), json!("文")));
    }
    let text: Vec<_> = lines.iter().map(Value::to_string).collect();
    let read: Vec<_> =
        read_bytes(text.join("\n").as_bytes()).unwrap().map(Result::unwrap).collect();
    let messages: usize = read.iter().map(|conversation| conversation.messages.len()).sum();
    assert_eq!(messages, count);
    assert!(read[0].messages.len() > count / 4, "{}", read[0].messages.len());
}
