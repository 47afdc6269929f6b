//! Models of the protocols, a module each: linked together, since what takes long to build is the same for all.
#![cfg(perusal_loom)]

mod agreement;
mod atomic_mode;
mod coll_flags;
mod contexts;
mod doorbell;
mod event_buffer;
mod fabric;
mod fence;
mod first_thread;
mod handles;
mod observed;
mod partitioned;
mod peruse_lock;
mod published;
mod registry;
mod request;
mod ring;
mod share;
mod shared_lock;
mod support;
mod tables;
mod thread_slots;
mod trace;
mod turns;
mod values;
mod waiters;
mod window;
