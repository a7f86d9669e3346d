//! `foldback run --documents`: a deep search whose links can be followed from the workspace.

use crate::provider::{Provider, Turn};
use crate::run::run;
use crate::shell::Shell;
use serde_json::{Value, json};
use std::path::Path;

/// A model that searches for these words, and quotes the last line of each source.
pub(crate) fn reader(queries: &'static [&'static str]) -> Provider {
    Provider::answering(move |asked| answer(asked, queries))
}

fn answer(asked: &Value, queries: &[&str]) -> Turn {
    let text = |n: usize| asked["messages"][n]["content"].as_str().unwrap();
    let (system, user) = (text(0), text(1));
    if system.contains("rationale") {
        return Provider::text(&json!({"query": queries, "rationale": "both"}).to_string());
    }
    if system.contains("is_sufficient") {
        let enough = json!({"is_sufficient": true, "knowledge_gap": "", "follow_up_queries": []});
        return Provider::text(&enough.to_string());
    }
    if user.starts_with("Query:") {
        let sources = user.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let said = sources.filter(Value::is_object).map(|source| {
            let last = source["text"].as_str().unwrap().lines().last().unwrap();
            format!("{last} [citation:{}]", source["number"])
        });
        return Provider::text(&said.collect::<Vec<_>>().join("\n"));
    }
    Provider::text(user.split("The summaries:\n\n").nth(1).unwrap())
}

/// The text that each link of an answer leads to, from a folder on.
fn followed(answer: &str, from: &Path) -> Vec<String> {
    let places = answer.split("](").skip(1).map(|rest| rest.split(')').next().unwrap());
    let read = |place: &str| {
        let (path, bytes) = place.split_once("#bytes=").unwrap();
        let (start, end) = bytes.split_once('-').unwrap();
        let file = std::fs::read(from.join(path)).unwrap();
        String::from_utf8(file[start.parse().unwrap()..end.parse().unwrap()].to_vec()).unwrap()
    };
    places.map(read).collect()
}

fn documents(shell: &Shell, folder: &str) {
    shell.folders(&[folder]);
    let tides = "# Tides\n\nAt spring tides the water falls 4.7 metres.\n";
    let ferry = "# 渡船\n\n“苍鹭”号在七点十分开船。\n";
    shell.write(&format!("{folder}/tides.md"), tides);
    shell.write(&format!("{folder}/渡船.md"), ferry);
    shell.write(&format!("{folder}/scan.pdf"), b"%PDF-1.4");
}

/// DS9: links lead to the bytes, from the workspace if the documents are in it, and from anywhere if they are not.
/// Skipped files are reported.
#[test]
fn ds9_links_can_be_followed_from_the_workspace() {
    for (folder, from) in [("work/docs", "docs/"), ("library", "/")] {
        let shell = Shell::new();
        documents(&shell, folder);
        let provider = reader(&["water at spring tides", "苍鹭 开船"]);
        let whole = shell.path(folder).to_str().unwrap().to_owned();
        let args =
            ["--strategy", "deep-search", "--documents", &whole, "How far does it fall? 几点开船?"];
        let ran = run(&shell, &provider, &args);
        assert_eq!(ran.code, 0, "{ran:?}");
        let answer = ran.text();
        assert!(
            answer.contains("falls 4.7 metres.") && answer.contains("七点十分开船。"),
            "{answer}"
        );
        assert!(answer.contains(&format!("]({from}")), "{answer}");
        let read = followed(answer, &shell.path("work"));
        assert!(read.iter().any(|text| text.contains("falls 4.7 metres")), "{answer}");
        assert!(read.iter().any(|text| text.contains("“苍鹭”号在七点十分开船")), "{answer}");
        let told = ran.stderr.replace('\n', " ");
        assert!(told.contains("2 documents to search; skipped: scan.pdf ("), "{told}");
    }
}

#[test]
fn a_folder_without_documents_ends_the_run_before_the_model_is_asked() {
    let shell = Shell::new();
    shell.folders(&["empty"]);
    let provider = reader(&["water at spring tides"]);
    let empty = shell.path("empty").to_str().unwrap().to_owned();
    let args = ["--strategy", "deep-search", "--documents", &empty, "--id", "search", "Why?"];
    let ran = run(&shell, &provider, &args);
    assert!(ran.code == 2 && ran.stderr.contains("there is no document in"), "{ran:?}");
    assert!(provider.requests().is_empty());
    // With documents it continues.
    documents(&shell, "empty");
    let ran = shell.ok(&["run", "--resume", "search"]);
    assert!(ran.text().contains("4.7 metres"), "{ran:?}");
}

/// An agent that writes in its workspace can turn a folder there into a link: that does not choose what a later turn
/// reads.
#[cfg(unix)]
#[test]
fn a_folder_that_leads_elsewhere_by_now_is_refused() {
    let shell = Shell::new();
    documents(&shell, "work/docs");
    documents(&shell, "library");
    let provider = reader(&["water at spring tides"]);
    let whole = shell.path("work/docs").to_str().unwrap().to_owned();
    let args = ["--strategy", "deep-search", "--documents", &whole, "--id", "sea", "How far?"];
    assert_eq!(run(&shell, &provider, &args).code, 0);
    std::fs::rename(shell.path("work/docs"), shell.path("work/old")).unwrap();
    std::os::unix::fs::symlink(shell.path("library"), shell.path("work/docs")).unwrap();
    let asked = provider.requests().len();
    let ran = shell.run(&["run", "--todo", "sea", "And now?"]);
    let told = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(ran.code == 2 && told.contains("now leads elsewhere"), "{ran:?}");
    assert_eq!(provider.requests().len(), asked);
    // A user who names it again means it.
    shell.ok(&["run", "--todo", "sea", "--documents", &whole, "And now?"]);
}
