//! RC6: a file is read as it grows.

use foldback_core::Message;
use foldback_transcript::{Error, Growing, Grown, Limits, read_bytes};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A file that is written piece by piece, and what was returned of its first conversation.
struct Log {
    _dir: TempDir,
    path: PathBuf,
    growing: Growing,
    given: Vec<Message>,
    /// How often conversations were returned from the beginning.
    whole: usize,
    damage: Vec<Error>,
}

impl Log {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.jsonl");
        std::fs::write(&path, "").unwrap();
        let growing = Growing::new(&path, Limits::default());
        Self { _dir: dir, path, growing, given: Vec::new(), whole: 0, damage: Vec::new() }
    }

    fn append(&mut self, piece: &[u8]) {
        std::fs::File::options().append(true).open(&self.path).unwrap().write_all(piece).unwrap();
        self.read();
    }

    /// Reads what was added. Everything returned before stays the beginning of what is returned.
    fn read(&mut self) {
        let (mut is_first, given, whole) = (true, &mut self.given, &mut self.whole);
        let damage = &mut self.damage;
        let read: Result<(), Error> = self.growing.read(|grown| {
            match grown {
                Grown::Conversation(conversation, _) if is_first => {
                    is_first = false;
                    *whole += 1;
                    let settled = conversation.settled();
                    assert_eq!(conversation.messages[..settled.min(given.len())], given[..]);
                    *given = conversation.messages[..settled].to_vec();
                }
                Grown::Conversation(..) => {}
                Grown::Messages(messages) => given.extend(messages),
                Grown::Damage(error) => damage.push(error),
            }
            Ok(())
        });
        read.unwrap();
    }
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)).unwrap()
}

/// However a log is cut into pieces while it is written, the messages of the whole are returned, each once.
#[track_caller]
fn check(text: &[u8], piece: usize) -> Log {
    let mut log = Log::new();
    text.chunks(piece).for_each(|piece| log.append(piece));
    let whole = read_bytes(text).unwrap().find_map(Result::ok).unwrap();
    assert_eq!(log.given, whole.messages[..whole.settled()], "in pieces of {piece}");
    log
}

#[test]
fn rc6_logs_are_read_in_pieces_of_any_size() {
    for name in [
        "claude-code/compaction.jsonl",
        "codex/session.jsonl",
        "codex/events.jsonl",
        "codex/bare.jsonl",
        "langchain/dumps.jsonl",
    ] {
        for piece in [17_usize, 61, 1_024, usize::MAX] {
            check(&fixture(name), piece);
        }
    }
}

/// A session of Claude Code: prompts, and for each a few rounds of tools.
fn claude_code(prompts: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut push = |kind: &str, message: String, more: &str| {
        let n = lines.len();
        let parent = n.checked_sub(1).map_or("null".to_owned(), |n| format!("\"u{n}\""));
        lines.push(format!(
            r#"{{"parentUuid":{parent},"isSidechain":false,"cwd":"/工","sessionId":"s","type":"{kind}","uuid":"u{n}","timestamp":"2026-11-01T10:00:00.{:03}Z"{more},"message":{message}}}"#,
            n % 1000
        ));
    };
    for p in 0..prompts {
        push(
            "user",
            format!(r#"{{"role":"user","content":"第{p}个问题"}}"#),
            ",\"gitBranch\":\"main\"",
        );
        for r in 0..6 {
            let id = format!("msg_{p}_{r}");
            push(
                "assistant",
                format!(
                    r#"{{"id":"{id}","role":"assistant","model":"m","content":[{{"type":"text","text":"我看看 {r}"}}],"stop_reason":null,"usage":{{"input_tokens":5,"output_tokens":1}}}}"#
                ),
                "",
            );
            push(
                "assistant",
                format!(
                    r#"{{"id":"{id}","role":"assistant","model":"m","content":[{{"type":"tool_use","id":"c_{p}_{r}","name":"Read","input":{{"file":"{r}"}}}}],"stop_reason":"tool_use","usage":{{"input_tokens":5,"output_tokens":9}}}}"#
                ),
                "",
            );
            push(
                "user",
                format!(
                    r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"c_{p}_{r}","content":"结果 {p} {r}"}}]}}"#
                ),
                ",\"toolUseResult\":{\"ok\":true}",
            );
        }
        push(
            "assistant",
            format!(
                r#"{{"id":"end_{p}","role":"assistant","model":"m","content":[{{"type":"text","text":"好。"}}],"stop_reason":"end_turn","usage":{{"input_tokens":5,"output_tokens":9}}}}"#
            ),
            "",
        );
    }
    lines
}

