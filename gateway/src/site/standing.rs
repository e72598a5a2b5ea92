//! The site's state in addition to the gateway's records: its configuration file, and the table of the packet filter with the commands
//! that create it. The table stays if the process is killed.

use super::dhcp_program::DhcpProgram;
use super::dhcp_server::Server;
use super::facts::{OwnSockets, SiteFacts};
use super::filter::table_name;
use super::kea_process;
use super::plan::Site;
use super::whole_file::write;
use crate::host::{
    self,
    nft::{self, NftError},
};
use std::fmt;
use std::fs::{self, DirBuilder};
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// The files of a site, in the directory of running gateways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    directory: PathBuf,
    name: String,
}

/// The content of a site's files, so that they can be restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteFiles(Vec<(PathBuf, Option<String>)>);

/// Whether the table was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TakenBack {
    /// There was none.
    Nothing,
    /// It was removed; its name.
    Removed(String),
    /// It stays, because this host would forward from the provider without it: its name, and the setting.
    Stays(String, String),
}

impl fmt::Display for TakenBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing else was left"),
            Self::Removed(table) => write!(f, "table inet {table} was removed"),
            Self::Stays(table, setting) => {
                let why =
                    format!("{setting} is on, and without the table any outside host could reach the LAN");
                write!(
                    f,
                    "table inet {table} stays, because {why}; to remove it: nft delete table inet {table}"
                )
            }
        }
    }
}

impl Standing {
    /// The files of the site of this name.
    pub fn of(directory: &Path, name: &str) -> Self {
        Self { directory: directory.into(), name: name.into() }
    }

    /// Where its configuration is.
    pub fn configuration_file(&self) -> PathBuf {
        self.directory.join(format!("{}.toml", self.name))
    }

    /// The programs that may lease addresses.
    pub(super) fn dhcp_servers(&self) -> [Server; 2] {
        Server::all(&self.directory, &self.name)
    }

    /// Of dnsmasq.
    fn leases_file(&self) -> PathBuf {
        self.directory.join(format!("{}.leases", self.name))
    }

    /// The file with the pause between reloads.
    pub(super) fn pause_file(&self) -> PathBuf {
        self.directory.join(format!("{}.reloads", self.name))
    }

    fn script_file(&self) -> PathBuf {
        self.directory.join(format!("{}.filter", self.name))
    }

    /// The same site with the ports of the running one, whose sessions use them.
    pub fn continued(&self, site: Site) -> Site {
        match self.configuration() {
            Some(before) => site.continuing(&before),
            None => site,
        }
    }

    /// The current files.
    pub fn files(&self) -> SiteFiles {
        let of_servers = self.dhcp_servers().map(|server| server.configuration);
        let files = [self.configuration_file(), self.script_file()].into_iter().chain(of_servers);
        SiteFiles(files.map(|file| (file.clone(), fs::read_to_string(file).ok())).collect())
    }

    /// Restores the files, and the table that they describe.
    pub fn put_back(&self, files: &SiteFiles) {
        let servers = self.dhcp_servers();
        for (file, text) in &files.0 {
            let server = servers.iter().find(|server| server.configuration == *file);
            let done = match (text, server) {
                (Some(text), Some(server)) => server.configure(text),
                (Some(text), None) => write(file, text),
                (None, _) => fs::remove_file(file),
            };
            if let Err(error) = done
                .or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
            {
                tracing::error!("{}: {error}", file.display());
            }
        }
        if let Some(Err(error)) = self.script().map(|script| nft::execute(&script)) {
            tracing::error!("the packet filter: {error}");
        }
    }

    /// Writes the configuration, and creates the table if it is enabled. Must be called before the gateway enables forwarding.
    ///
    /// # Errors
    /// What could not be written, or nft's words.
    pub fn raise(&self, site: &Site) -> Result<(), String> {
        self.configure(site)?;
        self.make_table(site)
    }

    /// Writes the configuration.
    ///
    /// # Errors
    /// What could not be written.
    pub(super) fn configure(&self, site: &Site) -> Result<(), String> {
        let made = DirBuilder::new().recursive(true).mode(0o755).create(&self.directory);
        made.map_err(|error| failed(&self.directory, error))?;
        let file = self.configuration_file();
        write(&file, &site.configuration()).map_err(|error| failed(&file, error))?;
        for server in self.dhcp_servers() {
            let text = match server.program {
                DhcpProgram::Dnsmasq => site.dnsmasq(&self.leases_file()),
                DhcpProgram::Kea => site.kea(),
            };
            match text {
                Some(text) => {
                    server.configure(&text).map_err(|error| failed(&server.configuration, error))?;
                }
                None => {
                    server.end();
                    server.forget();
                }
            }
        }
        Ok(())
    }

