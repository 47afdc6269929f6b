//! The Rust API when things go wrong: errors instead of hangs, and no message in a buffer that is gone.

use crate::rounds;
use perusal::events::Event;
use perusal::{Any, Communicator, Error, Multiple, Result, World, run_threads, run_threads_with};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

/// What a job that panics panicked with.
fn panicked_with(run: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("a rank panicked");
    panic.downcast_ref::<&str>().map(ToString::to_string).expect("a literal")
}

fn failure(error: &Error) -> String {
    assert!(matches!(error, Error::RankFailed { .. }), "{error}");
    error.to_string()
}

/// One way of waiting for a message that never comes.
fn wait_in_vain(world: &World, how: usize) -> Error {
    let mut room = vec![0_u8; 100];
    match how {
        0 => world.recv_into(&mut room, 0, 1).unwrap_err(),
        1 => world.recv::<u8>(Any, Any).unwrap_err(),
        2 => world.barrier().unwrap_err(),
        3 => world.probe(0, 1).unwrap_err(),
        4 => world.scope(|scope| scope.irecv(&mut room, 0, 1).map(drop)).unwrap_err(),
        5 => world.irecv(room, 0, 1).and_then(|receiving| receiving.wait()).unwrap_err(),
        6 => world.ssend(&room, 0, 1).unwrap_err(),
        7 => world.send(&vec![0_u8; 1 << 20], 0, 1).unwrap_err(),
        _ => world.dup().unwrap_err(),
    }
}

#[test]
fn a_panic_in_one_rank_ends_the_others_whatever_they_wait_for() {
    let errors = Mutex::new(Vec::new());
    let ranks = 10;
    let panic = panicked_with(|| {
        let _ = run_threads(ranks, |world| {
            if world.rank() == 0 {
                panic!("rank 0 has had enough");
            }
            let error = wait_in_vain(world, world.rank() - 1);
            assert_eq!(world.barrier().unwrap_err(), error, "a broken rank stays broken");
            errors.lock().unwrap().push(failure(&error));
            Ok(())
        });
    });
    assert_eq!(panic, "rank 0 has had enough");
    assert_eq!(errors.into_inner().unwrap(), ["rank 0 has failed: it panicked"; 9]);
}

#[test]
fn an_error_in_one_rank_is_the_error_of_the_job() {
    let result = run_threads(3, |world| {
        if world.rank() == 1 {
            return Err(Error::Code(77));
        }
        assert_eq!(failure(&world.barrier().unwrap_err()), "rank 1 has failed: it ended with an error");
        Ok(())
    });
    assert_eq!(result, Err(Error::Code(77)));
}

#[test]
fn an_abort_ends_every_rank() {
    let result: Result<Vec<()>> = run_threads(3, |world| {
        if world.rank() == 2 {
            return Err(world.abort(5));
        }
        let error = world.recv::<u8>(2, 0).unwrap_err();
        assert_eq!(failure(&error), "rank 2 has failed: it called MPI_Abort with code 5");
        Err(error)
    });
    assert_eq!(result, Err(Error::Code(5)));
}

#[test]
fn ranks_that_make_different_communicators_get_errors() {
    if perusal::internals::shm::cpus::usable() < 2 {
        return eprintln!("one CPU: ranks meet by counting each other, which does not show what for");
    }
    for calm in [0, 1] {
        let result = run_threads(2, |world| {
            if world.rank() == calm {
                world.dup()
            } else {
                world.split(Some(1), 0).map(|made| made.expect("a color"))
            }
            .map(drop)?;
            world.barrier()
        });
        assert!(result.is_err());
    }
}

#[test]
fn a_job_of_nobody_is_an_error() {
    assert!(matches!(run_threads(0, |_| Ok(())), Err(Error::Segment(_))));
}

/// With an address checker underneath, this finds a copy from or into a buffer that is gone.
#[test]
fn a_sender_that_fails_in_mid_message_leaves_whole_messages_or_errors() {
    const SIZE: usize = if cfg!(miri) { 1 << 18 } else { 4 << 20 };
    for round in 0..rounds(30) {
        let panic = panicked_with(|| {
            let _ = run_threads(2, |world| {
                if world.rank() == 0 {
                    let data = vec![7_u8; SIZE];
                    let mut room = vec![0_u8; SIZE];
                    world.scope::<()>(|scope| {
                        scope.irecv(&mut room, 1, 2)?;
                        scope.isend(&data, 1, 1)?;
                        for _ in 0..round * 100 {
                            std::hint::spin_loop();
                        }
                        panic!("in mid message");
                    })?;
                } else {
                    let sending = world.isend(vec![8_u8; SIZE], 0, 2)?;
                    match world.recv::<u8>(0, 1) {
                        Ok((data, _)) => assert!(data == [7; SIZE]),
                        Err(error) => _ = failure(&error),
                    }
                    assert!(sending.wait().is_err());
                }
                Ok(())
            });
        });
        assert_eq!(panic, "in mid message");
    }
}

