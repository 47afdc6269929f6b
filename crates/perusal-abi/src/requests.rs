//! Requests by handle: the engine's own, and operations that are made of several or are the user's.

use super::boundary::{self, RaisedOn};
use super::check;
use super::mpi::part::PartitionedTask;
use super::process::engine;
use crate::abi;
use crate::coll::Outline;
use crate::engine::{Awaited, CallAbout, Engine};
use crate::error::{Error, Result};
use crate::handles::{HandleKind, HandleTable};
use crate::p2p::{MessageStatus, Request};
use crate::shm::telemetry::CollectiveAbout;
use std::sync::{Arc, OnceLock};

/// An operation that is not one message: generalized requests, combined send and receive.
pub trait Task: Send + Sync {
    /// Moves it on; whether it is over.
    ///
    /// # Errors
    /// What makes waiting for it pointless.
    fn poll(&self, engine: &Engine) -> Result<bool>;
    /// Its outcome, once it is over. Asked once by a wait or test, after which the request is gone, and any number of
    /// times before by MPI_Request_get_status.
    fn outcome(&self, engine: &Engine, last: bool) -> (MessageStatus, Option<Error>);
    /// MPI_Cancel.
    ///
    /// # Errors
    /// What the operation says.
    fn cancel(&self, engine: &Engine) -> Result<()>;
    /// MPI_Request_free: no call will ask for the outcome.
    ///
    /// # Errors
    /// Why it cannot be freed at present; what the callback says that frees a generalized request.
    fn free(&self, _: &Engine) -> Result<()> {
        Ok(())
    }
    /// What its errors are raised on, if that is not what the function that waits for it says.
    fn raises_on(&self) -> Option<RaisedOn> {
        None
    }
    /// The context of its communicator and what it is, if it is a collective operation that has begun.
    fn collective(&self) -> Option<(u32, Outline)> {
        None
    }
    /// The messages that it is made of, if that is what it is.
    fn messages(&self) -> &[Request] {
        &[]
    }
    /// Whether its handle stays after its completion (MPI 5.0 §6.13).
    fn is_persistent(&self) -> bool {
        false
    }
    /// Whether it has been started and its outcome not been taken since.
    fn is_active(&self) -> bool {
        true
    }
    /// MPI_Start.
    ///
    /// # Errors
    /// [`Error::Request`] if it does not persist, or is active.
    fn start(&self, _: &'static Engine) -> Result<()> {
        Err(Error::Request("only a persistent request can be started"))
    }
    /// Takes the outcome of a start that was over without an error when MPI_Start returned: it is inactive from then
    /// on. False if there is none.
    fn take_at_once(&self) -> bool {
        false
    }
    /// The same as a partitioned request, if it is one.
    fn partitioned(&self) -> Option<&PartitionedTask> {
        None
    }
    /// Whether the program completes it (MPI_Grequest_complete).
    fn is_generalized(&self) -> bool {
        false
    }
    /// The program says that it is over; `forget` takes its handle away, if its user has freed it, and what freeing it
    /// says is given. `None` if it is not the program's to say, or has been said.
    fn complete_generalized(&self, _forget: &dyn Fn()) -> Option<Result<()>> {
        None
    }
}

static TASKS: HandleTable<TaskObject> = HandleTable::new(HandleKind::Task);
/// Handles of tasks lie behind those of the engine's requests, and both are positive `int`s.
const TASK_OFFSET: usize = 1 << 30;

/// A task in its table.
pub struct TaskObject(Box<dyn Task>);

/// What a request handle names.
#[derive(Clone)]
pub enum Named {
    /// MPI_REQUEST_NULL.
    Null,
    /// A message.
    Message(Request),
    /// Something else.
    Task(Arc<TaskObject>),
}

/// What a handle names.
///
/// # Errors
/// [`Error::Request`] if nothing.
#[inline]
pub fn find(engine: &Engine, handle: usize) -> Result<Named> {
    if handle == abi::MPI_REQUEST_NULL {
        return Ok(Named::Null);
    }
    if let Some(task) = handle.checked_sub(TASK_OFFSET).and_then(|handle| TASKS.get(handle)) {
        return Ok(Named::Task(task));
    }
    engine
        .requests()
        .get(handle)
        .map(Named::Message)
        .ok_or(Error::Request("no such request, or it has been completed or freed"))
}

