//! Who the ranks are, and the memory they share: segment, layout, offsets, roster, telemetry.
