//! Files: opening, closing, asking about and changing them (MPI 5.0 §14.2, §14.3, §14.5, §14.6).

use super::{errhandler, memory_kinds};
use crate::abi::*;
use crate::arguments::{InOut, Letters, Out};
use crate::check;
use crate::comm::{Comm, Group};
use crate::datatype::Datatype;
use crate::datatypes;
use crate::error::{Error, Result};
use crate::files::{self, FileObject};
use crate::info::Info;
use crate::io::{self, Conversion, Conversions, File, Whence};
use crate::process::engine;
use crate::types::{MPI_Datatype, MPI_File};
use core::ffi::{c_int, c_void};
use std::sync::Arc;

/// MPI_File_open.
pub fn open(comm: &Comm, name: &[u8], mode: c_int, hints: Info) -> Result<MPI_File> {
    let engine = engine()?;
    if check::is_on() {
        check::compare_on_comm(comm, "access modes", &io::mode_names(mode));
    }
    let events = engine.registry().attach_file();
    let file = File::open(engine, comm, name, mode, &hints, events.clone());
    let file = file.inspect_err(|_| engine.registry().detach(&events))?;
    file.errhandler.replace(errhandler::of_new_file());
    let handle = files::insert(file, events)?;
    files::get(handle)?.file().emit_opened(handle);
    Ok(handle)
}

/// MPI_File_close. A file that cannot be deleted is closed all the same.
pub fn close(fh: InOut<'_, MPI_File>) -> Result<()> {
    let (engine, handle) = (engine()?, fh.get());
    let object = files::get(handle)?;
    object.file().check_not_split()?;
    if check::is_on() {
        compare_function(&object);
        check::context_freed(object.file().context());
    }
    let closed = object.file().close(engine);
    drop(object);
    let object = files::remove(handle)?;
    object.file().emit_closed();
    fh.set(MPI_FILE_NULL);
    engine.registry().detach(object.events());
    // Another thread that looks at a file while it is closed breaks argument rule 2, and an access in the background
    // must be over; if not, what the file has of the job's stays taken to the end of the process.
    if let Some(file) = Arc::into_inner(object).and_then(|object| Arc::into_inner(object.into_file())) {
        file.release(engine);
    }
    closed
}

/// MPI_File_delete.
pub fn delete(name: &[u8], _: Info) -> Result<()> {
    io::delete(name)
}

/// Compares a collective call on a file with those of the other members.
fn compare(fh: &FileObject, what: &'static str, about: impl FnOnce() -> String) {
    if check::is_on() {
        check::compare_call(fh.file().comm(), what, &about(), || check::file_name(fh));
    }
}

/// The same, where members may give any arguments.
pub(super) fn compare_function(fh: &FileObject) {
    compare(fh, "arguments", String::new);
}

/// MPI_File_set_size.
pub fn set_size(fh: &FileObject, size: i64) -> Result<()> {
    compare(fh, "sizes", || format!("{size} bytes"));
    fh.file().set_size(engine()?, size)
}

/// MPI_File_preallocate.
pub fn preallocate(fh: &FileObject, size: i64) -> Result<()> {
    compare(fh, "sizes", || format!("{size} bytes"));
    fh.file().preallocate(engine()?, size)
}

/// MPI_File_get_size.
pub fn size(fh: &FileObject) -> Result<i64> {
    fh.file().size().map(|size| size as i64)
}

/// MPI_File_get_group.
pub fn group(fh: &FileObject) -> Result<Group> {
    Ok(fh.file().group().clone())
}

/// MPI_File_get_amode.
pub fn mode(fh: &FileObject) -> Result<c_int> {
    Ok(fh.file().mode().bits())
}

/// MPI_File_set_info: hints that are not named stay as they are.
pub fn set_info(fh: &FileObject, hints: Info) -> Result<()> {
    compare_function(fh);
    fh.file().set_info(&hints);
    Ok(())
}

/// MPI_File_get_info; the object is the caller's to free.
pub fn info(fh: &FileObject) -> Result<Info> {
    memory_kinds::with_kinds(fh.file().info(), fh.file().comm())
}

/// MPI_File_set_view. A member whose arguments are wrong takes part, so that the others learn of it.
pub fn set_view(
    fh: &FileObject,
    disp: i64,
    etype: MPI_Datatype,
    filetype: MPI_Datatype,
    representation: &[u8],
    hints: Info,
) -> Result<()> {
    let file = fh.file();
    compare(fh, "data representations", || String::from_utf8_lossy(representation).into_owned());
    let disp = (disp != MPI_DISPLACEMENT_CURRENT).then_some(disp);
    let types = || Ok((datatypes::datatype(etype)?, datatypes::datatype(filetype)?));
    let types = file.check_not_split().and_then(|()| types());
    let view = types.and_then(|(etype, filetype)| file.make_view(disp, etype, filetype, representation));
    file.set_view(engine()?, view, &hints)
}

