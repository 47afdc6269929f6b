//! Jobs without processes, whose memory the test writes as ranks would.
