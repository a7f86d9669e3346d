//! `foldback completions`.

use crate::cli::Cli;
use crate::error::{CliError, Outcome};
use crate::output::Output;
use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

/// Print a completion script for a shell
#[derive(Args)]
#[command(after_long_help = "Examples:\n  foldback completions bash > \
                             ~/.local/share/bash-completion/completions/foldback\n  foldback \
                             completions zsh > ~/.zfunc/_foldback\n  foldback completions fish > \
                             ~/.config/fish/completions/foldback.fish")]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, out: &Output) -> Result<Outcome, CliError> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "foldback", &mut script);
        out.bytes(&script)?;
        Ok(Outcome::Done)
    }
}
