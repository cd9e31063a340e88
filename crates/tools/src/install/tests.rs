use super::*;
use crate::catalog::{Git, GoModule, Library};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const PROGRAM: &str = "#include <math.h>\n#include <stdio.h>\nint main(int n, char **v) \
                       { (void)v; printf(\"%g\\n\", sqrt(n * 16)); return 0; }\n";

fn run(program: &str, arguments: &[&str], directory: &Path) -> String {
    let mut command = Command::new(program);
    // Settings of whoever runs the tests play no part.
    for (name, value) in [
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_AUTHOR_NAME", "test"),
        ("GIT_AUTHOR_EMAIL", "test@localhost"),
        ("GIT_COMMITTER_NAME", "test"),
        ("GIT_COMMITTER_EMAIL", "test@localhost"),
    ] {
        command.env(name, value);
    }
    let output = command.args(arguments).current_dir(directory).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A repository whose second commit is newer than the wanted one, with the wanted one.
fn repository(directory: &Path, text: &str) -> String {
    let git = |arguments: &[&str]| run("git", arguments, directory);
    git(&["init", "--quiet"]);
    fs::write(directory.join("toy.c"), text).unwrap();
    fs::write(directory.join("Makefile"), "all:\n\tfalse\n").unwrap();
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", "one"]);
    let wanted = git(&["rev-parse", "HEAD"]);
    fs::write(directory.join("toy.c"), "#error newer\n").unwrap();
    git(&["commit", "--quiet", "-a", "-m", "two"]);
    wanted
}

/// A tool of the table; tables live as long as the program.
fn toy(version: &str, source: Source) -> Tool {
    Tool {
        name: "toy",
        about: "a toy",
        licence: "none",
        programs: &["toy"],
        version: String::from(version).leak(),
        source,
    }
}

fn from_git(version: &str) -> Tool {
    let git = Git {
        url: "/no/such/repository",
        file: "toy.c",
        libraries: &["-lm"],
    };
    toy(version, Source::Git(git))
}

fn installer(root: &Path, from: &Path) -> Installer {
    let from = from.display().to_string();
    Installer::new(Cache::in_directory(root)).with_source(Some(from))
}

/// Names in the directory of the tools, where a failed installation leaves nothing.
fn left(root: &Path) -> Vec<String> {
    let entries = fs::read_dir(root.join("tools"));
    let names = entries
        .into_iter()
        .flatten()
        .map(|e| e.unwrap().file_name());
    names.map(|name| name.into_string().unwrap()).collect()
}

#[test]
fn a_commit_is_compiled_from_a_mirror_and_found_by_its_name() {
    let (root, mirror) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let commit = repository(mirror.path(), PROGRAM);
    let tool = from_git(&commit);
    let mut steps = Vec::new();
    let installer = installer(root.path(), mirror.path());
    let installed = installer.install(&tool, None, &mut |step| steps.push(step));
    let installed = installed.unwrap();
    assert_eq!(installed.version, commit);
    let from = mirror.path().display().to_string();
    assert_eq!(steps, [Step::Fetching(from), Step::Compiling]);

    let cache = Cache::in_directory(root.path());
    assert_eq!(cache.current_version(&tool).unwrap(), commit[..12]);
    let program = cache.bin_dir().join("toy");
    assert_eq!(run(program.to_str().unwrap(), &[], root.path()), "4");
    let made_from = fs::read_to_string(installed.directory.join(TOOL_FILE)).unwrap();
    assert!(
        made_from.starts_with(&format!("commit {commit}, compiled by ")),
        "{made_from}"
    );

    // It is there now: the repository is not asked again.
    drop(mirror);
    let again = installer.install(&tool, None, &mut |step| panic!("{step:?}"));
    assert_eq!(again.unwrap(), installed);
}

#[test]
fn a_compiler_of_root_runs_as_somebody_else() {
    let Some(user) = User::for_builds() else {
        return ::tests::skipped("only root has rights to lose");
    };
    let (root, mirror) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let commit = repository(mirror.path(), PROGRAM);
    let compiler = root.path().join("compiler");
    let script = "#!/bin/sh\n[ $1 = --version ] || id -u > \"${4%/*}/uid\"\nexec cc \"$@\"\n";
    ::tests::write_program(&compiler, script);
    let installer = installer(root.path(), mirror.path()).with_compiler(&compiler);
    let installer = installer.with_user(Some(user.clone()));
    let tool = from_git(&commit);
    let installed = installer.install(&tool, None, &mut drop).unwrap();
    let builds = root.path().join(format!("tools/build-{}", user.uid));
    let mut builds = fs::read_dir(builds).unwrap();
    let uid = builds.next().unwrap().unwrap().path().join("uid");
    assert_eq!(
        fs::read_to_string(uid).unwrap().trim(),
        user.uid.to_string()
    );
    let program = installed.directory.join("bin/toy");
    let owner = std::os::unix::fs::MetadataExt::uid(&program.metadata().unwrap());
    assert_eq!(owner, 0);
    assert_eq!(run(program.to_str().unwrap(), &[], root.path()), "4");
}

#[test]
fn a_source_is_no_option_of_git() {
    let root = tempfile::tempdir().unwrap();
    let mark = root.path().join("ran");
    let source = format!("--upload-pack=touch {}; x@y:z", mark.display());
    let installer = Installer::new(Cache::in_directory(root.path())).with_source(Some(source));
    let tool = from_git(&"0".repeat(40));
    let error = installer.install(&tool, None, &mut drop).unwrap_err();
    assert!(matches!(error, Error::Git(_)), "{error}");
    assert!(!mark.exists());
    assert_eq!(left(root.path()), Vec::<String>::new());
}

#[test]
fn another_commit_than_that_of_the_table_is_installed_by_name() {
    let (root, mirror) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let commit = repository(mirror.path(), PROGRAM);
    let tool = from_git(&"0".repeat(40));
    let installer = installer(root.path(), mirror.path());
    let error = installer.install(&tool, None, &mut drop).unwrap_err();
    assert!(matches!(error, Error::NoCommit { .. }), "{error}");
    assert!(error.to_string().contains(&"0".repeat(40)), "{error}");
    assert_eq!(left(root.path()), Vec::<String>::new());

    let installed = installer.install(&tool, Some(&commit), &mut drop);
    assert_eq!(installed.unwrap().version, commit);
    for wrong in ["main", "-x", &commit[..12], "../../x"] {
        let error = installer.install(&tool, Some(wrong), &mut drop);
        let error = error.unwrap_err();
        assert!(error.is_usage() && error.remedy().is_some(), "{error}");
    }
}

#[test]
fn what_cannot_be_fetched_or_compiled_is_an_error_with_a_remedy() {
    let (root, mirror) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let commit = repository(mirror.path(), "#error no\n");
    let tool = from_git(&commit);
    let none = Installer::new(Cache::in_directory(root.path()));
    let error = none.install(&tool, None, &mut drop).unwrap_err();
    assert!(
        error.to_string().contains("/no/such/repository")
            && error.remedy().unwrap().contains("--from"),
        "{error}"
    );

    let installer = installer(root.path(), mirror.path());
    let error = installer.install(&tool, None, &mut drop).unwrap_err();
    assert!(
        error.to_string().contains("compiled") && error.to_string().contains("#error no"),
        "{error}"
    );

    let without = installer.with_compiler("no-such-compiler");
    let error = without.install(&tool, None, &mut |step| panic!("{step:?}"));
    let error = error.unwrap_err();
    assert!(error.to_string().contains("`no-such-compiler`"), "{error}");
    assert!(error.remedy().unwrap().contains("apt-get install gcc"));
    assert_eq!(left(root.path()), Vec::<String>::new());
}

/// A package with a program of C, and its checksum.
fn package(directory: &Path) -> (PathBuf, String) {
    let tree = directory.join("tree");
    let (bin, control) = (tree.join("usr/bin"), tree.join("DEBIAN"));
    fs::create_dir_all(&bin).unwrap();
    fs::create_dir_all(&control).unwrap();
    fs::set_permissions(&control, fs::Permissions::from_mode(0o755)).unwrap();
    let about = "Package: toy\nVersion: 1-1\nArchitecture: amd64\nMaintainer: nobody\n\
                 Description: a toy\n";
    fs::write(control.join("control"), about).unwrap();
    fs::write(directory.join("toy.c"), PROGRAM).unwrap();
    run("cc", &["-o", "tree/usr/bin/toy", "toy.c", "-lm"], directory);
    run(
        "dpkg-deb",
        &["--build", "tree", "toy_1-1_amd64.deb"],
        directory,
    );
    let file = directory.join("toy_1-1_amd64.deb");
    let sum = run("sha256sum", &[file.to_str().unwrap()], directory);
    let sum = sum.split_whitespace().next().unwrap().to_owned();
    (file, sum)
}

fn from_package(sha256: &str, machine: &'static str) -> Tool {
    let package = Package {
        path: "pool/main/t/toy/toy_1-1_amd64.deb",
        sha256: String::from(sha256).leak(),
        machine,
        libraries: &[],
    };
    toy("1-1", Source::Package(package))
}

#[test]
fn a_package_is_unpacked_where_its_checksum_is_right() {
    let (root, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (file, sum) = package(place.path());
    let here = std::env::consts::ARCH;
    let wrong = from_package(&"0".repeat(64), here);
    let error = installer(root.path(), &file).install(&wrong, None, &mut drop);
    let error = error.unwrap_err();
    assert!(error.to_string().contains(&sum), "{error}");
    assert!(error.remedy().unwrap().contains("--from"), "{error}");
    let elsewhere = from_package(&sum, "m68k");
    let error = installer(root.path(), &file).install(&elsewhere, None, &mut drop);
    assert!(error.unwrap_err().to_string().contains("for m68k"));
    assert_eq!(left(root.path()), Vec::<String>::new());

    // The package, the directory that it is in, a mirror as a directory and as a URL.
    let mirror = place.path().join("mirror");
    let pool = mirror.join("pool/main/t/toy");
    fs::create_dir_all(&pool).unwrap();
    fs::copy(&file, pool.join("toy_1-1_amd64.deb")).unwrap();
    let tool = from_package(&sum, here);
    for from in [file.as_path(), place.path(), &mirror] {
        let root = tempfile::tempdir().unwrap();
        let installed = installer(root.path(), from).install(&tool, None, &mut drop);
        let installed = installed.unwrap();
        let program = Cache::in_directory(root.path()).bin_dir().join("toy");
        assert_eq!(
            run(program.to_str().unwrap(), &["x"], root.path()),
            "5.65685"
        );
        let made_from = fs::read_to_string(installed.directory.join(TOOL_FILE)).unwrap();
        assert_eq!(made_from, "Debian package toy 1-1\n");
    }
    let error = installer(root.path(), &place.path().join("none")).install(&tool, None, &mut drop);
    assert!(matches!(error, Err(Error::NotFetched { .. })), "{error:?}");
    let other = installer(root.path(), &file).install(&tool, Some("2-1"), &mut drop);
    assert!(other.unwrap_err().remedy().unwrap().contains("1-1"));
}

#[test]
fn libraries_that_a_program_lacks_are_found() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    fs::write(at("own.c"), "int own(void) { return 0; }\n").unwrap();
    fs::write(
        at("toy.c"),
        "int own(void); int main(void) { return own(); }\n",
    )
    .unwrap();
    run(
        "cc",
        &["-shared", "-fPIC", "-o", "libown.so", "own.c"],
        place.path(),
    );
    fs::create_dir(at("bin")).unwrap();
    run(
        "cc",
        &["-o", "bin/toy", "toy.c", "./libown.so"],
        place.path(),
    );
    fs::remove_file(at("libown.so")).unwrap();
    let tool = from_package("", "");
    let missing = missing_libraries(&tool, &at("bin"), Path::new("")).unwrap();
    assert_eq!(missing.len(), 1);
    assert!(missing[0].contains("libown.so"), "{missing:?}");
}

/// A package with these files below `tree`, and its checksum.
fn built(directory: &Path, name: &str) -> String {
    let control = directory.join("tree/DEBIAN");
    fs::create_dir_all(&control).unwrap();
    fs::set_permissions(&control, fs::Permissions::from_mode(0o755)).unwrap();
    let about = format!(
        "Package: {name}\nVersion: 1-1\nArchitecture: amd64\nMaintainer: nobody\n\
         Description: a toy\n"
    );
    fs::write(control.join("control"), about).unwrap();
    let file = format!("{name}_1-1_amd64.deb");
    run("dpkg-deb", &["--build", "tree", &file], directory);
    fs::remove_dir_all(directory.join("tree")).unwrap();
    let sum = run("sha256sum", &[&file], directory);
    sum.split_whitespace().next().unwrap().to_owned()
}

/// The package toy, whose program needs the library of the package libown1.
fn packages_with_a_library(place: &Path, libraries: bool) -> Tool {
    let here = std::env::consts::ARCH;
    let lib = place.join(format!("tree/usr/lib/{here}-linux-gnu"));
    fs::create_dir_all(&lib).unwrap();
    fs::write(place.join("own.c"), "int own(void) { return 42; }\n").unwrap();
    let program = "#include <stdio.h>\nint own(void);\nint main(void) \
                   { printf(\"%d\\n\", own()); return 0; }\n";
    fs::write(place.join("toy.c"), program).unwrap();
    let so = lib.join("libown.so");
    let so = so.to_str().unwrap();
    let soname = "-Wl,-soname,libown.so";
    run(
        "cc",
        &["-shared", "-fPIC", soname, "-o", so, "own.c"],
        place,
    );
    run("cc", &["-o", "toy", "toy.c", so], place);
    let of_library = built(place, "libown1");
    fs::create_dir_all(place.join("tree/usr/bin")).unwrap();
    fs::rename(place.join("toy"), place.join("tree/usr/bin/toy")).unwrap();
    let tool = from_package(&built(place, "toy"), here);
    let Source::Package(package) = tool.source else {
        panic!("{tool:?}");
    };
    let library = Library {
        package: "libown1",
        path: "pool/main/o/own/libown1_1-1_amd64.deb",
        sha256: of_library.leak(),
    };
    let libraries: &[Library] = match libraries {
        true => vec![library].leak(),
        false => &[],
    };
    toy(
        "1-1",
        Source::Package(Package {
            libraries,
            ..package
        }),
    )
}

#[test]
fn a_library_that_is_not_installed_is_unpacked_beside_the_program() {
    let (root, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let tool = packages_with_a_library(place.path(), true);
    // From the directory of both packages, and from the package whose neighbour the library is.
    for from in [place.path(), &place.path().join("toy_1-1_amd64.deb")] {
        let cache = root.path().join(from.file_name().unwrap());
        let installed = installer(&cache, from).install(&tool, None, &mut drop);
        installed.unwrap();
        let program = Cache::in_directory(&cache).bin_dir().join("toy");
        assert_eq!(run(program.to_str().unwrap(), &[], root.path()), "42");
    }
}

#[test]
fn a_program_without_its_libraries_is_an_error_that_names_them() {
    let (root, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let tool = packages_with_a_library(place.path(), false);
    let error = installer(root.path(), place.path()).install(&tool, None, &mut drop);
    let error = error.unwrap_err();
    assert!(error.to_string().contains("libown.so"), "{error}");
    assert_eq!(left(root.path()), Vec::<String>::new());

    let (root, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let tool = packages_with_a_library(place.path(), true);
    let Source::Package(package) = tool.source else {
        panic!("{tool:?}");
    };
    let wrong = Library {
        sha256: "0",
        ..package.libraries[0]
    };
    let package = Package {
        libraries: vec![wrong].leak(),
        ..package
    };
    let tool = toy("1-1", Source::Package(package));
    let error = installer(root.path(), place.path()).install(&tool, None, &mut drop);
    assert!(
        matches!(error, Err(Error::OtherChecksum { .. })),
        "{error:?}"
    );
}

/// The module of a tool in a directory that is laid out as a proxy, and whether its program says so.
fn module_proxy(directory: &Path, sum: &'static str) -> Tool {
    let versions = directory.join("example.org/toy/@v");
    fs::create_dir_all(&versions).unwrap();
    let text = "module example.org/toy\n\ngo 1.17\n";
    fs::write(versions.join("v1.0.0.mod"), text).unwrap();
    fs::write(versions.join("v1.0.0.info"), "{\"Version\":\"v1.0.0\"}\n").unwrap();
    let inside = directory.join("zip/example.org/toy@v1.0.0");
    fs::create_dir_all(&inside).unwrap();
    fs::write(inside.join("go.mod"), text).unwrap();
    let main = "package main\n\nfunc main() { println(\"toy\") }\n";
    fs::write(inside.join("main.go"), main).unwrap();
    // An archive of a module has files only.
    let script = "import sys, zipfile\nwith zipfile.ZipFile(sys.argv[1], 'w') as z:\n \
                  for f in ('go.mod', 'main.go'):\n  z.write('zip/example.org/toy@v1.0.0/' + f, 'example.org/toy@v1.0.0/' + f)\n";
    let archive = versions.join("v1.0.0.zip").display().to_string();
    run("python3", &["-c", script, &archive], directory);
    let module = GoModule {
        path: "example.org/toy",
        sum,
    };
    toy("v1.0.0", Source::Go(module))
}

#[test]
fn a_module_of_go_is_compiled_if_it_is_that_of_the_table_and_leaves_nothing_if_not() {
    let mut go = Command::new(fetch::go());
    if !go
        .arg("version")
        .output()
        .is_ok_and(|found| found.status.success())
    {
        return ::tests::skipped("go is not installed");
    }
    let (root, proxy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let wrong = module_proxy(
        proxy.path(),
        "h1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    );
    let installer = installer(root.path(), proxy.path());
    let error = installer.install(&wrong, None, &mut |_| {}).unwrap_err();
    let Error::OtherSum { found, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(left(root.path()), Vec::<String>::new());

    let right = module_proxy(proxy.path(), found.leak());
    let installed = installer.install(&right, None, &mut |_| {}).unwrap();
    let text = fs::read_to_string(installed.directory.join(TOOL_FILE)).unwrap();
    assert!(
        text.starts_with("module example.org/toy v1.0.0, compiled by go version go"),
        "{text}"
    );
    let program = Cache::in_directory(root.path()).bin_dir().join("toy");
    let output = Command::new(program).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "toy\n");
    let error = installer
        .install(&right, Some("v2.0.0"), &mut |_| {})
        .unwrap_err();
    assert!(matches!(error, Error::BadVersion { .. }), "{error}");
}
