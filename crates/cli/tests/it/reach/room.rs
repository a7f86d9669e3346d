//! A folder, a store and a scripted model for each list of commands.

use super::check::Seen;
use super::page::Ways;
use super::tasks::{FILES, Script};
use super::words::words;
use crate::provider::Provider;
use crate::shell::{Ran, Shell, line};
use foldback::{Memory, Options};
use foldback_core::{Message, TodoId};
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The pause between two pieces of a streamed answer.
const PAUSE: Duration = Duration::from_millis(20);

/// Stores that are broken on purpose, below the folder of a room.
const DAMAGED: &str = "damaged";
const BEHIND: &str = "behind";

/// Makes identical rooms: the examples, and a store with them.
pub(super) struct Rooms(Shell);

impl Rooms {
    pub(super) fn new() -> Self {
        let shell = Shell::new();
        let examples = examples();
        let paths: Vec<&str> = examples.iter().map(|path| path.to_str().unwrap()).collect();
        shell.ok(&[&["import"], paths.as_slice()].concat());
        break_stores(&shell);
        Self(shell)
    }

    /// Runs the commands in a room of their own.
    pub(super) fn run(&self, ways: &Ways, script: Script) -> Result<Seen, String> {
        let shell = Shell::new();
        copy(&self.0.store(), &shell.store());
        copy(Path::new(FILES), &shell.path("work"));
        for store in [DAMAGED, BEHIND] {
            copy(&self.0.path(store), &shell.path("work").join(store));
        }
        shell.folders(&["work/examples"]);
        for path in examples() {
            std::fs::copy(&path, shell.path("work/examples").join(path.file_name().unwrap()))
                .unwrap();
        }
        if !ways.settings.is_empty() {
            shell.write("settings.toml", toml(&ways.settings));
        }
        let script = Arc::new(Mutex::new(script));
        let answers = Arc::clone(&script);
        let provider = Provider::answering(move |asked| answers.lock().unwrap().answer(asked));
        let provider = provider.slowly(PAUSE);
        let mut seen = Seen::default();
        for line in &ways.commands {
            seen.printed(line, &Ran::of(command(&shell, &provider, line).output().unwrap()));
        }
        for (head, body) in provider.whole_requests() {
            seen.asked(&head, &body);
        }
        match script.lock().unwrap().left() {
            0 => Ok(seen),
            left => Err(format!("{left} answers of the script were not asked for:\n{seen}")),
        }
    }
}

/// Makes a store in which a bit of message 3 is flipped, and one that has lost its last write.
fn break_stores(shell: &Shell) {
    let messages = (0..12).map(|n| Message::user(&format!("第{n}条 canary-{n:04}")));
    let file = shell.write("notes.jsonl", line("notes", messages.collect()));
    let database = |store: &str| shell.path(store).join("store.sqlite");
    for store in [DAMAGED, BEHIND] {
        let store = shell.path(store);
        let ran = shell.run_bare(&["--store", store.to_str().unwrap(), "import", &file]);
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    let mut bytes = std::fs::read(database(DAMAGED)).unwrap();
    let canary = b"canary-0003";
    let at = bytes.windows(canary.len()).position(|window| window == canary).unwrap();
    bytes[at] ^= 1;
    std::fs::write(database(DAMAGED), bytes).unwrap();

    let before = std::fs::read(database(BEHIND)).unwrap();
    let memory = Memory::open(&shell.path(BEHIND), Options::default()).unwrap();
    let mut session = memory.session(&TodoId::new("notes").unwrap()).unwrap();
    session.record(Message::user("This is written, and lost.")).unwrap();
    drop((session, memory));
    std::fs::write(database(BEHIND), before).unwrap();
}

fn command(shell: &Shell, provider: &Provider, line: &str) -> Command {
    let mut command = shell.command();
    let mut words = words(line);
    let input = words.iter().position(|word| word == "<").map(|at| words.split_off(at));
    command.current_dir(shell.path("work")).args(&words[1..]);
    if let Some([_, path]) = input.as_deref() {
        command.stdin(File::open(shell.path("work").join(path)).unwrap());
    }
    command.env("FOLDBACK_STORE", shell.store()).env("FOLDBACK_MODEL", "scripted");
    command.env("FOLDBACK_BASE_URL", provider.url());
    if shell.path("settings.toml").exists() {
        command.env("FOLDBACK_CONFIG", shell.path("settings.toml"));
    }
    command
}

/// Settings as a file, with those of one section together.
fn toml(settings: &[String]) -> String {
    let mut sections: Vec<(&str, String)> = Vec::new();
    for setting in settings {
        let (section, line) = setting.split_once(']').unwrap_or((setting, ""));
        match sections.iter_mut().find(|(it, _)| *it == section) {
            Some((_, lines)) => lines.push_str(&format!("{}\n", line.trim())),
            None => sections.push((section, format!("{}\n", line.trim()))),
        }
    }
    sections.iter().map(|(section, lines)| format!("{section}]\n{lines}")).collect()
}

/// The recorded conversations that foldback comes with.
fn examples() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(super::root().join("examples")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|it| it == "jsonl")).collect();
    paths.sort();
    paths
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// The texts of a value, wherever they are.
pub(super) fn texts(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text}\n"),
        Value::Array(all) => all.iter().map(texts).collect(),
        Value::Object(all) => all.values().map(texts).collect(),
        _ => String::new(),
    }
}
