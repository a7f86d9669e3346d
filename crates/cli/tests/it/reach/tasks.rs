//! What the model answers to each task of the page: the files in `tasks/`.

use super::page::Ways;
use super::words::words;
use crate::provider::{Provider, Turn};
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashSet;
use std::path::Path;

/// The other contents of the folder, besides the examples.
pub(super) const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/reach/files");

/// All scripts.
pub(super) struct Tasks(Vec<Task>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Task {
    /// As it is typed.
    task: String,
    answers: Vec<Answer>,
}

/// One answer of the model.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    /// It is given to the first request that has this, and to no other.
    when: Option<String>,
    /// How often it is given, with the number of the time for `{n}`.
    times: Option<u32>,
    /// It is given to every such request, or to none.
    #[serde(default)]
    always: bool,
    /// Words, or JSON.
    say: Option<Value>,
    /// The words come piece by piece.
    #[serde(default)]
    pieces: bool,
    /// Name and arguments of each call.
    #[serde(default)]
    calls: Vec<(String, Value)>,
    /// Says what follows these words in the last message.
    copy: Option<String>,
}

/// Answers that are still to be given.
pub(super) struct Script(Vec<Answer>);

impl Tasks {
    pub(super) fn read() -> Self {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/reach/tasks"));
        let mut tasks = Vec::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let mut read: Vec<Task> = serde_json::from_str(&text)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            tasks.append(&mut read);
        }
        Self(tasks)
    }

    /// The tasks that a command names: as its arguments, or as lines of the file that it reads.
    fn of(&self, command: &str) -> Vec<&Task> {
        let mut words = words(command);
        if let Some(at) = words.iter().position(|word| word == "<") {
            let lines = std::fs::read_to_string(Path::new(FILES).join(&words[at + 1])).unwrap();
            words.extend(lines.lines().map(str::to_owned));
        }
        words.iter().filter_map(|word| self.0.iter().find(|it| it.task == *word)).collect()
    }

    /// The tasks that these commands name.
    pub(super) fn named_by(&self, ways: &Ways) -> Vec<&str> {
        let tasks = ways.commands.iter().flat_map(|command| self.of(command));
        tasks.map(|it| it.task.as_str()).collect()
    }

    /// What is wrong with scripts that no row names.
    pub(super) fn unnamed(&self, named: &HashSet<&str>) -> Vec<String> {
        let unnamed = self.0.iter().filter(|it| !named.contains(it.task.as_str()));
        unnamed.map(|it| format!("no row names the task {:?} of tasks/", it.task)).collect()
    }

    /// The answers to all tasks that these commands name, in order.
    pub(super) fn script(&self, ways: &Ways) -> Result<Script, String> {
        let mut answers = Vec::new();
        for command in &ways.commands {
            let tasks = self.of(command);
            let asks = words(command).iter().any(|word| word == "run" || word == "chat");
            let without =
                ["--demo", "--resume", "--help"].iter().any(|flag| command.contains(flag));
            if asks && tasks.is_empty() && !without {
                return Err(format!("tasks/ has no script for `{command}`"));
            }
            answers.extend(tasks.iter().flat_map(|task| task.answers.iter().flat_map(Answer::all)));
        }
        Ok(Script(answers))
    }
}

impl Answer {
    /// The answers in it.
    fn all(&self) -> Vec<Self> {
        let numbered = |n: u32| {
            let mut answer = self.clone();
            for (_, arguments) in &mut answer.calls {
                let text = arguments.to_string().replace("{n}", &n.to_string());
                *arguments = serde_json::from_str(&text).unwrap();
            }
            answer
        };
        (1..=self.times.unwrap_or(1)).map(numbered).collect()
    }
}

impl Script {
    /// The next answer to this request.
    pub(super) fn answer(&mut self, asked: &Value) -> Turn {
        let last = asked["messages"].as_array().and_then(|all| all.last()?["content"].as_str());
        let last = last.unwrap_or("").to_owned();
        let asked = asked.to_string();
        let fits = |it: &Answer| {
            let within = |when: &String| {
                asked.contains(Value::from(when.as_str()).to_string().trim_matches('"'))
            };
            it.when.as_ref().is_none_or(within)
        };
        let Some(at) = self.0.iter().position(fits) else {
            return Provider::refusal(400, "the script has no answer to this");
        };
        let is_kept = self.0[at].always;
        let answer = if is_kept { self.0[at].clone() } else { self.0.remove(at) };
        if let Some(words) = &answer.copy {
            return Provider::text(last.split_once(words).map_or("", |(_, behind)| behind));
        }
        match answer.say {
            Some(said) => {
                let text = said.as_str().map_or_else(|| said.to_string(), str::to_owned);
                if answer.pieces { Provider::pieces(&text) } else { Provider::text(&text) }
            }
            None => {
                let calls = answer.calls.iter();
                Provider::calls(
                    &calls.map(|(tool, it)| (tool.as_str(), it.clone())).collect::<Vec<_>>(),
                )
            }
        }
    }

    /// How many answers were never asked for.
    pub(super) fn left(&self) -> usize {
        self.0.iter().filter(|it| !it.always).count()
    }
}
