//! The programs that can lease IPv4 addresses to inside hosts.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A program that leases IPv4 addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DhcpProgram {
    /// dnsmasq, which answers DNS queries as well.
    Dnsmasq,
    /// Kea's server for DHCPv4.
    Kea,
}

impl DhcpProgram {
    /// The preferred one first.
    const ALL: [Self; 2] = [Self::Dnsmasq, Self::Kea];

    /// The one to use, of those that are installed.
    pub(super) fn installed() -> Option<Self> {
        let folders = env::var_os("PATH").unwrap_or_default();
        let is_in = |folder: PathBuf, program: Self| folder.join(program.name()).is_file();
        let is_installed = |program: &Self| env::split_paths(&folders).any(|folder| is_in(folder, *program));
        Self::ALL.into_iter().find(is_installed)
    }

    /// Its name.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Dnsmasq => "dnsmasq",
            Self::Kea => "kea-dhcp4",
        }
    }

    /// The arguments with which it reads this file, and stays in the foreground.
    pub(super) fn arguments(self, configuration: &Path) -> Vec<OsString> {
        match self {
            Self::Dnsmasq => {
                let mut file = OsString::from("--conf-file=");
                file.push(configuration);
                vec!["--keep-in-foreground".into(), file]
            }
            Self::Kea => vec!["-c".into(), configuration.into()],
        }
    }
}
