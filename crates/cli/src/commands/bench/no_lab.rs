//! The commands of the lab in a build without it: each names the command that runs it.

use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::Output;
use clap::{Args, Subcommand};
use std::ffi::OsString;

/// The measurements of the lab, under the names that they have in a build with it.
#[derive(Subcommand)]
pub(crate) enum Lab {
    /// Measure how plans run (needs a build with the feature lab)
    #[command(disable_help_flag = true)]
    Plans(Arguments),
    /// Have one agent do one task under several policies (needs a build with the feature lab)
    #[command(disable_help_flag = true)]
    Agent(Arguments),
    /// Ask a model for facts that were said long ago (needs a build with the feature lab)
    #[command(disable_help_flag = true)]
    Recall(Arguments),
    /// Measure how quick the store is (needs a build with the feature lab)
    #[command(disable_help_flag = true)]
    Index(Arguments),
    /// Measure stores in a database (needs a build with the features lab and postgres)
    #[command(disable_help_flag = true)]
    Scale(Arguments),
}

/// The arguments of the command, passed on as they are on the command line.
#[derive(Args)]
pub(crate) struct Arguments {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _all: Vec<OsString>,
}

impl Lab {
    pub(crate) fn run(self, _: &Globals, _: &Output) -> Result<Outcome, CliError> {
        let (name, features) = match self {
            Self::Plans(_) => ("plans", "lab"),
            Self::Agent(_) => ("agent", "lab"),
            Self::Recall(_) => ("recall", "lab"),
            Self::Index(_) => ("index", "lab"),
            Self::Scale(_) => ("scale", "lab,postgres"),
        };
        let arguments: Vec<String> = std::env::args_os()
            .skip(1)
            .map(|argument| quoted(&argument.to_string_lossy()))
            .collect();
        Err(CliError::Usage(format!(
            "`foldback bench {name}` measures foldback itself and is left out of this build; in a \
             checkout of foldback, run `cargo run --release -p foldback-cli --features {features} -- {}`",
            arguments.join(" ")
        )))
    }
}

/// An argument as a shell reads it.
fn quoted(argument: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./,=:@%+".contains(c);
    match !argument.is_empty() && argument.chars().all(is_plain) {
        true => argument.to_owned(),
        false => format!("'{}'", argument.replace('\'', r"'\''")),
    }
}