/// MPI_File_get_view. Handles of derived types are the caller's to free.
pub fn view(
    fh: &FileObject,
    disp: Out<'_, i64>,
    etype: Out<'_, MPI_Datatype>,
    filetype: Out<'_, MPI_Datatype>,
    representation: Letters<'_>,
) -> Result<()> {
    let view = fh.file().current_view();
    let view = view.parts();
    disp.set(view.disp as i64);
    etype.set(datatypes::insert(view.etype.clone(), true)?);
    filetype.set(datatypes::insert(view.filetype.clone(), true)?);
    // SAFETY: argument rule 1: room for MPI_MAX_DATAREP_STRING bytes (MPI 5.0 §14.3).
    unsafe { representation.write(MPI_MAX_DATAREP_STRING as usize, view.representation.name().as_bytes()) }
}

fn whence(whence: c_int) -> Result<Whence> {
    match whence {
        MPI_SEEK_SET => Ok(Whence::Set),
        MPI_SEEK_CUR => Ok(Whence::Current),
        MPI_SEEK_END => Ok(Whence::End),
        _ => Err(Error::Arg("whence is none of MPI_SEEK_SET, MPI_SEEK_CUR and MPI_SEEK_END")),
    }
}

/// MPI_File_seek.
pub fn seek(fh: &FileObject, offset: i64, from: c_int) -> Result<()> {
    fh.file().seek(offset, whence(from)?)
}

/// MPI_File_seek_shared.
pub fn seek_shared(fh: &FileObject, offset: i64, from: c_int) -> Result<()> {
    compare(fh, "places", || format!("offset {offset}, whence {from}"));
    fh.file().seek_shared(engine()?, offset, whence(from)?)
}

/// MPI_File_get_position.
pub fn position(fh: &FileObject) -> Result<i64> {
    fh.file().position()
}

/// MPI_File_get_position_shared.
pub fn shared_position(fh: &FileObject) -> Result<i64> {
    fh.file().shared_position()
}

/// MPI_File_get_byte_offset.
pub fn byte_offset(fh: &FileObject, offset: i64) -> Result<i64> {
    fh.file().byte_offset(offset)
}

/// MPI_File_get_type_extent.
pub fn type_extent(fh: &FileObject, datatype: Datatype) -> Result<Extent> {
    Ok(Extent(fh.file().current_view().parts().representation.file_layout(&datatype)?.extent()))
}

/// The extent of a type: an address or a count.
pub struct Extent(isize);

impl crate::arguments::Given<isize> for Extent {
    fn given(self) -> Result<isize> {
        Ok(self.0)
    }
}

impl crate::arguments::Given<i64> for Extent {
    fn given(self) -> Result<i64> {
        Ok(self.0 as i64)
    }
}

/// What a program passes for a conversion: MPI_CONVERSION_FN_NULL changes nothing.
fn registered(
    name: &[u8],
    read: Option<Conversion>,
    write: Option<Conversion>,
    extent: usize,
    extra: *mut c_void,
) -> Result<()> {
    if extent == 0 {
        return Err(Error::Arg("the extent function of a data representation is NULL"));
    }
    // SAFETY: argument rule 1: not NULL, so the address of a function of this type (MPI 5.0 §14.5.3).
    let extent = unsafe { core::mem::transmute::<usize, io::ExtentFn>(extent) };
    io::register(name, Conversions { read, write, extent, extra })
}

/// MPI_Register_datarep.
pub fn register(name: &[u8], read: usize, write: usize, extent: usize, extra: *mut c_void) -> Result<()> {
    let conversion = |address: usize| {
        // SAFETY: argument rule 1: not MPI_CONVERSION_FN_NULL,
        // so the address of a function of this type (MPI 5.0 §14.5.3).
        let function = |address| unsafe { core::mem::transmute::<usize, io::ConversionFn>(address) };
        (address != MPI_CONVERSION_FN_NULL).then(|| Conversion::Small(function(address)))
    };
    registered(name, conversion(read), conversion(write), extent, extra)
}

/// MPI_Register_datarep_c.
pub fn register_large(
    name: &[u8],
    read: usize,
    write: usize,
    extent: usize,
    extra: *mut c_void,
) -> Result<()> {
    let conversion = |address: usize| {
        // SAFETY: argument rule 1: not MPI_CONVERSION_FN_NULL_C,
        // so the address of a function of this type (MPI 5.0 §14.5.3).
        let function = |address| unsafe { core::mem::transmute::<usize, io::ConversionFnC>(address) };
        (address != MPI_CONVERSION_FN_NULL_C).then(|| Conversion::Large(function(address)))
    };
    registered(name, conversion(read), conversion(write), extent, extra)
}

/// MPI_File_set_atomicity.
pub fn set_atomic(fh: &FileObject, atomic: bool) -> Result<()> {
    compare(fh, "flags", || if atomic { "atomic" } else { "not atomic" }.to_owned());
    fh.file().set_atomic(engine()?, atomic)
}

/// MPI_File_get_atomicity.
pub fn is_atomic(fh: &FileObject) -> Result<bool> {
    Ok(fh.file().is_atomic())
}

/// MPI_File_sync.
pub fn sync(fh: &FileObject) -> Result<()> {
    compare_function(fh);
    fh.file().check_not_split()?;
    fh.file().sync()
}