/// What an array of handles names; all are looked up before anything is waited for.
/// What cannot end well any more has ended then.
///
/// # Errors
/// As [`find`].
pub fn find_all(engine: &Engine, handles: &[usize]) -> Result<Vec<Named>> {
    if engine.has_failures() {
        engine.progress().notice_failures();
    }
    handles.iter().map(|&handle| find(engine, handle)).collect()
}

/// How a request is, for who asks about several.
#[derive(Debug)]
pub enum Standing {
    /// Neither of the following.
    UnderWay,
    /// It is over; null and inactive ones are.
    Over,
    /// It is not over, and a wait for it ends with an error.
    InVain(InVain),
}

/// Why a wait for a request that stays is in vain: someone whom it needs has died.
#[derive(Debug)]
pub struct InVain {
    /// What a wait for it ends with.
    pub error: Error,
    /// What that is raised on.
    pub on: Option<RaisedOn>,
}

impl InVain {
    /// Whether an error is about one request, and says nothing of others.
    #[must_use]
    pub fn is_of_a_request(error: &Error) -> bool {
        matches!(error, Error::ProcFailed { .. } | Error::ProcFailedPending { .. } | Error::Revoked)
    }

    /// The error, as that of a call.
    ///
    /// # Errors
    /// That one.
    pub fn raise<T>(self) -> Result<T> {
        boundary::blame(self.on);
        Err(self.error)
    }
}

/// The first that is over, null and inactive ones left out; if none is, the first for which a wait is in vain.
///
/// # Errors
/// As [`Named::standing`].
pub fn first_ended(engine: &Engine, named: &[Named]) -> Result<Option<(usize, Option<InVain>)>> {
    let mut first = None;
    for (at, one) in named.iter().enumerate().filter(|(_, one)| one.counts()) {
        match one.standing(engine)? {
            Standing::UnderWay => {}
            Standing::Over => return Ok(Some((at, None))),
            Standing::InVain(in_vain) => first = first.or(Some((at, Some(in_vain)))),
        }
    }
    Ok(first)
}

/// The first for which a wait is in vain.
///
/// # Errors
/// As [`Named::standing`].
pub fn in_vain(engine: &Engine, named: &[Named]) -> Result<Option<(usize, InVain)>> {
    if engine.has_failures() {
        for (at, one) in named.iter().enumerate() {
            if let Standing::InVain(in_vain) = one.standing(engine)? {
                return Ok(Some((at, in_vain)));
            }
        }
    }
    Ok(None)
}

/// Whether a wait for all of them has nothing left to wait for: all are over, or for one it is in vain.
///
/// # Errors
/// As [`Named::standing`].
pub fn all_end(engine: &Engine, named: &[Named]) -> Result<bool> {
    for one in named {
        match one.standing(engine)? {
            Standing::Over => {}
            Standing::UnderWay => return Ok(in_vain(engine, named)?.is_some()),
            Standing::InVain(_) => return Ok(true),
        }
    }
    Ok(true)
}

/// The one that a wait for any of them is for, if there is no more than one.
#[must_use]
pub fn only_one(named: &[Named]) -> Option<&Named> {
    let mut awaited = named.iter().filter(|one| one.counts());
    awaited.next().filter(|_| awaited.next().is_none())
}

/// Waits until `over`; `which` is the request that this waits for, if it is a certain one.
///
/// # Errors
/// Those of `over`, and what makes waiting pointless.
pub fn wait_for(engine: &Engine, which: Option<&Named>, over: impl FnMut() -> Result<bool>) -> Result<()> {
    if let Some(Named::Task(task)) = which
        && !task.messages().is_empty()
    {
        return wait_for_messages(engine, task.messages(), over);
    }
    let collective = || match which {
        Some(Named::Task(task)) => task.collective(),
        _ => None,
    };
    let about = || match (collective(), which) {
        (Some((_, outline)), _) => Some(outline.about().into()),
        (None, Some(Named::Task(task))) => task.partitioned().and_then(PartitionedTask::about),
        _ => None,
    };
    let about = || about().unwrap_or(CallAbout::Collective(CollectiveAbout::default()));
    let awaited = || match (collective(), which) {
        (Some((context, _)), _) => Some(Awaited::Operation(context)),
        (None, Some(Named::Task(task))) => task.partitioned().and_then(PartitionedTask::awaited),
        _ => None,
    };
    engine.progress().wait_for_request_of(awaited, about, over)
}

