//! Tokenizers of models that are not in this binary, found by the model's name
//! where the user keeps files: in the folders that `BUDGETEER_TOKENIZERS` names,
//! and in the local cache of Hugging Face, which is only read.

use std::cmp::Reverse;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use super::model_names::{after_last_slash, bare, families};
use super::models::{UNKNOWN, WAY_NAMES, WAYS};
use crate::count::Tokenizer;
use crate::error::{Error, ErrorKind};

/// The environment variable that names the folders, separated as in `PATH`.
const VARIABLE: &str = "BUDGETEER_TOKENIZERS";

/// The most bytes of a file's name: file systems allow no more.
const NAME_MAX: usize = 200;

/// How the files below the folders end.
const ENDINGS: [&str; 3] = [".json", ".model", ".tiktoken"];

impl Tokenizer {
    /// Returns the tokenizer that the user has for a model; None without one.
    /// No network is used. Whether the binary has the model's tokenizer is not
    /// asked.
    ///
    /// Below the folders that the environment variable `BUDGETEER_TOKENIZERS`
    /// names, separated as in `PATH`, it is `NAME.json`, `NAME.model`,
    /// `NAME.tiktoken` or a folder `NAME` with a file as for
    /// [`Tokenizer::open`]: the name of the model or of its family, as it is, in
    /// lower case, or with `-` or `--` in place of `/` and `:`. In the local
    /// cache of Hugging Face (`HF_HUB_CACHE`, `HF_HOME`) it is the model's main
    /// snapshot, or else the newest one. The file is looked for and read at each
    /// call: keep what this returns.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](crate::ErrorKind::Io) where a folder or the file cannot
    /// be read, and [`ErrorKind::Tokenizer`](crate::ErrorKind::Tokenizer) where
    /// the file is no tokenizer that can be counted exactly: the message names
    /// it.
    ///
    /// # Examples
    ///
    /// ```
    /// use budgeteer::Tokenizer;
    ///
    /// assert_eq!(Tokenizer::find("acme-7b")?, None);
    /// # Ok::<(), budgeteer::Error>(())
    /// ```
    pub fn find(model: &str) -> Result<Option<Self>, Error> {
        let folders = env::var_os(VARIABLE).unwrap_or_default();
        let folders: Vec<PathBuf> = env::split_paths(&folders).collect();
        let found = path_of(&file_names(model), &folders, hub(env::var_os).as_deref());
        let Some(path) = found.map_err(|error| Error::io(&error))? else { return Ok(None) };
        Self::open(&path).map(Some).map_err(|error| match error.kind() {
            ErrorKind::Tokenizer => {
                let model: String = model.chars().take(80).collect();
                let path = path.display();
                Error::tokenizer(format!(
                    "the tokenizer of the model {model:?}, {path}, cannot be used: {error}"
                ))
            }
            _ => error,
        })
    }
}

/// Returns the names under which a file may have the tokenizer of a model, the
/// best first.
fn file_names(model: &str) -> Vec<String> {
    let bare = bare(model);
    let last = bare[bare.len() - 1];
    let behind_slash = bare.iter().map(|name| after_last_slash(name));
    let before_colon = last.split(':').next();
    let names = bare.iter().copied().chain(behind_slash).chain(before_colon);
    let mut names: Vec<String> = names.map(str::to_string).collect();
    if let [(family, way, true)] = *families(model)
        && way != UNKNOWN.1
        && !WAY_NAMES[way].ends_with('?')
        && WAYS[way].1.is_some()
    {
        let way = WAY_NAMES[way];
        names.extend([family.to_string(), way.to_string(), way.replace('-', "")]);
    }
    unique(names)
}

