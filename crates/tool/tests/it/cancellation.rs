//! Asking work to stop.

use foldback_tool::CancellationToken;
use std::future::{pending, ready};
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn a_child_is_cancelled_with_its_parent_and_not_the_other_way_round() {
    let parent = CancellationToken::new();
    let (child, sibling) = (parent.child_token(), parent.child_token());
    let grandchild = child.child_token();
    child.cancel();
    assert!(child.is_cancelled() && grandchild.is_cancelled());
    assert!(!parent.is_cancelled() && !sibling.is_cancelled());
    grandchild.cancelled().await;
    parent.clone().cancel();
    sibling.cancelled().await;
    assert!(parent.child_token().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_is_woken_by_any_token_above() {
    let parent = CancellationToken::new();
    let deep = parent.child_token().child_token();
    let waiting = tokio::spawn(async move { deep.cancelled().await });
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(!waiting.is_finished());
    parent.cancel();
    waiting.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn work_runs_until_it_is_done_or_cancelled() {
    let token = CancellationToken::new();
    assert_eq!(token.run_until_cancelled(ready(1)).await, Some(1));
    let other = token.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(1)).await;
        other.cancel();
    });
    assert_eq!(token.run_until_cancelled(pending::<()>()).await, None);
    assert_eq!(token.run_until_cancelled(ready(1)).await, None);
}
