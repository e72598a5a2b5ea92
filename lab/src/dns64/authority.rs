//! nsd, which knows all zones.

use super::configuration::NSD;
use super::tree::{AUTHORITY, Tree};
use crate::failure::Result;
use crate::namespace::command;
use crate::topology::Network;

/// Starts it on the host "server" of a network, on CPU 0 together with its clients.
pub fn start(network: &Network, tree: &Tree) -> Result<()> {
    let folder = network.folder();
    let mut text = NSD.replace("AUTHORITY", AUTHORITY).replace("FOLDER", &folder.display().to_string());
    for (number, (origin, records)) in tree.zones.iter().enumerate() {
        let file = network.file(&format!("{number}.zone"), records)?;
        let name = if origin.is_empty() { "." } else { origin };
        text += &format!("zone:\n  name: {name:?}\n  zonefile: \"{}\"\n", file.display());
    }
    let file = network.file("nsd.conf", &text)?;
    let mut nsd = command("taskset")?;
    nsd.args(["-c", "0"]).arg(command("nsd")?.get_program()).arg("-d").arg("-c").arg(file);
    network.start("server", nsd).map(drop)
}
