//! What runs when the library is loaded, before `main` where the program is linked with it.

use crate::heap::malloc;

/// Run by the dynamic linker.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = malloc::serve_preloaded;
