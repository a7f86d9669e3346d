//! Finding ONNX Runtime, which is a library of the system and not part of this program.

use crate::LoadError;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Names the library file.
const ENVIRONMENT: &str = "ORT_DYLIB_PATH";

/// Loads ONNX Runtime for this process; the first call decides which.
pub(super) fn load() -> Result<(), LoadError> {
    let path = find()?;
    // The environment that this builds is kept by the sessions that use it.
    ort::init_from(&path).map(drop).map_err(|error| match error {
        ort::LoadDynamicError::BadVersion { .. } => too_old(&path, 0),
        error => LoadError::Runtime { path: path.clone(), what: error.to_string() },
    })
}

/// Returns the path of ONNX Runtime: the file that the environment names and no other, otherwise the first that is new
/// enough.
pub(super) fn find() -> Result<PathBuf, LoadError> {
    if let Some(path) = std::env::var_os(ENVIRONMENT).filter(|path| !path.is_empty()) {
        let path = PathBuf::from(path);
        if !path.is_file() {
            let what = format!("{ENVIRONMENT} names it, but it is not a file");
            return Err(LoadError::Runtime { path, what });
        }
        return probe(&path).map(|()| path);
    }
    let folders = folders();
    let mut unfit = None;
    for path in folders.iter().flat_map(|folder| libraries(folder)) {
        match probe(&path) {
            Ok(()) => return Ok(path),
            Err(error) => unfit = unfit.or(Some(error)),
        }
    }
    let needed = ort::MINOR_VERSION;
    Err(unfit.unwrap_or(LoadError::NoRuntime { needed, looked: folders }))
}

/// Checks that a file is an ONNX Runtime that is new enough. A library that is too old would end the process when it is
/// used.
fn probe(path: &Path) -> Result<(), LoadError> {
    match ort::util::probe(path) {
        Some(minor) if minor >= ort::MINOR_VERSION => Ok(()),
        Some(minor) => Err(too_old(path, minor)),
        None => {
            let what =
                "it is not a library that this system can load, or not ONNX Runtime".to_owned();
            Err(LoadError::Runtime { path: path.to_owned(), what })
        }
    }
}

fn too_old(path: &Path, found: u32) -> LoadError {
    LoadError::RuntimeTooOld { path: path.to_owned(), found, needed: ort::MINOR_VERSION }
}

/// Returns the folders that contain libraries, those of the system first.
fn folders() -> Vec<PathBuf> {
    let listed = |name: &str| -> Vec<PathBuf> {
        std::env::var_os(name)
            .map(|list| std::env::split_paths(&list).collect())
            .unwrap_or_default()
    };
    let mut folders = listed("LD_LIBRARY_PATH");
    folders.extend(listed("DYLD_LIBRARY_PATH"));
    let own = std::env::current_exe().ok();
    folders.extend(own.and_then(|program| program.parent().map(Path::to_owned)));
    let usual = [
        "/usr/local/lib",
        "/usr/lib",
        "/usr/lib64",
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/opt/onnxruntime/lib",
        "/opt/homebrew/lib",
    ];
    folders.extend(usual.map(PathBuf::from));
    let mut packages = listed("PYTHONPATH");
    packages.extend(prefixes(&listed("PATH")).iter().flat_map(|prefix| packages_of(prefix)));
    folders.extend(packages.into_iter().map(|packages| packages.join("onnxruntime/capi")));
    folders.retain(|folder| !folder.as_os_str().is_empty());
    let mut seen = std::collections::BTreeSet::new();
    folders.retain(|folder| seen.insert(folder.clone()));
    folders
}

/// Returns the folders in which a Python is installed: the active environment, those of the `python3`s on `PATH` and of
/// their link targets, the user's and the system's own, and those of pyenv.
fn prefixes(path: &[PathBuf]) -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let mut prefixes: Vec<PathBuf> = variable("VIRTUAL_ENV").into_iter().collect();
    for python in path.iter().map(|folder| folder.join("python3")).filter(|path| path.is_file()) {
        let target = python.canonicalize().ok();
        let programs = std::iter::once(python).chain(target);
        prefixes.extend(programs.filter_map(|path| Some(path.parent()?.parent()?.to_owned())));
    }
    let home = variable("HOME");
    prefixes.extend(home.iter().map(|home| home.join(".local")));
    prefixes.extend(["/usr/local", "/usr"].map(PathBuf::from));
    let pyenv = variable("PYENV_ROOT").or_else(|| Some(home?.join(".pyenv")));
    prefixes.extend(pyenv.iter().flat_map(|root| entries(&root.join("versions"), "")));
    prefixes
}

