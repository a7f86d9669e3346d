//! Two machines that share a database and an object store, each with a folder of its own.

use crate::payloads::{conversation, reference, text};
use crate::shell::{Ran, Shell};
use foldback_testkit::postgres::Server;
use foldback_testkit::s3::{PLACE, S3Server, SECRET};
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, SystemTime};

/// The size of a text that no record holds.
const LARGE: usize = 1_100_000;

/// Two machines, and the servers that they share.
struct Machines {
    shells: [Shell; 2],
    database: Server,
    address: String,
    objects: S3Server,
    key: Option<&'static str>,
}

impl Machines {
    fn start(test: &str) -> Option<Self> {
        let objects = S3Server::start()?;
        let database = Server::start(test)?;
        let address = database.database();
        Some(Self { shells: [Shell::new(), Shell::new()], database, address, objects, key: None })
    }

    fn command(&self, machine: usize, arguments: &[&str]) -> Command {
        let shell = &self.shells[machine];
        let mut command = shell.command();
        self.objects.serve(&mut command);
        command.env("FOLDBACK_POSTGRES_URL", &self.address);
        command.envs(self.key.map(|key| ("FOLDBACK_ENCRYPTION_KEY", key)));
        command.arg("--store").arg(shell.store()).args(["--engine", "postgres"]).args(arguments);
        command
    }

    fn run(&self, machine: usize, arguments: &[&str]) -> Ran {
        let ran = Ran::of(self.command(machine, arguments).output().unwrap());
        assert!(!ran.stderr.contains(SECRET) && !ran.text().contains(SECRET));
        ran
    }

    #[track_caller]
    fn ok(&self, machine: usize, arguments: &[&str]) -> String {
        let ran = self.run(machine, arguments);
        assert_eq!(ran.code, 0, "{arguments:?}: {ran:?}");
        ran.text().to_owned()
    }

    /// Writes a conversation with one large result, to be imported.
    fn file(&self, todo: &str, text: &str) -> String {
        self.shells[0].write(&format!("{todo}.jsonl"), conversation(todo, text))
    }
}

/// What one machine records, another loads and forgets; damage is noticed.
fn payloads_are_shared(machines: &Machines) {
    let (large, small) = (text(LARGE, 1), text(300_000, 2));
    machines.ok(0, &["import", &machines.file("large", &large)]);
    machines.ok(0, &["import", &machines.file("small", &small)]);
    let [object] = <[_; 1]>::try_from(machines.objects.payloads()).unwrap();

    let load = ["load", "--todo", "large", "--match", "canary", &reference(&large)];
    assert!(machines.ok(1, &load).contains("canary-1"));
    let exported = machines.ok(1, &["export", "--todo", "large"]);
    assert_eq!(exported, machines.ok(0, &["export", "--todo", "large"]));
    assert!(machines.ok(1, &["export", "--todo", "small"]).contains("canary-2"));
    machines.ok(1, &["verify"]);
    machines.ok(1, &["doctor", "--repair"]);
    for shell in &machines.shells {
        assert!(!shell.store().join("payloads").exists());
    }
    // The records say where payloads are, so a machine that does not name the place cannot take them for missing.
    let unnamed = machines.run(1, &["--payloads", "store", "verify"]);
    assert_eq!(unnamed.code, 2, "{unnamed:?}");
    assert!(unnamed.stderr.contains(&format!("--payloads {PLACE}")), "{}", unnamed.stderr);

    let whole = std::fs::read(&object).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    std::fs::write(&object, flipped).unwrap();
    let damaged = machines.run(1, &["export", "--todo", "large"]);
    assert_eq!(damaged.code, 1, "{damaged:?}");
    let verified = machines.run(1, &["verify"]);
    assert_eq!(verified.code, 1, "{verified:?}");
    assert!(verified.text().contains("do not match their checksum"), "{verified:?}");
    assert!(machines.ok(1, &["export", "--todo", "small"]).contains("canary-2"));
    std::fs::write(&object, whole).unwrap();
    assert_eq!(machines.ok(1, &["export", "--todo", "large"]), exported);

    // A copy needs neither server.
    let copy = machines.shells[1].path("copy");
    let copy = copy.to_str().unwrap();
    machines.ok(1, &["backup", copy]);
    let mut copied = machines.shells[1].command();
    copied.envs(machines.key.map(|key| ("FOLDBACK_ENCRYPTION_KEY", key)));
    copied.args(["--store", copy, "export", "--todo", "large"]);
    assert_eq!(Ran::of(copied.output().unwrap()).text(), exported);

    machines.ok(1, &["forget", "--todo", "large"]);
    assert!(machines.objects.payloads().is_empty());
    assert_eq!(machines.run(0, &load).code, 1);
    machines.ok(0, &["doctor"]);
}

