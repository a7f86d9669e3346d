//! Tenants behind one gateway, each with a store of its own.

use crate::world::{World, body, counting};
use foldback::{Memory, Options, Tenant};
use foldback_core::TenantId;
use foldback_gateway::{GatewayConfig, Keeping, Tenants, Upstream};
use parking_lot::Mutex;
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;

/// Tenants that a store knows.
struct Known {
    keeper: Memory,
    stores: HashMap<TenantId, Memory>,
    provider: Mutex<String>,
    /// Whether their stores can be opened.
    is_open: Mutex<bool>,
}

impl Known {
    /// Adds tenants of these names, and returns their tokens.
    fn new<const N: usize>(names: [&str; N], is_open: bool) -> (Arc<Self>, [String; N]) {
        let keeper = Memory::in_memory(Options::default()).unwrap();
        let ids = names.map(|name| TenantId::new(name).unwrap());
        let tokens = ids.clone().map(|id| keeper.tenants().let_in(&id).unwrap());
        let store = || Memory::in_memory(Options::default().with_view(Keeping::view())).unwrap();
        let stores = ids.into_iter().map(|id| (id, store())).collect();
        (
            Arc::new(Self { keeper, stores, provider: Mutex::default(), is_open: is_open.into() }),
            tokens,
        )
    }
}

impl Tenants for Known {
    fn of_token(&self, token: &[u8]) -> Result<Option<Tenant>, String> {
        if token == b"away" {
            return Err("the store is away".to_owned());
        }
        let known = self.keeper.tenants().list().map_err(|error| error.to_string())?;
        Ok(known.into_iter().find(|tenant| tenant.has_token(token)))
    }

    fn config(&self, tenant: &TenantId) -> Result<GatewayConfig, String> {
        let mut config = GatewayConfig::new().unwrap();
        config.anthropic = Upstream::new(&self.provider.lock()).unwrap();
        // What a tenant's configuration says of tokens is ignored.
        config.token = Some("another".to_owned());
        config.keeping = match *self.is_open.lock() {
            true => Keeping::On(self.stores[tenant].clone()),
            false => Keeping::Impossible("the tenant's store is away".to_owned()),
        };
        Ok(config)
    }
}

/// PG9: requests that are alike but for their tokens are recorded in the stores of their tenants, each whole; those without a
/// tenant are refused, and those with the gateway's own token are recorded in its own store.
#[tokio::test]
async fn pg9_requests_are_recorded_by_their_tokens() {
    let (known, [acme, beta]) = Known::new(["acme", "beta"], true);
    let tenants = known.clone();
    let world = World::with(counting(), |config| {
        config.token = Some("own".to_owned());
        config.tenants = Some(tenants);
    })
    .await;
    known.provider.lock().clone_from(&world.upstream.url);
    let send = async |token: &str, text: &str| {
        let asked = body(json!([{ "role": "user", "content": text }]));
        let request = world.messages(&asked).header("x-foldback-token", token);
        request.send().await.unwrap().status().as_u16()
    };
    for (token, status) in
        [(&*acme, 200), (&*beta, 200), ("own", 200), (&acme[1..], 403), ("", 403)]
    {
        assert_eq!(send(token, "Which port did we choose? 哪个？").await, status, "{token:?}");
    }
    assert_eq!(send("away", "hi").await, 503);
    let page = world.messages(&body(json!([]))).header("x-foldback-token", &acme);
    let page = page.header("origin", "https://evil.example").send().await.unwrap();
    assert_eq!(page.status(), 403, "a token lets no page in");
    // Each has a state of its own.
    let health = async |token: &str| {
        let asked = world.client.get(format!("{}/foldback/health", world.url));
        let answer = asked.header("x-foldback-token", token).send().await.unwrap();
        answer.text().await.unwrap()
    };
    let mut seen = Vec::new();
    for token in [&*acme, &beta, "own"] {
        seen.push(health(token).await);
    }
    seen.dedup();
    assert_eq!(seen.len(), 3, "{seen:?}");
    let (own, requests) = world.end().await;
    assert!(requests.iter().all(|request| request.header("x-foldback-token").is_none()));
    for memory in known.stores.values().chain([&own]) {
        let todos = memory.todos(None, 9).unwrap();
        assert_eq!(todos.len(), 1);
        assert_eq!(memory.len(&todos[0]).unwrap(), 3, "instructions, a question and an answer");
    }
}

/// PG9: while a tenant's store cannot be opened its requests pass, and once it can they are recorded, without a restart.
#[tokio::test]
async fn pg9_a_tenant_s_store_is_opened_once_it_can_be() {
    let (known, [acme]) = Known::new(["acme"], false);
    let store = known.stores.values().next().unwrap().clone();
    let tenants = known.clone();
    let world = World::with(counting(), |config| config.tenants = Some(tenants)).await;
    known.provider.lock().clone_from(&world.upstream.url);
    let asked = body(json!([{ "role": "user", "content": "hi" }]));
    let send = async || {
        let request = world.messages(&asked).header("x-foldback-token", &acme);
        request.send().await.unwrap()
    };
    let passed = send().await;
    assert_eq!(passed.status(), 200);
    assert!(passed.headers().contains_key("x-foldback-notice"), "{passed:?}");
    *known.is_open.lock() = true;
    // Another try is made by a later request.
    while store.todos(None, 1).unwrap().is_empty() {
        assert_eq!(send().await.status(), 200);
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    world.end().await;
}
