//! What names an endpoint.
//!
//! | file | what it has |
//! |---|---|
//! | `address` | the address of an endpoint on its node |
//! | `name` | its name as libfabric passes it on: the address, and where the network finds it |
//! | `service` | endpoints that have the name of a service |

pub mod address;
pub mod name;
pub mod service;
