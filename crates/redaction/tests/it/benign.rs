//! Text that looks like a secret but is none.

use crate::samples::Letters;
use foldback_redaction::find;
use foldback_testkit::{data, skip_without_data};
use std::collections::BTreeMap;

/// A block of code or of a log: some lines, each made from a template of [`Letters`].
fn block(letters: &mut Letters) -> String {
    let count = 3 + letters.below(10);
    let mut lines = Vec::new();
    for _ in 0..count {
        let line = LINES[letters.below(LINES.len())];
        lines.push(letters.fill(line));
    }
    lines.join("\n")
}

const LINES: &[&str] = &[
    // Commits, ids, checksums.
    "commit <hex:40>",
    "index <hex:7>..<hex:7> 100644",
    "Merge: <hex:7> <hex:7>",
    "<hex:40> refs/heads/main",
    "sha256:<hex:64>: Pull complete",
    "request_id=<hex:8>-<hex:4>-4<hex:3>-a<hex:3>-<hex:12> status=200 took=<digit:2>ms",
    "session <hex:8>-<hex:4>-4<hex:3>-a<hex:3>-<hex:12> closed",
    "trace_id=<hex:32> span_id=<hex:16>",
    "md5sum  <hex:32>  build.tar.gz",
    "etag: \"<hex:32>\"",
    "x-amz-request-id: <updigit:16>",
    "call_<62:24>",
    "toolu_<62:24>",
    "chatcmpl-<62:29>",
    "{\"id\": \"msg_<62:24>\", \"type\": \"message\"}",
    // Lock files.
    "checksum = \"<hex:64>\"",
    "      \"integrity\": \"sha512-<64:86>==\",",
    "      \"resolved\": \"https://registry.npmjs.org/left-pad/-/left-pad-1.3.<digit:1>.tgz\",",
    "    --hash=sha256:<hex:64>",
    "golang.org/x/net v0.<digit:2>.0 h1:<64:43>=",
    "source = \"registry+https://github.com/rust-lang/crates.io-index\"",
    "\"version\": \"<digit:1>.<digit:2>.<digit:1>\",",
    // Images and other bytes.
    "<img src=\"data:image/png;base64,iVBORw0KGgo<64:400>==\">",
    "data:font/woff2;base64,d09GMgABAAAAA<64:300>",
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQ<64:300> me@host",
    "-----BEGIN CERTIFICATE-----\n<64:64>\n<64:64>\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\n<64:64>\n-----END PUBLIC KEY-----",
    "signature: <64:86>==",
    "\"signature\": \"<64:340>\"",
    // Code that mentions secrets but contains none.
    "password = os.environ[\"DB_PASSWORD\"]",
    "password: String,",
    "let token = tokenizer.next_token2()?;",
    "token = next(tokens, None)",
    "max_tokens: <digit:4>, total_tokens: <digit:5>",
    "\"usage\": {\"input_tokens\": <digit:4>, \"cache_read_input_tokens\": <digit:5>}",
    "api_key = \"your-api-key-here-0001\"",
    "API_KEY=${API_KEY_2024}",
    "api_key=os.getenv('OPENAI_API_KEY_V2')",
    "curl -H \"Authorization: Bearer $TOKEN\" https://api.example.com/v1/items/<digit:4>",
    "Authorization: Bearer <digit:0>YOUR_ACCESS_TOKEN_V2",
    "secret_name = \"prod/service-<digit:2>/db\"",
    "secretKeyRef: {name: app-secrets-v2, key: db-password-1}",
    "DATABASE_URL=postgres://user:password@localhost:5432/app",
    "redis://localhost:6379/0 http://127.0.0.1:<digit:4>/path",
    "git@github.com:owner/repo<digit:2>.git",
    "see https://medium.com/@user<digit:2>/post-<hex:12> and npm i pkg@1.2/@scope",
    "GET http://localhost:<digit:4>/node_modules/@scope<digit:1>/lib.js 200",
    "import x from 'http://127.0.0.1:5173/@vite/client?v=<hex:8>'",
    "file://C:/Users/me<digit:1>/node_modules/@babel/core/lib<digit:1>.js",
    "docker pull oci://registry.example.com:5000/team/app@sha256:<hex:64>",
    "http://api:8080/users?email=me<digit:2>@example.com",
    "ssh://git@github.com:22/owner/repo<digit:1>.git",
    "postgres://app:${DB_PASSWORD}@db/x?contact=me<digit:1>@example.com",
    "mongodb://localhost:27017,replica:27017/?authSource=admin@<digit:1>",
    "if password == confirm_password2 { return Ok(()) }",
    "self.token_type = TokenType::Identifier_<digit:2>",
    "def reset_password(user_id: int, new_password1: str) -> None:",
    "logger.info(\"token refreshed for user %s\", user.id<digit:2>)",
    "<input type=\"password\" name=\"password1\" autocomplete=\"new-password\">",
    "export AWS_SECRET_ACCESS_KEY=$(vault read -field=key<digit:1> secret/aws)",
    "AWS_ACCESS_KEY_ID=AKIAXXXXXXXXXXXX",
    "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "csrf_token: {{ csrf_token() }}",
    "password: \"changeme<digit:3>!\"",
    "token: your-<digit:3>-secret-token",
    "newPassword: oldPassword<digit:2>,",
    "secret = clientSecretV<digit:1>",
    "postgres://user:your_password@localhost/x postgres://user:CHANGE_ME_<digit:2>@db/x",
    "postgres://user:DB_PASSWORD_<digit:2>@db/x postgres://user:secret@db/x",
    "Authorization: Token <digit:0>YOUR_API_TOKEN_V2",
    "privateKey: fs.readFileSync('certs/private-<digit:2>.pem')",
    "grep -n 'BEGIN RSA PRIVATE KEY' -r src/<hex:8>",
    "src/Keys<digit:2>/load.rs:<digit:3>:    if text.starts_with(\"-----BEGIN RSA PRIVATE KEY-----\") {",
    "-----BEGIN RSA PRIVATE KEY-----\n...\n-----END RSA PRIVATE KEY-----",
    "const encryptionKey = await deriveKey2(masterKey<digit:1>);",
    "next_page_token = response.get(\"nextPageToken\")",
    "next_token: Option<digit:0>",
    "passwords must have 8 characters, a digit and a symbol",
    "密码是必填项，令牌过期后请重新登录。",
    "请在配置文件中设置密码：database.password",
    // Templates: formats, variables, patterns and versions.
    "TOKEN_KEY = \"oauth2:access_token:%s\"",
    "TOKEN_KEY = \"refresh_token:%s:v<digit:1>\"",
    "secret: prod/db-password-v<digit:1>-*",
    "const tokenPattern = '^token_[a-z0-9]{32}$'",
    "const tokenPattern = /token_[A-Za-z0-9]+_v<digit:1>/",
    "\"token-lib\": \"npm:@acme/design-tokens@^<digit:1>.0.1\"",
    "curl -u \"ci:${CI_PASSWORD<digit:1>}\" https://api.example.com",
    "curl -u admin:$ADMIN_PASSWORD<digit:1> https://api.example.com",
    "postgres://app:$DB_PASSWORD<digit:1>@db/x postgres://u:$dbPassword<digit:1>@db",
    // Logs.
    "2026-11-26T13:39:10.<digit:3>Z  INFO worker-<digit:1> finished batch <digit:6> in <digit:3> ms",
    "    at com.acme.auth.TokenService.refresh(TokenService.java:<digit:3>)",
    "thread 'main' panicked at src/auth/token.rs:<digit:2>:<digit:1>: called `Option::unwrap()`",
    "GET /static/app.<hex:8>.js HTTP/1.1\" 200 <digit:5> \"-\" \"Mozilla/5.0\"",
    "0x<hex:16> <hex:8> <hex:8>: mov rax, qword ptr [rip + 0x<hex:5>]",
    "npm WARN deprecated left-pad@1.3.<digit:1>: use String.prototype.padStart()",
    "C:\\Users\\runner\\AppData\\Local\\Temp\\build-<digit:5>\\out.log",
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA<64:20>",
    "uuid: <hex:8>-<hex:4>-4<hex:3>-8<hex:3>-<hex:12>",
    "arn:aws:secretsmanager:us-east-1:<digit:12>:secret:prod/db-<62:6>",
    "projects/p<digit:6>/secrets/api-key/versions/<digit:2>",
];

