//! Tenants in one database.

use super::{append, batch, values};
use foldback_core::TenantId;
use foldback_kv::{Error, Expect, Key, Kv, Mode, Server as Address, Space, Truth, open};
use foldback_testkit::{engine, postgres::Server};
use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

fn tenant(name: &str) -> TenantId {
    TenantId::new(name).unwrap()
}

/// Returns the address of a database for a role that owns it and is no superuser, for whom policies hold.
fn database_of_its_owner(server: &Server) -> String {
    let address = server.database();
    let own = "CREATE ROLE plain LOGIN; GRANT ALL ON SCHEMA public TO plain";
    server.sql(name_of(&address), own);
    address.replace("owner@", "plain@")
}

/// Opens the store of a tenant, which is added if it is not there.
fn of(dir: &Path, address: &str, name: &str) -> Arc<dyn Kv> {
    let (server, tenant) = (Address::new(address), tenant(name));
    server.add_tenant(&tenant).unwrap();
    open(&dir.join(name), server.with_tenant(tenant), Mode::ReadWrite).unwrap()
}

/// PG9: each of many tenants of one database has a store that passes the suite, also where the server judges their rows.
#[test]
fn pg9_a_tenant_has_a_store_of_its_own() {
    let Some(server) = Server::start("pg9_a_tenant_has_a_store_of_its_own") else { return };
    let address = database_of_its_owner(&server);
    let (dir, count) = (tempfile::tempdir().unwrap(), Cell::new(0));
    drop(super::writing(&dir.path().join("none"), &address));
    assert!(!Address::new(&address).has_secure_rows().unwrap());
    Address::new(&address).secure_rows().unwrap();
    assert!(Address::new(&address).has_secure_rows().unwrap());
    engine::conforms(|| of(dir.path(), &address, &format!("t{}", count.replace(count.get() + 1))));
    assert!(count.get() > 5, "{}", count.get());
}

/// PG9: tenants that use the same numbers of todos do not meet, neither each other nor the store of no tenant.
#[test]
fn pg9_tenants_do_not_meet() {
    let Some(server) = Server::start("pg9_tenants_do_not_meet") else { return };
    let (dir, address) = (tempfile::tempdir().unwrap(), server.database());
    let none = super::writing(&dir.path().join("none"), &address);
    let stores = [none, of(dir.path(), &address, "acme"), of(dir.path(), &address, "beta")];
    for (at, store) in stores.iter().enumerate() {
        let seen = [0, 1, 2].map(|at: usize| stores[at].changed().unwrap());
        for n in 0..=at {
            append(store.as_ref(), 1, format!("{at} {n}").as_bytes()).unwrap();
        }
        for (other, before) in seen.iter().enumerate() {
            assert_eq!(stores[other].changed().unwrap() != *before, other == at, "{at} {other}");
        }
    }
    for (at, store) in stores.iter().enumerate() {
        let own: Vec<_> = (0..=at).map(|n| format!("{at} {n}").into_bytes()).collect();
        assert_eq!(values(store.as_ref(), 1), own);
        assert_eq!(store.heads(0..9).unwrap(), [(1, own.len() as u64)]);
        assert_eq!((store.check().unwrap(), store.lost().unwrap()), (vec![], None));
    }
    // A copy has the rows of one.
    let copy = dir.path().join("copy");
    stores[1].backup(&copy).unwrap();
    let copied = open(&copy, Truth::default(), Mode::ReadOnly).unwrap();
    assert_eq!(values(copied.as_ref(), 1).len(), 2);
    // The folder of one is not that of another.
    let other = Address::new(&address).with_tenant(tenant("beta"));
    let mixed = open(&dir.path().join("acme"), other, Mode::ReadWrite).err().unwrap();
    assert!(mixed.to_string().contains("belongs to the database with the id"), "{mixed}");
    let nobody = Address::new(&address).with_tenant(tenant("nobody"));
    let nobody = open(&dir.path().join("nobody"), nobody, Mode::ReadWrite).err().unwrap();
    assert_eq!(nobody.to_string(), "there is no tenant nobody");
}

