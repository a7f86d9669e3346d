//! The page of a replay: whole, harmless, small, and the same each time.

use crate::shell::{Shell, line, names, quay};
use foldback_core::Message;
use foldback_testkit::transcript;
use serde_json::Value;
use std::path::Path;

/// A page, taken apart.
struct Page {
    html: String,
    index: Value,
    pictures: Vec<Value>,
}

impl Page {
    /// Replays `file` with a report, and reads that.
    #[track_caller]
    fn of(shell: &Shell, args: &[&str]) -> Self {
        let mut all = vec!["replay", "-q", "--report", "out.html"];
        all.extend(args);
        let ran = shell.run_bare(&all);
        assert_eq!(ran.code, 0, "{ran:?}");
        Self::read(&shell.path("out.html"))
    }

    #[track_caller]
    fn read(path: &Path) -> Self {
        let html = std::fs::read_to_string(path).unwrap();
        let scripts: Vec<&str> = html.split("<script").skip(1).collect();
        assert_eq!(scripts.len(), html.matches("</script>").count(), "scripts are balanced");
        let mut data = Vec::new();
        for script in scripts {
            let (head, rest) = script.split_once('>').unwrap();
            let (text, _) = rest.split_once("</script>").unwrap();
            if head.contains("application/json") {
                assert!(!text.contains('<'), "data opens no element");
                data.push(serde_json::from_str(text).unwrap());
            }
        }
        let index = data.remove(0);
        Self { html, index, pictures: data }
    }
}

/// The contents of a recorded message, as the page should have them.
fn texts(messages: &[Message]) -> Vec<Value> {
    messages.iter().map(|message| Value::from(message.text())).collect()
}

fn shown(picture: &Value) -> Vec<Value> {
    let messages = picture["messages"].as_array().unwrap();
    messages.iter().map(|message| message["t"].clone()).collect()
}

fn example() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join("examples/coding-session.jsonl").to_str().unwrap().to_owned()
}

#[test]
fn the_page_of_the_example_loads_nothing_and_holds_each_message_once() {
    let shell = Shell::new();
    let page = Page::of(&shell, &[&example()]);
    for attribute in ["src=", "href=", "url(", "@import"] {
        for used in page.html.split(attribute).skip(1) {
            let target = used.trim_start_matches(['"', '\'']);
            assert!(!target.starts_with("http") && !target.starts_with("//"), "{attribute}");
        }
    }
    assert!(page.html.contains("default-src 'none'"), "the page forbids itself to load anything");
    let picture = &page.pictures[0];
    let source = foldback_transcript::read_file(Path::new(&example())).unwrap();
    let source: Vec<_> = source.map(|conversation| conversation.unwrap().messages).collect();
    assert_eq!(shown(picture), texts(&source[0]));
    for message in source[0].iter().filter(|message| message.text().len() > 300) {
        let json = serde_json::to_string(&message.text()).unwrap().replace('<', "\\u003c");
        let inside = json.trim_matches('"');
        assert_eq!(page.html.matches(inside).count(), 1, "{}", message.text());
    }
    let report = &picture["report"];
    assert_eq!(report["lossless"], true);
    assert_eq!(picture["blocks"].as_array().unwrap().len() as u64, report["blocks"]);
    assert_eq!(picture["payloads"].as_array().unwrap().len() as u64, report["payloads"]);
    assert!(picture["searches"].as_array().unwrap().len() >= 5);
    assert!(!picture["forgot"]["summary-top-n"].as_array().unwrap().is_empty());
    assert!(page.html.len() < 700_000, "{}", page.html.len());
}

#[test]
fn a_call_in_the_page_is_what_the_model_gets() {
    let shell = Shell::new();
    let file = shell.write("quay.jsonl", line("quay", quay()));
    let page = Page::of(&shell, &[&file]);
    let picture = &page.pictures[0];
    let (messages, forms) = (&picture["messages"], &picture["forms"]);
    let calls = picture["calls"].as_array().unwrap();
    assert_eq!(calls.len() as u64, picture["report"]["calls"]);
    let mut sent = 0;
    for (at, call) in calls.iter().enumerate() {
        let number = (at + 1).to_string();
        let prompt = shell.run_bare(&["replay", "--json", "--at", &number, &file]).json();
        let expected: Vec<_> = prompt["messages"].as_array().unwrap().iter().collect();
        let mut tokens = picture["tools_tokens"].as_u64().unwrap();
        let mut last = None;
        for (id, expected) in call["v"].as_array().unwrap().iter().zip(&expected) {
            let id = id.as_i64().unwrap();
            let form = if id < 0 { Some(&forms[(-1 - id) as usize]) } else { None };
            let said = form.unwrap_or_else(|| &messages[id as usize]);
            let mut text = said["t"].as_str().unwrap().to_owned();
            if let Some(pin) = said["pin"].as_u64() {
                let task = messages[pin as usize]["t"].as_str().unwrap();
                text = format!("{task}\n\n{text}");
            }
            assert_eq!(text, expected["content"].as_str().unwrap_or_default(), "call {number}");
            assert_eq!(said["r"], expected["role"]);
            tokens += said["k"].as_u64().unwrap();
            // The stand-ins for recorded messages are in the order of recording.
            let of = form.map_or(Some(id as u64), |form| form["of"].as_u64());
            assert!(of.is_none() || of > last, "call {number}: {of:?} behind {last:?}");
            last = of.or(last);
        }
        assert_eq!(call["v"].as_array().unwrap().len(), expected.len());
        assert_eq!(call["k"], tokens, "call {number}");
        assert_eq!(call["b"].is_null(), prompt["block"].is_null());
        sent += tokens;
    }
    assert_eq!(picture["report"]["input_tokens"], sent);
    // Everything in view represents a message, except the opening and the suffix.
    let unknown = forms.as_array().unwrap().iter().filter(|form| form["of"].is_null());
    let made = |form: &Value| {
        let text = form["t"].as_str().unwrap();
        text.starts_with("[memory]") || text.starts_with("[state of the work")
    };
    for form in unknown {
        assert!(made(form), "{form}");
    }
}

