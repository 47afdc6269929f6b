//! Error classes, codes and strings (MPI 5.0 §9.4, §9.5). All legal at any time.

use crate::abi::*;
use crate::capi::errors::UserErrors;
use crate::capi::{args, strings};
use crate::{export, nonnull};
use core::ffi::{c_char, c_int};
use std::sync::{Mutex, MutexGuard, PoisonError};

static ADDED: Mutex<UserErrors> = Mutex::new(UserErrors::new());

fn added() -> MutexGuard<'static, UserErrors> {
    ADDED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The value of the attribute MPI_LASTUSEDCODE of MPI_COMM_WORLD (MPI 5.0 §9.5).
#[must_use]
pub fn last_used_code() -> c_int {
    added().last()
}

/// Is `code` one that an error handler may be called with?
#[must_use]
pub fn is_code(code: c_int) -> bool {
    added().class(code).is_ok()
}

export! {
    /// MPI 5.0 §9.4.
    fn MPI_Error_class(errorcode: c_int, errorclass: *mut c_int) anytime raises(MPI_COMM_SELF) {
        let errorclass = nonnull!(errorclass)?;
        let class = added().class(errorcode)?;
        // SAFETY: not null, and a result of this function.
        unsafe { *errorclass = class };
        Ok(())
    }

    /// MPI 5.0 §9.4: `string` has room for MPI_MAX_ERROR_STRING bytes.
    fn MPI_Error_string(errorcode: c_int, string: *mut c_char, resultlen: *mut c_int) anytime raises(MPI_COMM_SELF) {
        let errors = added();
        let text = errors.text(errorcode)?;
        // SAFETY: the user gives MPI_MAX_ERROR_STRING bytes and a place for the length.
        unsafe { strings::give(string, MPI_MAX_ERROR_STRING as usize, resultlen, text) }
    }

    /// MPI 5.0 §9.5.
    fn MPI_Add_error_class(errorclass: *mut c_int) anytime raises(MPI_COMM_SELF) {
        let errorclass = nonnull!(errorclass)?;
        let class = added().add_class()?;
        super::attr::set_last_used_code(last_used_code());
        // SAFETY: not null, and a result of this function.
        unsafe { *errorclass = class };
        Ok(())
    }

    /// MPI 5.0 §9.5.
    fn MPI_Add_error_code(errorclass: c_int, errorcode: *mut c_int) anytime raises(MPI_COMM_SELF) {
        let errorcode = nonnull!(errorcode)?;
        let code = added().add_code(errorclass)?;
        super::attr::set_last_used_code(last_used_code());
        // SAFETY: not null, and a result of this function.
        unsafe { *errorcode = code };
        Ok(())
    }

    /// MPI 5.0 §9.5.
    fn MPI_Add_error_string(errorcode: c_int, string: *const c_char) anytime raises(MPI_COMM_SELF) {
        // SAFETY: the user passes a zero-terminated string.
        let text = unsafe { args::text(string) }?;
        added().set_text(errorcode, text)
    }

    /// MPI 5.0 §9.5.
    fn MPI_Remove_error_class(errorclass: c_int) anytime raises(MPI_COMM_SELF) {
        added().remove_class(errorclass)
    }

    /// MPI 5.0 §9.5.
    fn MPI_Remove_error_code(errorcode: c_int) anytime raises(MPI_COMM_SELF) {
        added().remove_code(errorcode)
    }

    /// MPI 5.0 §9.5.
    fn MPI_Remove_error_string(errorcode: c_int) anytime raises(MPI_COMM_SELF) {
        added().remove_text(errorcode)
    }
}
