//! The programs that the lab drives, and the Debian packages that have them.

use crate::failure::{Asking as _, Failure, Result};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Every program with its Debian 12 package. `make deps` installs what is missing: it asks `sixway-lab deps`.
pub const PROGRAMS: &[(&str, &str)] = &[
    ("ip", "iproute2"),
    ("tc", "iproute2"),
    ("curl", "curl"),
    ("nginx", "nginx-light"),
    ("ping", "iputils-ping"),
    ("tracepath", "iputils-tracepath"),
    ("iperf3", "iperf3"),
    ("tcpdump", "tcpdump"),
    ("ethtool", "ethtool"),
    ("nft", "nftables"),
    ("dnsmasq", "dnsmasq-base"),
    ("iptables-nft", "iptables"),
    ("tayga", "tayga"),
    ("linux.uml", "user-mode-linux"),
    ("busybox", "busybox-static"),
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("isatapd", "isatapd"),
    ("jool", "jool-tools"),
    ("jool_siit", "jool-tools"),
    ("radvd", "radvd"),
    ("rdisc6", "ndisc6"),
    ("taskset", "util-linux"),
    ("unshare", "util-linux"),
    ("prlimit", "util-linux"),
    ("setpriv", "util-linux"),
    ("getent", "libc-bin"),
    ("dig", "bind9-dnsutils"),
    ("kdig", "knot-dnsutils"),
    ("delv", "bind9-dnsutils"),
    ("rdnssd", "rdnssd"),
    ("openssl", "openssl"),
    ("nsd", "nsd"),
    ("unbound", "unbound"),
    ("named", "bind9"),
    ("pdns_recursor", "pdns-recursor"),
    ("dnsperf", "dnsperf"),
    ("dnssec-keygen", "bind9-utils"),
    ("dnssec-signzone", "bind9-utils"),
    ("chromium-headless-shell", "chromium-headless-shell"),
    ("clang", "clang"),
    ("python3", "python3"),
    ("valgrind", "valgrind"),
    ("dpkg-deb", "dpkg"),
    ("debootstrap", "debootstrap"),
    ("objdump", "binutils"),
    ("strip", "binutils"),
    ("readelf", "binutils"),
    ("chroot", "coreutils"),
    ("podman", "podman"),
    ("promtool", "prometheus"),
    ("rsyslogd", "rsyslog"),
    ("nfcapd", "nfdump"),
    ("nfdump", "nfdump"),
    ("systemd-analyze", "systemd"),
    ("turnserver", "coturn"),
    ("turnutils_natdiscovery", "coturn"),
    ("openvpn", "openvpn"),
    ("iptables-legacy", "iptables"),
    ("ITGSend", "d-itg"),
    ("ITGRecv", "d-itg"),
    ("ITGDec", "d-itg"),
    ("mgen", "mgen"),
    ("sipp", "sip-tester"),
    ("wget", "wget"),
    ("vsftpd", "vsftpd"),
    ("ftp", "tnftp"),
    ("lftp", "lftp"),
    ("miredo", "miredo"),
    ("kea-dhcp4", "kea-dhcp4-server"),
    ("kea-dhcp6", "kea-dhcp6-server"),
    ("miredo-server", "miredo-server"),
    ("dhclient", "isc-dhcp-client"),
    ("dhcpcd", "dhcpcd-base"),
    ("faketime", "faketime"),
    ("natpmpc", "natpmpc"),
    (UEFI[0], "ovmf"),
    ("pppoe-server", "pppoe"),
    ("pppd", "ppp"),
];

/// The firmware that Debian's package ovmf has: UEFI with Secure Boot, and its variables, in which Microsoft's keys are enrolled.
pub const UEFI: [&str; 2] = ["/usr/share/OVMF/OVMF_CODE_4M.ms.fd", "/usr/share/OVMF/OVMF_VARS_4M.ms.fd"];

/// Where the program is, also in the folders that only root has in its path.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin", "/usr/local/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// Folders that may have what was built together with a program: its own and, if that is in cargo's target folder, those above it as far as
/// there. Farther up, others may have put files: a program in `/tmp/x` does not look in `/tmp`.
pub fn build_folders(program: &Path) -> Vec<PathBuf> {
    let is_target = |folder: &&Path| {
        let name = folder.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name == "target" || name.ends_with("-target"))
    };
    let above: Vec<&Path> = program.ancestors().skip(1).collect();
    let last = above.iter().position(is_target).unwrap_or(0);
    above.into_iter().take(last + 1).map(Path::to_owned).collect()
}

