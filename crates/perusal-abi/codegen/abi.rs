//! The ABI's functions as data.

/// One function of the ABI, as `functions.csv` has it.
#[derive(Clone)]
pub struct Function {
    /// C's return type.
    pub returns: String,
    /// `MPI_…`.
    pub name: String,
    /// C declarations of the arguments; empty for `void`.
    pub arguments: Vec<String>,
}

/// All functions that the library exports.
///
/// `MPI_Psend_init` and `MPI_Precv_init` take an `MPI_Count`, as the standard, MPICH and Open MPI have it; the table's
/// `int`, and the `_c` twins, are the Forum's stub header's.
/// All four names are exported, the two of the standard are declared (`docs/abi.md`).
pub fn functions(csv: &str) -> Vec<Function> {
    let mut functions: Vec<Function> = csv.lines().skip(1).map(function).collect();
    for f in functions.iter_mut().filter(|f| PARTITIONED.contains(&f.name.as_str())) {
        for argument in f.arguments.iter_mut().filter(|a| *a == "int count") {
            *argument = "MPI_Count count".to_owned();
        }
    }
    functions
}

/// The functions whose count the stub header and the standard disagree about.
pub const PARTITIONED: [&str; 2] = ["MPI_Psend_init", "MPI_Precv_init"];

fn function(row: &str) -> Function {
    let mut fields = row.splitn(3, ',');
    let (Some(returns), Some(name), Some(arguments)) = (fields.next(), fields.next(), fields.next()) else {
        panic!("functions.csv: expected return_type,name,arguments in {row:?}");
    };
    let arguments = arguments.trim().trim_matches('"');
    let arguments = arguments.split(';').map(|a| a.trim().to_owned());
    Function {
        returns: returns.to_owned(),
        name: name.to_owned(),
        arguments: arguments.filter(|a| !a.is_empty() && a != "void").collect(),
    }
}
