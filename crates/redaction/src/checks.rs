//! Checks beyond the form.

use data_encoding::{BASE64, BASE64_NOPAD, BASE64URL_NOPAD};

/// A check beyond the form.
#[derive(Clone, Copy)]
pub(crate) enum Check {
    /// Nothing: the form is enough.
    Form,
    /// Its characters vary: the entropy of their frequencies is at least this many bits per character.
    Bits(f32),
    /// It was signed by a server: its first part names the algorithm.
    Signed,
    /// It is a name and a password in base64.
    NamePassword,
    /// It is a password, chosen by a person or a machine.
    Password,
    /// It is a password in an address, where nothing else is expected.
    UrlPassword,
    /// It is a token that a machine made.
    Token,
}

impl Check {
    pub(crate) fn holds(self, text: &str) -> bool {
        match self {
            Self::Form => true,
            Self::Bits(least) => bits(text) >= least,
            Self::Signed => is_signed(text),
            Self::NamePassword => is_name_password(text),
            Self::Password => is_password(text),
            Self::UrlPassword => is_url_password(text),
            Self::Token => is_token(text),
        }
    }
}

/// The entropy of a text's characters, in bits per character.
pub(crate) fn bits(text: &str) -> f32 {
    let mut counts = [0_u32; 256];
    text.bytes().for_each(|byte| {
        if let Some(count) = counts.get_mut(usize::from(byte)) {
            *count += 1;
        }
    });
    let all = text.len() as f32;
    let of = |count: &u32| match count {
        0 => 0.0,
        count => -(*count as f32 / all) * (*count as f32 / all).log2(),
    };
    counts.iter().map(of).sum()
}

fn is_signed(text: &str) -> bool {
    let Some(head) = text.split('.').next() else { return false };
    BASE64URL_NOPAD.decode(head.as_bytes()).is_ok_and(|head| {
        let head = String::from_utf8_lossy(&head);
        head.starts_with('{') && (head.contains("\"alg\"") || head.contains("\"enc\""))
    })
}

fn is_name_password(text: &str) -> bool {
    let read = BASE64.decode(text.as_bytes()).or_else(|_| BASE64_NOPAD.decode(text.as_bytes()));
    let Some(read) = read.ok().and_then(|read| String::from_utf8(read).ok()) else { return false };
    let is_plain = read.chars().all(|c| !c.is_control());
    is_plain && read.split_once(':').is_some_and(|(_, password)| password.len() > 2)
}

/// Placeholders that are used in place of a secret.
const PLACEHOLDERS: [&str; 12] = [
    "example",
    "placeholder",
    "changeme",
    "change_me",
    "change-me",
    "xxxx",
    "****",
    "....",
    "dummy",
    "redacted",
    "insert",
    "replace",
];

/// Words of placeholders and of names of secrets. A password may have one in it, too.
const WORDS: [&str; 12] = [
    "your",
    "password",
    "passwd",
    "secret",
    "token",
    "api_key",
    "apikey",
    "api-key",
    "undefined",
    "null",
    "none",
    "todo",
];

/// Whether a text says of itself that it is in place of a secret.
fn is_placeholder(text: &str) -> bool {
    let small = text.to_ascii_lowercase();
    small.starts_with("your") || PLACEHOLDERS.iter().any(|one| small.contains(one))
}

/// Whether a text is a placeholder or the name of a secret.
fn is_stand_in(text: &str) -> bool {
    let small = text.to_ascii_lowercase();
    let has_word = WORDS.iter().any(|one| small.contains(one));
    is_placeholder(text) || has_word && (is_name(&small) || !is_more_than_words(text, &small))
}

/// Whether a text is more than the words of a placeholder or a name: `MySecret#2024x`, but neither `secret_2024` nor
/// `newSecret2`.
fn is_more_than_words(text: &str, small: &str) -> bool {
    let kinds = Kinds::of(text);
    let has_sign = text.bytes().any(|byte| b"!@#$%^*+~".contains(&byte));
    if kinds.digit && kinds.has_letters() && has_sign && !is_template(text) {
        return true;
    }
    let words = WORDS.iter().fold(small.to_owned(), |rest, one| rest.replace(one, ""));
    words.split(['_', '-', '.', '/', ':', '@']).any(is_mixed)
}

