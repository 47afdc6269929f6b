//! Windows in OTF2: each is an RmaWin over a communicator of its members, and what happens on it has OTF2's RMA events.
//!
//! | of the trace | in OTF2 |
//! |---|---|
//! | a window is made, freed | RmaWinCreate, RmaWinDestroy |
//! | an operation begins to move bytes, is complete | RmaPut, RmaGet or RmaAtomic, RmaOpCompleteBlocking |
//! | a lock is waited for, acquired, released | RmaRequestLock, RmaAcquireLock, RmaReleaseLock: for all targets one after the other |
//! | a fence | RmaCollectiveBegin, RmaCollectiveEnd (a barrier that completes memory accesses) |
//! | a flush, a sync | RmaSync of the target; of all, RmaGroupSync |
//! | access to a target begins, ends | RmaSync: it has notified this rank, this rank notifies it |
//! | an exposure begins, ends | RmaGroupSync of the window's group |

use super::super::super::model::{Record, RecordPayload};
use super::super::super::windows::JobWindows;
use super::communicators::Otf2Ranks;
use super::writer::{Definitions, Location};
use crate::error::Result;
use crate::events::{Event, RmaOperation, WindowLock, WindowSync};
use core::ptr::null_mut;

/// OTF2_UNDEFINED_UINT32: no root.
const NONE: u32 = u32::MAX;
const BARRIER: u8 = 0;
const LEVEL_NONE: u32 = 0;
const LEVEL_PROCESS: u32 = 1;
const LEVEL_MEMORY: u32 = 2;
const SYNC_MEMORY: u8 = 0;
const NOTIFY_IN: u8 = 1;
const NOTIFY_OUT: u8 = 2;
const EXCLUSIVE: u8 = 0;
const SHARED: u8 = 1;
const ACCUMULATE: u8 = 0;
const COMPARE_AND_SWAP: u8 = 3;
const FETCH_AND_ACCUMULATE: u8 = 7;

/// The windows of the job. The communicators of their members follow all others.
pub struct Otf2Windows<'a> {
    /// The windows.
    pub job: JobWindows<'a>,
    /// The number of the first one's communicator.
    pub first: u32,
}

