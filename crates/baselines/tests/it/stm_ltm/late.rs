//! Jobs beside the loop: they cost no time, and a late one delays nothing.

use super::drive::{Back, Loop, prompt, start, step, texts};
use foldback_baselines::Counters;
use foldback_baselines::stm_ltm::{
    Compression, Compressor, Extractive, Finished, StmLtmConfig, Written,
};
use foldback_core::{
    BackgroundJobDone, BackgroundWork, ContextError, ContextManager, Message, SideCalls,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant, sleep};

const TOOL: Duration = Duration::from_millis(200);

/// The rule, as slow as a model: the time it takes is owed by the thread that runs it.
struct Slow {
    takes: Duration,
    owed: Arc<AtomicU64>,
}

impl Compressor for Slow {
    fn name(&self) -> &str {
        Extractive.name()
    }

    fn fold(&self, step: &Finished, counters: &Counters) -> Result<Written, ContextError> {
        self.owed.fetch_add(self.takes.as_millis() as u64, Ordering::Relaxed);
        Extractive.fold(step, counters)
    }

    fn compress(
        &self,
        task: &Compression<'_>,
        counters: &Counters,
    ) -> Result<Written, ContextError> {
        self.owed.fetch_add(self.takes.as_millis() as u64, Ordering::Relaxed);
        Extractive.compress(task, counters)
    }
}

/// Lets the owed time pass.
async fn pay(owed: &AtomicU64) {
    let millis = owed.swap(0, Ordering::Relaxed);
    if millis > 0 {
        sleep(Duration::from_millis(millis)).await;
    }
}

/// What a loop observed: its time, and how many steps were late after each step.
struct Seen {
    took: Duration,
    late: Vec<usize>,
    prompts: Vec<Vec<String>>,
}

/// A loop of 12 steps: a tool takes 200 ms, a compressor `takes`, on a clock that advances only when
/// everything sleeps. Jobs run beside the tool, or before it if `beside` is false. A compressor that
/// the policy ran itself, in the loop, would block the loop.
async fn run(takes: Duration, beside: bool) -> Seen {
    let owed = Arc::new(AtomicU64::new(0));
    let compressor = Arc::new(Slow { takes, owed: Arc::clone(&owed) });
    let mut context = start(StmLtmConfig { compressor, ..StmLtmConfig::default() });
    context.record(Message::user("Read on.")).unwrap();
    let mut jobs = JoinSet::new();
    let begun = Instant::now();
    let (mut late, mut prompts) = (Vec::new(), Vec::new());
    for n in 0..12 {
        prompts.push(texts(&prompt(&context)));
        let mut messages =
            step(&format!("s{n}"), "", &[("read", &format!("{{\"n\": {n}}}"), "数据")]);
        let result = messages.pop().unwrap();
        context.record(messages.pop().unwrap()).unwrap();
        pay(&owed).await;
        while let Some(job) = context.next_job() {
            let owed = Arc::clone(&owed);
            jobs.spawn(async move {
                let done = (job.0)();
                pay(&owed).await;
                done
            });
            if !beside && let Some(done) = jobs.join_next().await {
                context.absorb(done.unwrap()).unwrap();
            }
        }
        sleep(TOOL).await;
        context.record(result).unwrap();
        while let Some(done) = jobs.try_join_next() {
            context.absorb(done.unwrap()).unwrap();
        }
        pay(&owed).await;
        late.push(context.late_steps());
    }
    Seen { took: begun.elapsed(), late, prompts }
}

/// CX2: a tool of 200 ms and a compressor of 150 ms take 200 ms a step, not 350, and no step is
/// late.
#[tokio::test(start_paused = true)]
async fn cx2_the_memory_is_written_beside_the_tool() {
    let compressor = Duration::from_millis(150);
    let seen = run(compressor, true).await;
    assert_eq!(seen.took, TOOL * 12);
    assert_eq!(seen.late, [0; 12]);
    let last = seen.prompts.last().unwrap();
    assert_eq!(last.len(), 4, "the ask, the memory, the call, the result: {last:?}");
    assert!(last[1].contains("{\"n\": 9}") && !last[1].contains("{\"n\": 10}"), "{last:?}");
    // The clock shows the difference: in a loop that waits, each but the first step takes 350.
    assert_eq!(run(compressor, false).await.took, TOOL * 12 + compressor * 11);
}

/// CX3: a compressor that takes longer than two tools costs no time either. The steps that it has not
/// finished are unchanged in the prompt, and the prompt says so.
#[tokio::test(start_paused = true)]
async fn cx3_a_late_compressor_holds_nothing_up() {
    let compressor = Duration::from_millis(450);
    let seen = run(compressor, true).await;
    assert_eq!(seen.took, TOOL * 12);
    assert_eq!(run(compressor, false).await.took, TOOL * 12 + compressor * 11);
    assert_eq!(seen.late[4..], [2; 8]);
    let last = seen.prompts.last().unwrap();
    assert!(last[1].ends_with("(It lags: 2 steps are not in it yet and follow unchanged.)"));
    assert!(last[1].contains("{\"n\": 7}"), "{last:?}");
    let shown = ["read {\"n\": 8}", "数据", "read {\"n\": 9}", "数据", "read {\"n\": 10}", "数据"];
    assert_eq!(last[2..], shown);
}

/// CX3: staleness is bounded. If no job ever comes back, a few steps stay unchanged, and the rule
/// writes the rest.
#[test]
fn cx3_staleness_is_bounded() {
    let config =
        StmLtmConfig { memory_tokens: 500, summary_tokens: 200, ..StmLtmConfig::default() };
    let mut agent = Loop::new(config, Back::Never);
    agent.record(Message::user("Read on."));
    for n in 0..80 {
        agent.step("", &[("read", &format!("{{\"n\": {n}}}"), &"数据 data. ".repeat(60))]);
        assert!(agent.context.late_steps() <= 4);
        assert!(agent.context.memory_tokens() <= 1_000);
        let shown = agent.prompt();
        // The request, the memory, and five steps of two messages.
        assert!(shown.messages.len() <= 12, "{}", shown.messages.len());
        assert!(texts(&shown).join("\n").contains(&format!("{{\"n\": {n}}}")));
    }
    assert!(agent.context.take().len() > 5, "what the rule stood in for is told");
}

#[test]
fn a_job_that_is_lost_is_given_out_again_and_one_that_is_foreign_is_refused() {
    let mut context = start(StmLtmConfig::default());
    context.record(Message::user("Read on.")).unwrap();
    for message in step("a", "", &[("read", "{}", "one")]) {
        context.record(message).unwrap();
    }
    let job = context.next_job().unwrap();
    assert!(context.next_job().is_none(), "one job for one step");
    drop(job);
    let done = (context.next_job().unwrap().0)();
    assert!(context.next_job().is_none(), "it is done, but not absorbed");
    for message in step("b", "", &[("read", "{}", "two")]) {
        context.record(message).unwrap();
    }
    assert_eq!(context.late_steps(), 1);
    context.absorb(done).unwrap();
    assert_eq!(context.late_steps(), 0);
    let error = context.absorb(BackgroundJobDone(Box::new(7))).unwrap_err().to_string();
    assert!(error.contains("not the result of a job that the policy stm-ltm issued"), "{error}");
}
