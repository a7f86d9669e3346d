//! What is stored in place of secrets.

use super::FIRST_MESSAGE;
use super::sealed::seal;
use crate::core::{ItemState, Message, SeqNo, TodoId, TodoItem, TodoList, ToolCall, ToolCallId};
use crate::{Close, ErrorKind, IndexConfig, Memory, NewSent, Options, Redaction, RedactionKey};
use foldback_kv::{Batch, Key, Space};
use foldback_redaction::has_marks;
use foldback_transcript::read_bytes;
use std::fs;
use std::path::Path;

const OWNERS: &str = "7f3c9a1e5b8d2046e1c7a9f05d3b6812907e4f2ac8d15b36e09f7a4c2d8b1e65";
const OTHERS: &str = "0f3c9a1e5b8d2046e1c7a9f05d3b6812907e4f2ac8d15b36e09f7a4c2d8b1e65";

/// Made up.
const AWS: &str = "AKIAZ7Q2MXK4N5P6R3TB";
const GITHUB: &str = "ghp_0aZ9bY8cX7dW6eV5fU4gT3hS2iR1jQ0kPlOm";
const PASSWORD: &str = "t4Zq9LmXw2";
const CHINESE: &str = "n0q8ChSWiGOCB6";
/// A line from the middle of a key.
const PEM_LINE: &str = "gUb1BxIqRh+cDqbjYM0GP50EXLufyCp7qzXSQZECEoRfiLw2dw0c4pl5Og8BtThQ";
const SECRETS: [&str; 5] = [AWS, GITHUB, PASSWORD, CHINESE, PEM_LINE];

fn key(text: &str) -> RedactionKey {
    text.parse().unwrap()
}

fn options(owners: Option<&str>) -> Options {
    let redaction = Redaction::default().with_key(owners.map(key));
    let index = IndexConfig::default().with_index_after_blocks(1).with_index_after_passages(1);
    Options::default().with_redaction(redaction).with_index(index)
}

fn todo(name: &str) -> TodoId {
    TodoId::new(name).unwrap()
}

fn pem() -> String {
    format!(
        "-----BEGIN RSA PRIVATE KEY-----\n{PEM_LINE}\n{PEM_LINE}\n-----END RSA PRIVATE KEY-----"
    )
}

/// A conversation with every secret: in words, in Chinese, in escaped arguments of a call, in a large result.
fn conversation() -> Vec<Message> {
    let arguments = serde_json::json!({
        "path": ".env",
        "text": serde_json::json!({ "aws": AWS, "key": pem() }).to_string(),
    });
    let call = ToolCall::new("c1", "write", &arguments.to_string());
    let large = format!(
        "{}\nDATABASE_URL=postgres://app:{PASSWORD}@db/main\n{}\n{}\n",
        row(),
        row(),
        pem()
    );
    vec![
        Message::user(&format!("Deploy with {AWS}, please. 数据库的密码是：{CHINESE}，请不要外传。")),
        Message::calls("I write it down.", vec![call]),
        Message::tool_result(&ToolCallId::new("c1"), &large),
        Message::from_json(&format!(
            "{{\"role\":\"assistant\",\"content\":[{{\"type\":\"text\",\"text\":\"pushed with \\u0067{}\"}}],\"n\":1.0}}",
            &GITHUB[1..]
        ))
        .unwrap(),
        Message::user(&format!("And {AWS} once more.")),
    ]
}

fn row() -> String {
    "2026-11-26 INFO the worker renewed its lease\n".repeat(90)
}

/// Every file below a folder that holds one of the secrets.
fn leaks(dir: &Path) -> Vec<String> {
    let mut leaks = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            leaks.extend(self::leaks(&path));
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        for secret in SECRETS {
            // Terms of an index are in small letters, and in pieces.
            for form in [secret.to_owned(), secret.to_lowercase(), secret[4..].to_owned()] {
                if bytes.windows(form.len()).any(|window| window == form.as_bytes()) {
                    leaks.push(format!("{}: {form}", path.display()));
                }
            }
        }
    }
    leaks
}

fn has_secrets(text: &str) -> bool {
    SECRETS.iter().any(|secret| text.contains(secret))
}

