//! Readers of conversations.

use foldback_transcript::{
    Conversation, Conversations, Error, Growing, Grown, Limits, MessageLines, read_bytes,
};
use std::fs;

const FIXTURES: [(&str, &[u8]); 17] = {
    macro_rules! fixture {
        ($path:literal) => {
            ($path, include_bytes!(concat!("../../crates/transcript/tests/fixtures/", $path)))
        };
    }
    [
        fixture!("anthropic/messages.json"),
        fixture!("anthropic/pairs.jsonl"),
        fixture!("anthropic/request.json"),
        fixture!("claude-code/agent.jsonl"),
        fixture!("claude-code/branches.jsonl"),
        fixture!("claude-code/compaction.jsonl"),
        fixture!("claude-code/continued.jsonl"),
        fixture!("claude-code/session.jsonl"),
        fixture!("claude-code/side-chains.jsonl"),
        fixture!("codex/bare.jsonl"),
        fixture!("codex/events.jsonl"),
        fixture!("codex/first.json"),
        fixture!("codex/rollbacks.jsonl"),
        fixture!("codex/session.jsonl"),
        fixture!("langchain/chunks.json"),
        fixture!("langchain/dict.json"),
        fixture!("langchain/dumps.jsonl"),
    ]
};

const LINES: &str = r#"{"id": "a", "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "数 caf\u00e9", "ts": 1700000000000}], "x": 1.50}
{"id": "b", "messages": [{"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:,"}}]}, {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{\"path\": \"a.txt\"}"}}]}, {"role": "tool", "tool_call_id": "c1", "content": "7001"}]}
"#;

const OPENCODE: &str = r#"{"info": {"id": "ses_1", "directory": "/work", "title": "第一", "parentID": "ses_0"},
 "messages": [
  {"info": {"id": "msg_1", "role": "user", "time": {"created": 1764000000000}, "agent": "build"}, "parts": [{"id": "p1", "type": "text", "text": "Which port?\n哪个"}]},
  {"info": {"id": "msg_2", "role": "assistant", "time": {"created": 1764000001000, "completed": 1764000002000}, "modelID": "m", "cost": 0.5}, "parts": [
   {"id": "p2", "type": "step-start"}, {"id": "p3", "type": "reasoning", "text": "I should look."},
   {"id": "p5", "type": "tool", "callID": "c1", "tool": "read", "state": {"status": "completed", "input": {"filePath": "a.txt"}, "output": "7001", "time": {"compacted": 9}}},
   {"id": "p7", "type": "step-finish", "tokens": {"input": 5, "output": 7, "reasoning": 1, "cache": {"read": 100, "write": 20}}}]},
  {"info": {"id": "msg_3", "role": "user"}, "parts": [{"id": "pb", "type": "compaction", "auto": true}]}]}"#;

fn of(folder: &str) -> Vec<Vec<u8>> {
    let here = FIXTURES.iter().filter(|(path, _)| path.starts_with(folder));
    here.map(|(_, bytes)| bytes.to_vec()).collect()
}

/// Request bodies and logs of Anthropic's API.
pub fn anthropic() -> Vec<Vec<u8>> {
    of("anthropic")
}

/// Session logs of Claude Code.
pub fn claude_code() -> Vec<Vec<u8>> {
    of("claude-code")
}

/// Session logs of Codex, and items of the Responses API.
pub fn codex() -> Vec<Vec<u8>> {
    of("codex")
}

/// Messages as LangChain writes them.
pub fn langchain() -> Vec<Vec<u8>> {
    of("langchain")
}

/// A session of OpenCode.
pub fn opencode() -> Vec<Vec<u8>> {
    vec![OPENCODE.into()]
}

/// Lines of our own.
pub fn foldback_lines() -> Vec<Vec<u8>> {
    vec![LINES.into()]
}

