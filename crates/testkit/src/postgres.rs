//! A PostgreSQL server for a test: made in a temporary folder, reachable on loopback, and stopped with the test.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test says so by stopping")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The user of the server's programs if the test runs as the superuser, whom the server refuses: nobody.
const NOBODY: u32 = 65_534;
/// How long a server may take to start or to stop.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server. It is stopped when it is dropped.
pub struct Server {
    dir: TempDir,
    programs: PathBuf,
    port: u16,
    process: Option<Child>,
    databases: AtomicU32,
    /// Whether it waits for its disk.
    syncs: bool,
}

impl Server {
    /// Makes a server and starts it. `None` if none is installed, after saying so.
    ///
    /// # Panics
    /// When none is installed, and the environment says by `FOLDBACK_NEED_POSTGRES` that one is.
    #[must_use]
    pub fn start(test: &str) -> Option<Self> {
        let Some(programs) = programs() else {
            let missing = "no PostgreSQL is installed (Debian's package postgresql-15)";
            assert!(std::env::var_os("FOLDBACK_NEED_POSTGRES").is_none(), "{test}: {missing}");
            println!("SKIPPED {test}: {missing}");
            return None;
        };
        let server = Self::in_folder(programs);
        let (data, login) = (server.data(), ["--auth=trust", "--username=owner"]);
        let mut initdb = server.program("initdb");
        initdb.args(["--no-sync", "--encoding=UTF8", "--locale=C", "-D"]).arg(data).args(login);
        run(&mut initdb);
        Some(server.up())
    }

    fn in_folder(programs: PathBuf) -> Self {
        let dir = tempfile::Builder::new().prefix("foldback-postgres-").tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let data = dir.path().join("data");
        fs::create_dir(&data).unwrap();
        fs::set_permissions(&data, fs::Permissions::from_mode(0o700)).unwrap();
        if is_superuser(&data) {
            chown(&data, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let databases = AtomicU32::new(0);
        Self { dir, programs, port: free_port(), process: None, databases, syncs: false }
    }

    /// Returns a copy of the server that follows it, started. Every commit waits until it is there, too.
    ///
    /// # Panics
    /// When it cannot be made.
    #[must_use]
    pub fn standby(&self) -> Self {
        let standby = Self::in_folder(self.programs.clone());
        let mut copy = standby.program("pg_basebackup");
        copy.args(["--no-sync", "--checkpoint=fast", "--write-recovery-conf", "--username=owner"]);
        let port = self.port.to_string();
        let from = format!("host=127.0.0.1 port={port} user=owner application_name=standby");
        run(copy.args(["-d", &from, "-D"]).arg(standby.data()));
        let standby = standby.up();
        self.sql("postgres", "ALTER SYSTEM SET synchronous_standby_names = 'standby'");
        self.sql("postgres", "SELECT pg_reload_conf()");
        let begin = Instant::now();
        let follows = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
        while self.sql("postgres", follows).trim() != "1" {
            assert!(begin.elapsed() < PATIENCE, "the standby does not follow");
            std::thread::sleep(Duration::from_millis(20));
        }
        standby
    }

    /// Makes a standby the server that takes writes.
    pub fn promote(&self) {
        self.sql("postgres", "SELECT pg_promote()");
    }

    /// Makes a new, empty database, and returns its address.
    #[must_use]
    pub fn database(&self) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        self.address(&name)
    }

    /// Returns the address of a database for its owner.
    #[must_use]
    pub fn address(&self, database: &str) -> String {
        format!("postgres://owner@127.0.0.1:{}/{database}", self.port)
    }

    /// Returns the server's port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the folder of the server's data.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// Runs SQL in a database, and returns what it prints.
    ///
    /// # Panics
    /// When the server refuses.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        let address = self.address(database);
        run(self.program("psql").args(["-X", "-q", "-t", "-A", "-d", &address, "-c", sql]))
    }

