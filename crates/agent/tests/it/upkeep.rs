//! The background work of a policy: how much of it runs at once, what happens to it at the end, and the notes
//! on what prompts leave out.

use crate::contexts::Altered;
use crate::keeping::{Watching, calling};
use crate::script::{agent, full, model, says, task};
use foldback_agent::{AgentEvent, React};
use foldback_core::{
    BackgroundJob, BackgroundJobDone, BackgroundWork, Budget, ContextError, ContextLayer,
    ContextManager, Prompt, ToolCall,
};
use foldback_llm::{Answer, ScriptedModel};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

/// Work of a policy.
type Work = Box<dyn FnOnce() + Send>;

/// A context that always has background work.
struct Busy {
    inner: Box<dyn ContextManager>,
    /// Returns the next piece of work, if there is any after this many messages.
    next: Box<dyn FnMut(u64) -> Option<Work> + Send>,
    given: Arc<AtomicUsize>,
    done: Arc<AtomicUsize>,
}

impl Busy {
    fn new(next: impl FnMut(u64) -> Option<Work> + Send + 'static) -> Self {
        let (given, done) = (Arc::default(), Arc::default());
        Self { inner: full(), next: Box::new(next), given, done }
    }
}

impl ContextLayer for Busy {
    fn inner(&self) -> &dyn ContextManager {
        self.inner.as_ref()
    }

    fn inner_mut(&mut self) -> &mut dyn ContextManager {
        self.inner.as_mut()
    }

    fn background_work(&mut self) -> Option<&mut dyn BackgroundWork> {
        Some(self)
    }
}

impl BackgroundWork for Busy {
    fn next_job(&mut self) -> Option<BackgroundJob> {
        let work = (self.next)(self.inner.recorded())?;
        self.given.fetch_add(1, Ordering::SeqCst);
        Some(BackgroundJob(Box::new(move || {
            work();
            BackgroundJobDone(Box::new(()))
        })))
    }

