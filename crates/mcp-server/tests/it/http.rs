//! The server over HTTP.

use crate::wire::{id, server, store};
use foldback_mcp_server::{HttpServer, Scope, ServeError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

const BEGIN: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"wire","version":"1"}}}"#;

/// The first bytes of the answer to a client that begins.
async fn begin(address: &str, host: &str, header: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n{header}\r\n{BEGIN}",
        BEGIN.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    // The stream may stay open after the answer.
    while !answer.contains("serverInfo") {
        let mut bytes = [0; 4096];
        match stream.read(&mut bytes).await.unwrap() {
            0 => break,
            n => answer.push_str(&String::from_utf8_lossy(&bytes[..n])),
        }
        if !answer.starts_with("HTTP/1.1 2") {
            break;
        }
    }
    answer
}

/// RC1: it listens on loopback alone, and serves no page of another site.
#[tokio::test]
async fn rc1_http_is_for_this_machine_alone() {
    for open in ["0.0.0.0:0", "192.0.2.1:8765", "[::]:0"] {
        let refused = HttpServer::bind(open.parse().unwrap()).await.err().unwrap();
        assert!(matches!(refused, ServeError::NotLoopback(_)), "{refused}");
        assert!(refused.to_string().contains("an address of this machine alone was expected"));
    }
    let listening = HttpServer::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let url = listening.url();
    let address = url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap().to_owned();
    let port = address.rsplit(':').next().unwrap().to_owned();
    let (end, ended) = oneshot::channel::<()>();
    let server = server(&store(&["trip"]), Scope::todo(id("trip")));
    let serving = tokio::spawn(listening.serve(server, async { drop(ended.await) }));

    let own = format!("Origin: http://localhost:{port}\r\n");
    for (host, header, is_served) in [
        (address.as_str(), "", true),
        ("localhost", own.as_str(), true),
        ("evil.example", "", false),
        (address.as_str(), "Origin: http://evil.example\r\n", false),
        (address.as_str(), "Origin: null\r\n", false),
        (address.as_str(), "Origin: http://localhost:1\r\n", false),
    ] {
        let answer = begin(&address, host, header).await;
        assert_eq!(answer.contains("serverInfo"), is_served, "{host} {header}: {answer}");
        assert_eq!(answer.starts_with("HTTP/1.1 403"), !is_served, "{answer}");
    }
    let taken = HttpServer::bind(address.parse().unwrap()).await.err().unwrap();
    assert!(taken.to_string().contains("cannot listen on"), "{taken}");
    drop(end);
    serving.await.unwrap().unwrap();
}
