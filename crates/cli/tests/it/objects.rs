//! Large payloads on a server that speaks S3.

use crate::payloads::{conversation, reference, text};
use crate::shell::{Ran, Shell};
use foldback_testkit::s3::{PLACE, S3Server, SECRET};
use std::path::PathBuf;

/// A shell whose commands keep large payloads on a server.
struct Remote {
    shell: Shell,
    server: S3Server,
}

impl Remote {
    fn start() -> Option<Self> {
        Some(Self { shell: Shell::new(), server: S3Server::start()? })
    }

    fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = self.shell.command();
        self.server.serve(&mut command);
        command.arg("--store").arg(self.shell.store()).args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        let ran = Ran::of(self.command(arguments).output().unwrap());
        assert!(
            !ran.stderr.contains(SECRET) && !String::from_utf8_lossy(&ran.stdout).contains(SECRET)
        );
        ran
    }

    #[track_caller]
    fn ok(&self, arguments: &[&str]) -> Ran {
        let ran = self.run(arguments);
        assert_eq!(ran.code, 0, "{arguments:?}: {ran:?}");
        ran
    }

    /// Imports a conversation with one large result, and returns what an export has to give.
    fn import(&self, todo: &str, text: &str) -> String {
        let file = self.shell.write(&format!("{todo}.jsonl"), conversation(todo, text));
        self.ok(&["import", &file]);
        self.ok(&["export", "--todo", todo]).text().to_owned()
    }
}

#[test]
fn bs9_payloads_on_a_server_come_back_and_are_forgotten() {
    let Some(remote) = Remote::start() else { return };
    let small = text(300_000, 1);
    let large = text(400_000, 2);
    let exported = remote.import("small", &small);
    assert!(exported.contains("canary-1"));
    assert!(remote.import("large", &large).contains("canary-2"));
    assert!(!remote.shell.store().join("payloads").exists());
    assert_eq!(remote.server.payloads().len(), 2);
    // And the mark of the place.
    assert_eq!(remote.server.objects().len(), 3, "{:?}", remote.server.objects());
    remote.ok(&["doctor"]);
    let loaded = remote.ok(&["load", "--todo", "small", "--match", "canary", &reference(&small)]);
    assert!(loaded.text().contains("canary-1"), "{loaded:?}");

    remote.ok(&["forget", "--todo", "large"]);
    assert_eq!(remote.server.payloads().len(), 1);
    for file in remote.server.files() {
        let bytes = std::fs::read(&file).unwrap();
        assert!(!holds(&bytes, "canary-2"), "{}", file.display());
    }
    remote.ok(&["doctor"]);
    remote.ok(&["forget", "--todo", "small"]);
    assert!(remote.server.payloads().is_empty());
}

#[test]
fn bs9_what_happens_to_an_object_is_named() {
    let Some(mut remote) = Remote::start() else { return };
    let exported = remote.import("log", &text(300_000, 1));
    let kept = remote.import("kept", &text(300_000, 2));
    let [first, second] = <[PathBuf; 2]>::try_from(remote.server.payloads()).unwrap();
    let whole = std::fs::read(&first).unwrap();
    let mut flipped = whole.clone();
    let middle = flipped.len() / 2;
    flipped[middle] ^= 1;
    let truncated = whole[..whole.len() / 2].to_vec();
    for (bytes, what) in [
        (Some(flipped), "do not match their checksum"),
        (Some(truncated), "its file"),
        (Some(std::fs::read(&second).unwrap()), "its file"),
        (Some(Vec::new()), "its file is truncated"),
        (None, "its file is missing"),
    ] {
        match &bytes {
            Some(bytes) => std::fs::write(&first, bytes).unwrap(),
            None => std::fs::remove_file(&first).unwrap(),
        }
        for command in ["verify", "doctor"] {
            let ran = remote.run(&[command]);
            assert_eq!(ran.code, 1, "{what}: {ran:?}");
            assert!(
                ran.text().contains("payload 1") && ran.text().contains(what),
                "{what}: {ran:?}"
            );
        }
        // The other conversation is whole.
        let results = [("log", &exported), ("kept", &kept)].map(|(todo, exported)| {
            let ran = remote.run(&["export", "--todo", todo]);
            (ran.code == 0 && ran.text() == exported.as_str(), ran.code)
        });
        let mut codes = results.map(|(_, code)| code);
        codes.sort_unstable();
        assert_eq!(codes, [0, 1], "{what}");
        assert!(results.iter().any(|(is_whole, _)| *is_whole), "{what}");
        std::fs::write(&first, &whole).unwrap();
        remote.ok(&["verify"]);
    }

    // A server that is gone is an error of the resource, and not damage.
    remote.server.kill();
    let ran = remote.run(&["export", "--todo", "log"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.stderr.contains(PLACE), "{}", ran.stderr);
    // What needs no payload works.
    remote.ok(&["search", "--todo", "log", "canary"]);
    remote.ok(&["blocks", "--todo", "log"]);
    remote.server.start_again();
    remote.ok(&["doctor"]);
}

#[test]
fn bs9_wrong_credentials_are_an_error_that_shows_none() {
    let Some(remote) = Remote::start() else { return };
    let file = remote.shell.write("log.jsonl", conversation("log", &text(300_000, 1)));
    let mut import = remote.command(&["import", &file]);
    let ran = Ran::of(import.env("AWS_SECRET_ACCESS_KEY", "another-secret").output().unwrap());
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.stderr.contains("credentials from the environment"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("another-secret"));
}

#[test]
fn bs9_two_stores_at_one_prefix_do_not_meet() {
    let Some(remote) = Remote::start() else { return };
    let first = remote.import("log", &text(300_000, 1));
    let other = Remote { shell: Shell::new(), server: remote.server };
    let second = other.import("log", &text(300_000, 2));
    assert_ne!(first, second);
    assert_eq!(other.server.payloads().len(), 2);
    other.ok(&["forget", "--todo", "log"]);
    assert_eq!(other.server.payloads().len(), 1);
    let first_again = Remote { shell: remote.shell, server: other.server };
    assert_eq!(first_again.ok(&["export", "--todo", "log"]).text(), first);
}

fn holds(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|window| window == word.as_bytes())
}
