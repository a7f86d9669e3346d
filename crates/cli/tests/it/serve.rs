//! `foldback serve`, asked as a browser, a program and a hostile page ask it.

mod answers;
mod runs;
mod sent;

use crate::shell::{Shell, line, names};
use foldback_core::Message;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::process::{Child, Stdio};
use std::time::Duration;

/// A running inspector, which ends with the value.
struct Server {
    child: Child,
    address: SocketAddr,
    token: String,
}

/// What it answers.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Server {
    fn of(shell: &Shell) -> Self {
        Self::with(shell, &[])
    }

    fn with(shell: &Shell, args: &[&str]) -> Self {
        let mut command = shell.command();
        command.arg("--store").arg(shell.store()).args([
            "--json",
            "serve",
            "--listen",
            "127.0.0.1:0",
        ]);
        let mut child = command.args(args).stdout(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let told: Value =
            serde_json::from_str(&first).unwrap_or_else(|error| panic!("{error}: {first}"));
        let listening = told["listening"].as_str().unwrap();
        let address = listening.strip_prefix("http://").unwrap().parse().unwrap();
        Self { child, address, token: told["token"].as_str().unwrap().to_owned() }
    }

    /// Sends a request with these lines after the first.
    #[track_caller]
    fn send(&self, line: &str, headers: &[&str]) -> Answer {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        write!(stream, "{line} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n").unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    fn host(&self) -> String {
        format!("Host: {}", self.address)
    }

    fn bearer(&self) -> String {
        format!("Authorization: Bearer {}", self.token)
    }

    /// Asks as a program does.
    #[track_caller]
    fn get(&self, path: &str) -> Answer {
        self.send(&format!("GET {path}"), &[&self.host(), &self.bearer()])
    }

    /// Asks the API, which has to answer.
    #[track_caller]
    fn api(&self, path: &str) -> Value {
        let answer = self.get(&format!("/api/v1/{path}"));
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        assert!(answer.head.contains("content-type: application/json"), "{answer:?}");
        answer.json()
    }

    /// The kind of the error with which the API answers.
    #[track_caller]
    fn wrong(&self, path: &str) -> (u16, String) {
        let answer = self.get(&format!("/api/v1/{path}"));
        let error = answer.json();
        assert!(!error["error"]["message"].as_str().unwrap().is_empty(), "{answer:?}");
        (answer.status, error["error"]["kind"].as_str().unwrap().to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Answer {
    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A supervisor's request to end is no failure, also while a page waits for news.
#[test]
fn it_ends_when_it_is_asked_to() {
    let shell = Shell::with_quay();
    let mut server = Server::of(&shell);
    let mut page = TcpStream::connect(server.address).unwrap();
    let (host, bearer) = (server.host(), server.bearer());
    write!(page, "GET /api/v1/events HTTP/1.1\r\n{host}\r\n{bearer}\r\n\r\n").unwrap();
    assert_eq!(page.read(&mut [0; 12]).unwrap(), 12);
    let id = rustix::process::Pid::from_child(&server.child);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

#[test]
fn in5_a_request_without_the_token_is_refused() {
    let shell = Shell::with_quay();
    let server = Server::of(&shell);
    let host = server.host();
    for path in [
        "/",
        "/sessions/quay",
        "/assets/index.js",
        "/api/v1/sessions",
        "/api/v1/events",
        "/nowhere",
        "/api/v1/openapi.json",
    ] {
        let answer = server.send(&format!("GET {path}"), &[&host]);
        assert_eq!(answer.status, 401, "{path}");
        assert!(
            answer.body.contains("foldback serve") && !answer.body.contains("quay"),
            "{answer:?}"
        );
    }
    let short = &server.token[..server.token.len() - 1];
    for wrong in [
        format!("Authorization: Bearer {short}"),
        "Authorization: Bearer ".to_owned(),
        format!("Authorization: Basic {}", server.token),
        format!("Cookie: foldback-{}={}", server.address.port(), server.token),
        format!("Cookie: foldback-{}=", server.address.port()),
        format!("X-Foldback-Token: {}", server.token),
    ] {
        assert_eq!(server.send("GET /api/v1/sessions", &[&host, &wrong]).status, 401, "{wrong}");
    }
    assert_eq!(server.send(&format!("GET /?token={short}"), &[&host]).status, 401);
    assert_eq!(server.get("/api/v1/sessions").status, 200);
}

#[test]
fn in5_the_token_of_the_address_becomes_a_cookie_that_no_script_reads() {
    let shell = Shell::with_quay();
    let server = Server::of(&shell);
    let host = server.host();
    let answer =
        server.send(&format!("GET /sessions/quay?theme=dark&token={}", server.token), &[&host]);
    assert_eq!(answer.status, 303, "{answer:?}");
    assert!(answer.head.contains("\r\nlocation: /sessions/quay?theme=dark\r\n"), "{answer:?}");
    let cookie =
        answer.head.split("\r\n").find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.contains("httponly") && cookie.contains("samesite=strict"), "{cookie}");
    assert!(!cookie.contains(&server.token), "the cookie is not the token");
    let cookie = format!("Cookie: other=1; {}", cookie.split(';').next().unwrap());
    for path in ["/", "/sessions/quay", "/api/v1/sessions"] {
        assert_eq!(server.send(&format!("GET {path}"), &[&host, &cookie]).status, 200, "{path}");
    }
    // No other server is named, whatever the path is.
    let answer = server.send(&format!("GET //evil.example/?token={}", server.token), &[&host]);
    assert!(answer.head.contains("\r\nlocation: /\r\n"), "{answer:?}");
    // The cookie and the token of another run open nothing.
    let other = Server::of(&shell);
    assert_eq!(other.send("GET /", &[&other.host(), &cookie]).status, 401);
    assert_eq!(other.send("GET /api/v1/sessions", &[&other.host(), &server.bearer()]).status, 401);
}

#[test]
fn in5_another_host_or_origin_is_refused_although_it_has_the_token() {
    let shell = Shell::with_quay();
    let server = Server::of(&shell);
    let (host, bearer) = (server.host(), server.bearer());
    for strange in [
        "Host: evil.example",
        "Host: evil.example:80",
        "Host: 127.0.0.1.evil.example",
        "Host: 10.0.0.1",
    ] {
        let answer = server.send("GET /api/v1/sessions", &[strange, &bearer]);
        assert_eq!(answer.status, 403, "{strange}");
        assert!(!answer.body.contains("quay"), "{answer:?}");
    }
    let port = server.address.port();
    for strange in [
        "http://evil.example".to_owned(),
        "null".to_owned(),
        "http://127.0.0.1:1".to_owned(),
        format!("https://127.0.0.1:{port}"),
    ] {
        let origin = format!("Origin: {strange}");
        assert_eq!(
            server.send("GET /api/v1/sessions", &[&host, &bearer, &origin]).status,
            403,
            "{strange}"
        );
    }
    let own = format!("Origin: http://127.0.0.1:{port}");
    assert_eq!(server.send("GET /api/v1/sessions", &[&host, &bearer, &own]).status, 200);
    let by_name = format!("Host: localhost:{port}");
    assert_eq!(server.send("GET /api/v1/sessions", &[&by_name, &bearer]).status, 200);
}

#[test]
fn in5_every_answer_has_a_strict_policy_and_only_reading_is_allowed() {
    let shell = Shell::with_quay();
    let server = Server::of(&shell);
    let (host, bearer) = (server.host(), server.bearer());
    let mut answers =
        vec![server.send("GET /", &[&host]), server.send("GET /", &["Host: evil.example"])];
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE"] {
        let answer = server.send(&format!("{method} /api/v1/sessions"), &[&host, &bearer]);
        assert_eq!(answer.status, 405, "{method}");
        assert!(answer.head.contains("\r\nallow: get"), "{answer:?}");
        answers.push(answer);
    }
    for path in [
        "/",
        "/sessions/quay",
        "/assets/style.css",
        "/assets/session.js",
        "/api/v1/sessions",
        "/api/v1/no",
        "/no",
    ] {
        answers.push(server.get(path));
    }
    for answer in &answers {
        for header in [
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "cache-control: no-store",
            "cross-origin-resource-policy: same-origin",
        ] {
            assert!(answer.head.contains(header), "{header}: {answer:?}");
        }
        assert!(!answer.head.contains("access-control-"), "{answer:?}");
    }
    // The policy forbids what is inline, so the pages have none of it.
    for path in ["/", "/sessions/quay"] {
        let page = server.get(path).body;
        assert!(
            !page.contains("<style") && !page.contains("style=") && !page.contains("onclick="),
            "{path}"
        );
        assert_eq!(
            page.matches("<script").count(),
            page.matches("<script src=\"/assets/").count(),
            "{path}"
        );
    }
}

#[test]
fn in5_paths_that_climb_and_hostile_ids_lead_nowhere() {
    let shell = Shell::with_quay();
    let server = Server::of(&shell);
    for path in [
        "/../../etc/passwd",
        "/assets/../../Cargo.toml",
        "/assets/%2e%2e/%2e%2e/etc/passwd",
        "/assets/..%2f..%2fetc%2fpasswd",
        "/store/kv.sqlite",
    ] {
        let answer = server.get(path);
        assert!(answer.status == 404, "{path}: {answer:?}");
        assert!(!answer.body.contains("root:"), "{path}");
    }
    let long = "a".repeat(3_000);
    for id in [
        "..",
        "%2e%2e",
        "..%2f..%2fetc%2fpasswd",
        "%00",
        "%ff",
        "a%0d%0aset-cookie:x=1",
        "%3Cscript%3E",
        "a%20b",
        &long,
    ] {
        for rest in ["", "/blocks", "/messages", "/payloads", "/payloads/1-aaaa", "/search?q=a"] {
            let answer = server.get(&format!("/api/v1/sessions/{id}{rest}"));
            assert!((400..500).contains(&answer.status), "{id}{rest}: {answer:?}");
            assert!(!answer.head.contains("x=1"), "{answer:?}");
        }
    }
    let not_found = (404, "not_found".to_owned());
    let invalid = (400, "invalid".to_owned());
    for path in [
        "sessions/nobody",
        "sessions/nobody/blocks",
        "sessions/nobody/search?q=a",
        "sessions/nobody/runs",
        "sessions/quay/payloads/99-aaaa",
        "sessions?after=nobody",
        "nothing",
        "sessions/quay/payloads/1-zzzz",
    ] {
        let wrong = server.wrong(path);
        assert!(
            wrong == not_found || (path.contains("payloads") && wrong == invalid),
            "{path}: {wrong:?}"
        );
    }
    for path in [
        "search",
        "search?q=",
        "search?q=%20",
        "search?q=a&k=0",
        "search?q=a&k=9999",
        "search?q=a&k=x",
        "search?q=a&limit=3",
        "sessions?limit=0",
        "sessions?limit=100000",
        "sessions/quay/messages?from=5&to=1",
        "sessions/quay/messages?to=999999",
        "sessions/quay/messages?from=-1",
        "sessions/quay/blocks?limit=0",
        "sessions/quay/payloads/nothing",
        "sessions/quay/payloads/store:%2F%2Fother%2F1-aaaa",
    ] {
        assert_eq!(server.wrong(path), invalid, "{path}");
    }
    assert_eq!(server.wrong(&format!("search?q={}", "a".repeat(5_000))), invalid);
}

/// What was recorded is data in every answer, and never part of a page.
#[test]
fn in5_injected_texts_reach_pages_as_text_only() {
    let shell = Shell::new();
    let texts = [
        "<script>alert(1)</script>",
        "</script><script>alert(2)</script>",
        "\"><img src=x onerror=alert(3)>",
        "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m",
        "${alert(4)} {{7*7}} <!-- --> \u{2028}\u{202e}gnp.exe",
        "javascript:alert(5)",
    ];
    let messages = texts
        .iter()
        .flat_map(|text| [Message::user(text), Message::assistant(&format!("harbour {text}"))]);
    let file = shell.write("evil.jsonl", line("evil", messages.collect()));
    shell.ok(&["import", &file]);
    let server = Server::of(&shell);
    for path in ["/", "/sessions/evil", "/assets/index.js", "/assets/session.js"] {
        let page = server.get(path).body;
        assert!(!page.contains("alert("), "{path}");
    }
    let listed = server.api("sessions");
    assert_eq!(listed["sessions"][0]["title"], texts[0]);
    let messages = server.api("sessions/evil/messages");
    for (at, text) in texts.iter().enumerate() {
        assert_eq!(messages["messages"][2 * at]["message"]["content"], *text);
    }
    let answer = server.get("/api/v1/search?q=harbour");
    assert!(answer.head.contains("content-type: application/json"), "{answer:?}");
    assert!(!answer.body.contains('\u{1b}'), "control characters are escaped in JSON");
    let said = answer.json()["hits"].to_string();
    assert!(said.contains("<script>alert(1)</script>"), "{said}");
    let drawn = server.api("sessions/evil/replay");
    assert_eq!(drawn["picture"]["messages"][0]["t"], texts[0]);
}

#[test]
fn in5_it_writes_nothing_and_listens_on_this_machine_only() {
    let shell = Shell::with_quay();
    let before = names(&shell.store());
    let export = shell.ok(&["export", "--todo", "quay"]).text().to_owned();
    let server = Server::of(&shell);
    server.api("sessions");
    for path in
        ["sessions/quay", "sessions/quay/replay", "sessions/quay/runs", "sessions/quay/branches"]
    {
        server.api(path);
    }
    server.api("search?q=lease");
    // The address by which another machine would reach this one, if it has one.
    let outside = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    if outside.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).is_ok() {
        let ip = outside.local_addr().unwrap().ip();
        if !ip.is_loopback() {
            let reached = TcpStream::connect_timeout(
                &SocketAddr::new(ip, server.address.port()),
                Duration::from_secs(2),
            );
            assert!(reached.is_err(), "{ip} answers");
        }
    }
    assert!(server.address.ip().is_loopback());
    drop(server);
    let log = |name: &String| name.ends_with("-wal") || name.ends_with("-shm");
    let kept = |names: Vec<String>| names.into_iter().filter(|name| !log(name)).collect::<Vec<_>>();
    assert_eq!(kept(names(&shell.store())), kept(before));
    assert_eq!(shell.ok(&["export", "--todo", "quay"]).text(), export);
}

#[test]
fn in5_a_read_only_folder_is_shown_like_any_other() {
    let shell = Shell::with_quay();
    let store = shell.store();
    let modes = |readonly: bool| {
        for entry in std::iter::once(store.clone())
            .chain(std::fs::read_dir(&store).unwrap().map(|entry| entry.unwrap().path()))
        {
            let mut modes = std::fs::metadata(&entry).unwrap().permissions();
            modes.set_readonly(readonly);
            std::fs::set_permissions(&entry, modes).unwrap();
        }
    };
    modes(true);
    let server = Server::of(&shell);
    assert_eq!(server.api("sessions")["sessions"][0]["id"], "quay");
    assert_eq!(
        server.api("sessions/quay/search?q=lease_seconds")["hits"][0]["block_id"],
        "b_quay_001"
    );
    drop(server);
    modes(false);
}

#[test]
fn in5_what_it_cannot_listen_on_is_an_error_with_a_way_out() {
    let shell = Shell::with_quay();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:8378"] {
        let ran = shell.run(&["serve", "--listen", address]);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(
            ran.stderr.contains("this machine only") && ran.stderr.contains("127.0.0.1:8378"),
            "{ran:?}"
        );
    }
    let server = Server::of(&shell);
    let ran = shell.run(&["serve", "--listen", &server.address.to_string()]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(
        ran.stderr.contains("already listens") && ran.stderr.contains("--listen 127.0.0.1:0"),
        "{ran:?}"
    );
    assert_eq!(shell.run(&["serve", "--listen", "nowhere"]).code, 2);
    let empty = Shell::new();
    let ran = empty.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("there is no store"), "{ran:?}");
}
