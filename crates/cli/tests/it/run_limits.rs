//! `foldback run --max-...`: what is reported when a limit is reached, and how a run is resumed.

use crate::provider::Provider;
use crate::run::{only_run, run};
use crate::shell::Shell;
use serde_json::json;
use std::time::Duration;

/// A file of settings with prices, as an argument.
fn priced(shell: &Shell) -> String {
    let prices = "{ input = 10.0, output = 10.0, cached_read = 1.0, cached_write = 10.0 }";
    shell.write("prices.toml", format!("[model]\ntoken_prices = {prices}\n"))
}

/// S10: whichever limit is reached, the run says which, ends with 1, and continues with the line that it prints.
#[test]
fn s10_a_bound_is_told_and_a_run_goes_on_with_more() {
    // A call takes 110 tokens, which cost 0.0011.
    for (flag, bound, resource, raised) in [
        ("--max-tokens", "100", "tokens", " --max-tokens 210"),
        ("--max-cost", "0.001", "money", " --max-cost 0.0021"),
        ("--max-time", "1s", "time", ""),
    ] {
        let shell = Shell::new();
        let late = if flag == "--max-time" { Duration::from_secs(60) } else { Duration::ZERO };
        let mut asked = 0;
        let provider = Provider::answering(move |_| {
            asked += 1;
            match asked {
                1 => Provider::call("file_list", &json!({})).after(late),
                _ => Provider::text("全部看过了。"),
            }
        });
        let prices = priced(&shell);
        let args =
            ["--settings", &prices, "--strategy", "react", "--id", "see", flag, bound, "See all"];
        let ran = run(&shell, &provider, &args);
        assert_eq!(ran.code, 1, "{flag}: {ran:?}");
        let listed = only_run(&shell);
        let why = format!("{flag} {bound} is reached: it may spend no more {resource}");
        assert_eq!((&listed["state"], &listed["why"]), (&json!("stopped"), &json!(why)));
        assert!(ran.stderr.contains(&format!("✗ may spend no more {resource}")), "{}", ran.stderr);
        let goes_on = format!("foldback run --resume see{raised}\n");
        assert!(ran.text().ends_with(&goes_on), "{flag}: {}", ran.text());

        let mut resume: Vec<&str> = goes_on.split_whitespace().skip(1).collect();
        if flag == "--max-time" {
            // It has another second, which may be little on a busy machine.
            resume.extend([flag, "10m"]);
        }
        let ran = shell.run(&resume);
        assert!(ran.code == 0 && ran.text().contains("全部看过了。"), "{flag}: {ran:?}");
    }
}

#[test]
fn money_bounds_nothing_where_prices_are_not_known() {
    let shell = Shell::new();
    let provider = Provider::new(Vec::new());
    let ran = run(&shell, &provider, &["--max-cost", "1", "See all"]);
    assert_eq!((ran.code, ran.stderr.lines().count()), (2, 1), "{ran:?}");
    assert!(ran.stderr.contains("token_prices"), "{}", ran.stderr);
    assert_eq!(shell.json(&["sessions"]), json!([]));
}

/// S10: a sub-agent that never ends takes its part of what is left, and the run gets to its answer.
#[test]
fn s10_a_sub_agent_does_not_eat_everything() {
    for (share, calls) in [(None, 1 + 5 + 1), (Some("20"), 1 + 2 + 1)] {
        let shell = Shell::new();
        let provider = Provider::answering(|asked| {
            let messages = asked["messages"].as_array().unwrap();
            let results = messages.iter().filter(|message| message["role"] == "tool").count();
            match (messages[1]["content"].as_str().unwrap().contains("ITEM"), results) {
                (true, n) => Provider::call("file_list", &json!({"path": ".", "depth": n + 1})),
                (false, 0) => {
                    Provider::call("delegate", &json!({"items": [{"id": "a", "task": "ITEM"}]}))
                }
                (false, _) => Provider::text("The item was not done."),
            }
        });
        let mut args = vec!["--strategy", "react", "--max-calls", "11"];
        args.extend(share.map(|share| ["--sub-agent-share", share]).iter().flatten());
        args.push("Have it done");
        let ran = run(&shell, &provider, &args);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!(provider.requests().len(), calls, "{ran:?}");
        let told = "a may spend no more calls of the model of its share";
        assert!(ran.stderr.contains(told), "{}", ran.stderr);
    }
    let ran = Shell::new().run_bare(&["run", "x", "--sub-agent-share", "0"]);
    assert!(ran.code == 2 && ran.stderr.contains("0 is not in 1..=100"), "{ran:?}");
}
