//! Tenants of one store, from the command line and behind one gateway.

use crate::gateway::{Gateway, has_curl, provider, until};
use crate::shell::{Ran, Shell, line, quay};
use foldback_testkit::upstream::Upstream;
use serde_json::{Value, json};
use std::process::Command;
use tokio::runtime::Runtime;

/// Machines that share one store, or one that has it alone.
struct World {
    machines: [Shell; 2],
    /// The database, if they share one.
    address: Option<String>,
}

impl World {
    fn command(&self, machine: usize) -> Command {
        let machine = if self.address.is_some() { machine } else { 0 };
        let shell = &self.machines[machine];
        let mut command = shell.command();
        command.arg("--store").arg(shell.store());
        if let Some(address) = &self.address {
            command.env("FOLDBACK_POSTGRES_URL", address).args(["--engine", "postgres"]);
        }
        command
    }

    fn run(&self, machine: usize, args: &[&str]) -> Ran {
        Ran::of(self.command(machine).args(args).output().unwrap())
    }

    #[track_caller]
    fn ok(&self, machine: usize, args: &[&str]) -> String {
        let ran = self.run(machine, args);
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
        String::from_utf8(ran.stdout).unwrap()
    }

    fn todos(&self, machine: usize, of: &[&str]) -> Vec<String> {
        let listed = self.ok(machine, &[of, &["--json", "todos"]].concat());
        let listed: Value = serde_json::from_str(&listed).unwrap();
        let ids = listed.as_array().unwrap().iter().map(|row| row["todo_id"].as_str().unwrap());
        ids.map(str::to_owned).collect()
    }

    fn token(&self, args: &[&str]) -> String {
        let added = self.ok(0, &[&["--json", "tenant"], args].concat());
        let added: Value = serde_json::from_str(&added).unwrap();
        added["token"].as_str().unwrap().to_owned()
    }
}

/// Asks a gateway with a token, and returns the status and the answer.
fn ask(gateway: &Gateway, token: Option<&str>, page: &str, question: &str) -> (String, String) {
    let body = json!({
        "model": "m", "max_tokens": 9, "messages": [{ "role": "user", "content": question }],
    });
    let mut curl = Command::new("curl");
    curl.args(["-sS", "--noproxy", "*", "-w", "\n%{http_code}", "-A", "shell-agent/1"]);
    curl.args(["-H", "anthropic-version: 2023-06-01", "-H", "x-api-key: k-canary"]);
    if let Some(token) = token {
        curl.args(["-H", &format!("x-foldback-token: {token}")]);
    }
    if !question.is_empty() {
        curl.args(["-H", "content-type: application/json", "-d", &body.to_string()]);
    }
    let said = curl.arg(format!("{}{page}", gateway.url())).output().unwrap().stdout;
    let said = String::from_utf8(said).unwrap();
    let (answer, status) = said.rsplit_once('\n').unwrap();
    (status.to_owned(), answer.to_owned())
}

