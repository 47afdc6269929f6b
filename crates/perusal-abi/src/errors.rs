//! Error classes, codes and their texts: the predefined ones and those that the user adds (MPI 5.0 §9.4, §9.5).

use crate::abi::*;
use crate::error::{Error, MPIX_ERR_PROC_FAILED, MPIX_ERR_PROC_FAILED_PENDING, MPIX_ERR_REVOKED, Result};
use std::collections::BTreeMap;

/// What the user added. Numbers are not given out twice, so that a stale code never means something else.
#[derive(Debug)]
pub struct UserErrors {
    last: i32,
    codes: BTreeMap<i32, ErrorCodeEntry>,
}

#[derive(Debug)]
struct ErrorCodeEntry {
    class: i32,
    text: Option<Vec<u8>>,
}

impl UserErrors {
    /// Nothing added.
    #[must_use]
    pub const fn new() -> Self {
        Self { last: MPI_ERR_LASTCODE, codes: BTreeMap::new() }
    }

    /// The greatest code that was ever given out: the attribute MPI_LASTUSEDCODE.
    #[must_use]
    pub fn last(&self) -> i32 {
        self.last
    }

    /// A new class, which is a code too.
    pub fn add_class(&mut self) -> Result<i32> {
        let class = self.next()?;
        self.codes.insert(class, ErrorCodeEntry { class, text: None });
        Ok(class)
    }

    /// A new code of a class, predefined or added.
    pub fn add_code(&mut self, class: i32) -> Result<i32> {
        if self.class(class)? != class {
            return Err(Error::Arg("an error code is not an error class"));
        }
        let code = self.next()?;
        self.codes.insert(code, ErrorCodeEntry { class, text: None });
        Ok(code)
    }

    /// Sets the text of an added class or code. An empty one is a text, too, which is taken away before the code is.
    pub fn set_text(&mut self, code: i32, text: &[u8]) -> Result<()> {
        if text.len() >= MPI_MAX_ERROR_STRING as usize {
            return Err(Error::Arg("the text is longer than MPI_MAX_ERROR_STRING"));
        }
        self.added(code)?.text = Some(text.to_vec());
        Ok(())
    }

    /// Takes the text of an added class or code away.
    pub fn remove_text(&mut self, code: i32) -> Result<()> {
        let text = self.added(code)?.text.take();
        text.map(drop).ok_or(Error::Arg("this error code has no text of its own"))
    }

    /// Takes an added code back, which has no text any more.
    pub fn remove_code(&mut self, code: i32) -> Result<()> {
        let entry = self.added(code)?;
        if entry.class == code {
            return Err(Error::Arg("this is an error class; use MPI_Remove_error_class"));
        }
        self.remove(code)
    }

    /// Takes an added class back, of which no code is left and which has no text any more.
    pub fn remove_class(&mut self, class: i32) -> Result<()> {
        if self.added(class)?.class != class {
            return Err(Error::Arg("this is an error code; use MPI_Remove_error_code"));
        }
        if self.codes.iter().any(|(&code, entry)| entry.class == class && code != class) {
            return Err(Error::Arg("error codes of this class remain"));
        }
        self.remove(class)
    }

    /// The class of any code.
    pub fn class(&self, code: i32) -> Result<i32> {
        if predefined_text(code).is_some() {
            return Ok(code);
        }
        self.codes.get(&code).map(|entry| entry.class).ok_or(Error::Arg("no such error code"))
    }

    /// The text of any code; empty for an added one that has none.
    pub fn text(&self, code: i32) -> Result<&[u8]> {
        if let Some(text) = predefined_text(code) {
            return Ok(text.as_bytes());
        }
        let entry = self.codes.get(&code).ok_or(Error::Arg("no such error code"))?;
        Ok(entry.text.as_deref().unwrap_or_default())
    }

    fn next(&mut self) -> Result<i32> {
        self.last = self.last.checked_add(1).ok_or_else(|| Error::NoMem("no error code is left".into()))?;
        Ok(self.last)
    }

    fn added(&mut self, code: i32) -> Result<&mut ErrorCodeEntry> {
        self.codes.get_mut(&code).ok_or(Error::Arg("this error code was not added by the program"))
    }

    fn remove(&mut self, code: i32) -> Result<()> {
        if self.codes.get(&code).is_some_and(|entry| entry.text.is_some()) {
            return Err(Error::Arg("this error code still has a text; use MPI_Remove_error_string first"));
        }
        self.codes.remove(&code);
        Ok(())
    }
}

impl Default for UserErrors {
    fn default() -> Self {
        Self::new()
    }
}

/// The text of a predefined class, or of one of `mpi-ext.h`; `None` for any other number.
#[must_use]
pub fn predefined_text(class: i32) -> Option<&'static str> {
    TEXTS.iter().find(|(known, _)| *known == class).map(|(_, text)| *text)
}