/// An array of messages, and a body.
pub fn chat() -> Vec<Vec<u8>> {
    let messages = LINES.lines().filter_map(|line| Some(line.split_once("\"messages\": ")?.1));
    let lists = messages.filter_map(|rest| Some(&rest[..=rest.rfind(']')?]));
    lists
        .flat_map(|list| {
            [list.into(), format!("{{\"model\": \"m\", \"messages\": {list}}}").into()]
        })
        .collect()
}

/// One message a line.
pub fn messages() -> Vec<Vec<u8>> {
    let lines = "{\"role\": \"user\", \"content\": \"数\"}\n\n{\"role\":\"assistant\",\"content\":\"7001\",\"ts\":1}\r\n";
    vec![lines.into()]
}

/// Frames of zstd: lines of our own, a log, two frames behind each other. (Written at zstd's level 3.)
pub fn packed() -> Vec<Vec<u8>> {
    // Raw blocks, so that what is changed in one still unpacks.
    let frame = |content: &[u8]| {
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58];
        let parts: Vec<&[u8]> = content.chunks(64 << 10).collect();
        for (n, part) in parts.iter().enumerate() {
            let head = (part.len() as u32) << 3 | u32::from(n + 1 == parts.len());
            frame.extend(&head.to_le_bytes()[..3]);
            frame.extend(*part);
        }
        frame
    };
    let log = of("claude-code/session");
    vec![frame(LINES.as_bytes()), frame(&log[0]), [frame(b"{\"id\""), frame(b": 1}")].concat()]
}

/// Reads any bytes as an import does.
pub fn whole(bytes: &[u8]) {
    let Ok(conversations) = Conversations::from_reader("fuzz", bytes, Limits::default()) else {
        return;
    };
    for conversation in conversations.take(64) {
        match conversation {
            Ok(conversation) => is_kept(&conversation),
            Err(error) => drop(error.to_string()),
        }
    }
}

/// What was read can be checked, written as a line of our own, and read again.
fn is_kept(conversation: &Conversation) {
    drop(conversation.check());
    assert!(conversation.settled() <= conversation.messages.len());
    drop(conversation.to_original());
    let line = conversation.to_json_line();
    let again = read_bytes(line.as_bytes()).map(|mut again| again.next());
    let again = match again {
        Ok(Some(Ok(again))) => again,
        // A line has a level or two more than what it was made of.
        Ok(Some(Err(Error::TooDeep { .. }))) => return,
        Ok(Some(Err(error))) | Err(error) => panic!("{error}: {line}"),
        Ok(None) => panic!("nothing was read of {line}"),
    };
    // A line has spaces where there were line breaks between the tokens of JSON.
    let json = |conversation: &Conversation| -> Vec<String> {
        let messages = conversation.messages.iter();
        messages.map(|message| message.json().replace(['\n', '\r'], " ")).collect()
    };
    assert_eq!(json(&again), json(conversation));
}

/// Reads any bytes as a file that grows: a part of it, then all, which comes to the same.
pub fn growing(bytes: &[u8]) {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let mut growing = Growing::new(file.path(), Limits::default());
    let mut taken = |bytes: &[u8]| {
        fs::write(file.path(), bytes).expect("the file takes it");
        let mut count = 0;
        let read = growing.read(|grown| -> Result<(), Error> {
            match grown {
                Grown::Conversation(conversation, _) => count += conversation.messages.len(),
                Grown::Messages(messages) => count += messages.len(),
                Grown::Damage(error) => drop(error.to_string()),
            }
            Ok(())
        });
        drop(read.map_err(|error| error.to_string()));
        count
    };
    for part in [bytes.len() / 3, bytes.len() / 2, bytes.len()] {
        taken(&bytes[..part]);
    }
}

/// Reads any bytes as `foldback record` does.
pub fn message_lines(bytes: &[u8]) {
    let Ok(lines) = MessageLines::from_reader("fuzz", bytes, Limits::default()) else { return };
    for line in lines.take(256) {
        drop(line.map_err(|error| error.to_string()));
    }
}
