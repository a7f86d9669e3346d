//! Every command on a database that two machines share.

use crate::gateway::{Gateway, has_curl, provider, until};
use crate::shell::{Ran, Shell, line, quay};
use foldback_testkit::postgres::Server;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// Runs a command on a machine, which has a folder of its own.
fn run(machine: &Shell, address: &str, args: &[&str]) -> Ran {
    let mut command = machine.command();
    command.env("FOLDBACK_POSTGRES_URL", address).arg("--store").arg(machine.store());
    Ran::of(command.args(["--engine", "postgres"]).args(args).output().unwrap())
}

#[track_caller]
fn ok(machine: &Shell, address: &str, args: &[&str]) -> String {
    let ran = run(machine, address, args);
    assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
    String::from_utf8(ran.stdout).unwrap()
}

/// PG1: what one machine records, another finds, loads, and forgets; a copy needs no server.
#[test]
fn pg1_two_machines_share_one_memory() {
    let Some(server) = Server::start("pg1_two_machines_share_one_memory") else { return };
    let address = server.database();
    let [one, other] = [Shell::new(), Shell::new()];
    let none = run(&other, &address, &["todos"]);
    assert_eq!(none.code, 1, "{}", none.stderr);
    assert!(none.stderr.contains("there is no store at postgres://127.0.0.1:"), "{}", none.stderr);
    let file = one.write("quay.jsonl", line("quay", quay()));
    ok(&one, &address, &["import", &file]);
    let searched = ["search", "--todo", "quay", "max_attempts"];
    let found = ok(&one, &address, &searched);
    assert!(found.contains("max_attempts"), "{found}");
    assert_eq!(ok(&other, &address, &searched), found);
    assert_eq!(
        ok(&other, &address, &["load", "--todo", "quay", "b_quay_001"]),
        ok(&one, &address, &["load", "--todo", "quay", "b_quay_001"])
    );
    let exported = ok(&other, &address, &["export", "--todo", "quay"]);
    assert_eq!(exported, ok(&one, &address, &["export", "--todo", "quay"]));
    let format = std::fs::read_to_string(one.store().join("FORMAT")).unwrap();
    assert!(format.contains("engine postgres\ndatabase "), "{format}");
    ok(&other, &address, &["verify"]);
    ok(&other, &address, &["doctor"]);
    let copy = other.path("copy");
    ok(&other, &address, &["backup", copy.to_str().unwrap()]);
    let copied = other.run_bare(&["--store", copy.to_str().unwrap(), "export", "--todo", "quay"]);
    assert_eq!(String::from_utf8(copied.stdout).unwrap(), exported, "{}", copied.stderr);
    ok(&other, &address, &["forget", "--todo", "quay"]);
    let gone = run(&one, &address, &searched);
    assert_eq!(gone.code, 1, "{}", gone.stderr);
    assert_eq!(ok(&one, &address, &["todos"]), "");
}

/// PG14: a store in a folder moves into a database, and its copy into another one.
#[test]
fn pg14_a_store_moves_into_a_database() {
    let Some(server) = Server::start("pg14_a_store_moves_into_a_database") else { return };
    let [one, other] = [Shell::with_quay(), Shell::new()];
    let addresses = [server.database(), server.database()];
    let exported = one.ok(&["export", "--todo", "quay"]).text().to_owned();
    one.ok(&["backup", "copy"]);
    let copy = one.path("copy").display().to_string();
    let restored = ok(&other, &addresses[0], &["restore", &copy]);
    assert!(restored.starts_with("restored: 1 todo with "), "{restored}");
    assert_eq!(ok(&other, &addresses[0], &["export", "--todo", "quay"]), exported);
    let copy = other.path("copy").display().to_string();
    ok(&other, &addresses[0], &["backup", &copy]);
    let third = Shell::new();
    ok(&third, &addresses[1], &["restore", &copy]);
    assert_eq!(ok(&third, &addresses[1], &["export", "--todo", "quay"]), exported);
    ok(&third, &addresses[1], &["verify"]);
    let node = other.store().display().to_string();
    let refused = run(&third, &server.database(), &["restore", &node]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("copy it with `foldback backup`"), "{}", refused.stderr);
}

