//! Series names and the files of a whisper folder: the scan that makes a tree of names, and the file of a name.
//!
//! `a.b.c` is `a/b/c.wsp`; a tagged series is below `_tagged`, as carbon has it. What is hidden, is no text, or has a dot
//! where a name cannot have one is not seen. Invariant: no name and no link leads out of the folder.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::names::{self, Branch};

/// Folders nested deeper are not seen.
const MAX_DEPTH: usize = 64;

/// What a scan found.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) tree: Arc<Branch>,
    /// Number of series in the tree.
    pub(super) series: usize,
    /// There were more series than wanted: the tree is not whole.
    pub(super) cut: bool,
}

/// Scans a folder for at most `most` series. Folders that were not changed since `before` are not listed again: carbon
/// changes a folder only when it creates or deletes a file in it.
pub(super) fn scan(root: &Path, before: Option<&Arc<Branch>>, most: usize) -> io::Result<Scan> {
    let root = root.canonicalize()?;
    // The root itself must be readable; of a folder below it, only that folder is lost.
    fs::read_dir(&root)?;
    let mut scanner = Scanner { links: Vec::new(), left: most, cut: false, root: &root };
    let tree = scanner.folder(&root, before, 0);
    Ok(Scan { tree, series: most - scanner.left, cut: scanner.cut })
}

struct Scanner<'a> {
    root: &'a Path,
    /// The folders that the links on the way here led to.
    links: Vec<PathBuf>,
    left: usize,
    cut: bool,
}

#[derive(Default)]
struct Listing {
    leaves: Vec<Box<str>>,
    /// Folders, and where a link leads.
    folders: Vec<(Box<str>, Option<PathBuf>)>,
}

impl Scanner<'_> {
    fn folder(&mut self, path: &Path, before: Option<&Arc<Branch>>, depth: usize) -> Arc<Branch> {
        let modified = fs::metadata(path).and_then(|m| m.modified()).ok();
        // A change within the tick of the clock in which a folder was listed may have been missed, so an unchanged
        // folder is listed a second time before it is believed.
        let listed_before = before.and_then(|b| b.listed);
        let same = modified.is_some() && listed_before.map(|(time, _)| time) == modified;
        let unchanged = before.filter(|_| same && listed_before.is_some_and(|(_, again)| again));

        let listing = match unchanged {
            Some(before) => Ok(Listing {
                leaves: before.leaves.clone(),
                folders: before.branches.iter().map(|(name, _)| (name.clone(), None)).collect(),
            }),
            None => self.list(path),
        };
        let mut unknown = false;
        let mut listing = listing.unwrap_or_else(|error| {
            // Deleted since its parent was listed, it is as good as empty.
            unknown = !is_absence(&error);
            if unknown {
                tracing::warn!(folder = %path.display(), %error, "folder left out of the index");
            }
            Listing::default()
        });
        if listing.leaves.len() > self.left {
            listing.leaves.truncate(self.left);
            self.cut = true;
        }
        self.left -= listing.leaves.len();

        let mut branches = Vec::with_capacity(listing.folders.len());
        for (name, link) in listing.folders {
            if depth + 1 >= MAX_DEPTH {
                break;
            }
            let below = path.join(&*name);
            let mut link = link;
            if unchanged.is_some() && below.is_symlink() {
                let Ok(Some(target)) = self.inside(&below) else { continue };
                link = Some(target);
            }
            let depth_of_links = self.links.len();
            self.links.extend(link);
            let branch = self.folder(&below, before.and_then(|b| b.branch(&name)), depth + 1);
            self.links.truncate(depth_of_links);
            branches.push((name, branch));
        }
        if let Some(before) = unchanged.or(before.filter(|before| unknown && before.unknown))
            && listing.leaves.len() == before.leaves.len()
            && branches.len() == before.branches.len()
            && branches.iter().zip(&before.branches).all(|(new, old)| Arc::ptr_eq(&new.1, &old.1))
        {
            return before.clone();
        }
        let listed = modified.filter(|_| !unknown).map(|time| (time, same));
        Arc::new(Branch { leaves: listing.leaves, branches, listed, unknown })
    }

    fn list(&self, path: &Path) -> io::Result<Listing> {
        let mut listing = Listing::default();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let Some(mut kind) = if_there(entry.file_type())? else { continue };
            let mut link = None;
            if kind.is_symlink() {
                let path = entry.path();
                let target = self.inside(&path).unwrap_or_else(|error| {
                    tracing::warn!(link = %path.display(), %error, "link left out of the index");
                    None
                });
                let Some(target) = target else { continue };
                let Some(metadata) = if_there(fs::metadata(&path))? else { continue };
                kind = metadata.file_type();
                link = Some(target);
            }
            if kind.is_dir() {
                // A link to a folder that we are in would go round for ever.
                let round = link.as_ref().is_some_and(|target| {
                    path.starts_with(target) || self.links.iter().any(|from| from.starts_with(target))
                });
                if is_node(name) && !round {
                    listing.folders.push((name.into(), link));
                }
            } else if kind.is_file()
                && let Some(stem) = name.strip_suffix(".wsp")
                && is_node(stem)
            {
                listing.leaves.push(stem.into());
            }
        }
        listing.leaves.sort_unstable();
        listing.folders.sort_unstable();
        Ok(listing)
    }

    /// Where a link leads, if that is inside the root. Graphite's own finder follows others too, so it is said that
    /// they are left out.
    fn inside(&self, link: &Path) -> io::Result<Option<PathBuf>> {
        let target = if_there(link.canonicalize())?;
        if let Some(target) = target.as_ref().filter(|target| !target.starts_with(self.root)) {
            tracing::warn!(
                link = %link.display(), target = %target.display(),
                "link left out of the index: it leads out of the folder"
            );
        }
        Ok(target.filter(|target| target.starts_with(self.root)))
    }
}