/// Parts of formats, patterns and versions. In these `%`, `$`, `*`, `+`, `^` and `~` are not a sign of a password.
const TEMPLATES: [&str; 12] =
    ["%s", "%d", "%v", "${", "$(", "{{", "a-z", "A-Z", "0-9", ".*", "@^", "@~"];

/// Whether a text is the name of a variable, a pattern, or a text with places to fill in.
fn is_template(text: &str) -> bool {
    let name = text.trim_start_matches(['$', '%', '{']).trim_end_matches(['}', '%']);
    let is_variable = text.starts_with(['$', '%'])
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_variable
        || text.starts_with('^')
        || text.ends_with('*')
        || TEMPLATES.iter().any(|one| text.contains(one))
}

/// Whether digits are among the letters of a text. In a name, they end a word.
fn is_mixed(part: &str) -> bool {
    let pairs = part.as_bytes().windows(2);
    let turns = pairs.filter(|pair| pair.first().is_some_and(u8::is_ascii_digit));
    let turns = turns.filter(|pair| pair.last().is_some_and(u8::is_ascii_alphabetic)).count();
    part.len() >= 8 && turns >= 2
}

/// How many kinds of characters a text has.
#[derive(Default)]
struct Kinds {
    small: bool,
    capital: bool,
    digit: bool,
    other: bool,
}

impl Kinds {
    fn of(text: &str) -> Self {
        text.bytes().fold(Self::default(), |kinds, byte| match byte {
            b'a'..=b'z' => Self { small: true, ..kinds },
            b'A'..=b'Z' => Self { capital: true, ..kinds },
            b'0'..=b'9' => Self { digit: true, ..kinds },
            _ => Self { other: true, ..kinds },
        })
    }

    fn count(&self) -> usize {
        [self.small, self.capital, self.digit, self.other].into_iter().filter(|has| *has).count()
    }

    fn has_letters(&self) -> bool {
        self.small || self.capital
    }
}

/// Whether it is a word of a name: letters, optionally followed by a few digits.
fn is_word(part: &str) -> bool {
    let letters = part.trim_end_matches(|c: char| c.is_ascii_digit());
    letters.bytes().all(|byte| byte.is_ascii_alphabetic())
        && part.len() - letters.len() <= 4
        && letters.chars().skip(1).filter(char::is_ascii_uppercase).count() * 4 <= letters.len()
}

/// Whether a text is a name of several words, such as that of a variable, a file or a host.
fn is_name(text: &str) -> bool {
    let parts = || text.split(['_', '-', '.', '/', ':', '@', '#', '+', '=']);
    parts().count() > 1 && parts().all(|part| is_word(part) || is_number(part))
}

