//! Objects on a server that speaks S3, in a process of its own, so that it can be killed.
//!
//! `FOLDBACK_S3S_FS` names its program; `cargo install s3s-fs --version 0.14.1 --features binary --locked` installs it.
//! Without it these tests report that they are skipped.

use super::*;
use crate::connect::{choose_tls, retry};
use object_store::aws::AmazonS3Builder;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use tempfile::TempDir;

const ENVIRONMENT: &str = "FOLDBACK_S3S_FS";

/// A server with one bucket, whose objects are files of a folder.
struct S3Server {
    dir: TempDir,
    port: u16,
    child: Option<Child>,
}

impl S3Server {
    fn start() -> Option<Self> {
        if std::env::var_os(ENVIRONMENT).is_none() {
            println!("SKIPPED: {ENVIRONMENT} does not name the program s3s-fs");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("bucket")).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut server = Self { dir, port, child: None };
        server.start_again();
        Some(server)
    }

    fn start_again(&mut self) {
        let child = Command::new(std::env::var_os(ENVIRONMENT).unwrap())
            .args(["--host", "127.0.0.1", "--access-key", "AKIDTEST", "--secret-key", "SECRET"])
            .args(["--port", &self.port.to_string()])
            .arg(self.dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.child = Some(child);
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(30), "the S3 server does not start");
            sleep(Duration::from_millis(10));
        }
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    fn objects(&self, secret: &str) -> Objects {
        choose_tls();
        let store = AmazonS3Builder::new()
            .with_endpoint(format!("http://127.0.0.1:{}", self.port))
            .with_allow_http(true)
            .with_region("us-east-1")
            .with_bucket_name("bucket")
            .with_access_key_id("AKIDTEST")
            .with_secret_access_key(secret)
            .with_retry(retry())
            .build();
        let store = Arc::new(store.unwrap());
        let service = Service {
            store: store.clone(),
            parts: Some(store),
            prefix: "team/a".to_owned(),
            shown: "s3://bucket".to_owned(),
        };
        Objects::open(service, &ID, None).unwrap()
    }

    /// Whether any part of an upload is there.
    fn has_parts(&self) -> bool {
        let mut folders = vec![self.dir.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.path().is_dir() {
                    folders.push(entry.path());
                } else if entry.file_name().to_string_lossy().starts_with(".upload_id-") {
                    return true;
                }
            }
        }
        false
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        self.kill();
    }
}

#[test]
fn bs9_a_server_that_speaks_s3_is_a_place_for_files() {
    let Some(server) = S3Server::start() else { return };
    holds(&server.objects("SECRET"), LARGE);
    assert!(!server.has_parts());
}

#[test]
fn bs9_a_server_that_is_killed_within_an_upload_loses_nothing() {
    let Some(mut server) = S3Server::start() else { return };
    let objects = server.objects("SECRET");
    let before = put(&objects, 1, [1; 32], b"put before");
    let bytes = bytes_of(80 << 20);
    // The server is killed once it has a part.
    let done = std::thread::scope(|scope| {
        let upload = scope.spawn(|| try_put(&objects, 1, [2; 32], &bytes));
        while !upload.is_finished() && !server.has_parts() {
            sleep(Duration::from_millis(1));
        }
        server.kill();
        upload.join().unwrap()
    });
    let error = done.unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    assert!(error.to_string().contains("s3://bucket/team/a/"), "{error}");
    assert!(!error.to_string().contains("SECRET"));
    // While it is gone every request says so, soon after the first one.
    let begun = Instant::now();
    for _ in 0..100 {
        let refused = objects.open(&named(1, [1; 32], &before)).map(drop).unwrap_err();
        assert!(refused.to_string().contains("out of reach"), "{refused}");
    }
    assert!(begun.elapsed() < Duration::from_secs(60));

    server.start_again();
    let objects = server.objects("SECRET");
    // What was put is there, what was not has no name, and the same again works.
    assert_eq!(objects.list(1).unwrap(), [named(1, [1; 32], &before)]);
    assert!(server.has_parts(), "{error}");
    let again = put(&objects, 1, [2; 32], &bytes);
    let mut file = objects.open(&named(1, [2; 32], &again)).unwrap().unwrap();
    let mut found = vec![0; bytes.len()];
    file.read_at(0, &mut found).unwrap();
    assert!(found == bytes);
    // Forgetting ends the upload that was broken off.
    objects.forget(1).unwrap();
    assert!(objects.list(1).unwrap().is_empty());
    assert!(!server.has_parts());
}

#[test]
fn bs9_wrong_credentials_are_an_error_that_shows_none() {
    let Some(server) = S3Server::start() else { return };
    let objects = server.objects("ANOTHER");
    let error = try_put(&objects, 1, [1; 32], b"bytes").unwrap_err();
    let Error::Io { source, .. } = &error else { panic!("{error}") };
    assert_eq!(source.kind(), ErrorKind::PermissionDenied);
    assert!(error.to_string().contains("credentials from the environment"), "{error}");
    assert!(!error.to_string().contains("ANOTHER"), "{error}");
}
