//! `perusal fabric`: puts the libfabric provider under another MPI.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::{endpoints, traced};
use crate::start::preload;
use crate::sys;
use crate::trace::Request;

/// The provider; libfabric takes files whose names end so.
pub const PROVIDER: &str = "libperusal-fi.so";

/// What leaves out MPICH's yields, preloaded.
const YIELDS: &str = "libperusal-yield.so";

/// How to use the provider.
#[derive(Args, Debug)]
#[command(arg_required_else_help = true)]
pub struct FabricOptions {
    /// Print the variables that have this MPI send through perusal's provider of libfabric, for `eval` [default: mpich]
    #[arg(long, value_name = "MPI", num_args = 0..=1, default_missing_value = "mpich")]
    env: Option<OtherMpi>,
    /// Reach other nodes, too, by this provider of libfabric [default: tcp]
    #[arg(long, value_name = "PROVIDER", num_args = 0..=1, default_missing_value = NETWORK, requires = "env")]
    nodes: Option<String>,
    /// Show what the endpoints of your processes on this machine do: what they have sent and taken, what they wait for
    #[arg(long, conflicts_with = "env")]
    show: bool,
    /// Run a program, such as the other MPI's mpiexec, and write a trace of what the messages of its endpoints do
    #[arg(long, value_name = "FILE", conflicts_with_all = ["env", "show"], requires = "program")]
    trace: Option<OsString>,
    /// The most that each endpoint may write; as for perusal run
    #[arg(long, value_name = "SIZE", requires = "trace")]
    trace_limit: Option<String>,
    /// The program to trace, and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, requires = "trace")]
    program: Vec<OsString>,
}

/// The provider that every libfabric has for peers on other nodes.
pub const NETWORK: &str = "tcp";

/// An MPI that can use libfabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OtherMpi {
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
            // Without NOLOCAL messages on the node do not leave MPICH's own shared memory. With it that has nothing to
            // do; but each process makes its queue in /dev/shm, of a megabyte, and dies where there is no room for it.
            Self::Mpich => &[
                ("MPIR_CVAR_CH4_NETMOD", "ofi"),
                ("MPIR_CVAR_NOLOCAL", "1"),
                ("MPIR_CVAR_CH4_SHM_POSIX_IQUEUE_NUM_CELLS", "2"),
                ("MPIR_CVAR_CH4_SHM_POSIX_IQUEUE_CELL_SIZE", "1024"),
            ],
            Self::Intel => &[("I_MPI_FABRICS", "ofi"), ("I_MPI_OFI_PROVIDER", "perusal")],
            Self::Openmpi => &[
                ("OMPI_MCA_pml", "cm"),
                ("OMPI_MCA_mtl", "ofi"),
                ("OMPI_MCA_opal_common_ofi_provider_include", "perusal"),
            ],
        }
    }
}

/// Prints what is asked for.
pub fn main(options: &FabricOptions) -> ExitCode {
    if options.show {
        print!("{}", endpoints::shown());
        return ExitCode::SUCCESS;
    }
    if let Some(path) = &options.trace {
        let request = Request::new(path).and_then(|mut request| {
            options.trace_limit.iter().try_for_each(|size| request.set_limit(size))?;
            Ok(request)
        });
        return request
            .map_or_else(|why| traced::failed(&why), |request| traced::run(&request, &options.program));
    }
    let Some(mpi) = options.env else { return ExitCode::SUCCESS };
    match preload::library(PROVIDER, "the provider of libfabric") {
        Ok(library) => {
            let folder = library.parent().unwrap_or(Path::new("/"));
            print!("{}", script(mpi, options.nodes.as_deref(), folder));
            ExitCode::SUCCESS
        }
        Err(why) => {
            sys::print_error(&format!("perusal fabric: {why}\n"));
            ExitCode::FAILURE
        }
    }
}

/// The variables that have an MPI use the provider in `folder`, and `network` for peers on other nodes.
pub fn variables(mpi: OtherMpi, network: Option<&str>, folder: &str) -> Vec<(&'static str, String)> {
    let list = network.map_or("perusal".to_owned(), |network| format!("perusal,{network}"));
    let mut all = vec![("FI_PROVIDER_PATH", folder.to_owned()), ("FI_PROVIDER", list)];
    if network.is_none() && mpi == OtherMpi::Openmpi {
        // Open MPI asks every provider for peers on other nodes.
        all.push(("PERUSAL_FABRIC_ONE_NODE", "1".to_owned()));
    }
    all.extend(mpi.variables().iter().map(|&(name, value)| (name, value.to_owned())));
    if mpi == OtherMpi::Mpich {
        let others = std::env::var(preload::VARIABLE).unwrap_or_default();
        all.push((preload::VARIABLE, with_yields(folder, &others)));
    }
    all
}

/// The list of what is preloaded: the library of yields, and what was in the list before.
fn with_yields(folder: &str, others: &str) -> String {
    let library = format!("{folder}/{YIELDS}");
    let others = others.split([':', ' ']).filter(|other| !other.is_empty() && *other != library);
    others.fold(library.clone(), |list, other| format!("{list}:{other}"))
}

/// A line of shell for each variable.
fn script(mpi: OtherMpi, network: Option<&str>, folder: &Path) -> String {
    let all = variables(mpi, network, &folder.to_string_lossy()).into_iter();
    all.map(|(name, value)| format!("export {name}='{}'\n", value.replace('\'', r"'\''"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_preloaded_stays_and_the_library_of_yields_is_there_once() {
        assert_eq!(with_yields("/p", ""), "/p/libperusal-yield.so");
        assert_eq!(
            with_yields("/p", "/a.so /p/libperusal-yield.so:/b.so"),
            "/p/libperusal-yield.so:/a.so:/b.so"
        );
    }

    #[test]
    fn a_shell_reads_the_variables_back() {
        for (mpi, network) in
            OtherMpi::value_variants().iter().flat_map(|mpi| [(mpi, None), (mpi, Some("tcp"))])
        {
            let folder = Path::new("/a b/it's/$HOME/lib");
            let check = r#"printf %s "$FI_PROVIDER:$FI_PROVIDER_PATH""#;
            let shell = std::process::Command::new("sh")
                .args(["-c", &format!("{}{check}", script(*mpi, network, folder))])
                .output()
                .expect("a shell");
            let list = network.map_or("perusal", |_| "perusal,tcp");
            let expected = format!("{list}:/a b/it's/$HOME/lib");
            assert_eq!(String::from_utf8_lossy(&shell.stdout), expected, "{mpi:?}");
        }
    }
}
