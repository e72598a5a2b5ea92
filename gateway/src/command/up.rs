//! `sixway up`: makes this box the gateway of a site, from a few options and the state of the host.

use super::failure::Failure;
use super::output::say;
use super::run_directory::RUN_DIRECTORY;
use super::run_gateway;
use crate::daemon::Ended;
use crate::site::{Nat64Option, Site, SiteFiles, SiteOptions, SixRdOption, Standing, TakenBack, Watch};
use crate::{daemon, host};
use clap::Args;
use nix::sys::signal::{SigSet, Signal};
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// The name of a site's gateway.
pub(super) const NAME: &str = "site";

/// The arguments of `sixway up`.
#[derive(Debug, Args)]
pub(super) struct UpArguments {
    /// An interface to inside hosts, which has an IPv4 address; may be repeated.
    #[arg(long, value_name = "INTERFACE", required = true)]
    lan: Vec<String>,
    /// The interface to the provider [default: that of the default route].
    #[arg(long, value_name = "INTERFACE")]
    wan: Option<String>,
    /// Do not create a table of the packet filter, if this host has its own rules.
    #[arg(long)]
    no_firewall: bool,
    /// Forward established sessions in the kernel.
    #[arg(long)]
    fast_path: bool,
    /// NAT64 for IPv6-only hosts: if it is possible (auto), required and with the DNS64 announced to all hosts (dns64, or without a
    /// value), required and with only the prefix announced (pref64), or none (no).
    #[arg(
        long,
        value_enum,
        value_name = "WHAT",
        num_args = 0..=1,
        require_equals = true,
        default_value = "auto",
        default_missing_value = "dns64"
    )]
    nat64: Nat64Option,
    /// Disable PCP and NAT-PMP for hosts of the LAN.
    #[arg(long)]
    no_pcp: bool,
    /// DHCPv4 for the LAN, by dnsmasq or Kea.
    #[arg(long)]
    dhcp: bool,
    /// With --dhcp: announce the DNS64 (not with --nat64=pref64), and request hosts that can do without IPv4 to do so (RFC 8925).
    #[arg(long, requires = "dhcp")]
    ipv6_mostly: bool,
    /// IPv6 by the provider's 6rd: 6rdPrefix, IPv4MaskLen and border relays, for example 2001:db8::/32,8,10.0.0.1; or `dhcp`, the
    /// offer of the provider's DHCP server, if there is no native IPv6; or `no`.
    #[arg(long = "6rd", value_name = "PREFIX,LENGTH,RELAY", default_value = "dhcp")]
    six_rd: SixRdOption,
    /// IPv6 by 6to4, with this relay, if there is no 6rd.
    #[arg(long = "6to4", value_name = "RELAY")]
    six_to_four: Option<Ipv4Addr>,
    /// The gateway's name; several sites on one host need different names, and a network namespace each.
    #[arg(long, default_value = NAME)]
    name: String,
    /// Take over from the running process of this site, as for an upgrade: sessions continue.
    #[arg(long)]
    takeover: bool,
    /// Print the configuration for `sixway run`, with the packet filter's table and dnsmasq's configuration as comments, and
    /// change nothing.
    #[arg(long, conflicts_with = "dry_run")]
    print_config: bool,
    /// Print what would be done, and change nothing.
    #[arg(long)]
    dry_run: bool,
}

impl UpArguments {
    fn options(&self) -> SiteOptions {
        SiteOptions {
            name: self.name.clone(),
            lans: self.lan.clone(),
            wan: self.wan.clone(),
            firewall: !self.no_firewall,
            fast_path: self.fast_path,
            nat64: self.nat64,
            pcp: !self.no_pcp,
            dhcp: self.dhcp,
            ipv6_mostly: self.ipv6_mostly,
            six_rd: self.six_rd.clone(),
            six_to_four: self.six_to_four,
        }
    }
}