/// Returns the names that are not empty, each once.
fn unique(names: Vec<String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for name in names {
        if !name.is_empty() && !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// Returns the path of the first file, or folder with one, that has one of the
/// names.
fn path_of(
    names: &[String],
    folders: &[PathBuf],
    hub: Option<&Path>,
) -> io::Result<Option<PathBuf>> {
    for name in names {
        for folder in folders.iter().filter(|folder| !folder.as_os_str().is_empty()) {
            if let Some(path) = in_folder(name, folder)? {
                return std::path::absolute(path).map(Some);
            }
        }
    }
    for (name, hub) in names.iter().filter_map(|name| Some((name, hub?))) {
        if let Some(path) = in_cache(name, hub)? {
            return std::path::absolute(path).map(Some);
        }
    }
    Ok(None)
}

fn in_folder(name: &str, folder: &Path) -> io::Result<Option<PathBuf>> {
    for spelled in spellings(name) {
        for ending in ENDINGS {
            let file = folder.join(format!("{spelled}{ending}"));
            if metadata(&file)?.is_some_and(|file| file.is_file()) {
                return Ok(Some(file));
            }
        }
        let inner = folder.join(spelled);
        if metadata(&inner)?.is_some_and(|inner| inner.is_dir()) {
            return Ok(Some(inner));
        }
    }
    Ok(None)
}

/// Returns how a name may be written as that of a file below a folder.
fn spellings(name: &str) -> Vec<String> {
    let lower = name.to_ascii_lowercase();
    let [flat, flatter] = ["-", "--"].map(|sign| lower.replace(['/', ':'], sign));
    let mut names = unique(vec![name.to_string(), lower, flat, flatter]);
    // A name may come from a request: it must not lead out of the folder.
    names.retain(|name| {
        let mut parts = name.split(['/', '\\']);
        name.len() <= NAME_MAX
            && is_printable(name)
            && parts.all(|part| part.contains(|char| char != '.' && char != ' '))
    });
    names
}

/// Returns whether no character of a text is one of control, of spacing other
/// than a space, or of none that is known.
fn is_printable(text: &str) -> bool {
    let escaped = text.matches(['\\', '\'', '"']).count();
    // A mark is shown as it is only behind another character.
    format!("a{text}").escape_debug().count() == 1 + text.chars().count() + escaped
}

/// Returns the snapshot of a model in the cache, whose name may lack that of its
/// maker.
fn in_cache(name: &str, hub: &Path) -> io::Result<Option<PathBuf>> {
    let wanted = name.to_ascii_lowercase().replace('/', "--");
    let Ok(models) = entries(hub) else { return Ok(None) };
    for model in models {
        let folder = model.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let Some(("models", known)) = folder.split_once("--") else { continue };
        let bare = known.split_once("--").map(|(_, bare)| bare);
        if (wanted == known || Some(&*wanted) == bare)
            && let Some(path) = snapshot(&model)?
        {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// Returns the snapshot of a cached model that has a tokenizer: the main one, or
/// the newest.
fn snapshot(model: &Path) -> io::Result<Option<PathBuf>> {
    let Ok(mut folders) = entries(&model.join("snapshots")) else { return Ok(None) };
    let modified = |folder: &PathBuf| fs::metadata(folder)?.modified();
    let Ok(times) = folders.iter().map(modified).collect::<io::Result<Vec<_>>>() else {
        return Ok(None);
    };
    let main = fs::read_to_string(model.join("refs").join("main")).unwrap_or_default();
    let main = OsStr::new(main.trim());
    let mut order: Vec<usize> = (0..folders.len()).collect();
    order.sort_by_key(|&nth| (folders[nth].file_name() != Some(main), Reverse(times[nth])));
    for nth in order {
        for file in Tokenizer::FILES {
            if metadata(&folders[nth].join(file))?.is_some_and(|file| file.is_file()) {
                return Ok(Some(folders.swap_remove(nth)));
            }
        }
    }
    Ok(None)
}

/// Returns the folder of Hugging Face's cache, as the variables of the
/// environment say.
fn hub(variable: impl Fn(&'static str) -> Option<OsString>) -> Option<PathBuf> {
    let variable = |name| variable(name).filter(|value| !value.is_empty());
    let hub = variable("HF_HUB_CACHE").map(PathBuf::from).or_else(|| {
        let home = variable("HF_HOME").unwrap_or_else(|| "~/.cache/huggingface".into());
        Some(PathBuf::from(home).join("hub"))
    })?;
    match hub.strip_prefix("~") {
        Ok(rest) => Some(env::home_dir()?.join(rest)),
        Err(_) => Some(hub),
    }
}

/// Returns what is in a folder, sorted.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = folder.read_dir()?.map(|entry| Ok(entry?.path()));
    let mut entries: Vec<PathBuf> = entries.collect::<io::Result<_>>()?;
    entries.sort();
    Ok(entries)
}

/// Returns what is at a path; None for nothing.
fn metadata(path: &Path) -> io::Result<Option<fs::Metadata>> {
    use io::ErrorKind::{NotADirectory, NotFound};
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => Ok(None),
        Err(error) => {
            Err(io::Error::new(error.kind(), format!("cannot read {}: {error}", path.display())))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use serde_json::Value;

    use super::*;

    #[test]
    #[cfg(unix)]
    fn only_what_is_nowhere_is_nothing() {
        let here = env::temp_dir();
        assert!(metadata(&here).is_ok_and(|found| found.is_some()));
        assert!(metadata(&here.join("no such file")).is_ok_and(|found| found.is_none()));
        let error = metadata(&here.join("a".repeat(5_000))).expect_err("no name is as long");
        assert!(error.to_string().starts_with("cannot read "), "{error}");
    }

    /// The cases of the repository; none in the package, which has no folder of tests.
    fn cases(kind: &str) -> Vec<Value> {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
        if !tests.exists() {
            return Vec::new();
        }
        let cases = fs::read_to_string(tests.join("cases/find_files.json")).expect("it is there");
        let mut cases: Value = serde_json::from_str(&cases).expect("it is JSON");
        serde_json::from_value(cases[kind].take()).expect("it is a list")
    }

    fn text(value: &Value) -> &str {
        value.as_str().expect("it is a text")
    }

    #[test]
    fn names_are_those_of_python() {
        for case in cases("names") {
            let expected: Vec<String> =
                serde_json::from_value(case["names"].clone()).expect("they are texts");
            assert_eq!(expected, file_names(text(&case["model"])), "{case}");
        }
    }

    /// A variable that is empty is none.
    #[test]
    fn the_hub_is_where_the_variables_say() {
        let home = env::home_dir().expect("there is one");
        for (cache, folder, expected) in [
            ("/hub", "/home", PathBuf::from("/hub")),
            ("", "/home", PathBuf::from("/home/hub")),
            ("~/hub", "/home", home.join("hub")),
            ("", "", home.join(".cache/huggingface/hub")),
        ] {
            let variable = |name| match name {
                "HF_HUB_CACHE" => Some(cache.into()),
                _ => Some(folder.into()),
            };
            assert_eq!(Some(expected), hub(variable), "{cache}, {folder}");
        }
        assert_eq!(hub(|_| Some("".into())), hub(|_| None));
    }

    /// What Python finds is found, among the same files.
    #[test]
    fn files_are_those_of_python() {
        let root = env::temp_dir().join(format!("budgeteer-find-files-{}", std::process::id()));
        for case in cases("found") {
            for (nth, file) in (0..).zip(case["files"].as_array().expect("it is a list")) {
                let file = root.join(text(file));
                let folder = file.parent().expect("it has one");
                fs::create_dir_all(folder).expect("it can be made");
                fs::write(&file, "aa").expect("it can be written");
                let time = SystemTime::UNIX_EPOCH + Duration::from_secs(nth);
                let folder = fs::File::open(folder).expect("it is there");
                folder.set_modified(time).expect("it can be set");
            }
            let folders = ["", "none", "own", "other"].map(|folder| match folder {
                "" => PathBuf::new(),
                _ => root.join(folder),
            });
            let found =
                path_of(&file_names(text(&case["model"])), &folders, Some(&root.join("hub")));
            let expected = case["found"].as_str().map(|path| root.join(path));
            assert_eq!(expected, found.expect("all is read"), "{case}");
            fs::remove_dir_all(&root).expect("it is there");
        }
    }
}