impl Otf2Windows<'_> {
    /// What events speak of.
    pub fn define(&self, to: &Definitions<'_>, ranks: &Otf2Ranks) -> Result<()> {
        for (number, window) in (0..).zip(&self.job.all) {
            let name = self.job.name(number as usize);
            to.communicator(self.first + number, &name, &ranks.group(&window.comm.group))?;
            to.window(number, &name, self.first + number)?;
        }
        Ok(())
    }

    /// The group of a window's members: see [`Definitions::communicator`].
    fn group(&self, window: u32) -> u32 {
        self.first + window + 1
    }

    /// Writes what a record of a window, made by the rank at this place, is in OTF2.
    pub fn put(&self, location: &mut Location<'_>, place: usize, record: &Record) -> Result<()> {
        if !record.is_of_window() {
            return Ok(());
        }
        let Some(number) = self.job.number(place, record) else { return Ok(()) };
        let (win, when) = (number as u32, record.when);
        let remote = u32::try_from(record.peer).ok();
        match (record.event, record.payload) {
            (Event::WinCreated, _) => location.event("window", when, |otf2, writer, when| {
                // SAFETY: writer rule 1, and numbers; no attributes.
                unsafe { (otf2.rma_win_create)(writer, null_mut(), when, win) }
            }),
            (Event::WinFreed, _) => location.event("window", when, |otf2, writer, when| {
                // SAFETY: writer rule 1, and numbers; no attributes.
                unsafe { (otf2.rma_win_destroy)(writer, null_mut(), when, win) }
            }),
            (Event::WinReqXferBegin, RecordPayload::Rma { operation, .. }) => {
                let Some(remote) = remote else { return Ok(()) };
                put_operation(location, record, operation, win, remote)
            }
            (Event::WinReqComplete, _) => location.event("operation", when, |otf2, writer, when| {
                // SAFETY: writer rule 1, and numbers; no attributes.
                unsafe { (otf2.rma_complete)(writer, null_mut(), when, win, record.id) }
            }),
            (Event::WinLockWaitBegin | Event::WinLockAcquired | Event::WinLockReleased, _) => {
                self.put_lock(location, record, win)
            }
            (Event::WinAccessBegin | Event::WinAccessEnd, _) => {
                let Some(remote) = remote else { return Ok(()) };
                let kind = if record.event == Event::WinAccessBegin { NOTIFY_IN } else { NOTIFY_OUT };
                put_sync(location, when, win, remote, kind)
            }
            (Event::WinExposeBegin, _) => self.put_group(location, when, win, LEVEL_NONE),
            (Event::WinExposeEnd, _) => self.put_group(location, when, win, LEVEL_MEMORY),
            (Event::WinSyncBegin, RecordPayload::Sync { call, .. }) if call == WindowSync::Fence as u8 => {
                location.event("fence", when, |otf2, writer, when| {
                    // SAFETY: writer rule 1, and numbers; no attributes.
                    unsafe { (otf2.rma_collective_begin)(writer, null_mut(), when) }
                })
            }
            (Event::WinSyncEnd, RecordPayload::Sync { call, .. }) => match call {
                _ if call == WindowSync::Fence as u8 => {
                    let level = LEVEL_PROCESS | LEVEL_MEMORY;
                    location.event("fence", when, |otf2, writer, when| {
                        // SAFETY: writer rule 1, and numbers; no attributes.
                        unsafe {
                            (otf2.rma_collective_end)(
                                writer,
                                null_mut(),
                                when,
                                BARRIER,
                                level,
                                win,
                                NONE,
                                0,
                                0,
                            )
                        }
                    })
                }
                _ if call == WindowSync::Flush as u8 || call == WindowSync::Sync as u8 => match remote {
                    Some(remote) => put_sync(location, when, win, remote, SYNC_MEMORY),
                    None => self.put_group(location, when, win, LEVEL_MEMORY),
                },
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn put_group(&self, location: &mut Location<'_>, when: u64, win: u32, level: u32) -> Result<()> {
        let group = self.group(win);
        location.event("synchronisation", when, |otf2, writer, when| {
            // SAFETY: writer rule 1, and numbers; no attributes.
            unsafe { (otf2.rma_group_sync)(writer, null_mut(), when, level, win, group) }
        })
    }

    /// A lock of one target, or of each in turn.
    fn put_lock(&self, location: &mut Location<'_>, record: &Record, win: u32) -> Result<()> {
        let RecordPayload::Lock { target, lock, .. } = record.payload else { return Ok(()) };
        let members = self.job.all.get(win as usize).map_or(0, |window| window.comm.group.len() as u32);
        let targets = match u32::try_from(target) {
            Ok(target) => target..target + 1,
            Err(_) => 0..members,
        };
        let kind = if lock == WindowLock::Exclusive as u8 { EXCLUSIVE } else { SHARED };
        for remote in targets {
            // A target has one lock: its rank names it.
            let id = u64::from(remote);
            location.event("lock", record.when, |otf2, writer, when| {
                // SAFETY: writer rule 1, and numbers; no attributes.
                unsafe {
                    match record.event {
                        Event::WinLockWaitBegin => {
                            (otf2.rma_request_lock)(writer, null_mut(), when, win, remote, id, kind)
                        }
                        Event::WinLockAcquired => {
                            (otf2.rma_acquire_lock)(writer, null_mut(), when, win, remote, id, kind)
                        }
                        _ => (otf2.rma_release_lock)(writer, null_mut(), when, win, remote, id),
                    }
                }
            })?;
        }
        Ok(())
    }
}

fn put_sync(location: &mut Location<'_>, when: u64, win: u32, remote: u32, kind: u8) -> Result<()> {
    location.event("synchronisation", when, |otf2, writer, when| {
        // SAFETY: writer rule 1, and numbers; no attributes.
        unsafe { (otf2.rma_sync)(writer, null_mut(), when, win, remote, kind) }
    })
}

fn put_operation(
    location: &mut Location<'_>,
    record: &Record,
    operation: u8,
    win: u32,
    remote: u32,
) -> Result<()> {
    let (bytes, id) = (record.bytes, record.id);
    location.event("operation", record.when, |otf2, writer, when| {
        let atomic = |kind: u8, received: u64| {
            // SAFETY: writer rule 1, and numbers; no attributes.
            unsafe { (otf2.rma_atomic)(writer, null_mut(), when, win, remote, kind, bytes, received, id) }
        };
        match operation {
            // SAFETY: writer rule 1, and numbers; no attributes.
            _ if operation == RmaOperation::Put as u8 => unsafe {
                (otf2.rma_put)(writer, null_mut(), when, win, remote, bytes, id)
            },
            // SAFETY: writer rule 1, and numbers; no attributes.
            _ if operation == RmaOperation::Get as u8 => unsafe {
                (otf2.rma_get)(writer, null_mut(), when, win, remote, bytes, id)
            },
            _ if operation == RmaOperation::Accumulate as u8 => atomic(ACCUMULATE, 0),
            _ if operation == RmaOperation::CompareAndSwap as u8 => atomic(COMPARE_AND_SWAP, bytes),
            _ => atomic(FETCH_AND_ACCUMULATE, bytes),
        }
    })
}