fn is_number(text: &str) -> bool {
    text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a text has the form of a UUID, which is far more often a name than a key.
fn is_uuid(text: &str) -> bool {
    let lengths = [8, 4, 4, 4, 12];
    let parts: Vec<&str> = text.split('-').collect();
    parts.len() == lengths.len()
        && parts.iter().zip(lengths).all(|(part, length)| {
            part.len() == length && part.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
}

/// Endings of file names.
const FILES: [&str; 15] = [
    ".json", ".pem", ".txt", ".key", ".yaml", ".yml", ".env", ".toml", ".rs", ".py", ".js", ".ts",
    ".go", ".md", ".html",
];

fn is_place(text: &str) -> bool {
    ["/", "./", "../", "~/", "http:", "https:", "file:", "data:", "arn:"]
        .iter()
        .any(|start| text.starts_with(start))
        || FILES.iter().any(|end| text.ends_with(end))
}

/// Whether a text is a password, chosen by a person or a machine.
fn is_password(text: &str) -> bool {
    let kinds = Kinds::of(text);
    if text.len() < 8 || !kinds.has_letters() || is_stand_in(text) || is_place(text) {
        return false;
    }
    let varies = match text.len() {
        ..10 => kinds.count() >= 3,
        _ => kinds.count() >= 2 && (kinds.digit || kinds.other),
    };
    let ends = text.trim_end_matches(['!', '?', '.', '*', '$', '%', '&']);
    varies && bits(text) >= 2.5 && !is_name(ends) && !is_uuid(text)
}

/// Whether a text after a name in an address is a password, rather than a port, a placeholder or a variable.
fn is_url_password(text: &str) -> bool {
    let small = text.to_ascii_lowercase();
    let is_usual = ["pass", "pw", "pwd", "user", "postgres", "root", "admin", "guest", "test"];
    let kinds = Kinds::of(text);
    // `MySecret123`: in an address, nothing is the name of a variable.
    let is_chosen = || {
        let varies = kinds.small && kinds.capital && kinds.digit;
        varies && !is_placeholder(text) && !is_template(text)
    };
    kinds.has_letters()
        && (!is_stand_in(text) || is_chosen())
        && !is_usual.contains(&small.as_str())
        && !text.starts_with(['%', '*'])
        && (!text.contains('/') || is_no_path(text))
}

/// Whether a text with slashes after a name in an address is a password, rather than a port and a path:
/// `localhost:8080/node_modules/@scope`.
fn is_no_path(text: &str) -> bool {
    let kinds = Kinds::of(text);
    let port = text.split('/').next().unwrap_or_default();
    text.len() >= 8
        && kinds.digit
        && !port.bytes().all(|byte| byte.is_ascii_digit())
        && !text.starts_with('$')
        && !is_name(text)
}

/// Whether a text is a token that a machine made.
fn is_token(text: &str) -> bool {
    let kinds = Kinds::of(text);
    text.len() >= 16
        && kinds.has_letters()
        && kinds.digit
        && bits(text) >= 3.0
        && !is_stand_in(text)
        && !is_place(text)
        && !is_name(text)
        && !is_word(text)
        && !is_uuid(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_told_from_names() {
        for password in ["Kx7!mQ2zP", "sommer2024x9", "q7Hs-92kLp#4", "Tr0ub4dor&3"] {
            assert!(is_password(password), "{password}");
        }
        let others = [
            "next_password2",
            "os.environ",
            "/run/secrets/db",
            "changeme123!",
            "max_tokens",
            "String",
            "db-password-2024",
            "localhost:5432",
            "user@example.com",
            "v1.2.3-beta.4",
        ];
        for other in others {
            assert!(!is_password(other), "{other}");
        }
    }

    #[test]
    fn s8_a_word_of_placeholders_excuses_only_what_is_little_more() {
        for password in ["Password123!", "MySecret#2024x", "null#And7token"] {
            assert!(is_password(password), "{password}");
        }
        for other in ["your7Secret!x", "newSecret2", "next_password2", "changeme123!", "secret123"]
        {
            assert!(!is_password(other), "{other}");
        }
        assert!(is_token("k2J9xQnull4vL7pZ1sW8nT3m") && is_token("9f86d081todo884c7d65"));
        for other in
            ["YOUR_ACCESS_TOKEN_V2", "user_password_reset_token_2", "myClientSecretForV2Api"]
        {
            assert!(!is_token(other), "{other}");
        }
        assert!(is_url_password("MySecret123"));
        assert!(!is_url_password("my-secret-pw") && !is_url_password("ChangeMe123"));
    }

    #[test]
    fn s8_a_template_with_a_word_of_placeholders_is_no_secret() {
        for template in [
            "oauth2:access_token:%s",
            "refresh_token:%s:v2",
            "^token_[a-z0-9]{32}$",
            "token_[0-9A-Za-z]+_v2",
            "prod/db-password-v2-*",
            "npm:@acme/design-tokens@^2.0.1",
            "${CI_PASSWORD2}",
            "${{secrets.CI_PASSWORD2}}",
            "$ADMIN_PASSWORD2",
            "$dbPassword1",
            "%DB_PASSWORD2%",
        ] {
            assert!(!is_password(template) && !is_token(template), "{template}");
            assert!(!is_url_password(template), "{template}");
        }
        for password in ["Password$2024x", "100%Secret-Sauce", "my*Token7x", "$Password1!"] {
            assert!(is_password(password) && is_url_password(password), "{password}");
        }
    }

    #[test]
    fn tokens_are_told_from_hosts_and_ids() {
        assert!(is_token("k2J9xQ4vL7pZ1sW8nT3m"));
        assert!(is_token("9f86d081884c7d659a2feaa0c55ad015"));
        for other in [
            "123e4567-e89b-12d3-a456-426614174000",
            "my-cluster-primary-2024-node-01",
            "registry.example.com/image",
            "aaaaaaaaaaaaaaaaaaaa1",
        ] {
            assert!(!is_token(other), "{other}");
        }
    }
}
