//! GW8, GW19: what a conversation costs through the gateway.

use foldback::{Conversation, Envelope};
use foldback_bench::Case;
use foldback_bench::gateway::{Bills, Config, Talk, measure};
use foldback_core::{CacheTerms, Message, Prices};
use foldback_gateway::ProxyTrial;
use foldback_testkit::transcript;
use std::fmt::Write as _;
use std::net::TcpListener;
use std::time::Duration;

/// An agent that reads files of this many lines each.
fn reads(files: &[usize]) -> Vec<Message> {
    let mut script = "system: You read files.\nuser: Read every file.\n".to_owned();
    for (n, lines) in files.iter().enumerate() {
        writeln!(script, "assistant: I read file {n}.").unwrap();
        writeln!(script, "assistant> read_file({{\"path\": \"src/f{n}.rs\"}})").unwrap();
        writeln!(script, "tool: file {n}").unwrap();
        for line in 0..*lines {
            let (port, service) = (n * 31 + line, line % 7);
            writeln!(script, "  {n}.{line}: 端口 {port} belongs to service s{service}").unwrap();
        }
    }
    script.push_str("assistant: That was all.\n");
    transcript(&script)
}

fn talk(id: &str, messages: Vec<Message>) -> Option<Talk> {
    let conversation = Conversation::from_parts(Some(id.to_owned()), messages, Envelope::default());
    Talk::of(&Case::new(id.to_owned(), "a/file.jsonl".to_owned(), conversation))
}

fn measured(files: &[usize], config: &Config) -> Bills {
    measure(&[talk("files", reads(files)).unwrap()], config, &|| ()).unwrap()
}

#[test]
fn gw8_gw19_a_long_conversation_costs_less_and_never_much_more() {
    let terms = vec![CacheTerms::default()];
    let pauses = Config::RHYTHMS.to_vec();
    let bills = measured(&[100; 70], &Config { terms, pauses, proxy: None });
    let one = &bills.conversations[0];
    assert_eq!((one.requests, one.bills.len()), (71, 2));
    assert!(one.tokens > 100_000, "{}", one.tokens);
    for (bill, least) in one.bills.iter().zip([0.35, 0.6]) {
        assert!(bill.saved > least, "{bill:?}");
        assert!(bill.dearer <= 0.02, "{bill:?}");
        assert!(bill.saved_by_clearing > 0.0 && bill.saved_by_clearing < bill.saved, "{bill:?}");
    }
    // The caches expired in every pause.
    assert_eq!((one.bills[1].direct.read, one.bills[1].gateway.read), (0, 0));
    assert_eq!(bills.sums.len(), 4, "all conversations, and the long ones");
}

/// A request that is too short to be folded is charged as it was sent: a large result stayed in it.
#[test]
fn gw8_gw19_short_requests_are_charged_as_they_were_sent() {
    let mut files = vec![15; 40];
    files[2] = 150;
    let bills = measured(
        &files,
        &Config {
            terms: Config::default().terms,
            pauses: vec![Duration::from_secs(10)],
            proxy: None,
        },
    );
    let bills = &bills.conversations[0].bills;
    assert!(bills[0].saved > 0.0, "{bills:?}");
    for bill in bills {
        assert!(bill.dearer <= 0.02, "{bill:?}");
    }
}

#[test]
fn gw8_gw19_a_short_conversation_is_billed_as_it_is() {
    let bills = measured(&[100; 3], &Config::default());
    let one = &bills.conversations[0];
    assert_eq!((one.requests, one.bills.len()), (4, 8));
    for bill in &one.bills {
        assert_eq!((bill.direct, bill.saved, bill.dearest_at), (bill.gateway, 0.0, 0));
        assert_eq!(bill.direct, bill.clearing);
    }
    // Counted by hand: without a cache each request costs its tokens.
    let prices = Prices { read: 1.0, write: 1.0, plain: 1.0 };
    let terms = CacheTerms { prices, life: Duration::ZERO, ..CacheTerms::default() };
    let bills = measured(
        &[100; 3],
        &Config { terms: vec![terms], pauses: vec![Duration::from_secs(1)], proxy: None },
    );
    let direct = bills.conversations[0].bills[0].direct;
    assert_eq!((direct.cost as u64, direct.requests), (direct.written + direct.plain, 4));
    assert_eq!(direct.read, 0);
}

#[test]
fn where_no_model_speaks_nothing_is_played() {
    assert!(talk("one", transcript("user: hello\nuser: hello?")).is_none());
    // What precedes the first answer is sent, even if the answer begins the recording.
    let bills = measure(
        &[talk("two", transcript("assistant: hello")).unwrap()],
        &Config::default(),
        &|| (),
    );
    assert_eq!(bills.unwrap().conversations[0].requests, 1);
}

#[test]
fn gw19_the_same_conversation_gives_the_same_figures() {
    let config = Config { terms: vec![CacheTerms::default()], pauses: Vec::new(), proxy: None };
    let [one, two] = [0, 1].map(|_| measured(&[100; 20], &config));
    assert!(one.conversations[0].bills[1].saved > 0.1, "{one:?}");
    assert_eq!(format!("{one:?}"), format!("{two:?}"));
}

#[test]
fn gw19_another_proxy_is_billed_as_it_reaches_the_provider() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    // A proxy that does nothing: the provider itself.
    let proxy = ProxyTrial::new(&format!("http://{free}/"), free).unwrap();
    let config = Config { proxy: Some(proxy), ..Config::default() };
    let talks = ["one", "two"].map(|id| talk(id, reads(&[100; 5])).unwrap());
    let bills = measure(&talks, &config, &|| ()).unwrap();
    for bill in bills.conversations.iter().flat_map(|one| &one.bills) {
        assert_eq!((bill.proxy, bill.saved_by_proxy), (Some(bill.direct), Some(0.0)));
    }
    let sum = &bills.sums[0];
    assert_eq!((sum.proxy, sum.saved_by_proxy), (Some(sum.direct), Some(0.0)));
    // One without anyone to answer.
    let proxy = ProxyTrial::new("http://127.0.0.1:9", "127.0.0.1:0".parse().unwrap()).unwrap();
    let config = Config { proxy: Some(proxy), ..Config::default() };
    let failed = measure(&talks, &config, &|| ()).unwrap_err().to_string();
    assert!(failed.contains("the proxy at http://127.0.0.1:9 does not answer"), "{failed}");
}
