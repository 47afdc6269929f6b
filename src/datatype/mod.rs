//! Type maps, their constructors, pack and unpack, and the predefined reduction operations on them.
