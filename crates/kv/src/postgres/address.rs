//! What an address says: the servers, the database, who asks, and how.

use super::passfile::{self, Wanted};
use super::tls::Tls;
use crate::{Error, Mode, Server};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

/// How long one attempt to connect to one server takes at most.
const CONNECT: Duration = Duration::from_secs(5);
/// After how much silence a server is asked whether it is there, how often, and how long it may owe an answer.
const IDLE: Duration = Duration::from_secs(10);
const INTERVAL: Duration = Duration::from_secs(3);
const RETRIES: u32 = 3;
/// How many connections a store opens at most, unless its address says otherwise.
const CONNECTIONS: usize = 8;

pub(super) struct Address {
    pub(super) config: Config,
    /// `None` for connections that are not encrypted.
    pub(super) tls: Option<Tls>,
    pub(super) connections: usize,
    /// The servers and the database, without user and password: the name in errors.
    pub(super) name: PathBuf,
}

impl Address {
    pub(super) fn of(server: &Server, mode: Mode) -> Result<Self, Error> {
        let own = Own::of(server.url())?;
        // The client's own words may hold a part of the password.
        let mut config: Config = own.rest.parse().map_err(|_| {
            let detail = "it cannot be read; characters of a password that are not letters or digits are written as \
                          %XX, and only PostgreSQL's own parameters, sslrootcert and connections are known";
            wrong(detail)
        })?;
        if config.get_hosts().is_empty() {
            return Err(wrong("it names no server"));
        }
        let database = config.get_dbname().or(config.get_user()).map(str::to_owned);
        let Some(database) = database else { return Err(wrong("it names no database")) };
        config.dbname(&database);
        let servers = servers(&config);
        let name = PathBuf::from(format!("postgres://{}/{database}", servers.join(",")));
        if config.get_password().is_none() {
            let host = servers.first().and_then(|server| server.rsplit_once(':'));
            let (host, port) = host.unwrap_or(("localhost", "5432"));
            let user = config.get_user().unwrap_or(&database).to_owned();
            let wanted = Wanted {
                host,
                port: port.parse().unwrap_or(5432),
                database: &database,
                user: &user,
            };
            if let Some(password) = passfile::find(&wanted).map_err(|what| wrong(&what))? {
                config.password(password);
            }
        }
        if !config.get_hostaddrs().is_empty() {
            return Err(wrong(
                "it has `hostaddr`, which is not taken: name the address as the host",
            ));
        }
        let is_encrypted = own.tls.unwrap_or_else(|| !config.get_hosts().iter().all(is_here));
        config.ssl_mode(if is_encrypted { SslMode::Require } else { SslMode::Disable });
        let tls = match is_encrypted {
            true => Some(Tls::new(own.authorities.as_deref())?),
            false => None,
        };
        if mode == Mode::ReadWrite {
            // Of a server and its standbys, only the one that takes writes.
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        config.application_name("foldback");
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        config.keepalives_idle(IDLE).keepalives_interval(INTERVAL).keepalives_retries(RETRIES);
        config.tcp_user_timeout(IDLE + INTERVAL * RETRIES);
        Ok(Self { config, tls, connections: own.connections, name })
    }
}

/// The parameters that are ours, and the address without them.
struct Own {
    rest: String,
    /// Whether connections are to be encrypted, if it is said.
    tls: Option<bool>,
    authorities: Option<PathBuf>,
    connections: usize,
}

impl Own {
    fn of(url: &str) -> Result<Self, Error> {
        if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
            return Err(wrong("it does not begin with postgres://"));
        }
        let (place, parameters) = url.split_once('?').unwrap_or((url, ""));
        let mut own =
            Self { rest: place.to_owned(), tls: None, authorities: None, connections: CONNECTIONS };
        let mut separator = '?';
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=') {
                Some(("sslmode", "disable")) => own.tls = Some(false),
                Some(("sslmode", "require" | "verify-ca" | "verify-full")) => own.tls = Some(true),
                Some(("sslmode", _)) => {
                    return Err(wrong(
                        "its sslmode is none of disable, require, verify-ca and verify-full; the last three do the \
                         same: the certificate and the server's name are verified",
                    ));
                }
                Some(("sslrootcert", file)) => own.authorities = Some(PathBuf::from(decoded(file))),
                Some(("connections", number)) => {
                    own.connections = match number.parse() {
                        Ok(number @ 1..=1000) => number,
                        _ => return Err(wrong("its connections are no number from 1 to 1000")),
                    };
                }
                _ => {
                    own.rest.push(separator);
                    own.rest.push_str(parameter);
                    separator = '&';
                }
            }
        }
        Ok(own)
    }
}

