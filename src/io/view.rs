//! Views: where the bytes that a rank sees lie in the file (MPI 5.0 §14.3).
//!
//! A view is a stream of data bytes: those of its filetype, tiled from a displacement on. The stream's byte at any
//! position is found by one division and one step for each level of the filetype; nothing is expanded, so a filetype of
//! any number of blocks costs no memory.

use super::representation::Representation;
use crate::abi;
use crate::datatype::{Datatype, LayoutOrder};
use crate::error::{Error, Result};
use crate::sync::Arc;

/// What a program says of a view.
#[derive(Debug, Clone)]
pub struct ViewParts {
    /// The file's name, for errors.
    pub(super) file: Arc<str>,
    /// Whether the file may be written.
    pub(super) writes: bool,
    /// Where the first tile begins, in bytes.
    pub disp: u64,
    /// The elementary type.
    pub etype: Datatype,
    /// The filetype.
    pub filetype: Datatype,
    /// How data is represented in the file.
    pub representation: Representation,
}

/// The view in force. What it takes to find bytes in a program's own representation is asked of the program's extent
/// function as the first access needs it: MPI_File_set_view must not call the function (MPI 5.0 §14.5.3).
#[derive(Debug, Clone)]
pub enum CurrentView {
    /// No access has needed it yet.
    Asked(ViewParts),
    /// Bytes can be found.
    LaidOut(Arc<View>),
}

impl CurrentView {
    /// A view of these parts.
    ///
    /// # Errors
    /// As for [`View::new`], unless the representation is a program's own.
    pub(super) fn new(parts: ViewParts) -> Result<Self> {
        if parts.representation.is_users() {
            return Ok(Self::Asked(parts));
        }
        Ok(Self::LaidOut(Arc::new(View::new(parts)?)))
    }

    /// What the program has said.
    #[must_use]
    pub fn parts(&self) -> &ViewParts {
        match self {
            Self::Asked(parts) => parts,
            Self::LaidOut(view) => &view.parts,
        }
    }

    /// The extent of an etype in the file; 0 if that is not known yet.
    pub(super) fn etype_extent(&self) -> i64 {
        match self {
            Self::Asked(_) => 0,
            Self::LaidOut(view) => view.etype_extent,
        }
    }

    /// The same view from byte `disp` on.
    pub(super) fn moved_to(mut self, disp: u64) -> Self {
        match &mut self {
            Self::Asked(parts) => parts.disp = disp,
            Self::LaidOut(view) => Arc::make_mut(view).parts.disp = disp,
        }
        self
    }
}

/// A view of a file.
#[derive(Debug, Clone)]
pub struct View {
    /// What the program has said of it.
    pub parts: ViewParts,
    /// Bytes of an etype's data in the file.
    pub unit: u64,
    /// The extent of an etype in the file.
    pub etype_extent: i64,
    /// The filetype as it lies in the file, in its representation.
    layout: Datatype,
}

impl View {
    /// What a file has when it is opened: a stream of bytes.
    #[must_use]
    pub fn of_bytes(file: Arc<str>) -> Self {
        let byte = Datatype::predefined_ref(abi::MPI_BYTE).cloned();
        let byte = byte.unwrap_or_else(|| unreachable!("MPI_BYTE is predefined"));
        let (etype, filetype, representation) = (byte.clone(), byte.clone(), Representation::Native);
        let parts = ViewParts { file, writes: true, disp: 0, etype, filetype, representation };
        Self { parts, unit: 1, etype_extent: 1, layout: byte }
    }

    /// Lays the parts of a view out.
    ///
    /// # Errors
    /// [`Error::File`] for types that cannot be those of a view; those of a program's representation.
    pub fn new(parts: ViewParts) -> Result<Self> {
        let ViewParts { file, etype, filetype, representation, writes, .. } = &parts;
        let wrong = |class, what| refused(file, class, what);
        let (unit, layout) = (representation.file_layout(etype)?, representation.file_layout(filetype)?);
        for (datatype, is_etype) in [(&unit, true), (&layout, false)] {
            check_layout(file, datatype, is_etype, *writes)?;
        }
        if unit.size() == 0 {
            let what = "the etype of a view has no data; give one with at least one byte";
            return Err(wrong(abi::MPI_ERR_TYPE, what.into()));
        }
        if !layout.size().is_multiple_of(unit.size()) {
            let what = format!(
                "the filetype of a view has {} bytes, which are no whole number of its etype's {}; make it of the etype",
                layout.size(),
                unit.size()
            );
            return Err(wrong(abi::MPI_ERR_TYPE, what));
        }
        let (unit, etype_extent) = (unit.size() as u64, unit.extent() as i64);
        Ok(Self { parts, unit, etype_extent, layout })
    }

