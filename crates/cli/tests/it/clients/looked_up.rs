//! What a model looks up within a turn, unseen by its client.

use super::{CLAUDE, OPENCODE, OPENCODE_MODEL, client, reading, wrapped_with};
use crate::shell::Shell;
use foldback_testkit::upstream::{Answer, Said, Seen};
use serde_json::{Value, json};

/// A model that looks up what was said before, beside reading a file, in each turn in which it can.
fn recalling(file: &str) -> impl Fn(&Seen) -> Answer + Send + Sync + 'static {
    let (file, reads) = (file.to_owned(), reading(file));
    move |seen| {
        let body = seen.json();
        let list = if body["input"].is_array() { &body["input"] } else { &body["messages"] };
        let last = list.as_array().and_then(|list| list.last()).unwrap_or(&Value::Null);
        let has_tools = String::from_utf8_lossy(&seen.body).contains(DECLARED);
        let is_answered = ["tool_result", "tool_call_id", "function_call_output"];
        if is_answered.iter().any(|key| last.to_string().contains(key)) || !has_tools {
            return reads(seen);
        }
        let id = |what: &str| format!("{what}_{}", seen.body.len());
        let said = Said::text("I look it up.").thinking("Was it not 7001?");
        let own = match body["tools"].to_string().contains("\"name\":\"Read\"") {
            true => said.call(&id("toolu_read"), "Read", json!({ "file_path": file })),
            false => said,
        };
        let query = json!({ "query": "which port is it" });
        Answer::Said(own.call(&id("toolu_ours"), "foldback_search_block", query))
    }
}

/// How a request declares our tool, in any API.
const DECLARED: &str = r#""name":"foldback_search_block","description""#;

/// GW9, GW10: released clients see nothing of what their model looks up, and their next requests are valid.
#[test]
fn gw9_clients_see_nothing_of_what_is_looked_up() {
    type Case<'c> = (&'c str, Vec<&'c str>, Vec<&'c str>, &'c [(&'c str, &'c str)]);
    let cases: [Case<'_>; 3] = [
        (
            "bin/claude",
            vec!["-p", "--allowedTools=Read"],
            vec!["-p", "--allowedTools=Read", "--continue"],
            &CLAUDE,
        ),
        (
            "bin/opencode",
            [&["run"], &OPENCODE_MODEL[..]].concat(),
            [&["run", "--continue"], &OPENCODE_MODEL[..]].concat(),
            &OPENCODE,
        ),
        (
            "bin/codex",
            vec!["exec", "--skip-git-repo-check"],
            vec!["exec", "--skip-git-repo-check", "resume", "--last"],
            &[],
        ),
    ];
    for (name, begin, go_on, env) in cases {
        let Some(program) = client(name) else { continue };
        let shell = Shell::new();
        shell.folders(&["home", "work"]);
        let file = shell.write("work/a.txt", "The port is 7001.\n");
        for turn in 0..6 {
            let how = if turn == 0 { &begin } else { &go_on };
            let prompt = format!("Which port is it? Read a.txt. {turn}");
            let args = [&how[..], &[&prompt]].concat();
            let options = ["--recall", "always"];
            let (ran, seen) =
                wrapped_with(&shell, &program, &args, env, &options, recalling(&file));
            assert_eq!(ran.code, 0, "{name}, turn {turn}: {ran:?}");
            assert!(!ran.text().contains("foldback"), "{name}, turn {turn}: {ran:?}");
            let text = |seen: &Seen| String::from_utf8_lossy(&seen.body).into_owned();
            let declared = seen.iter().filter(|seen| text(seen).contains(DECLARED));
            let looked: Vec<_> =
                declared.map(|seen| text(seen).matches("toolu_ours").count()).collect();
            if turn == 5 {
                // Two for each turn before, and one round with both.
                assert!(looked.last().is_some_and(|ours| *ours >= 6), "{looked:?}");
            }
        }
    }
}

/// GW9: the providers' own libraries make one message of a turn in which something was looked up.
#[test]
fn gw9_the_libraries_of_providers_get_one_answer() {
    let Some(python) = client("sdk/bin/python") else { return };
    let script = r#"
import sys, anthropic, openai
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI
todo = {"x-foldback-todo": sys.argv[1]}
schema = {"type": "object", "properties": {}}
said = []
for n in range(6):
    said += [{"role": "user", "content": f"Which port is it? {n}"}, {"role": "assistant", "content": f"It is 7001. {n}"}]
asked = said + [{"role": "user", "content": "Well?"}]
claude = anthropic.Anthropic(default_headers=todo)
more = dict(model="m", max_tokens=9, messages=asked, tools=[{"name": "wait", "input_schema": schema}])
words = lambda message: "|".join(block.text for block in message.content if block.type == "text")
print(words(claude.messages.create(**more)))
with claude.messages.stream(**more) as stream:
    print(words(stream.get_final_message()))
openai_ = openai.OpenAI(default_headers=todo)
function = {"name": "wait", "parameters": schema}
more = dict(model="m", messages=asked, tools=[{"type": "function", "function": function}])
one = lambda text: text.replace("\n\n", "|")
print(one(openai_.chat.completions.create(**more).choices[0].message.content))
with openai_.chat.completions.stream(**more) as stream:
    print(one(stream.get_final_completion().choices[0].message.content))
more = dict(model="m", input=asked, tools=[{"type": "function", **function, "strict": False}])
words = lambda answer: "|".join(item.content[0].text for item in answer.output if item.type == "message")
print(words(openai_.responses.create(**more)))
with openai_.responses.stream(**more) as stream:
    print(words(stream.get_final_response()))
for model in [ChatAnthropic(model="m", default_headers=todo), ChatOpenAI(model="m", default_headers=todo)]:
    model = model.bind_tools([{"name": "wait", "description": "Waits.", "input_schema": schema}] if isinstance(model, ChatAnthropic) else more["tools"])
    print(one(model.invoke(asked).text))
    text = ""
    for piece in model.stream(asked):
        text += piece.text
    print(one(text))
"#;
    let shell = Shell::new();
    shell.folders(&["home", "work"]);
    for expected in ["The port is 7001.", "I look it up.|The port is 7001."] {
        let (args, options) = (["-c", script, "port"], ["--recall", "always"]);
        let (ran, seen) = wrapped_with(&shell, &python, &args, &[], &options, recalling("a.txt"));
        assert_eq!(ran.code, 0, "{ran:?}");
        let lines: Vec<_> = ran.text().lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 10, "{ran:?}");
        for (n, line) in lines.iter().enumerate() {
            assert_eq!(
                line.replace("it up.The", "it up.|The"),
                expected,
                "{n}: {ran:?} {}",
                seen.len()
            );
        }
    }
}
