//! `web_fetch`: pages from a server on this machine, which only these tests permit.

use crate::tools::Folder;
use foldback_tool::{CallContext, Effect, ToolErrorKind};
use foldback_tools::{Permissions, toolset};
use serde_json::json;
use std::net::TcpListener;
use wiremock::matchers::{method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

fn folder(permit: impl FnOnce(&mut Permissions)) -> Folder {
    Folder::permitting(&[], |permissions| {
        let mut permissions = permissions.with_host("127.0.0.1").with_host("localhost");
        permissions.web.private_addresses = true;
        permit(&mut permissions);
        permissions
    })
}

async fn server(pages: &[(&str, ResponseTemplate)]) -> MockServer {
    let server = MockServer::start().await;
    for (at, page) in pages {
        let mock = Mock::given(method("GET")).and(path(*at)).respond_with(page.clone());
        mock.mount(&server).await;
    }
    server
}

fn page(bytes: impl Into<Vec<u8>>, media_type: &str) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_raw(bytes, media_type)
}

async fn fetched(folder: &Folder, url: &str) -> String {
    let output = folder.call("web_fetch", json!({"url": url})).await;
    let text = output.unwrap_or_else(|error| panic!("{url}: {error}")).data.text;
    text.strip_prefix(&format!("{url}\n\n")).unwrap_or(&text).to_owned()
}

async fn refused(folder: &Folder, url: &str) -> String {
    let output = folder.call("web_fetch", json!({"url": url})).await;
    output.err().unwrap_or_else(|| panic!("{url} was fetched")).message
}

/// S13: no page is fetched unless a host is named.
#[test]
fn s13_pages_are_not_permitted_by_default() {
    let folder = tempfile::tempdir().unwrap();
    let names = |permissions: &Permissions| -> Vec<String> {
        let tools = toolset(permissions).unwrap();
        tools.iter().map(|tool| tool.spec().name().to_owned()).collect()
    };
    let permissions = Permissions::in_workspace(folder.path());
    assert!(!names(&permissions).contains(&"web_fetch".to_owned()));
    let with = permissions.with_host("docs.rs");
    assert!(names(&with).contains(&"web_fetch".to_owned()));
    let tools = toolset(&with).unwrap();
    let spec = tools.iter().find(|tool| tool.spec().name() == "web_fetch").unwrap().spec();
    assert_eq!(spec.effect, Effect::Idempotent);
    assert!(spec.definition.description.contains("from docs.rs."));
}

