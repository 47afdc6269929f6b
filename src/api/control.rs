//! Control variables from Rust: what MPI_T_cvar_read and MPI_T_cvar_write do from C.

use super::communicator::Communicator;
use super::threading::Threading;
use crate::error::{Error, Result};
use crate::variables::{Refusal, Variable};

impl<T: Threading> Communicator<T> {
    /// Returns the value of a control variable in this rank; of a choice, its item's number (MPI_T_cvar_read).
    /// `docs/tool-variables.md` lists names, units and ranges.
    ///
    /// # Errors
    /// [`Error::Other`] if there is none of that name.
    ///
    /// ```
    /// # fn main() -> perusal::Result<()> {
    /// perusal::run_threads(2, |world| {
    ///     world.set_control("eager_limit", 1000)?;
    ///     assert_eq!(world.control("eager_limit")?, 1000);
    ///     assert!(world.set_control("ring_cells", 64).is_err(), "the rings are made");
    ///     Ok(())
    /// })?;
    /// # Ok(()) }
    /// ```
    pub fn control(&self, name: &str) -> Result<u64> {
        let variable = named(name)?;
        self.member.perform(|engine| Ok(engine.config().number(variable.id)))
    }

    /// Changes the value of a control variable in this rank from now on (MPI_T_cvar_write). Where its scope says "all
    /// equal", all ranks must do so, between the same operations.
    ///
    /// # Errors
    /// [`Error::Other`], which says why not: no such variable, a value out of range, a collective operation under way,
    /// or a variable that cannot change any more.
    pub fn set_control(&self, name: &str, value: u64) -> Result<()> {
        let variable = named(name)?;
        self.member.perform(|engine| {
            let config = engine.config();
            config.change(variable.id, value, engine.progress().has_background()).map_err(|refusal| {
                Error::Other(match refusal {
                    Refusal::Value => {
                        format!("{name} cannot be {value}; it must be {}", variable.range(config.shape()))
                    }
                    Refusal::NotNow => {
                        format!("{name} cannot be changed while a collective operation is under way")
                    }
                    Refusal::Never => {
                        format!("{name} cannot be changed any more: {}", variable.description())
                    }
                })
            })
        })
    }
}

fn named(name: &str) -> Result<&'static Variable> {
    Variable::named(name).ok_or_else(|| {
        Error::Other(format!("there is no control variable {name:?}; see `perusal info --cvars`"))
    })
}
