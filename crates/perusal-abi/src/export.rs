//! How a C function of MPI is written: once, with `export!`.

/// Defines one function of the MPI ABI: the strong symbol `PMPI_X` and, in the same object, its weak alias `MPI_X`.
///
/// The function is written under its `MPI_` name. In Rust, `MPI_X(…)` *is* `PMPI_X`: code inside the library can
/// never call into a tool that interposes `MPI_X` (MPI 5.0 §15.2.1). Three forms:
///
/// ```text
/// export! {
///     /// MPI 5.0 §3.2.1. The usual form: legal between initialisation and finalisation, not inside an event
///     /// callback. The body gives `Result<()>`; an error is raised on the communicator named by `raises`.
///     fn MPI_Send(buf: *const c_void, count: c_int, …, comm: MPI_Comm) raises(comm) {
///         Ok(())
///     }
///     /// The same, legal at any time (before MPI_Init, after MPI_Finalize).
///     fn MPI_Info_create(info: *mut MPI_Info) anytime raises(MPI_COMM_SELF) { Ok(()) }
///     /// A plain C function: no checks, any return type.
///     fn MPI_Wtime() -> f64 { 0.0 }
/// }
/// ```
///
/// `raises` takes anything that is `Into<boundary::Source>`: a communicator handle, or `Source::Win(w)`,
/// `Source::File(f)`, `Source::Session(s)`. The expression is evaluated only when there is an error, and sees the arguments.
///
/// The body runs inside `unsafe`-callable code but is itself safe: dereferences take their own `unsafe` blocks.
macro_rules! export {
    () => {};
    ($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) -> $ret:ty $body:block $($rest:tt)*) => {
        $(#[$meta])*
        ///
        /// # Safety
        /// The arguments are what the MPI standard asks of them.
        #[allow(non_snake_case, clippy::too_many_arguments)]
        #[unsafe(export_name = concat!("P", stringify!($name)))]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> $ret $body
        core::arch::global_asm!(
            concat!(".weak ", stringify!($name)),
            concat!(".set ", stringify!($name), ", P", stringify!($name)),
        );
        $crate::export! { $($rest)* }
    };
    ($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) raises($on:expr) $body:block $($rest:tt)*) => {
        $crate::export! {
            $(#[$meta])*
            fn $name($($arg: $ty),*) -> core::ffi::c_int {
                let run = || -> $crate::Result<()> {
                    $crate::capi::boundary::enter(stringify!($name))?;
                    $body
                };
                match run() {
                    Ok(()) => $crate::abi::MPI_SUCCESS,
                    Err(error) => $crate::capi::boundary::raise($on, stringify!($name), error),
                }
            }
            $($rest)*
        }
    };
    ($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) anytime raises($on:expr) $body:block $($rest:tt)*) => {
        $crate::export! {
            $(#[$meta])*
            fn $name($($arg: $ty),*) -> core::ffi::c_int {
                let run = || -> $crate::Result<()> {
                    $crate::capi::boundary::outside_callback()?;
                    $body
                };
                match run() {
                    Ok(()) => $crate::abi::MPI_SUCCESS,
                    Err(error) => $crate::capi::boundary::raise($on, stringify!($name), error),
                }
            }
            $($rest)*
        }
    };
}

pub(crate) use export;