    /// Begins a transaction with SQL, which stays open until what is returned is dropped.
    ///
    /// # Panics
    /// When the server refuses.
    pub fn hold(&self, address: &str, sql: &str) -> Held {
        let mut psql = self.program("psql");
        psql.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", address]);
        let mut psql = psql.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (psql.stdin.as_mut().unwrap(), psql.stdout.as_mut().unwrap());
        writeln!(input, "BEGIN; {sql};\n\\echo held").unwrap();
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "held");
        Held(psql)
    }

    /// Kills the server with all its processes at once, in the middle of whatever they do.
    ///
    /// # Panics
    /// When it is not running.
    pub fn kill(&mut self) {
        // Stopped first, it starts no others.
        let processes = self.signal("STOP");
        for id in &processes {
            let _ = Command::new("kill").args(["-KILL", &id.to_string()]).status();
        }
        self.process.take().unwrap().wait().unwrap();
        let begin = Instant::now();
        // No process of it may write any more when another server takes its data.
        while processes.iter().any(|id| is_running(*id)) {
            assert!(begin.elapsed() < PATIENCE, "a killed server goes on");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Suspends all processes of the server.
    ///
    /// # Panics
    /// When it is not running.
    pub fn suspend(&self) {
        self.signal("STOP");
    }

    /// Lets the processes of a suspended server go on.
    ///
    /// # Panics
    /// When it is not running.
    pub fn resume(&self) {
        self.signal("CONT");
    }

    /// Sends a signal to the server's first process, and then to all that it has started. Returns their ids.
    fn signal(&self, signal: &str) -> Vec<u32> {
        let own = self.process.as_ref().unwrap().id();
        let send = |id: u32| {
            // One that has ended meanwhile needs none.
            let _ = Command::new("kill").args([format!("-{signal}"), id.to_string()]).status();
        };
        send(own);
        let mut processes = children(own);
        processes.iter().for_each(|id| send(*id));
        processes.push(own);
        processes
    }

    /// Stops the server, which ends its connections first.
    pub fn stop(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        let _ = Command::new("kill").args(["-INT", &process.id().to_string()]).status();
        let begin = Instant::now();
        while process.try_wait().unwrap().is_none() {
            if begin.elapsed() > PATIENCE {
                let _ = process.kill();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Starts the server again so that it waits for its disk, as one that is measured does.
    #[must_use]
    pub fn syncing(mut self) -> Self {
        self.stop();
        self.syncs = true;
        self.restart();
        self
    }

    /// Measures the server's own transactions of one insertion, one after the other, for some seconds. Returns the mean
    /// time of one.
    ///
    /// # Panics
    /// When the package has no `pgbench`.
    pub fn own_commit(&self, seconds: u32) -> Duration {
        self.sql("postgres", "CREATE TABLE IF NOT EXISTS own (a BIGSERIAL PRIMARY KEY, b BYTEA)");
        let script = self.dir.path().join("own.sql");
        fs::write(&script, "INSERT INTO own (b) VALUES (decode(repeat('ab', 420), 'hex'));")
            .unwrap();
        let address = self.address("postgres");
        let mut bench = self.program("pgbench");
        bench.args(["-n", "-c", "1", "-T", &seconds.to_string(), "-f"]).arg(&script).arg(&address);
        let text = run(&mut bench);
        let rest = text.split_once("latency average = ").unwrap().1;
        let milliseconds: f64 = rest.split_whitespace().next().unwrap().parse().unwrap();
        Duration::from_secs_f64(milliseconds / 1_000.0)
    }

    /// Starts a server that was killed or stopped, on the same port.
    pub fn restart(&mut self) {
        self.launch();
        self.wait();
    }

    fn up(mut self) -> Self {
        for _ in 0..5 {
            self.launch();
            if self.is_up() {
                return self;
            }
            // Another program took the port meanwhile.
            self.stop();
            self.port = free_port();
        }
        panic!("no server starts: {}", fs::read_to_string(self.log()).unwrap_or_default());
    }

    fn launch(&mut self) {
        // It may have been killed without removing this.
        let _ = fs::remove_file(self.data().join("postmaster.pid"));
        let log = fs::File::options().create(true).append(true).open(self.log()).unwrap();
        let port = self.port.to_string();
        let mut server = self.program("postgres");
        server.arg("-D").arg(self.data()).args(["-p", &port]);
        for setting in [
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "shared_buffers=16MB",
            "max_connections=100",
            "max_wal_size=64MB",
        ] {
            server.args(["-c", setting]);
        }
        // What is tried is that processes die, not that the power fails.
        server.args(["-c", if self.syncs { "fsync=on" } else { "fsync=off" }]);
        server.stdout(Stdio::null()).stderr(log);
        self.process = Some(server.spawn().unwrap());
    }

    fn wait(&mut self) {
        assert!(self.is_up(), "{}", fs::read_to_string(self.log()).unwrap_or_default());
    }

    /// Waits until the server answers. Returns whether it does.
    fn is_up(&mut self) -> bool {
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            if self.process.as_mut().unwrap().try_wait().unwrap().is_some() {
                return false;
            }
            let address = self.address("postgres");
            let mut ask = self.program("psql");
            ask.args(["-X", "-q", "-d", &address, "-c", "SELECT 1"]);
            if ask.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }

    fn log(&self) -> PathBuf {
        self.dir.path().join("log")
    }

    /// Returns a command of the server's package, to be run as the user who owns its data.
    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        // Nothing of the environment says which server is asked.
        for name in ["PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGPASSFILE", "PGOPTIONS"] {
            command.env_remove(name);
        }
        command.current_dir("/").stdin(Stdio::null());
        let owner = fs::metadata(self.data()).unwrap();
        if owner.uid() == NOBODY {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }
}

/// An open transaction, which is rolled back when this is dropped.
#[must_use]
pub struct Held(Child);

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Returns the folder of the newest server that is installed: the one that `FOLDBACK_POSTGRES_PROGRAMS` names, or
/// Debian's.
fn programs() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("FOLDBACK_POSTGRES_PROGRAMS") {
        return Some(named.into());
    }
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let version = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let found =
        versions.flatten().filter_map(|entry| Some((version(&entry.path())?, entry.path())));
    let programs = found.max()?.1.join("bin");
    programs.join("initdb").exists().then_some(programs)
}

/// Returns the ids of the processes that a process has started.
fn children(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| state(*id).is_some_and(|(_, of)| of == parent)).collect()
}

/// Returns whether a process is there and not only waited for.
fn is_running(id: u32) -> bool {
    state(id).is_some_and(|(state, _)| state != 'Z')
}

/// Returns the state of a process, and its parent.
fn state(id: u32) -> Option<(char, u32)> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name in parentheses may hold anything.
    let mut rest = text.rsplit_once(')')?.1.split_whitespace();
    Some((rest.next()?.chars().next()?, rest.next()?.parse().ok()?))
}

fn is_superuser(owned: &Path) -> bool {
    fs::metadata(owned).unwrap().uid() == 0
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}: {}", text(&output.stderr));
    text(&output.stdout)
}
