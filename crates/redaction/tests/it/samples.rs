//! Made-up secrets of every shape, and a source of letters for them.

/// A source of letters that are the same in every run.
pub(crate) struct Letters(u64);

impl Letters {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end as u64) as usize
    }

    pub(crate) fn of(&mut self, set: &str, count: usize) -> String {
        let set: Vec<char> = letters(set).chars().collect();
        (0..count).map(|_| set[self.below(set.len())]).collect()
    }

    /// A text in which each `<set:count>` is replaced by `count` letters of the set.
    pub(crate) fn fill(&mut self, template: &str) -> String {
        let (mut out, mut rest) = (String::new(), template);
        while let Some((before, after)) = rest.split_once('<') {
            out.push_str(before);
            let slot = after.split_once('>').and_then(|(slot, after)| {
                let (set, count) = slot.split_once(':')?;
                Some((set, count.parse().ok()?, after))
            });
            match slot {
                Some((set, count, after)) => {
                    out.push_str(&self.of(set, count));
                    rest = after;
                }
                None => {
                    out.push('<');
                    rest = after;
                }
            }
        }
        out + rest
    }
}

fn letters(set: &str) -> &'static str {
    const ALL: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-";
    match set {
        "hex" => "0123456789abcdef",
        "digit" => "0123456789",
        "up" => "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        "up32" => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
        "updigit" => "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
        "low" => "abcdefghijklmnopqrstuvwxyz0123456789",
        "62" => &ALL[..62],
        "64" => &ALL[..64],
        "url" => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-",
        "age" => "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
        "pass" => "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789!#%+=_^",
        other => panic!("no set {other}"),
    }
}

/// A shape: the kind to find, the text before the secret, the secret, and the text after it.
pub(crate) type Sample = (&'static str, &'static str, &'static str, &'static str);

/// A secret key in lines.
const PEM: &str = "\n<64:64>\n<64:64>\n<64:64>\n<64:40>==\n";

/// Every shape, at least once.
pub(crate) fn samples() -> Vec<(&'static str, String, String, String)> {
    let pem = |kind, name: &str| {
        let secret = format!("-----BEGIN {name}-----{PEM}-----END {name}-----");
        (kind, "key:\n".to_owned(), secret, "\n".to_owned())
    };
    let keys = [
        ("private-key", "RSA PRIVATE KEY"),
        ("private-key", "EC PRIVATE KEY"),
        ("private-key", "DSA PRIVATE KEY"),
        ("private-key", "PRIVATE KEY"),
        ("private-key", "ENCRYPTED PRIVATE KEY"),
        ("ssh-private-key", "OPENSSH PRIVATE KEY"),
        ("pgp-private-key", "PGP PRIVATE KEY BLOCK"),
    ];
    let own = |(kind, before, secret, behind): &Sample| {
        (*kind, (*before).to_owned(), (*secret).to_owned(), (*behind).to_owned())
    };
    SAMPLES.iter().map(own).chain(keys.map(|(kind, name)| pem(kind, name))).collect()
}

