//! The pages of `foldback bench`: they hold what was measured, load nothing, and are the same again.

use crate::bench_savings::POLICIES;
use crate::shell::{Shell, line, quay};
use serde_json::{Value, json};

const HOSTILE: &str = "<script>alert(1)</script>\"'&amp;渡轮";

/// The page that a measurement writes. It is made twice, and comes out as the same bytes.
#[track_caller]
fn page(shell: &Shell, which: &str, files: &[&str]) -> String {
    let [first, second] = ["first.html", "second.html"].map(|name| {
        let path = shell.path(name);
        let args = [&["bench", which, "--report", path.to_str().unwrap()], files].concat();
        let ran = shell.run_bare(&args);
        assert_eq!(ran.code, 0, "{ran:?}");
        std::fs::read_to_string(path).unwrap()
    });
    assert_eq!(first, second);
    // It loads nothing: the only address in it is the name of SVG.
    let rest = first.replace("http://www.w3.org/2000/svg", "");
    for word in ["http", "src=", "<script", "<link", "@import", "url("] {
        assert!(!rest.contains(word), "{word}: {rest}");
    }
    assert_eq!(first.matches("<svg").count(), first.matches("</svg>").count());
    first
}

#[track_caller]
fn holds(page: &str, words: &[&str]) {
    for word in words {
        assert!(page.contains(word), "{word}: {page}");
    }
}

/// Talks of 24 messages: half of them about a ferry, half about an oven.
fn messages() -> Vec<Value> {
    let message = |i: usize| {
        let text = match i {
            0..12 => format!("渡轮 {i} 什么时候开？"),
            _ => format!("When is oven {i} cleaned?"),
        };
        let minute = if i < 12 { 0 } else { 40 };
        let at = format!("2025-03-01T09:{minute:02}:{i:02}Z");
        json!({ "role": "user", "id": format!("m{i}"), "content": text, "timestamp": at })
    };
    (0..24).map(message).collect()
}

#[test]
fn the_page_of_savings_shows_every_policy() {
    let shell = Shell::new();
    // The number that the call needs is a fact.
    let call = json!({ "id": "c1", "type": "function", "function": {
        "name": "find", "arguments": json!({ "number": "K-77411" }).to_string() } });
    let asks = [
        json!({ "role": "user", "content": "Where is crate K-77411? 货箱在哪里？" }),
        json!({ "role": "assistant", "content": null, "tool_calls": [call] }),
        json!({ "role": "tool", "tool_call_id": "c1", "content": "On the quay." }),
        json!({ "role": "assistant", "content": "On the quay." }),
    ];
    let asks = format!("{}\n", json!({ "id": "asks", "messages": asks }));
    let file = shell.write("runs.jsonl", line(HOSTILE, quay()) + &line("quay", quay()) + &asks);
    let page = page(&shell, "savings", &[&file]);
    for name in POLICIES {
        // At the end of its curve, in the key below, and where it is explained.
        holds(&page, &[&format!("\n{name}\n</text>"), &format!("</i>{name}</span>")]);
        holds(&page, &[&format!("<dt>{name}</dt>")]);
    }
    holds(
        &page,
        &[
            "Agent runs: 3",
            "&lt;script&gt;alert(1)",
            "visible or recalled, agent runs",
            "Tokens of each call: agent runs",
            "Cost against length: agent runs",
            "Facts that were needed later: agent runs",
            "</i>visible</span>",
            "Saved by length: agent runs",
            "With recalls and without",
            "an extractive summary of the same size stands in",
        ],
    );
}

/// Lengths that are far apart form classes of their own: there is a curve of the cost over them.
#[test]
fn the_cost_is_drawn_against_the_length() {
    let shell = Shell::new();
    let talk = |n: usize, words: usize| {
        let mut messages = Vec::new();
        for i in 0..8 {
            let role = if i % 2 == 0 { "user" } else { "assistant" };
            messages.push(
                json!({ "role": role, "content": format!("harbour {n} {i} ").repeat(words) }),
            );
        }
        format!("{}\n", json!({ "id": format!("talk {n} {words}"), "messages": messages }))
    };
    let lines: String = [1, 200].iter().flat_map(|w| (0..3).map(move |n| talk(n, *w))).collect();
    let file = shell.write("talks.jsonl", lines);
    let page = page(&shell, "savings", &[&file]);
    holds(
        &page,
        &["cost, times that of full", "<th>0-1k (3)</th>", "Over 1 % less, in the median"],
    );
}

#[test]
fn the_page_of_retrieval_shows_every_ranking_and_cut() {
    let shell = Shell::new();
    let qa = json!([
        { "question": "When is oven 14 cleaned?", "category": HOSTILE, "evidence": ["m14"] },
        { "question": "渡轮 3 什么时候开？", "category": "4", "evidence": ["m3"] },
        { "question": "Who sings?", "category": 5, "evidence": ["m2"] },
    ]);
    let file = |name: &str| {
        let id = format!("{HOSTILE} {name}");
        let talk = json!({ "id": id, "messages": messages(), "qa": qa });
        shell.write(&format!("{name}.jsonl"), format!("{talk}\n"))
    };
    let files = ["one", "two"].map(file);
    let page = page(&shell, "retrieval", &[&files[0], &files[1]]);
    for name in ["blocks, fused", "blocks, words", "blocks, meaning", "means, fused"] {
        holds(&page, &[&format!("\n{name}\n</text>")]);
    }
    for name in ["windows 4, fused", "windows 6, words"] {
        holds(&page, &[&format!("\n{name}\n</text>")]);
    }
    holds(
        &page,
        &[
            "4 questions, vectors by",
            "Left out: 2 of category 5",
            "In 2,000 tokens the memory's own search finds",
            "<h2>one</h2>",
            "<h2>two</h2>",
            "&lt;script&gt;",
        ],
    );
}

#[test]
fn the_page_of_segmentation_shows_every_way_of_cutting() {
    let shell = Shell::new();
    let talk = json!({ "id": HOSTILE, "messages": messages(), "boundaries": [12] });
    let file = shell.write("<b>talks.jsonl", format!("{talk}\n"));
    let page = page(&shell, "segmentation", &[&file]);
    for name in [
        "topic cuts",
        "all borders of blocks",
        "TextTiling",
        "TextTiling by message",
        "even cuts",
        "no cut",
    ] {
        holds(&page, &[&format!("\n{name}\n</text>")]);
    }
    holds(
        &page,
        &[
            "</i>Pk<",
            "</i>WindowDiff<",
            "&lt;b&gt;talks, 1 conversation: topic cuts have a Pk of 0.000",
        ],
    );
}

/// A lack of anything to draw is no reason to fail.
#[test]
fn a_page_without_figures_says_so() {
    let shell = Shell::new();
    let file = shell.write("quay.jsonl", line("quay", quay()));
    let page = page(&shell, "segmentation", &[&file]);
    assert!(!page.contains("<svg"), "{page}");
    holds(&page, &["Sessions of one task"]);
}
