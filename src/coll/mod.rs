//! Collective operations over point-to-point on the communicator's collective context.
