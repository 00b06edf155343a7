//! The structure of the core: which module imports which.
//!
//! The sources are read as text. A module is one that `lib.rs` names, with all
//! modules below it. It imports another if its code has a path into that one,
//! with `crate::...` or `super`. Code for tests does not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The modules that each module imports.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// No module imports another that imports it, directly or through others.
#[test]
fn no_cycle() {
    let graph = graph();
    let mut cycles = Vec::new();
    for (module, targets) in &graph {
        for target in targets.iter().filter(|target| reach(&graph, target).contains(module)) {
            cycles.push(format!("{module} -> {target}"));
        }
    }
    assert!(cycles.is_empty(), "these imports are part of a cycle: {cycles:#?}");
}

/// The errors are at the bottom: they import no other module.
#[test]
fn errors_import_nothing() {
    assert!(graph()["error"].is_empty());
}

/// The plan of a call and its outcome import no stage, not even through others.
#[test]
fn plan_and_outcome_know_no_stage() {
    let graph = graph();
    for module in ["plan", "outcome"] {
        let above = reach(&graph, module);
        for stage in ["reading", "selection", "pack", "assemble", "pipeline", "packer", "packing"] {
            assert!(graph.contains_key(stage), "no module {stage}");
            assert!(!above.contains(stage), "{module} imports {stage}");
        }
    }
}

/// The pipeline runs the stages, and no stage imports it. Only the packer,
/// which starts it, and the types made from its outcome do.
#[test]
fn no_stage_imports_the_pipeline() {
    let graph = graph();
    let importers: Vec<&str> = graph
        .iter()
        .filter(|(_, targets)| targets.contains("pipeline"))
        .map(|(module, _)| module.as_str())
        .collect();
    assert_eq!(["dropped", "packer", "packing"], *importers);
}

/// The reader of these tests sees every kind of path, and ignores comments,
/// literals and tests. Otherwise a cycle might go unseen.
#[test]
fn imports_are_found() {
    let code = r#"
        use crate::{alpha::A, beta::{B, b}, gamma};
        /// See [`crate::no::N`].
        fn code() -> crate::delta::D { super::epsilon::make("crate::no", '"', '{') }
        #[cfg(test)]
        mod tests { use crate::no; }
        fn more<'a>(_: &'a crate::zeta::Z) {}
        #[cfg(test)]
        use crate::no;
        #[cfg(not(test))]
        use super::super::eta;
    "#;
    assert_eq!(
        ["alpha", "beta", "delta", "epsilon", "gamma", "zeta"],
        *names_in(&code_of(code), 1).iter().map(String::as_str).collect::<Vec<_>>()
    );
    assert_eq!(
        ["alpha", "beta", "delta", "eta", "gamma", "zeta"],
        *names_in(&code_of(code), 2).iter().map(String::as_str).collect::<Vec<_>>()
    );
    assert_eq!("pack", exports("pub use pack::{A, deep::B};\npub use text::Text;")["B"]);
}

/// Returns the modules that `module` imports, directly or through others.
fn reach(graph: &Graph, module: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![module.to_owned()];
    while let Some(next) = open.pop() {
        for target in &graph[&next] {
            if found.insert(target.clone()) {
                open.push(target.clone());
            }
        }
    }
    found
}

/// Returns which module of the core imports which.
fn graph() -> Graph {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let homes = exports(&read(&root.join("lib.rs")));
    let mut graph = Graph::new();
    for file in files(&root) {
        let inner = file.strip_prefix(&root).expect("a file below the root").with_extension("");
        let parts: Vec<_> = inner.iter().map(|part| part.to_str().expect("a plain name")).collect();
        if parts == ["lib"] {
            continue;
        }
        let names = names_in(&code_of(&read(&file)), parts.len());
        graph.entry(parts[0].to_owned()).or_default().extend(names);
    }
    let modules: BTreeSet<String> = graph.keys().cloned().collect();
    for (module, targets) in &mut graph {
        // A name that the crate exports belongs to its module.
        *targets = targets.iter().map(|name| homes.get(name).unwrap_or(name).clone()).collect();
        targets.retain(|target| target != module && modules.contains(target));
    }
    graph
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).expect("a source in UTF-8")
}