/// Replaces `%XX` by the character.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.filter(|_| *first == b'%').and_then(|d| u8::from_str_radix(d, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns `host:port` of each server.
fn servers(config: &Config) -> Vec<String> {
    let ports = config.get_ports();
    let host = |(at, host): (usize, &Host)| {
        let port = ports.get(at).or(ports.first()).copied().unwrap_or(5432);
        match host {
            Host::Tcp(host) if host.contains(':') => format!("[{host}]:{port}"),
            Host::Tcp(host) => format!("{host}:{port}"),
            #[cfg(unix)]
            Host::Unix(folder) => format!("{}:{port}", folder.display()),
        }
    };
    config.get_hosts().iter().enumerate().map(host).collect()
}

/// Returns whether a server is on this machine, so that nobody else can listen.
fn is_here(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

fn wrong(detail: &str) -> Error {
    Error::Address { detail: detail.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(url: &str) -> Result<Address, Error> {
        Address::of(&Server::new(url), Mode::ReadWrite)
    }

    /// PG4: what is wrong with an address is said without repeating it.
    #[test]
    fn pg4_a_wrong_address_is_not_repeated() {
        for url in [
            "postgres://me:secret@",
            "postgres://me:secret@h:port/db",
            "postgres://me:secret@h/db?secret=1",
            "postgres://me:secret@h/db?sslmode=secret",
            "postgres://me:secret@h/db?connections=secret",
            "postgre://me:secret@h/db",
        ] {
            let error = of(url).err().unwrap_or_else(|| panic!("{url} was read"));
            assert!(!format!("{error} {error:?}").contains("secret"), "{error}");
        }
    }

    /// PG4: a server on another machine is asked over TLS, unless its address says otherwise.
    #[test]
    fn pg4_only_this_machine_is_asked_without_tls() {
        let is_plain = |url: &str| of(url).unwrap().tls.is_none();
        for here in ["localhost", "127.0.0.1", "[::1]", "%2Fvar%2Frun%2Fpostgresql"] {
            assert!(is_plain(&format!("postgres://me@{here}/db")), "{here}");
        }
        assert!(is_plain("postgres://me@db.example/db?sslmode=disable"));
        // Whether the system trusts anybody decides what comes of the others; none is plain.
        assert!(!of("postgres://me@db.example/db").is_ok_and(|address| address.tls.is_none()));
        assert!(!of("postgres://me@127.0.0.1,h/db").is_ok_and(|address| address.tls.is_none()));
        let elsewhere = of("postgres://me@localhost/db?hostaddr=203.0.113.5");
        assert!(matches!(elsewhere, Err(Error::Address { detail }) if detail.contains("hostaddr")));
    }

    #[test]
    fn an_address_is_named_without_who_asks() {
        let address = of(
            "postgresql://me:secret@localhost:1,127.0.0.1:2/db?connections=3&options=-c%20a%3Db",
        );
        let address = address.unwrap();
        assert_eq!(address.name.to_str().unwrap(), "postgres://localhost:1,127.0.0.1:2/db");
        assert_eq!((address.connections, address.config.get_options()), (3, Some("-c a=b")));
        assert_eq!(decoded("%2Fa%zz%"), "/a%zz%");
    }
}
