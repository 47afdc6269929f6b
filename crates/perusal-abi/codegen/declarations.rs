//! Arguments as C declares them.

/// The name of a declared argument.
pub fn name_of(declaration: &str) -> &str {
    let end = declaration.find('[').unwrap_or(declaration.len());
    declaration[..end].rsplit([' ', '*']).next().unwrap_or_default()
}

/// The Rust type that a C declaration's value is passed in alike.
/// A callback that may be one of the ABI's constants is an address.
pub fn rust_type(declaration: &str) -> String {
    if declaration.contains("[][3]") {
        return "*const [core::ffi::c_int; 3]".to_owned();
    }
    let (qualifier, bare) = match declaration.strip_prefix("const ") {
        Some(bare) => ("*const ", bare),
        None => ("*mut ", declaration),
    };
    let base = bare.split([' ', '*', '[']).next().unwrap_or_default();
    let pointers = bare.matches(['*', '[']).count();
    if base.contains("_copy_attr_fun") || base.contains("_delete_attr_fun") || base.contains("Datarep_") {
        return "usize".to_owned();
    }
    match base {
        "MPI_Copy_function" | "MPI_Delete_function" => return "usize".to_owned(),
        _ if ["_function", "_function_c"].iter().any(|end| base.ends_with(end)) => {
            return format!("Option<types::{base}>");
        }
        _ => {}
    }
    let scalar = match base {
        "int" | "MPI_T_cb_safety" | "MPI_T_source_order" => "core::ffi::c_int",
        "char" => "core::ffi::c_char",
        "void" => "core::ffi::c_void",
        "double" => "f64",
        "MPI_Count" | "MPI_Offset" => "i64",
        "MPI_Aint" => "isize",
        "MPI_Status" => "types::MPI_Status",
        "MPI_T_event_instance" => "*mut core::ffi::c_void",
        handle if handle.starts_with("MPI_") => "usize",
        other => panic!("functions.csv: unknown type {other:?}"),
    };
    format!("{}{scalar}", qualifier.repeat(pointers))
}
