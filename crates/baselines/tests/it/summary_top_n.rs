//! A summary replaces older messages, and only where it may.

use crate::support::{Characters, prompt, record, texts, todo};
use foldback_baselines::stm_ltm::{Compression, Compressor, Note, NoteKind, Written};
use foldback_baselines::{Counters, SummaryTopN};
use foldback_core::{
    BackgroundJob, ContextError, ContextManager, Estimate, Message, Role, SeqNo, SideCall,
    TokenCounter, ToolCall, ToolCallId, check_request,
};
use proptest::prelude::*;
use std::sync::Arc;

const SMALL: SummaryTopN =
    SummaryTopN { trigger_tokens: 400, keep_messages: 6, summary_tokens: 120 };

fn start(config: SummaryTopN) -> Box<dyn ContextManager> {
    config.start(todo(), Arc::new(Estimate))
}

fn talk(context: &mut dyn ContextManager, turns: std::ops::Range<usize>) {
    for i in turns {
        context.record(Message::user(&format!("Question {i} about the gate. 闸门 {i}。"))).unwrap();
        context.record(Message::assistant(&format!("Answer {i}. More of it follows."))).unwrap();
    }
}

#[test]
fn nothing_happens_under_the_trigger() {
    let mut context = start(SummaryTopN::default());
    context.record(Message::system("Be brief.")).unwrap();
    talk(context.as_mut(), 0..200);
    assert!(prompt(context.as_ref()).tokens < 40_000);
    assert_eq!(prompt(context.as_ref()).messages.len(), 401);
}

#[test]
fn over_the_trigger_the_last_messages_stay_and_the_rest_is_gone() {
    let mut context = start(SMALL);
    context.record(Message::system("Be brief.")).unwrap();
    talk(context.as_mut(), 0..100);
    context.record(Message::user("And now?")).unwrap();
    let shown = prompt(context.as_ref());
    assert_eq!(shown.messages[0].text(), "Be brief.", "instructions stand beside the history");
    let summary = shown.messages[1].text().into_owned();
    assert!(summary.starts_with("Here is a summary"), "{summary}");
    assert!(summary.contains("extracted by rule"), "it says what it is: {summary}");
    assert!(Estimate.count(&summary) <= SMALL.summary_tokens, "{summary}");
    assert_eq!(shown.messages.last().unwrap().text(), "And now?");
    assert!(shown.messages.iter().all(|message| !message.text().contains("Answer 3.")));
    let largest = SMALL.trigger_tokens + 60;
    assert!(shown.tokens <= largest, "{}", shown.tokens);
}

#[test]
fn the_last_twenty_messages_stay_behind_forty_thousand_tokens() {
    let config = SummaryTopN::default();
    assert_eq!((config.trigger_tokens, config.keep_messages), (40_000, 20));
    let mut context = start(config);
    let long = "The gate opens at nine and closes at five. ".repeat(100);
    let mut before = 0;
    loop {
        context.record(Message::user(&long)).unwrap();
        let after = prompt(context.as_ref()).messages.len();
        if after < before {
            assert_eq!((before, after), (before, 21), "a summary and twenty messages");
            break;
        }
        before = after;
        context.record(Message::assistant("Noted.")).unwrap();
    }
    assert!(before > 60, "{before}");
}

#[test]
fn at_the_trigger_a_summary_is_due_and_its_call_is_told() {
    let run = |trigger_tokens| {
        let config = SummaryTopN { trigger_tokens, keep_messages: 2, summary_tokens: 300 };
        let mut context = config.start(todo(), Arc::new(Characters));
        let questions = (0..9).map(|i| Message::user(&format!("闸门 {i}？")));
        record(context.as_mut(), questions);
        context
    };
    // Nine messages of five characters, each with its four tokens.
    assert_eq!(texts(run(82).as_ref()).len(), 9);
    let mut context = run(81);
    assert_eq!(texts(context.as_ref())[1..], ["闸门 7？", "闸门 8？"]);
    let calls = context.take_side_calls();
    assert_eq!((calls.len(), calls[0].purpose, calls[0].input_tokens), (1, "summary", 63));
    assert_eq!(calls[0].output_tokens, texts(context.as_ref())[0].chars().count());
    // The next one is based on the summary as well.
    let before = prompt(context.as_ref()).tokens;
    record(context.as_mut(), [Message::user("闸门 9？")]);
    assert_eq!(context.take_side_calls()[0].input_tokens, before - 9);
}