/// Waits until `over`, for these messages as a report of a hang sees it.
fn wait_for_messages(
    engine: &Engine,
    messages: &[Request],
    mut over: impl FnMut() -> Result<bool>,
) -> Result<()> {
    let mut failed = Ok(());
    let waited = engine.wait_while(|| {
        let ends = over().unwrap_or_else(|error| {
            failed = Err(error);
            true
        });
        messages.iter().copied().find(|message| !ends && !message.is_over())
    });
    match waited {
        // `over` says whether the whole is in vain, too, and what that is raised on.
        Err(error) if InVain::is_of_a_request(&error) => over().map(drop),
        waited => waited.and(failed),
    }
}

/// The handle of a message's request.
#[inline]
pub fn handle_of(request: Request) -> usize {
    let handle = request.id() as usize;
    if check::is_on() {
        check::noted(handle);
    }
    handle
}

/// Gives a task its handle.
///
/// # Errors
/// [`Error::NoMem`] if there are no more handles.
pub fn insert_task(task: Box<dyn Task>) -> Result<usize> {
    let task = Arc::new(TaskObject(task));
    let handle = TASKS.insert(task.clone()).inspect_err(|_| {
        // What it has begun goes on, as if the program had freed it, where that can be.
        let _ = engine().and_then(|engine| task.0.free(engine));
    })?;
    let handle = handle + TASK_OFFSET;
    if check::is_on() {
        check::noted(handle);
    }
    Ok(handle)
}

/// The task of a handle, for functions that know what it must be.
#[must_use]
pub fn task(handle: usize) -> Option<Arc<TaskObject>> {
    TASKS.get(handle.checked_sub(TASK_OFFSET)?)
}

/// The same without counting a reference.
///
/// # Safety
/// Nobody takes the handle out of use while the result is in use:
/// argument rule 2, for a function that was passed the handle.
#[inline]
#[must_use]
pub unsafe fn peek<'a>(handle: usize) -> Option<&'a TaskObject> {
    // SAFETY: nobody takes the handle out of use meanwhile, as the caller promises.
    unsafe { TASKS.peek(handle.checked_sub(TASK_OFFSET)?) }
}

/// Takes a task's handle out of use.
pub fn remove_task(handle: usize) {
    if OVER.get() != Some(&handle) {
        TASKS.remove(handle.wrapping_sub(TASK_OFFSET));
    }
}

/// An operation that was over when its call returned. All of them are one request, whose handle stays.
struct Over;

static OVER: OnceLock<usize> = OnceLock::new();

impl Task for Over {
    fn poll(&self, _: &Engine) -> Result<bool> {
        Ok(true)
    }
    fn outcome(&self, _: &Engine, _: bool) -> (MessageStatus, Option<Error>) {
        (OVER_STATUS, None)
    }
    fn cancel(&self, _: &Engine) -> Result<()> {
        Err(Error::Request("the operation is complete"))
    }
}

/// The handle of a request for an operation that is over and has succeeded.
///
/// # Errors
/// [`Error::NoMem`] if there are no more handles.
pub fn over() -> Result<usize> {
    if check::is_on() {
        // One of its own, so that it is known whether it is completed.
        return insert_task(Box::new(Over));
    }
    if let Some(handle) = OVER.get() {
        return Ok(*handle);
    }
    let own = insert_task(Box::new(Over))?;
    let handle = *OVER.get_or_init(|| own);
    // If another thread was first.
    remove_task(own);
    Ok(handle)
}

/// Takes the outcome of an operation that was over when its call returned: of a request that [`over`] gave, whose
/// handle becomes MPI_REQUEST_NULL, or of a start of a persistent one. `None` if it is another request.
#[inline]
pub fn take_over(handle: &mut usize) -> Option<MessageStatus> {
    if OVER.get() == Some(handle) {
        *handle = abi::MPI_REQUEST_NULL;
        return Some(OVER_STATUS);
    }
    // SAFETY: argument rule 2.
    let task = unsafe { peek(*handle) }?;
    // What is checked is taken by `Named::take`.
    (!check::is_on() && task.take_at_once()).then_some(OVER_STATUS)
}

const OVER_STATUS: MessageStatus = MessageStatus { error: abi::MPI_SUCCESS, ..MessageStatus::EMPTY };