/// Whether an error says that nothing is at a path. Any other (no permission, a failing disk, too many open files) says
/// that it is not known what is there.
pub(super) fn is_absence(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, InvalidInput, NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory | InvalidFilename | InvalidInput)
        // A link that leads to itself.
        || rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::LOOP)
}

/// The value, if there is one.
fn if_there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if is_absence(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a file name can be a node of a series name.
fn is_node(name: &str) -> bool {
    !name.is_empty() && !name.contains('.')
}

/// The path below the root of a node; `None` when a part of it cannot be a file name of its own.
pub(super) fn relative(node: &str) -> Option<PathBuf> {
    let parts = node.split('.');
    let sound = |part: &str| !part.is_empty() && !part.contains(['/', '\0']);
    parts.map(|part| sound(part).then_some(part)).collect()
}

/// The places in the tree where a series may be; the first one that is there holds it.
fn places(name: &str) -> Vec<String> {
    if names::is_tagged(name) {
        let hash = names::tagged_hash(name);
        return vec![format!("_tagged.{}.{}.{hash}", &hash[0..3], &hash[3..6]), names::tagged_node(name)];
    }
    vec![name.to_owned()]
}

/// The file, below the root, of a place.
pub(super) fn file_of(place: &str) -> Option<PathBuf> {
    let mut path = relative(place)?.into_os_string();
    path.push(".wsp");
    Some(path.into())
}

/// Finds files by name without listing folders. Remembers which folders are inside the root, so it is for one request.
pub(super) struct Finder<'a> {
    root: PathBuf,
    /// A tree whose leaves are known to be inside.
    known: Option<&'a Branch>,
    folders: HashMap<PathBuf, Option<PathBuf>>,
}

impl<'a> Finder<'a> {
    pub(super) fn new(root: &Path, known: Option<&'a Branch>) -> io::Result<Self> {
        Ok(Self { root: root.canonicalize()?, known, folders: HashMap::new() })
    }

    /// The file of a series, if there is one.
    ///
    /// # Errors
    /// It cannot be told whether there is.
    pub(super) fn file(&mut self, name: &str) -> io::Result<Option<PathBuf>> {
        let places = places(name);
        if let Some(place) = places.iter().find(|place| self.known.is_some_and(|tree| tree.has_leaf(place))) {
            return Ok(file_of(place).map(|file| self.root.join(file)));
        }
        for file in places.iter().filter_map(|place| file_of(place)) {
            let (Some(folder), Some(file)) = (file.parent(), file.file_name()) else { continue };
            let Some(folder) = self.folder(folder)? else { continue };
            let path = folder.join(file);
            let Some(metadata) = if_there(fs::symlink_metadata(&path))? else { continue };
            if metadata.is_file() {
                return Ok(Some(path));
            }
            if metadata.is_symlink() {
                let target = if_there(path.canonicalize())?;
                let target = target.filter(|target| target.starts_with(&self.root) && target.is_file());
                if target.is_some() {
                    return Ok(target);
                }
            }
        }
        Ok(None)
    }

