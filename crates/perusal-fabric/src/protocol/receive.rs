//! Receives: which one a message belongs to, its buffer, and its report.

use crate::api::*;
use crate::operands::key::{TagKey, TagPattern};
use crate::operands::spans::Spans;
use crate::protocol::core::Core;
use crate::protocol::operation::{Arriving, Body, Message, Receive, Taken, There, Unexpected};
use crate::protocol::queue::Completion;
use crate::protocol::wire;
use libc::c_void;

impl Core {
    /// The posted receive that takes this message.
    #[inline(always)]
    pub(crate) fn receive_for(&mut self, message: &Message) -> Option<u32> {
        let receive = self.match_message(message);
        if self.trace.is_some() {
            self.trace_arrival(message, receive);
        }
        receive
    }

    #[inline(always)]
    fn match_message(&mut self, message: &Message) -> Option<u32> {
        if message.kind & wire::TAGGED == 0 {
            return self.plain_receive_for(message.peer);
        }
        let key = TagKey { peer: message.peer, tag: message.tag };
        if self.posted_several > 0 {
            return self.one_of_several_for(&key);
        }
        self.posted.take_uncounted(&key)
    }

    /// The posted receive that takes this message, where some take several: such a one stays until its buffer is full.
    #[inline(never)]
    fn one_of_several_for(&mut self, key: &TagKey) -> Option<u32> {
        let number = self.posted.oldest(key)?;
        let receive = self.receives.get(number)?;
        if receive.several.is_none() {
            let pattern = receive.pattern;
            self.posted.remove(&pattern, number);
        }
        Some(number)
    }

    #[inline(never)]
    fn plain_receive_for(&mut self, peer: u32) -> Option<u32> {
        let receives = &mut self.receives;
        let takes = |receive: &mut Receive| receive.pattern.peer.is_none_or(|named| named == peer);
        let at = self.posted_plain.iter().position(|&number| receives.get(number).is_some_and(takes))?;
        let number = self.posted_plain[at];
        if self.receives.get(number).is_none_or(|receive| receive.several.is_none()) {
            self.posted_plain.remove(at);
        }
        Some(number)
    }

    #[inline(never)]
    pub(crate) fn keep_here(&mut self, message: Message, payload: &[u8]) {
        self.keep(Unexpected { message, body: Body::Here(payload.into()), trace: self.trace_kept() });
    }

    pub(crate) fn keep(&mut self, unexpected: Unexpected) {
        let message = &unexpected.message;
        self.peers.all[message.peer as usize].kept += 1;
        if message.kind & wire::TAGGED != 0 {
            self.unexpected.insert(TagKey { peer: message.peer, tag: message.tag }, unexpected);
        } else {
            self.unexpected_plain.push_back(unexpected);
        }
    }

    /// Takes a buffer for a message: of a receive for one message all, of one for several a part.
    #[inline(always)]
    fn buffer(&mut self, number: u32, len: usize) -> Option<(Spans, Taken)> {
        if self.receives.get(number)?.several.is_none() {
            let receive = self.receives.remove(number)?;
            let (context, completion, trace) = (receive.context, receive.completion, receive.trace);
            let taken = Taken { context, completion, several: None, trace };
            return Some((receive.spans, taken));
        }
        self.part_of_buffer(number, len)
    }

    #[inline(never)]
    fn part_of_buffer(&mut self, number: u32, len: usize) -> Option<(Spans, Taken)> {
        let least = self.min_multi_recv;
        let receive = self.receives.get(number)?;
        let capacity = receive.spans.len();
        let state = receive.several.as_mut()?;
        let spans = receive.spans.part(state.used, len);
        state.used = state.used.saturating_add(len).min(capacity);
        state.under_way += 1;
        state.full = capacity - state.used < least.max(1);
        let full = state.full;
        let (context, completion, trace) = (receive.context, receive.completion, receive.trace);
        let taken = Taken { context, completion, several: Some(number), trace };
        if full {
            self.withdraw(number);
        } else if self.trace.is_some() {
            self.trace_posted_again(number);
        }
        Some((spans, taken))
    }

    /// Takes a receive from those that messages are matched with.
    fn withdraw(&mut self, number: u32) {
        let Some(receive) = self.receives.get(number) else { return };
        let (pattern, several) = (receive.pattern, receive.several.is_some());
        if !receive.tagged {
            self.posted_plain.retain(|&other| other != number);
        } else if self.posted.remove(&pattern, number) && several {
            self.posted_several -= 1;
        }
    }

