//! What is packaged: the Debian package, the service, the alerts and the dashboard.

use crate::{BOOKWORM, Interop};
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::forwarder::Forwarder;
use sixway_lab::sixway::{sixway, socket};
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub const TESTS: &[Interop] = &[
    Interop::new(
        "a_package_installs_on_a_bare_debian_and_leaves_nothing",
        &["sixway", "dpkg-deb", "objdump", "strip", "unshare", BOOKWORM],
        the_package_installs,
    ),
    Interop::new("the_services_are_valid", &["systemd-analyze"], the_services_are_valid),
    Interop::new("the_metrics_are_as_prometheus_wants_them", &["sixway", "promtool"], the_metrics_are_clean),
    Interop::new("the_alerts_fire_for_what_they_are_for", &["promtool"], the_alerts_fire),
    Interop::new(
        "the_alerts_and_the_dashboard_ask_for_metrics_that_there_are",
        &["sixway"],
        alerts_and_dashboard_know_the_metrics,
    ),
];

/// Where `make bookworm` makes it.
pub fn bookworm() -> PathBuf {
    project().join("target/bookworm")
}

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Runs a program to its end and returns what it printed; it is to succeed.
fn run(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().asking(|| format!("{command:?}"))?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.success() {
        true => Ok(printed),
        false => Err(Failure::Unexpected(format!(
            "{command:?}: {}\n{printed}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        ))),
    }
}

fn the_package_installs() -> Result<()> {
    let packaging = project().join("packaging");
    let target = project().join("target");
    let printed = run(Command::new(packaging.join("build-deb")).arg(sixway()?).arg(target.join("deb")))?;
    let package = printed.trim();
    let contents = run(Command::new("dpkg-deb").args(["--contents", package]))?;
    for file in [
        "/usr/bin/sixway",
        "/lib/systemd/system/sixway@.service",
        "/lib/systemd/system/sixway-site.service",
        "/etc/default/sixway-site",
        "/man1/sixway-run.1.gz",
        "/completions/sixway",
    ] {
        if !contents.contains(file) {
            return Err(Failure::Unexpected(format!("{file} is not in the package:\n{contents}")));
        }
    }
    let printed = run(Command::new(packaging.join("try-deb")).arg(package).arg(bookworm()))?;
    match printed.ends_with("tried\n") {
        true => Ok(()),
        false => Err(Failure::Unexpected(printed)),
    }
}

/// The text of a service.
pub fn service(name: &str) -> Result<String> {
    let file = project().join("packaging/systemd").join(name);
    std::fs::read_to_string(&file).asking(|| file.display().to_string())
}

fn the_services_are_valid() -> Result<()> {
    for name in ["sixway@.service", "sixway-site.service"] {
        // The program need not be installed here, nor its pages.
        let text = service(name)?.replace("/usr/bin/sixway", "/bin/true");
        let lines = text.lines().filter(|line| !line.starts_with("Documentation="));
        let copy = tempfile(name, &lines.map(|line| format!("{line}\n")).collect::<String>())?;
        let said = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&copy).output();
        let said = said.asking(|| "systemd-analyze".into())?;
        let _ = std::fs::remove_dir_all(copy.parent().unwrap_or(&copy));
        let printed = String::from_utf8_lossy(&said.stderr).into_owned();
        if !said.status.success() || printed.contains("sixway") {
            return Err(Failure::Unexpected(format!("{name}: {printed}")));
        }
    }
    Ok(())
}

fn tempfile(name: &str, text: &str) -> Result<PathBuf> {
    let folder = std::env::temp_dir().join(format!("sixway-package-{}", std::process::id()));
    std::fs::create_dir_all(&folder).asking(|| "a folder".into())?;
    let path = folder.join(name);
    std::fs::write(&path, text).asking(|| "a file".into())?;
    Ok(path)
}

/// The metrics of a gateway with all that has metrics of its own.
fn metrics(accept: &str) -> Result<String> {
    let running = Forwarder::Nat64.start()?;
    let socket = socket(&running.network, "gateway");
    let mut stream = UnixStream::connect(&socket).asking(|| format!("connecting to {}", socket.display()))?;
    let request =
        format!("GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: {accept}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).asking(|| "asking for metrics".into())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).asking(|| "reading metrics".into())?;
    answer
        .split_once("\r\n\r\n")
        .map(|(_, body)| body.to_owned())
        .ok_or_else(|| Failure::Unexpected(answer.clone()))
}

fn the_metrics_are_clean() -> Result<()> {
    let text = metrics("text/plain")?;
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .asking(|| "promtool".into())?;
    if let Some(mut input) = promtool.stdin.take() {
        input.write_all(text.as_bytes()).asking(|| "promtool's input".into())?;
    }
    let output = promtool.wait_with_output().asking(|| "promtool".into())?;
    let said = [output.stdout, output.stderr].concat();
    match output.status.success() && said.is_empty() {
        true => Ok(()),
        false => Err(Failure::Unexpected(String::from_utf8_lossy(&said).into_owned())),
    }
}

fn the_alerts_fire() -> Result<()> {
    let folder = project().join("packaging/prometheus");
    run(Command::new("promtool").current_dir(&folder).args(["check", "rules", "sixway.rules.yml"]))?;
    run(Command::new("promtool").current_dir(&folder).args(["test", "rules", "sixway.rules.test.yml"]))?;
    Ok(())
}

/// The names of metrics in a text.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let ours = |word: &&str| word.starts_with("sixway_") || word.starts_with("process_");
    words.filter(ours).map(str::to_owned).collect()
}

fn alerts_and_dashboard_know_the_metrics() -> Result<()> {
    let known = names(&metrics("application/openmetrics-text")?);
    // Sections that this gateway does not have: their metrics are named in the sources.
    let read_source = |file: &str| {
        let path = project().join("gateway/src/metrics").join(file);
        std::fs::read_to_string(&path).asking(|| path.display().to_string())
    };
    let streams = project().join("dns64/src/streams/counters.rs");
    let streams = std::fs::read_to_string(&streams).asking(|| streams.display().to_string())?;
    let source = read_source("fast_path.rs")? + &read_source("dns64.rs")? + &streams;
    let read =
        |file: &str| std::fs::read_to_string(project().join("packaging").join(file)).asking(|| file.into());
    let asked = names(&(read("prometheus/sixway.rules.yml")? + &read("grafana/sixway.json")?));
    let is_known = |name: &String| {
        let plain = name.trim_start_matches("sixway_").trim_end_matches("_total");
        let prefixes = ["dns64_upstream_", "dns64_streams_"];
        let of_part = prefixes.iter().find_map(|prefix| plain.strip_prefix(prefix)).unwrap_or(plain);
        known.contains(name) || [plain, of_part].iter().any(|plain| source.contains(&format!("\"{plain}\"")))
    };
    let unknown: Vec<&String> = asked.iter().filter(|name| !is_known(name)).collect();
    if asked.len() < 20 || !unknown.is_empty() {
        return Err(Failure::Unexpected(format!(
            "of {} metrics, there are none called {unknown:?}",
            asked.len()
        )));
    }
    let dashboard: serde_json::Value = serde_json::from_str(&read("grafana/sixway.json")?)
        .map_err(|error| Failure::Unexpected(format!("the dashboard: {error}")))?;
    match dashboard["panels"].as_array().map(Vec::len) {
        Some(panels) if panels > 15 => Ok(()),
        panels => Err(Failure::Unexpected(format!("the dashboard has {panels:?} panels"))),
    }
}
