//! The end: the box is as before, and so is this machine.

use super::faults::Faults;
use crate::failure::{Failure, Result};
use crate::host_state::{HostState, processes_with};
use crate::namespace;
use crate::site::{HOSTS, SERVER4, Site};
use crate::terminal::bold;
use crate::topology::left_over;

/// Ends the site by `sixway down`, then its network, and reports what is left. `before`: the box, and this machine.
pub(super) fn show(site: Site, before: (&HostState, &HostState), faults: &mut Faults) -> Result<()> {
    let ended = site.down().and_then(|said| said.succeeded()).map(|_| "it has ended".to_owned());
    faults.tell("ended", "sixway down", ended)?;
    faults.tell("the box", "addresses, routes, packet filter, settings", as_before(&site, before.0))?;
    let (suffix, name) = (site.network.suffix().to_owned(), site.network.gateway_name("gateway"));
    drop(site);
    faults.tell(
        "the machine",
        "namespaces, processes, files, settings",
        nothing_is_left(&suffix, &name, before.1),
    )
}

fn as_before(site: &Site, before: &HostState) -> Result<String> {
    let name = site.network.gateway_name("gateway");
    let mut left = before.differences(&HostState::of(site.gateway()?)?);
    left.extend(processes_with(&name).into_iter().map(|process| format!("a process: {process}")));
    left.extend(files_of(&name));
    judged(&left)
}

fn nothing_is_left(suffix: &str, name: &str, before: &HostState) -> Result<String> {
    let mut left = left_over(suffix);
    left.extend(processes_with(suffix).into_iter().map(|process| format!("a process: {process}")));
    left.extend(files_of(name));
    left.extend(before.differences(&HostState::of_this_machine()?));
    judged(&left)
}

/// Files of running gateways with this name, without the key by which a next one finds its workers: it stays.
fn files_of(name: &str) -> Vec<String> {
    let files = std::fs::read_dir("/run/sixway").into_iter().flatten().flatten();
    let files = files.filter_map(|file| file.file_name().into_string().ok());
    files.filter(|file| file.starts_with(name) && !file.ends_with(".workers")).collect()
}

fn judged(left: &[String]) -> Result<String> {
    match left.is_empty() {
        true => Ok("as before".to_owned()),
        false => Err(Failure::Unexpected(format!("left behind: {}", left.join("; ")))),
    }
}

/// Commands for a network that is kept.
pub(super) fn how_to_look_around(site: &Site) {
    let name = |role| site.network.host(role).map_or("", namespace::Namespace::name);
    let lab = std::env::current_exe().unwrap_or_default();
    let typed = |command: Result<std::process::Command>| {
        command.map(|command| format!("{command:?}").replace('"', "")).unwrap_or_default()
    };
    println!("\n  {}", bold("The site is still up. Try:"));
    for host in &HOSTS {
        if let Ok(resolving) = site.resolving(host) {
            println!(
                "    ip netns exec {} {} curl http://{}/",
                name(host.role),
                resolving.script().display(),
                SERVER4.name
            );
        }
    }
    println!("    ip netns exec {} tcpdump -ni sixway0", name("gateway"));
    println!("    ip netns exec {} nft list ruleset", name("gateway"));
    println!("    {}", typed(site.show(&["sessions"])));
    println!("  {}", bold("Remove it:"));
    println!("    {} remove {}\n", lab.display(), site.network.suffix());
}
