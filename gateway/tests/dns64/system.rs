//! `upstream = "system"`: the host's own DNS servers, which change.

use super::reload::{Counting, ask};
use super::{Running, SIXWAY, configure, free_port, needs_root};
use std::fs;
use std::net::UdpSocket;
use std::process::Command;

fn lines(port: u16) -> String {
    format!(
        "listen = [\"127.0.0.1:{port}\", \"[::1]:{port}\", \"127.77.0.9:53\"]\nprefix = \"2001:db8:64::/96\"\n\
         translated_elsewhere = true\nupstream = \"system\"\n"
    )
}

/// A gateway that sees this text as `/etc/resolv.conf`, and the file.
fn start(name: &str, port: u16, resolv_conf: &str) -> (Running, std::path::PathBuf) {
    needs_root();
    let directory = std::env::temp_dir().join(format!("sixway-dns64-{name}-{}", std::process::id()));
    fs::create_dir(&directory).unwrap();
    configure(&directory, &lines(port));
    let file = directory.join("resolv.conf");
    fs::write(&file, resolv_conf).unwrap();
    let script = "mount --bind \"$0\" /etc/resolv.conf && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]).arg(&file).arg(SIXWAY);
    (Running::run(command, directory, "log", &[]), file)
}

#[test]
fn the_hosts_dns_servers_are_asked_and_followed_and_the_dns64_itself_is_left_out() {
    needs_root();
    if UdpSocket::bind("127.77.0.1:53").is_err() {
        sixway_trial::ignore("port 53 is taken on this host");
    }
    let (first, second) = (Counting::at("127.77.0.1:53"), Counting::at("127.77.0.2:53"));
    let port = free_port();
    let (mut gateway, file) = start("system", port, "nameserver 127.77.0.9\nnameserver 127.77.0.1\n");
    if !gateway.said.contains("ready in") && gateway.log().contains("unshare") {
        sixway_trial::ignore("needs mount namespaces");
    }
    assert!(gateway.said.contains("1 upstream, not asked yet"), "{}{}", gateway.said, gateway.log());
    assert_eq!(ask("127.0.0.1:0", port, "www"), Some((0, 1)), "{}", gateway.log());
    assert!(first.count() > 0);
    assert!(gateway.prints(&["show", "config"]).contains("upstream = \"system\""));
    let asked = first.count();
    fs::write(&file, "nameserver 127.77.0.2\nnameserver 127.77.0.9\n").unwrap();
    gateway.until("followed", || gateway.prints(&["show", "dns64"]).contains("127.77.0.2:53"));
    assert_eq!(ask("127.0.0.1:0", port, "www"), Some((0, 1)));
    assert_eq!((first.count(), second.count()), (asked, 0), "the cache is kept");
    assert_eq!(ask("127.0.0.1:0", port, "other"), Some((0, 1)));
    assert!(second.count() > 0 && first.count() == asked);
    // Where nobody is left, those that were there are asked on.
    fs::write(&file, "nameserver 127.77.0.9\n").unwrap();
    gateway.until("refused", || gateway.log().contains("no nameserver but this DNS64 itself"));
    assert_eq!(ask("127.0.0.1:0", port, "third"), Some((0, 1)));
    assert_eq!(gateway.end(), 0, "{}", gateway.log());
}