#[test]
fn a_panic_in_a_scope_with_nothing_under_way_can_be_survived() {
    run_threads(2, |world| {
        let mut room = [0_u8; 8];
        let caught = catch_unwind(AssertUnwindSafe(|| {
            world.scope::<()>(|scope| {
                scope.irecv(&mut room, Any, 1)?;
                std::panic::resume_unwind(Box::new("quietly"));
            })
        }));
        assert!(caught.is_err());
        world.barrier()?;
        world.send(&[world.rank()], 1 - world.rank(), 1)?;
        assert_eq!(world.recv::<usize>(Any, 1)?.0, [1 - world.rank()], "the receive was taken back");
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_callback_that_panics_ends_the_job_and_is_named() {
    let error = run_threads(2, |world| {
        let _subscription = world.subscribe(Event::ReqActivate, |_| {
            std::panic::resume_unwind(Box::new("quietly"));
        })?;
        if world.rank() == 0 {
            world.isend(vec![1_u8], 0, 1)?.wait().map(drop)
        } else {
            wait_in_vain(world, 2);
            Ok(())
        }
    })
    .unwrap_err();
    let text = error.to_string();
    assert!(text.contains("panicked for event") && text.contains("REQ_ACTIVATE"), "{text}");
}

/// Calls what it holds when it is dropped, and then panics if asked.
struct CallsWhenDropped {
    comm: Arc<Communicator<Multiple>>,
    got: Arc<Mutex<Vec<Error>>>,
    panics: bool,
}

impl Drop for CallsWhenDropped {
    fn drop(&mut self) {
        self.got.lock().unwrap().extend(self.comm.barrier().err());
        if self.panics {
            std::panic::resume_unwind(Box::new("quietly"));
        }
    }
}

#[test]
fn a_callback_that_communicates_is_refused_and_does_no_harm() {
    run_threads_with::<Multiple, _>(1, |world| {
        let (comm, other) = (Arc::new(world.dup()?), Mutex::new(Some(world.dup()?)));
        let got = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::new(Mutex::new(None));
        let subscription = world.subscribe(Event::ReqActivate, {
            let (comm, got, heard) = (comm.clone(), got.clone(), heard.clone());
            move |_| {
                // A communicator may be dropped in here; it is freed afterwards.
                drop(other.lock().unwrap().take());
                let mut got = got.lock().unwrap();
                got.extend(comm.barrier().err());
                got.extend(comm.send(&[1_u8], 0, 0).err());
                got.extend(comm.isend(vec![1_u8], 0, 0).err());
                got.extend(comm.scope(|scope| scope.isend(&[1_u8], 0, 0).map(drop)).err());
                got.extend(comm.dup().err());
                drop(got);
                // Its own end, from within.
                drop(heard.lock().unwrap().take());
            }
        })?;
        let calls = CallsWhenDropped { comm: comm.clone(), got: got.clone(), panics: false };
        let second = world.subscribe(Event::ReqActivate, move |_| _ = &calls)?;
        *heard.lock().unwrap() = Some((subscription, second));
        world.isend(vec![1_u8], 0, 0)?.wait()?;
        world.isend(vec![1_u8], 0, 0)?.wait()?;
        assert_eq!(*got.lock().unwrap(), vec![Error::InsideCallback; 6], "called once, and dropped once");
        assert!(world.recv::<u8>(0, 0).is_ok() && world.recv::<u8>(0, 0).is_ok());
        drop(world.dup()?);
        Ok(())
    })
    .unwrap();
}

#[test]
fn what_a_callback_owns_may_not_unwind_through_the_engine() {
    let error = run_threads_with::<Multiple, _>(1, |world| {
        let (comm, got) = (Arc::new(world.dup()?), Arc::default());
        let own = Arc::new(Mutex::new(None));
        let calls = CallsWhenDropped { comm, got, panics: true };
        let subscription = world.subscribe(Event::ReqActivate, {
            let own = own.clone();
            move |_| {
                let _ = &calls;
                drop(own.lock().unwrap().take());
            }
        })?;
        *own.lock().unwrap() = Some(subscription);
        world.isend(vec![1_u8], 0, 0)?.wait().map(drop)
    })
    .unwrap_err();
    assert!(error.to_string().contains("panicked when it was dropped"), "{error}");
}

#[test]
fn a_thread_that_waits_while_another_one_fails_is_told() {
    let result = run_threads_with::<Multiple, _>(2, |world| {
        std::thread::scope(|threads| {
            let waiting = (world.rank() == 0).then(|| threads.spawn(|| world.recv::<u8>(1, 1)));
            if world.rank() == 1 {
                world.recv::<u8>(0, 2)?;
                return Err(Error::Code(77));
            }
            world.send(&[1_u8], 1, 2)?;
            let error = world.recv_into(&mut vec![0_u8; 1 << 20], 1, 3).unwrap_err();
            failure(&error);
            failure(&waiting.expect("rank 0").join().expect("no panic").unwrap_err());
            Err(error)
        }) as Result<()>
    });
    assert_eq!(result, Err(Error::Code(77)));
}

/// The only test of this program that takes the process's own rank.
#[test]
fn a_process_joins_once_and_is_alone_without_a_launcher() {
    let world = perusal::init().unwrap();
    assert_eq!((world.rank(), world.size()), (0, 1));
    assert!(matches!(perusal::init(), Err(Error::Other(_))));
    let sent = world.isend(vec![1.5_f32], 0, 0).unwrap();
    assert_eq!(world.recv::<f32>(Any, Any).unwrap().0, [1.5]);
    assert_eq!(sent.wait().unwrap(), [1.5]);
    let copy = world.dup().unwrap();
    world.finish().unwrap();
    assert!(matches!(copy.send(&[1_u8], 0, 0), Err(Error::NotInitialized(_))));
    assert!(matches!(perusal::init(), Err(Error::Other(_))));
}
