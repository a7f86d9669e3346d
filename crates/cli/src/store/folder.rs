//! The folder of a store.

use crate::cli::Globals;
use crate::error::CliError;
use directories::ProjectDirs;
use foldback_kv::Engine;
use std::path::PathBuf;

/// The store's folder: that of all stores, or in it that of the tenant.
pub(crate) fn folder(globals: &Globals) -> Result<PathBuf, CliError> {
    let Some(tenant) = globals.tenant() else { return root(globals) };
    let own = tenants(globals)?.join(tenant.as_str());
    // On a server, the database knows its tenants.
    let is_known =
        globals.adds_tenant || globals.engine() == Engine::Postgres || own.join("FORMAT").is_file();
    if !is_known {
        return Err(CliError::NotFound(format!(
            "there is no tenant {tenant}; `foldback tenant add {tenant}` adds one"
        )));
    }
    Ok(own)
}

/// The folder of the tenants' stores, in that of all stores.
pub(crate) fn tenants(globals: &Globals) -> Result<PathBuf, CliError> {
    Ok(root(globals)?.join("tenants"))
}

/// The folder of all stores: `--store`, or else the settings', or else the user's data folder.
pub(crate) fn root(globals: &Globals) -> Result<PathBuf, CliError> {
    let named = globals.store.clone().or_else(|| globals.settings.memory.store.clone());
    if let Some(dir) = named {
        if dir.as_os_str().is_empty() {
            return Err(CliError::Usage("the name of the store's folder is empty".to_owned()));
        }
        return Ok(dir);
    }
    usual().ok_or_else(|| {
        let what = "the user's data folder is unknown; name a folder with --store DIR";
        CliError::Usage(what.to_owned())
    })
}

/// The folder of all stores where none is named: the user's data folder.
pub(crate) fn usual() -> Option<PathBuf> {
    Some(ProjectDirs::from("", "", "foldback")?.data_dir().to_owned())
}