#[test]
fn s8_no_file_of_a_store_holds_what_was_redacted() {
    for owners in [None, Some(OWNERS)] {
        let dir = tempfile::tempdir().unwrap();
        let memory = Memory::open(dir.path(), options(owners)).unwrap();
        let mut session = memory.session(&todo("one")).unwrap();
        for message in conversation() {
            session.record(message).unwrap();
        }
        session.close(Close::End).unwrap();
        memory.session(&todo("all")).unwrap().record_all(conversation()).unwrap();
        let note = serde_json::json!({ "text": format!("the token is {GITHUB}") }).to_string();
        memory.call_tool(&todo("note"), "record", &note).unwrap();
        let messages: Vec<_> = conversation().iter().map(|one| one.json().to_owned()).collect();
        let line = format!(
            "{{\"id\":\"x\",\"system\":\"use {GITHUB}\",\"messages\":[{}],\"env\":{{\"password\":\"{PASSWORD}\"}}}}",
            messages.join(",")
        );
        let came = read_bytes(line.as_bytes()).unwrap().next().unwrap().unwrap();
        memory.conversations().import(&todo("import"), &came).unwrap();
        let sent = NewSent {
            parent: None,
            tag: vec![1],
            json: messages[0].clone(),
            messages: vec![conversation()[0].clone()],
        };
        memory.session(&todo("sent")).unwrap().record_sent(SeqNo(0), 0, &[sent], &[]).unwrap();
        memory.park(&todo("sent"), &[7; 32], &messages[3]).unwrap();
        let item = TodoItem {
            id: todo("item"),
            title: format!("rotate {AWS}"),
            state: ItemState::Pending,
            depends_on: Vec::new(),
            references: Vec::new(),
            result: Some(format!("password={CHINESE}")),
        };
        let list = TodoList::new(vec![item]).unwrap();
        memory.session(&todo("list")).unwrap().set_todo_list(&list).unwrap();
        memory.maintenance().index().unwrap();
        assert_eq!(leaks(dir.path()), Vec::<String>::new());

        // What is packed in the files is read by the ways out of the store.
        for name in ["one", "all", "note", "import", "sent"] {
            let held = memory.conversations().export(&todo(name)).unwrap().to_json_line();
            assert!(!has_secrets(&held) && has_marks(&held), "{name}: {held}");
        }
        assert!(!has_secrets(&memory.sent(&todo("sent"), 0, 9).unwrap()[0].json));
        // What is parked has to come back byte for byte, and does as long as the memory is open.
        assert_eq!(memory.parked(&todo("sent"), &[[7; 32]]).unwrap(), [Some(messages[3].clone())]);
        assert!(memory.maintenance().doctor().unwrap().is_clean());
        // The marks in place of secrets are found.
        let found =
            memory.recall(&todo("one"), "search_block", r#"{"query": "redacted aws-access-key"}"#);
        assert!(found.unwrap().text.contains("[redacted aws-access-key 1]"));
        drop((session, memory));
        assert_eq!(leaks(dir.path()), Vec::<String>::new());
        let memory = Memory::open(dir.path(), options(owners)).unwrap();
        assert_eq!(memory.parked(&todo("sent"), &[[7; 32]]).unwrap(), [None]);
    }
}

#[test]
fn s8_the_owner_reads_it_byte_for_byte_again() {
    let dir = tempfile::tempdir().unwrap();
    let line: Vec<_> = conversation().iter().map(|one| one.json().to_owned()).collect();
    let line =
        format!("{{\"id\":\"t\",\"token\":\"{GITHUB}\",\"messages\":[{}]}}", line.join(", "));
    let came = read_bytes(line.as_bytes()).unwrap().next().unwrap().unwrap();
    {
        let memory = Memory::open(dir.path(), options(Some(OWNERS))).unwrap();
        memory.conversations().import(&todo("t"), &came).unwrap();
        assert_ne!(memory.conversations().export(&todo("t")).unwrap(), came);
        assert_eq!(memory.conversations().export_revealed(&todo("t")).unwrap(), came);
    }
    let reveal = |options: Options| {
        Memory::open(dir.path(), options).unwrap().conversations().export_revealed(&todo("t"))
    };
    assert_eq!(reveal(options(Some(OWNERS))).unwrap(), came);
    assert_eq!(reveal(options(Some(OTHERS))).unwrap_err().kind(), ErrorKind::NotPermitted);
    assert_eq!(reveal(options(None)).unwrap_err().kind(), ErrorKind::InvalidInput);
}

/// A second key is refused where it would seal, and what it has sealed already keeps its marks when the rest is revealed.
#[test]
fn s8_a_todo_is_sealed_with_one_key() {
    let dir = tempfile::tempdir().unwrap();
    let open = |owners| Memory::open(dir.path(), options(owners)).unwrap();
    let first = Message::user(&format!("第一把钥匙：{AWS}"));
    let second = Message::user(&format!("第二把钥匙：{GITHUB}"));
    let memory = open(Some(OWNERS));
    memory.session(&todo("t")).unwrap().record(first.clone()).unwrap();
    drop(memory);
    let memory = open(Some(OTHERS));
    let mut session = memory.session(&todo("t")).unwrap();
    let refused = session.record(second.clone()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotPermitted);
    assert!(refused.to_string().contains("record into another todo"), "{refused}");
    // What holds no secret needs no key, and another todo may have another key.
    session.record(Message::assistant("好的。")).unwrap();
    memory.session(&todo("other")).unwrap().record(second.clone()).unwrap();
    drop((session, memory));

    let memory = open(Some(OWNERS));
    memory.session(&todo("t")).unwrap().record(second.clone()).unwrap();
    let whole = memory.conversations().export_revealed(&todo("t")).unwrap().messages;
    assert_eq!(whole, [first.clone(), Message::assistant("好的。"), second]);
    // A store in which an earlier program has sealed with both keys.
    let no = memory.find(&todo("t")).unwrap().no();
    let bytes = seal(&key(OTHERS), &todo("t"), FIRST_MESSAGE + 2, &[]).unwrap();
    let put = vec![(Key { space: Space::Plan, todo: no, n: FIRST_MESSAGE + 2 }, bytes)];
    memory.shared.kv.commit(Batch { put, ..Batch::default() }).unwrap();
    let (part, sealed) = memory.conversations().export_revealed_in_part(&todo("t")).unwrap();
    assert_eq!(part.messages[0], first);
    assert!(part.messages[2].text().contains("[redacted github-token"), "{:?}", part.messages[2]);
    let [error] = &sealed[..] else { panic!("{sealed:?}") };
    assert!(error.to_string().contains("message 2 of todo t"), "{error}");
    let refused = memory.conversations().export_revealed(&todo("t")).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotPermitted);
}

