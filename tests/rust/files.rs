//! Files in the Rust API: what one rank writes the others read, in every form of access.

use perusal::events::Event;
use perusal::{Error, FileOptions, FilePattern, run_threads};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn name(of: &str) -> PathBuf {
    std::env::temp_dir().join(format!("perusal-rust-{of}.{}", std::process::id()))
}

fn fresh() -> FileOptions {
    FileOptions::new().read().write().create().delete_on_close()
}

#[test]
fn a_part_of_an_array_of_each_rank_makes_the_whole() {
    let name = name("parts");
    run_threads(4, |world| {
        let rank = world.rank();
        let mut file = world.open_file(&name, fresh())?;
        // Each rank has a quarter of 6 times 8 numbers.
        let start = [rank / 2 * 3, rank % 2 * 4];
        file.set_view(16, &FilePattern::part::<u32>(&[6, 8], &[3, 4], &start)?)?;
        let own: Vec<u32> = (0..12).map(|i| ((start[0] + i / 4) * 8 + start[1] + i % 4) as u32).collect();
        file.write_at_all(0, &own)?;
        let mut back = [0_u32; 12];
        assert_eq!(file.read_all(&mut back)?, 12);
        assert_eq!((back.as_slice(), file.position()?), (own.as_slice(), 12));
        file.set_view(16, &FilePattern::all::<u32>()?)?;
        let mut all = [0_u32; 50];
        assert_eq!(file.read(&mut all)?, 48, "the file ends");
        assert!(all[..48].iter().copied().eq(0..48));
        assert_eq!(file.size()?, 16 + 48 * 4);
        world.barrier()?;
        file.close()
    })
    .expect("four ranks");
    assert!(!name.exists(), "deleted as it was closed");
}

#[test]
fn records_at_the_shared_position_are_each_somebody_s() {
    let name = name("shared");
    run_threads(3, |world| {
        let mut file = world.open_file(&name, fresh())?;
        file.set_view(0, &FilePattern::all::<[u64; 2]>()?)?;
        for i in 0..50 {
            file.write_shared(&[[world.rank() as u64, i]])?;
        }
        world.barrier()?;
        file.seek_shared(0)?;
        let mut counts = [0; 3];
        if world.rank() == 0 {
            let mut all = [[0_u64; 2]; 151];
            assert_eq!(file.read_shared(&mut all)?, 150);
            for [rank, i] in &all[..150] {
                assert_eq!(*i, counts[*rank as usize], "each rank's own are in order");
                counts[*rank as usize] += 1;
            }
            assert_eq!(counts, [50; 3]);
        }
        file.seek_shared(0)?;
        file.write_ordered(&vec![[7, world.rank() as u64]; world.rank() + 1])?;
        let mut all = [[0_u64; 2]; 6];
        file.read_at_all(0, &mut all)?;
        assert_eq!(all.map(|[_, rank]| rank), [0, 1, 1, 2, 2, 2]);
        file.close()
    })
    .expect("three ranks");
}

#[test]
fn an_access_goes_on_in_the_background_and_outlives_what_is_dropped() {
    let name = name("background");
    run_threads(2, |world| {
        let file = world.open_file(&name, fresh())?;
        let at = world.rank() as u64 * (1 << 22);
        let data: Vec<u8> = (0..1 << 22).map(|i| (i % 251) as u8).collect();
        let writing = file.begin_write_at(at, data.clone())?;
        assert_eq!(writing.wait()?, data);
        // Dropped, it waits; forgotten, it leaves its memory alone.
        drop(file.begin_read_at::<u8>(at, 1 << 22)?);
        std::mem::forget(file.begin_read_at::<u8>(at, 1 << 10)?);
        world.barrier()?;
        let last = file.begin_read_at::<u8>((1 << 23) - 4, 100)?;
        file.close()?;
        assert_eq!(last.wait()?, data[data.len() - 4..], "the file ends");
        Ok(())
    })
    .expect("two ranks");
}

#[test]
fn what_is_wrong_is_an_error_at_every_rank() {
    let missing = name("missing").join("file");
    run_threads(2, |world| {
        let opened = world.open_file(&missing, FileOptions::new().read());
        assert!(matches!(&opened, Err(Error::File { path, .. }) if path.contains("missing")), "{opened:?}");
        assert!(matches!(world.open_file(&missing, FileOptions::new()), Err(Error::AccessMode(_))));
        let differs = if world.rank() == 0 { fresh() } else { fresh().append() };
        assert!(matches!(world.open_file(name("differs"), differs), Err(Error::File { .. })));
        let mut file = world.open_file(name("view"), fresh())?;
        assert!(FilePattern::blocks::<u8>(3, 2).is_err() && FilePattern::part::<u8>(&[], &[], &[]).is_err());
        file.set_view(0, &FilePattern::all::<u32>()?)?;
        assert!(file.write_at(0, &[1_u8]).is_err(), "a part of an element");
        assert!(matches!(file.write_at(0, &[1_i32]), Err(Error::Type(_))), "another type than the view's");
        assert!(matches!(file.write_at_all(0, &[1_i32]), Err(Error::Type(_))));
        assert!(file.write_at(u64::MAX, &[1_u32]).is_err());
        file.close()
    })
    .expect("two ranks");
    assert!(!name("differs").exists());
}

#[test]
fn a_closure_hears_of_accesses() {
    run_threads(1, |world| {
        let file = world.open_file(name("events"), fresh())?;
        let heard = Arc::new(AtomicU64::new(0));
        let sum = heard.clone();
        let listening =
            file.subscribe(Event::by_name(c"PERUSE_FILE_REQ_COMPLETE").expect("it is there"), {
                move |record| {
                    sum.fetch_add(record.spec.bytes, Ordering::Relaxed);
                }
            })?;
        file.write(&[1_u64; 10])?;
        file.seek(0)?;
        assert_eq!(file.read(&mut [0_u64; 20])?, 10);
        drop(listening);
        file.write(&[1_u64])?;
        assert_eq!(heard.load(Ordering::Relaxed), 160);
        file.close()
    })
    .expect("one rank");
}