    /// The position in the stream that is `offset` etypes behind its beginning.
    ///
    /// # Errors
    /// [`Error::File`] if it is negative or too large.
    pub fn position(&self, offset: i64) -> Result<u64> {
        let negative = |_| {
            let what = format!("the offset is {offset}; offsets count the view's etypes from 0 on");
            self.refused(abi::MPI_ERR_ARG, what)
        };
        let etype = u64::try_from(offset).map_err(negative)?;
        etype.checked_mul(self.unit).filter(|at| i64::try_from(*at).is_ok()).ok_or_else(|| {
            let what = format!("etype {offset} of {} bytes lies {BEYOND}", self.unit);
            self.refused(abi::MPI_ERR_ARG, what)
        })
    }

    #[cold]
    fn refused(&self, class: i32, what: String) -> Error {
        refused(&self.parts.file, class, what)
    }

    /// The error of an access of `bytes` bytes from position `at` on that offsets cannot tell.
    #[cold]
    fn too_far(&self, at: u64, bytes: u64) -> Error {
        let what = format!("an access of {bytes} bytes at byte {at} of the view's data goes {BEYOND}");
        self.refused(abi::MPI_ERR_ARG, what)
    }

    /// Etypes that so many bytes are.
    ///
    /// # Errors
    /// [`Error::File`] if they are no whole number of etypes.
    pub fn etypes(&self, bytes: u64) -> Result<i64> {
        if !bytes.is_multiple_of(self.unit) {
            let what = format!(
                "the {bytes} bytes of the buffer are no whole number of the view's etypes of {} bytes; change the count or the type",
                self.unit
            );
            return Err(self.refused(abi::MPI_ERR_TYPE, what));
        }
        Ok((bytes / self.unit) as i64)
    }