fn tell_apart(world: &World, provider: &Upstream) {
    let (acme, beta) = (["--tenant", "acme"], ["--tenant", "beta"]);
    let early = world.run(0, &[&acme[..], &["todos"]].concat());
    assert_eq!(early.code, 1, "{}", early.stderr);
    assert!(early.stderr.contains("there is no tenant acme"), "{}", early.stderr);
    let of_acme = world.token(&["add", "acme", "--max-todos", "1", "--max-messages", "50"]);
    let of_beta = world.token(&["add", "beta"]);
    for wrong in [
        &["tenant", "add", "acme"][..],
        &["--tenant", "acme", "gateway", "--tenants"],
        &["--tenant", "acme", "tenant", "list"],
    ] {
        assert_eq!(world.run(0, wrong).code, 2, "{wrong:?}");
    }
    // A client's server of tools works where the command that installed it did.
    let installed = world.ok(0, &[&acme[..], &["mcp", "install", "json"]].concat());
    assert!(installed.contains("\"--tenant\"") && installed.contains("\"acme\""), "{installed}");
    let mut command = world.command(0);
    let gateway = Gateway::start(&mut command, &["--tenants", "--anthropic-url", &provider.url]);
    let messages = "/v1/messages";
    for nobody in [None, Some("no token"), Some("")] {
        let (status, answer) = ask(&gateway, nobody, messages, "Which berth?");
        assert_eq!(status, "403", "{answer}");
    }
    for (token, question) in [(&of_acme, "Which berth is ours?"), (&of_beta, "哪个泊位是我们的？")]
    {
        let (status, answer) = ask(&gateway, Some(token), messages, question);
        assert!(status == "200" && answer.contains("berth 七"), "{status} {answer}");
    }
    // Each is in the store of its tenant, on every machine, and nowhere else.
    until("both are recorded", || [acme, beta].iter().all(|of| world.todos(1, of).len() == 1));
    assert_eq!(world.todos(1, &[]), [""; 0]);
    let of_beta_todo = world.todos(1, &beta).remove(0);
    let export = ["export", "--todo", &of_beta_todo];
    let exported = world.ok(1, &[&beta[..], &export].concat());
    assert!(exported.contains("哪个泊位是我们的？"), "{exported}");
    assert_eq!(world.run(1, &[&acme[..], &export].concat()).code, 1);
    assert_eq!(world.run(1, &export).code, 1);
    let search = ["search", "--todo", &of_beta_todo, "泊位"];
    let found = world.ok(1, &[&beta[..], &search].concat());
    assert!(found.contains("泊位"), "{found}");
    assert_eq!(world.run(1, &[&acme[..], &search].concat()).code, 1);
    // The limit of todos stops recording, and no request.
    let (status, _) = ask(&gateway, Some(&of_acme), messages, "Which pier, then?");
    assert_eq!(status, "200");
    let noticed = || ask(&gateway, Some(&of_acme), "/foldback/health", "").1;
    until("the limit is noticed", || noticed().contains("may hold at most 1 todo ("));
    let shown = world.ok(1, &["--json", "tenant", "show", "acme"]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((&shown["todos"], &shown["messages"]), (&json!(1), &json!(2)), "{shown}");
    assert_eq!(shown["limits"]["todos"], 1, "{shown}");
    // Each has figures of its own.
    let metrics = |token| ask(&gateway, Some(token), "/foldback/metrics", "").1;
    assert_ne!(metrics(&of_acme), metrics(&of_beta));
    // A new token replaces the old one, without a restart.
    let renewed = world.token(&["token", "beta"]);
    until("the new token is taken", || {
        ask(&gateway, Some(&renewed), "/foldback/health", "").0 == "200"
    });
    until("the old one is refused", || {
        ask(&gateway, Some(&of_beta), "/foldback/health", "").0 == "403"
    });
    // A tenant that only the environment names is not deleted.
    let mut careless = world.command(1);
    let careless = careless.env("FOLDBACK_TENANT", "acme");
    assert_eq!(Ran::of(careless.arg("forget").output().unwrap()).code, 2);
    assert_eq!(world.todos(1, &acme).len(), 1);
    world.ok(1, &[&acme[..], &["init"]].concat());
    let forgotten = world.ok(0, &["--json", "forget", "--tenant", "acme"]);
    assert_eq!(
        serde_json::from_str::<Value>(&forgotten).unwrap(),
        json!({ "tenant": "acme", "todos": 1 })
    );
    until("its token is refused", || {
        ask(&gateway, Some(&of_acme), messages, "Is it over?").0 == "403"
    });
    let gone = world.run(1, &[&acme[..], &["todos"]].concat());
    assert!(gone.code == 1 && gone.stderr.contains("there is no tenant acme"), "{}", gone.stderr);
    assert_eq!(world.todos(1, &beta).len(), 1);
    let listed = world.ok(1, &["--json", "tenant", "list"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["tenant"]), (1, &json!("beta")));
    gateway.terminate();
    assert_eq!(gateway.code(), Some(0));
    // What was said in a tenant's store before the gateway ended is there, and the store of no tenant goes on as ever.
    let file = world.machines[0].write("quay.jsonl", line("quay", quay()));
    world.ok(0, &["import", &file]);
    assert_eq!(world.todos(1, &[]), ["quay"]);
    let mut named = world.command(1);
    let named = named.env("FOLDBACK_TENANT", "beta").args(["--json", "todos"]);
    assert_eq!(Ran::of(named.output().unwrap()).json().as_array().unwrap().len(), 1);
    for of in [&[][..], &beta] {
        world.ok(1, &[of, &["verify"]].concat());
    }
}

/// PG9: behind one gateway, the tokens of one store's tenants distinguish them, and each command works in one's store.
#[test]
fn pg9_tenants_of_a_folder_are_told_apart() {
    if !has_curl() {
        return;
    }
    let runtime = Runtime::new().unwrap();
    let world = World { machines: [Shell::new(), Shell::new()], address: None };
    tell_apart(&world, &provider(&runtime));
    let folder = world.machines[0].store().join("tenants");
    // The gateway may have written a line into its ledger since.
    let has_store = |name: &str| folder.join(name).join("FORMAT").exists();
    assert_eq!((has_store("acme"), has_store("beta")), (false, true));
}

/// PG9: a copy of a store is a copy without its tenants, which says so, lies outside the store, and takes them anew.
#[test]
fn pg9_a_copy_says_which_tenants_it_lacks() {
    let shell = Shell::new();
    let file = shell.write("quay.jsonl", line("quay", quay()));
    shell.ok(&["tenant", "add", "acme"]);
    shell.ok(&["--tenant", "acme", "import", &file]);
    for inside in ["store/inner", "store/tenants/beta", "store/tenants/acme/inner"] {
        let ran = shell.run(&["--tenant", "acme", "backup", inside]);
        assert!(ran.code == 2 && ran.stderr.contains("store's own folder"), "{ran:?}");
    }
    let ran = shell.ok(&["backup", "copy"]);
    assert!(ran.stderr.contains("1 tenant of this store is not in the copy"), "{ran:?}");
    let ran = shell.ok(&["--tenant", "acme", "backup", "of-acme"]);
    assert!(!ran.stderr.contains("tenant"), "{ran:?}");
    let of_copy = |args: &[&str]| shell.run_bare(&[&["--store", "copy"], args].concat());
    let added = of_copy(&["tenant", "add", "acme"]);
    assert_eq!(added.code, 0, "{added:?}");
    assert_eq!(of_copy(&["--json", "--tenant", "acme", "todos"]).json(), json!([]));
    assert_eq!(of_copy(&["tenant", "add", "acme"]).code, 2);
}

/// PG10: the same holds in a database, between machines, and where the database keeps tenants apart itself.
#[cfg(all(unix, feature = "postgres"))]
#[test]
fn pg10_tenants_of_a_database_are_told_apart() {
    let name = "pg10_tenants_of_a_database_are_told_apart";
    let Some(server) = foldback_testkit::postgres::Server::start(name) else { return };
    if !has_curl() {
        return;
    }
    let runtime = Runtime::new().unwrap();
    // Policies do not hold for a superuser.
    let (role, address) =
        ("CREATE ROLE plain LOGIN; GRANT ALL ON SCHEMA public TO plain", server.database());
    server.sql("test_0", role);
    let address = Some(address.replace("owner@", "plain@"));
    let world = World { machines: [Shell::new(), Shell::new()], address };
    let secured = world.ok(0, &["--json", "tenant", "secure"]);
    assert_eq!(serde_json::from_str::<Value>(&secured).unwrap(), json!({ "secured": true }));
    tell_apart(&world, &provider(&runtime));
    let again = world.run(0, &["tenant", "add", "acme"]);
    assert_eq!(again.code, 1, "{}", again.stderr);
    assert!(again.stderr.contains("its name is not given again"), "{}", again.stderr);
    // Each machine removes what it holds, and a deletion that was interrupted is gone on with.
    let folder = |name: &str| world.machines[1].store().join("tenants").join(name);
    assert!(folder("acme").exists());
    world.ok(1, &["forget", "--tenant", "acme"]);
    assert!(!folder("acme").exists());
    server.sql("test_0", "UPDATE foldback_slot SET number = -2 WHERE slot / 64 = 2");
    world.ok(1, &["forget", "--tenant", "beta"]);
    assert!(!folder("beta").exists());
    let left = "SELECT count(*) FROM foldback_record WHERE slot >= 64";
    assert_eq!(server.sql("test_0", left).trim(), "0");
    assert_eq!(world.run(1, &["forget", "--tenant", "nobody"]).code, 1);
}