const TEXTS: &[(i32, &str)] = &[
    (MPI_SUCCESS, "no error"),
    (MPI_ERR_BUFFER, "invalid buffer"),
    (MPIX_ERR_PROC_FAILED, "a process that the operation needs has failed"),
    (
        MPIX_ERR_PROC_FAILED_PENDING,
        "a process that may be the source of the receive has failed; the receive stays",
    ),
    (MPIX_ERR_REVOKED, "the communicator has been revoked"),
    (MPI_ERR_COUNT, "invalid count"),
    (MPI_ERR_TYPE, "invalid datatype"),
    (MPI_ERR_TAG, "invalid tag"),
    (MPI_ERR_COMM, "invalid communicator"),
    (MPI_ERR_RANK, "invalid rank"),
    (MPI_ERR_REQUEST, "invalid request"),
    (MPI_ERR_ROOT, "invalid root"),
    (MPI_ERR_GROUP, "invalid group"),
    (MPI_ERR_OP, "invalid reduction operation"),
    (MPI_ERR_TOPOLOGY, "invalid topology"),
    (MPI_ERR_DIMS, "invalid dimensions"),
    (MPI_ERR_ARG, "invalid argument"),
    (MPI_ERR_UNKNOWN, "unknown error"),
    (MPI_ERR_TRUNCATE, "message longer than the receive buffer"),
    (MPI_ERR_OTHER, "another error, reported where it happened"),
    (MPI_ERR_INTERN, "internal error of the MPI library"),
    (MPI_ERR_PENDING, "request neither failed nor complete"),
    (MPI_ERR_IN_STATUS, "the error codes are in the statuses"),
    (MPI_ERR_ACCESS, "permission denied"),
    (MPI_ERR_AMODE, "invalid access mode of a file"),
    (MPI_ERR_ASSERT, "invalid assertion"),
    (MPI_ERR_BAD_FILE, "invalid file name"),
    (MPI_ERR_BASE, "invalid base address"),
    (MPI_ERR_CONVERSION, "a data conversion function failed"),
    (MPI_ERR_DISP, "invalid displacement"),
    (MPI_ERR_DUP_DATAREP, "data representation is defined already"),
    (MPI_ERR_FILE_EXISTS, "file exists"),
    (MPI_ERR_FILE_IN_USE, "file is open in some process"),
    (MPI_ERR_FILE, "invalid file handle"),
    (MPI_ERR_INFO_KEY, "invalid info key"),
    (MPI_ERR_INFO_NOKEY, "no such info key"),
    (MPI_ERR_INFO_VALUE, "invalid info value"),
    (MPI_ERR_INFO, "invalid info object"),
    (MPI_ERR_IO, "input or output failed"),
    (MPI_ERR_KEYVAL, "invalid attribute key"),
    (MPI_ERR_LOCKTYPE, "invalid type of lock"),
    (MPI_ERR_NAME, "no such published service"),
    (MPI_ERR_NO_MEM, "out of memory"),
    (MPI_ERR_NOT_SAME, "arguments differ between processes"),
    (MPI_ERR_NO_SPACE, "no space left in the file system"),
    (MPI_ERR_NO_SUCH_FILE, "no such file"),
    (MPI_ERR_PORT, "invalid port name"),
    (MPI_ERR_QUOTA, "quota exceeded"),
    (MPI_ERR_READ_ONLY, "file or file system is read-only"),
    (MPI_ERR_RMA_ATTACH, "memory cannot be attached to the window"),
    (MPI_ERR_RMA_CONFLICT, "conflicting accesses to a window"),
    (MPI_ERR_RMA_RANGE, "target memory is outside the window"),
    (MPI_ERR_RMA_SHARED, "memory cannot be shared"),
    (MPI_ERR_RMA_SYNC, "wrong synchronisation of one-sided calls"),
    (MPI_ERR_SERVICE, "invalid service name"),
    (MPI_ERR_SIZE, "invalid size"),
    (MPI_ERR_SPAWN, "processes cannot be spawned"),
    (MPI_ERR_UNSUPPORTED_DATAREP, "data representation is not supported"),
    (MPI_ERR_UNSUPPORTED_OPERATION, "operation is not supported"),
    (MPI_ERR_WIN, "invalid window"),
    (MPI_ERR_RMA_FLAVOR, "wrong flavor of window"),
    (MPI_ERR_PROC_ABORTED, "a process of the communication is gone"),
    (MPI_ERR_VALUE_TOO_LARGE, "value does not fit into the argument's type"),
    (MPI_ERR_SESSION, "invalid session"),
    (MPI_ERR_ERRHANDLER, "invalid error handler"),
    (MPI_ERR_ABI, "operation conflicts with what was set for the ABI"),
    (MPI_ERR_LASTCODE, "last predefined error code"),
    (MPI_T_ERR_CANNOT_INIT, "the tools interface cannot be initialised while its last MPI_T_finalize runs"),
    (MPI_T_ERR_NOT_ACCESSIBLE, "tools interface: what was asked for exists, but cannot be accessed"),
    (MPI_T_ERR_NOT_INITIALIZED, "the tools interface is not initialised; call MPI_T_init_thread first"),
    (MPI_T_ERR_NOT_SUPPORTED, "tools interface: what was asked for is not supported"),
    (MPI_T_ERR_MEMORY, "tools interface: out of memory"),
    (
        MPI_T_ERR_INVALID,
        "tools interface: invalid argument: NULL where a result, a value or an object is needed, a value out of the variable's range, or no constant of the function's",
    ),
    (
        MPI_T_ERR_INVALID_INDEX,
        "tools interface: no variable, category, event type, event element, source or enumeration has this index",
    ),
    (MPI_T_ERR_INVALID_ITEM, "tools interface: the enumeration has no item of this index"),
    (
        MPI_T_ERR_INVALID_SESSION,
        "tools interface: no such session of performance variables, or it has been freed",
    ),
    (
        MPI_T_ERR_INVALID_HANDLE,
        "tools interface: no such handle, or it has been freed, or is of another session, or the object that it is for is none",
    ),
    (
        MPI_T_ERR_INVALID_NAME,
        "tools interface: no variable (of this class), category or event type has this name",
    ),
    (MPI_T_ERR_OUT_OF_HANDLES, "tools interface: no handle is left; free some that are not needed"),
    (MPI_T_ERR_OUT_OF_SESSIONS, "tools interface: no session is left; free some that are not needed"),
    (
        MPI_T_ERR_CVAR_SET_NOT_NOW,
        "the control variable cannot be set while MPI_Init runs or a nonblocking collective is pending; set it later",
    ),
    (
        MPI_T_ERR_CVAR_SET_NEVER,
        "the control variable cannot be set, or not any more: in time, the environment sets it, or MPI_T_cvar_write before MPI_Init",
    ),
    (MPI_T_ERR_PVAR_NO_WRITE, "the performance variable is read-only: it cannot be written or reset"),
    (MPI_T_ERR_PVAR_NO_STARTSTOP, "the performance variable is continuous: it cannot be started or stopped"),
    (
        MPI_T_ERR_PVAR_NO_ATOMIC,
        "the performance variable cannot be read and reset in one step; call MPI_T_pvar_read and MPI_T_pvar_reset",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_class_of_the_abi_has_a_text_that_fits() {
        let table = include_str!("abi/constants.csv");
        let classes = table.lines().filter(|row| row.contains("error_class,"));
        let mut seen = 0;
        for row in classes {
            let value: i32 = row.rsplit(',').next().unwrap().parse().unwrap();
            let text = predefined_text(value).unwrap_or_else(|| panic!("{row}"));
            assert!(!text.is_empty() && text.len() < MPI_MAX_ERROR_STRING as usize);
            seen += 1;
        }
        let extensions = [MPIX_ERR_PROC_FAILED, MPIX_ERR_PROC_FAILED_PENDING, MPIX_ERR_REVOKED];
        assert!(extensions.iter().all(|class| predefined_text(*class).is_some()));
        assert_eq!(seen + extensions.len(), TEXTS.len());
    }

    #[test]
    fn added_codes_have_their_class_and_their_text() {
        let mut errors = UserErrors::new();
        let class = errors.add_class().unwrap();
        let code = errors.add_code(class).unwrap();
        let other = errors.add_code(MPI_ERR_TAG).unwrap();
        assert!(class > MPI_ERR_LASTCODE && other == errors.last());
        assert_eq!(errors.class(code), Ok(class));
        assert_eq!(errors.class(other), Ok(MPI_ERR_TAG));
        assert_eq!(errors.text(code), Ok(&b""[..]));
        errors.set_text(code, b"lost a shoe").unwrap();
        assert_eq!(errors.text(code), Ok(&b"lost a shoe"[..]));
        assert!(errors.add_code(code).is_err(), "a code is no class");
        assert!(errors.set_text(MPI_ERR_TAG, b"x").is_err(), "predefined texts stay");
        assert!(errors.class(other + 1).is_err());
    }

    #[test]
    fn what_is_still_used_cannot_be_removed() {
        let mut errors = UserErrors::new();
        let class = errors.add_class().unwrap();
        let code = errors.add_code(class).unwrap();
        errors.set_text(code, b"x").unwrap();
        assert!(errors.remove_class(class).is_err());
        assert!(errors.remove_code(code).is_err());
        assert!(errors.remove_code(class).is_err());
        errors.remove_text(code).unwrap();
        assert!(errors.remove_text(code).is_err());
        errors.remove_code(code).unwrap();
        errors.remove_class(class).unwrap();
        assert!(errors.class(class).is_err());
        assert!(errors.remove_class(MPI_ERR_TAG).is_err());
        assert!(errors.add_class().unwrap() > code, "numbers are not given out twice");
    }
}