/// What is sealed of one message does not open for another message or another todo.
#[test]
fn s8_what_is_sealed_is_bound_to_its_place() {
    let memory = Memory::in_memory(options(Some(OWNERS))).unwrap();
    for name in ["a", "b"] {
        let mut session = memory.session(&todo(name)).unwrap();
        session.record(Message::user(&format!("{name}: {AWS}"))).unwrap();
        session.record(Message::user(&format!("{name}: {GITHUB}"))).unwrap();
    }
    let kv = &memory.shared.kv;
    let at =
        |name: &str, n| Key { space: Space::Plan, todo: memory.find(&todo(name)).unwrap().no(), n };
    let sealed = kv.get(at("a", 16)).unwrap().unwrap();
    for place in [at("a", 17), at("b", 16)] {
        let before = kv.get(place).unwrap().unwrap();
        let put = |bytes: &[u8]| {
            kv.commit(Batch { put: vec![(place, bytes.to_vec())], ..Batch::default() }).unwrap();
        };
        put(&sealed);
        let name = if place.todo == at("a", 0).todo { "a" } else { "b" };
        let revealed = memory.conversations().export_revealed(&todo(name));
        assert_eq!(revealed.unwrap_err().kind(), ErrorKind::NotPermitted);
        put(&before[..before.len() - 1]);
        assert!(memory.conversations().export_revealed(&todo(name)).is_err());
        put(&before);
    }
    assert!(memory.conversations().export_revealed(&todo("b")).is_ok());
}

#[test]
fn s8_the_same_secret_has_the_same_mark_in_its_todo() {
    let texts = |owners: Option<&str>| {
        let dir = tempfile::tempdir().unwrap();
        let mut texts = Vec::new();
        for said in [
            format!("{AWS} and {GITHUB} and password={CHINESE}"),
            format!("{GITHUB} and {AWS} and password={CHINESE}"),
        ] {
            // Each in a process of its own, as it were.
            let memory = Memory::open(dir.path(), options(owners)).unwrap();
            let mut session = memory.session(&todo("t")).unwrap();
            let n = session.record(Message::user(&said)).unwrap().seq.0;
            texts.push(memory.messages(&todo("t"), n..n + 1).unwrap()[0].text().into_owned());
        }
        texts
    };
    let first = "[redacted aws-access-key 1] and [redacted github-token 2] and password=[redacted password 3]";
    let again = "[redacted github-token 2] and [redacted aws-access-key 1] and password=[redacted password ";
    assert_eq!(texts(Some(OWNERS)), [first.to_owned(), format!("{again}3]")]);
    // Without a key, nothing is stored of a password that a guess could be checked against.
    assert_eq!(texts(None), [first.to_owned(), format!("{again}4]")]);
}

