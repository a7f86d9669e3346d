//! GW19: exchanges are kept in files, without keys, and nothing waits for them.

use crate::world::{World, body, counting};
use foldback_gateway::{Keeping, Upstream};
use foldback_testkit::upstream::{Answer, Raw};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::Path;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// The exchanges of a folder, in the order in which they were asked.
fn kept(dir: &Path) -> Vec<Value> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries.collect();
    files.sort();
    let read = |file: &std::path::PathBuf| {
        assert_eq!(file.extension().unwrap(), "json", "{}", file.display());
        serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
    };
    files.iter().map(read).collect()
}

/// GW13, GW19: exchanges are kept as they passed, and no key is, wherever it was sent.
#[tokio::test]
async fn gw19_exchanges_are_kept_without_keys() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("new").join("traffic");
    for keeping in [false, true] {
        let world = World::with(counting(), |config| {
            config.traffic = Some(path.clone());
            if !keeping {
                config.keeping = Keeping::Off;
            }
        })
        .await;
        let mut asked = body(json!([{ "role": "user", "content": "Which 码头?" }]));
        asked["stream"] = json!(keeping);
        let request = world.client.post(format!("{}/v1/messages?key=canary-0", world.url));
        let mut request = request.header("user-agent", "claude-cli/2.1 (external)");
        for name in ["authorization", "x-api-key", "api-key", "cookie", "x-goog-api-key", "x-own"] {
            request = request.header(name, format!("canary-{name}"));
        }
        let request =
            request.header("x-foldback-token", "canary-t").header("anthropic-version", "1");
        let request = request.header("x-claude-code-session-id", "s1").body(asked.to_string());
        let answer = request.send().await.unwrap().text().await.unwrap();
        let count = world.client.post(format!("{}/v1/messages/count_tokens", world.url));
        assert!(count.body("{}").send().await.unwrap().bytes().await.is_ok());
        drop(world.end().await);
        let kept = kept(&path);
        assert_eq!(kept.len(), 1 + usize::from(keeping));
        let last = kept.last().unwrap();
        assert_eq!(
            (&last["request"], &last["answer"]),
            (&json!(asked.to_string()), &json!(answer))
        );
        assert_eq!((&last["api"], &last["path"]), (&json!("messages"), &json!("/v1/messages")));
        assert_eq!((&last["client"], &last["status"]), (&json!("claude-cli"), &json!(200)));
        let headers =
            json!({ "user-agent": "claude-cli/2.1 (external)", "x-claude-code-session-id": "s1" });
        assert_eq!(last["headers"], headers);
        assert_eq!(last["session"].as_str().unwrap().len(), 64);
        assert!(last["at"].as_u64().unwrap() > 1_700_000_000_000);
        assert!(last["first_ms"].as_u64().unwrap() <= last["last_ms"].as_u64().unwrap());
        assert!(!json!(kept).to_string().contains("canary"), "{kept:#?}");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o700);
        for file in std::fs::read_dir(&path).unwrap() {
            assert_eq!(mode(&file.unwrap().path()), 0o600);
        }
    }
}

/// GW19: refusals are kept, and so is what came of an answer that broke off, compressed or not.
#[tokio::test]
async fn gw19_a_broken_answer_is_kept_as_far_as_it_came() {
    let dir = tempfile::tempdir().unwrap();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all("data: 半\n\n".as_bytes()).unwrap();
    packed.flush().unwrap();
    let packed = packed.get_ref().clone();
    let raw = |status: u16, headers: &[(&str, &str)], body: &[u8]| {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Answer::Raw(Raw { status, headers: headers.collect(), pieces: vec![body.to_vec()] })
    };
    let broken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", broken.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        let (mut client, _) = broken.accept().await.unwrap();
        let mut asked = [0; 4096];
        assert!(client.read(&mut asked).await.unwrap() > 0);
        let half = b"HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\ndata: half\n\n";
        client.write_all(half).await.unwrap();
    });
    let world = World::with(
        move |seen| match seen.json()["model"].as_str().unwrap() {
            "refused" => raw(429, &[], b"slow down"),
            _ => raw(200, &[("content-encoding", "gzip")], &packed),
        },
        |config| {
            config.traffic = Some(dir.path().to_owned());
            config.openai = Upstream::new(&address).unwrap();
        },
    )
    .await;
    let messages = json!([{ "role": "user", "content": "hi" }]);
    for model in ["refused", "packed"] {
        let mut asked = body(messages.clone());
        asked["model"] = json!(model);
        // How an answer ends is for the client to see.
        drop(world.messages(&asked).send().await.unwrap().bytes().await);
    }
    let asked = json!({ "model": "broken", "messages": messages });
    assert!(world.chat(&asked).send().await.unwrap().bytes().await.is_err());
    serving.await.unwrap();
    drop(world.end().await);
    let kept = kept(dir.path());
    let kept: Vec<_> = kept.iter().map(|one| (&one["status"], one["answer"].as_str())).collect();
    assert_eq!(
        kept,
        [
            (&json!(429), Some("slow down")),
            (&json!(200), Some("data: 半\n\n")),
            (&json!(200), Some("data: half\n\n")),
        ]
    );
}

/// GW12, GW19: a folder that cannot be written to stops no request, and is reported once.
#[tokio::test]
async fn gw12_gw19_traffic_that_cannot_be_kept_passes() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "in the way").unwrap();
    for path in [&file, &file.join("below")] {
        let world = World::with(counting(), |config| config.traffic = Some(path.to_owned())).await;
        for text in ["one", "two"] {
            let asked = body(json!([{ "role": "user", "content": text }]));
            assert_eq!(world.messages(&asked).send().await.unwrap().status(), 200);
        }
        let log = std::sync::Arc::clone(&world.log);
        drop(world.end().await);
        let lines = log.lock().clone();
        assert!(lines.len() == 1 && lines[0].starts_with("an exchange is not kept: "), "{lines:?}");
    }
}
