//! The settings of a model that reach its requests: varied words, a grammar, several servers, a header.

use crate::provider::Provider;
use crate::run::{command, run};
use crate::settings::user;
use crate::shell::{Ran, Shell};
use serde_json::{Value, json};

/// A model that lists files once, and then finishes.
fn lister() -> Provider {
    Provider::answering(|asked| {
        let messages = asked["messages"].as_array().unwrap();
        match messages.iter().any(|message| message["role"] == "tool") {
            true => Provider::text("Nothing is here."),
            false => Provider::call("file_list", &json!({"path": "."})),
        }
    })
}

fn result_of(provider: &Provider) -> String {
    let asked = provider.requests();
    let messages = asked.last().unwrap()["messages"].as_array().unwrap();
    let result = messages.iter().find(|message| message["role"] == "tool").unwrap();
    result["content"].as_str().unwrap().to_owned()
}

#[test]
fn results_stand_in_varied_words_where_that_is_set() {
    let told = |settings: &str| {
        let shell = Shell::new();
        user(&shell, settings);
        let provider = lister();
        let ran = run(&shell, &provider, &["--strategy", "react", "What is here?"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        result_of(&provider)
    };
    let plain = told("");
    let seeds: Vec<String> =
        (0..4).map(|seed| told(&format!("[model]\ndiversity = {seed}\n"))).collect();
    assert!(seeds.iter().all(|varied| varied.contains(&plain)), "letter by letter: {seeds:?}");
    assert!(seeds.iter().any(|varied| *varied != plain), "{seeds:?}");
    assert!(
        seeds.iter().any(|varied| *varied != seeds[0]),
        "another seed has other words: {seeds:?}"
    );
}

#[test]
fn a_request_carries_a_grammar_where_that_is_set() {
    let shell = Shell::new();
    user(&shell, "[model]\ntool_calls = \"hermes\"\ngrammar = true\n");
    let provider = Provider::new(vec![Provider::text("Nothing.")]);
    assert_eq!(run(&shell, &provider, &["--strategy", "react", "What is here?"]).code, 0);
    let asked = &provider.requests()[0];
    let grammar = asked["grammar"].as_str().unwrap();
    assert!(grammar.contains("root") && grammar.contains("file_list"), "{grammar}");
    assert!(asked.get("tools").is_none());
}

/// Each session stays at one of the servers, and several are spread over them; the header names it to a router.
#[test]
fn a_session_stays_at_one_of_several_servers() {
    let shell = Shell::new();
    let servers = [lister(), lister()];
    let [first, second] = servers.each_ref().map(Provider::url);
    user(&shell, &format!("[model]\nworkers = [\"{second}\"]\n"));
    let asked = || servers.each_ref().map(|server| server.requests().len());
    let mut homes = [0, 0];
    for n in 0..12 {
        let before = asked();
        let id = format!("run-{n}");
        let mut run = command(&shell, &servers[0], &["--strategy", "react", "--id", &id, "Look"]);
        assert_eq!(Ran::of(run.output().unwrap()).code, 0);
        let after = asked();
        let taken: Vec<usize> = (0..2).map(|at| after[at] - before[at]).collect();
        assert!(taken.contains(&0), "a session is at one of them: {taken:?}");
        homes[usize::from(taken[0] == 0)] += 1;
    }
    assert!(homes.iter().all(|runs| *runs > 0), "{homes:?} of {first} and {second}");
}

/// A model that is named for a role uses the server of the main one, and receives its key; at another address it does
/// not.
#[test]
fn a_key_is_shown_to_the_server_that_it_is_for() {
    let shell = Shell::new();
    let (main, other) = (lister(), lister());
    let role = "[[tools.calculators]]\ntool = \"file_list\"\nmodel = \"small\"\n";
    for (place, server) in
        [(String::new(), &main), (format!("base_url = \"{}\"\n", other.url()), &other)]
    {
        user(
            &shell,
            &format!(
                "[model]\napi_key = \"sk-of-main\"\n\n[models.small]\nname = \"small\"\n{place}\n{role}"
            ),
        );
        let ran = run(&shell, &main, &["--strategy", "react", "What is here?"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        let small: Vec<Value> =
            server.requests().into_iter().filter(|request| request["model"] == "small").collect();
        assert!(!small.is_empty(), "the role's model was asked");
    }
    assert!(main.keys().iter().all(|key| key.as_deref() == Some("Bearer sk-of-main")));
    assert!(other.keys().iter().all(Option::is_none), "{:?}", other.keys());
}

/// A conversation stays at its server, and settings that by then name another one give it neither their key nor their
/// further servers.
#[test]
fn a_key_of_today_is_not_shown_to_the_server_of_before() {
    let shell = Shell::new();
    let (before, now) = (lister(), lister());
    user(&shell, "[model]\napi_key = \"sk-of-before\"\n");
    let args = ["--strategy", "react", "--id", "look", "What is here?"];
    assert_eq!(run(&shell, &before, &args).code, 0);
    let at = now.url();
    user(
        &shell,
        &format!("[model]\nbase_url = \"{at}\"\napi_key = \"sk-of-now\"\nworkers = [\"{at}\"]\n"),
    );
    let asked = before.keys().len();
    assert_eq!(shell.run(&["run", "--todo", "look", "--max-calls", "1", "And now?"]).code, 0);
    let keys = before.keys().split_off(asked);
    assert!(!keys.is_empty() && keys.iter().all(Option::is_none), "{keys:?}");
    assert!(now.requests().is_empty());
}
