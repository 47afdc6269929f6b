//! Dynamic processes (MPI 5.0 §11.8 to §11.10): what ranks ask the launcher for, and how two groups of processes meet.
//!
//! | file | what it defines |
//! |---|---|
//! | `wire` | numbers and strings as bytes |
//! | [`request`] | what a rank asks the launcher for, and what the launcher answers |
//! | [`launcher`] | the way of a request to the launcher and of the answer back |
//! | [`spawn`] | what a spawn asks for, from arguments and info keys; the keys of ports and names |
//! | [`elsewhere`] | jobs of other launchers: how they are found, and how this process gets to know their memory |
//! | [`join`] | two processes with a socket between them learn each other's places |
//! | `own_launcher` | a launcher for a program that was started without one |
//! | [`meeting`] | two processes that know each other's places make an intercommunicator of their groups |
//!
//! Spawned processes are further ranks of the job: the launcher gives them places in the job's memory that nobody has,
//! so everything that works between ranks works between them and all others. The launcher keeps ports and published
//! names. It brings two processes together by telling each the other's place, and a context id for the two;
//! from there on they need no launcher.
//!
//! - **Dynamic rule 1.** A request has a socket of its own for its answer. It ends when the launcher answers, or when
//!   either closes the socket: a process that dies takes back what it asked for.
//! - **Dynamic rule 2.** A rank that gives up closes its half of the socket and waits for the answer all the same: only
//!   the launcher says whether the other process knows. It waits no more for the answer to a request that changes
//!   nothing ([`Request::only_asks`]): a launcher that has been stopped gives none.

pub mod elsewhere;
pub mod join;
pub mod launcher;
pub mod meeting;
mod own_launcher;
pub mod request;
pub mod spawn;
mod wire;

pub use elsewhere::Introductions;
pub use launcher::Launcher;
pub use meeting::{Bridge, OtherEnd};
pub use request::{Answer, Program, Request, Scope, SpawnRequest};
