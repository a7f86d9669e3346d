//! The shapes of secrets: one table.
//!
//! A row is a kind, the letters by which it is found, its form, and a check beyond the form. A new kind is a row here
//! and a made-up secret in `tests/it/samples.rs`. If two rows find the same, the longer finding counts. The forms are
//! those that the vendors document, or that their scanners and those of code hosts use. A minimum entropy keeps out
//! placeholders such as `ghp_xxxx`.

use crate::checks::Check;
use crate::shape::{Back, Shape};

/// The shapes of secrets.
pub(crate) static SHAPES: &[Shape] = &[
    // Clouds.
    shape("aws-access-key", &["AKIA", "ASIA", "ABIA", "ACCA"], r"A(?:KIA|SIA|BIA|CCA)[A-Z2-7]{16}", Check::Form),
    shape("aws-secret-key", &["aws_secret", "AWS_SECRET", "secretAccessKey", "SecretAccessKey", "awsSecret"], r#"(?i:aws_?secret\w{0,20}|secretaccesskey)["'\\]{0,4}\s{0,4}[:=]\s{0,4}["'\\]{0,4}([A-Za-z0-9/+]{40})"#, Check::Bits(3.2)),
    shape("aws-session-token", &["aws_session_token", "AWS_SESSION_TOKEN", "sessionToken", "SessionToken"], r#"(?i:aws_session_token|sessiontoken)["'\\]{0,4}\s{0,4}[:=]\s{0,4}["'\\]{0,4}([A-Za-z0-9/+=]{80,})"#, Check::Bits(3.2)),
    shape("aws-mws-key", &["amzn.mws."], r"amzn\.mws\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", Check::Form),
    shape("aws-bedrock-key", &["ABSK"], r"ABSK[A-Za-z0-9+/]{100,}={0,2}", Check::Bits(3.2)),
    shape("gcp-api-key", &["AIza"], r"AIza[A-Za-z0-9_-]{35}", Check::Bits(3.2)),
    shape("gcp-oauth-secret", &["GOCSPX-"], r"GOCSPX-[A-Za-z0-9_-]{28}", Check::Bits(3.2)),
    shape("gcp-oauth-token", &["ya29."], r"ya29\.[A-Za-z0-9_-]{20,}", Check::Bits(3.2)),
    shape("gcp-refresh-token", &["1//0"], r"1//0[A-Za-z0-9_-]{40,}", Check::Bits(3.2)),
    shape("azure-storage-key", &["AccountKey="], r"AccountKey=([A-Za-z0-9+/]{86}==)", Check::Bits(3.2)),
    shape("azure-shared-access-key", &["SharedAccessKey="], r"SharedAccessKey=([A-Za-z0-9+/]{43}=)", Check::Bits(3.2)),
    shape("azure-sas-signature", &["sig="], r"sig=((?:[A-Za-z0-9+/]|%2[BbFf]){43}(?:=|%3[Dd]))", Check::Bits(3.2)),
    shape("azure-client-secret", &["8Q~"], r"[A-Za-z0-9_~.-]{3}8Q~[A-Za-z0-9_~.-]{31,34}", Check::Bits(3.2)).back(3, 3, is_azure),
    shape("digitalocean-token", &["dop_v1_", "doo_v1_", "dor_v1_"], r"do[opr]_v1_[0-9a-f]{64}", Check::Bits(2.8)),
    shape("cloudflare-origin-key", &["v1.0-"], r"v1\.0-[0-9a-f]{24}-[0-9a-f]{146}", Check::Bits(2.8)),
    shape("heroku-key", &["HRKU-AA"], r"HRKU-AA[A-Za-z0-9_-]{58}", Check::Bits(3.2)),
    shape("alibaba-access-key", &["LTAI"], r"LTAI[A-Za-z0-9]{20}", Check::Bits(3.2)),
    shape("tencent-secret-id", &["AKID"], r"AKID[A-Za-z0-9]{32}", Check::Bits(3.2)),
    shape("planetscale-token", &["pscale_"], r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,64}", Check::Bits(3.2)),
    shape("supabase-key", &["sbp_", "sb_secret_"], r"(?:sbp_[0-9a-f]{40}|sb_secret_[A-Za-z0-9_-]{22,60})", Check::Bits(2.8)),
    shape("databricks-token", &["dapi"], r"dapi[0-9a-f]{32}(?:-\d)?", Check::Bits(2.8)),
    shape("pulumi-token", &["pul-"], r"pul-[0-9a-f]{40}", Check::Bits(2.8)),
    shape("terraform-token", &[".atlasv1."], r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}", Check::Bits(3.2)).back(14, 14, is_alnum),
    shape("vault-token", &["hvs.", "hvb.", "hvr."], r"hv[sbr]\.[A-Za-z0-9_-]{24,}", Check::Bits(3.2)),
    shape("doppler-token", &["dp."], r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}", Check::Bits(3.2)),
    shape("age-secret-key", &["AGE-SECRET-KEY-1"], r"AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}", Check::Form),
    // Code, packages and builds.
    shape("github-token", &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], r"gh[pousr]_[A-Za-z0-9]{36,}", Check::Bits(3.2)),
    shape("github-fine-grained-token", &["github_pat_"], r"github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}", Check::Bits(3.2)),
    shape("gitlab-token", &["glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glsoat-", "glimt-", "glagent-"], r"gl(?:pat|dt|rt|cbt|ptt|ft|soat|imt|agent)-[A-Za-z0-9_-]{20,80}(?:\.[0-9a-z]{2}\.[0-9a-z]{7,9})?", Check::Bits(3.2)),
    shape("bitbucket-token", &["ATBB", "ATCTT3"], r"(?:ATBB[A-Za-z0-9]{32}|ATCTT3[A-Za-z0-9_=-]{150,})", Check::Bits(3.2)),
    shape("atlassian-token", &["ATATT3"], r"ATATT3[A-Za-z0-9_=-]{150,}", Check::Bits(3.2)),
    shape("npm-token", &["npm_"], r"npm_[A-Za-z0-9]{36}", Check::Bits(3.2)),
    shape("pypi-token", &["pypi-AgEI"], r"pypi-AgEI[A-Za-z0-9_-]{50,}", Check::Bits(3.2)),
    shape("rubygems-key", &["rubygems_"], r"rubygems_[0-9a-f]{48}", Check::Bits(2.8)),
    shape("crates-io-token", &["cio"], r"cio[A-Za-z0-9]{32}", Check::Bits(3.2)),
    shape("nuget-key", &["oy2"], r"oy2[a-z0-9]{43}", Check::Bits(3.2)),
    shape("clojars-token", &["CLOJARS_"], r"CLOJARS_[0-9a-z]{60}", Check::Bits(3.2)),
    shape("docker-token", &["dckr_pat_", "dckr_oat_"], r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{27,40}", Check::Bits(3.2)),
    shape("artifactory-key", &["AKCp"], r"AKCp[A-Za-z0-9]{69}", Check::Bits(3.2)),
    shape("sonar-token", &["squ_", "sqp_", "sqa_"], r"sq[pua]_[0-9a-f]{40}", Check::Bits(2.8)),
    shape("postman-key", &["PMAK-"], r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}", Check::Bits(2.8)),
    shape("linear-key", &["lin_api_"], r"lin_api_[A-Za-z0-9]{40}", Check::Bits(3.2)),
    shape("notion-token", &["ntn_", "secret_"], r"(?:ntn_[A-Za-z0-9]{46}|secret_[A-Za-z0-9]{43})", Check::Bits(3.2)),
    shape("figma-token", &["figd_"], r"figd_[A-Za-z0-9_-]{40,60}", Check::Bits(3.2)),
    shape("newrelic-key", &["NRAK-"], r"NRAK-[A-Z0-9]{27}", Check::Bits(3.2)),
    shape("grafana-token", &["glsa_", "glc_"], r"(?:glsa_[A-Za-z0-9]{32}_[0-9a-f]{8}|glc_[A-Za-z0-9+/]{32,}={0,2})", Check::Bits(3.2)),
    shape("sentry-token", &["sntryu_", "sntrys_"], r"(?:sntryu_[0-9a-f]{64}|sntrys_[A-Za-z0-9+/=_-]{60,})", Check::Bits(2.8)),
    shape("dynatrace-token", &["dt0c01."], r"dt0c01\.[A-Z0-9]{24}\.[A-Z0-9]{64}", Check::Bits(3.2)),
    // Models.
    shape("openai-key", &["sk-"], r"sk-(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{40,}|[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}|[A-Za-z0-9]{48})", Check::Bits(3.2)),
    shape("deepseek-key", &["sk-"], r"sk-[0-9a-f]{32}", Check::Bits(2.8)),
    shape("anthropic-key", &["sk-ant-"], r"sk-ant-(?:api|admin|oat|ort|sid)\d\d-[A-Za-z0-9_-]{80,}", Check::Bits(3.2)),
    shape("openrouter-key", &["sk-or-v1-"], r"sk-or-v1-[0-9a-f]{64}", Check::Bits(2.8)),
    shape("huggingface-token", &["hf_", "api_org_"], r"(?:hf_|api_org_)[A-Za-z0-9]{34,40}", Check::Bits(3.2)),
    shape("groq-key", &["gsk_"], r"gsk_[A-Za-z0-9]{52}", Check::Bits(3.2)),
    shape("replicate-token", &["r8_"], r"r8_[A-Za-z0-9]{37}", Check::Bits(3.2)),
    shape("perplexity-key", &["pplx-"], r"pplx-[A-Za-z0-9]{48}", Check::Bits(3.2)),
    shape("xai-key", &["xai-"], r"xai-[A-Za-z0-9]{80}", Check::Bits(3.2)),
    // Messages and money.
    shape("slack-token", &["xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxo-", "xoxc-", "xoxd-", "xoxe.", "xoxe-", "xapp-"], r"(?:xox[abcposre]-(?:\d{8,14}-){1,3}[A-Za-z0-9-]{16,80}|xoxd-[A-Za-z0-9%+/_=-]{40,}|xoxe[.-](?:xox[bp]-)?\d-[A-Za-z0-9]{80,}|xapp-\d-[A-Z0-9]{8,14}-\d{8,14}-[a-z0-9]{40,80})", Check::Bits(2.8)),
    shape("slack-webhook", &["hooks.slack.com/"], r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9]{8,14}/[A-Za-z0-9]{8,14}/[A-Za-z0-9]{20,32})", Check::Bits(2.8)),
    shape("teams-webhook", &["webhook.office.com/"], r"webhook\.office\.com/webhookb2/([A-Za-z0-9@/-]{100,})", Check::Bits(2.8)),
    shape("discord-webhook", &["/api/webhooks/"], r"/api/webhooks/\d{16,20}/([A-Za-z0-9_-]{60,80})", Check::Bits(3.2)).touching(),
    shape("telegram-bot-token", &[":AA"], r"\d{8,10}:AA[A-Za-z0-9_-]{33}", Check::Bits(3.2)).back(8, 10, is_digit),
    shape("twilio-key", &["SK"], r"SK[0-9a-f]{32}", Check::Bits(2.8)),
    shape("sendgrid-key", &["SG."], r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}", Check::Bits(3.2)),
    shape("mailgun-key", &["key-"], r"key-[0-9a-f]{32}", Check::Bits(2.8)),
    shape("mailchimp-key", &["-us"], r"[0-9a-f]{32}-us\d{1,2}", Check::Bits(2.8)).back(32, 32, is_hex),
    shape("stripe-key", &["sk_live_", "sk_test_", "rk_live_", "rk_test_"], r"[sr]k_(?:live|test)_[A-Za-z0-9]{24,}", Check::Bits(3.2)),
    shape("webhook-secret", &["whsec_"], r"whsec_[A-Za-z0-9+/=]{32,80}", Check::Bits(3.2)),
    shape("shopify-token", &["shpat_", "shpca_", "shppa_", "shpss_"], r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}", Check::Bits(2.8)),
    shape("square-token", &["sq0atp-", "sq0csp-"], r"sq0(?:atp-[A-Za-z0-9_-]{22}|csp-[A-Za-z0-9_-]{43})", Check::Bits(3.2)),
    // Keys, signatures and passwords from anywhere.
    shape("ssh-private-key", &["-----BEGIN OPENSSH PRIVATE"], r"-----BEGIN (?:OPENSSH PRIVATE KEY)-----(?:(?:\s|\\+[nrt])+[A-Z][A-Za-z-]{1,20}: [ !#-\[\]-~]*)*(?:[A-Za-z0-9+/=]|\s|\\+[nrt])+-----END [A-Z0-9 ]{0,30}-----", Check::Form).touching().lines(),
    shape("pgp-private-key", &["-----BEGIN PGP PRIVATE"], r"-----BEGIN (?:PGP PRIVATE KEY BLOCK)-----(?:(?:\s|\\+[nrt])+[A-Z][A-Za-z-]{1,20}: [ !#-\[\]-~]*)*(?:[A-Za-z0-9+/=]|\s|\\+[nrt])+-----END [A-Z0-9 ]{0,30}-----", Check::Form).touching().lines(),
    shape("private-key", &["-----BEGIN RSA", "-----BEGIN EC", "-----BEGIN DSA", "-----BEGIN PRIVATE", "-----BEGIN ENCRYPTED", "-----BEGIN ANY"], r"-----BEGIN (?:(?:RSA |EC |DSA |ENCRYPTED |ANY )?PRIVATE KEY)-----(?:(?:\s|\\+[nrt])+[A-Z][A-Za-z-]{1,20}: [ !#-\[\]-~]*)*(?:[A-Za-z0-9+/=]|\s|\\+[nrt])+-----END [A-Z0-9 ]{0,30}-----", Check::Form).touching().lines(),
    shape("private-key", &["-----BEGIN "], r"-----BEGIN (?:[A-Z0-9]{2,12} )?PRIVATE KEY(?: BLOCK)?-----((?:[A-Za-z0-9+/=]|\s|\\+[nrt]){64,})", Check::Form).touching().lines(),
    shape("ssh-private-key", &["b3BlbnNzaC1rZXktdjE"], r"b3BlbnNzaC1rZXktdjE(?:[A-Za-z0-9+/=]|\s|\\+[nrt]){40,}", Check::Form).lines(),
    shape("putty-private-key", &["Private-Lines:"], r"Private-Lines: \d+((?:[A-Za-z0-9+/=]|\s|\\+[nrt]){32,})", Check::Form).touching().lines(),
    shape("jwt", &["eyJ"], r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{16,}", Check::Signed).long().run(),
    shape("url-password", &["://"], r"://[A-Za-z0-9._~!$&*+,;=%-]*:((?:[A-Za-z0-9._~!$&()*+,;=:%#?^-]{3,}|[A-Za-z0-9._~!$&()*+,;=:%#?^-]{1,2}@[A-Za-z0-9._~!$&()*+=:%^-]+|[A-Za-z0-9._~!$&()*+,;=:%#?^-]*/[A-Za-z0-9._~!$&()*+=:%^/-]{2,})(?:@[A-Za-z0-9._~!$&()*+=:%^-]+)*)@[A-Za-z0-9_.\[-]", Check::UrlPassword).touching(),
    shape("bearer-token", &["Bearer ", "bearer "], r"[Bb]earer (?:token )?([A-Za-z0-9._~+/-]{16,}={0,2})", Check::Token),
    shape("authorization", &["Authorization", "authorization"], r#"[Aa]uthorization["'\\]{0,4}\s{0,4}[:=,]\s{0,4}["'\\]{0,4}(?i:token|api-?key|key)[ =]([A-Za-z0-9._~+/-]{16,}={0,2})"#, Check::Token),
    shape("basic-auth", &["Basic ", "basic "], r"[Bb]asic ([A-Za-z0-9+/]{10,}={0,2})", Check::NamePassword),
    shape("basic-auth", &["-u ", "--user "], r#"(?:-u|--user) ["'\\]{0,2}[A-Za-z0-9_.@+-]+:([!#-&(-;=?-\[\]^_a-~]{3,})"#, Check::Password).touching(),
    shape("docker-auth", &["\"auth\""], r#""auth"\s{0,4}:\s{0,4}"([A-Za-z0-9+/]{12,}={0,2})"#, Check::NamePassword).touching(),
    shape("npm-token", &["_authToken=", "_auth="], r"_auth(?:Token)?=([A-Za-z0-9+/_=.-]{16,})", Check::Bits(3.0)).touching(),
    shape("password-hash", &["$2a$", "$2b$", "$2y$"], r"\$2[aby]\$\d\d\$[./A-Za-z0-9]{53}", Check::Bits(3.2)),
    shape("password-hash", &["$argon2", "$6$", "$5$", "$y$"], r"\$(?:argon2(?:id|i|d)\$v=\d+\$m=\d+,t=\d+,p=\d+\$[A-Za-z0-9+/]{11,64}\$[A-Za-z0-9+/]{22,}|[56]\$(?:rounds=\d+\$)?[./A-Za-z0-9]{8,16}\$[./A-Za-z0-9]{43,86}|y\$[./A-Za-z0-9]{2,6}\$[./A-Za-z0-9]{8,40}\$[./A-Za-z0-9]{43})", Check::Bits(3.2)),
    shape("netrc-password", &["login "], r"login\s+[!-~]+\s+password\s+([!#-&(-;=?-\[\]^_a-~]{6,})", Check::Password),
];

const fn shape(
    kind: &'static str,
    begins: &'static [&'static str],
    form: &'static str,
    check: Check,
) -> Shape {
    let back = Back { least: 0, most: 0, is: is_digit };
    let (may_touch, is_run) = (false, false);
    Shape { kind, begins, back, form, check, may_touch, longest: 2_048, goes_on: is_token, is_run }
}

impl Shape {
    /// Allows this many of these characters before the letters by which it is found.
    const fn back(self, least: usize, most: usize, is: fn(u8) -> bool) -> Self {
        Self { back: Back { least, most, is }, ..self }
    }

    /// Allows letters and digits to touch it.
    const fn touching(self) -> Self {
        Self { may_touch: true, ..self }
    }

    /// Compares more than 2 KiB with the form: for what is longer and ends with something other than more of the same.
    const fn long(self) -> Self {
        Self { longest: 16_384, ..self }
    }

    /// Its form has only the characters that continue it, and nothing before its letters.
    const fn run(self) -> Self {
        Self { is_run: true, ..self }
    }

    /// It is a key in lines.
    const fn lines(self) -> Self {
        Self { goes_on: is_in_lines, ..self }.long()
    }
}

/// Whether a character continues a token.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.~+/=%".contains(&byte)
}

/// Whether a character is one of base64 in lines, or of an escape there.
fn is_in_lines(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte.is_ascii_whitespace() || b"+/=\\".contains(&byte)
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

fn is_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

fn is_alnum(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn is_azure(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'~' | b'.' | b'-')
}