/// PG4: no output shows the password, whatever is wrong with an address.
#[test]
fn pg4_no_output_shows_a_password() {
    let shell = Shell::new();
    for address in [
        "postgres://me:hunter2@127.0.0.1:1/memory",
        "postgres://me:hunter2@nowhere.invalid/memory?sslmode=disable",
        "postgres://me:hun?ter2=hunter2@h/memory",
        "postgre://me:hunter2@127.0.0.1/memory",
        "postgres://me:hunter2@h/memory?sslmode=hunter2",
    ] {
        for args in [&["todos"][..], &["settings"], &["doctor"]] {
            let mut command = shell.command();
            command.arg("--store").arg(shell.store()).args(["--engine", address]).args(args);
            let ran = Ran::of(command.output().unwrap());
            let said = format!("{}{}", String::from_utf8_lossy(&ran.stdout), ran.stderr);
            assert!(!said.contains("hunter2"), "{address}: {said}");
            assert!(args == ["settings"] || ran.code != 0, "{address} {args:?}");
        }
    }
    let missing = shell.run(&["--engine", "postgres", "todos"]);
    assert_eq!(missing.code, 2);
    assert!(missing.stderr.contains("FOLDBACK_POSTGRES_URL"), "{}", missing.stderr);
    std::fs::write(
        shell.path("foldback.toml"),
        "[memory]\nengine = \"postgres://me:hunter2@h/db\"\n",
    )
    .unwrap();
    let refused = shell.run(&["todos"]);
    assert!(refused.code != 0 && !refused.stderr.contains("hunter2"), "{}", refused.stderr);
}

/// GW12: while the database is away, a gateway that is asked to end waits for it, and a second signal ends that.
#[test]
fn gw12_a_second_signal_ends_the_wait_for_a_database() {
    let name = "gw12_a_second_signal_ends_the_wait_for_a_database";
    let Some(mut server) = Server::start(name) else { return };
    if !has_curl() {
        return;
    }
    let (shell, runtime) = (Shell::new(), Runtime::new().unwrap());
    let provider = provider(&runtime);
    let address = server.database();
    ok(&shell, &address, &["init"]);
    let mut command = shell.command();
    command.env("FOLDBACK_POSTGRES_URL", &address).arg("--store").arg(shell.store());
    command.args(["--engine", "postgres"]);
    let mut gateway = Gateway::start(&mut command, &["--anthropic-url", &provider.url]);
    server.stop();
    let answer = gateway.ask("Which berth?").wait_with_output().unwrap().stdout;
    assert!(String::from_utf8(answer).unwrap().contains("berth 七"));
    gateway.terminate();
    sleep(Duration::from_secs(3));
    assert!(!gateway.has_ended(), "it did not wait");
    let begin = Instant::now();
    gateway.terminate();
    assert_eq!(gateway.code(), Some(0));
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
}

/// GW12: a gateway whose database is away passes requests on, and records once the database is there; a database that
/// leaves afterwards changes nothing for a supervisor's probes.
#[test]
fn gw12_a_gateway_waits_for_its_database() {
    let Some(mut server) = Server::start("gw12_a_gateway_waits_for_its_database") else { return };
    if !has_curl() {
        return;
    }
    let (shell, runtime) = (Shell::new(), Runtime::new().unwrap());
    let provider = provider(&runtime);
    let address = server.database();
    let ready = ok(&shell, &address, &["init"]);
    assert!(ready.starts_with("the store is ready (postgres, "), "{ready}");
    assert_eq!(ok(&shell, &address, &["todos"]), "");
    server.stop();
    let mut command = shell.command();
    command.env("FOLDBACK_POSTGRES_URL", &address).arg("--store").arg(shell.store());
    command.args(["--engine", "postgres"]);
    let gateway = Gateway::start(&mut command, &["--anthropic-url", &provider.url]);
    let pages = || ["live", "ready", "health"].map(|page| gateway.status(page));
    assert_eq!(gateway.told["recording"], false);
    assert_eq!(pages(), ["200", "503", "200"]);
    let asked = |question: &str| {
        let answer = gateway.ask(question).wait_with_output().unwrap().stdout;
        String::from_utf8(answer).unwrap()
    };
    assert!(asked("Who is there?").contains("berth 七"));
    server.restart();
    until("it has its store", || gateway.status("ready") == "200");
    assert!(asked("Which berth?").contains("berth 七"));
    until("it is recorded", || ok(&shell, &address, &["todos"]).contains("shell-agent-"));
    server.stop();
    assert_eq!(pages(), ["200", "200", "200"]);
    assert!(asked("Which pier?").contains("berth 七"));
    server.restart();
    gateway.terminate();
    assert_eq!(gateway.code(), Some(0));
    let todos = ok(&shell, &address, &["todos", "--json"]);
    assert_eq!(todos.matches("todo_id").count(), 2, "{todos}");
}
