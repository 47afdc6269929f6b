//! The kinds of arguments for `hostile.rs`: a word that `hostile.c` knows for each, by the argument's type and name.

/// An argument of a function, as the ABI's table declares it.
struct Argument<'a> {
    function: &'a str,
    /// The declaration: `const int array_of_blocklengths[]`.
    text: &'a str,
    /// The type without `const`, stars and brackets.
    base: &'a str,
    name: &'a str,
    stars: usize,
    is_array: bool,
}

/// Returns the kind of an argument of `function`, declared as `argument`.
pub fn kind(function: &str, argument: &str) -> String {
    if function.starts_with("PERUSE_")
        && let Some(kind) = peruse_kind(function, argument)
    {
        return kind.to_owned();
    }
    let name = argument.split(['[', ']']).next().unwrap_or(argument);
    let argument = Argument {
        function,
        text: argument,
        base: argument.trim_start_matches("const ").split([' ', '*', '[']).next().unwrap_or_default(),
        name: name.rsplit([' ', '*']).next().unwrap_or(name),
        stars: argument.matches('*').count(),
        is_array: argument.contains('['),
    };
    argument.handle_kind().unwrap_or_else(|| argument.plain_kind().to_owned())
}

impl Argument<'_> {
    fn is_const(&self) -> bool {
        self.text.starts_with("const")
    }

    fn is_of_tools(&self) -> bool {
        self.function.starts_with("MPI_T_")
    }

    /// The kind of a handle of MPI's or of the tools interface's, of an array of them, or of the address of one; `None`
    /// for what is no handle.
    fn handle_kind(&self) -> Option<String> {
        match self.base {
            "MPI_Request" if self.is_array => Some("REQUESTS".to_owned()),
            "MPI_Info" if self.is_array => Some("INFOS".to_owned()),
            "MPI_Datatype" if self.is_array && self.is_const() => Some("DATATYPES".to_owned()),
            "MPI_Comm" | "MPI_Datatype" | "MPI_Op" | "MPI_Group" | "MPI_Request" | "MPI_Info"
            | "MPI_File" | "MPI_Win" | "MPI_Errhandler" | "MPI_Session" | "MPI_Message" => {
                let handle = self.base.trim_start_matches("MPI_").to_uppercase();
                Some(match (self.stars, self.is_array) {
                    (0, false) if handle == "DATATYPE" && !communicates(self.function) => {
                        "ANY_DATATYPE".to_owned()
                    }
                    (0, false) => handle,
                    _ if reads_handle(self.function, &handle) => format!("{handle}_AT"),
                    _ if self.is_of_tools() => "OUT_OR_NULL".to_owned(),
                    _ if self.is_array => "OUT".to_owned(),
                    _ => format!("OUT_{handle}"),
                })
            }
            base if base.ends_with("_function") || base.starts_with("MPI_T_cb") => None,
            base if base.starts_with("MPI_T_source") => None,
            base => {
                let handle = base.strip_prefix("MPI_T_")?.to_uppercase();
                Some(match self.stars {
                    0 => format!("T_{handle}"),
                    _ if self.function.ends_with("_free") => format!("T_{handle}_AT"),
                    _ => "OUT_OR_NULL".to_owned(),
                })
            }
        }
    }

    /// The kind of what is no handle.
    fn plain_kind(&self) -> &'static str {
        match self.base {
            "MPI_Status" if self.is_const() || self.function.starts_with("MPI_Status_set") => "STATUS_IN",
            "MPI_Status" => "STATUS",
            "void" => self.address_kind(),
            "char" => self.text_kind(),
            base if base.ends_with("_function") || base.ends_with("_function_c") => "CALLBACK",
            _ if self.function.ends_with("_toint") || self.function.ends_with("_fromint") => "INTEGER",
            "int" if self.name.ends_with("keyval") && self.stars == 0 && !self.is_array => {
                match self.function.split('_').nth(1) {
                    Some("Type") => "TYPE_KEYVAL",
                    Some("Win") => "WIN_KEYVAL",
                    _ => "COMM_KEYVAL",
                }
            }
            "int" if self.name.ends_with("keyval") && self.function.contains("free") => "KEYVAL_AT",
            _ if self.stars > 0 || self.is_array => self.numbers_kind(),
            _ => self.number_kind(),
        }
    }

    /// Of the address of data of any type.
    fn address_kind(&self) -> &'static str {
        let (function, name) = (self.function, self.name);
        let collective = self.text.contains("sendbuf") || self.text.contains("recvbuf");
        match name {
            _ if function.ends_with("_delete_attr") || name == "extra_state" => "ANYTHING",
            "attribute_val" if !function.contains("get") => "ANYTHING",
            "location" | "user_data" | "obj_handle" => "ANYTHING",
            // Rank 0 gets nothing.
            "recvbuf" if function.to_ascii_lowercase().contains("exscan") => "ANYTHING",
            "base" if function == "MPI_Free_mem" => "MEMORY",
            "base" if function.starts_with("MPI_Win_") => "WINDOW_MEMORY",
            _ if self.is_of_tools() => "OUT_OR_NULL",
            _ if collective && !function.starts_with("MPI_File") && !function.contains("endrecv") => {
                "BUFFER_IN_PLACE"
            }
            "baseptr" | "buffer_addr" => "OUT",
            _ if name.starts_with("logical") || name.contains("attribute_val") => "OUT",
            _ => "BUFFER",
        }
    }

    /// Of a text, of room for one, or of an array of texts.
    fn text_kind(&self) -> &'static str {
        match self.name {
            _ if self.name == "argv" || self.is_array || self.stars > 1 => "WORDS",
            name if self.is_const() && name.contains("datarep") => "DATAREP",
            name if self.is_const() && name.contains("filename") => "FILENAME",
            "key" if self.is_const() => "KEY",
            _ if self.is_const() => "STRING",
            _ if self.is_of_tools() => "OUT_OR_NULL",
            _ => "OUT",
        }
    }

    /// Of an array of numbers, or of the address of one.
    fn numbers_kind(&self) -> &'static str {
        match self.name {
            "argc" if self.stars > 0 => "OUT_OR_NULL",
            "position" | "valuelen" | "buflen" if self.stars > 0 => "POSITION",
            // As long as the number of processes that is asked for.
            "array_of_errcodes" if self.is_array => "NOTHING",
            _ if self.is_of_tools() => "OUT_OR_NULL",
            _ if self.is_array && self.text.contains("weights") => "WEIGHTS",
            _ if self.is_array && self.is_const() && self.base == "int" => "INTS",
            _ if self.is_array && self.is_const() => "LARGE_INTS",
            "dims" | "coords" | "ranges" if self.is_array && !self.function.contains("get") => "INTS",
            _ => "OUT",
        }
    }

    /// Of a number that is passed by value.
    fn number_kind(&self) -> &'static str {
        match self.name {
            "root" if self.base == "int" => "ROOT",
            "dest" | "target_rank" | "source" if self.base == "int" => "PEER",
            name if self.base == "int" && name.ends_with("tag") => "TAG",
            "rank" if self.base == "int" && !self.function.contains("darray") => "RANK",
            name if name.ends_with("count") && !name.contains("max") => "COUNT",
            "n" | "ndims" | "nnodes" | "indegree" | "outdegree" | "length" | "argc" | "len" => "LENGTH",
            "logical_size" => "LENGTH",
            _ if self.base == "int" || self.base.starts_with("MPI_T_") => "INTEGER",
            _ => "LARGE_INTEGER",
        }
    }
}

