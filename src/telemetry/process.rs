//! What the system says of this process. Nothing where it does not say it as Linux does.

use std::fs;

/// Memory in use, in bytes.
#[must_use]
pub fn resident_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Open file descriptors.
#[must_use]
pub fn open_files() -> Option<u64> {
    // One of them is the listing itself.
    let open = fs::read_dir("/proc/self/fd").ok()?.count();
    Some((open as u64).saturating_sub(1))
}
