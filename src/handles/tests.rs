use super::*;
use crate::limits::rounds;
use crate::sync::{AtomicUsize, Ordering::SeqCst};

#[test]
fn every_index_has_its_own_place_in_some_chunk() {
    let mut next = (0, 0);
    for index in 0..10_000 {
        assert_eq!(locate(index), next);
        next = if next.1 + 1 == chunk_len(next.0) { (next.0 + 1, 0) } else { (next.0, next.1 + 1) };
    }
    let (chunk, offset) = locate(INDEX_MASK);
    assert_eq!((chunk, offset), (CHUNKS - 1, chunk_len(CHUNKS - 1) - 1));
}

#[test]
fn a_handle_finds_its_object_until_it_is_removed() {
    let table = HandleTable::new(HandleKind::Info);
    let handles: Vec<usize> = (0..1000).map(|n: u32| table.insert(Arc::new(n)).unwrap()).collect();
    for (n, &handle) in handles.iter().enumerate() {
        assert!(handle >= FIRST && handle <= i32::MAX as usize);
        assert_eq!(*table.get(handle).unwrap(), n as u32);
        // SAFETY: nobody removes it meanwhile.
        assert_eq!(unsafe { table.peek(handle) }, Some(&(n as u32)));
    }
    assert_eq!(table.handles().len(), 1000);
    assert_eq!(*table.remove(handles[7]).unwrap(), 7);
    assert!(table.get(handles[7]).is_none());
    assert!(table.remove(handles[7]).is_none());
    assert_eq!(table.handles().len(), 999);
}

#[test]
fn a_replaced_object_keeps_its_handle() {
    let table = HandleTable::new(HandleKind::Info);
    let handle = table.insert(Arc::new(1)).unwrap();
    assert_eq!(*table.replace(handle, Arc::new(2)).unwrap(), 1);
    assert_eq!(*table.get(handle).unwrap(), 2);
    assert_eq!(*table.remove(handle).unwrap(), 2);
    assert!(table.replace(handle, Arc::new(3)).is_none());
}

#[test]
fn a_stale_handle_is_refused_when_its_slot_is_used_again() {
    let table = HandleTable::new(HandleKind::Info);
    let mut seen = std::collections::HashSet::new();
    let mut stale = Vec::new();
    for n in 0..CHUNK0 * rounds(GENERATIONS as usize - 1) {
        let handle = table.insert(Arc::new(n)).unwrap();
        assert!(seen.insert(handle), "handle {handle} was given out twice");
        assert_eq!(*table.remove(handle).unwrap(), n);
        stale.push(handle);
    }
    let alive: Vec<usize> = (0..CHUNK0).map(|n| table.insert(Arc::new(n)).unwrap()).collect();
    for handle in stale {
        assert!(table.get(handle).is_none());
        // SAFETY: nobody removes anything meanwhile.
        assert!(unsafe { table.peek(handle) }.is_none());
    }
    assert!(alive.iter().all(|&handle| table.get(handle).is_some()));
}

#[test]
fn no_table_takes_the_handle_of_another_kind() {
    let tables = [HandleKind::Task, HandleKind::Comm, HandleKind::EventRegistration].map(HandleTable::new);
    for n in 0..CHUNK0 * GENERATIONS as usize * 2 {
        let handles = tables.each_ref().map(|table| table.insert(Arc::new(n)).unwrap());
        for (at, table) in tables.iter().enumerate() {
            let taken = handles.map(|handle| table.get(handle).is_some());
            assert_eq!(taken, [0, 1, 2].map(|other| other == at), "{handles:?}");
            table.remove(handles[at]);
        }
    }
}

#[test]
fn predefined_and_foreign_values_name_nothing() {
    let table = HandleTable::new(HandleKind::Info);
    table.insert(Arc::new(1u8)).unwrap();
    for value in [0, 1, FIRST - 1, FIRST + 1, FIRST + INDEX_MASK, END - 1, END, usize::MAX] {
        assert!(table.get(value).is_none(), "{value}");
        assert!(table.remove(value).is_none(), "{value}");
    }
}

#[test]
fn of_many_removers_one_wins_and_readers_never_see_a_dead_object() {
    struct CountedDrop<'a>(&'a AtomicUsize, u64);
    impl Drop for CountedDrop<'_> {
        fn drop(&mut self) {
            self.1 = 0;
            self.0.fetch_add(1, SeqCst);
        }
    }
    const ROUNDS: usize = rounds(300);
    let drops = AtomicUsize::new(0);
    let table = HandleTable::<CountedDrop>::new(HandleKind::Info);
    let current = AtomicUsize::new(0);
    let removed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let removers = [(); 3].map(|()| {
            scope.spawn(|| {
                while removed.load(SeqCst) < ROUNDS {
                    let handle = current.load(SeqCst);
                    if let Some(object) = table.get(handle) {
                        assert_eq!(object.1, 0xfeed);
                    }
                    if table.remove(handle).is_some() {
                        removed.fetch_add(1, SeqCst);
                    }
                }
            })
        });
        for round in 0..ROUNDS {
            current.store(table.insert(Arc::new(CountedDrop(&drops, 0xfeed))).unwrap(), SeqCst);
            while removed.load(SeqCst) <= round {
                std::thread::yield_now();
            }
        }
        removers.into_iter().for_each(|remover| remover.join().unwrap());
    });
    assert_eq!((drops.load(SeqCst), removed.load(SeqCst)), (ROUNDS, ROUNDS));
    assert!(table.handles().is_empty());
}

#[test]
fn dropping_the_table_drops_what_is_left_in_it() {
    let object = Arc::new(5);
    let table = HandleTable::new(HandleKind::Info);
    table.insert(object.clone()).unwrap();
    table.insert(object.clone()).unwrap();
    assert_eq!(Arc::strong_count(&object), 3);
    drop(table);
    assert_eq!(Arc::strong_count(&object), 1);
}
