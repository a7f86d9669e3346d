//! The address of a database on a server.

use std::fmt;

/// The address of a PostgreSQL database: `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, as given. It may hold a
/// password, so it is shown without its user, its password and its parameters, and is nowhere stored.
///
/// It is read when a store is opened on it. Several hosts, separated by commas, name the servers of which one at a time
/// takes writes.
#[derive(Clone, PartialEq, Eq)]
pub struct Server {
    url: String,
}

impl Server {
    /// Takes an address as it is.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into() }
    }

    /// Returns the address with everything that is secret in it.
    #[cfg(feature = "postgres")]
    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((scheme, rest)) = self.url.split_once("://") else {
            return f.write_str("(an address)");
        };
        let (place, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        // A password may hold any of these characters unescaped; then nobody can tell where it ends.
        if parameters.contains('@') || !scheme.chars().all(|c| c.is_ascii_alphanumeric()) {
            return f.write_str("(an address)");
        }
        let host = place.rsplit_once('@').map_or(place, |(_, host)| host);
        write!(f, "{scheme}://{host}")
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PG4: nothing that shows an address shows a password.
    #[test]
    fn pg4_an_address_is_shown_without_its_password() {
        #[track_caller]
        fn check(url: &str, shown: &str) {
            let server = Server::new(url);
            assert_eq!(server.to_string(), shown);
            assert_eq!(format!("{server:?}"), format!("Server({shown})"));
        }
        check("postgres://h/db", "postgres://h/db");
        check("postgres://me:secret@h:5432/db?password=secret", "postgres://h:5432/db");
        check("postgres://me:se@cret@h,i:5433/db", "postgres://h,i:5433/db");
        check("postgres://me:se?cret@h/db", "(an address)");
        check("me:secret://x", "(an address)");
        check("secret", "(an address)");
    }
}
