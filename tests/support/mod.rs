//! What several test programs share.
#![allow(dead_code, reason = "each test program uses a part")]

pub mod backend_server;
pub mod dataset;
pub mod evaluate;
pub mod judge;
pub mod rounds;
pub mod server;
