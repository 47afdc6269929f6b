//! MPI as a program has it: the C functions of the library that lies beside this program, loaded when a rank begins.
//! The launcher itself links none of them. Safe wrappers borrow a buffer for as long as MPI uses it.

use crate::start::preload;
use libloading::Library;
use perusal::internals::abi::{
    MPI_ANY_SOURCE, MPI_BYTE, MPI_COMM_WORLD, MPI_DOUBLE, MPI_SUCCESS, MPI_SUM, MPI_THREAD_SINGLE,
};
use perusal::internals::variables::{Domain, Variable};
use std::ffi::{CString, c_char, c_int, c_ulong, c_void};
use std::path::PathBuf;
use std::ptr::null_mut;

type AbiHandle = usize;

/// What programs link with `-lmpi_abi`.
const LIBRARY: &str = "libmpi_abi.so.1";

macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?);)*) => {
        /// Functions of the library, under their names.
        #[allow(non_snake_case)]
        struct Functions {
            $($name: unsafe extern "C" fn($($argument: $type),*) -> c_int,)*
        }

        impl Functions {
            fn of(library: &Library) -> Result<Self, libloading::Error> {
                Ok(Self {
                    // SAFETY: include/mpi.h, which the library implements, declares the function with this type.
                    $($name: unsafe { *library.get(concat!(stringify!($name), "\0").as_bytes())? },)*
                })
            }
        }
    };
}

functions! {
    fn MPI_Init(argc: *mut c_int, argv: *mut *mut *mut c_void);
    fn MPI_Finalize();
    fn MPI_Comm_rank(comm: AbiHandle, rank: *mut c_int);
    fn MPI_Comm_size(comm: AbiHandle, size: *mut c_int);
    fn MPI_Send(buf: *const c_void, count: c_int, datatype: AbiHandle, dest: c_int, tag: c_int, comm: AbiHandle);
    fn MPI_Recv(
        buf: *mut c_void,
        count: c_int,
        datatype: AbiHandle,
        source: c_int,
        tag: c_int,
        comm: AbiHandle,
        status: *mut c_void,
    );
    fn MPI_Isend(
        buf: *const c_void,
        count: c_int,
        datatype: AbiHandle,
        dest: c_int,
        tag: c_int,
        comm: AbiHandle,
        request: *mut AbiHandle,
    );
    fn MPI_Irecv(
        buf: *mut c_void,
        count: c_int,
        datatype: AbiHandle,
        source: c_int,
        tag: c_int,
        comm: AbiHandle,
        request: *mut AbiHandle,
    );
    fn MPI_Waitall(count: c_int, requests: *mut AbiHandle, statuses: *mut c_void);
    fn MPI_Barrier(comm: AbiHandle);
    fn MPI_Allreduce(
        send: *const c_void,
        recv: *mut c_void,
        count: c_int,
        datatype: AbiHandle,
        op: AbiHandle,
        comm: AbiHandle,
    );
    fn MPI_T_init_thread(required: c_int, provided: *mut c_int);
    fn MPI_T_finalize();
    fn MPI_T_cvar_get_index(name: *const c_char, index: *mut c_int);
    fn MPI_T_cvar_handle_alloc(index: c_int, object: *mut c_void, handle: *mut AbiHandle, count: *mut c_int);
    fn MPI_T_cvar_handle_free(handle: *mut AbiHandle);
    fn MPI_T_cvar_write(handle: AbiHandle, value: *const c_void);
}

/// This process as a rank of MPI_COMM_WORLD, from MPI_Init to MPI_Finalize. One thread has it. Whatever fails ends the
/// job: MPI_ERRORS_ARE_FATAL is the handler.
pub struct MpiRank {
    /// Its rank.
    pub rank: usize,
    /// How many there are.
    pub size: usize,
    mpi: Functions,
    /// Keeps it on its thread (MPI_THREAD_SINGLE).
    _alone: std::marker::PhantomData<*const ()>,
}

/// Errors have ended the job before anybody could see one.
fn done(code: c_int) {
    assert_eq!(code, MPI_SUCCESS, "MPI_ERRORS_ARE_FATAL returns no errors");
}