const SAMPLES: &[Sample] = &[
    ("aws-access-key", "id = ", "AKIA<up32:16>", "\n"),
    ("aws-secret-key", "aws_secret_access_key = ", "<64:40>", "\n"),
    ("aws-session-token", "export AWS_SESSION_TOKEN=", "<64:300>", "\n"),
    ("aws-mws-key", "", "amzn.mws.<hex:8>-<hex:4>-<hex:4>-<hex:4>-<hex:12>", ""),
    ("aws-bedrock-key", "key ", "ABSK<64:120>=", " "),
    ("gcp-api-key", "?key=", "AIza<url:34><62:1>", "&q=1"),
    ("gcp-oauth-secret", "", "GOCSPX-<url:27><62:1>", ""),
    ("gcp-oauth-token", "", "ya29.<url:120><62:1>", " "),
    ("gcp-refresh-token", "refresh: ", "1//0<url:80><62:1>", ""),
    ("azure-storage-key", "AccountName=logs;AccountKey=", "<64:86>==", ";EndpointSuffix=core"),
    ("azure-shared-access-key", "SharedAccessKeyName=root;SharedAccessKey=", "<64:43>=", ""),
    (
        "azure-sas-signature",
        "https://a.blob.core.windows.net/c?sv=2024&sig=",
        "<62:43>%3D",
        "&se=1",
    ),
    ("azure-client-secret", "", "<62:3>8Q~<62:34>", " "),
    ("digitalocean-token", "", "dop_v1_<hex:64>", ""),
    ("cloudflare-origin-key", "", "v1.0-<hex:24>-<hex:146>", ""),
    ("heroku-key", "", "HRKU-AA<62:58>", ""),
    ("alibaba-access-key", "", "LTAI<62:20>", ""),
    ("tencent-secret-id", "", "AKID<62:32>", ""),
    ("planetscale-token", "", "pscale_tkn_<62:43>", ""),
    ("supabase-key", "", "sbp_<hex:40>", ""),
    ("databricks-token", "", "dapi<hex:32>", ""),
    ("pulumi-token", "", "pul-<hex:40>", ""),
    ("terraform-token", "", "<62:14>.atlasv1.<62:65>", ""),
    ("vault-token", "", "hvs.<62:90>", ""),
    ("doppler-token", "", "dp.pt.<62:43>", ""),
    ("age-secret-key", "", "AGE-SECRET-KEY-1<age:58>", ""),
    ("github-token", "git clone https://", "ghp_<62:36>", "@github.com/a/b"),
    ("github-fine-grained-token", "", "github_pat_<62:22>_<62:59>", ""),
    ("gitlab-token", "", "glpat-<url:19><62:1>", ""),
    ("bitbucket-token", "", "ATBB<62:32>", ""),
    ("atlassian-token", "", "ATATT3<62:180>", ""),
    ("npm-token", "//registry.npmjs.org/:_authToken=", "npm_<62:36>", "\n"),
    ("pypi-token", "password = ", "pypi-AgEI<url:150><62:1>", ""),
    ("rubygems-key", "", "rubygems_<hex:48>", ""),
    ("crates-io-token", "", "cio<62:32>", ""),
    ("nuget-key", "", "oy2<low:43>", ""),
    ("clojars-token", "", "CLOJARS_<low:60>", ""),
    ("docker-token", "docker login -p ", "dckr_pat_<url:26><62:1>", ""),
    ("artifactory-key", "", "AKCp<62:69>", ""),
    ("sonar-token", "", "squ_<hex:40>", ""),
    ("postman-key", "", "PMAK-<hex:24>-<hex:34>", ""),
    ("linear-key", "", "lin_api_<62:40>", ""),
    ("notion-token", "", "ntn_<62:46>", ""),
    ("figma-token", "", "figd_<62:42>", ""),
    ("newrelic-key", "", "NRAK-<updigit:27>", ""),
    ("grafana-token", "", "glsa_<62:32>_<hex:8>", ""),
    ("sentry-token", "", "sntryu_<hex:64>", ""),
    ("dynatrace-token", "", "dt0c01.<updigit:24>.<updigit:64>", ""),
    ("openai-key", "OPENAI_API_KEY=", "sk-proj-<url:120><62:1>", "\n"),
    ("openai-key", "", "sk-<62:20>T3BlbkFJ<62:20>", ""),
    ("deepseek-key", "key ", "sk-<hex:32>", " "),
    ("anthropic-key", "x-api-key: ", "sk-ant-api03-<url:93>AA", ""),
    ("openrouter-key", "", "sk-or-v1-<hex:64>", ""),
    ("huggingface-token", "", "hf_<62:34>", ""),
    ("groq-key", "", "gsk_<62:52>", ""),
    ("replicate-token", "", "r8_<62:37>", ""),
    ("perplexity-key", "", "pplx-<62:48>", ""),
    ("xai-key", "", "xai-<62:80>", ""),
    ("slack-token", "", "xoxb-<digit:12>-<digit:12>-<62:24>", ""),
    ("slack-token", "", "xoxc-<digit:12>-<digit:12>-<digit:13>-<hex:64>", ""),
    ("slack-token", "Cookie: d=", "xoxd-<64:60>%2B<62:60>%3D", ";"),
    (
        "slack-webhook",
        "https://hooks.slack.com/services/",
        "T<updigit:8>/B<updigit:10>/<62:24>",
        "",
    ),
    (
        "teams-webhook",
        "https://acme.webhook.office.com/webhookb2/",
        "<hex:8>-<hex:27>@<hex:36>/IncomingWebhook/<hex:32>/<hex:36>",
        "",
    ),
    ("discord-webhook", "https://discord.com/api/webhooks/<digit:18>/", "<url:67><62:1>", ""),
    ("telegram-bot-token", "api.telegram.org/", "<digit:10>:AA<url:32><62:1>", "/getMe"),
    ("twilio-key", "", "SK<hex:32>", ""),
    ("sendgrid-key", "", "SG.<url:22>.<url:42><62:1>", ""),
    ("mailgun-key", "", "key-<hex:32>", ""),
    ("mailchimp-key", "", "<hex:32>-us<digit:1>", ""),
    ("stripe-key", "", "sk_live_<62:99>", ""),
    ("webhook-secret", "", "whsec_<64:32>", ""),
    ("shopify-token", "", "shpat_<hex:32>", ""),
    ("square-token", "", "sq0atp-<62:22>", ""),
    ("putty-private-key", "Private-Lines: 2\n", "<64:64>\n<64:40>==", ""),
    ("jwt", "", "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiI<62:30>.<url:42><62:1>", ""),
    ("url-password", "postgres://app:", "<62:20>", "@db.internal:5432/main"),
    ("url-password", "redis://:", "<pass:16>", "@cache/0"),
    ("url-password", "postgres://app:", "<62:6>@<62:7>", "@db:5432/main"),
    ("url-password", "mysql://root:", "p@<62:4>W0rd!9", "@db/x"),
    ("url-password", "postgres://app:", "<62:9>/<62:7>7=", "@db/x"),
    ("url-password", "postgres://admin:", "MySecret<digit:3>", "@prod-db/x"),
    ("bearer-token", "Authorization: Bearer ", "<62:40>", "\r\n"),
    ("authorization", "Authorization: Token ", "<hex:40>", "\r\n"),
    ("authorization", "authorization: token ", "<hex:40>", "\n"),
    ("authorization", "'Authorization': 'ApiKey ", "<62:46>==", "'"),
    ("basic-auth", "curl -u admin:", "<62:16>", " https://x"),
    ("npm-token", "//npm.acme.dev/:_authToken=", "<hex:8><62:32>", "\n"),
    ("password-hash", "root:", "$2b$12$<62:53>", ":0"),
    ("netrc-password", "machine api login bot password ", "<62:18>7a", "\n"),
    ("password", "DB_PASSWORD=", "<pass:14>", "\n"),
    ("password", "Server=db;User Id=sa;Password=", "<62:16>", ";Encrypt=true"),
    ("password", "{\"password\": \"", "<pass:16>", "\", \"port\": 5432}"),
    ("password", "数据库的密码是：", "<62:14>", "，请不要外传。"),
    ("password", "mysql --password ", "<62:16>", " -h db"),
    ("password", "- name: DB_PASSWORD\n  value: ", "<62:20>", "\n"),
    ("secret", "client_secret: '", "<62:32>", "'"),
    ("token", "const authToken = \"", "<62:40>", "\";"),
    ("token", "访问令牌：", "<62:32>", "。"),
    ("api-key", "X-Api-Key: ", "<62:32>", "\r\n"),
    ("access-key", "access_key=", "<62:32>", "&x=1"),
    ("password", "DB_PASSWORD=", "Password<digit:3>!", "\n"),
    ("password", "password: \"", "MySecret#<digit:4>x", "\""),
    ("token", "token = '", "<62:8>null<62:20>", "'"),
    ("access-key", "X-Auth-Key: ", "144c<hex:33>", "\r\n"),
    ("access-key", "accountKey: \"", "<62:32>", "\""),
    ("access-key", "account-key: ", "<62:32>", "\n"),
    ("secret", "{\"privateKey\": \"", "0x<hex:64>", "\"}"),
    ("secret", "signingKey = '", "<62:32>", "'"),
    ("secret", "private-key: ", "<hex:64>", "\n"),
    ("secret", "--signing-key ", "<62:32>", "\n"),
    ("secret", "master-key: ", "<62:32>", "\n"),
    ("secret", "encryption-key=", "<62:32>", "\n"),
];
