//! Time as Graphite's parameters say it: `from`/`until` ("at" style), intervals, time zones.
//!
//! The only module (besides the transport) that reads the machine's clock, and it does so once for a request.
