//! The `plumbago` command.

fn main() {}
