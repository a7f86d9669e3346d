//! What the tools of `foldback run` may do: nothing on the net unless it is allowed.

use crate::provider::Provider;
use crate::run::run;
use crate::settings::user;
use crate::shell::Shell;
use serde_json::json;
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, ResponseTemplate};

/// S13: pages are fetched from hosts that were named, and from this machine only if that was allowed as well.
#[test]
fn s13_only_what_is_allowed_is_fetched() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let site = runtime.block_on(async {
        let site = MockServer::start().await;
        let page = "<html><body><h1>潮汐</h1><p>The Heron sails at 07:10.</p></body></html>";
        let page = ResponseTemplate::new(200).set_body_raw(page, "text/html; charset=utf-8");
        Mock::given(method("GET")).respond_with(page).mount(&site).await;
        site
    });
    let named: &[&str] = &["--allow-net", "127.0.0.1"];
    let both: &[&str] = &["--allow-net", "127.0.0.1", "--allow-private-net"];
    let other: &[&str] = &["--allow-net", "example.org", "--allow-private-net"];
    for (flags, told) in [
        (&[] as &[&str], "there is no function `web_fetch`"),
        (named, "127.0.0.1 is not an address on the public internet"),
        (other, "fetching from 127.0.0.1 is not permitted; permitted: example.org"),
        (both, "The Heron sails at 07:10."),
    ] {
        let shell = Shell::new();
        let provider = Provider::new(vec![
            Provider::call("web_fetch", &json!({"url": site.uri()})),
            Provider::text("I have seen it."),
        ]);
        let mut args = vec!["--strategy", "react", "--yes"];
        args.extend(flags);
        args.push("When does it sail?");
        let ran = run(&shell, &provider, &args);
        assert_eq!(ran.code, 0, "{ran:?}");
        let request = provider.requests()[1].to_string();
        assert!(request.contains(told), "{flags:?}: {request}");
    }
    let fetched = runtime.block_on(site.received_requests()).unwrap();
    assert_eq!(fetched.len(), 1, "what is refused is not asked for");
}

/// What settings say about their hosts does not apply to those that a flag names.
#[test]
fn hosts_of_a_flag_are_private_only_where_a_flag_says_so() {
    let shell = Shell::new();
    user(&shell, "[tools]\nhosts = [\"wiki.intern\"]\nprivate_hosts = true\n");
    let provider = Provider::new(vec![
        Provider::call("web_fetch", &json!({"url": "http://127.0.0.1:9/"})),
        Provider::text("I have seen it."),
    ]);
    let args = ["--strategy", "react", "--yes", "--allow-net", "*", "What is there?"];
    assert_eq!(run(&shell, &provider, &args).code, 0);
    let request = provider.requests()[1].to_string();
    assert!(request.contains("127.0.0.1 is not an address on the public internet"), "{request}");
}
