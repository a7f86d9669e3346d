//! Objects on a server that speaks S3.

use super::*;
use crate::connect::{choose_tls, retry};
use foldback_testkit::s3::{BUCKET, KEY, S3Server, SECRET};
use object_store::aws::AmazonS3Builder;
use std::thread::sleep;

/// Returns the objects on a server.
pub(super) fn objects_at(endpoint: &str, secret: &str, limit: TimeLimit) -> Objects {
    choose_tls();
    let store = AmazonS3Builder::new()
        .with_endpoint(endpoint)
        .with_allow_http(true)
        .with_region("us-east-1")
        .with_bucket_name(BUCKET)
        .with_access_key_id(KEY)
        .with_secret_access_key(secret)
        .with_retry(retry())
        .with_http_connector(limit)
        .build();
    let store = Arc::new(store.unwrap());
    let service = Service { store, prefix: "team/a".to_owned(), shown: format!("s3://{BUCKET}") };
    Objects::open(service, &ID, None).unwrap()
}

fn objects_on(server: &S3Server, secret: &str) -> Objects {
    objects_at(&server.endpoint(), secret, TimeLimit::default())
}

#[test]
fn bs9_a_server_that_speaks_s3_is_a_place_for_files() {
    let Some(server) = S3Server::start() else { return };
    holds(&objects_on(&server, SECRET), LARGE);
    assert!(!server.has_parts());
}

#[test]
fn bs9_a_server_that_is_killed_within_an_upload_loses_nothing() {
    let Some(mut server) = S3Server::start() else { return };
    let objects = objects_on(&server, SECRET);
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
    assert!(error.to_string().contains("s3://payloads/team/a/"), "{error}");
    assert!(!error.to_string().contains(SECRET));
    // While it is gone every request says so, soon after the first one.
    let begun = Instant::now();
    for _ in 0..100 {
        let refused = objects.open(&named(1, [1; 32], &before)).map(drop).unwrap_err();
        assert!(refused.to_string().contains("out of reach"), "{refused}");
    }
    assert!(begun.elapsed() < Duration::from_secs(60));

    server.start_again();
    let objects = objects_on(&server, SECRET);
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
    let objects = objects_on(&server, "ANOTHER");
    let error = try_put(&objects, 1, [1; 32], b"bytes").unwrap_err();
    let Error::Io { source, .. } = &error else { panic!("{error}") };
    assert_eq!(source.kind(), ErrorKind::PermissionDenied);
    assert!(error.to_string().contains("credentials from the environment"), "{error}");
    assert!(!error.to_string().contains("ANOTHER"), "{error}");
}
