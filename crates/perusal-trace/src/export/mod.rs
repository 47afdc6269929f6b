//! A trace in other people's formats (`perfetto`, of `slices`; `otf2`), and as text (`text`), with the same `labels`.

mod labels;
mod otf2;
mod perfetto;
mod slices;
mod text;

pub use otf2::otf2;
pub use perfetto::perfetto;
pub use text::print;