/// Returns all files below `folder`.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

/// Returns the module of each name that `root` exports.
fn exports(root: &str) -> BTreeMap<String, String> {
    let mut homes = BTreeMap::new();
    for statement in code_of(root).split(';') {
        let Some(path) = statement.trim().strip_prefix("pub use ") else { continue };
        let words: Vec<_> = words_of(path).collect();
        for name in &words[1..] {
            homes.insert((*name).to_owned(), words[0].to_owned());
        }
    }
    homes
}

fn words_of(code: &str) -> impl Iterator<Item = &str> {
    code.split(|letter: char| !is_name(letter)).filter(|word| !word.is_empty())
}

fn is_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Returns the names directly below the root of the crate in the paths of
/// `code`. `depth` is the number of `super` that lead there.
fn names_in(code: &str, depth: usize) -> BTreeSet<String> {
    let root = "super::".repeat(depth);
    let mut found = BTreeSet::new();
    for prefix in ["crate::", root.as_str()] {
        for (at, _) in code.match_indices(prefix) {
            let rest = &code[at + prefix.len()..];
            if code[..at].ends_with(|letter| is_name(letter) || letter == ':') {
                continue;
            }
            found.extend(first_names(rest).map(str::to_owned));
        }
    }
    found.remove("super");
    found
}

/// Returns the first name of the path at the start of `code`, or of each path
/// of a list in braces.
fn first_names(code: &str) -> impl Iterator<Item = &str> {
    let list = code.strip_prefix('{').map(|list| &list[..end_of(list, '{', '}')]);
    let mut depth = 0;
    let paths = list.unwrap_or(code).split(move |letter| {
        depth += i32::from(letter == '{') - i32::from(letter == '}');
        letter == ',' && depth == 0
    });
    let paths = paths.take(if list.is_some() { usize::MAX } else { 1 });
    paths.filter_map(|path| words_of(path).next())
}

/// Returns where the bracket ends that was opened in front of `code`.
fn end_of(code: &str, open: char, close: char) -> usize {
    let mut depth = 1;
    let end = code.char_indices().find(|&(_, letter)| {
        depth += i32::from(letter == open) - i32::from(letter == close);
        depth == 0
    });
    end.expect("a bracket that is closed").0
}

/// Returns `source` without comments, literals and code for tests.
fn code_of(source: &str) -> String {
    const TESTS: &str = "#[cfg(test)]";
    let mut code = without_literals(source);
    while let Some(start) = code.find(TESTS) {
        let item = &code[start + TESTS.len()..];
        let body = item.find(['{', ';']).expect("an item");
        let end = match item[body..].strip_prefix('{') {
            Some(rest) if !item[..body].trim_start().starts_with("use ") => {
                body + 1 + end_of(rest, '{', '}')
            }
            _ => item.find(';').expect("a statement"),
        };
        code.replace_range(start..=start + TESTS.len() + end, "");
    }
    code
}

/// Returns `source` without comments and literals.
fn without_literals(source: &str) -> String {
    let mut code = String::new();
    let mut rest = source;
    while let Some(letter) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if letter == '"' {
            quoted(rest, '"')
        } else if let Some(raw) = rest.strip_prefix("r#\"") {
            3 + raw.find("\"#").expect("a raw string that ends") + 2
        } else if letter == '\'' && is_character(rest) {
            quoted(rest, '\'')
        } else {
            code.push(letter);
            rest = &rest[letter.len_utf8()..];
            continue;
        };
        rest = &rest[skipped..];
    }
    code
}

/// Returns whether the quote at the start of `rest` begins a character, and not
/// a lifetime.
fn is_character(rest: &str) -> bool {
    let mut letters = rest.chars().skip(1);
    letters.next() == Some('\\') || letters.next() == Some('\'')
}

/// Returns the length of the literal at the start of `rest`.
fn quoted(rest: &str, quote: char) -> usize {
    let mut is_escaped = false;
    let end = rest.char_indices().skip(1).find(|&(_, letter)| {
        let ends = letter == quote && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
        ends
    });
    end.expect("a literal that ends").0 + quote.len_utf8()
}