    #[inline(always)]
    pub(crate) fn deliver(&mut self, number: u32, message: Message, payload: &[u8]) {
        if let Some((spans, taken)) = self.buffer(number, message.len) {
            spans.write(0, payload);
            self.received(&spans, taken, message, 0);
        }
    }

    /// Copies the bytes of a message, or asks for them.
    pub(crate) fn fetch(&mut self, number: u32, message: Message, there: There) {
        let Some((spans, receive)) = self.buffer(number, message.len) else { return };
        let wanted = message.len.min(spans.len());
        let peer = message.peer;
        if self.trace.is_some() {
            self.trace_transfer(receive.trace, &message);
        }
        let gone = self.peers.is_gone(peer);
        let reachable = self.peers.all[peer as usize].outgoing.is_some();
        let (to, room) = spans.single();
        let send = there.send;
        // Asked for, if the sender has ended sends meanwhile: it knows whether this is one of them.
        let plain = reachable
            && there.at != 0
            && (1..=room).contains(&wanted)
            && self.peers.all[peer as usize].still_announces(there.cancels);
        let by_kernel = plain && !self.goes_by_ring(peer, wanted);
        let shared = by_kernel && self.is_shared(peer, wanted);
        let entry = &mut self.peers.all[peer as usize];
        // SAFETY: the receive's buffer, which is ours until it completes; it has room for what is wanted.
        let copied = by_kernel && !shared && unsafe { entry.copy(there.at, to, wanted) };
        if copied && entry.still_announces(there.cancels) {
            self.peers.control(peer, wire::control(wire::FIN, send), [0; 3]);
            self.received(&spans, receive, message, 0);
            return;
        }
        let number =
            self.arriving.insert(Arriving { send, ..Arriving::new(message, spans, wanted, receive) });
        if gone {
            self.arrived(number, FI_ESHUTDOWN);
            return;
        }
        if shared {
            // SAFETY: the receive's buffer, which is ours until it completes; it has room for what is wanted.
            return unsafe { self.copy_with_sender(number, there, to) };
        }
        if there.at == 0 || !self.receive_directly(number) {
            self.ask(number);
        }
        if wanted == 0 {
            self.arrived(number, 0);
        }
    }

    /// Asks for the bytes of a message, through the ring.
    pub(crate) fn ask(&mut self, number: u64) {
        let Some(one) = self.arriving.get(number) else { return };
        one.part = None;
        let (peer, send, wanted) = (one.peer, one.send, one.wanted as u64);
        self.peers.control(peer, wire::control(wire::CTS, send), [number, wanted, 0]);
    }

    pub(crate) fn arrived(&mut self, number: u64, error: i32) {
        if self.arriving.get(number).is_some_and(|one| one.held) {
            return self.ask_buffer_back(number);
        }
        let Some(Arriving { spans, message, receive, send, access, part, .. }) = self.arriving.remove(number)
        else {
            return;
        };
        if let Some(access) = access {
            return self.access_arrived(access, message, receive, send, error);
        }
        if error == 0 && (part.is_some() || message.kind & wire::CONFIRM != 0) {
            self.peers.control(message.peer, wire::control(wire::FIN, send), [0; 3]);
        }
        self.received(&spans, receive, message, error);
    }

    /// Reports a message that is received.
    #[inline(always)]
    fn received(&mut self, spans: &Spans, taken: Taken, message: Message, error: i32) {
        if self.trace.is_some() {
            self.trace_received(taken.trace, &message);
        }
        let overflow = message.len.saturating_sub(spans.len());
        let error = if error == 0 && overflow > 0 { FI_ETRUNC } else { error };
        let mut entry = self.entry(taken.context, spans, &message, message.len - overflow);
        let source = self.peers.all[message.peer as usize].source;
        if taken.several.is_some_and(|number| self.complete_part(number)) {
            if taken.completion || error != 0 {
                entry.flags |= FI_MULTI_RECV;
            } else {
                self.give_back(taken.context);
            }
        }
        if source == FI_ADDR_NOTAVAIL
            && error == 0
            && self.report_stranger(&entry, &message, taken.completion)
        {
            return;
        }
        self.reports.received(entry, source, taken.completion, error, overflow);
    }

