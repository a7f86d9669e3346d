//! Asking a person.

use crate::keeping::{calling, scripts};
use crate::script::{agent, full, task};
use crate::toolkit::{spec, tool};
use foldback_agent::{AskPerson, Person, Question, React, Task};
use foldback_core::ToolCall;
use foldback_llm::Answer;
use foldback_tool::{Effect, ToolOutput};
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Answers after a while, and notes what was asked when.
struct Answering {
    answer: Option<&'static str>,
    after: Duration,
    began: Instant,
    asked: Mutex<Vec<(u64, Question)>>,
}

impl Answering {
    fn new(answer: Option<&'static str>, seconds: u64) -> Arc<Self> {
        let (after, began) = (Duration::from_secs(seconds), Instant::now());
        Arc::new(Self { answer, after, began, asked: Mutex::default() })
    }
}

impl Person for Answering {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Option<String>> {
        async move {
            self.asked.lock().push((self.began.elapsed().as_secs(), question.clone()));
            tokio::time::sleep(self.after).await;
            self.answer.map(str::to_owned)
        }
        .boxed()
    }
}

/// Returns the text for the model that asks.
async fn told(tool: AskPerson, task: &Task) -> String {
    let question = json!({"question": "哪一天出发?", "options": ["周六", "周日"]});
    let model = scripts([("task", vec![calling("ask_person", question), "done".into()])]);
    let agent = agent(&model, vec![Arc::new(tool)]);
    agent.run(&React::default(), full().as_mut(), task).await.unwrap();
    let requests = model.requests();
    requests.get(1).map(|r| r.messages.last().unwrap().text().into_owned()).unwrap_or_default()
}

/// OM16: a person is asked through a trait, and may take any time, also more than other tools may take.
#[tokio::test(start_paused = true)]
async fn om16_a_person_is_asked() {
    let person = Answering::new(Some("周六 👍"), 500);
    assert_eq!(told(AskPerson::new(person.clone()), &task("go")).await, "周六 👍");
    let asked = person.asked.lock();
    let (_, question) = &asked[0];
    assert_eq!(question.todo.as_ref().unwrap().as_str(), "task");
    assert_eq!((question.text.as_str(), question.options.len()), ("哪一天出发?", 2));
}

/// OM16: nobody is there, the person has no answer, or takes too long: the model learns of it, and the run continues.
#[tokio::test(start_paused = true)]
async fn om16_without_an_answer_the_model_is_told() {
    let told_nobody = told(AskPerson::nobody(), &task("go")).await;
    assert!(told_nobody.contains("nobody to ask; decide by what you know"), "{told_nobody}");
    let silent = told(AskPerson::new(Answering::new(None, 1)), &task("go")).await;
    assert!(silent.contains("gave no answer"), "{silent}");
    let slow =
        AskPerson::new(Answering::new(Some("周六"), 61)).with_timeout(Duration::from_secs(60));
    let slow = told(slow, &task("go")).await;
    assert!(slow.contains("did not answer within 60s"), "{slow}");
}

/// Two agents that ask at once are answered one after the other.
#[tokio::test(start_paused = true)]
async fn one_question_is_asked_at_a_time() {
    let person = Answering::new(Some("周六"), 10);
    let asks = ["c1", "c2"].map(|id| ToolCall::new(id, "ask_person", r#"{"question": "哪一天?"}"#));
    let model = scripts([("task", vec![Answer::calls("", asks.to_vec()), "done".into()])]);
    let agent = agent(&model, vec![Arc::new(AskPerson::new(person.clone()))]);
    agent.run(&React::default(), full().as_mut(), &task("go")).await.unwrap();
    let asked: Vec<u64> = person.asked.lock().iter().map(|(at, _)| *at).collect();
    assert_eq!(asked, [0, 10]);
}

/// OM16: while somebody else asks the person, the time for an answer does not run.
#[tokio::test(start_paused = true)]
async fn om16_the_time_of_an_answer_begins_with_the_question() {
    let turn = Arc::new(tokio::sync::Mutex::new(()));
    let other = Arc::clone(&turn).lock_owned().await;
    tokio::spawn(async move {
        tokio::time::sleep(AskPerson::TIMEOUT * 2).await;
        drop(other);
    });
    let tool = AskPerson::new(Answering::new(Some("周六"), 599)).with_turn(turn);
    assert_eq!(told(tool, &task("go")).await, "周六");
}

/// OM16: while a person thinks, calls beside the question are done, and nothing else waits.
#[tokio::test(start_paused = true)]
async fn om16_a_question_holds_nothing_up() {
    let person = Answering::new(Some("周六"), 500);
    let began = person.began;
    let looked = Arc::new(Mutex::new(None));
    let look = {
        let looked = Arc::clone(&looked);
        tool(spec("look", Effect::ReadOnly), move |_, _| {
            let looked = Arc::clone(&looked);
            async move {
                tokio::time::sleep(Duration::from_secs(3)).await;
                *looked.lock() = Some(began.elapsed().as_secs());
                Ok(ToolOutput::text("晴"))
            }
        })
    };
    let calls = vec![
        ToolCall::new("c1", "ask_person", r#"{"question": "哪一天?"}"#),
        ToolCall::new("c2", "look", "{}"),
    ];
    let model = scripts([("task", vec![Answer::calls("", calls), "done".into()])]);
    let agent = agent(&model, vec![Arc::new(AskPerson::new(person)), look]);
    agent.run(&React::default(), full().as_mut(), &task("go")).await.unwrap();
    assert_eq!((*looked.lock(), began.elapsed().as_secs()), (Some(3), 500));
    let told: Vec<String> =
        model.requests()[1].messages.iter().rev().take(2).map(|m| m.text().into_owned()).collect();
    assert_eq!(told, ["晴", "周六"], "each call has its result, in the order of the calls");
}

/// A question is withdrawn when the run is cancelled.
#[tokio::test(start_paused = true)]
async fn a_question_is_taken_back() {
    let person = Answering::new(Some("周六"), 10_000);
    let task = task("go");
    let cancelled = task.cancelled.clone();
    let began = Instant::now();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        cancelled.cancel();
    });
    let tool = AskPerson::new(person).with_timeout(Duration::from_secs(20_000));
    assert_eq!(told(tool, &task).await, "", "the model is not asked again");
    assert!(began.elapsed() < Duration::from_secs(7));
}