/// Runs the command.
pub(super) fn run(arguments: &UpArguments) -> Result<(), Failure> {
    let standing = Standing::of(Path::new(RUN_DIRECTORY), &arguments.name);
    let mut before = Before::default();
    // After a reload this process continues with the existing configuration.
    if daemon::Previous::of_this_process().is_none() {
        let runs = arguments.takeover && host::running(Path::new(RUN_DIRECTORY), &arguments.name).is_some();
        let site = plan(arguments, &standing)?;
        let site = if runs { standing.continued(site) } else { site };
        let file = standing.configuration_file();
        site.check(&file).map_err(Failure::Wrong)?;
        if arguments.print_config {
            say(standing.printed(&site).trim_end());
            return Ok(());
        }
        say(&site.summary(&file));
        if arguments.dry_run {
            say("Nothing was changed.");
            return Ok(());
        }
        demand(arguments)?;
        before = Before { replaced: runs.then(|| standing.files()), has_no_table: !standing.has_table() };
        standing.raise(&site).map_err(|error| {
            // The settings made before the failure.
            match &before {
                Before { replaced: Some(files), .. } => standing.put_back(files),
                Before { has_no_table: true, .. } => drop(standing.undo()),
                Before { .. } => drop(standing.take_back()),
            }
            Failure::Failed(error)
        })?;
    }
    live(arguments, &standing, &before)
}

/// What was there before the start.
#[derive(Default)]
struct Before {
    /// The files of a running site.
    replaced: Option<SiteFiles>,
    /// Whether the site certainly had no table of the packet filter: a start that fails removes its own.
    has_no_table: bool,
}

fn plan(arguments: &UpArguments, standing: &Standing) -> Result<Site, Failure> {
    let runs = host::running(Path::new(RUN_DIRECTORY), &arguments.name).is_some();
    let planned = Site::plan(&arguments.options(), &standing.facts(runs));
    planned.map_err(|faults| Failure::Wrong(faults.join("\n")))
}

/// Checks the conditions before anything is changed.
fn demand(arguments: &UpArguments) -> Result<(), Failure> {
    if !host::has_capability(host::CAP_NET_ADMIN) {
        return Err(Failure::Failed("sixway up needs CAP_NET_ADMIN; run it as root".into()));
    }
    let running = host::running(Path::new(RUN_DIRECTORY), &arguments.name).filter(|_| !arguments.takeover);
    let Some(running) = running else { return Ok(()) };
    let process = running.process.map(|process| format!(" (process {process})")).unwrap_or_default();
    let what = format!("{} is already running{process}", arguments.name);
    let ways = format!("replace it with --takeover, or end it with sixway down --name {}", arguments.name);
    Err(Failure::Failed(format!("{what}; {ways}")))
}

/// From here on a signal ends the gateway in order; then the rest is removed.
fn live(arguments: &UpArguments, standing: &Standing, before: &Before) -> Result<(), Failure> {
    let replaced = before.replaced.as_ref();
    let ready = AtomicBool::new(false);
    let waiting: SigSet = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP].into_iter().collect();
    waiting.thread_block().map_err(|error| Failure::Failed(format!("signals: {error}")))?;
    let watch = Watch::start(standing, arguments.options());
    let watch = watch.map_err(|error| Failure::Failed(format!("thread: {error}")));
    let ended = watch.and_then(|watch| {
        let ended = run_gateway::run(&standing.configuration_file(), replaced.is_some(), &ready);
        watch.end();
        ended
    });
    if matches!(ended, Ok(Ended::TakenOver)) {
        say(&format!("{}: another process has taken over", arguments.name));
        return Ok(());
    }
    let runs = host::running(Path::new(RUN_DIRECTORY), &arguments.name).is_some();
    match replaced.filter(|_| runs) {
        // It could not be taken over, and continues.
        Some(files) => standing.put_back(files),
        None if runs => {}
        None => match undone(standing, before, &ready) {
            Ok(taken_back) => say(&format!("{}: {taken_back}", arguments.name)),
            Err(error) => say(&format!("{}: {error}", arguments.name)),
        },
    }
    ended.map(drop)
}

/// Removes what is left. A start that failed made no host reachable, so that its table does not stay.
fn undone(standing: &Standing, before: &Before, ready: &AtomicBool) -> Result<TakenBack, String> {
    match before.has_no_table && !ready.load(Ordering::Relaxed) {
        true => standing.undo(),
        false => standing.take_back(),
    }
}