/// The size of the messages decides, not that of the instructions before them.
#[test]
fn instructions_do_not_count_for_the_trigger() {
    let config = SummaryTopN { trigger_tokens: 82, keep_messages: 2, summary_tokens: 300 };
    let mut context = config.start(todo(), Arc::new(Characters));
    record(context.as_mut(), [Message::system(&"Be brief. 简短。".repeat(50))]);
    record(context.as_mut(), (0..9).map(|i| Message::user(&format!("闸门 {i}？"))));
    assert_eq!(texts(context.as_ref()).len(), 10, "81 tokens of messages");
    record(context.as_mut(), [Message::user("闸门 9？")]);
    assert_eq!(texts(context.as_ref()).len(), 4);
}

/// What the whole conversation is for stays in every summary, and takes a quarter of it at most.
#[test]
fn the_task_outlives_everything_else() {
    let config = SummaryTopN { trigger_tokens: 2_000, keep_messages: 4, summary_tokens: 400 };
    let mut context = start(config);
    let task = format!("Repair gate 7. 修理七号闸门。 {}", "It sticks at noon. ".repeat(200));
    context.record(Message::user(&task)).unwrap();
    talk(context.as_mut(), 0..400);
    assert!(context.take_side_calls().len() > 3);
    let summary = texts(context.as_ref()).swap_remove(0);
    assert!(summary.contains("\n- user: Repair gate 7. 修理七号闸门。"), "{summary}");
    let first = summary.lines().nth(1).unwrap();
    assert!((60..=110).contains(&Estimate.count(first)), "{first}");
}

#[test]
fn a_pinned_message_outlives_its_summary() {
    let mut context = start(SMALL);
    talk(context.as_mut(), 0..1);
    context.pin(SeqNo(0)).unwrap();
    context.pin(SeqNo(1)).unwrap();
    talk(context.as_mut(), 1..60);
    let shown = prompt(context.as_ref());
    assert_eq!(shown.pinned, 2);
    assert!(shown.messages[0].text().starts_with("Question 0 about the gate."));
    assert_eq!(shown.messages[1].text(), "[assistant] Answer 0. More of it follows.");
    assert_eq!(check_request(shown.messages.iter().map(Arc::as_ref)), []);
    let error = context.pin(SeqNo(2)).unwrap_err().to_string();
    assert!(error.contains("is gone"), "{error}");
}

proptest! {
    /// However calls, results and words follow each other, no cut separates a call from its results,
    /// and the newest messages stay unchanged.
    #[test]
    fn no_summary_parts_a_call_from_its_results(
        steps in proptest::collection::vec((0..4_usize, 1..120_usize), 1..80),
    ) {
        let mut context = start(SMALL);
        let mut recorded = Vec::new();
        let mut record = |context: &mut dyn ContextManager, message: Message| {
            recorded.push(message.json().to_owned());
            context.record(message).unwrap();
        };
        record(context.as_mut(), Message::user("Begin."));
        for (at, (calls, words)) in steps.into_iter().enumerate() {
            let request = prompt(context.as_ref());
            prop_assert_eq!(check_request(request.messages.iter().map(Arc::as_ref)), []);
            let ids: Vec<String> = (0..calls).map(|n| format!("c{at}-{n}")).collect();
            let made = ids.iter().map(|id| ToolCall::new(id, "read", "{}")).collect();
            record(context.as_mut(), Message::calls("I read.", made));
            for id in &ids {
                record(context.as_mut(), Message::tool_result(&ToolCallId::new(id), &"数 word ".repeat(words)));
            }
            if calls == 0 {
                record(context.as_mut(), Message::user(&"more ".repeat(words)));
            }
        }
        let shown = prompt(context.as_ref());
        let newest = recorded.len().saturating_sub(SMALL.keep_messages);
        let tail: Vec<_> = recorded[newest..].to_vec();
        let kept: Vec<_> = shown.messages.iter().map(|message| message.json().to_owned()).collect();
        prop_assert!(kept.ends_with(&tail));
        let summaries =
            shown.messages.iter().filter(|m| *m.role() == Role::User && m.text().starts_with("Here is a summary"));
        prop_assert!(summaries.count() <= 1);
    }
}

