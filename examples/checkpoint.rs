//! A matrix whose columns are dealt out to the ranks is written to one file, row after row, while the ranks go on
//! computing; then it is read back by other ranks than have written it.
//!
//!     cargo run --example checkpoint            # four threads
//!     perusal run -n 4 target/debug/examples/checkpoint

use perusal::{Communicator, FileOptions, FilePattern, Result};

const ROWS: usize = 256;
const COLUMNS_PER_RANK: usize = 16;

fn checkpoint(world: &Communicator) -> Result<()> {
    let (rank, size) = (world.rank(), world.size());
    let columns = COLUMNS_PER_RANK * size;
    let name = std::env::temp_dir().join("perusal-checkpoint");
    let options = FileOptions::new().read().write().create().delete_on_close();
    let mut file = world.open_file(&name, options)?;
    let columns_of = |owner: usize| {
        FilePattern::part::<f64>(&[ROWS, columns], &[ROWS, COLUMNS_PER_RANK], &[0, owner * COLUMNS_PER_RANK])
    };

    file.set_view(0, &columns_of(rank)?)?;
    let own: Vec<f64> = (0..ROWS * COLUMNS_PER_RANK).map(|i| (rank * ROWS * columns + i) as f64).collect();
    let writing = file.begin_write_at(0, own.clone())?;
    let sum: f64 = own.iter().map(|x| x.sqrt()).sum();
    writing.wait()?;
    world.barrier()?;

    let next = (rank + 1) % size;
    file.set_view(0, &columns_of(next)?)?;
    let mut theirs = vec![0.0; own.len()];
    assert_eq!(file.read_at_all(0, &mut theirs)?, own.len());
    assert_eq!(theirs[0], (next * ROWS * columns) as f64);
    println!("rank {rank}: {sum:.1} computed, {} bytes in {}", file.size()?, name.display());
    file.close()
}

fn main() -> Result<()> {
    if perusal::is_launched() {
        perusal::run(|world| checkpoint(world))
    } else {
        perusal::run_threads(4, |world| checkpoint(world)).map(drop)
    }
}