/// Returns the folders of packages under a Python's prefix.
fn packages_of(prefix: &Path) -> Vec<PathBuf> {
    let versions = entries(&prefix.join("lib"), "python3").into_iter();
    versions.flat_map(|lib| ["site-packages", "dist-packages"].map(|name| lib.join(name))).collect()
}

/// Returns the files of a folder that have the library's name, the newest version first.
fn libraries(folder: &Path) -> Vec<PathBuf> {
    let mut found = entries(folder, "libonnxruntime.");
    found.extend(entries(folder, "onnxruntime.dll"));
    let version = |path: &PathBuf| -> Vec<u32> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.split('.').filter_map(|part| part.parse().ok()).collect()
    };
    found.sort_by_key(|path| std::cmp::Reverse(version(path)));
    found
}

/// Returns the entries of a folder whose names begin so, in the order of names.
fn entries(folder: &Path, begin: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let named = |name: &OsStr| name.to_string_lossy().starts_with(begin);
    let mut found: Vec<PathBuf> =
        entries.filter(|entry| named(&entry.file_name())).map(|entry| entry.path()).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_gives_its_libraries_the_newest_first() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["libonnxruntime.so.1.9.0", "libonnxruntime.so.1.24.2", "libonnx.so", "README"]
        {
            std::fs::write(dir.path().join(name), b"no library").unwrap();
        }
        let found = libraries(dir.path());
        let names: Vec<_> = found.iter().map(|path| path.file_name().unwrap()).collect();
        assert_eq!(names, ["libonnxruntime.so.1.24.2", "libonnxruntime.so.1.9.0"]);
        let error = probe(&found[0]).unwrap_err();
        assert!(matches!(error, LoadError::Runtime { .. }), "{error}");
    }

    /// A virtual environment's `python3` is a link to the system's; both places count.
    #[cfg(unix)]
    #[test]
    fn the_packages_of_every_python_on_the_path_are_looked_at() {
        let dir = tempfile::tempdir().unwrap();
        let [system, venv] = ["system", "venv"].map(|name| dir.path().join(name));
        for prefix in [&system, &venv] {
            std::fs::create_dir_all(prefix.join("bin")).unwrap();
            std::fs::create_dir_all(prefix.join("lib/python3.12/site-packages")).unwrap();
        }
        std::fs::write(system.join("bin/python3.12"), b"").unwrap();
        std::os::unix::fs::symlink(system.join("bin/python3.12"), venv.join("bin/python3"))
            .unwrap();
        let found: Vec<PathBuf> =
            prefixes(&[venv.join("bin")]).iter().flat_map(|prefix| packages_of(prefix)).collect();
        for prefix in [system.canonicalize().unwrap(), venv] {
            let packages = prefix.join("lib/python3.12/site-packages");
            assert!(found.contains(&packages), "{packages:?} {found:?}");
        }
        assert!(prefixes(&[]).contains(&PathBuf::from("/usr/local")));
    }

    #[test]
    fn a_library_that_is_too_old_is_an_error_that_names_both_versions() {
        let dir = tempfile::tempdir().unwrap();
        let (source, library) = (dir.path().join("old.c"), dir.path().join("libonnxruntime.so"));
        let code = r#"
            static const void *api(unsigned version) { (void)version; return 0; }
            static const char *version(void) { return "1.20.1"; }
            static const struct { const void *(*api)(unsigned); const char *(*version)(void); }
                base = { api, version };
            const void *OrtGetApiBase(void) { return &base; }
        "#;
        std::fs::write(&source, code).unwrap();
        let compiled = std::process::Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .args([&library, &source])
            .status();
        if !compiled.is_ok_and(|status| status.success()) {
            eprintln!("SKIPPED a_library_that_is_too_old: no C compiler here");
            return;
        }
        let error = probe(&library).unwrap_err();
        assert!(matches!(error, LoadError::RuntimeTooOld { found: 20, .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("1.20") && text.contains("1.24") && text.contains("pip"), "{text}");
    }

    #[test]
    fn a_missing_library_tells_where_it_was_looked_for() {
        let looked = vec![PathBuf::from("/usr/lib"), PathBuf::from("/opt/lib")];
        let text = LoadError::NoRuntime { needed: 24, looked }.to_string();
        for part in ["/usr/lib, /opt/lib", "pip install onnxruntime", "ORT_DYLIB_PATH", "1.24"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