    /// Whether a node is a folder.
    ///
    /// # Errors
    /// It cannot be told.
    pub(super) fn is_branch(&mut self, node: &str) -> io::Result<bool> {
        relative(node).map_or(Ok(false), |folder| Ok(self.folder(&folder)?.is_some()))
    }

    /// A folder below the root without links, if it is there and inside.
    fn folder(&mut self, relative: &Path) -> io::Result<Option<PathBuf>> {
        if let Some(folder) = self.folders.get(relative) {
            return Ok(folder.clone());
        }
        let folder = if_there(self.root.join(relative).canonicalize())?;
        let folder = folder.filter(|folder| folder.starts_with(&self.root) && folder.is_dir());
        self.folders.insert(relative.to_owned(), folder.clone());
        Ok(folder)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;
    use crate::series::Glob;

    fn touch(root: &Path, file: &str) {
        let path = root.join(file);
        fs::create_dir_all(path.parent().expect("a parent")).expect("created");
        fs::write(path, "").expect("written");
    }

    fn leaves(tree: &Branch) -> Vec<String> {
        let mut leaves = Vec::new();
        tree.each_leaf(&mut |name| {
            leaves.push(name.to_owned());
            true
        });
        leaves.sort();
        leaves
    }

    #[test]
    fn sees_series_and_no_more() {
        let outer = tempfile::tempdir().expect("a folder");
        let root = outer.path().join("whisper");
        for file in [
            "a/b.wsp",
            "a/b/c.wsp",
            "a/.hidden.wsp",
            ".git/x.wsp",
            "a/x.y.wsp",
            "a/readme.txt",
            "a/gone.wsp.tmp",
            "d.dir/e.wsp",
        ] {
            touch(&root, file);
        }
        touch(outer.path(), "secret/s.wsp");
        symlink(outer.path().join("secret"), root.join("out")).expect("linked");
        symlink(outer.path().join("secret/s.wsp"), root.join("a/s.wsp")).expect("linked");
        symlink(root.join("a"), root.join("again")).expect("linked");
        symlink(root.join("a/b.wsp"), root.join("one.wsp")).expect("linked");
        symlink(&root, root.join("a/round")).expect("linked");
        symlink(root.join("nowhere"), root.join("dangling.wsp")).expect("linked");
        let expected = ["a.b", "a.b.c", "again.b", "again.b.c", "one"];
        let found = scan(&root, None, 100).expect("scanned");
        assert_eq!(leaves(&found.tree), expected);
        assert_eq!((found.series, found.cut), (5, false));
        let few = scan(&root, None, 3).expect("scanned");
        assert_eq!((few.series, few.cut, leaves(&few.tree).len()), (3, true, 3));

        for known in [None, Some(&*found.tree)] {
            let mut finder = Finder::new(&root, known).expect("a folder");
            for name in expected {
                assert!(finder.file(name).expect("looked for").is_some_and(|f| f.is_file()), "{name}");
            }
            for name in [
                "out.s",
                "a.s",
                "a.x.y",
                "a",
                "b",
                "dangling",
                "..secret.s",
                "../secret/s",
                "a/b",
                "",
                ".",
                "a..b",
                "a.b.",
                "a.b\0",
                "a.../../secret/s",
            ] {
                assert_eq!(finder.file(name).expect("looked for"), None, "{name}");
            }
            for (node, branch) in [
                ("a", true),
                ("a.b", true),
                ("again", true),
                ("out", false),
                ("one", false),
                ("..", false),
                ("a.", false),
            ] {
                assert_eq!(finder.is_branch(node).expect("looked for"), branch, "{node}");
            }
        }
        assert!(scan(&root.join("nowhere"), None, 1).is_err());
    }

    #[test]
    fn links_to_each_other_end() {
        let root = tempfile::tempdir().expect("a folder");
        touch(root.path(), "x/1.wsp");
        touch(root.path(), "y/2.wsp");
        symlink(root.path().join("y"), root.path().join("x/to_y")).expect("linked");
        symlink(root.path().join("x"), root.path().join("y/to_x")).expect("linked");
        let names = leaves(&scan(root.path(), None, 1000).expect("scanned").tree);
        assert!(names.len() < 20 && names.contains(&"x.to_y.2".to_owned()), "{names:?}");
        let again = scan(root.path(), Some(&scan(root.path(), None, 1000).expect("scanned").tree), 1000);
        let third = scan(root.path(), Some(&again.expect("scanned").tree), 1000).expect("scanned");
        assert_eq!(leaves(&third.tree), names);
    }

    #[test]
    fn a_second_scan_lists_only_what_changed() {
        let root = tempfile::tempdir().expect("a folder");
        for file in ["a/x.wsp", "b/y.wsp", "b/c/z.wsp"] {
            touch(root.path(), file);
        }
        let first = scan(root.path(), None, 100).expect("scanned");
        let second = scan(root.path(), Some(&first.tree), 100).expect("scanned");
        let third = scan(root.path(), Some(&second.tree), 100).expect("scanned");
        assert!(Arc::ptr_eq(&second.tree, &third.tree));
        assert_eq!(third.series, 3);
        touch(root.path(), "b/c/new.wsp");
        let fourth = scan(root.path(), Some(&third.tree), 100).expect("scanned");
        assert_eq!(leaves(&fourth.tree), ["a.x", "b.c.new", "b.c.z", "b.y"]);
        assert!(Arc::ptr_eq(&third.tree.branches[0].1, &fourth.tree.branches[0].1));
        fs::remove_dir_all(root.path().join("b")).expect("removed");
        let fifth = scan(root.path(), Some(&fourth.tree), 100).expect("scanned");
        assert_eq!(leaves(&fifth.tree), ["a.x"]);
    }

    /// Root may read everything: then there is nothing to test.
    #[test]
    fn what_may_not_be_listed_is_not_empty() {
        let root = tempfile::tempdir().expect("a folder");
        for file in ["a/x.wsp", "b/y.wsp", "b/c/z.wsp"] {
            touch(root.path(), file);
        }
        let closed = root.path().join("b");
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).expect("closed");
        if fs::read_dir(&closed).is_ok() {
            return;
        }
        let first = scan(root.path(), None, 100).expect("scanned").tree;
        assert_eq!(leaves(&first), ["a.x"]);
        let known = |pattern: &str| first.find(&Glob::new(pattern).expect("a pattern"), &mut |_, _| true);
        assert!(known("a.*") && known("a.*.*") && !known("b.*") && !known("**.z") && known("*"));
        assert!(!first.all_known() && first.branch("a").is_some_and(|a| a.all_known()));
        let mut finder = Finder::new(root.path(), Some(&first)).expect("a finder");
        assert!(finder.file("b.y").is_err() && finder.is_branch("b.c").is_err());
        assert!(finder.file("a.y").expect("looked for").is_none());
        let second = scan(root.path(), Some(&first), 100).expect("scanned").tree;
        let third = scan(root.path(), Some(&second), 100).expect("scanned").tree;
        assert!(Arc::ptr_eq(&second, &third));
        fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).expect("opened");
        let last = scan(root.path(), Some(&third), 100).expect("scanned").tree;
        assert!(last.all_known());
        assert_eq!(leaves(&last), ["a.x", "b.c.z", "b.y"]);
    }

    #[test]
    fn tagged_series_have_two_places() {
        // hashlib.sha256(b"cpu.load;env=dev;host=h3") begins 422ee2.
        let files: Vec<PathBuf> = places("cpu.load;env=dev;host=h3").iter().filter_map(|p| file_of(p)).collect();
        assert!(files[0].starts_with("_tagged/422/ee2/"));
        assert_eq!(files[0].as_os_str().len(), "_tagged/422/ee2/.wsp".len() + 64);
        assert_eq!(files[1], Path::new("_tagged/422/ee2/cpu_DOT_load;env=dev;host=h3.wsp"));
        // A slash in a value is only possible where the file is named by the hash.
        let places = places("disk;mount=/var");
        assert!(file_of(&places[0]).is_some() && file_of(&places[1]).is_none());
    }
}