    /// Reports a message whose sender the address vector does not have with the sender's name, if that is asked for.
    /// Returns whether it is.
    #[cold]
    fn report_stranger(&self, entry: &CqEntry, message: &Message, completion: bool) -> bool {
        if !self.reports.names_strangers || self.peers.all[message.peer as usize].is_known() {
            return false;
        }
        if let (true, Some(queue)) = (completion, &self.reports.receive_queue) {
            queue.push_stranger(*entry, self.peers.all[message.peer as usize].name());
        }
        self.reports.receive_counters.iter().for_each(|counter| counter.count(false, entry.len));
        true
    }

    fn entry(&self, context: *mut c_void, spans: &Spans, message: &Message, len: usize) -> CqEntry {
        let tagged = if message.kind & wire::TAGGED != 0 { FI_TAGGED } else { FI_MSG };
        let data = if message.kind & wire::HAS_DATA != 0 { FI_REMOTE_CQ_DATA } else { 0 };
        let flags = FI_RECV | tagged | data;
        CqEntry { context, flags, len, buf: spans.start(), data: message.data, tag: message.tag }
    }

    /// One message of a buffer for several is complete.
    /// Returns whether it is the last: then the buffer is the caller's again.
    fn complete_part(&mut self, number: u32) -> bool {
        let state = self.receives.get(number).and_then(|receive| receive.several.as_mut());
        let Some(state) = state else { return false };
        state.under_way -= 1;
        let last = state.full && state.under_way == 0;
        if last {
            self.receives.remove(number);
        }
        last
    }

    /// Reports that a buffer for several messages is the caller's again, where its last message is not reported: no
    /// other flag is set then (fi_cq(3)).
    #[cold]
    fn give_back(&self, context: *mut c_void) {
        let (flags, buf) = (FI_MULTI_RECV, std::ptr::null_mut());
        self.report(CqEntry { context, flags, len: 0, buf, data: 0, tag: 0 }, FI_ADDR_NOTAVAIL, 0);
    }

    /// Posts a receive, or completes it with a message that is here.
    #[inline(always)]
    pub fn receive(&mut self, mut receive: Receive) {
        if self.trace.is_some() {
            receive.trace = self.trace_receive(receive.pattern, receive.tagged, receive.spans.len());
        }
        if !receive.tagged {
            return self.receive_plain(receive);
        }
        if receive.several.is_some() {
            return self.receive_several(receive);
        }
        if !self.unexpected.is_empty() {
            return self.receive_unexpected(receive);
        }
        self.post(receive);
    }

    #[inline(always)]
    fn post(&mut self, receive: Receive) -> u32 {
        let pattern = receive.pattern;
        let number = self.receives.insert(receive);
        self.posted.insert(pattern, number);
        if self.trace.is_some() {
            self.trace_posted(number);
        }
        number
    }

    #[inline(never)]
    fn receive_unexpected(&mut self, receive: Receive) {
        let pattern = receive.pattern;
        match self.unexpected.take(&pattern) {
            None => _ = self.post(receive),
            Some((_, unexpected)) => {
                let number = self.receives.insert(receive);
                self.give(number, unexpected, false);
            }
        }
    }

    /// Posts a tagged buffer for several messages, which first takes those that are here.
    #[inline(never)]
    fn receive_several(&mut self, receive: Receive) {
        let pattern = receive.pattern;
        let number = self.post(receive);
        self.posted_several += 1;
        let has_room = |one: &mut Receive| one.several.is_some_and(|state| !state.full);
        while self.receives.get(number).is_some_and(has_room) {
            let Some((_, unexpected)) = self.unexpected.take(&pattern) else { break };
            self.give(number, unexpected, false);
        }
    }

    #[inline(never)]
    fn receive_plain(&mut self, receive: Receive) {
        let pattern = receive.pattern;
        let several = receive.several.is_some();
        let number = self.receives.insert(receive);
        self.posted_plain.push_back(number);
        // A buffer for several messages is posted and takes what is here; another one is posted if nothing is.
        if self.trace.is_some() && (several || self.find_plain(&pattern).is_none()) {
            self.trace_posted(number);
        }
        while let Some(at) = self.find_plain(&pattern) {
            if !self.posted_plain.contains(&number) {
                break;
            }
            if !several {
                self.posted_plain.retain(|&other| other != number);
            }
            if let Some(unexpected) = self.unexpected_plain.remove(at) {
                self.give(number, unexpected, false);
            }
        }
    }