#[test]
fn hostile_text_stays_text() {
    let shell = Shell::new();
    let hostile = [
        "</script><img src=x onerror=alert(1)>",
        "<!--<script>alert('数')</script>",
        "\u{202e}مرحبا بالعالم\u{2028}line\u{2029} 👩‍👩‍👧 \u{0}\u{7f}",
        "/*script*/ <!--data--> /*style*/ <!--title--> ${alert(1)}",
    ];
    let mut messages = Vec::new();
    for text in hostile {
        messages.push(Message::user(text));
        messages.push(Message::assistant(text));
    }
    let id = "</title><script>alert(2)</script> & 会话";
    let file = shell.write("hostile.jsonl", line(id, messages.clone()));
    let page = Page::of(&shell, &[&file]);
    assert_eq!(page.index["entries"][0]["report"]["id"], id);
    assert_eq!(shown(&page.pictures[0]), texts(&messages));
    for opened in ["<img", "<script>alert", "<!--<script"] {
        assert!(!page.html.contains(opened), "{opened}");
    }
    let title = "<title>&lt;/title&gt;&lt;script&gt;alert(2)&lt;/script&gt; &amp; 会话 · foldback";
    assert!(page.html.contains(title), "the title is escaped");
    assert!(page.html.contains("function drawHead()"), "the page's own script is whole");
}

#[test]
fn a_long_session_stays_small_and_the_same() {
    let shell = Shell::new();
    let mut script = String::from("system: you keep the log\nuser: 读日志 and report\n");
    for i in 0..476 {
        let size = if i % 5 == 0 { 9_000 } else { 400 };
        script.push_str(&format!(
            "assistant> read({{\"part\": {i}}})\ntool: part {i}\n  [big {size} part{i}]\n"
        ));
        script.push_str(&format!("user: 第 {i} 部分说了什么? What does part {i} say?\n"));
    }
    let messages = transcript(&script);
    assert_eq!(messages.len(), 1_430);
    let file = shell.write("long.jsonl", line("long", messages.clone()));
    let page = Page::of(&shell, &[&file]);
    let source = std::fs::metadata(&file).unwrap().len() as usize;
    assert!(page.html.len() < 10_000_000, "{}", page.html.len());
    assert!(page.html.len() < source * 2, "{} of {source}: calls are numbers", page.html.len());
    assert_eq!(shown(&page.pictures[0]), texts(&messages));
    let again = Page::of(&shell, &[&file]).html;
    assert!(again == page.html, "the same input gives another page");
}

#[test]
fn many_conversations_share_a_page_and_it_says_what_it_leaves_out() {
    let shell = Shell::new();
    let talk = "user: 你好 {n}\nassistant: hello {n}\nuser: and?\nassistant: that is all\n";
    let lines: String = (0..53)
        .map(|n| line(&format!("talk-{n}"), transcript(&talk.replace("{n}", &n.to_string()))))
        .collect();
    let file = shell.write("talks.jsonl", lines);
    let page = Page::of(&shell, &[&file]);
    let entries = page.index["entries"].as_array().unwrap();
    assert_eq!((entries.len(), page.pictures.len()), (53, 50));
    assert_eq!(page.index["pictures_most"], 50);
    for (at, entry) in entries.iter().enumerate() {
        assert_eq!(entry["report"]["id"], format!("talk-{at}"));
        assert_eq!(entry["report"]["lossless"], true);
        let picture = (at < 50).then_some(at as u64);
        assert_eq!(entry["picture"].as_u64(), picture);
        if picture.is_some() {
            assert_eq!(page.pictures[at]["report"]["id"], format!("talk-{at}"));
        }
    }
    assert!(page.html.contains("<title>53 conversations · foldback</title>"));
}

#[test]
fn a_report_that_cannot_be_is_refused_before_any_work() {
    let shell = Shell::new();
    let file = shell.write("quay.jsonl", line("quay", quay()));
    std::fs::create_dir(shell.path("folder")).unwrap();
    for (args, expected) in [
        (&["--report", "nowhere/out.html"][..], "nowhere/out.html could not be written"),
        (&["--report", "folder"], "names a file to write"),
        (&["--report", "out.html", "--policy", "full"], "leave out --policy full"),
        (&["--report", "out.html", "--store", "kept"], "leave out --store"),
        (&["--report", "out.html", "--at", "2"], "cannot be used with"),
    ] {
        let mut all = vec!["replay"];
        all.extend(args);
        all.push(&file);
        let ran = shell.run_bare(&all);
        assert_eq!((ran.code, ran.text()), (2, ""), "{args:?}: {ran:?}");
        assert!(ran.stderr.contains(expected), "{args:?}: {}", ran.stderr);
    }
    assert_eq!(names(&shell.path("")), ["folder", "quay.jsonl"]);
    let ran = shell.run_bare(&["replay", "--json", "--report", "out.html", &file]);
    assert_eq!(ran.json()["lossless"], true, "results stay as they are");
    assert!(ran.stderr.contains("the report is in out.html"), "{}", ran.stderr);
    assert_eq!(names(&shell.path("")), ["folder", "out.html", "quay.jsonl"]);
}
