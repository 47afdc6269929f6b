//! `perusal fabric`: puts the libfabric provider under another MPI.

use std::path::Path;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use crate::preload;
use crate::sys;

/// The provider; libfabric takes files whose names end so.
const PROVIDER: &str = "libperusal-fi.so";

/// How to use the provider.
#[derive(Args, Debug)]
#[command(arg_required_else_help = true)]
pub struct FabricOptions {
    /// Print the variables that have this MPI send through perusal's provider of libfabric, for `eval`
    #[arg(long, value_name = "MPI", num_args = 0..=1, default_missing_value = "mpich")]
    env: Option<OtherMpi>,
}

/// An MPI that can use libfabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OtherMpi {
    /// MPICH 4 or newer, with the network module ofi
    Mpich,
    /// Intel MPI
    Intel,
    /// Open MPI, with the matching layer ofi
    Openmpi,
}

impl OtherMpi {
    /// What this MPI needs besides libfabric's own variables.
    fn variables(self) -> &'static [(&'static str, &'static str)] {
        match self {
            // Without NOLOCAL messages on the node do not leave MPICH's own shared memory.
            Self::Mpich => &[("MPIR_CVAR_CH4_NETMOD", "ofi"), ("MPIR_CVAR_NOLOCAL", "1")],
            Self::Intel => &[("I_MPI_FABRICS", "ofi"), ("I_MPI_OFI_PROVIDER", "perusal")],
            Self::Openmpi => &[
                // Open MPI asks every provider for peers on other nodes.
                ("PERUSAL_FABRIC_ONE_NODE", "1"),
                ("OMPI_MCA_pml", "cm"),
                ("OMPI_MCA_mtl", "ofi"),
                ("OMPI_MCA_opal_common_ofi_provider_include", "perusal"),
            ],
        }
    }
}

/// Prints what is asked for.
pub fn main(options: &FabricOptions) -> ExitCode {
    let Some(mpi) = options.env else { return ExitCode::SUCCESS };
    match preload::library(PROVIDER, "the provider of libfabric") {
        Ok(library) => {
            print!("{}", script(mpi, library.parent().unwrap_or(Path::new("/"))));
            ExitCode::SUCCESS
        }
        Err(why) => {
            sys::print_error(&format!("perusal fabric: {why}\n"));
            ExitCode::FAILURE
        }
    }
}

/// A line of shell for each variable.
fn script(mpi: OtherMpi, folder: &Path) -> String {
    let folder = folder.to_string_lossy();
    let own = [("FI_PROVIDER_PATH", &*folder), ("FI_PROVIDER", "perusal")];
    let all = own.iter().chain(mpi.variables());
    all.map(|(name, value)| format!("export {name}='{}'\n", value.replace('\'', r"'\''"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_the_variables_back() {
        for mpi in OtherMpi::value_variants() {
            let folder = Path::new("/a b/it's/$HOME/lib");
            let check = r#"printf %s "$FI_PROVIDER:$FI_PROVIDER_PATH""#;
            let shell = std::process::Command::new("sh")
                .args(["-c", &format!("{}{check}", script(*mpi, folder))])
                .output()
                .expect("a shell");
            assert_eq!(String::from_utf8_lossy(&shell.stdout), "perusal:/a b/it's/$HOME/lib", "{mpi:?}");
        }
    }
}
