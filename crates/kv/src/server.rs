//! The address of a database on a server.

#[cfg(not(feature = "postgres"))]
use crate::Engine;
use crate::Error;
use foldback_core::TenantId;
use std::fmt;

/// The address of a PostgreSQL database: `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, as given. It may hold a
/// password, so it is shown without its user, its password and its parameters, and is nowhere stored.
///
/// It is read when a store is opened on it. Several hosts, separated by commas, name the servers of which one at a time
/// takes writes.
#[derive(Clone, PartialEq, Eq)]
pub struct Server {
    url: String,
    tenant: Option<TenantId>,
}

impl Server {
    /// Takes an address as it is.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), tenant: None }
    }

    /// Returns the address of a tenant's store in the same database, in place of the store that belongs to no tenant.
    #[must_use]
    pub fn with_tenant(mut self, tenant: impl Into<Option<TenantId>>) -> Self {
        self.tenant = tenant.into();
        self
    }

    /// Returns whose store it leads to, if it is a tenant's.
    #[must_use]
    pub fn tenant(&self) -> Option<&TenantId> {
        self.tenant.as_ref()
    }

    /// Returns the address of one schema of the same database, which may hold a store of its own. It takes the place of a
    /// schema that the address names; other options stay. `schema` is a plain name: letters, digits and `_`.
    #[must_use]
    pub fn in_schema(&self, schema: &str) -> Self {
        let (place, parameters) = self.url.split_once('?').unwrap_or((&self.url, ""));
        let parameters = parameters.split('&').filter(|parameter| !parameter.is_empty());
        let (options, others): (Vec<_>, Vec<_>) =
            parameters.partition(|parameter| parameter.starts_with("options="));
        let own = format!("-c%20search_path%3D{schema}");
        let before = options.last().and_then(|options| options.strip_prefix("options="));
        let options =
            before.map_or(format!("options={own}"), |before| format!("options={before}%20{own}"));
        let all = others.into_iter().chain([&*options]).collect::<Vec<_>>().join("&");
        Self { url: format!("{place}?{all}"), tenant: self.tenant.clone() }
    }

    /// Returns the address with everything that is secret in it, for another process that opens the same store.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Adds a tenant to the database. One that is there stays as it is. The tables are made if there are none.
    ///
    /// # Errors
    ///
    /// [`Error::NoTenant`] when a tenant of this name was forgotten; as [`open`](crate::open()) when the database cannot be
    /// reached, or the role of the address may not add tenants.
    pub fn add_tenant(&self, tenant: &TenantId) -> Result<(), Error> {
        #[cfg(feature = "postgres")]
        return crate::postgres::tenant::add(self, tenant);
        #[cfg(not(feature = "postgres"))]
        left_out(tenant)
    }

    /// Deletes everything that the database holds of a tenant. Its name is not given again. Nothing is written for it from
    /// then on, by whatever process has it open.
    ///
    /// # Errors
    ///
    /// [`Error::NoTenant`] when there is none; as [`open`](crate::open()) when the database cannot be reached.
    pub fn forget_tenant(&self, tenant: &TenantId) -> Result<(), Error> {
        #[cfg(feature = "postgres")]
        return crate::postgres::tenant::forget(self, tenant);
        #[cfg(not(feature = "postgres"))]
        left_out(tenant)
    }

    /// Has the server show and take rows of each tenant for that tenant's connections alone (`ROW LEVEL SECURITY`), the
    /// owner of the tables included. The role of the address must own them.
    ///
    /// # Errors
    ///
    /// As [`open`](crate::open()), and [`Error::Refused`] when the role does not own the tables.
    pub fn secure_rows(&self) -> Result<(), Error> {
        #[cfg(feature = "postgres")]
        return crate::postgres::tenant::secure_rows(self);
        #[cfg(not(feature = "postgres"))]
        left_out(self)
    }

    /// Returns whether the server judges the rows of tenants itself when the role of the address asks: superusers and roles
    /// with `BYPASSRLS` are exempt. See [`secure_rows`](Self::secure_rows).
    ///
    /// # Errors
    ///
    /// As [`open`](crate::open()).
    pub fn has_secure_rows(&self) -> Result<bool, Error> {
        #[cfg(feature = "postgres")]
        return crate::postgres::tenant::has_secure_rows(self);
        #[cfg(not(feature = "postgres"))]
        left_out(self)
    }
}

#[cfg(not(feature = "postgres"))]
fn left_out<T, U>(_: &U) -> Result<T, Error> {
    let engine = Engine::Postgres;
    Err(Error::Unsupported { engine: engine.name(), what: crate::open::left_out(engine) })
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

    #[test]
    fn a_schema_is_added_to_what_an_address_has() {
        #[track_caller]
        fn check(url: &str, expected: &str) {
            let server = Server::new(url).with_tenant(TenantId::new("acme").ok());
            let schema = server.in_schema("s");
            assert_eq!(schema.url, expected);
            assert_eq!(schema.tenant, server.tenant);
        }
        check("postgres://h/db", "postgres://h/db?options=-c%20search_path%3Ds");
        check("postgres://h/db?a=b", "postgres://h/db?a=b&options=-c%20search_path%3Ds");
        check(
            "postgres://h/db?options=-c%20role%3Dr&a=b",
            "postgres://h/db?a=b&options=-c%20role%3Dr%20-c%20search_path%3Ds",
        );
    }

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
