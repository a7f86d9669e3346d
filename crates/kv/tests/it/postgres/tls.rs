//! Encrypted connections.

use super::{batch, values, writing};
use foldback_kv::{Error, Mode, Server as Address, open};
use foldback_testkit::postgres::Server;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;
use std::process::Command;

/// Makes an authority, and a certificate of it for this name. Returns whether it could.
fn certify(dir: &Path, name: &str) -> bool {
    let run = |args: &str| {
        let ran = Command::new("openssl").args(args.split_whitespace()).current_dir(dir).output();
        ran.is_ok_and(|output| output.status.success())
    };
    fs::write(dir.join("names"), format!("subjectAltName={name}\n")).unwrap();
    run("req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout ca.key -out ca.crt")
        && run("req -newkey rsa:2048 -nodes -subj /CN=server -keyout server.key -out server.csr")
        && run(
            "x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile names -out server.crt",
        )
}

/// PG4: with TLS the server shows a certificate of a trusted authority for its own name, or nothing is sent to it.
#[test]
fn pg4_a_server_shows_a_certificate_for_its_name() {
    let name = "pg4_a_server_shows_a_certificate_for_its_name";
    let Some(mut server) = Server::start(name) else { return };
    let dir = tempfile::tempdir().unwrap();
    if !certify(dir.path(), "DNS:localhost") {
        println!("SKIPPED {name}: openssl is not here");
        return;
    }
    let address = server.database();
    let plain = |sslmode: &str| {
        format!("{address}?sslmode={sslmode}&sslrootcert={}", dir.path().join("ca.crt").display())
    };
    let refused = |address: String| {
        open(&dir.path().join("x"), Address::new(address), Mode::ReadWrite).err().unwrap()
    };
    let without = refused(plain("require"));
    assert!(matches!(without, Error::Refused { .. }), "{without}");
    let owner = fs::metadata(server.data()).unwrap();
    for file in ["server.key", "server.crt"] {
        let to = server.data().join(file);
        fs::copy(dir.path().join(file), &to).unwrap();
        fs::set_permissions(&to, fs::Permissions::from_mode(0o600)).unwrap();
        chown(&to, Some(owner.uid()), Some(owner.gid())).unwrap();
    }
    server.sql("postgres", "ALTER SYSTEM SET ssl = on");
    server.stop();
    server.restart();
    // The certificate is for localhost, and the address says 127.0.0.1.
    let other_name = refused(plain("require"));
    assert!(matches!(other_name, Error::Refused { .. }), "{other_name}");
    assert!(other_name.to_string().contains("not valid for name"), "{other_name}");
    let named = plain("verify-full").replace("@127.0.0.1", "@localhost");
    let kv = writing(&dir.path().join("store"), &named);
    kv.commit(batch(1, 0, b"sealed")).unwrap();
    assert_eq!(values(kv.as_ref(), 1).len(), 1);
    let encrypted = "SELECT bool_and(s.ssl) FROM pg_stat_ssl AS s JOIN pg_stat_activity AS a USING (pid) \
                     WHERE a.application_name = 'foldback'";
    assert_eq!(server.sql("test_0", encrypted).trim(), "t");
    // An authority that nobody here trusts.
    let elsewhere = dir.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    assert!(certify(&elsewhere, "DNS:localhost"));
    let unknown = refused(named.replace("/ca.crt", "/elsewhere/ca.crt"));
    assert!(matches!(unknown, Error::Refused { .. }), "{unknown}");
    let missing = refused(named.replace("/ca.crt", "/nowhere.crt"));
    assert!(missing.to_string().contains("nowhere.crt could not be read"), "{missing}");
    fs::write(dir.path().join("empty.crt"), "").unwrap();
    let empty = refused(named.replace("/ca.crt", "/empty.crt"));
    assert!(empty.to_string().contains("holds no certificate"), "{empty}");
}
