//! GW16: what is checked, and that faults are found.

use crate::world::{World, counting};
use foldback::{Memory, Mode, Options};
use foldback_gateway::{Check, Keeping, self_test};
use foldback_testkit::upstream::Upstream;

/// The names of the failed checks.
fn wrong(checks: &[Check]) -> Vec<&str> {
    checks.iter().filter(|check| !check.ok).map(|check| check.name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn gw16_a_gateway_is_tried_out() {
    let memory = Memory::in_memory(Options::default().with_view(Keeping::view())).unwrap();
    let checks = self_test(memory).await.unwrap();
    let names: Vec<_> = checks.iter().map(|check| check.name).collect();
    assert_eq!(names, ["bytes", "headers", "fold", "recall", "ledger"], "{checks:?}");
    assert!(wrong(&checks).is_empty(), "{checks:?}");
}

/// A store that cannot be written to folds nothing, and the check says why. Everything else continues.
#[tokio::test(flavor = "multi_thread")]
async fn gw16_what_does_not_fold_is_found() {
    let folder = tempfile::tempdir().unwrap();
    drop(Memory::open(folder.path(), Options::default()).unwrap());
    let options = Options::default().with_view(Keeping::view()).with_mode(Mode::ReadOnly);
    let checks = self_test(Memory::open(folder.path(), options).unwrap()).await.unwrap();
    assert_eq!(wrong(&checks), ["fold"], "{checks:?}");
    assert!(checks[2].what.contains("not recorded: "), "{checks:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn gw16_a_gateway_that_runs_is_looked_at() {
    let world = World::new(counting()).await;
    let checks = Check::of_gateway(&format!("{}/v1", world.url), None).await;
    assert!(checks.len() == 5 && wrong(&checks).is_empty(), "{checks:?}");
    let off = World::with(counting(), |config| {
        config.keeping = Keeping::Off;
        config.token = Some("secret".to_owned());
    });
    let off = off.await;
    assert_eq!(wrong(&Check::of_gateway(&off.url, Some("wrong")).await), ["health"]);
    let checks = Check::of_gateway(&off.url, Some("secret")).await;
    assert_eq!(wrong(&checks), ["recording", "store"], "{checks:?}");
    let other = Upstream::start(counting()).await;
    let checks = Check::of_gateway(&other.url, None).await;
    assert!(
        checks.len() == 1 && checks[0].what.contains("is not a foldback gateway"),
        "{checks:?}"
    );
}

/// A gateway that passes requests on to itself would never end.
#[tokio::test(flavor = "multi_thread")]
async fn gw16_a_gateway_before_itself_is_found() {
    let address = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let health = format!(
        r#"{{"gateway":"foldback","version":"1","anthropic":"http://{address}","openai":"http://{address}/v1","recording":true,"writable":true}}"#
    );
    let listener = tokio::net::TcpListener::bind(address).await.unwrap();
    let router = axum::Router::new()
        .fallback(move || async move { ([("content-type", "application/json")], health) });
    let serving = tokio::spawn(async { axum::serve(listener, router).await });
    let checks = Check::of_gateway(&format!("http://{address}/"), None).await;
    assert_eq!(wrong(&checks), ["anthropic", "openai"], "{checks:?}");
    serving.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn gw16_the_environment_is_looked_at() {
    let world = World::new(counting()).await;
    let look = async |set: &[(&str, &str)]| {
        let checks = Check::of_environment(|name| {
            set.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned())
        });
        checks.await
    };
    let stale = ("ANTHROPIC_BASE_URL", "http://127.0.0.1:1");
    let (proxy, here) =
        (("HTTP_PROXY", "http://proxy:3128"), ("OPENAI_BASE_URL", world.url.as_str()));
    assert!(wrong(&look(&[]).await).is_empty());
    assert!(wrong(&look(&[here]).await).is_empty());
    assert!(wrong(&look(&[proxy, ("OPENAI_BASE_URL", "https://example.org/v1")]).await).is_empty());
    assert!(wrong(&look(&[here, proxy, ("NO_PROXY", "example.org, 127.0.0.1")]).await).is_empty());
    assert_eq!(wrong(&look(&[here, proxy]).await), ["proxy"]);
    assert_eq!(wrong(&look(&[("OPENAI_API_BASE", "nonsense")]).await), ["environment"]);
    let checks = look(&[stale, here]).await;
    assert_eq!(wrong(&checks), ["environment"]);
    assert!(checks[0].what.contains("unset ANTHROPIC_BASE_URL"), "{checks:?}");
}
