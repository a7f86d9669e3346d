//! The place of a store's records, as the command line and the environment name it.

use crate::error::CliError;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Command, Error};
use foldback_kv::{Engine, Server, Truth};
use std::ffi::OsStr;

/// The variable that holds the address of the database.
const VARIABLE: &str = "FOLDBACK_POSTGRES_URL";

/// Reads `--engine`: the name of an engine, or the address of a database. An address that is wrong is reported when it
/// is used, without its text: errors of the command line repeat what was given.
#[derive(Clone)]
pub(crate) struct TruthParser;

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(Engine::ALL.map(Engine::name))
}

impl TypedValueParser for TruthParser {
    type Value = Truth;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Truth, Error> {
        if let Some(text) = value.to_str().filter(|text| text.contains("://")) {
            return Ok(Truth::Server(Server::new(text)));
        }
        let name = names().parse_ref(command, arg, value)?;
        Ok(name.parse().unwrap_or_default())
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Engine::ALL.map(|engine| PossibleValue::new(engine.name())).into_iter()))
    }
}

/// Adds the address from the environment, if one is needed and not given.
pub(crate) fn complete(truth: Truth) -> Result<Truth, CliError> {
    if truth != Truth::Folder(Engine::Postgres) {
        return Ok(truth);
    }
    let given = std::env::var(VARIABLE).ok().filter(|address| !address.trim().is_empty());
    let address = given.ok_or_else(|| {
        CliError::Usage(format!(
            "the engine postgres needs the address of its database; give it in {VARIABLE}, or as \
             --engine postgres://USER@HOST/DATABASE"
        ))
    })?;
    Ok(Truth::Server(Server::new(address.trim())))
}
