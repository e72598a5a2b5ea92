//! The start of Kea, and the names of its files.
//!
//! Debian's AppArmor profiles let Kea read `/etc/kea`, and write the files in `/var/lib/kea` whose names begin as its usual one does. The
//! name of its PID file depends on that of its configuration, and the profile allows one. It runs as its own user, as in its service: the
//! profile does not allow the capabilities to write files of other users.

use nix::unistd::User;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Its user in Debian.
const USER: &str = "_kea";
/// Folders of its leases, its PID file and the lock of its log; the package and its service create them.
const FOLDERS: [&str; 3] = ["/var/lib/kea", "/run/kea", "/run/lock/kea"];
/// The capabilities that it keeps as that user: its port is below 1024, and requests of hosts without an address arrive on raw sockets.
const CAPABILITIES: &str = "-all,+net_bind_service,+net_raw";

/// The command before Kea's arguments: as its user, if there is one.
pub(super) fn command(program: &str) -> io::Result<Command> {
    let user = User::from_name(USER)?;
    for folder in FOLDERS {
        // What is there already may be a link that anybody has made: /run/lock is everybody's. Of what is made now nobody takes the place.
        match DirBuilder::new().mode(0o750).create(folder) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
        }
        if let Some(user) = &user {
            chown(folder, Some(user.uid.as_raw()), Some(user.gid.as_raw()))?;
        }
    }
    if user.is_none() {
        return Ok(Command::new(program));
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", USER, "--regid", USER, "--init-groups"]);
    command.args(["--inh-caps", CAPABILITIES, "--ambient-caps", CAPABILITIES, program]);
    Ok(command)
}

/// Where the configuration of a site's Kea is.
pub(super) fn configuration_file(site: &str) -> PathBuf {
    Path::new("/etc/kea").join(format!("sixway-{site}")).join("kea-dhcp4.conf")
}

/// Where its leases are.
pub(super) fn leases_file(site: &str) -> PathBuf {
    Path::new("/var/lib/kea").join(format!("kea-leases4.csv.sixway-{site}"))
}

/// This file, and those that Kea's lease file cleanup creates next to it.
pub(super) fn all_leases_files(site: &str) -> impl Iterator<Item = PathBuf> {
    let file = leases_file(site);
    ["", ".1", ".2", ".completed", ".output", ".pid"].into_iter().map(move |suffix| {
        let mut name = file.clone().into_os_string();
        name.push(suffix);
        name.into()
    })
}
