//! Where ranks sit: hwloc topology, policy, binding, report.
