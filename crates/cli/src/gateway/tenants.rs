//! The tenants of a gateway, as the store knows them.

use super::Providers;
use crate::cli::Globals;
use crate::output::Output;
use crate::store;
use foldback::core::TenantId;
use foldback::{Memory, Mode, Tenant, Truth};
use foldback_gateway::{GatewayConfig, Keeping, Log, Tenants};
use foldback_kv::Error as KvError;
use parking_lot::{Condvar, Mutex};
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the tenants that were read remain valid: a replaced token is accepted for this long.
const KNOWN_FOR: Duration = Duration::from_secs(5);

/// The same for a token that no tenant has.
const UNKNOWN_FOR: Duration = Duration::from_secs(1);

/// How long a request waits for the store, if its token was good when the store was read last.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long a request waits for the store otherwise.
const LONGEST: Duration = Duration::from_secs(10);

/// How long the tenants that were read last are answered while the store is unreachable.
const WITHOUT_STORE: Duration = Duration::from_secs(10 * 60);

/// How many characters a token has.
const TOKEN: usize = 64;

/// The tenants of a gateway, as the store knows them.
pub(crate) struct KnownTenants {
    known: Arc<Known>,
    providers: Providers,
}

/// What was read of the tenants.
struct Known {
    /// The store that knows them, or why it cannot be opened.
    store: Result<Memory, String>,
    globals: Globals,
    out: Output,
    read: Mutex<Read>,
    ended: Condvar,
}

#[derive(Default)]
struct Read {
    tenants: Vec<Tenant>,
    /// When they were read last.
    at: Option<Instant>,
    /// Since when they are being read again.
    reading: Option<Instant>,
    failed: Option<String>,
}

impl Read {
    fn is_older_than(&self, age: Duration) -> bool {
        self.at.is_none_or(|at| at.elapsed() >= age)
    }

    fn owner(&self, token: &[u8]) -> Option<Tenant> {
        self.tenants.iter().find(|tenant| tenant.has_token(token)).cloned()
    }
}

impl KnownTenants {
    /// Takes the tenants that are known where conversations of no tenant are kept.
    pub(crate) fn new(
        keeping: &Keeping,
        providers: &Providers,
        globals: &Globals,
        out: &Output,
    ) -> Self {
        let store = match keeping {
            Keeping::On(memory) => Ok(memory.clone()),
            Keeping::Impossible(why) => Err(why.clone()),
            _ => Err("nothing is recorded".to_owned()),
        };
        let (globals, out) = (globals.clone(), out.clone());
        let (read, ended) = (Mutex::default(), Condvar::new());
        let known = Arc::new(Known { store, globals, out, read, ended });
        Self { known, providers: providers.clone() }
    }
}

impl Tenants for KnownTenants {
    fn of_token(&self, token: &[u8]) -> Result<Option<Tenant>, String> {
        if token.len() != TOKEN {
            return Ok(None);
        }
        self.known.read_again(KNOWN_FOR, PATIENCE)?;
        let found = {
            let read = self.known.read.lock();
            read.owner(token).filter(|_| !read.is_older_than(WITHOUT_STORE))
        };
        if found.is_some() {
            return Ok(found);
        }
        self.known.read_again(UNKNOWN_FOR, LONGEST)?;
        let read = self.known.read.lock();
        match (read.is_older_than(LONGEST), &read.failed) {
            (false, _) => Ok(read.owner(token)),
            (true, Some(why)) => Err(format!("the tenants are not known: {why}")),
            (true, None) => Err("the tenants are not known: the store does not answer".to_owned()),
        }
    }

    fn config(&self, tenant: &TenantId) -> Result<GatewayConfig, String> {
        let globals = self.known.globals.of_tenant(Some(tenant.clone()));
        let (out, name) = (self.known.out.clone(), tenant.clone());
        let log: Log = Arc::new(move |line| out.note(format_args!("{name}: {line}")));
        let config = self.providers.config(&globals, &self.known.out, log);
        let mut config = config.map_err(|error| error.sentence())?;
        // Each tenant's exchanges are in a folder of its own.
        config.traffic = config.traffic.map(|dir| dir.join(tenant.as_str()));
        Ok(config)
    }
}

impl Known {
    /// Reads the tenants again if what is known is older than `age`, and waits up to `patience` for that. One thread reads at
    /// a time, however many wait.
    fn read_again(self: &Arc<Self>, age: Duration, patience: Duration) -> Result<(), String> {
        self.store.as_ref().map_err(|why| format!("the tenants are not known: {why}"))?;
        let mut read = self.read.lock();
        if !read.is_older_than(age) {
            return Ok(());
        }
        let begun = match read.reading {
            Some(begun) => begun,
            None => {
                let (known, begun) = (Arc::clone(self), Instant::now());
                read.reading = Some(begun);
                std::thread::spawn(move || known.read_now());
                begun
            }
        };
        while read.reading == Some(begun) {
            if self.ended.wait_until(&mut read, begun + patience).timed_out() {
                break;
            }
        }
        Ok(())
    }

    fn read_now(&self) {
        let Ok(store) = &self.store else { return };
        let found = store.tenants().list();
        if let Ok(tenants) = &found {
            self.remove_forgotten(tenants);
        }
        let mut read = self.read.lock();
        match found {
            Ok(tenants) => {
                let at = Some(Instant::now());
                *read = Read { tenants, at, ..Read::default() };
            }
            Err(error) => (read.reading, read.failed) = (None, Some(error.to_string())),
        }
        self.ended.notify_all();
    }

    /// Removes what this machine holds of tenants that the database has forgotten.
    fn remove_forgotten(&self, known: &[Tenant]) {
        let (Ok(Truth::Server(server)), Ok(folder)) =
            (self.globals.truth(), store::tenants(&self.globals))
        else {
            return;
        };
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(Ok(id)) = name.to_str().map(str::parse::<TenantId>) else { continue };
            if known.iter().any(|tenant| tenant.id == id) {
                continue;
            }
            let own = server.clone().with_tenant(id.clone());
            let opened = foldback_kv::open(&entry.path(), own, Mode::ReadOnly);
            if let Err(KvError::NoTenant { was_forgotten: true, .. }) = opened {
                match fs::remove_dir_all(entry.path()) {
                    Ok(()) => self.out.note(format_args!("{id} was forgotten: its folder is gone")),
                    Err(error) => {
                        self.out.note(format_args!("the folder of {id} is not removed: {error}"));
                    }
                }
            }
        }
    }
}