/// [`build_folders`] of this program.
pub fn own_build_folders() -> Vec<PathBuf> {
    build_folders(&std::env::current_exe().unwrap_or_default())
}

/// Whether the program is installed.
pub fn installed(program: &str) -> bool {
    find(program).is_some()
}

/// Where the program is, or [`Failure::Missing`] with the package to install.
pub fn require(program: &'static str) -> Result<PathBuf> {
    find(program).ok_or_else(|| {
        let package =
            PROGRAMS.iter().find(|(name, _)| *name == program).map_or(program, |(_, package)| package);
        Failure::Missing(program, package)
    })
}

/// The version of the Debian package that has a program, if the package is installed.
pub fn package_version(program: &str) -> Option<String> {
    let (_, package) = PROGRAMS.iter().find(|(name, _)| *name == program)?;
    let said = Command::new("dpkg-query").args(["-W", "-f=${Version}", package]).output().ok()?;
    let version = String::from_utf8(said.stdout).ok()?;
    (said.status.success() && !version.is_empty()).then(|| format!("{package} {version}"))
}

/// Lets all users run a file, or enter a folder.
///
/// The kernel runs no file that a process has open for writing, and a child of another thread has this process's files until it runs its own
/// program. So the file is replaced by a copy that another process wrote.
///
/// # Errors
/// The file cannot be copied or changed.
pub fn make_executable(file: &Path) -> Result<()> {
    if file.is_file() {
        let mut copy = file.as_os_str().to_owned();
        copy.push(".copy");
        let what = || format!("copying {}", file.display());
        let done = Command::new("cp").arg("--").args([file.as_os_str(), &copy]).status().asking(what)?;
        if !done.success() {
            return Err(Failure::Unexpected(format!("cp failed when {}", what())));
        }
        std::fs::rename(&copy, file).asking(what)?;
    }
    std::fs::set_permissions(file, Permissions::from_mode(0o755))
        .asking(|| format!("making {} executable", file.display()))
}

/// Packages of the programs that are not installed.
pub fn missing_packages() -> Vec<&'static str> {
    PROGRAMS.iter().filter(|(program, _)| !installed(program)).map(|(_, package)| *package).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_runs_although_a_process_still_has_the_file_open_for_writing() {
        let path = std::env::temp_dir().join(format!("sixway-executable-{}.sh", std::process::id()));
        let mut open = std::fs::File::create(&path).unwrap();
        std::io::Write::write_all(&mut open, b"#!/bin/sh\nexit 7\n").unwrap();
        make_executable(&path).unwrap();
        assert_eq!(Command::new(&path).status().unwrap().code(), Some(7));
        drop(open);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn files_of_a_build_are_looked_for_in_its_folder_only() {
        let of = |program: &str| {
            let folders = build_folders(Path::new(program));
            folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of("/tmp/x/sixway-lab"), "/tmp/x");
        assert_eq!(of("/usr/bin/sixway-lab"), "/usr/bin");
        assert_eq!(of("/w/target/debug/sixway-lab"), "/w/target/debug /w/target");
        assert_eq!(of("/w/target/debug/deps/interop-1"), "/w/target/debug/deps /w/target/debug /w/target");
        assert_eq!(of("/w/my-target/release/sixway-lab"), "/w/my-target/release /w/my-target");
        assert_eq!(of(""), "");
    }

    #[test]
    fn a_package_has_a_version() {
        if installed("dpkg-query") {
            let version = package_version("ip").unwrap_or_default();
            assert!(version.starts_with("iproute2 ") && version.len() > 12, "{version}");
        }
        assert_eq!(package_version("no-such-program"), None);
    }

    #[test]
    fn a_missing_program_names_its_package() {
        assert!(find("sh").is_some());
        let failure = require("no-such-program").unwrap_err();
        assert!(failure.to_string().contains("apt-get install no-such-program"));
    }
}
