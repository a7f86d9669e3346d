//! GW13: keys stay the client's, and only programs of this machine may send requests.

use crate::world::{World, body, counting};
use foldback_gateway::{Gateway, GatewayConfig, GatewayError, Keeping, Upstream};
use serde_json::json;
use tokio::net::TcpListener;

/// GW13: no record of a store holds a client's key.
#[tokio::test]
async fn gw13_keys_are_passed_on_and_never_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let memory = foldback::Memory::open(&path, foldback::Options::default()).unwrap();
    let kept = memory.clone();
    let world = World::with(counting(), |config| {
        config.keeping = Keeping::On(kept);
    })
    .await;
    let asked = body(json!([{ "role": "user", "content": "who has the key?" }]));
    assert_eq!(world.messages(&asked).send().await.unwrap().status(), 200);
    let log = std::sync::Arc::clone(&world.log);
    let (_, seen) = world.end().await;
    assert_eq!(seen[0].header("x-api-key"), Some("sk-ant-canary"));
    assert_eq!(*log.lock(), Vec::<String>::new());
    assert_eq!(memory.todos(None, 9).unwrap().len(), 1);
    drop(memory);
    let mut files = vec![path];
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        let found = bytes.windows(13).any(|window| window == b"sk-ant-canary");
        assert!(!found, "{}", path.display());
    }
}

/// GW2: what is asked of the gateway itself is not sent to a provider, and no path leads out of its address.
#[tokio::test]
async fn gw2_paths_of_the_gateway_are_its_own() {
    let world = World::new(counting()).await;
    for (method, path, status) in [
        ("GET", "/foldback/health", 200),
        ("HEAD", "/foldback/live", 200),
        ("POST", "/foldback/health", 405),
        ("DELETE", "/foldback/ready", 405),
        ("GET", "/foldback/helth", 404),
        ("POST", "/foldback/", 404),
        ("GET", "/v1/a%2f..%2f..%2fadmin", 400),
    ] {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let answer = world.client.request(method, format!("{}{path}", world.url)).send().await;
        assert_eq!(answer.unwrap().status(), status, "{path}");
    }
    assert_eq!(world.upstream.seen(), []);
}

/// GW13: a page in a browser may not send requests, by whatever name it calls this machine.
#[tokio::test]
async fn gw13_pages_in_a_browser_are_refused() {
    let world = World::new(counting()).await;
    let asked = body(json!([{ "role": "user", "content": "hi" }]));
    for (name, value, status) in [
        ("origin", "https://evil.example", 403),
        ("origin", "null", 403),
        ("host", "evil.example", 403),
        ("host", "evil.example:8377", 403),
        ("host", "", 403),
        ("origin", "http://127.0.0.1.evil.example", 403),
        ("origin", "http://localhost:3000", 200),
        ("host", "localhost:1", 200),
        ("host", "[::1]:1", 200),
    ] {
        let answer = world.messages(&asked).header(name, value).send().await.unwrap();
        assert_eq!(answer.status(), status, "{name}: {value}");
    }
}

/// GW13: an address that other machines can reach needs a token, and so does every request there.
#[tokio::test]
async fn gw13_other_addresses_need_a_token() {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let gateway = Gateway::new(GatewayConfig::new().unwrap()).unwrap();
    let error = gateway.serve(listener, std::future::pending()).await.unwrap_err();
    assert!(matches!(error, GatewayError::Exposed(_)), "{error}");

    let world = World::with(counting(), |config| config.token = Some("t0ken".to_owned())).await;
    let asked = body(json!([{ "role": "user", "content": "hi" }]));
    for (token, status) in [(None, 403), (Some("other"), 403), (Some("t0ken"), 200)] {
        let mut request = world.messages(&asked);
        if let Some(token) = token {
            request = request.header("x-foldback-token", token);
        }
        assert_eq!(request.send().await.unwrap().status(), status, "{token:?}");
    }
    let seen = world.upstream.seen();
    assert_eq!((seen.len(), seen[0].header("x-foldback-token")), (1, None));
}

/// GW13: a supervisor's probes send no token, and find out nothing but whether the gateway runs and has opened its store.
#[tokio::test]
async fn gw13_probes_need_no_token() {
    for (is_kept, ready) in [(true, 200), (false, 503)] {
        let world = World::with(counting(), |config| {
            config.token = Some("t0ken".to_owned());
            if !is_kept {
                config.keeping = Keeping::Impossible("the database is away".to_owned());
            }
        })
        .await;
        for (page, status) in [("live", 200), ("ready", ready), ("health", 403), ("metrics", 403)] {
            let asked = world.client.get(format!("{}/foldback/{page}", world.url)).send().await;
            let answer = asked.unwrap();
            assert_eq!(answer.status(), status, "{page}");
            assert!(!answer.text().await.unwrap().contains("away"), "{page}");
        }
    }
}

#[test]
fn addresses_of_providers_are_checked() {
    for wrong in ["", "api.anthropic.com", "ftp://x", "http://", "https://x?key=1", "https://x#a"] {
        let error = Upstream::new(wrong).unwrap_err().to_string();
        assert!(error.contains("expected something like"), "{wrong}: {error}");
    }
    let error = Upstream::new("https://me:s3cret@x").unwrap_err().to_string();
    assert!(error.contains("its own key") && !error.contains("s3cret"), "{error}");
}
