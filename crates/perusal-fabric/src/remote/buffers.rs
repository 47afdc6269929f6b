//! Callers' buffers that the core provider sends from and receives into.

use super::{AT_ONCE, BUFFER_RECEIVE, BUFFER_SEND, HEAD, NUMBER, Network, RECORD, SEND, context};
use crate::api::*;
use libc::{c_void, iovec};
use perusal::internals::ring::Header;
use std::ptr::null_mut;

type TaggedReceive =
    unsafe extern "C" fn(*mut Fid, *mut u8, usize, *mut c_void, u64, u64, u64, *mut c_void) -> isize;
type TaggedSend =
    unsafe extern "C" fn(*mut Fid, *const u8, usize, *mut c_void, u64, u64, *mut c_void) -> isize;
type SendPieces =
    unsafe extern "C" fn(*mut Fid, *const iovec, *mut *mut c_void, usize, u64, *mut c_void) -> isize;
type Cancel = unsafe extern "C" fn(*mut Fid, *mut c_void) -> isize;

/// The table of messages with tags, among those of an endpoint.
const TAGGED: usize = 4;

impl Network {
    /// Whether the core provider moves bytes between callers' buffers.
    pub fn takes_buffers(&self) -> bool {
        self.tagged && self.endpoint.is_some()
    }

    /// Has a message come into the buffer of receive `number` of the endpoint's.
    /// Returns the message's tag; `None`: not now.
    ///
    /// # Safety
    ///
    /// `to` is valid for writes of `len` bytes, and nobody else touches them,
    /// until [`super::Event::BufferReceived`] or [`Network::close`].
    pub unsafe fn receive_into(&mut self, number: u64, to: *mut u8, len: usize) -> Option<u64> {
        let endpoint = self.endpoint.as_ref().filter(|_| self.tagged)?;
        let tag = self.next_tag + 1;
        let context = context(number as usize, BUFFER_RECEIVE);
        // SAFETY: the first function of the table receives. The buffer stays valid, as the caller promises.
        let error = unsafe {
            let receive = endpoint.function::<TaggedReceive>(TAGGED, 0);
            receive(endpoint.fid(), to, len, null_mut(), FI_ADDR_UNSPEC, tag, 0, context)
        };
        if error != 0 {
            return None;
        }
        self.next_tag = tag;
        self.buffers += 1;
        Some(tag)
    }

    /// Sends the buffer of send `number` of the endpoint's. False: not now.
    ///
    /// # Safety
    ///
    /// `from` is valid for reads of `len` bytes until [`super::Event::BufferSent`] or [`Network::close`].
    pub unsafe fn send_from(
        &mut self,
        to: usize,
        number: u64,
        from: *const u8,
        len: usize,
        tag: u64,
    ) -> bool {
        let Some(endpoint) = self.endpoint.as_ref().filter(|_| self.tagged) else { return false };
        let (address, context) = (self.destinations[to].address, context(number as usize, BUFFER_SEND));
        // SAFETY: the fourth function of the table sends. The buffer stays valid, as the caller promises.
        let error = unsafe {
            let send = endpoint.function::<TaggedSend>(TAGGED, 3);
            send(endpoint.fid(), from, len, null_mut(), address, tag, context)
        };
        self.buffers += usize::from(error == 0);
        error == 0
    }

    /// Whether a message of so many bytes in one buffer goes at once.
    pub fn sends_at_once(&self, len: usize) -> bool {
        self.vectors && self.endpoint.is_some() && len <= AT_ONCE
    }

    /// Sends a record whose payload is the buffer of send `number` of the endpoint's, with that number before it if
    /// `with_number`. False: there is no room now.
    ///
    /// # Safety
    ///
    /// As [`Network::send_from`].
    pub unsafe fn push_from(
        &mut self,
        to: usize,
        header: &Header,
        (number, with_number): (u64, bool),
        from: *const u8,
        len: usize,
    ) -> bool {
        if !self.sends_at_once(len) || !self.greet(to) {
            return false;
        }
        let Some(at) = self.record_to(to, RECORD, header) else { return false };
        let extra = if with_number { NUMBER } else { 0 };
        let head = &mut self.sends[at].bytes[..HEAD + extra];
        head[HEAD..].copy_from_slice(&number.to_le_bytes()[..extra]);
        let parts = [
            iovec { iov_base: head.as_mut_ptr().cast(), iov_len: head.len() },
            iovec { iov_base: from.cast_mut().cast(), iov_len: len },
        ];
        let address = self.destinations[to].address;
        let error = self.endpoint.as_ref().map_or(-1, |endpoint| {
            // SAFETY: an endpoint's third table has messages; the fifth function sends what lies in several places,
            // whose list it copies. The head stays until the completion (network rule 1), and so does the buffer, as
            // the caller promises.
            unsafe {
                let send = endpoint.function::<SendPieces>(2, 4);
                send(endpoint.fid(), parts.as_ptr(), null_mut(), parts.len(), address, context(at, SEND))
            }
        });
        let sent = self.note_sent(at, error);
        if sent {
            self.sends[at].buffer_of = Some(number);
            self.buffers += 1;
            self.records += 1;
        }
        sent
    }

    /// Has the core provider give the buffer of a receive back, unless its message has begun to arrive.
    pub fn cancel(&self, number: u64) {
        let Some(endpoint) = &self.endpoint else { return };
        // SAFETY: the first function of an endpoint's first table cancels what has this context.
        unsafe {
            let cancel = endpoint.function::<Cancel>(0, 0);
            cancel(endpoint.fid(), context(number as usize, BUFFER_RECEIVE));
        }
    }

    /// Ends the core provider's endpoint: all buffers are the callers' again.
    pub fn close(&mut self) {
        self.endpoint = None;
        self.buffers = 0;
    }
}