/// An imported conversation is recognised and continues, although it is not stored as it came.
#[test]
fn s8_an_import_goes_on() {
    let memory = Memory::in_memory(options(None)).unwrap();
    let came = |count: usize| {
        let messages: Vec<_> = conversation().iter().map(|one| one.json().to_owned()).collect();
        let line = format!("{{\"messages\":[{}]}}", messages[..count].join(","));
        read_bytes(line.as_bytes()).unwrap().next().unwrap().unwrap()
    };
    let all = memory.conversations();
    assert_eq!(all.continue_import(&todo("t"), &came(3)).unwrap().len(), 3);
    assert_eq!(all.continue_import(&todo("t"), &came(3)).unwrap().len(), 0);
    assert_eq!(all.continue_import(&todo("t"), &came(5)).unwrap().len(), 2);
    let followed =
        |count: usize| all.follow(&todo("f"), &came(count), count, None).unwrap().unwrap().1;
    assert_eq!((followed(4).len(), followed(4).len(), followed(5).len()), (4, 0, 1));
}

/// The error about a conversation that differs from its todo shows how a message begins, without its secrets.
#[test]
fn s8_an_error_about_a_different_message_shows_no_secret() {
    let memory = Memory::in_memory(options(None)).unwrap();
    let came = |text: &str| {
        let line = format!(r#"{{"id":"t","messages":[{{"role":"user","content":"{text}"}}]}}"#);
        read_bytes(line.as_bytes()).unwrap().next().unwrap().unwrap()
    };
    memory.conversations().import(&todo("t"), &came("第一")).unwrap();
    let other = came(&format!("令牌 {GITHUB}"));
    let error = memory.conversations().continue_import(&todo("t"), &other).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("begins with \"令牌 [redacted github-token]\""), "{error}");
}

/// What is sealed of the text around a conversation is of the last import, whatever that replaced.
#[test]
fn s8_what_is_revealed_around_a_conversation_is_of_its_last_import() {
    let dir = tempfile::tempdir().unwrap();
    let came = |messages: usize, token: &str| {
        let said = (0..messages).map(|n| format!("{{\"role\":\"user\",\"content\":\"{n}\"}}"));
        let said = said.collect::<Vec<_>>().join(",");
        let line = format!("{{\"id\":\"t\",\"token\":\"{token}\",\"messages\":[{said}]}}");
        read_bytes(line.as_bytes()).unwrap().next().unwrap().unwrap()
    };
    let (one, other) = (GITHUB, format!("{}AB", &GITHUB[..GITHUB.len() - 2]));
    let import = |owners: Option<&str>, messages: usize, token: &str| {
        let memory = Memory::open(dir.path(), options(owners)).unwrap();
        memory.conversations().continue_import(&todo("t"), &came(messages, token)).unwrap();
        drop(memory);
        let memory = Memory::open(dir.path(), options(Some(OWNERS))).unwrap();
        memory.conversations().export_revealed(&todo("t")).unwrap()
    };
    assert_eq!(import(Some(OWNERS), 1, one), came(1, one));
    // It has grown; another secret is in the same place; both.
    assert_eq!(import(Some(OWNERS), 2, one), came(2, one));
    assert_eq!(import(Some(OWNERS), 2, &other), came(2, &other));
    assert_eq!(import(Some(OWNERS), 3, one), came(3, one));
    // Without a key, or with another one, what is sealed of what is still there stays.
    assert_eq!(import(None, 3, one), came(3, one));
    assert_eq!(import(Some(OTHERS), 3, one), came(3, one));
    // Without a key nothing of the new one is sealed, and nothing of the old one is revealed in its place.
    let revealed = import(None, 4, "none");
    assert_eq!(revealed, came(4, "none"));
    assert_eq!(import(Some(OWNERS), 5, one), came(5, one));
    assert_eq!(import(Some(OWNERS), 6, "none"), came(6, "none"));
}

/// What is sealed of the text around a conversation and what is kept of it are one commit: a process that is killed leaves
/// both or neither.
#[test]
fn s8_an_envelope_and_its_seal_are_one_commit() {
    let memory = Memory::in_memory(options(Some(OWNERS))).unwrap();
    let import = |token: &str| {
        let line = format!(
            r#"{{"id":"t","token":"{token}","messages":[{{"role":"user","content":"0"}}]}}"#
        );
        let came = read_bytes(line.as_bytes()).unwrap().next().unwrap().unwrap();
        let before = memory.shared.kv.changed().unwrap();
        memory.conversations().continue_import(&todo("t"), &came).unwrap();
        assert_eq!(memory.conversations().export_revealed(&todo("t")).unwrap(), came);
        memory.shared.kv.changed().unwrap() - before
    };
    import("none");
    // Its message is there; the text around it changes, with a secret in it and then without.
    assert_eq!(import(GITHUB), 1);
    assert_eq!(import(&format!("{}AB", &GITHUB[..GITHUB.len() - 2])), 1);
    assert_eq!(import("none"), 1);
}

