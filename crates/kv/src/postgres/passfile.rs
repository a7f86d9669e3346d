//! The file of passwords that PostgreSQL's own programs read: `PGPASSFILE`, or `~/.pgpass`.

use std::path::PathBuf;

/// What a password is for.
pub(super) struct Wanted<'a> {
    pub(super) host: &'a str,
    pub(super) port: u16,
    pub(super) database: &'a str,
    pub(super) user: &'a str,
}

/// Returns the password from the environment or the file, if there is one.
pub(super) fn find(wanted: &Wanted<'_>) -> Result<Option<String>, String> {
    if let Some(password) = std::env::var("PGPASSWORD").ok().filter(|text| !text.is_empty()) {
        return Ok(Some(password));
    }
    let (file, is_named) = match std::env::var_os("PGPASSFILE") {
        Some(named) => (PathBuf::from(named), true),
        None => match std::env::var_os("HOME") {
            Some(home) => (PathBuf::from(home).join(".pgpass"), false),
            None => return Ok(None),
        },
    };
    if !is_named && !file.exists() {
        return Ok(None);
    }
    let failed = |what: String| format!("the file of passwords {} {what}", file.display());
    let read = std::fs::read_to_string(&file);
    let text = read.map_err(|error| failed(format!("could not be read: {error}")))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let found = std::fs::metadata(&file).map_err(|error| failed(error.to_string()))?;
        if found.permissions().mode() & 0o077 != 0 {
            return Err(failed("can be read by others; close it with chmod 600".to_owned()));
        }
    }
    Ok(in_text(&text, wanted))
}

/// Returns the password of the first line that fits: `host:port:database:user:password`, where `*` fits everything.
fn in_text(text: &str, wanted: &Wanted<'_>) -> Option<String> {
    let port = wanted.port.to_string();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(fields).find_map(|[host, of_port, database, user, password]| {
        let fits = |field: &str, value: &str| field == "*" || field == value;
        let is_it = fits(&host, wanted.host)
            && fits(&of_port, &port)
            && fits(&database, wanted.database)
            && fits(&user, wanted.user);
        is_it.then_some(password)
    })
}

/// Splits a line. A backslash makes the next character an ordinary one.
fn fields(line: &str) -> Option<[String; 5]> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let last = fields.len() - 1;
        match character {
            ':' if last < 4 => fields.push(String::new()),
            '\\' => fields[last].extend(characters.next()),
            other => fields[last].push(other),
        }
    }
    fields.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_fits_has_the_password() {
        let text = "# h:1:d:u:no\nshort\n\\:\\:1:*:*:*:six\nh:5432:other:*:no\nh:*:memory:me:a\\:b:c\\\\d\n*:*:*:*:last\n";
        let of = |host, user| in_text(text, &Wanted { host, port: 5432, database: "memory", user });
        assert_eq!(of("h", "me").as_deref(), Some("a:b:c\\d"));
        assert_eq!(of("elsewhere", "me").as_deref(), Some("last"));
        assert_eq!(of("::1", "me").as_deref(), Some("six"));
        assert_eq!(
            in_text("h:1:d:u:p", &Wanted { host: "h", port: 2, database: "d", user: "u" }),
            None
        );
    }
}
