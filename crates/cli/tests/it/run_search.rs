//! `foldback run --search`: a deep search in each kind of source.

use crate::provider::Provider;
use crate::run::run;
use crate::run_documents::reader;
use crate::run_mcp::harbour;
use crate::shell::{Ran, Shell};
use serde_json::json;
use wiremock::matchers::{method, path, query_param};
use wiremock::{Mock, MockServer, ResponseTemplate};

/// A deep search for these words.
fn searched(shell: &Shell, provider: &Provider, kind: &str, more: &[&str]) -> Ran {
    let mut args = vec!["--strategy", "deep-search", "--search", kind];
    args.extend(more);
    args.push("How long is the lease? 发送要多久?");
    run(shell, provider, &args)
}

/// DS9: a search engine's pages are cited by their addresses. One in a private network is asked only if that is
/// allowed.
#[test]
fn ds9_a_search_engine_is_asked() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let engine = runtime.block_on(async {
        let engine = MockServer::start().await;
        let found = json!({"query": "x", "results": [
            {"url": "https://notices.example/租约", "title": "Lease", "content": "It is thirty seconds.",
             "engine": "brave", "score": 1.5},
        ]});
        let asked = Mock::given(method("GET")).and(path("/search")).and(query_param("format", "json"));
        let asked = asked.and(query_param("q", "lease 租约"));
        asked.respond_with(ResponseTemplate::new(200).set_body_json(found)).mount(&engine).await;
        engine
    });
    let (shell, kind) = (Shell::new(), format!("searxng:{}", engine.uri()));
    let provider = reader(&["lease 租约"]);
    let ran = searched(&shell, &provider, &kind, &["--allow-private-net"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let link = "It is thirty seconds. [Lease](https://notices.example/租约)";
    assert!(ran.text().contains(link), "{}", ran.text());
    let ran = searched(&shell, &provider, &kind, &[]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(
        ran.stderr.contains("127.0.0.1 is not an address on the public internet"),
        "{}",
        ran.stderr
    );
    assert_eq!(runtime.block_on(engine.received_requests()).unwrap().len(), 1);
}

/// DS9: the tool of a server searches, and what it finds is cited by its addresses.
#[test]
fn ds9_the_tool_of_a_server_searches() {
    let shell = Shell::new();
    let Some(servers) = harbour(&shell) else { return };
    let provider = reader(&["lease 租约"]);
    let ran = searched(&shell, &provider, "mcp:harbour/search", &["--mcp", &servers]);
    assert_eq!(ran.code, 0, "{ran:?}");
    for link in [
        "thirty seconds. [Lease](https://notices.example/lease)",
        "最多需要四十五秒。 [发送](https://notices.example/发送)",
    ] {
        assert!(ran.text().contains(link), "{}", ran.text());
    }
    let ran = searched(&shell, &provider, "mcp:harbour/find", &["--mcp", &servers]);
    assert_eq!(ran.code, 2, "{ran:?}");
    let told = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        told.contains("available tools: harbour_make, harbour_render, harbour_search"),
        "{told}"
    );
    let ran = searched(&shell, &provider, "mcp:harbour/search", &[]);
    assert!(ran.code == 2 && ran.stderr.contains("--mcp FILE"), "{ran:?}");
}

/// DS9, TD2: another conversation is searched, which is a grant on record; its blocks are cited by name.
#[test]
fn ds9_another_conversation_is_searched() {
    let shell = Shell::with_quay();
    let provider = reader(&["lease of a notice"]);
    let ran = searched(&shell, &provider, "memory:quay", &["--id", "asked"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.text().contains("(b_quay_0"), "{}", ran.text());
    let granted = shell.json(&["todos", "--grants"]).to_string();
    assert!(granted.contains("b_quay_001"), "{granted}");
    let ran = searched(&shell, &provider, "memory:nobody", &[]);
    assert!(ran.code != 0 && ran.stderr.contains("nobody"), "{ran:?}");
}

#[test]
fn what_cannot_be_searched_is_refused_before_anything_begins() {
    let shell = Shell::new();
    let provider = Provider::new(Vec::new());
    for (kind, words) in [
        ("library", "expected folder:DIR, mcp:SERVER/TOOL, searxng:URL, memory or memory:TODO"),
        ("folder:not-there", "the folder of documents not-there cannot be used"),
    ] {
        let ran = searched(&shell, &provider, kind, &[]);
        assert_eq!(ran.code, 2, "{ran:?}");
        let told = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains(words), "{told}");
    }
    let ran = run(&shell, &provider, &["--strategy", "deep-search", "Why?"]);
    assert!(ran.code == 2 && ran.stderr.contains("--search"), "{ran:?}");
    assert_eq!(provider.requests().len(), 0);
}