    /// Creates the table if it is enabled, and writes its commands.
    ///
    /// # Errors
    /// What could not be written, or nft's words.
    pub(super) fn make_table(&self, site: &Site) -> Result<(), String> {
        if !site.firewall {
            // The table of a killed process; it is disabled now.
            let _ = nft::execute(&format!("delete table inet {}\n", table_name(&self.name)));
            let _ = fs::remove_file(self.script_file());
            return Ok(());
        }
        let script = script(site);
        let file = self.script_file();
        write(&file, &script).map_err(|error| failed(&file, error))?;
        nft::execute(&script).map_err(|error| match error {
            NftError::Missing => {
                // Then there is no table to remove.
                let _ = fs::remove_file(&file);
                format!("{error}, or write --no-firewall")
            }
            NftError::Io(_) | NftError::Refused(_) => error.to_string(),
        })
    }

    /// The host's state, without the running servers of this site. The gateway's run if it runs; dnsmasq may outlive it.
    pub fn facts(&self, runs: bool) -> SiteFacts {
        let configuration = self.configuration().filter(|_| runs).unwrap_or_default();
        let mut dns = dns64_addresses(&configuration);
        let is_dnsmasq = |server: &Server| server.program == DhcpProgram::Dnsmasq && server.runs();
        let dnsmasq = self.dhcp_servers().into_iter().find(is_dnsmasq);
        let dnsmasq = dnsmasq.and_then(|server| fs::read_to_string(server.configuration).ok());
        let dnsmasq = dnsmasq.unwrap_or_default();
        if dnsmasq.lines().any(|line| line == "port=53") {
            let listens = dnsmasq.lines().filter_map(|line| line.strip_prefix("listen-address="));
            dns.extend(listens.filter_map(|address| address.parse::<IpAddr>().ok()));
        }
        let pcp = configuration.lines().any(|line| line == "[pcp]");
        // A socket that is opened meanwhile is in the second list, and one that is closed in the first.
        let mut added = host::added_addresses(&self.directory, &self.name);
        let facts = SiteFacts::gather();
        added.extend(host::added_addresses(&self.directory, &self.name));
        let facts = facts.without_addresses(&added);
        facts.without_own(&OwnSockets { dns, pcp })
    }

    /// The site as `--print-config` prints it.
    pub fn printed(&self, site: &Site) -> String {
        site.printed(&self.leases_file())
    }

    /// The configuration as it is written.
    pub(super) fn configuration(&self) -> Option<String> {
        fs::read_to_string(self.configuration_file()).ok()
    }

    /// The commands that make the table, if there is to be one.
    pub(super) fn script(&self) -> Option<String> {
        fs::read_to_string(self.script_file()).ok()
    }

    /// Whether the table has other commands than this site's.
    pub(super) fn filters_otherwise(&self, site: &Site) -> bool {
        site.firewall && self.script().is_some_and(|written| written != script(site))
    }

    /// The table as nft lists it.
    ///
    /// # Errors
    /// [`NftError::Refused`]: the table does not exist.
    pub(super) fn listing(&self) -> Result<String, NftError> {
        nft::table(&table_name(&self.name))
    }

    /// Whether the site has a table of the packet filter, or it is not known.
    pub fn has_table(&self) -> bool {
        !matches!(self.listing(), Err(NftError::Refused(_)))
    }

    /// Removes the files and the table. To be called when the gateway has ended, and with it the forwarding that it enabled: while this
    /// host still forwards from the provider, the table stays.
    ///
    /// # Errors
    /// It is of another network namespace, or nft is missing or failed.
    pub fn take_back(&self) -> Result<TakenBack, String> {
        self.remove(|wan| forwards(Path::new("/proc/sys/net"), wan))
    }

    /// The same, and the table does not stay: there was none before the start, which failed.
    ///
    /// # Errors
    /// As for [`Self::take_back`].
    pub fn undo(&self) -> Result<TakenBack, String> {
        self.remove(|_| None)
    }

