//! The programs of `examples/`: each runs, and ends with what it demonstrates.

use foldback_testkit::alone;
use std::error::Error;
use std::process::Command;

/// Set if a test runs the example itself, and does not check its output.
const IS_RUNNING: &str = "FOLDBACK_RUNS_AN_EXAMPLE";

/// Runs an example in a separate process, which runs only this test, and searches its output for words.
fn prints(test: &str, main: fn() -> Result<(), Box<dyn Error>>, words: &str) {
    if std::env::var_os(IS_RUNNING).is_some() {
        return main().unwrap();
    }
    let mut alone = alone(test);
    alone.env(IS_RUNNING, "1");
    // An example that accepts a folder for its store takes the first argument as one.
    let folder = tempfile::tempdir().unwrap();
    let ran = alone.current_dir(&folder).output().unwrap();
    let printed = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{printed}{}", String::from_utf8_lossy(&ran.stderr));
    assert!(printed.contains(words), "it does not print {words:?}:\n{printed}");
}

fn is_there(program: &str) -> bool {
    let is_there = Command::new(program).arg("--version").output().is_ok();
    if !is_there {
        eprintln!("SKIPPED an example: there is no {program}");
    }
    is_there
}

/// The test of an example: its module, words near the end of what it prints, and a program that it runs.
macro_rules! example {
    ($name:ident, $path:literal, $words:literal $(, $program:literal)?) => {
        #[path = $path]
        mod $name;

        #[test]
        fn $name() {
            if true $(&& is_there($program))? {
                prints(concat!("examples::", stringify!($name)), $name::main, $words);
            }
        }
    };
}

example!(adaptive, "../../examples/adaptive.rs", "=> Ness has 2.1 m.");
example!(
    city_and_flight,
    "../../examples/city_and_flight.rs",
    "step2: book_flight {\"to\":\"沈阳\"}"
);
example!(deep_search, "../../examples/deep_search.rs", "7 calls of the model, 3 searches");
example!(
    flow,
    "../../examples/flow.rs",
    "Version 1.4: Search finds 中文 words; Faster start. What has no test yet was left out."
);
example!(
    one_crate_alone,
    "../../examples/one_crate_alone.rs",
    "b_holiday_004  messages 10 to 11  closed by end"
);
example!(
    own_agent,
    "../../examples/own_agent.rs",
    "recalled: #3 user: The gauge at Holm reads low since April: add 37 mm to its levels."
);
example!(
    own_context_manager,
    "../../examples/own_context_manager.rs",
    "asked for the password hint: #3 user: Note this for later: my password hint is 'blue heron'."
);
example!(
    own_strategy,
    "../../examples/own_strategy.rs",
    "<status>success</status><data>high 6.4 m, low -0.2 m</data></tool_result>
</tool_results>
3 votes, by majority
=> 6.4 m"
);
example!(
    parallel_search,
    "../../examples/parallel_search.rs",
    "<data>In 10 years, he will be 64</data>",
    "python3"
);
example!(record_and_fold, "../../examples/record_and_fold.rs", "closed b_read-the-reports_006");
example!(
    search_and_load,
    "../../examples/search_and_load.rs",
    "#2 tool(refund) of #1: refunded 39.90 EUR, id RF-7719"
);
example!(slides, "../../examples/slides.rs", "the deck was whole in none of them: true");
example!(
    step_by_step,
    "../../examples/step_by_step.rs",
    "10 messages are kept in the todo retry-limit"
);
example!(
    weather_and_restaurant,
    "../../examples/weather_and_restaurant.rs",
    "answer: 是晴天，西湖餐厅已经订好了。"
);

#[test]
fn every_example_is_run() {
    let folder = crate::story::workspace_root().join("examples");
    let names = std::fs::read_dir(folder).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let run = include_str!("examples.rs");
    let is_left_out = |name: &String| {
        name.ends_with(".rs") && !run.contains(&format!("\"../../examples/{name}\""))
    };
    assert_eq!(names.filter(is_left_out).collect::<Vec<_>>(), Vec::<String>::new());
}