impl core::ops::Deref for TaskObject {
    type Target = dyn Task;
    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl Named {
    /// Whether a wait must wait for it: not for null and inactive ones (MPI 5.0 §3.7.3).
    #[must_use]
    pub fn counts(&self) -> bool {
        match self {
            Self::Null => false,
            Self::Message(request) => !request.is_inactive(),
            Self::Task(task) => task.is_active(),
        }
    }

    /// Whether its own rank holds it up: a partitioned send that has been started,
    /// and some partition of it is not ready.
    #[must_use]
    pub fn is_held_up(&self) -> bool {
        match self {
            Self::Task(task) => {
                task.is_active() && task.partitioned().is_some_and(PartitionedTask::is_held_up)
            }
            Self::Null | Self::Message(_) => false,
        }
    }

    /// Whether its handle stays after its completion.
    fn persists(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Message(request) => request.is_persistent(),
            Self::Task(task) => task.is_persistent(),
        }
    }

    /// Whether it is over; null and inactive ones are. Moves on what must be polled.
    ///
    /// # Errors
    /// What makes waiting for it pointless.
    #[inline]
    pub fn is_over(&self, engine: &Engine) -> Result<bool> {
        let over = match self {
            Self::Null => Ok(true),
            Self::Message(request) => engine.check_pending(*request).map(|()| request.is_over()),
            Self::Task(task) => {
                if task.is_active() {
                    task.poll(engine)
                } else {
                    Ok(true)
                }
            }
        };
        over.inspect_err(|error| self.blame(engine, error))
    }

    /// How it is, as [`Self::is_over`] has it.
    ///
    /// # Errors
    /// What makes waiting for anything pointless.
    pub fn standing(&self, engine: &Engine) -> Result<Standing> {
        match self.is_over(engine) {
            Ok(true) => Ok(Standing::Over),
            Ok(false) => Ok(Standing::UnderWay),
            Err(error) if InVain::is_of_a_request(&error) => {
                Ok(Standing::InVain(InVain { error, on: boundary::blamed() }))
            }
            Err(error) => Err(error),
        }
    }

    /// The wait for it has ended with `error`, which is raised on its own object if it is about a death.
    #[cold]
    pub fn blame(&self, engine: &Engine, error: &Error) {
        if !InVain::is_of_a_request(error) {
            return;
        }
        boundary::blame(match self {
            Self::Null => None,
            Self::Message(request) => engine.comm_of(*request).map(RaisedOn::from),
            Self::Task(task) => task.raises_on(),
        });
    }

    /// Takes the outcome of what is over, and its handle out of use where it does not persist: `handle` then becomes
    /// MPI_REQUEST_NULL.
    pub fn take(&self, engine: &Engine, handle: &mut usize) -> (MessageStatus, Option<Error>) {
        let checked = check::is_on().then(|| (*handle, self.persists()));
        let (status, error) = self.take_outcome(engine, handle);
        if let Some((handle, persists)) = checked {
            check::ended(handle, persists, error.is_none().then_some(status.bytes as usize));
        }
        (status, error)
    }

    fn take_outcome(&self, engine: &Engine, handle: &mut usize) -> (MessageStatus, Option<Error>) {
        // An array may have a handle twice: the first of the two has been taken,
        // and what it names may be another's by now.
        if let Err(error) = find(engine, *handle) {
            return (MessageStatus { error: error.class(), ..MessageStatus::EMPTY }, Some(error));
        }
        match self {
            Self::Null => (MessageStatus::EMPTY, None),
            Self::Message(request) if request.is_inactive() => (MessageStatus::EMPTY, None),
            Self::Message(request) => {
                if !request.is_persistent() {
                    *handle = abi::MPI_REQUEST_NULL;
                }
                if let Some(comm) = engine.failed_on(*request) {
                    boundary::blame(Some(comm.into()));
                }
                engine.take_outcome(*request)
            }
            Self::Task(task) if !task.is_active() => (MessageStatus::EMPTY, None),
            Self::Task(task) => {
                if !task.is_persistent() {
                    remove_task(*handle);
                    *handle = abi::MPI_REQUEST_NULL;
                }
                let (status, error) = task.outcome(engine, true);
                if error.is_some() {
                    boundary::blame(task.raises_on());
                }
                (status, error)
            }
        }
    }

    /// The outcome of what is over, which stays. The error is that of the query function of a generalized request,
    /// which this calls; with what another operation has failed, the wait or test fails that takes its outcome.
    pub fn look(&self, engine: &Engine) -> (MessageStatus, Option<Error>) {
        match self {
            Self::Message(request) if !request.is_inactive() => (engine.look_at_outcome(*request).0, None),
            Self::Task(task) if task.is_active() => {
                let (status, error) = task.outcome(engine, false);
                (status, error.filter(|_| task.is_generalized()))
            }
            _ => (MessageStatus::EMPTY, None),
        }
    }
}