    fn find_plain(&self, pattern: &TagPattern) -> Option<usize> {
        let takes = |one: &Unexpected| pattern.peer.is_none_or(|peer| peer == one.message.peer);
        self.unexpected_plain.iter().position(takes)
    }

    /// Gives a receive a message that was kept, or `claimed`.
    #[inline(never)]
    fn give(&mut self, number: u32, unexpected: Unexpected, claimed: bool) {
        if self.trace.is_some() {
            self.trace_unexpected(number, &unexpected, claimed);
        }
        self.peers.all[unexpected.message.peer as usize].kept -= 1;
        match unexpected.body {
            Body::Here(bytes) => self.deliver(number, unexpected.message, &bytes),
            Body::There(there) => self.fetch(number, unexpected.message, there),
        }
    }

    /// Looks for a message without receiving it, as FI_PEEK, FI_CLAIM and FI_DISCARD of `flags` say.
    /// Its report goes to the queue.
    pub fn peek(&mut self, tagged: bool, pattern: &TagPattern, context: *mut c_void, flags: u64) {
        let none = Spans::none();
        let remove = flags & (FI_CLAIM | FI_DISCARD) != 0;
        let message = if tagged {
            self.unexpected.find(pattern).map(|found| (found, self.unexpected.at(found).1.message))
        } else {
            None
        };
        let plain = if tagged { None } else { self.find_plain(pattern) };
        let (message, taken) = match (message, plain) {
            (Some((found, message)), _) => {
                (message, if remove { Some(self.unexpected.take_found(found).1) } else { None })
            }
            (None, Some(at)) => {
                let message = self.unexpected_plain[at].message;
                (message, if remove { self.unexpected_plain.remove(at) } else { None })
            }
            (None, None) => {
                let flags = FI_RECV | if tagged { FI_TAGGED } else { FI_MSG };
                let entry = CqEntry { context, flags, len: 0, buf: none.start(), data: 0, tag: pattern.tag };
                self.report(entry, FI_ADDR_NOTAVAIL, FI_ENOMSG);
                return;
            }
        };
        let entry = self.entry(context, &none, &message, message.len);
        let source = self.peers.all[message.peer as usize].source;
        self.report(entry, source, 0);
        if let (true, Some(unexpected)) = (self.trace.is_some(), &taken) {
            self.trace_probed(unexpected, flags & FI_CLAIM == 0);
        }
        match taken {
            Some(unexpected) if flags & FI_CLAIM != 0 => self.claimed.push((context, unexpected)),
            Some(unexpected) => self.discard(unexpected),
            None => {}
        }
    }

    /// Reports what is no operation's end: nothing is counted.
    fn report(&self, entry: CqEntry, source: u64, error: i32) {
        if let Some(queue) = &self.reports.receive_queue {
            queue.push(Completion { entry, source, error, overflow: 0 });
        }
    }

    /// Receives, or discards, the message that was claimed with this context.
    ///
    /// # Errors
    ///
    /// FI_EINVAL if there is none.
    pub fn take_claimed(&mut self, mut receive: Receive, flags: u64) -> Result<(), i32> {
        let at = self.claimed.iter().position(|one| one.0 == receive.context).ok_or(FI_EINVAL)?;
        let (context, unexpected) = self.claimed.swap_remove(at);
        if flags & FI_DISCARD != 0 {
            let entry = self.entry(context, &Spans::none(), &unexpected.message, 0);
            self.report(entry, FI_ADDR_NOTAVAIL, 0);
            self.discard(unexpected);
        } else {
            if self.trace.is_some() {
                receive.trace = self.trace_receive(receive.pattern, receive.tagged, receive.spans.len());
            }
            let number = self.receives.insert(receive);
            self.give(number, unexpected, true);
        }
        Ok(())
    }

    /// Tells the sender of a message that nobody wants its bytes.
    fn discard(&mut self, unexpected: Unexpected) {
        self.peers.all[unexpected.message.peer as usize].kept -= 1;
        if let Body::There(There { send, .. }) = unexpected.body {
            let peer = unexpected.message.peer;
            self.peers.control(peer, wire::control(wire::CTS, send), [0; 3]);
            if unexpected.message.kind & wire::CONFIRM != 0 {
                self.peers.control(peer, wire::control(wire::FIN, send), [0; 3]);
            }
        }
    }