    /// Checks that `bytes` bytes from position `at` on have offsets in a file.
    ///
    /// # Errors
    /// [`Error::File`] if they do not, or the filetype has no data.
    pub fn check(&self, at: u64, bytes: u64) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let size = self.layout.size() as u64;
        if size == 0 {
            let what = format!(
                "the filetype of the view has no data, so that {bytes} bytes have no place; set another view, or access nothing"
            );
            return Err(self.refused(abi::MPI_ERR_TYPE, what));
        }
        let last = at.checked_add(bytes - 1).ok_or_else(|| self.too_far(at, bytes))?;
        let end = self.layout.true_lb().saturating_add(self.layout.true_extent()) as u64;
        let tile = (last / size).checked_mul(self.layout.extent() as u64);
        let end = tile.and_then(|tile| tile.checked_add(end)?.checked_add(self.parts.disp));
        end.filter(|end| i64::try_from(*end).is_ok()).map(drop).ok_or_else(|| self.too_far(at, bytes))
    }

    /// Whether the stream is one run in the file.
    #[must_use]
    pub fn is_contiguous(&self) -> bool {
        self.layout.is_contiguous()
    }

    /// Whether there are bytes of the file between those of the view.
    #[must_use]
    pub fn has_gaps(&self) -> bool {
        self.layout.size() > 0 && !self.is_contiguous()
    }

    /// The file's offset of the byte at position `at`, and how many bytes follow it there.
    #[inline]
    fn locate(&self, at: u64) -> (u64, u64) {
        let size = self.layout.size() as u64;
        let (disp, len) = self.layout.run_at((at % size) as usize);
        (self.parts.disp + (at / size) * self.layout.extent() as u64 + disp as u64, len as u64)
    }

    /// Whether the offsets of the stream ascend from tile to tile too.
    #[must_use]
    pub fn ascends(&self) -> bool {
        let end = self.layout.true_extent();
        self.layout.extent() >= end && self.layout.layout_order() == LayoutOrder::Ascending
    }

    /// The file's offset of the byte at position `at`.
    ///
    /// # Errors
    /// As for [`check`](Self::check).
    pub fn offset_of(&self, at: u64) -> Result<u64> {
        self.check(at, 1)?;
        Ok(if self.is_contiguous() { self.contiguous(at) } else { self.locate(at).0 })
    }

    /// The file's offset of etype `offset`.
    ///
    /// # Errors
    /// As for [`position`](Self::position) and [`check`](Self::check).
    pub fn offset_of_etype(&self, offset: i64) -> Result<i64> {
        if offset == 0 && self.layout.size() == 0 {
            return Ok(self.parts.disp as i64);
        }
        self.offset_of(self.position(offset)?).map(|offset| offset as i64)
    }

    /// The part of the file, as first byte and end, that has all of `bytes` bytes from position `at` on, for which
    /// [`check`](Self::check) has been asked; there is at least one.
    ///
    /// # Errors
    /// As for [`offset_of`](Self::offset_of).
    pub fn span(&self, at: u64, bytes: u64) -> Result<(u64, u64)> {
        let last = at + (bytes - 1);
        if self.ascends() || self.is_contiguous() {
            return Ok((self.offset_of(at)?, self.offset_of(last)? + 1));
        }
        // Tiles that interleave: neither the first byte nor the last one need be at an end.
        let size = self.layout.size() as u64;
        let tile = |at: u64| {
            self.parts.disp + at / size * self.layout.extent() as u64 + self.layout.true_lb() as u64
        };
        Ok((tile(at), tile(last) + self.layout.true_extent() as u64))
    }

    fn contiguous(&self, at: u64) -> u64 {
        self.parts.disp + self.layout.true_lb() as u64 + at
    }

    /// The runs, as offset and bytes, of `bytes` bytes from position `at` on,
    /// for which [`check`](Self::check) has been asked.
    #[inline]
    #[must_use]
    pub fn runs(&self, at: u64, bytes: u64) -> Runs<'_> {
        // The stream of a layout without data has no positions but 0.
        let size = (self.layout.size() as u64).max(1);
        let tile = self.parts.disp + at / size * self.layout.extent() as u64;
        Runs { view: self, start: at, tile, within: (at % size) as usize, left: bytes, pending: None }
    }

    /// The end of a file of `size` bytes: the offset of the first etype of the view that starts behind its last byte
    /// (MPI 5.0 §14.1.1).
    ///
    /// # Errors
    /// [`Error::File`] if no etype does, or its offset is too large.
    pub fn end_of_file(&self, size: u64) -> Result<i64> {
        let data = self.layout.size() as u64;
        let Some(beyond) = size.checked_sub(self.parts.disp).filter(|beyond| *beyond > 0 && data > 0) else {
            return Ok(0);
        };
        let no_end = || {
            let what = format!(
                "no etype of the view starts behind the file's {size} bytes at an offset that there is"
            );
            self.refused(abi::MPI_ERR_ARG, what)
        };
        // Etypes of a tile start in ascending order; tiles may interleave.
        // So the first tile whose last etype starts behind the end has it.
        let (extent, each) = (self.layout.extent() as u64, data / self.unit);
        let start = |etype: u64| self.layout.displacement((etype * self.unit) as usize) as u64;
        let tile = match beyond.checked_sub(start(each - 1)) {
            None | Some(0) => 0,
            Some(_) if extent == 0 => return Err(no_end()),
            Some(missing) => missing.div_ceil(extent),
        };
        let (mut low, mut high) = (0, each - 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if tile * extent + start(middle) < beyond {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let etype = tile.checked_mul(each).and_then(|before| before.checked_add(low));
        etype.and_then(|etype| i64::try_from(etype).ok()).ok_or_else(no_end)
    }
}

/// The end of a text about an offset that is too large.
const BEYOND: &str = "beyond the largest offset of a file, 2^63 - 1";

#[cold]
fn refused(file: &str, class: i32, what: String) -> Error {
    Error::File { class, path: file.into(), what }
}

fn check_layout(file: &str, datatype: &Datatype, is_etype: bool, writes: bool) -> Result<()> {
    let say = |etype: &str, filetype: &str| {
        let what = if is_etype { etype } else { filetype };
        Err(refused(file, abi::MPI_ERR_TYPE, what.into()))
    };
    if datatype.size() > 0 && datatype.true_lb() < 0 || datatype.extent() < 0 {
        return say(
            "the etype of a view has a negative displacement or extent",
            "the filetype of a view has a negative displacement or extent",
        );
    }
    match datatype.layout_order() {
        LayoutOrder::Ascending => Ok(()),
        LayoutOrder::Overlapping if !writes => Ok(()),
        LayoutOrder::Overlapping => say(
            "the etype of a view overlaps itself, and the file is open for writing",
            "the filetype of a view overlaps itself, and the file is open for writing",
        ),
        LayoutOrder::Unordered => say(
            "the displacements of a view's etype do not ascend",
            "the displacements of a view's filetype do not ascend",
        ),
    }
}

/// The runs of an access; those that touch are one.
pub struct Runs<'a> {
    view: &'a View,
    start: u64,
    /// Where the next byte's tile begins in the file.
    tile: u64,
    /// The next byte's position in the stream of that tile.
    within: usize,
    left: u64,
    pending: Option<(u64, u64)>,
}