/// Returns where the library lies. Commands ask before they start ranks, so that what is wrong is said once.
///
/// # Errors
/// It does not lie beside this program: this is no distribution.
pub fn library() -> Result<PathBuf, String> {
    let found = preload::library(LIBRARY, "the library that is measured");
    found.map_err(|missing| format!("{missing}; only the perusal command of a distribution can measure"))
}

/// Loads the library, for good: its functions are called until this process ends.
fn load() -> Result<Functions, String> {
    let path = library()?;
    // SAFETY: the library runs nothing when it is loaded.
    let library = unsafe { Library::new(&path) }.map_err(|error| error.to_string())?;
    let library: &'static Library = Box::leak(Box::new(library));
    Functions::of(library).map_err(|error| error.to_string())
}

fn count(bytes: &[u8]) -> c_int {
    c_int::try_from(bytes.len()).expect("buffers of the benchmark are some megabytes")
}

impl MpiRank {
    /// Loads the library and calls MPI_Init; once a process.
    ///
    /// # Errors
    /// The library does not lie beside this program, or is not ours.
    pub fn init() -> Result<Self, String> {
        let mpi = load()?;
        let (mut rank, mut size) = (0, 0);
        // SAFETY: the arguments may be NULL; the numbers are written to where they live.
        unsafe {
            done((mpi.MPI_Init)(null_mut(), null_mut()));
            done((mpi.MPI_Comm_rank)(MPI_COMM_WORLD, &raw mut rank));
            done((mpi.MPI_Comm_size)(MPI_COMM_WORLD, &raw mut size));
        }
        Ok(Self { rank: rank as usize, size: size as usize, mpi, _alone: std::marker::PhantomData })
    }

    /// MPI_Finalize.
    pub fn finalize(self) {
        // SAFETY: initialised by `init`, and only once, for it takes the rank away.
        unsafe { done((self.mpi.MPI_Finalize)()) }
    }

    #[inline(always)]
    pub fn send(&self, data: &[u8], to: usize, tag: i32) {
        // SAFETY: `data` is readable, and borrowed until the call returns.
        unsafe {
            done((self.mpi.MPI_Send)(
                data.as_ptr().cast(),
                count(data),
                MPI_BYTE,
                to as c_int,
                tag,
                MPI_COMM_WORLD,
            ))
        }
    }

    #[inline(always)]
    pub fn receive(&self, room: &mut [u8], from: usize, tag: i32) {
        self.receive_from(from as c_int, room, tag);
    }

    /// As [`receive`](Self::receive), from anybody.
    #[inline(always)]
    pub fn receive_any(&self, room: &mut [u8], tag: i32) {
        self.receive_from(MPI_ANY_SOURCE, room, tag);
    }

    #[inline(always)]
    fn receive_from(&self, source: c_int, room: &mut [u8], tag: i32) {
        let (at, count) = (room.as_mut_ptr().cast(), count(room));
        // SAFETY: `room` is writable, and borrowed until the call returns; the status is MPI_STATUS_IGNORE.
        unsafe { done((self.mpi.MPI_Recv)(at, count, MPI_BYTE, source, tag, MPI_COMM_WORLD, null_mut())) }
    }

    /// Sends each piece of `size` bytes of `data`, nonblocking, and waits for all (MPI_Isend, MPI_Waitall).
    #[inline(always)]
    pub fn send_window(&self, data: &[u8], size: usize, to: usize, tag: i32, requests: &mut [AbiHandle]) {
        for (piece, request) in data.chunks_exact(size).zip(requests.iter_mut()) {
            let at = piece.as_ptr().cast();
            // SAFETY: `data` is borrowed until this function returns, and all has been sent by then.
            unsafe {
                done((self.mpi.MPI_Isend)(
                    at,
                    size as c_int,
                    MPI_BYTE,
                    to as c_int,
                    tag,
                    MPI_COMM_WORLD,
                    request,
                ))
            }
        }
        self.wait(&mut requests[..data.len() / size]);
    }

