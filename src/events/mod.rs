//! PERUSE events: catalog, gate, registry, dispatch, lock.