    fn absorb(&mut self, _done: BackgroundJobDone) -> Result<(), ContextError> {
        self.done.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// CX11: work that the last message brings up is done and handed over before the run has ended.
#[tokio::test]
async fn cx11_the_end_of_a_run_waits_for_what_is_under_way() {
    let mut is_given = false;
    let mut context = Busy::new(move |recorded| {
        let is_last = recorded == 2 && !std::mem::replace(&mut is_given, recorded == 2);
        is_last.then(|| Box::new(|| {}) as Work)
    });
    let (given, done) = (context.given.clone(), context.done.clone());
    agent(&model(["done".into()]), vec![])
        .run(&React::default(), &mut context, &task("go"))
        .await
        .unwrap();
    assert_eq!((given.load(Ordering::SeqCst), done.load(Ordering::SeqCst)), (1, 1));
}

/// CX11: at most sixteen pieces of work are in progress at once, however much there is.
#[tokio::test]
async fn cx11_work_beside_the_loop_is_bounded() {
    let (release, held) = mpsc::channel::<()>();
    let held = Arc::new(Mutex::new(held));
    let mut context = Busy::new(move |_| {
        let held = held.clone();
        // Held up until nobody can release it any more.
        Some(Box::new(move || {
            let _ = held.lock().unwrap().recv();
        }))
    });
    let given = context.given.clone();
    let (seen, release) = (given.clone(), Mutex::new(Some(release)));
    let model = Arc::new(ScriptedModel::answering(move |request| {
        let turn = request.messages.len();
        assert_eq!(seen.load(Ordering::SeqCst), 16, "before turn {turn}");
        if turn < 6 {
            return calling("look", json!({ "n": turn }));
        }
        drop(release.lock().unwrap().take());
        Answer::text("done")
    }));
    let report = agent(&model, vec![says("look", 0, "ok")])
        .run(&React::default(), &mut context, &task("go"))
        .await;
    assert_eq!(report.unwrap().answer(), Some("done"));
}

/// CX11: a policy whose work breaks off repeatedly is asked for no more of it, and the run continues.
#[tokio::test]
async fn cx11_work_that_breaks_off_is_given_up() {
    // Like a panic, but without its message.
    let mut context = Busy::new(|_| Some(Box::new(|| std::panic::resume_unwind(Box::new(())))));
    let (given, done) = (context.given.clone(), context.done.clone());
    let turns = (0..20).map(|n| calling("look", json!({ "n": n })));
    let model = model(turns.chain(["done".into()]));
    let agent = agent(&model, vec![says("look", 5, "ok")]);
    let report = agent.run(&React::default(), &mut context, &task("go")).await.unwrap();
    assert_eq!(report.answer(), Some("done"));
    let given = given.load(Ordering::SeqCst);
    assert!((16..32).contains(&given), "{given}");
    assert_eq!(done.load(Ordering::SeqCst), 0);
}

/// ET10: an omission from prompts is reported once, however often it occurs.
#[tokio::test]
async fn et10_what_is_left_out_is_told_once() {
    let mut context = Altered::showing(|prompt| {
        prompt.unfit.push("A message of 9,000 tokens is left out.".to_owned());
        if prompt.messages.len() > 4 {
            prompt.unfit.push("再多的也没有地方了。".to_owned());
        }
    });
    let turns = (0..3).map(|n| calling("look", json!({ "n": n })));
    let model = model(turns.chain(["done".into()]));
    let watching = Arc::new(Watching::default());
    let task = task("go").with_observer(watching.clone());
    agent(&model, vec![says("look", 0, "ok")])
        .run(&React::default(), &mut context, &task)
        .await
        .unwrap();
    let events = watching.0.lock();
    let noted = events.iter().filter_map(|(_, event)| match event {
        AgentEvent::Noted { text } => Some(text.as_str()),
        _ => None,
    });
    let noted: Vec<&str> = noted.collect();
    assert_eq!(noted, ["A message of 9,000 tokens is left out.", "再多的也没有地方了。"]);
}

/// A context that records the tokens before a prompt, and when a prompt was requested.
struct Front(Box<dyn ContextManager>, Arc<Mutex<Vec<String>>>);

impl ContextLayer for Front {
    fn inner(&self) -> &dyn ContextManager {
        self.0.as_ref()
    }

    fn inner_mut(&mut self) -> &mut dyn ContextManager {
        self.0.as_mut()
    }

    fn set_front_tokens(&mut self, tokens: u64) {
        self.1.lock().unwrap().push(format!("front {tokens}"));
    }

    fn prompt(&self, budget: &Budget) -> Prompt {
        self.1.lock().unwrap().push("prompt".to_owned());
        self.0.prompt(budget)
    }
}

/// LV4: a policy knows the tokens of the agent's instructions and tools before the prompt that is sent is planned.
#[tokio::test]
async fn lv4_a_context_knows_what_the_agent_sends_in_front() {
    let told = |system: &'static str| async move {
        let asked = Arc::default();
        let answers = [Answer::from(ToolCall::new("c", "read", "{}")), Answer::text("done")];
        let agent = agent(&model(answers), vec![says("read", 1, "ok")]).with_system_prompt(system);
        let mut context = Front(full(), Arc::clone(&asked));
        agent.run(&React::default(), &mut context, &task("Read it.")).await.unwrap();
        let asked = asked.lock().unwrap().clone();
        let fronts: Vec<u64> =
            asked.iter().filter_map(|one| one.strip_prefix("front ")?.parse().ok()).collect();
        assert_eq!(fronts.len(), 1, "{asked:?}");
        let at = asked.iter().position(|one| one.starts_with("front ")).unwrap();
        assert_eq!(asked.get(at + 1).map(String::as_str), Some("prompt"), "{asked:?}");
        fronts[0]
    };
    let (without, with) = (told("").await, told("You look after a quay and its cranes.").await);
    assert!(without > 0 && with >= without, "{without} {with}");
}
