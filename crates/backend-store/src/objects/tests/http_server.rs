//! Objects on servers that answer requests badly, or not at all.

use super::s3_server::objects_at;
use super::*;
use foldback_testkit::s3::SECRET;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;

/// Starts a server that gives each request's head to `answer`, and returns the address. It ends with the test's process.
fn serve(answer: impl Fn(&str) -> String + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for mut client in listener.incoming().map_while(Result::ok) {
            let mut reader = BufReader::new(client.try_clone().unwrap());
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap() > 0 {}
            let head = head.to_ascii_lowercase();
            let length = head.split_once("content-length: ").map_or("0", |(_, rest)| rest);
            let length: u64 = length.lines().next().unwrap().parse().unwrap();
            std::io::copy(&mut reader.take(length), &mut std::io::sink()).unwrap();
            let answer = answer(&head);
            client.write_all(answer.as_bytes()).unwrap();
            if !answer.contains("connection: close") {
                open.push(client);
            }
        }
    });
    endpoint
}

/// A service that accepts a request and says nothing, or stops within its answer, is an outage: each kind of request
/// fails in time, and those after it at once.
#[test]
fn bs9_a_service_that_says_nothing_is_out_of_reach() {
    let begins = "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nLast-Modified: Mon, 02 Nov 2026 10:00:00 GMT\r\n\
                  Content-Length: 1000\r\n\r\n";
    let silent = [
        serve(|_| String::new()),
        serve(move |head| if head.starts_with("get ") { begins.to_owned() } else { String::new() }),
    ];
    let name = FileName { todo: 1, hash: [1; 32], copy: Some([1; 16]) };
    type Request = fn(&Objects, &FileName) -> Result<(), Error>;
    let requests: [Request; 6] = [
        |objects, _| try_put(objects, 1, [1; 32], b"bytes").map(drop),
        |objects, _| try_put(objects, 1, [1; 32], &bytes_of(LARGE)).map(drop),
        |objects, name| objects.open(name).map(drop),
        |objects, _| objects.list(1).map(drop),
        |objects, _| objects.todos().map(drop),
        |objects, _| objects.client.delete(vec![Path::from("name")]),
    ];
    for endpoint in silent {
        for request in requests {
            let limit = TimeLimit::of(Duration::from_millis(50));
            let objects = objects_at(&endpoint, SECRET, limit);
            let begun = Instant::now();
            let error = request(&objects, &name).unwrap_err();
            assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
            let Error::Io { source, .. } = &error else { panic!("{error}") };
            assert_eq!(source.kind(), ErrorKind::NotConnected, "{error}");
            assert!(error.to_string().contains("did not answer in time"), "{error}");
            let begun = Instant::now();
            for _ in 0..100 {
                objects.open(&name).map(drop).unwrap_err();
            }
            assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
        }
    }
}

/// A server that knows no condition for a put is asked without it, and is not asked with it again.
#[test]
fn bs9_a_server_that_knows_no_condition_is_asked_without_it() {
    let refused = Arc::new(Mutex::new(0));
    let count = refused.clone();
    let endpoint = serve(move |head| {
        let what = if head.starts_with("put ") && head.contains("if-none-match: *") {
            *count.lock().unwrap() += 1;
            "501 Not Implemented\r\ncontent-length: 0"
        } else if head.starts_with("put ") {
            "200 OK\r\netag: \"1\"\r\ncontent-length: 0"
        } else {
            "404 Not Found\r\ncontent-length: 0"
        };
        format!("HTTP/1.1 {what}\r\nconnection: close\r\n\r\n")
    });
    let objects = objects_at(&endpoint, SECRET, TimeLimit::default());
    put(&objects, 1, [1; 32], b"bytes");
    let tries = *refused.lock().unwrap();
    put(&objects, 1, [2; 32], b"bytes");
    assert!(tries > 0);
    assert_eq!(*refused.lock().unwrap(), tries);
}