    /// Cancels the posted receive with this context, if there is one.
    pub fn cancel(&mut self, context: *mut c_void) {
        let found = self.receives.iter().find(|(_, receive)| receive.context == context);
        if let Some((number, _)) = found {
            self.end_receive(number, FI_ECANCELED);
        }
    }

    /// Ends posted receives that name a peer which will send nothing more.
    pub fn end_receives_from(&mut self, peer: u32, error: i32) {
        let named = |one: &Receive| one.pattern.peer == Some(peer);
        let receives: Vec<u32> = self.receives.iter().filter(|one| named(one.1)).map(|one| one.0).collect();
        receives.into_iter().for_each(|number| self.end_receive(number, error));
    }

    fn end_receive(&mut self, number: u32, error: i32) {
        let Some(receive) = self.receives.get(number) else { return };
        let (context, pattern, tagged) = (receive.context, receive.pattern, receive.tagged);
        if self.trace.is_some() {
            self.trace_cancelled(number);
        }
        self.withdraw(number);
        let several = self.receives.get(number).and_then(|one| one.several.as_mut());
        if let Some(state) = several.filter(|state| state.under_way > 0) {
            // The last message that is under way gives the buffer back.
            state.full = true;
            return;
        }
        // The caller has the whole of a buffer for several messages back.
        let several = self.receives.remove(number).is_some_and(|one| one.several.is_some());
        let flags =
            FI_RECV | if tagged { FI_TAGGED } else { FI_MSG } | if several { FI_MULTI_RECV } else { 0 };
        let entry = CqEntry { context, flags, len: 0, buf: std::ptr::null_mut(), data: 0, tag: pattern.tag };
        self.reports.received(entry, FI_ADDR_NOTAVAIL, true, error, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::address::Address;
    use crate::protocol::operation::Several;
    use crate::protocol::queue::Queue;
    use std::rc::Rc;

    /// The flags and errors of what is reported of messages of these lengths to a buffer of 4096 bytes for several
    /// messages, behind a former completion with the same context.
    fn reports(completion: bool, lengths: &[usize]) -> Vec<(u64, i32)> {
        let mut core = Core::new(Address { pid: std::process::id(), fd: 0, nonce: 1 });
        core.reports.receive_queue = Some(Rc::new(Queue::default()));
        let (mut buffer, context) = ([0_u8; 4096], std::ptr::null_mut());
        core.reports.received(
            CqEntry { context, flags: FI_SEND, len: 0, buf: context, data: 0, tag: 0 },
            FI_ADDR_NOTAVAIL,
            true,
            0,
            0,
        );
        // SAFETY: the buffer outlives the endpoint's state.
        let spans = unsafe { Spans::one(buffer.as_mut_ptr().cast(), buffer.len()) };
        let pattern = TagPattern { peer: None, tag: 0, ignore: u64::MAX };
        let several = Some(Several::default());
        core.receive(Receive { spans, context, pattern, tagged: false, completion, several, trace: 0 });
        let peer = core.peers.number(Address { pid: 0, fd: 0, nonce: 2 });
        for &len in lengths {
            core.take(peer, &wire::envelope(wire::EAGER, 0, 0), &vec![1; len]);
        }
        let queue = core.reports.receive_queue.take().expect("a queue");
        queue.done.take().iter().skip(1).map(|one| (one.entry.flags, one.error)).collect()
    }

    #[test]
    fn the_last_message_of_a_buffer_gives_it_back() {
        const MESSAGE: u64 = FI_RECV | FI_MSG;
        const LAST: u64 = MESSAGE | FI_MULTI_RECV;
        assert_eq!(reports(true, &[3000, 1090]), [(MESSAGE, 0), (LAST, 0)]);
        assert_eq!(reports(true, &[3000, 3000]), [(MESSAGE, 0), (LAST, FI_ETRUNC)]);
        assert_eq!(reports(true, &[3000]), [(MESSAGE, 0)]);
        assert_eq!(reports(false, &[3000, 1090]), [(FI_MULTI_RECV, 0)], "the buffer alone");
        assert_eq!(reports(false, &[3000, 3000]), [(LAST, FI_ETRUNC)]);
    }
}
