//! The dependency rule: a module uses only modules that stand above it in `src/lib.rs`.

use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("readable folder") {
        let path = entry.expect("readable entry").path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

/// The modules named after `crate::` in a file, also within `use crate::{a, b::c}`.
fn used_modules(text: &str) -> Vec<String> {
    let word = |s: &str| s.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut used = Vec::new();
    for (at, _) in text.match_indices("crate::") {
        let rest = &text[at + "crate::".len()..];
        let Some(list) = rest.strip_prefix('{') else {
            used.push(word(rest));
            continue;
        };
        let mut depth = 0;
        let mut start = true;
        for (i, c) in list.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => start = true,
                c if start && !c.is_whitespace() => {
                    used.push(word(&list[i..]));
                    start = false;
                }
                _ => {}
            }
        }
    }
    used
}

#[test]
fn modules_depend_only_on_those_above_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let lib = fs::read_to_string(root.join("lib.rs")).expect("lib.rs is readable");
    let layers: Vec<&str> = lib.lines().filter_map(|l| l.strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    assert!(layers.len() >= 8 && layers[0] == "series", "the list of modules is read: {layers:?}");
    let (mut files, mut checked, mut faults) = (Vec::new(), 0, Vec::new());
    sources(&root, &mut files);
    for file in files {
        let relative = file.strip_prefix(&root).expect("below src");
        let first = relative.iter().next().and_then(|p| p.to_str()).expect("a name");
        let module = first.trim_end_matches(".rs");
        let Some(own) = layers.iter().position(|l| *l == module) else { continue };
        let text = fs::read_to_string(&file).expect("readable source");
        for used in used_modules(&text) {
            checked += 1;
            if let Some(at) = layers.iter().position(|l| *l == used)
                && at > own
            {
                faults.push(format!("{} uses `{used}`, which stands below `{module}` in lib.rs", relative.display()));
            }
        }
        if module == "functions" {
            for forbidden in ["tokio", "reqwest", "Now::read", "async fn"] {
                if text.contains(forbidden) {
                    faults
                        .push(format!("{}: functions are pure, `{forbidden}` has no place there", relative.display()));
                }
            }
        }
        if module != "http" && module != "web" && module != "main" && text.contains("actix_web") {
            faults.push(format!("{}: only `http` knows actix", relative.display()));
        }
    }
    assert!(checked > 30, "the uses are found: {checked}");
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}
