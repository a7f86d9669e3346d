//! Logs of Claude Code whose server names its responses badly.

use crate::claude_code::{assistant, texts, user};
use crate::converted::{read, roles};
use serde_json::{Value, json};

fn text(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

fn call(id: &str) -> Value {
    json!([{"type": "tool_use", "id": id, "name": "t", "input": {}}])
}

fn result(id: &str) -> Value {
    json!([{"type": "tool_result", "tool_use_id": id, "content": "7001"}])
}

/// A line of a response to this request.
fn of(request: &str, mut line: Value) -> Value {
    line["requestId"] = json!(request);
    line
}

/// Two questions, a call in between, and three responses with the id `id`.
fn session(id: &str) -> [Value; 7] {
    [
        user("u1", None, json!("哪个端口？")),
        of("r1", assistant("a1", Some("u1"), id, text("我看看。"))),
        of("r1", assistant("a2", Some("a1"), id, call("c1"))),
        user("u2", Some("a2"), result("c1")),
        of("r2", assistant("a3", Some("u2"), id, text("是 7001。"))),
        user("u3", Some("a3"), json!("谢谢")),
        of("r3", assistant("a4", Some("u3"), id, text("不客气。"))),
    ]
}

#[test]
fn responses_without_ids_of_their_own_are_told_apart() {
    for id in ["", "msg_0"] {
        let [read] = read(&session(id)).try_into().unwrap();
        assert_eq!(roles(&read), ["user", "assistant", "tool", "assistant", "user", "assistant"]);
        let said = ["哪个端口？", "我看看。", "7001", "是 7001。", "谢谢", "不客气。"];
        assert_eq!(texts(&read), said, "{id:?}");
        assert_eq!(read.messages[1].tool_calls().len(), 1, "{id:?}");
    }
}

/// Without the ids of requests, too, nothing that is said after a prompt joins what was said before it.
#[test]
fn a_prompt_begins_a_new_response() {
    for id in ["", "msg_0"] {
        let lines = session(id).map(|mut line| {
            line.as_object_mut().unwrap().remove("requestId");
            line
        });
        let [read] = read(&lines).try_into().unwrap();
        assert_eq!(texts(&read)[read.messages.len() - 2..], ["谢谢", "不客气。"], "{id:?}");
        let order = roles(&read).iter().position(|role| *role == "tool").unwrap();
        assert!(texts(&read)[..order].iter().all(|text| !text.contains("不客气")), "{id:?}");
    }
}

/// A branch that was left keeps its response, whatever the response of the other branch is called.
#[test]
fn a_response_stays_in_its_branch() {
    for id in ["", "msg_0"] {
        let lines = [
            user("u1", None, json!("开始")),
            assistant("a1", Some("u1"), id, text("好。")),
            user("old", Some("a1"), json!("旧问题")),
            assistant("a2", Some("old"), id, text("旧回答")),
            user("new", Some("a1"), json!("新问题")),
            assistant("a3", Some("new"), id, text("新回答")),
        ];
        let [main, branch] = read(&lines).try_into().unwrap();
        assert_eq!(texts(&main), ["开始", "好。", "新问题", "新回答"], "{id:?}");
        assert_eq!(texts(&branch), ["旧问题", "旧回答"], "{id:?}");
    }
}

/// What the client says between two lines of the response to one request does not part them.
#[test]
fn a_notice_of_the_client_does_not_split_a_response() {
    let notice = "<task-notification>构建完成</task-notification>";
    let lines = [
        user("u1", None, json!("开始")),
        of("r1", assistant("a1", Some("u1"), "m", text("好。"))),
        user("n", Some("a1"), json!(notice)),
        of("r1", assistant("a2", Some("n"), "m", call("c1"))),
        user("u2", Some("a2"), result("c1")),
    ];
    let [read] = read(&lines).try_into().unwrap();
    let answers = read.messages.iter().filter(|message| !message.tool_calls().is_empty());
    assert_eq!(answers.map(|message| message.text()).collect::<Vec<_>>(), ["好。"]);
}