/// A session of Codex with turns of many calls.
fn codex(turns: usize) -> Vec<String> {
    let mut lines = vec![r#"{"timestamp":"2026-11-01T10:00:00.000Z","type":"session_meta","payload":{"id":"t","cwd":"/工","originator":"codex_exec"}}"#.to_owned()];
    let mut push = |kind: &str, payload: String| {
        let at = lines.len() % 1000;
        lines.push(format!(
            r#"{{"timestamp":"2026-11-01T10:00:01.{at:03}Z","type":"{kind}","payload":{payload}}}"#
        ));
    };
    for t in 0..turns {
        push("event_msg", format!(r#"{{"type":"task_started","turn_id":"{t}"}}"#));
        push("turn_context", format!(r#"{{"model":"gpt-{t}","effort":"high","cwd":"/工"}}"#));
        push(
            "response_item",
            format!(
                r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":"第{t}个"}}]}}"#
            ),
        );
        for c in 0..20 {
            push(
                "response_item",
                format!(r#"{{"type":"reasoning","summary":[],"encrypted_content":"x{c}"}}"#),
            );
            push(
                "response_item",
                format!(
                    r#"{{"type":"function_call","name":"shell","arguments":"{{}}","call_id":"c_{t}_{c}"}}"#
                ),
            );
            push(
                "event_msg",
                format!(
                    r#"{{"type":"token_count","info":{{"total_token_usage":{{"input_tokens":{c},"output_tokens":{t}}},"last_token_usage":{{"input_tokens":{c},"output_tokens":3}}}}}}"#
                ),
            );
            push(
                "response_item",
                format!(
                    r#"{{"type":"function_call_output","call_id":"c_{t}_{c}","output":"出 {t} {c}"}}"#
                ),
            );
        }
        push(
            "response_item",
            format!(
                r#"{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"完 {t}"}}]}}"#
            ),
        );
        push("event_msg", format!(r#"{{"type":"task_complete","turn_id":"{t}"}}"#));
    }
    lines
}

/// A long log is not read again and again: only when it has doubled, and a few times while it is short.
#[test]
fn rc6_what_is_read_is_what_is_new() {
    for (name, lines) in [("claude", claude_code(120)), ("codex", codex(25))] {
        let mut log = Log::new();
        for line in &lines {
            let (one, other) = line.as_bytes().split_at(line.len() / 2);
            log.append(one);
            log.append(&[other, b"\n"].concat());
        }
        let text = lines.join("\n") + "\n";
        let whole = read_bytes(text.as_bytes()).unwrap().next().unwrap().unwrap();
        assert_eq!(log.given, whole.messages[..whole.settled()], "{name}");
        assert!(whole.messages.len() > 1_000, "{name}: {}", whole.messages.len());
        assert!(log.whole <= 4, "{name}: read {} times for {} lines", log.whole, lines.len());
    }
}

#[test]
fn rc6_a_session_that_goes_back_is_read_from_its_beginning() {
    let mut lines = claude_code(20);
    let mut log = Log::new();
    let back =
        lines[40].replace("\"u40\"", "\"back\"").replace("结果", "别的").replace("msg_", "other_");
    lines.iter().for_each(|line| log.append(format!("{line}\n").as_bytes()));
    let before = (log.whole, log.given.len());
    // The new line follows one in the middle, so the active thread is a shorter one.
    log.given.truncate(20);
    lines.push(back);
    log.append(format!("{}\n", lines.last().unwrap()).as_bytes());
    assert_eq!(log.whole, before.0 + 1);
    let text = lines.join("\n");
    let whole = read_bytes(text.as_bytes()).unwrap().next().unwrap().unwrap();
    assert_eq!(log.given, whole.messages[..whole.settled()]);
    assert!(log.given.len() < before.1);
}

#[test]
fn rc6_a_file_that_is_not_what_it_was_is_read_from_its_beginning() {
    let lines = claude_code(12);
    let text = lines.join("\n") + "\n";
    let mut log = Log::new();
    log.append(text.as_bytes());
    log.append(b"");
    let count = log.whole;
    // Shorter; about as long; longer.
    for n in [3, 12, 40] {
        let other: String =
            claude_code(n).join("\n").replace("个问题", &format!("个答案{n}")) + "\n";
        std::fs::write(&log.path, &other).unwrap();
        log.given.clear();
        log.read();
        let whole = read_bytes(other.as_bytes()).unwrap().next().unwrap().unwrap();
        assert_eq!(log.given, whole.messages[..whole.settled()], "{n}");
    }
    assert_eq!(log.whole, count + 3);
}

#[test]
fn rc6_lines_of_conversations_are_read_as_they_come() {
    let line = |n: usize| {
        format!("{{\"id\":\"对{n}\",\"messages\":[{{\"role\":\"user\",\"content\":\"第{n}\"}}]}}\n")
    };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("all.jsonl");
    let mut growing = Growing::new(&path, Limits::default());
    let (mut text, mut ids) = (Vec::new(), Vec::new());
    for piece in (0..9).map(line).collect::<String>().as_bytes().chunks(5) {
        text.extend_from_slice(piece);
        std::fs::write(&path, &text).unwrap();
        let read: Result<(), Error> = growing.read(|grown| {
            match grown {
                Grown::Conversation(conversation, line) => {
                    ids.push((conversation.id.unwrap(), line));
                }
                Grown::Messages(_) => panic!("lines of their own are no log"),
                Grown::Damage(error) => panic!("{error}"),
            }
            Ok(())
        });
        read.unwrap();
    }
    // A line that is whole before its line break is there may come again with it.
    ids.dedup();
    assert_eq!(ids, (0..9).map(|n| (format!("对{n}"), n + 1)).collect::<Vec<_>>());
}

#[test]
fn rc6_a_damaged_line_is_told_and_what_follows_is_read() {
    let mut lines = claude_code(30);
    lines.insert(100, "{\"type\":\"user\",".to_owned());
    let mut log = Log::new();
    lines.iter().for_each(|line| log.append(format!("{line}\n").as_bytes()));
    assert!(!log.damage.is_empty());
    let text = lines.join("\n");
    let whole = read_bytes(text.as_bytes()).unwrap().find_map(Result::ok).unwrap();
    assert_eq!(log.given, whole.messages[..whole.settled()]);
}
