//! `sixway up --dhcp` by Kea, where dnsmasq is not installed.

use crate::Interop;
use crate::site_ipv6;
use crate::site_leases::{ends_with_another_hosts_lease, lease};
use crate::site_network::{HOST4, SERVER4, home, site, up_by};
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::interrupt;
use sixway_lab::name_service::Resolving;
use sixway_lab::process::Process;
use sixway_lab::programs;
use sixway_lab::sixway::sixway;
use sixway_lab::topology::Network;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

pub const TESTS: &[Interop] = &[Interop::new(
    "site_up_leases_addresses_by_kea_where_dnsmasq_is_missing",
    &["sixway", "nft", "kea-dhcp4", "setpriv", "busybox", "natpmpc", "unshare"],
    leases,
)];

/// A folder of programs without dnsmasq, to be searched alone.
fn programs_without_dnsmasq(network: &Network) -> Result<PathBuf> {
    let folder = network.folder().join("programs");
    std::fs::create_dir_all(&folder).asking(|| folder.display().to_string())?;
    for name in ["nft", "kea-dhcp4", "setpriv", "sh", "mount"] {
        symlink(programs::require(name)?, folder.join(name)).asking(|| name.to_owned())?;
    }
    Ok(folder)
}

/// Processes of Kea with this site's configuration.
fn keas(configuration: &Path) -> usize {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok());
    let named = configuration.display().to_string();
    lines.filter(|line| line.starts_with("kea-dhcp4") && line.contains(&named)).count()
}

/// A lease has the provider's DNS server, which Kea itself cannot be, and option 108 (RFC 8925). A mapping ends when another host has the lease of its own. The
/// site's end leaves neither a process nor a file.
fn leases() -> Result<()> {
    let network = home()?;
    network.host("host")?.ip("-4 address flush dev up0")?;
    let resolving = Resolving::with(&network, "gateway", &format!("nameserver {SERVER4}\n"))?;
    let mut start = Command::new(resolving.script());
    start.arg(sixway()?).env("PATH", programs_without_dnsmasq(&network)?);
    let id = up_by(&network, start, &["--dhcp", "--ipv6-mostly"])?;
    let said = network.with_process(id, |process| process.stdout())?;
    assert!(said.contains(&format!("by Kea, and this host's DNS servers ({SERVER4})")), "{said}");
    let name = network.gateway_name("gateway");
    let configuration = Path::new("/etc/kea").join(format!("sixway-{name}/kea-dhcp4.conf"));
    interrupt::wait_until(Duration::from_secs(10), "Kea", || Ok(keas(&configuration) == 1))?;
    let told = site_ipv6::lease(&network)?;
    let expected = ["ip=192.168.1.", "router=192.168.1.1", &format!("dns={SERVER4}"), "opt108=00000708"];
    for part in expected {
        assert!(told.lines().any(|line| line.starts_with(part)), "{part} in {told}");
    }
    let (client, address) = lease(&network, None)?;
    ends_with_another_hosts_lease(&network, client, &address)?;
    network.with_process(id, Process::kill)?;
    assert_eq!(keas(&configuration), 1, "leases go on");
    site(&network, &["down"])?.succeeded()?;
    assert_eq!(keas(&configuration), 0);
    let left =
        std::fs::read_dir("/var/lib/kea").into_iter().flatten().flatten().map(|entry| entry.file_name());
    let left: Vec<_> = left.filter(|file| file.to_string_lossy().contains(&name)).collect();
    if !left.is_empty() || configuration.parent().is_none_or(Path::exists) {
        return Err(Failure::Unexpected(format!("{left:?} and {} are left", configuration.display())));
    }
    network.address("host", "up0", &format!("{HOST4}/24"))
}