/// A writer of summaries beside the loop, in place of the rule: the first line of each note, or
/// nothing.
struct FirstLines {
    fails: bool,
}

impl Compressor for FirstLines {
    fn name(&self) -> &str {
        "written by a model"
    }

    fn compress(&self, task: &Compression<'_>, _: &Counters) -> Result<Written, ContextError> {
        if self.fails {
            return Err(ContextError { message: "no model".to_owned(), source: None });
        }
        let text = format!("摘要 of {} notes: {}", task.notes.len(), task.notes[0].text);
        let note = Note { kind: NoteKind::Summary, of: None, text };
        let call =
            SideCall { purpose: "summary", input_tokens: 70, output_tokens: 7, cost: Some(0.5) };
        Ok(Written { notes: vec![note], call: Some(call) })
    }
}

fn written(fails: bool) -> Box<dyn ContextManager> {
    SMALL.start_with(todo(), Arc::new(Estimate), Some(Arc::new(FirstLines { fails })))
}

/// Talks until a summary is due, and returns the job.
fn due(context: &mut dyn ContextManager) -> BackgroundJob {
    for i in 0..40 {
        context.record(Message::user(&format!("Question {i} about the gate. 闸门 {i}。"))).unwrap();
        if let Some(job) = context.background_work().unwrap().next_job() {
            return job;
        }
        context.record(Message::assistant(&format!("Answer {i}. More of it follows."))).unwrap();
    }
    unreachable!("no summary is due");
}

/// CX4, CX11: a summary is written beside the loop by the given writer; until it is ready the history
/// is shown unchanged, and it is charged.
#[test]
fn cx4_a_summary_is_written_beside_the_loop() {
    let mut context = written(false);
    let job = due(context.as_mut());
    let before = texts(context.as_ref());
    assert!(before[0].starts_with("Question 0"), "nothing has left");
    assert!(context.background_work().unwrap().next_job().is_none(), "one at a time");
    context.record(Message::assistant("Meanwhile.")).unwrap();
    context.background_work().unwrap().absorb((job.0)()).unwrap();
    let shown = texts(context.as_ref());
    let head = "Here is a summary of the conversation to date (written by a model):\n- 摘要 of";
    assert!(shown[0].starts_with(head), "{}", shown[0]);
    assert!(shown[0].contains("user: Question 0 about the gate"), "{}", shown[0]);
    assert_eq!(shown.last().unwrap(), "Meanwhile.");
    assert!(shown.len() < before.len());
    let calls = context.take_side_calls();
    assert_eq!((calls.len(), calls[0].cost), (1, Some(0.5)));
    // The next one is based on it.
    let job = due(context.as_mut());
    context.background_work().unwrap().absorb((job.0)()).unwrap();
    assert!(texts(context.as_ref())[0].contains("摘要 of"), "it goes on from there");
}

/// CX4: a writer that fails, or takes too long, is replaced by the rule.
#[test]
fn cx4_the_rule_stands_in() {
    let mut context = written(true);
    let job = due(context.as_mut());
    context.background_work().unwrap().absorb((job.0)()).unwrap();
    assert!(texts(context.as_ref())[0].contains("extracted by rule"));

    let mut context = written(false);
    let job = due(context.as_mut());
    talk(context.as_mut(), 0..30);
    context.record(Message::user("And now?")).unwrap();
    let shown = texts(context.as_ref());
    assert!(shown[0].contains("extracted by rule"), "at twice the tokens: {}", shown[0]);
    context.background_work().unwrap().absorb((job.0)()).unwrap();
    assert_eq!(texts(context.as_ref()), shown, "it came too late");
    assert!(context.take_side_calls().iter().any(|call| call.cost == Some(0.5)), "and is paid");
}