    /// The other side of it (MPI_Irecv, MPI_Waitall).
    #[inline(always)]
    pub fn receive_window(
        &self,
        room: &mut [u8],
        size: usize,
        from: usize,
        tag: i32,
        requests: &mut [AbiHandle],
    ) {
        let pieces = room.len() / size;
        for (piece, request) in room.chunks_exact_mut(size).zip(requests.iter_mut()) {
            let at = piece.as_mut_ptr().cast();
            // SAFETY: `room` is borrowed until this function returns, and all has been received by then.
            unsafe {
                done((self.mpi.MPI_Irecv)(
                    at,
                    size as c_int,
                    MPI_BYTE,
                    from as c_int,
                    tag,
                    MPI_COMM_WORLD,
                    request,
                ))
            }
        }
        self.wait(&mut requests[..pieces]);
    }

    fn wait(&self, requests: &mut [AbiHandle]) {
        // SAFETY: an array of requests that the caller has just begun; the statuses are MPI_STATUSES_IGNORE.
        unsafe { done((self.mpi.MPI_Waitall)(requests.len() as c_int, requests.as_mut_ptr(), null_mut())) }
    }

    /// Posts a receive for each place, from `from` with the tags from 0 on. They are all over when the program has sent
    /// as many messages, which [`PostedReceives::end`] waits for.
    pub fn post<'a>(&self, places: &'a mut [u64], from: usize) -> PostedReceives<'a> {
        let mut requests = vec![0; places.len()];
        for (tag, (place, request)) in places.iter_mut().zip(&mut requests).enumerate() {
            let at = std::ptr::from_mut(place).cast();
            // SAFETY: `places` is borrowed by what is returned,
            // which ends the process rather than give them back early.
            unsafe {
                done((self.mpi.MPI_Irecv)(
                    at,
                    8,
                    MPI_BYTE,
                    from as c_int,
                    tag as c_int,
                    MPI_COMM_WORLD,
                    request,
                ))
            }
        }
        PostedReceives { requests, places: std::marker::PhantomData }
    }

    /// Changes a control variable of this rank, through MPI_T as tools do.
    /// Returns whether the variable takes this value now.
    pub fn set_control(&self, variable: &Variable, value: u64) -> bool {
        let name = CString::new(variable.name).expect("a name has no NUL");
        let (number, choice) = (value as c_ulong, value as c_int);
        let value: *const c_void = match variable.domain {
            Domain::Choice(_) => (&raw const choice).cast(),
            _ => (&raw const number).cast(),
        };
        let (mut provided, mut index, mut handle, mut count) = (0, 0, 0, 0);
        // SAFETY: the name ends with a NUL; the results are written to where they live; the variables are bound to no
        // object, and `value` has the type that MPI_T gives such a variable:
        // int for a choice, unsigned long for a number.
        unsafe {
            done((self.mpi.MPI_T_init_thread)(MPI_THREAD_SINGLE, &raw mut provided));
            done((self.mpi.MPI_T_cvar_get_index)(name.as_ptr(), &raw mut index));
            done((self.mpi.MPI_T_cvar_handle_alloc)(index, null_mut(), &raw mut handle, &raw mut count));
            let taken = (self.mpi.MPI_T_cvar_write)(handle, value) == MPI_SUCCESS;
            done((self.mpi.MPI_T_cvar_handle_free)(&raw mut handle));
            done((self.mpi.MPI_T_finalize)());
            taken
        }
    }

    #[inline(always)]
    pub fn barrier(&self) {
        // SAFETY: no arguments but the communicator.
        unsafe { done((self.mpi.MPI_Barrier)(MPI_COMM_WORLD)) }
    }

    /// The sum of everybody's `value`.
    #[inline(always)]
    pub fn sum(&self, value: f64) -> f64 {
        let mut sum = 0.0_f64;
        let (from, to) = ((&raw const value).cast(), (&raw mut sum).cast());
        // SAFETY: one double each.
        unsafe { done((self.mpi.MPI_Allreduce)(from, to, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD)) }
        sum
    }
}

/// Receives that wait for their messages.
#[must_use = "the receives must be ended"]
pub struct PostedReceives<'a> {
    requests: Vec<AbiHandle>,
    places: std::marker::PhantomData<&'a mut [u64]>,
}

impl PostedReceives<'_> {
    /// Waits until each has its message.
    pub fn end(mut self, rank: &MpiRank) {
        rank.wait(&mut std::mem::take(&mut self.requests));
    }
}

impl Drop for PostedReceives<'_> {
    fn drop(&mut self) {
        if !self.requests.is_empty() {
            // A message might still be written to the places.
            std::process::abort();
        }
    }
}