impl<'a> Runs<'a> {
    /// The runs of `bytes` bytes of the same access, from its byte `from` on.
    #[must_use]
    pub fn again(&self, from: u64, bytes: u64) -> Runs<'a> {
        self.view.runs(self.start + from, bytes)
    }
}

impl Iterator for Runs<'_> {
    type Item = (u64, u64);
    #[inline]
    fn next(&mut self) -> Option<(u64, u64)> {
        if self.view.is_contiguous() {
            let bytes = core::mem::take(&mut self.left);
            return (bytes > 0).then(|| (self.view.contiguous(self.start), bytes));
        }
        while self.left > 0 {
            let layout = &self.view.layout;
            let (disp, len) = layout.run_at(self.within);
            let (offset, len) = (self.tile + disp as u64, (len as u64).min(self.left));
            self.left -= len;
            self.within += len as usize;
            if self.within == layout.size() {
                (self.tile, self.within) = (self.tile.wrapping_add(layout.extent() as u64), 0);
            }
            match &mut self.pending {
                Some((start, have)) if *start + *have == offset => *have += len,
                _ => {
                    if let Some(done) = self.pending.replace((offset, len)) {
                        return Some(done);
                    }
                }
            }
        }
        self.pending.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn native(disp: u64, etype: &Datatype, filetype: &Datatype) -> View {
        View::new(ViewParts {
            file: "a file".into(),
            writes: false,
            disp,
            etype: etype.clone(),
            filetype: filetype.clone(),
            representation: Representation::Native,
        })
        .unwrap()
    }

    #[test]
    fn the_end_of_a_file_is_the_first_etype_of_the_view_that_starts_behind_its_last_byte() {
        let byte = Datatype::predefined(abi::MPI_BYTE).unwrap();
        let int = Datatype::predefined(abi::MPI_INT).unwrap();
        // An etype with a hole: bytes 0 to 3 and 8 to 11.
        let pair = Datatype::hindexed_block(1, &[0, 8], &int).unwrap();
        let types = |blocks: &[isize], etype: &Datatype, extent| {
            let blocks = Datatype::hindexed_block(1, blocks, etype).unwrap();
            (etype.clone(), Datatype::resized(&blocks, 0, extent).unwrap())
        };
        let views = [
            types(&[0], &byte, 1),
            types(&[0], &int, 4),
            types(&[10], &int, 4),
            types(&[4, 20], &int, 40),
            types(&[0, 100], &int, 8),
            types(&[0, 9, 30], &byte, 3),
            types(&[0, 16], &pair, 32),
            types(&[5, 100], &pair, 50),
        ];
        for (etype, filetype) in views {
            for disp in [0, 7] {
                let view = native(disp, &etype, &filetype);
                for size in 0..300 {
                    let wanted = (0..).find(|etype| view.offset_of_etype(*etype).unwrap() as u64 >= size);
                    assert_eq!(view.end_of_file(size).ok(), wanted, "{filetype:?}, {disp}: {size}");
                }
            }
        }
        let (etype, filetype) = types(&[3], &byte, 0);
        let view = native(0, &etype, &filetype);
        assert!(view.end_of_file(3).unwrap() == 0 && view.end_of_file(4).is_err());
    }

    #[test]
    fn a_span_has_all_runs_where_tiles_follow_one_another_and_where_they_interleave() {
        let byte = Datatype::predefined(abi::MPI_BYTE).unwrap();
        let scattered = Datatype::hindexed_block(1, &[1, 9], &byte).unwrap();
        for extent in [1, 10, 12] {
            let filetype = Datatype::resized(&scattered, 0, extent).unwrap();
            let view = native(5, &byte, &filetype);
            for (at, bytes) in (0..6).flat_map(|at| (1..6).map(move |bytes| (at, bytes))) {
                let (start, end) = view.span(at, bytes).unwrap();
                let runs: Vec<_> = view.runs(at, bytes).collect();
                let first = runs.iter().map(|(offset, _)| *offset).min().unwrap();
                let last = runs.iter().map(|(offset, len)| offset + len).max().unwrap();
                assert!(start <= first && last <= end, "{extent}: {at}, {bytes}");
                assert!(extent < 9 || (start, end) == (first, last), "{extent}: {at}, {bytes}");
            }
        }
    }
}
