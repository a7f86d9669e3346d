//! Earlier blocks that match what is said now are named at the end of a prompt, before the model asks.

use crate::story::{engines, exchange, in_memory, open_on, todo};
use foldback::{Memory, Session};
use foldback_core::{Budget, Message, Prompt, ToolCall};

/// A long conversation in which a name, a number and a sentence were said once, and left the view.
fn begun(memory: &Memory, id: &str) -> Session {
    let mut session = memory.session(&todo(id)).unwrap();
    session.record(Message::user("Look after the depots.")).unwrap();
    let ask = ToolCall::new("q1", "read_stock", r#"{"depot":"HKG-4471"}"#);
    session.record(Message::calls("", vec![ask.clone()])).unwrap();
    let stock = "The depot HKG-4471 holds 318 crates of blue ink.";
    session.record(Message::tool_result(&ask.id, stock)).unwrap();
    session.record(Message::assistant("It holds crates of ink.")).unwrap();
    session.record(Message::user("仓库的钥匙在王师傅的抽屉里。")).unwrap();
    session.record(Message::assistant("记住了。")).unwrap();
    for n in 0..16 {
        for message in exchange(n, "scheduler", "fn tick() {}") {
            session.record(message).unwrap();
        }
    }
    session
}

fn prompt(session: &Session) -> Prompt {
    session.prompt(&Budget::default())
}

fn end(prompt: &Prompt) -> String {
    prompt.messages.last().map(|last| last.text().into_owned()).unwrap_or_default()
}

#[test]
fn a_block_that_holds_a_name_is_named() {
    let memory = in_memory();
    let mut session = begun(&memory, "named");
    let ask = ToolCall::new("q2", "move_crates", r#"{"from":"HKG-4471","count":12}"#);
    session.record(Message::calls("", vec![ask.clone()])).unwrap();
    session.record(Message::tool_result(&ask.id, "Error: say which goods")).unwrap();
    let prompt = prompt(&session);
    let end = end(&prompt);
    assert!(end.contains("Blocks that match: b_001 (HKG-4471"), "{end}");
    assert_eq!(prompt.hints.first().map(|block| block.n()), Some(1), "{end}");
    assert!(prompt.volatile > 0, "it stands behind what a provider caches");
    let look = ToolCall::new("l", "load", r#"{"ref":"b_001"}"#);
    assert!(session.call(&look).unwrap().text.contains("318 crates"));
}

#[test]
fn what_still_matches_is_named_again_but_not_while_the_model_speaks() {
    let memory = in_memory();
    let mut session = begun(&memory, "again");
    let names = |session: &Session| end(&prompt(session)).contains("match: b_001");
    session.record(Message::user("Move crates from HKG-4471 to the harbour.")).unwrap();
    assert!(names(&session));
    assert!(names(&session), "the same prompt is the same");
    session.record(Message::user("From HKG-4471, as I said.")).unwrap();
    assert!(names(&session), "the end of the prompt before is gone");
    session.record(Message::assistant("I look up HKG-4471.")).unwrap();
    assert!(!names(&session), "no answer is due");
}

#[test]
fn what_was_said_on_another_branch_is_no_hint() {
    let memory = in_memory();
    let mut session = begun(&memory, "branches");
    session.follow(&[], &[]).unwrap();
    session.record(Message::user("Look after the harbours.")).unwrap();
    for n in 0..16 {
        for message in exchange(n, "scheduler", "fn tick() {}") {
            session.record(message).unwrap();
        }
    }
    session.record(Message::user("Move crates from HKG-4471 to the harbour.")).unwrap();
    let prompt = prompt(&session);
    assert!(prompt.hints.iter().all(|block| block.n() > 17), "{:?}", prompt.hints);
    assert!(!end(&prompt).contains("match: b_001"), "{}", end(&prompt));
}

#[test]
fn a_passage_that_answers_is_shown_as_data() {
    for engine in engines() {
        let dir = tempfile::tempdir().unwrap();
        let memory = open_on(engine, dir.path());
        let mut session = begun(&memory, "passage");
        session.record(Message::user("好。")).unwrap();
        session.record(Message::assistant("好的。")).unwrap();
        session.record(Message::user("仓库的钥匙在王师傅的抽屉里吗?")).unwrap();
        let shown = end(&prompt(&session));
        let (before, passage) = shown.split_once("<recalled").expect(&shown);
        assert!(
            !before.contains("抽屉") && passage.contains("仓库的钥匙在王师傅的抽屉里"),
            "{shown}"
        );
        assert!(passage.contains("</recalled"), "{shown}");
        drop(session);
        let session = memory.session(&todo("passage")).unwrap();
        assert_eq!(end(&prompt(&session)), shown, "a resumed session says the same");
    }
}

/// What the model said before a question does not drown the user's words.
#[test]
fn a_passage_is_found_by_the_users_own_words() {
    let memory = in_memory();
    let mut session = begun(&memory, "drowned");
    let about =
        "The tiles of the harbour office were laid again, and their colour was chosen twice. ";
    session.record(Message::user("What of the tiles?")).unwrap();
    session.record(Message::assistant(&about.repeat(12))).unwrap();
    session.record(Message::user("How many crates does the depot HKG-4471 hold?")).unwrap();
    let prompt = prompt(&session);
    let end = end(&prompt);
    assert!(end.contains("holds 318 crates of blue ink"), "{end}");
    assert!(!end.contains("match:"), "what answers needs no other block beside it: {end}");
    assert_eq!(prompt.hints.iter().map(|block| block.n()).collect::<Vec<_>>(), [1]);
}

#[test]
fn nothing_is_named_where_nothing_matches_or_everything_is_in_view() {
    let memory = in_memory();
    let mut session = begun(&memory, "other");
    for (n, text) in ["Fine.", "So it is.", "Thank you."].into_iter().enumerate() {
        let said = if n == 1 { Message::assistant(text) } else { Message::user(text) };
        session.record(said).unwrap();
    }
    assert!(!end(&prompt(&session)).contains("match:"), "{}", end(&prompt(&session)));
    let mut short = memory.session(&todo("short")).unwrap();
    short.record(Message::user("The depot HKG-4471 is closed.")).unwrap();
    short.record(Message::assistant("So it is.")).unwrap();
    short.record(Message::user("What of HKG-4471?")).unwrap();
    assert_eq!(prompt(&short).hints, []);
}

#[test]
fn nothing_is_named_to_a_model_that_has_just_looked() {
    let memory = in_memory();
    let mut session = begun(&memory, "looked");
    let look = ToolCall::new("s1", "search_block", r#"{"query":"HKG-4471"}"#);
    session.record(Message::calls("", vec![look.clone()])).unwrap();
    let answer = session.call(&look).unwrap();
    assert!(answer.text.contains("318 crates"), "{}", answer.text);
    session.record(Message::tool_result(&look.id, &answer.text)).unwrap();
    assert!(!end(&prompt(&session)).contains("match:"), "{}", end(&prompt(&session)));
}

#[test]
fn a_budget_leaves_them_out_first() {
    let memory = in_memory();
    let mut session = begun(&memory, "tight");
    session.record(Message::user("Move crates from HKG-4471 to the harbour.")).unwrap();
    let whole = prompt(&session);
    assert!(!whole.hints.is_empty());
    let tight = session.prompt(&Budget { tokens: Some(whole.tokens - 1) });
    assert!(!end(&tight).contains("match:"), "{}", end(&tight));
    assert_eq!(tight.unfit, Vec::<String>::new());
    assert_eq!(tight.window, whole.window);
}
