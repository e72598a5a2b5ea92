//! The demonstration from its start to its end.

use super::faults::Faults;
use super::{end, kept_out, mapping, pairs, ways};
use crate::failure::{Failure, Result};
use crate::host_state::HostState;
use crate::site::{self, HOSTS, Site};
use crate::terminal::{self, bold, dim};
use crate::{programs, rootless};
use std::time::Instant;

/// How the demo runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Leave the network and the gateway there at the end.
    pub keep: bool,
    /// Show the gateway's log too.
    pub trace: bool,
    /// Show the site alone.
    pub site: bool,
}

const PICTURE: &str = "
  IPv4 only ──┐                                        ┌── server, IPv4 only
  IPv6 only ──┼── LAN ── sixway up ──────── provider ──┤   v4.example, 1.2.3.4
  dual stack ─┘          203.0.113.1                   └── server, IPv6 only
                         2001:db8:1::/64                   v6.example, 2001:db8:6::2
";

/// The options of `sixway up`.
const UP: [&str; 2] = ["--dhcp", "--nat64"];

/// Runs the demonstration. Fails if any of its steps fails.
///
/// # Errors
/// What failed, or why it cannot run.
pub fn run(options: Options) -> Result<()> {
    let begun = Instant::now();
    let mut faults = Faults::default();
    if rootless::is_inside() {
        terminal::skipped("sixway up", "shares the box's address by eBPF, which takes root");
    } else {
        for program in site::PROGRAMS.into_iter().chain(["nginx", "curl", "iperf3"]) {
            programs::require(program)?;
        }
        println!(
            "\n{}\n{PICTURE}",
            bold("A site: hosts of each kind, a box with one IPv4 address, and servers of each kind:")
        );
        if show_site(options, &mut faults)? || options.site {
            return faults.judged();
        }
    }
    println!("\n  {}", bold("Further ways, each in a network of its own:"));
    ways::show(&mut faults)?;
    println!(
        "\n  {}\n",
        dim(format!("{:.0} s. To keep the site: make demo KEEP=1", begun.elapsed().as_secs_f64()))
    );
    faults.judged()
}

/// Whether the site is kept.
fn show_site(options: Options, faults: &mut Faults) -> Result<bool> {
    let machine = HostState::of_this_machine()?;
    let network = site::network()?;
    let box_before = HostState::of(network.host("gateway")?)?;
    println!("  {}", dim(format!("sixway up --lan lan0 {}", UP.join(" "))));
    let site = Site::start(network, &UP)?;
    let said = site.said()?;
    said.lines().take_while(|line| !line.starts_with("sixway ")).for_each(|line| println!("  {}", dim(line)));
    println!("\n  {}", bold("The hosts have joined:"));
    for host in &HOSTS {
        let addresses = host.addresses(&site.network).map(|addresses| addresses.join(", "));
        let by = match (host.kind.has_ipv4(), host.kind.has_ipv6()) {
            (true, true) => "DHCP and router advertisement",
            (true, false) => "DHCP",
            (false, _) => "router advertisement",
        };
        faults.tell(host.kind.name(), by, addresses)?;
    }
    let shown = pairs::show(&site, faults)
        .and_then(|()| kept_out::show(&site, faults))
        .and_then(|()| mapping::show(&site, faults));
    if options.trace {
        print_log(&site)?;
    }
    if options.keep && !matches!(shown, Err(Failure::Interrupted)) {
        shown?;
        end::how_to_look_around(&site);
        site.network.keep();
        return Ok(true);
    }
    shown?;
    println!("\n  {}", bold("At its end nothing is left:"));
    end::show(site, (&box_before, &machine), faults)?;
    Ok(false)
}

fn print_log(site: &Site) -> Result<()> {
    let said = site.network.with_process(site.process, |process| process.stderr())?;
    println!("\n  {}", bold("sixway's log:"));
    said.lines().for_each(|line| println!("      {line}"));
    Ok(())
}
