//! One single-producer single-consumer ring for each ordered pair of ranks.
