//! Beginning and end of MPI_T (MPI 5.0 §15.3.4), which are MPI's neither in time nor in number.

use super::{Outcome, code};
use crate::abi::*;
use crate::arguments::{Call, Out};
use crate::events::inside_callback;
use crate::sync::{AtomicBool, AtomicU32, Ordering, yield_now};
use crate::tool::event::delivery;
use core::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// How often MPI_T has been initialised and not finalized. Written under `CHANGE` alone.
static COUNT: AtomicU32 = AtomicU32::new(0);
static CHANGE: Mutex<()> = Mutex::new(());
/// The last MPI_T_finalize is at work, and may wait for tools' functions to return. Written under `CHANGE` alone.
static ENDING: AtomicBool = AtomicBool::new(false);

/// The end of each part of MPI_T that keeps something: run by the MPI_T_finalize that is the last one, in this order.
const ENDS: &[fn()] = &[super::cvar::end, super::pvar_state::end, super::event::end];

/// MPI_T_ERR_NOT_INITIALIZED unless MPI_T is initialised.
pub(crate) fn initialised() -> Outcome {
    // Relaxed: what MPI_T functions use is published by tables and locks of their own.
    if COUNT.load(Ordering::Relaxed) == 0 { Err(MPI_T_ERR_NOT_INITIALIZED) } else { Ok(()) }
}

/// The right to change the count. `None` to a tool's function for which, or from which, the last MPI_T_finalize waits.
fn change() -> Option<MutexGuard<'static, ()>> {
    if !inside_callback() && !delivery::is_delivering() {
        return Some(CHANGE.lock().unwrap_or_else(PoisonError::into_inner));
    }
    loop {
        match CHANGE.try_lock() {
            Ok(change) => return Some(change),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            // Relaxed: a thread that sees it late looks again.
            Err(TryLockError::WouldBlock) if ENDING.load(Ordering::Relaxed) => return None,
            Err(TryLockError::WouldBlock) => yield_now(),
        }
    }
}

fn begin(required: c_int, provided: Option<Out<'_, c_int>>) -> Outcome {
    const LEVELS: [c_int; 4] =
        [MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE];
    if !LEVELS.contains(&required) {
        return Err(MPI_T_ERR_INVALID);
    }
    let _change = change().ok_or(MPI_T_ERR_CANNOT_INIT)?;
    let count = COUNT.load(Ordering::Relaxed).checked_add(1).ok_or(MPI_T_ERR_CANNOT_INIT)?;
    provided.ok_or(MPI_T_ERR_INVALID)?.set(required);
    COUNT.store(count, Ordering::Relaxed);
    Ok(())
}

fn end() -> Outcome {
    let _change = change().ok_or(MPI_T_ERR_NOT_INITIALIZED)?;
    let count = COUNT.load(Ordering::Relaxed).checked_sub(1).ok_or(MPI_T_ERR_NOT_INITIALIZED)?;
    ENDING.store(count == 0, Ordering::Relaxed);
    COUNT.store(count, Ordering::Relaxed);
    if count == 0 {
        ENDS.iter().for_each(|end| end());
        ENDING.store(false, Ordering::Relaxed);
    }
    Ok(())
}

/// MPI_T_init_thread. Any thread may call MPI_T, whatever was required here and whatever MPI_Init_thread gave;
/// `provided` is what was required, because some tools take more for a library that they have not asked for.
/// MPI_T_ERR_CANNOT_INIT in a tool's function while the last MPI_T_finalize is at work.
pub fn init(_: &Call, required: c_int, provided: Option<Out<'_, c_int>>) -> c_int {
    code(begin(required, provided))
}

/// MPI_T_finalize. The last one frees what is left of sessions and handles; values that were set stay.
pub fn finalize(_: &Call) -> c_int {
    super::event::flush();
    code(end())
}