/// A damaged record of the numbers prevents no reading; a new secret is recorded once they are rebuilt.
#[test]
fn s8_damaged_numbers_keep_no_todo_closed() {
    let memory = Memory::in_memory(options(Some(OWNERS))).unwrap();
    let said = |secret: &str| Message::user(&format!("use {secret} from now on"));
    let record = |secret: &str| memory.session(&todo("t"))?.record(said(secret));
    record(AWS).unwrap();
    record(GITHUB).unwrap();
    let forged = Message::user("[redacted jwt 4000000000]");
    memory.session(&todo("t")).unwrap().record(forged).unwrap();
    let numbers = Key { space: Space::Plan, todo: memory.find(&todo("t")).unwrap().no(), n: 2 };
    let put = vec![(numbers, vec![0xc1])];
    memory.shared.kv.commit(Batch { put, ..Batch::default() }).unwrap();

    assert_eq!(memory.messages(&todo("t"), 0..3).unwrap().len(), 3);
    let found = memory.recall(&todo("t"), "search_block", r#"{"query": "redacted github"}"#);
    assert!(found.unwrap().text.contains("github-token 2"));
    let mut session = memory.session(&todo("t")).unwrap();
    session.record(Message::user("nothing to hide")).unwrap();
    assert_eq!(session.record(said("password=Kx7!mQ2zP")).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(session.len(), 4);
    let findings = memory.maintenance().doctor().unwrap().findings;
    assert!(findings.len() == 1 && findings[0].contains("numbers"), "{findings:?}");
    memory.maintenance().repair().unwrap();
    assert!(memory.maintenance().doctor().unwrap().is_clean());
    session.record(said("password=Kx7!mQ2zP")).unwrap();
    let text = memory.messages(&todo("t"), 4..5).unwrap()[0].text().into_owned();
    assert_eq!(text, "use password=[redacted password 3] from now on");
    assert_eq!(
        memory.conversations().export_revealed(&todo("t")).unwrap().messages[4],
        said("password=Kx7!mQ2zP")
    );
}

/// With a damaged record of the numbers, messages without a secret are embedded together as ever.
#[test]
fn s8_damaged_numbers_leave_a_batch_its_vectors() {
    let memory = Memory::in_memory(options(None)).unwrap();
    drop(memory.session(&todo("t")).unwrap());
    let found = memory.find(&todo("t")).unwrap();
    let numbers = Key { space: Space::Plan, todo: found.no(), n: 2 };
    let put = vec![(numbers, vec![0xc1])];
    memory.shared.kv.commit(Batch { put, ..Batch::default() }).unwrap();
    let mut session = memory.session(&todo("t")).unwrap();
    let said = ["Which port does the server use?", "服务器用哪个端口？"].map(Message::user);
    session.record_all(said.to_vec()).unwrap();
    for seq in [SeqNo(0), SeqNo(1)] {
        let held = memory.shared.blocks.vectors(&found, seq).unwrap();
        let held = held.is_some_and(|held| !held.vectors.is_empty());
        assert!(held, "{seq:?} has vectors");
    }
}

/// Without the setting every byte is kept.
#[test]
fn s8_it_is_off_by_default() {
    let memory = Memory::in_memory(Options::default()).unwrap();
    let mut session = memory.session(&todo("t")).unwrap();
    session.record_all(conversation()).unwrap();
    assert_eq!(memory.messages(&todo("t"), 0..5).unwrap(), conversation());
}

#[test]
fn s8_keys_are_32_bytes() {
    assert!(OWNERS.parse::<RedactionKey>().is_ok());
    assert!("fzyaHluNIEbhx6nwXTtoEpB+TyrI0Vs24J96TC2LHmU=".parse::<RedactionKey>().is_ok());
    for wrong in ["", "secret", &OWNERS[1..], "fzyaHluNIEbhx6nwXTtoEpB"] {
        assert_eq!(wrong.parse::<RedactionKey>().unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    assert!(!format!("{:?}", key(OWNERS)).contains("7f3c"));
}
