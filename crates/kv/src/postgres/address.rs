//! What an address says: the servers, the database, who asks, and how.

use super::passfile::{self, Wanted};
use super::tenant::SETTING;
use super::tls::Tls;
use crate::{Error, Mode, Server};
use foldback_core::TenantId;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, LoadBalanceHosts, SslMode, TargetSessionAttrs};

/// How long a server may take to accept a connection, and how long until it has answered the first question on it,
/// unless the address says otherwise.
const ACCEPT: Duration = Duration::from_secs(5);
const LIMIT: Duration = Duration::from_secs(10);
/// After how much silence a server is asked whether it is there, how often, and how long it may owe an answer.
const IDLE: Duration = Duration::from_secs(10);
const INTERVAL: Duration = Duration::from_secs(3);
const RETRIES: u32 = 3;
/// How many connections a store opens at most, unless its address says otherwise.
const CONNECTIONS: usize = 8;

pub(super) struct Address {
    /// How each server is asked, in their order.
    configs: Vec<Config>,
    /// The server that answered last.
    preferred: AtomicUsize,
    /// How long one server may take to connect.
    pub(super) limit: Duration,
    pub(super) mode: Mode,
    /// The id of the store, once it is known.
    pub(super) id: OnceLock<String>,
    /// `None` for connections that are not encrypted.
    pub(super) tls: Option<Tls>,
    pub(super) connections: usize,
    /// The servers and the database, without user and password: the name in errors.
    pub(super) name: PathBuf,
    /// Whose rows are read and written.
    pub(super) tenant: Option<TenantId>,
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
        let names: Vec<String> = servers.iter().map(|(host, port)| shown(host, *port)).collect();
        let name = PathBuf::from(format!("postgres://{}/{database}", names.join(",")));
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
            // Whether a server takes writes is checked with the rest.
            config.target_session_attrs(TargetSessionAttrs::Any);
        }
        config.application_name("foldback");
        if let Some(tenant) = server.tenant() {
            let given = config.get_options().map(|given| format!("{given} "));
            config.options(format!("{}-c {SETTING}={tenant}", given.unwrap_or_default()));
        }
        let limit = config.get_connect_timeout().copied();
        config.connect_timeout(limit.unwrap_or(ACCEPT));
        config.keepalives_idle(IDLE).keepalives_interval(INTERVAL).keepalives_retries(RETRIES);
        config.tcp_user_timeout(IDLE + INTERVAL * RETRIES);
        let configs = servers.iter().map(|(host, port)| of_server(&config, host, *port));
        let configs = configs.collect::<Result<Vec<_>, _>>()?;
        let preferred = match config.get_load_balance_hosts() {
            LoadBalanceHosts::Random => super::token::random_u32() as usize % configs.len(),
            _ => 0,
        };
        Ok(Self {
            configs,
            preferred: AtomicUsize::new(preferred),
            limit: limit.unwrap_or(LIMIT),
            mode,
            id: OnceLock::new(),
            tls,
            connections: own.connections,
            name,
            tenant: server.tenant().cloned(),
        })
    }

    /// Returns each server with its number, beginning with the preferred one.
    pub(super) fn servers(&self) -> impl Iterator<Item = (usize, &Config)> {
        let all = self.configs.iter().enumerate();
        all.cycle().skip(self.preferred.load(Ordering::Relaxed)).take(self.configs.len())
    }

    /// Begins with this server from now on.
    pub(super) fn prefer(&self, at: usize) {
        self.preferred.store(at % self.configs.len(), Ordering::Relaxed);
    }

    /// Begins with the next server from now on, because the present one says nothing.
    pub(super) fn move_on(&self) {
        self.prefer(self.preferred.load(Ordering::Relaxed) + 1);
    }
}

/// Returns how one of several servers is asked, with the password that is kept for it.
fn of_server(all: &Config, host: &Host, port: u16) -> Result<Config, Error> {
    let mut config = Config::new();
    match host {
        Host::Tcp(name) => config.host(name),
        #[cfg(unix)]
        Host::Unix(folder) => config.host_path(folder),
    };
    config.port(port);
    all.get_user().map(|user| config.user(user));
    all.get_dbname().map(|name| config.dbname(name));
    all.get_options().map(|options| config.options(options));
    all.get_application_name().map(|name| config.application_name(name));
    all.get_connect_timeout().map(|limit| config.connect_timeout(*limit));
    all.get_tcp_user_timeout().map(|limit| config.tcp_user_timeout(*limit));
    all.get_keepalives_interval().map(|interval| config.keepalives_interval(interval));
    all.get_keepalives_retries().map(|retries| config.keepalives_retries(retries));
    config
        .keepalives(all.get_keepalives())
        .keepalives_idle(all.get_keepalives_idle())
        .ssl_mode(all.get_ssl_mode())
        .ssl_negotiation(all.get_ssl_negotiation())
        .channel_binding(all.get_channel_binding())
        .target_session_attrs(all.get_target_session_attrs());
    let password = match all.get_password() {
        Some(password) => Some(password.to_vec()),
        None => {
            let database = all.get_dbname().unwrap_or_default();
            let user = all.get_user().unwrap_or(database);
            let host = &bare(host);
            let found = passfile::find(&Wanted { host, port, database, user });
            found.map_err(|what| wrong(&what))?.map(String::into_bytes)
        }
    };
    password.map(|password| config.password(password));
    Ok(config)
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
                        _ => return Err(wrong("its `connections` is not a number from 1 to 1000")),
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

/// Returns each server with its port.
fn servers(config: &Config) -> Vec<(Host, u16)> {
    let ports = config.get_ports();
    let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(5432);
    config.get_hosts().iter().enumerate().map(|(at, host)| (host.clone(), port(at))).collect()
}

/// Returns a server's name alone.
fn bare(host: &Host) -> String {
    match host {
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(folder) => folder.display().to_string(),
    }
}

/// Returns `host:port`.
fn shown(host: &Host, port: u16) -> String {
    match bare(host) {
        address if address.contains(':') => format!("[{address}]:{port}"),
        name => format!("{name}:{port}"),
    }
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
        let configs: Vec<_> = address.servers().map(|(_, config)| config).collect();
        assert_eq!((address.connections, configs[0].get_options()), (3, Some("-c a=b")));
        let ports: Vec<_> = configs.iter().flat_map(|config| config.get_ports()).collect();
        assert_eq!(ports, [&1, &2]);
        let six = of("postgres://me@[::1]/db").unwrap();
        assert_eq!(six.name.to_str().unwrap(), "postgres://[::1]:5432/db");
        let host = six.configs[0].get_hosts().first().map(bare);
        assert_eq!(host.as_deref(), Some("::1"), "as the file of passwords has it");
        assert_eq!(decoded("%2Fa%zz%"), "/a%zz%");
    }
}
