//! What is between the client and the provider: gateways and rivals, each a process of its own.

use foldback::{Memory, Options};
use foldback_gateway::{Gateway, GatewayConfig, Keeping, RecallBy, Upstream};
use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;

/// How long a rival may take to start.
const START: Duration = Duration::from_secs(180);

/// What is between the client and the provider.
pub(crate) struct Proxy {
    pub(crate) url: String,
    process: Option<Child>,
}

impl Proxy {
    /// Nothing, a gateway, or a rival that this command starts. `None` if that does not start.
    pub(crate) fn start(name: &str, command: &str, upstream: &str) -> Option<Self> {
        match (name, command) {
            ("direct", _) => Some(Self { url: upstream.to_owned(), process: None }),
            (name, "") => Some(Self::gateway(name, upstream)),
            (name, command) => Self::rival(name, command, upstream),
        }
    }

    /// A gateway with a store of its own on disk.
    fn gateway(name: &str, upstream: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--gateway", name, upstream]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { url: url.trim().to_owned(), process: Some(process) }
    }

    fn rival(name: &str, command: &str, upstream: &str) -> Option<Self> {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port().to_string();
        drop(free);
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).env("PORT", &port).env("UPSTREAM", upstream);
        shell.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let process = Some(shell.spawn().unwrap());
        let rival = Self { url: format!("http://127.0.0.1:{port}"), process };
        let begun = Instant::now();
        while TcpStream::connect(format!("127.0.0.1:{port}")).is_err() {
            if begun.elapsed() > START {
                println!("{name} does not start");
                return None;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        println!("{name} starts within {:.1} s", begun.elapsed().as_secs_f64());
        Some(rival)
    }

    /// How many megabytes it holds in memory, with the processes that it has started.
    pub(crate) fn megabytes(&self) -> Option<f64> {
        let process = self.process.as_ref()?.id();
        let kilobytes: u64 = family(process).into_iter().filter_map(resident).sum();
        Some(kilobytes as f64 / 1e3)
    }
}

impl Drop for Proxy {
    /// A gateway ends with its input; a rival is killed with what it has started.
    fn drop(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        if process.stdin.take().is_none() {
            for id in family(process.id()).into_iter().rev() {
                drop(Command::new("kill").arg(id.to_string()).status());
            }
        }
        drop(process.wait());
    }
}

/// A process and what it has started.
fn family(process: u32) -> Vec<u32> {
    let children = format!("/proc/{process}/task/{process}/children");
    let children = std::fs::read_to_string(children).unwrap_or_default();
    let children: Vec<u32> = children.split_whitespace().filter_map(|id| id.parse().ok()).collect();
    [process].into_iter().chain(children.into_iter().flat_map(family)).collect()
}

/// The kilobytes that a process holds.
fn resident(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Runs a gateway: prints its URL, and ends with its input.
pub(crate) async fn be_gateway(name: &str, upstream: &str) {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::default().with_view(Keeping::view());
    let memory = Memory::open(&folder.path().join("store"), options).unwrap();
    let mut config = GatewayConfig::new().unwrap();
    config.anthropic = Upstream::new(upstream).unwrap();
    config.keeping = Keeping::On(memory);
    config.recall = match name {
        "passing" => RecallBy::Off,
        "mcp" => RecallBy::Mcp,
        _ => RecallBy::Stream,
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("http://{}", listener.local_addr().unwrap());
    let end = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
    let gateway = Gateway::new(config).unwrap();
    gateway.serve(listener, async { drop(end.await) }).await.unwrap();
}