#[tokio::test]
async fn html_becomes_text() {
    let html = "<html><head><title>T</title><style>p {}</style><script>run()</script></head><body>
        <h1>天气</h1><p>杭州 <b>小雨</b>, see <a href=\"/more?a=1&amp;b=2\">more</a>.</p>
        <ul><li>一</li><li>two &lt;2&gt;</li></ul><pre>let a = 1;\n  let b = 2;</pre>
        <table><tr><td>a</td><td>b</td></tr></table></body></html>";
    let server = server(&[("/", page(html, "text/html; charset=utf-8"))]).await;
    let text = fetched(&folder(|_| ()), &format!("{}/", server.uri())).await;
    for part in [
        "天气",
        "小雨",
        "[more][1]",
        "[1]: /more?a=1&b=2",
        "* 一",
        "two <2>",
        "let a = 1;\n  let b",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    for part in ["run()", "p {}", "<p>"] {
        assert!(!text.contains(part), "{part}: {text}");
    }
}

/// The encoding of a page is taken from its server, from the page itself, or from a byte order mark.
#[tokio::test]
async fn pages_of_other_encodings_are_read() {
    let text = "杭州天气：小雨";
    let gbk = encoding_rs::GBK.encode(text).0.into_owned();
    let sjis = encoding_rs::SHIFT_JIS.encode("天気は雨").0.into_owned();
    let mut utf_16 = vec![0xFF, 0xFE];
    utf_16.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
    let told = |label: &str, body: &[u8]| {
        [format!("<html><head><meta charset=\"{label}\"></head><p>").as_bytes(), body].concat()
    };
    let old =
        [b"<meta http-equiv=Content-Type content='text/html; charset=gb2312'><p>".as_slice(), &gbk]
            .concat();
    let server = server(&[
        ("/server", page(gbk.clone(), "text/plain; charset=\"GBK\"")),
        ("/page", page(told("gbk", &gbk), "text/html")),
        ("/old", page(old, "text/html")),
        ("/mark", page(utf_16, "text/plain")),
        ("/japanese", page(sjis, "text/plain;charset=Shift_JIS")),
        ("/none", page(text, "text/plain")),
        ("/wrong", page(gbk, "text/plain")),
    ])
    .await;
    let folder = folder(|_| ());
    for at in ["/server", "/page", "/old", "/mark", "/none"] {
        let fetched = fetched(&folder, &format!("{}{at}", server.uri())).await;
        assert_eq!(fetched.trim(), text, "{at}");
    }
    assert_eq!(fetched(&folder, &format!("{}/japanese", server.uri())).await, "天気は雨");
    assert!(fetched(&folder, &format!("{}/wrong", server.uri())).await.contains('\u{FFFD}'));
}

/// S13: only text, no more of it than is permitted, and only whole characters.
#[tokio::test]
async fn s13_only_text_and_only_so_much_is_taken() {
    let server = server(&[
        ("/json", page(r#"{"温度": 7}"#, "application/json")),
        ("/feed", page("<a/>", "application/atom+xml")),
        ("/image", page([0x89, b'P'], "image/png")),
        ("/untold", ResponseTemplate::new(200).set_body_bytes("雨".as_bytes())),
        ("/long", page("天".repeat(1_000), "text/plain; charset=utf-8")),
        ("/nested", page("<div><table><tr><td><ul><li>".repeat(2_000), "text/html")),
    ])
    .await;
    let folder = folder(|permissions| permissions.web.output_bytes = 100_000);
    let at = |path: &str| format!("{}{path}", server.uri());
    assert_eq!(fetched(&folder, &at("/json")).await, r#"{"温度": 7}"#);
    assert_eq!(fetched(&folder, &at("/feed")).await, "<a/>");
    assert_eq!(
        refused(&folder, &at("/image")).await,
        "the content has the type image/png; only text can be fetched"
    );
    let nested = refused(&folder, &at("/nested")).await;
    assert!(nested.contains("nested more than 512 levels deep"), "{nested}");
    let small = self::folder(|permissions| permissions.web.output_bytes = 100);
    let text = fetched(&small, &at("/long")).await;
    assert_eq!(
        text,
        format!("{}\n[the page is longer; only its first 100 bytes were read]", "天".repeat(33))
    );
}

/// S13: no request is sent to a host that is not named, however it is reached.
#[tokio::test]
async fn s13_redirections_are_checked_again() {
    let other = MockServer::start().await;
    let by_name = other.uri().replace("127.0.0.1", "localhost");
    let moved = |to: &str| ResponseTemplate::new(302).insert_header("location", to);
    let server = server(&[
        ("/a", moved("/b?x=1")),
        ("/b", page("here", "text/plain")),
        ("/away", moved(&by_name)),
        ("/file", moved("file:///etc/passwd")),
        ("/round", moved("/round")),
        ("/metadata", moved("http://169.254.169.254/latest/meta-data")),
    ])
    .await;
    let folder = folder(|permissions| permissions.web.hosts = ["127.0.0.1".to_owned()].into());
    let at = |path: &str| format!("{}{path}", server.uri());
    assert_eq!(fetched(&folder, &at("/a")).await, format!("{}\n\nhere", at("/b?x=1")));
    let away = refused(&folder, &at("/away")).await;
    assert_eq!(away, "fetching from localhost is not permitted; permitted: 127.0.0.1");
    assert!(other.received_requests().await.unwrap().is_empty());
    assert!(refused(&folder, &at("/file")).await.contains("http: or https: was expected"));
    assert!(refused(&folder, &at("/round")).await.contains("more than 5 times"));
    assert!(refused(&folder, &at("/metadata")).await.contains("169.254.169.254 is not permitted"));
}

/// S13: no request is sent to a permitted host in a private network, however it is written.
#[tokio::test]
async fn s13_private_addresses_are_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let folder = folder(|permissions| {
        permissions.web.hosts = ["*".to_owned()].into();
        permissions.web.private_addresses = false;
    });
    for host in [
        "127.0.0.1",
        "localhost",
        "127.1",
        "2130706433",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "0.0.0.0",
        "[::]",
        "①②⑦.⓪.⓪.①",
        "127.0.0.1.",
        "169.254.169.254",
        "10.0.0.1",
        "[fd00:ec2::254]",
    ] {
        let message = refused(&folder, &format!("http://{host}:{port}/")).await;
        assert!(message.contains("on the public internet"), "{host}: {message}");
    }
    assert!(listener.accept().is_err(), "nobody came");
    for (url, why) in [
        ("ftp://docs.rs/", "http: or https: was expected"),
        ("file:///etc/passwd", "http: or https: was expected"),
        ("http://user:word@docs.rs/", "a user name or password"),
        ("docs.rs", "is not a valid URL"),
        ("http://", "is not a valid URL"),
    ] {
        let message = refused(&folder, url).await;
        assert!(message.contains(why), "{url}: {message}");
    }
}

/// A server's refusal is an error that says whether it may pass.
#[tokio::test]
async fn a_servers_no_is_told() {
    let server = server(&[
        ("/gone", ResponseTemplate::new(404).set_body_raw("没有", "text/plain; charset=utf-8")),
        ("/busy", ResponseTemplate::new(503)),
        ("/slow", page("late", "text/plain").set_delay(std::time::Duration::from_secs(30))),
    ])
    .await;
    let folder = folder(|permissions| permissions.web.time_s = 1);
    let error = |path: &str| {
        let url = format!("{}{path}", server.uri());
        let folder = &folder;
        async move { folder.call("web_fetch", json!({"url": url})).await.unwrap_err() }
    };
    let gone = error("/gone").await;
    assert_eq!(gone.kind, ToolErrorKind::Permanent);
    assert!(gone.message.ends_with("answered 404 Not Found: 没有"), "{gone}");
    assert_eq!(error("/busy").await.kind, ToolErrorKind::Transient);
    let slow = error("/slow").await;
    assert_eq!(slow.kind, ToolErrorKind::Transient);
    assert!(slow.message.ends_with("did not answer within 1 seconds"), "{slow}");
    let context = CallContext::default();
    context.cancelled.cancel();
    let tool = folder.toolbox.get("web_fetch").unwrap();
    let arguments = json!({"url": format!("{}/slow", server.uri())}).to_string();
    let cancelled = tool.call(&arguments, &context).await.unwrap_err();
    assert_eq!(cancelled.message, "the call was cancelled");
}
