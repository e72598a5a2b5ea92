//! What is there while a site runs, in addition to what the gateway records: its configuration file, and the table of the packet
//! filter with the commands that make it. The table outlives a process that was killed.

use super::dnsmasq;
use super::facts::{OwnSockets, SiteFacts};
use super::filter::table_name;
use super::plan::Site;
use super::whole_file::write;
use crate::host::{
    self,
    nft::{self, NftError},
};
use std::fmt;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// The files of a site, in the directory of running gateways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    directory: PathBuf,
    name: String,
}

/// What the files of a site have in them, so that it can return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteFiles(Vec<(PathBuf, Option<String>)>);

/// What became of the table.
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
                let why = format!("{setting} is on, and without it everybody would reach the LAN");
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

    /// Where the configuration of dnsmasq is, if it is to run.
    pub(super) fn dnsmasq_file(&self) -> PathBuf {
        self.directory.join(format!("{}.dnsmasq", self.name))
    }

    fn leases_file(&self) -> PathBuf {
        self.directory.join(format!("{}.leases", self.name))
    }

    /// Where the pause between reloads is kept.
    pub(super) fn pause_file(&self) -> PathBuf {
        self.directory.join(format!("{}.reloads", self.name))
    }

    fn script_file(&self) -> PathBuf {
        self.directory.join(format!("{}.filter", self.name))
    }

    /// The same site with the ports of the one that runs, whose sessions have them.
    pub fn continued(&self, site: Site) -> Site {
        match self.configuration() {
            Some(before) => site.continuing(&before),
            None => site,
        }
    }

    /// The files as they are.
    pub fn files(&self) -> SiteFiles {
        let files = [self.configuration_file(), self.script_file(), self.dnsmasq_file()];
        SiteFiles(files.into_iter().map(|file| (file.clone(), fs::read_to_string(file).ok())).collect())
    }

    /// Writes the files as they were, and makes the table that they say.
    pub fn put_back(&self, files: &SiteFiles) {
        for (file, text) in &files.0 {
            let done = match text {
                Some(text) => write(file, text),
                None => fs::remove_file(file),
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

    /// Writes the configuration, and makes the table if there is to be one. Before the gateway enables forwarding.
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
        let file = self.dnsmasq_file();
        match site.dnsmasq(&self.leases_file()) {
            Some(text) => {
                dnsmasq::demand()?;
                write(&file, &text).map_err(|error| failed(&file, error))?;
            }
            None => dnsmasq::end(&file),
        }
        Ok(())
    }

    /// Makes the table if there is to be one, and writes what makes it.
    ///
    /// # Errors
    /// What could not be written, or nft's words.
    pub(super) fn make_table(&self, site: &Site) -> Result<(), String> {
        if !site.firewall {
            // One that a killed process left. The operator wants none.
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

    /// What the host is, without the servers of this site that run. The gateway's run if it does; dnsmasq outlives it.
    pub fn facts(&self, runs: bool) -> SiteFacts {
        let configuration = self.configuration().filter(|_| runs).unwrap_or_default();
        let has = |section: &str| configuration.lines().any(|line| line == section);
        let file = self.dnsmasq_file();
        let dnsmasq = fs::read_to_string(&file).unwrap_or_default();
        let dns4 = dnsmasq.lines().any(|line| line == "port=53") && dnsmasq::runs(&file);
        let added = host::added_addresses(&self.directory, &self.name);
        let facts = SiteFacts::gather().without_addresses(&added);
        facts.without_own(OwnSockets { dns4, dns6: has("[dns64]"), pcp: has("[pcp]") })
    }

    /// The configuration as it is written.
    pub(super) fn configuration(&self) -> Option<String> {
        fs::read_to_string(self.configuration_file()).ok()
    }

    /// The commands that make the table, if there is to be one.
    pub(super) fn script(&self) -> Option<String> {
        fs::read_to_string(self.script_file()).ok()
    }

    /// Whether the table is made by other commands than this site's.
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

    /// Removes the files and the table. To be called when the gateway has ended, and with it the forwarding that it enabled: while this
    /// host still forwards from the provider, the table stays.
    ///
    /// # Errors
    /// It is of another network namespace, or nft is missing or failed.
    pub fn take_back(&self) -> Result<TakenBack, String> {
        dnsmasq::end(&self.dnsmasq_file());
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
            // Somebody else removed it.
            Err(NftError::Refused(_)) => {
                self.forget();
                return Ok(TakenBack::Nothing);
            }
            Err(error @ (NftError::Missing | NftError::Io(_))) => return Err(error.to_string()),
        }
        if let Some(setting) = forwards(Path::new("/proc/sys/net"), wan) {
            return Ok(TakenBack::Stays(table, setting));
        }
        nft::execute(&format!("delete table inet {table}\n")).map_err(|error| error.to_string())?;
        self.forget();
        Ok(TakenBack::Removed(table))
    }

    fn forget(&self) {
        let dnsmasq = [self.dnsmasq_file(), self.leases_file()];
        for file in
            [self.configuration_file(), self.script_file(), self.pause_file()].into_iter().chain(dnsmasq)
        {
            // They are not always there.
            let _ = fs::remove_file(file);
        }
    }
}

fn failed(path: &Path, error: io::Error) -> String {
    format!("{}: {error}", path.display())
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
    use super::*;

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
