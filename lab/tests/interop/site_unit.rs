//! The service that starts `sixway up` with the system: its command, its options' file and its capabilities, without systemd.

use crate::Interop;
use crate::package::service;
use crate::site_ipv6::lease;
use crate::site_network::{HOST4, SERVER4, at, home, passes, socket, tables};
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::interrupt;
use sixway_lab::namespace::command;
use sixway_lab::process::Process;
use sixway_lab::sixway::sixway;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

pub const TESTS: &[Interop] = &[Interop::new(
    "the_service_of_a_site_starts_it_with_its_options_and_capabilities_and_is_notified_when_it_is_ready",
    &["sixway", "nft", "dnsmasq", "busybox", "setpriv"],
    starts,
)];

/// The value of a key of the service.
fn value<'t>(text: &'t str, key: &str) -> Result<&'t str> {
    let found = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    found.ok_or_else(|| Failure::Unexpected(format!("{key} is missing")))
}

/// As `packaging/debian/sixway-site.default` has it, without the mark of a comment.
fn options() -> Result<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/debian/sixway-site.default");
    let text = std::fs::read_to_string(&file).asking(|| file.display().to_string())?;
    let written = text.lines().find_map(|line| line.strip_prefix("#SIXWAY_UP=\"")?.strip_suffix('"'));
    written.map(str::to_owned).ok_or(Failure::Unexpected(text))
}

fn starts() -> Result<()> {
    let network = home()?;
    let text = service("sixway-site.service")?;
    assert_eq!(value(&text, "Type")?, "notify");
    assert_eq!(value(&text, "EnvironmentFile")?, "/etc/default/sixway-site");
    let options = options()?.replace("eth1", "in0").replace("eth0", "out0");
    let mut words: Vec<&str> = value(&text, "ExecStart")?.split(' ').collect();
    assert_eq!((words.remove(0), words.pop()), ("/usr/bin/sixway", Some("$SIXWAY_UP")));
    // What systemd does with it: capabilities that are not bounded are lost for good.
    let bounding = value(&text, "CapabilityBoundingSet")?.split(' ');
    let kept = bounding.filter_map(|name| name.strip_prefix("CAP_")).map(str::to_lowercase);
    let kept: String = kept.map(|name| format!(",+{name}")).collect();
    let notified = network.folder().join("notify");
    let manager = UnixDatagram::bind(&notified).asking(|| "the service manager's socket".to_owned())?;
    manager.set_read_timeout(Some(Duration::from_millis(100))).asking(|| "a socket's timeout".to_owned())?;
    let mut start = command("setpriv")?;
    start.arg("--no-new-privs").arg(format!("--bounding-set=-all{kept}")).arg("--").arg(sixway()?);
    start.args(words).args(options.split(' ')).args(["--name", &network.gateway_name("gateway")]);
    start.env("NOTIFY_SOCKET", &notified);
    let id = network.start("gateway", start)?;
    let mut told = String::new();
    let mut hears = |word: &str| {
        interrupt::wait_until(Duration::from_secs(20), word, || {
            network.with_process(id, Process::must_run)??;
            let mut buffer = [0; 500];
            while let Ok(length) = manager.recv(&mut buffer) {
                told += &String::from_utf8_lossy(&buffer[..length]);
            }
            Ok(told.contains(word))
        })
    };
    hears("READY=1")?;
    hears("WATCHDOG=1")?;
    assert!(tables(&network)?.contains("sixway_filter_"));
    let (host, server) = (socket(&network, "host", HOST4, 4_000)?, socket(&network, "server", SERVER4, 53)?);
    let seen = passes(&host, at(&server)?, &server)?;
    passes(&server, seen, &host)?;
    drop(host);
    network.host("host")?.ip("-4 address flush dev up0")?;
    assert!(lease(&network)?.contains("ip=192.168.1."));
    network.with_process(id, Process::stop)?;
    assert!(tables(&network)?.is_empty(), "{}", tables(&network)?);
    Ok(())
}
