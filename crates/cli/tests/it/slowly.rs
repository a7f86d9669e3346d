//! A server before a provider that passes on streamed answers frame by frame, with a pause after each.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// The frame at which the connection is broken off.
pub(crate) const BREAK: &str = ": break\n\n";

/// Passes requests on to the server at a base URL, and returns its own base URL. It serves for as long as the tests
/// run.
pub(crate) fn before(url: &str, pause: Duration) -> String {
    let (server, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap();
    let server = server.to_owned();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = server.clone();
            // A client that goes away wants no answer.
            std::thread::spawn(move || drop(pass(client, &server, pause)));
        }
    });
    format!("http://{own}/{path}")
}

/// Passes one request on, and its answer back.
fn pass(mut client: TcpStream, server: &str, pause: Duration) -> std::io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line == "\r\n" {
            break;
        }
        let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
        if name == "content-length" {
            length = line["content-length:".len()..].trim().parse().unwrap();
        }
        if name != "connection" {
            head.push_str(&line);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let mut upstream = TcpStream::connect(server)?;
    upstream.write_all(format!("{head}connection: close\r\n\r\n").as_bytes())?;
    upstream.write_all(&body)?;
    let mut answer = Vec::new();
    upstream.read_to_end(&mut answer)?;
    let answer = String::from_utf8(answer).unwrap();
    if !answer.contains("text/event-stream") {
        return client.write_all(answer.as_bytes());
    }
    for frame in answer.split_inclusive("\n\n").take_while(|frame| *frame != BREAK) {
        client.write_all(frame.as_bytes())?;
        client.flush()?;
        std::thread::sleep(pause);
    }
    Ok(())
}
