//! `perusal manual`: man pages and shell completions, made from the definitions of the options.

use std::io::{Result, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::{Cli, args, sys};

/// Where to write.
#[derive(Args, Debug)]
pub struct ManualOptions {
    /// The folder: `share` of an installation, or ~/.local/share. It gets man/man1, bash-completion/completions,
    /// zsh/site-functions and fish/vendor_completions.d
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// The names by which `perusal run` is called besides.
const LAUNCHERS: [&str; 2] = ["mpiexec", "mpirun"];

/// Writes the pages and completions.
pub fn main(options: &ManualOptions) -> ExitCode {
    let written = pages(&options.folder.join("man/man1")).and_then(|()| completions(&options.folder));
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let folder = options.folder.display();
            sys::print_error(&format!(
                "perusal manual: {folder}: {error}: choose a folder that you may write\n"
            ));
            ExitCode::FAILURE
        }
    }
}

/// `perusal` with all its commands, whose options are defined in two places.
fn whole() -> Command {
    let run = args::definition().name("run").display_order(0).disable_version_flag(true);
    Cli::command().disable_help_subcommand(true).mut_subcommand("run", |_| run)
}

fn pages(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut whole = whole();
    whole.build();
    page_and_those_below(whole, folder)?;
    for name in LAUNCHERS {
        let link = folder.join(format!("{name}.1"));
        // Where pages were written before there is one.
        let _ = std::fs::remove_file(&link);
        symlink("perusal-run.1", link)?;
    }
    Ok(())
}

fn page_and_those_below(command: Command, folder: &Path) -> Result<()> {
    for below in command.get_subcommands() {
        page_and_those_below(below.clone(), folder)?;
    }
    page(command, folder)
}

fn page(mut command: Command, folder: &Path) -> Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let names =
        if name == "perusal-run" { [&[&*name], &LAUNCHERS[..]].concat().join(", ") } else { name.clone() };
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim().to_owned();
    let (options, commands) = (command.get_arguments().count() > 0, command.has_subcommands());
    let man = Man::new(command).source(concat!("perusal ", env!("CARGO_PKG_VERSION"))).manual("perusal");

    let mut file = std::fs::File::create(folder.join(format!("{name}.1")))?;
    man.render_title(&mut file)?;
    let mut roff = Roff::new();
    roff.control("SH", ["NAME"]).text([roman(format!("{names} - {about}"))]);
    // One that clap_mangen writes has sixty options in a row.
    roff.control("SH", ["SYNOPSIS"]).text([bold(usage)]);
    roff.to_writer(&mut file)?;
    man.render_description_section(&mut file)?;
    if options {
        man.render_options_section(&mut file)?;
    }
    if commands {
        man.render_subcommands_section(&mut file)?;
    }
    let mut roff = Roff::new();
    let others = if name == "perusal" { "mpicc(1)" } else { "perusal(1), mpicc(1)" };
    roff.control("SH", ["SEE ALSO"]);
    roff.text([roman(format!(
        "{others}; the pages in share/doc/perusal of the installation, README.md first"
    ))]);
    roff.to_writer(&mut file)?;
    file.flush()
}

fn completions(folder: &Path) -> Result<()> {
    for (shell, place) in [
        (Shell::Bash, "bash-completion/completions"),
        (Shell::Zsh, "zsh/site-functions"),
        (Shell::Fish, "fish/vendor_completions.d"),
    ] {
        let place = folder.join(place);
        std::fs::create_dir_all(&place)?;
        for name in ["perusal", LAUNCHERS[0], LAUNCHERS[1]] {
            let mut command = if name == "perusal" { whole() } else { args::definition() };
            let file = clap_complete::generate_to(shell, &mut command, name, &place)?;
            if shell == Shell::Bash {
                // Where bash-completion looks for it.
                std::fs::rename(file, place.join(name))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::whole;

    #[test]
    fn each_option_and_command_has_a_name_of_its_own_and_a_sentence() {
        whole().debug_assert();
        for command in whole().get_subcommands() {
            assert!(command.get_about().is_some(), "{}", command.get_name());
            for option in command.get_arguments() {
                assert!(option.get_help().is_some(), "{}: {:?}", command.get_name(), option.get_id());
            }
        }
    }
}
