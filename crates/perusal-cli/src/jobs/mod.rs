//! Commands that look at jobs that run, from outside.
//!
//! | file | what it has |
//! |---|---|
//! | `attach` | the jobs of this user, and their memory |
//! | `ps` | `perusal ps`: which there are |
//! | `top` | `perusal top`: what their ranks do, again and again |
//! | `why` | `perusal why`: why one does not go on |

mod attach;
pub mod ps;
pub mod top;
pub mod why;