/// The kind of an argument of PERUSE, if MPI has no such.
fn peruse_kind(function: &str, argument: &str) -> Option<&'static str> {
    let stars = argument.matches('*').count();
    Some(match argument.split([' ', '*']).next().unwrap_or_default() {
        "peruse_event_h" if stars == 0 => "P_EVENT",
        "peruse_event_h" if function == "PERUSE_Event_release" => "P_EVENT_AT",
        base if base.ends_with("_callback_f") && stars == 1 => "CALLBACK",
        "void" if argument.ends_with("*param") && stars == 1 => "ANYTHING",
        "int" if argument == "int event" => "P_NUMBER",
        _ if stars > 0 && !argument.starts_with("const ") => "OUT",
        _ => return None,
    })
}

/// Whether a datatype must be committed: not where it is made, asked or freed.
fn communicates(function: &str) -> bool {
    let others = [
        "MPI_Type_",
        "MPI_Get_count",
        "MPI_Get_elements",
        "MPI_Status_set_elements",
        "MPI_Pack_external_size",
    ];
    !others.iter().any(|head| function.starts_with(head))
        && function != "MPI_File_get_type_extent"
        && !function.starts_with("MPI_Pack_size")
        && !function.starts_with("MPI_File_get_type_extent")
}

/// The functions that take a handle by its address and read it.
fn reads_handle(function: &str, handle: &str) -> bool {
    let base = function.strip_suffix("_c").unwrap_or(function);
    let reads =
        ["MPI_Comm_disconnect", "MPI_File_close", "MPI_Session_finalize", "MPI_Type_commit", "MPI_Mrecv"];
    let requests = ["MPI_Wait", "MPI_Test", "MPI_Start", "MPI_Cancel"];
    base.ends_with("_free")
        || reads.contains(&base)
        || requests.contains(&base)
        || base == "MPI_Imrecv" && handle == "MESSAGE"
}