#[test]
fn s8_false_positives_over_benign_blocks() {
    let (blocks, mut wrong) = (10_000, Vec::new());
    for n in 0..blocks {
        let text = block(&mut Letters::new(n));
        // As text, and as a message in JSON.
        let json = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let found = [find(&text), find(&json)].concat();
        if let Some(one) = found.first() {
            wrong.push(format!("{}: {}", one.kind, one.secret));
        }
    }
    println!("{} of {blocks} benign blocks have a finding: {wrong:?}", wrong.len());
    assert!(wrong.len() as u64 * 1_000 <= blocks, "{:#?}", &wrong[..wrong.len().min(20)]);
}

/// Findings in recorded conversations. Some hold made-up secrets, so each finding is printed.
#[test]
fn s8_recorded_conversations() {
    skip_without_data!();
    let (mut messages, mut found) = (0_u64, BTreeMap::<&str, (u64, String)>::new());
    for (_, conversation) in data::conversations(&["agent", "dialogue"]) {
        for message in &conversation.messages {
            messages += 1;
            let mut kinds: Vec<_> =
                find(message.json()).into_iter().map(|one| (one.kind, one.secret)).collect();
            kinds.dedup_by_key(|(kind, _)| *kind);
            for (kind, secret) in kinds {
                let (count, example) = found.entry(kind).or_default();
                *count += 1;
                *example = secret;
            }
        }
        if messages > 60_000 {
            break;
        }
    }
    let all: u64 = found.values().map(|(count, _)| count).sum();
    println!("{all} of {messages} recorded messages have a finding: {found:#?}");
    assert!(all * 1_000 <= messages, "{found:#?}");
}