#[test]
fn pg8_what_one_machine_records_another_loads_and_forgets() {
    let test = "pg8_what_one_machine_records_another_loads_and_forgets";
    let Some(machines) = Machines::start(test) else { return };
    payloads_are_shared(&machines);
}

#[test]
fn pg8_machines_share_the_payloads_of_an_encrypted_store() {
    let test = "pg8_machines_share_the_payloads_of_an_encrypted_store";
    let Some(mut machines) = Machines::start(test) else { return };
    machines.key = Some("3f1d6c0a9b8e7f5d4c3b2a190817263544536271809fa0b1c2d3e4f506172839");
    payloads_are_shared(&machines);
}

#[test]
fn pg8_an_object_store_out_of_reach_is_an_error_and_loses_nothing() {
    let test = "pg8_an_object_store_out_of_reach_is_an_error_and_loses_nothing";
    let Some(mut machines) = Machines::start(test) else { return };
    machines.ok(0, &["import", &machines.file("before", &text(LARGE, 1))]);
    let exported = machines.ok(1, &["export", "--todo", "before"]);
    machines.objects.kill();
    let after = machines.file("after", &text(LARGE, 2));
    for arguments in [&["import", &after][..], &["export", "--todo", "before"]] {
        let ran = machines.run(1, arguments);
        assert_eq!(ran.code, 3, "{ran:?}");
        assert!(
            ran.stderr.contains(PLACE) && ran.stderr.contains("out of reach"),
            "{}",
            ran.stderr
        );
    }
    // What needs no large payload goes on.
    machines.ok(1, &["import", &machines.file("small", &text(300_000, 3))]);
    assert!(machines.ok(0, &["export", "--todo", "small"]).contains("canary-3"));
    machines.objects.start_again();
    machines.ok(0, &["doctor"]);
    assert_eq!(machines.ok(0, &["export", "--todo", "before"]), exported);
    machines.ok(1, &["import", &after]);
    assert!(machines.ok(0, &["export", "--todo", "after"]).contains("canary-2"));
}

#[test]
fn pg8_a_sweep_spares_what_a_writer_has_put_and_not_recorded() {
    let test = "pg8_a_sweep_spares_what_a_writer_has_put_and_not_recorded";
    let Some(machines) = Machines::start(test) else { return };
    machines.ok(0, &["import", &machines.file("kept", &text(LARGE, 1))]);
    let record = |message: Value| {
        let input = machines.shells[0].write("message.jsonl", format!("{message}\n"));
        let mut writer = machines.command(0, &["record", "--todo", "kept"]);
        writer.stdin(std::fs::File::open(input).unwrap());
        writer.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let call =
        |id| json!({"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}});
    let calls = json!({"role": "assistant", "content": "", "tool_calls": [call("2"), call("3")]});
    assert!(record(calls).wait().unwrap().success());

    // A writer has put its object, and its commit waits for a lock.
    let put = |call: &str, seed| {
        let lock = "LOCK TABLE foldback_record IN SHARE MODE";
        let lock = machines.database.hold(&machines.address, lock);
        let before = machines.objects.payloads().len();
        let result = json!({"role": "tool", "tool_call_id": call, "content": text(LARGE, seed)});
        let mut writer = record(result);
        while machines.objects.payloads().len() == before {
            assert!(
                writer.try_wait().unwrap().is_none(),
                "the writer ended before it put anything"
            );
            sleep(Duration::from_millis(5));
        }
        (writer, lock)
    };
    let (writer, lock) = put("2", 2);
    machines.ok(1, &["doctor", "--repair"]);
    drop(lock);
    let ran = Ran::of(writer.wait_with_output().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    let exported = machines.ok(1, &["export", "--todo", "kept"]);
    assert!(exported.contains("canary-1") && exported.contains("canary-2"));
    let recorded = machines.objects.payloads();
    assert_eq!(recorded.len(), 2);

    // Another one is killed there, and its commit with it.
    let (mut writer, lock) = put("3", 3);
    writer.kill().unwrap();
    writer.wait().unwrap();
    let waits =
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    machines.database.sql("postgres", waits);
    drop(lock);
    machines.ok(1, &["doctor", "--repair"]);
    assert_eq!(machines.objects.payloads().len(), 3);
    // Two days later it is known that nobody will record it.
    for object in machines.objects.payloads() {
        let file = std::fs::File::options().write(true).open(object).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(48 * 3600)).unwrap();
    }
    machines.ok(1, &["doctor", "--repair"]);
    assert_eq!(machines.objects.payloads(), recorded);
    assert_eq!(machines.ok(1, &["export", "--todo", "kept"]), exported);
    machines.ok(0, &["verify"]);
}
