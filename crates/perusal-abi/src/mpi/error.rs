//! Error classes, codes and strings (MPI 5.0 §9.4, §9.5). All legal at any time.

use crate::abi::MPI_MAX_ERROR_STRING;
use crate::boundary;
use crate::error::Result;
use crate::errors::UserErrors;
use core::ffi::c_int;
use std::borrow::Cow;
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

/// MPI_Error_class.
pub fn class(code: c_int) -> Result<c_int> {
    added().class(code)
}

/// MPI_Error_string. Of the class of the last error that this thread was given it says what that error said, too.
pub fn text(code: c_int) -> Result<Vec<u8>> {
    let mut text = added().text(code)?.to_vec();
    if let Some(said) = boundary::last_said(code) {
        let room = (MPI_MAX_ERROR_STRING as usize - 1).saturating_sub(text.len() + 2);
        text.extend_from_slice(b": ");
        text.extend_from_slice(fitting(&said, room).as_bytes());
    }
    Ok(text)
}

/// A text of at most `room` bytes: of a longer one the beginning, which says where, and the end, which says what to do.
fn fitting(text: &str, room: usize) -> Cow<'_, str> {
    if text.len() <= room {
        return text.into();
    }
    let part = room.saturating_sub(CUT.len()) / 2;
    let (beginning, end) = (text.floor_char_boundary(part), text.ceil_char_boundary(text.len() - part));
    format!("{}{CUT}{}", &text[..beginning], &text[end..]).into()
}

/// What stands for the middle of a text.
const CUT: &str = " [...] ";

/// MPI_Add_error_class.
pub fn add_class() -> Result<c_int> {
    let mut added = added();
    let class = added.add_class()?;
    super::attr::set_last_used_code(added.last());
    Ok(class)
}

/// MPI_Add_error_code.
pub fn add_code(class: c_int) -> Result<c_int> {
    let mut added = added();
    let code = added.add_code(class)?;
    super::attr::set_last_used_code(added.last());
    Ok(code)
}

/// MPI_Add_error_string.
pub fn add_text(code: c_int, text: &[u8]) -> Result<()> {
    added().set_text(code, text)
}

/// MPI_Remove_error_class.
pub fn remove_class(class: c_int) -> Result<()> {
    added().remove_class(class)
}

/// MPI_Remove_error_code.
pub fn remove_code(code: c_int) -> Result<()> {
    added().remove_code(code)
}

/// MPI_Remove_error_string.
pub fn remove_text(code: c_int) -> Result<()> {
    added().remove_text(code)
}
