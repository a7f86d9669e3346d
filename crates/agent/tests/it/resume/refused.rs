//! Runs that are not resumed: another plan, an incomplete plan, a run that is still running.

use crate::toolkit::{Counter, executor, options, pause, plan, spec, step, tool, wait};
use foldback_agent::{MemoryJournal, RunError};
use foldback_planner::StepId;
use foldback_tool::{Effect, ToolOutput};
use std::sync::Arc;

/// R12: a journal with another plan is refused before anything runs; so is one without the run.
#[tokio::test(start_paused = true)]
async fn r12_another_plan_under_the_same_name_is_refused() {
    let executor = executor([wait()]).with_journal(Arc::new(MemoryJournal::default()));
    assert!(matches!(executor.resume(options("run")), Err(RunError::NothingToResume { .. })));
    executor.run(&plan(vec![pause(1, 5, &[]), pause(2, 5, &[1])]), options("run")).await.unwrap();
    let error = executor
        .start(&plan(vec![pause(1, 5, &[]), pause(2, 6, &[1])]), options("run"))
        .unwrap_err();
    assert!(matches!(error, RunError::Changed { step: StepId(2), .. }), "{error:?}");
}

/// R12: a plan that broke off while it was being written is not resumed: calls that were held back until its
/// end are not made.
#[tokio::test(start_paused = true)]
async fn r12_half_a_plan_is_not_resumed() {
    let paid = Counter::default();
    let counter = paid.clone();
    let pay = tool(spec("pay", Effect::Effectful), move |_, _| {
        counter.add();
        async { Ok(ToolOutput::default()) }
    });
    let executor = executor([pay]).with_journal(Arc::new(MemoryJournal::default()));
    let mut run = executor.open(options("run")).unwrap();
    run.extend(&[step(1, "pay", &[])]).unwrap();
    while run.next().await.is_some() {}
    drop(run);
    let error = executor.resume(options("run")).unwrap_err();
    assert!(matches!(error, RunError::Unfinished { .. }), "{error:?}");
    // Written again completely, it resumes, and is complete for later resumptions.
    let whole = plan(vec![step(1, "pay", &[]), step(2, "pay", &[1])]);
    executor.run(&whole, options("run")).await.unwrap();
    let again = executor.resume(options("run")).unwrap().finish().await.unwrap();
    assert_eq!((again.results.len(), paid.get()), (2, 2));
}

/// R12: a longer plan, a shorter one and one with other numbers are other plans, and leave the run
/// unchanged.
#[tokio::test(start_paused = true)]
async fn r12_the_whole_plan_has_to_be_the_same() {
    let executor = executor([wait()]).with_journal(Arc::new(MemoryJournal::default()));
    let both = || vec![pause(1, 5, &[]), pause(2, 5, &[1])];
    let first = executor.run(&plan(both()), options("run")).await.unwrap();
    let longer = [both(), vec![pause(3, 5, &[])]].concat();
    for (steps, differing) in [(longer, 3), (both()[..1].to_vec(), 2), (vec![pause(7, 5, &[])], 1)]
    {
        match executor.start(&plan(steps), options("run")) {
            Err(RunError::Changed { step, .. }) => assert_eq!(step, StepId(differing)),
            other => panic!("{other:?}"),
        }
    }
    let again = executor.resume(options("run")).unwrap().finish().await.unwrap();
    assert_eq!(again.results, first.results);
}

/// R12: a run is resumed only once at a time; without a name it has no journal.
#[tokio::test(start_paused = true)]
async fn r12_a_run_goes_on_once_at_a_time() {
    let journal = Arc::new(MemoryJournal::default());
    let executor = executor([wait()]).with_journal(journal.clone());
    let one = || plan(vec![pause(1, 5, &[])]);
    let run = executor.start(&one(), options("run")).unwrap();
    let other = crate::toolkit::executor([wait()]).with_journal(journal);
    let error = other.start(&one(), options("run")).unwrap_err();
    assert!(matches!(error, RunError::InUse { .. }), "{error:?}");
    let beside =
        crate::toolkit::executor([wait()]).with_journal(Arc::new(MemoryJournal::default()));
    beside.run(&one(), options("run")).await.unwrap();
    run.finish().await.unwrap();
    other.run(&one(), options("run")).await.unwrap();
    assert!(matches!(executor.start(&one(), options("")), Err(RunError::Unnamed)));
}
