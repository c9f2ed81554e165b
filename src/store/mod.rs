//! Embedded stores: series in memory, whisper files, events, and the generator of demo data.
//!
//! A store here is an ordinary [`crate::backend::Backend`] that needs no network. It finds names in its own tree,
//! answers tag queries from its own index ([`TagIndex`]) and knows nothing of functions. Invariant: answers are sorted
//! by name and hold a name once.

mod demo;
mod events;
mod memory;
mod names;
mod tag_index;
mod tree;
mod whisper;
mod whisper_store;

pub use demo::{DEMO_PARTS, write_demo};
pub use events::{Event, EventQuery, EventStore, EventsError, NewEvent};
pub use memory::MemoryStore;
pub use tag_index::{TagIndex, TagIndexError};
pub use whisper::{Archive, Points, RollUp, WhisperError, WhisperFile};
pub use whisper_store::{WhisperOptions, WhisperStore};
