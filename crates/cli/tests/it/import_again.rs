//! Imports of conversations that were imported before, and have changed since.

use crate::input::{pair, said};
use crate::shell::{Shell, line};
use foldback_core::{Message, TodoId};
use serde_json::{Value, json};
use std::fs::File;
use std::time::{Duration, SystemTime};

/// The texts of a todo's messages.
#[track_caller]
fn texts(shell: &Shell, todo: &str) -> Vec<String> {
    let export = shell.json(&["export", "--todo", todo]);
    let messages = export["messages"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let said = |content: &Value| match content.as_array() {
        Some(parts) => parts.iter().map(|part| text(&part["text"])).collect::<Vec<_>>().join(""),
        None => text(content),
    };
    messages.map(|message| said(&message["content"])).collect()
}

/// The lines of the session `s` as those of another.
fn as_session(name: &str, lines: &str) -> String {
    lines.replace("\"s\"", &format!("\"{name}\"")).replace("\"s-", &format!("\"{name}-"))
}

/// A question, and the line of an answer that its log does not call complete.
fn begun() -> String {
    let answer = said("s", 1, "assistant", "我先看").replace("\"end_turn\"", "null");
    said("s", 0, "user", "哪个端口？") + &answer
}

/// BL2, RC6: a response that is still being written waits for the next import, and its block stays open.
#[test]
fn rc6_an_import_leaves_a_response_that_is_still_being_written() {
    let (shell, once) = (Shell::new(), Shell::new());
    let file = shell.write("s.jsonl", begun());
    let ran = shell.ok(&["--json", "import", &file]);
    let found = ran.json();
    assert_eq!((&found["messages"], &found["recorded"]), (&1.into(), &1.into()), "{found}");
    assert_eq!(found["blocks"], 0, "{found}");
    assert!(ran.stderr.contains("the last response of s is still being written"), "{ran:?}");
    // The rest of the answer, and more.
    let rest = said("s", 1, "assistant", "是 7001。").replace("\"s-1\"", "\"s-1b\"");
    let more = said("s", 2, "user", "谢谢") + &said("s", 3, "assistant", "不客气。");
    let whole =
        begun() + &rest + &more.replace("\"parentUuid\":\"s-1\"", "\"parentUuid\":\"s-1b\"");
    let file = shell.write("s.jsonl", &whole);
    let found = shell.json(&["import", &file]);
    assert_eq!((&found["held"], &found["recorded"]), (&1.into(), &3.into()), "{found}");
    assert_eq!(texts(&shell, "s"), ["哪个端口？", "我先看是 7001。", "谢谢", "不客气。"]);
    // It is what one import makes of it.
    let file = once.write("s.jsonl", &whole);
    once.ok(&["import", &file]);
    let blocks = |shell: &Shell| {
        let blocks = shell.json(&["blocks", "--todo", "s"]);
        let ids: Vec<Value> =
            blocks.as_array().unwrap().iter().map(|block| block["block_id"].clone()).collect();
        ids
    };
    assert_eq!(blocks(&shell), blocks(&once));
}

/// RC6: a log that nobody writes any more is imported whole, whatever it says of its last response.
#[test]
fn rc6_a_finished_log_comes_in_whole() {
    let shell = Shell::new();
    let file = shell.write("s.jsonl", begun());
    let before = SystemTime::now() - Duration::from_secs(3600);
    File::options().append(true).open(&file).unwrap().set_modified(before).unwrap();
    assert_eq!(shell.json(&["import", &file])["recorded"], 2);
    let packed = zstd::encode_all(as_session("p", &begun()).as_bytes(), 3).unwrap();
    let file = shell.write("p.jsonl.zst", packed);
    assert_eq!(shell.json(&["import", &file])["recorded"], 2);
}

/// A session of four messages, and what it says after it went back behind the first two.
fn went_back() -> [String; 2] {
    let talk = said("s", 0, "user", "开始") + &said("s", 1, "assistant", "好。");
    let left = said("s", 2, "user", "旧问题") + &said("s", 3, "assistant", "旧回答");
    let back = said("s", 4, "user", "新问题") + &said("s", 5, "assistant", "新回答");
    let back = back.replace("\"parentUuid\":\"s-3\"", "\"parentUuid\":\"s-1\"");
    [talk + &left, back]
}

/// RC6: what a session says after it went back follows everything in its todo, what it left is not recorded again, and the
/// files after it have their turn.
#[test]
fn rc6_a_session_that_went_back_goes_on() {
    for lenient in [&[][..], &["--lenient"]] {
        let shell = Shell::new();
        shell.folders(&["logs"]);
        let [talk, back] = went_back();
        shell.write("logs/a.jsonl", &talk);
        shell.ok(&["import", "logs"]);
        shell.write("logs/a.jsonl", talk.clone() + &back);
        shell.write("logs/b.jsonl", as_session("t", &talk));
        let args = [&["import", "logs"], lenient].concat();
        let ran = shell.ok(&args);
        assert!(ran.stderr.contains("s went back to an earlier point"), "{ran:?}");
        let all = ["开始", "好。", "旧问题", "旧回答", "新问题", "新回答"];
        assert_eq!(texts(&shell, "s"), all, "{ran:?}");
        assert_eq!(shell.todos(), ["s", "t"], "{ran:?}");
        // The same again is nothing new, and more is.
        let recorded = |shell: &Shell| -> u64 {
            let rows = shell.ok(&[&["--json"], args.as_slice()].concat()).json_lines();
            rows.iter().map(|row| row["recorded"].as_u64().unwrap()).sum()
        };
        assert_eq!(recorded(&shell), 0);
        shell.write("logs/a.jsonl", talk + &back + &said("s", 6, "user", "再来"));
        assert_eq!(recorded(&shell), 1);
        assert_eq!(texts(&shell, "s")[4..], ["新问题", "新回答", "再来"]);
        assert_eq!(shell.todos(), ["s", "t"]);
        shell.ok(&["verify"]);
    }
    // If it is imported for the first time, the branch is a conversation of its own.
    let shell = Shell::new();
    let file = shell.write("a.jsonl", went_back().concat());
    shell.ok(&["import", &file]);
    assert_eq!(texts(&shell, "s-branch-1"), ["旧问题", "旧回答"]);
    assert_eq!(texts(&shell, "s"), ["开始", "好。", "新问题", "新回答"]);
}

/// A response that an earlier import took before it was complete follows as it is now, with all that comes after it.
#[test]
fn rc6_a_response_that_was_imported_too_early_does_not_end_its_session() {
    let shell = Shell::new();
    let file = shell.write("s.jsonl", begun());
    let before = SystemTime::now() - Duration::from_secs(3600);
    File::options().append(true).open(&file).unwrap().set_modified(before).unwrap();
    assert_eq!(shell.json(&["import", &file])["recorded"], 2);
    let rest = said("s", 1, "assistant", "是 7001。").replace("\"s-1\"", "\"s-1b\"");
    let more = said("s", 2, "user", "谢谢").replace("\"s-1\"", "\"s-1b\"");
    let file = shell.write("s.jsonl", begun() + &rest + &more);
    shell.ok(&["import", &file]);
    assert_eq!(texts(&shell, "s"), ["哪个端口？", "我先看", "我先看是 7001。", "谢谢"]);
}

/// A log without ids that grows by a line keeps the names of those before it.
#[test]
fn a_log_without_ids_that_grows_is_not_imported_twice() {
    let shell = Shell::new();
    let recorded = |text: String| -> Vec<u64> {
        let file = shell.write("pairs.jsonl", text);
        let rows = shell.ok(&["--json", "import", &file]).json_lines();
        rows.iter().map(|row| row["recorded"].as_u64().unwrap()).collect()
    };
    assert_eq!(recorded(format!("\n{}", pair("一"))), [2]);
    assert_eq!(recorded(format!("\n{}{}", pair("一"), pair("二"))), [0, 2]);
    assert_eq!(shell.todos(), ["pairs", "pairs-3"]);
}

/// The conversation that the store has by an id keeps it, whatever files are beside it; another one keeps its own name,
/// alone, too.
#[test]
fn an_id_stays_with_the_conversation_that_the_store_has_by_it() {
    let shell = Shell::new();
    shell.folders(&["logs"]);
    let of = |texts: &[&str]| line("s", texts.iter().map(|text| Message::user(text)).collect());
    shell.write("logs/b.jsonl", of(&["一", "二"]));
    shell.ok(&["import", "logs"]);
    shell.write("logs/a.jsonl", of(&["别的"]));
    shell.write("logs/b.jsonl", of(&["一", "二", "三"]));
    for _ in 0..2 {
        let ran = shell.ok(&["import", "logs"]);
        assert!(ran.stderr.contains("is called \"s-a\""), "{ran:?}");
        assert_eq!(shell.todos(), ["s", "s-a"]);
    }
    assert_eq!(
        (texts(&shell, "s").concat(), texts(&shell, "s-a").concat()),
        ("一二三".into(), "别的".into())
    );
    shell.write("logs/a.jsonl", of(&["别的", "更多"]));
    let found = shell.json(&["import", "logs/a.jsonl"]);
    assert_eq!((&found["todo_id"], &found["recorded"]), (&"s-a".into(), &1.into()), "{found}");
}

/// Two copies of a session that parted keep their todos, also if one is imported alone or goes back.
#[test]
fn rc6_copies_of_a_session_that_parted_keep_their_todos() {
    let shell = Shell::new();
    let common = said("s", 0, "user", "开始") + &said("s", 1, "assistant", "好。");
    let parted = |text: &str| format!("{common}{}", said("s", 2, "user", text));
    let first = shell.write("a.jsonl", parted("甲"));
    let later = shell.write("later.jsonl", parted("乙"));
    shell.ok(&["import", &first, &later]);
    let check = |recorded: u64, held: &str| {
        let found = shell.json(&["import", &later]);
        let todo = (&found["todo_id"], &found["recorded"]);
        assert_eq!(todo, (&"s-later".into(), &recorded.into()), "{found}");
        assert_eq!(shell.todos(), ["s", "s-later"]);
        assert_eq!(texts(&shell, "s").concat(), "开始好。甲");
        assert_eq!(texts(&shell, "s-later").concat(), held);
    };
    check(0, "开始好。乙");
    shell.write("later.jsonl", parted("乙") + &said("s", 3, "user", "丙"));
    check(1, "开始好。乙丙");
    shell.write("later.jsonl", parted("乙") + &said("s", 3, "user", "丁"));
    check(1, "开始好。乙丙丁");
}

/// An id that reads like that of a branch makes no branch of a conversation that is no log.
#[test]
fn a_conversation_whose_id_reads_like_a_branch_is_imported_whole() {
    let shell = Shell::new();
    let of =
        |id: &str, texts: &[&str]| line(id, texts.iter().map(|text| Message::user(text)).collect());
    let all = of("exp", &["一", "二"]) + &of("exp-branch-beta", &["一", "二", "三"]);
    let file = shell.write("all.jsonl", all);
    for _ in 0..2 {
        shell.ok(&["import", &file]);
        assert_eq!(texts(&shell, "exp-branch-beta").concat(), "一二三");
    }
}

/// Names stay where secrets are replaced, too.
#[test]
fn names_stay_where_secrets_are_replaced() {
    let shell = Shell::new();
    let of = |text: &str| {
        let key = "the key is ghp_16C7e42F292c6912E7710c838347Ae178B4a";
        line("s", vec![Message::user(key), Message::user(text)])
    };
    shell.folders(&["logs"]);
    shell.write("logs/a.jsonl", of("甲"));
    shell.write("logs/later.jsonl", of("乙"));
    for _ in 0..3 {
        let mut import = shell.command();
        import
            .arg("--store")
            .arg(shell.store())
            .args(["import", "logs"])
            .env("FOLDBACK_MEMORY_REDACT", "true");
        assert!(import.status().unwrap().success());
        assert_eq!(shell.todos(), ["s", "s-later"]);
    }
}

/// Conversations with the same instructions keep their names when others come and go.
#[test]
fn conversations_that_begin_alike_keep_their_names() {
    let shell = Shell::new();
    let of = |text: &str| {
        format!(
            "[{{\"role\":\"system\",\"content\":\"答。\"}},{{\"role\":\"user\",\"content\":\"{text}\"}}]"
        )
    };
    let add = |folder: &str, text: &str| {
        shell.folders(&[&format!("all/{folder}")]);
        shell.write(&format!("all/{folder}/m.json"), of(text));
    };
    [("p1", "一"), ("p2", "二"), ("p3", "三")].iter().for_each(|(folder, text)| add(folder, text));
    let recorded = || -> u64 {
        let rows = shell.ok(&["--json", "import", "all"]).json_lines();
        rows.iter().map(|row| row["recorded"].as_u64().unwrap()).sum()
    };
    assert_eq!((recorded(), recorded()), (6, 0));
    add("p1b", "四");
    assert_eq!((recorded(), recorded()), (2, 0));
    std::fs::remove_dir_all(shell.path("all/p2")).unwrap();
    assert_eq!(recorded(), 0);
    assert_eq!(shell.todos(), ["m", "m-2", "m-3", "m-4"]);
    assert_eq!(texts(&shell, "m-4").concat(), "答。四");
}

/// A conversation that shares its id is found in its todo when its file has another name, and when the todo with the number
/// before its own is gone.
#[test]
fn a_conversation_that_shares_its_id_is_found_under_any_name() {
    let shell = Shell::new();
    let talk = |texts: [&str; 2]| line("会话", texts.map(Message::user).to_vec());
    let files = [["甲", "一"], ["乙", "二"], ["丙", "三"]].map(talk);
    shell.folders(&["in"]);
    let write = |name: &str, text: &str| shell.write(&format!("in/{name}.jsonl"), text);
    ["a", "b", "c"].iter().zip(&files).for_each(|(name, text)| drop(write(name, text)));
    shell.ok(&["import", &shell.path("in").display().to_string()]);
    let todos = shell.todos();
    assert_eq!(todos.len(), 3, "{todos:?}");
    let gone = todos.iter().find(|todo| texts(&shell, todo)[0] == "乙").unwrap();
    shell.ok(&["forget", "--todo", gone]);
    // Alone, under another name.
    let moved = write("moved", &files[2]);
    let alone = shell.json(&["import", &moved]);
    assert_eq!((&alone["held"], &alone["recorded"]), (&2.into(), &0.into()), "{alone}");
    // Together, under other names, and continued.
    std::fs::remove_file(shell.path("in/c.jsonl")).unwrap();
    write("b", &files[0]);
    write("a", &talk(["甲", "一"]));
    write("moved", &line("会话", ["丙", "三", "后"].map(Message::user).to_vec()));
    shell.ok(&["import", &shell.path("in").display().to_string()]);
    assert_eq!(shell.todos().len(), 2, "{:?}", shell.todos());
    let continued = todos.iter().find(|todo| *todo != gone && texts(&shell, todo).len() == 3);
    assert_eq!(texts(&shell, continued.unwrap()), ["丙", "三", "后"]);
}

/// A file whose name is no name of a todo stays known by it, also in a store that does not have it yet.
#[test]
fn the_name_of_a_file_is_kept_where_its_todo_does_not_show_it() {
    let shell = Shell::new();
    let body = |text: &str| format!("[{{\"role\":\"user\",\"content\":\"{text}\"}}]");
    let port = shell.write("端口 笔记.json", body("哪个端口？"));
    let plan = shell.write("计划.json", body("三步"));
    let plain = shell.write("plain.json", body("hi"));
    let import = |files: &[&str]| -> Vec<u64> {
        let rows = shell.ok(&[&["--json", "import"][..], files].concat()).json_lines();
        rows.iter().map(|row| row["recorded"].as_u64().unwrap()).collect()
    };
    let names = || -> Vec<Value> {
        let rows = shell.json(&["todos"]);
        rows.as_array().unwrap().iter().map(|row| row["foreign_id"].clone()).collect()
    };
    // Earlier programs did not keep it.
    let todo = TodoId::from_foreign("端口 笔记").to_string();
    shell.ok(&["import", "--todo", &todo, &shell.write("old.json", body("哪个端口？"))]);
    assert_eq!(names(), [Value::Null]);
    assert_eq!(import(&[&port, &plan, &plain]), [0, 1, 1]);
    assert_eq!(names(), [json!("端口 笔记"), json!("计划"), Value::Null]);
    assert_eq!(import(&[&plain, &plan, &port]), [0, 0, 0]);
    shell.folders(&["more"]);
    let more = shell.write("more/计划.json", body("四步"));
    for recorded in [1, 0] {
        assert_eq!(import(&[&plan, &more]), [0, recorded]);
        assert_eq!(import(&[&port]), [0]);
        assert_eq!(names()[3..], [json!("计划-2")]);
    }
    let export = shell.ok(&["export", "--todo", &todo]);
    assert!(export.text().starts_with("{\"id\":\"端口 笔记\",\"messages\":"), "{export:?}");
}

/// A conversation that says nothing is reported.
#[test]
fn a_conversation_without_a_message_is_reported() {
    let shell = Shell::new();
    let empty = shell.write("空.json", "{\"id\":\"nomsgs\",\"messages\":[]}");
    let ran = shell.ok(&["import", &empty]);
    assert!(ran.stderr.contains("nomsgs: the conversation has no message"), "{ran:?}");
}