    /// `keeps`: why the table is to stay, by the interface to the provider.
    fn remove(&self, keeps: impl Fn(&str) -> Option<String>) -> Result<TakenBack, String> {
        self.dhcp_servers().iter().for_each(Server::end);
        let Some(script) = self.script() else {
            self.forget();
            return Ok(TakenBack::Nothing);
        };
        let mut lines = script.lines().map(|line| line.trim_start_matches("# "));
        let (made_in, wan) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        if made_in != namespace() {
            return Err(format!("{} is of another network namespace ({made_in}): run this there", self.name));
        }
        let table = table_name(&self.name);
        match self.listing() {
            Ok(_) => {}
            // Another program removed it.
            Err(NftError::Refused(_)) => {
                self.forget();
                return Ok(TakenBack::Nothing);
            }
            Err(error @ (NftError::Missing | NftError::Io(_))) => return Err(error.to_string()),
        }
        if let Some(setting) = keeps(wan) {
            return Ok(TakenBack::Stays(table, setting));
        }
        nft::execute(&format!("delete table inet {table}\n")).map_err(|error| error.to_string())?;
        self.forget();
        Ok(TakenBack::Removed(table))
    }

    fn forget(&self) {
        self.dhcp_servers().iter().for_each(Server::forget);
        let files = [self.configuration_file(), self.script_file(), self.pause_file(), self.leases_file()];
        for file in files.into_iter().chain(kea_process::all_leases_files(&self.name)) {
            // They are not always there.
            let _ = fs::remove_file(file);
        }
    }
}

fn failed(path: &Path, error: io::Error) -> String {
    format!("{}: {error}", path.display())
}

/// Where the DNS64 of a site's configuration listens.
fn dns64_addresses(configuration: &str) -> Vec<IpAddr> {
    let listed = configuration.lines().filter_map(|line| line.strip_prefix("listen = [")?.strip_suffix(']'));
    let all = listed.flat_map(|listed| listed.split(", ")).map(|address| address.trim_matches('"'));
    all.filter_map(|address| address.parse().ok()).collect()
}

/// The commands for the site's table, with what is needed to remove it.
fn script(site: &Site) -> String {
    format!("# {}\n# {}\n{}", namespace(), site.wan, site.filter())
}

/// The network namespace of this process.
fn namespace() -> String {
    fs::read_link("/proc/self/ns/net").map(|link| link.display().to_string()).unwrap_or_default()
}

/// The setting by which the kernel forwards what comes in by this interface, if any.
fn forwards(root: &Path, interface: &str) -> Option<String> {
    let settings = [
        format!("ipv4/conf/{interface}/forwarding"),
        "ipv6/conf/all/forwarding".to_owned(),
        format!("ipv6/conf/{interface}/force_forwarding"),
    ];
    let is_on = |setting: &String| {
        fs::read_to_string(root.join(setting)).is_ok_and(|value| !["", "0"].contains(&value.trim()))
    };
    let on = settings.into_iter().find(is_on)?;
    Some(format!("net.{}", on.replace('.', "\0").replace('/', ".").replace('\0', "/")))
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::{facts, options};
    use super::*;

    #[test]
    fn the_dns64s_addresses_are_known_by_the_configuration() {
        let mut facts = facts();
        let text = |facts: &SiteFacts| Site::plan(&options(), facts).unwrap().configuration();
        assert_eq!(dns64_addresses(&text(&facts)), [""; 0].map(|none| none.parse::<IpAddr>().unwrap()));
        facts.host.resolvers = vec!["192.0.2.53:53".parse().unwrap()];
        assert_eq!(dns64_addresses(&text(&facts)), ["2001:db8:1::1".parse::<IpAddr>().unwrap()]);
    }

    #[test]
    fn a_host_that_forwards_from_the_provider_is_known_by_its_settings() {
        let root = std::env::temp_dir().join(format!("sixway-forwards-{}", std::process::id()));
        let set = |path: &str, value: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{value}\n")).unwrap();
        };
        set("ipv4/conf/eth0.7/forwarding", "0");
        set("ipv4/conf/eth1/forwarding", "1");
        set("ipv6/conf/all/forwarding", "0");
        assert_eq!(forwards(&root, "eth0.7"), None);
        assert_eq!(forwards(&root, "eth1"), Some("net.ipv4.conf.eth1.forwarding".into()));
        set("ipv4/conf/eth0.7/forwarding", "1");
        assert_eq!(forwards(&root, "eth0.7"), Some("net.ipv4.conf.eth0/7.forwarding".into()));
        set("ipv6/conf/all/forwarding", "1");
        assert_eq!(forwards(&root, "gone"), Some("net.ipv6.conf.all.forwarding".into()));
        fs::remove_dir_all(&root).unwrap();
    }
}