/// PG10: where the server judges rows, a connection of a tenant sees and writes its own alone, whatever it asks for.
#[test]
fn pg10_the_server_keeps_tenants_apart() {
    let Some(server) = Server::start("pg10_the_server_keeps_tenants_apart") else { return };
    let (dir, address) = (tempfile::tempdir().unwrap(), server.database());
    let [acme, beta] = ["acme", "beta"].map(|name| of(dir.path(), &address, name));
    append(acme.as_ref(), 1, b"of acme").unwrap();
    append(beta.as_ref(), 1, b"of beta").unwrap();
    super::writing(&dir.path().join("none"), &address).commit(batch(1, 0, b"of none")).unwrap();
    drop((acme, beta));
    Address::new(&address).secure_rows().unwrap();
    // A second time changes nothing.
    Address::new(&address).secure_rows().unwrap();
    let role = "CREATE ROLE asking LOGIN; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO asking";
    server.sql("test_0", role);
    let asked = |name: &str, sql: &str| {
        let script = format!("SET ROLE asking; SET foldback.tenant = '{name}'; {sql}");
        let said = server.sql("test_0", &script);
        said.lines().last().unwrap_or_default().to_owned()
    };
    for table in ["foldback_record", "foldback_head", "foldback_slot", "foldback_commit"] {
        let slots = format!("SELECT string_agg(DISTINCT (slot / 64)::text, ',') FROM {table}");
        assert_eq!(asked("acme", &slots), "1", "{table}");
        assert_eq!(asked("beta", &slots), "2", "{table}");
        assert_eq!(asked("", &slots), "0", "{table}");
        assert_eq!(asked("nobody", &slots), "", "{table}");
    }
    assert_eq!(asked("acme", "SELECT string_agg(name, ',') FROM foldback_tenant"), "acme");
    for sql in [
        "INSERT INTO foldback_record VALUES (128, 9, 3, 0, 'x')",
        "INSERT INTO foldback_head VALUES (128, 9, 1, 0, gen_random_uuid())",
        "UPDATE foldback_record SET slot = slot + 64",
    ] {
        let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| asked("acme", sql)));
        assert!(refused.is_err(), "{sql}");
    }
    asked("acme", "DELETE FROM foldback_record");
    assert_eq!(values(of(dir.path(), &address, "beta").as_ref(), 1), [b"of beta"]);
}

/// PG11: a tenant that is forgotten leaves no row with contents, takes no write of a process that has it open, and its name
/// is not given again; the others stay.
#[test]
fn pg11_a_forgotten_tenant_is_gone() {
    let Some(server) = Server::start("pg11_a_forgotten_tenant_is_gone") else { return };
    for is_secured in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let address = if is_secured { database_of_its_owner(&server) } else { server.database() };
        let address_of = || Address::new(&address);
        if is_secured {
            address_of().secure_rows().unwrap();
            assert!(address_of().has_secure_rows().unwrap());
        }
        let [acme, beta] = ["acme", "beta"].map(|name| of(dir.path(), &address, name));
        for todo in 1..40 {
            append(acme.as_ref(), todo, b"of acme").unwrap();
            append(beta.as_ref(), todo, b"of beta").unwrap();
        }
        // A process that has read nothing yet writes to a slot that it has never seen.
        let other = open(
            &dir.path().join("other"),
            address_of().with_tenant(tenant("acme")),
            Mode::ReadWrite,
        );
        let other = other.unwrap();
        address_of().forget_tenant(&tenant("acme")).unwrap();
        for (store, todo) in [(&acme, 1), (&acme, 99), (&other, 1), (&other, 98)] {
            let expect = Some(Expect { todo, head: 0, next: 1 });
            let put = vec![(Key { space: Space::Message, todo, n: 0 }, b"late".to_vec())];
            let late = store.commit(foldback_kv::Batch { expect, put, delete: Vec::new() });
            assert!(
                matches!(late, Err(Error::NoTenant { was_forgotten: true, .. })),
                "{todo}: {late:?}"
            );
        }
        for table in ["foldback_record", "foldback_head", "foldback_commit"] {
            let left = format!("SELECT count(*) FROM {table} WHERE slot / 64 = 1");
            assert_eq!(server.sql(name_of(&address), &left).trim(), "0", "{table}");
        }
        for again in
            [address_of().add_tenant(&tenant("acme")), address_of().forget_tenant(&tenant("acme"))]
        {
            let again = again.unwrap_err();
            assert!(again.to_string().contains("its name is not given again"), "{again}");
        }
        assert!(!acme.wait_for_change(acme.changed().unwrap(), Duration::ZERO).unwrap());
        append(beta.as_ref(), 1, b"of beta").unwrap();
        assert_eq!(values(beta.as_ref(), 1).len(), 2);
        assert_eq!(beta.check().unwrap(), []);
    }
}

/// Returns the name of the database at an address.
fn name_of(address: &str) -> &str {
    address.rsplit_once('/').unwrap().1
}
