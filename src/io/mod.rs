//! Files (MPI 5.0 §14).
//!
//! The ranks of a node share the kernel's page cache, so every rank opens a file itself, reads and writes it by system
//! calls at explicit offsets, and sees at once what others wrote. The ranks need each other for three things: to agree
//! as a file is opened or its view set, for the shared file pointer, and to make few large accesses of many small ones.
//!
//! | file | what it defines |
//! |---|---|
//! | `file` | [`File`]: what can be asked and changed |
//! | `open` | opening and closing, which all members do together |
//! | `entry` | the place of a file in a folder, from which it is deleted |
//! | `mode` | access modes |
//! | `view` | where the bytes that a rank sees lie in the file |
//! | `representation` | data representations: native, internal, external32 and the program's own |
//! | `pointer` | the shared file pointer |
//! | `stream` | turns at a pipe or a terminal |
//! | `access` | accesses of one rank |
//! | `mapped` | accesses of many short runs, through a mapping |
//! | `collective` | accesses of all members |
//! | `split` | those that begin in one call and end in another |
//! | `two_phase`, `shared_buffer` | those of many short runs; the buffer in shared memory through which they go |
//! | `file_events` | where events are emitted |
//! | `background` | accesses that go on while their caller does something else |
//! | `range_lock` | the locks of atomic mode |
//! | `hints` | hints that are known |
//! | `refusals` | errors of calls that a file does not allow |
//! | `size_limit` | the signal of a file-size limit |
//! | `cut_off` | that of a mapped file which is cut off |
//! | `signals` | handling a signal as long as there is a reason to |
//! | `system` | system calls on a file, and what their errors mean |

mod access;
mod background;
mod collective;
mod cut_off;
mod entry;
mod file;
mod file_events;
mod hints;
mod mapped;
mod mode;
mod open;
mod pointer;
mod range_lock;
mod refusals;
mod representation;
mod shared_buffer;
mod signals;
mod size_limit;
mod split;
mod stream;
mod system;
mod two_phase;
mod view;

pub use access::{Direction, Elements, Transfer};
pub use background::{BackgroundAccess, FILE_THREAD};
pub use file::{File, Start, Whence};
pub use mode::{Mode, mode_names};
pub use open::delete;
pub use representation::{
    Conversion, ConversionFn, ConversionFnC, Conversions, ExtentFn, Representation, register,
};
pub use view::{CurrentView, View, ViewParts};
