//! Interop tests: real programs in network namespaces, the gateway driven from outside as a user would. What a machine cannot run
//! (no root, a program that is not installed) is shown as ignored, with the reason.

mod advertisements;
mod appliance;
mod container;
mod counters;
mod datagrams;
mod day;
mod day_line;
mod day_network;
mod day_power;
mod day_prober;
mod day_stream;
mod day_upgrade;
mod decoder;
mod demo;
mod dhcp_clients;
mod dns64;
mod dns64_clients;
mod dns64_daemon;
mod dns64_upstreams;
mod ds_lite;
mod ds_lite_anycast;
mod event_log;
mod experiments;
mod fast_path;
mod four_over_six;
mod free_address;
mod ftp;
mod ip_in_ip;
mod kernel;
mod life;
mod loads;
mod nat44;
mod nat44_own_tunnels;
mod nat44_portless;
mod nat44_programs;
mod nat46;
mod nat64;
mod npt66;
mod one_address;
mod overload;
mod package;
mod path_mtu;
mod pcp;
mod pcp_anycast;
mod pcp_changes;
mod pcp_clients;
mod peers;
mod pools;
mod queues;
mod realms;
mod realms_in_vrfs;
mod room;
mod siit;
mod site_dns;
mod site_doctor;
mod site_icmpv6;
mod site_ipv6;
mod site_kea;
mod site_leases;
mod site_nat64;
mod site_network;
mod site_rules;
mod site_six_rd;
mod site_tunnel_nat64;
mod site_unit;
mod site_up;
mod site_watch;
mod super_frames;
mod teredo_changes;
mod teredo_client;
mod teredo_decoder;
mod teredo_interval;
mod teredo_nats;
mod teredo_neighbours;
mod teredo_peer;
mod teredo_relay;
mod teredo_secure;
mod teredo_server;
mod teredo_windows;
mod tunnels;

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use room::Room;
use sixway_lab::failure::{Failure, Result};
use sixway_lab::fast_path::{Hook, Share, with};
use sixway_lab::sixway::sixway;
use sixway_lab::{guest, kernel_peer, programs};
use sixway_trial::{SecondTries, attempt};
use std::sync::Arc;

/// In place of a program: the tunnel module with 6rd for a Linux guest, which `make peer` builds.
const SIT_6RD: &str = "sit with 6rd (make peer)";

/// In place of a program: a bare Debian 12, which `make bookworm` makes.
const BOOKWORM: &str = "a bare Debian 12 (make bookworm)";

/// In place of a program: syslog-ng, which cannot be installed next to rsyslog.
const SYSLOG_NG: &str = "syslog-ng (make syslog-ng)";

/// In place of a program: the gateway without shared libraries, which `make static` links.
const STATIC: &str = "a static program (make static)";

/// In place of a program: what boots as a gateway, which `make image` builds.
const IMAGE: &str = "an image that boots (make image)";

/// In place of a program: Linux in QEMU, which `make guest` unpacks.
const GUEST: &str = "Linux in a guest (make guest)";

/// In place of a program: IPsec in this kernel.
const IPSEC: &str = "IPsec in the kernel";

/// A test: its name, the programs that it drives, what it does, how it is to be done with the fast path, and whether it keeps a CPU busy or judges by
/// the clock.
#[derive(Clone, Copy)]
struct Interop {
    name: &'static str,
    programs: &'static [&'static str],
    test: fn() -> Result<()>,
    fast_path: Option<Again>,
    is_busy: bool,
}

/// A test that is done again: every gateway has its fast path at this hook.
#[derive(Clone, Copy)]
struct Again {
    hook: Hook,
    demand: Demand,
}

/// What the fast path has to do in a test, by its own counters.
#[derive(Clone, Copy)]
enum Demand {
    /// It carries this number of packets at least.
    Carries(u64),
    /// All that passes is the engine's: it looks at this number of packets at least, and leaves them.
    Leaves(u64),
    /// What passes is ICMP, some of it the engine's: it sees this number of packets at least.
    Sees(u64),
    /// It is attached; nothing passes.
    Hangs,
}

impl Demand {
    fn judge(self, share: Share) -> Result<()> {
        let (met, demanded) = match self {
            Self::Carries(least) => (share.carried >= least, format!("to carry {least} packets")),
            Self::Leaves(least) => (share.left >= least, format!("to leave {least} packets to the engine")),
            Self::Sees(least) => {
                (share.left + share.others + share.carried >= least, format!("to see {least} packets"))
            }
            Self::Hangs => (share.hung, "to hang there".to_owned()),
        };
        match met {
            true => Ok(()),
            false => {
                Err(Failure::Unexpected(format!("the fast path had {demanded}, and did this: {share:?}")))
            }
        }
    }
}

impl Interop {
    const fn new(name: &'static str, programs: &'static [&'static str], test: fn() -> Result<()>) -> Self {
        Self { name, programs, test, fast_path: None, is_busy: false }
    }

    /// The same with the fast path at this hook, which has to do this.
    fn again(self, hook: Hook, demand: Demand) -> Self {
        Self { fast_path: Some(Again { hook, demand }), ..self }
    }

    /// The same, which has as much room as two that wait.
    const fn busy(self) -> Self {
        Self { is_busy: true, ..self }
    }

    /// Room that it takes. A guest is busy: its kernel runs on a CPU of ours.
    fn share(&self) -> usize {
        if self.is_busy || self.programs.contains(&"linux.uml") { 2 } else { 1 }
    }

    fn title(&self) -> String {
        match self.fast_path {
            None => self.name.to_owned(),
            Some(again) => format!("{}_fast_path_{}", self.name, again.hook.name()),
        }
    }

    fn run(&self) -> Result<()> {
        let Some(Again { hook, demand }) = self.fast_path else { return (self.test)() };
        let (done, share) = with(hook, self.test);
        done?;
        demand.judge(share)
    }

    fn lacks(&self) -> Option<String> {
        if !nix::unistd::geteuid().is_root() {
            return Some("needs root".to_owned());
        }
        let needed = self.programs.iter().chain(["ip"].iter());
        let there = |program: &str| match program {
            "sixway" => sixway().is_ok(),
            SIT_6RD => kernel_peer::with_six_rd().is_some(),
            STATIC => container::static_program().is_file(),
            IMAGE => appliance::image("sixway.img").is_file(),
            SYSLOG_NG => event_log::unpacked_syslog_ng().join("complete").exists(),
            BOOKWORM => package::bookworm().join("complete").exists(),
            GUEST => guest::why_not(guest::Accelerator::Tcg).is_none(),
            IPSEC => std::path::Path::new("/proc/sys/net/core/xfrm_acq_expires").exists(),
            "linux.uml" => kernel_peer::why_not().is_none(),
            program => programs::installed(program),
        };
        let missing = needed.copied().find(|program| !there(program));
        missing.map(|program| match (program, programs::installed(program)) {
            ("linux.uml", true) => {
                format!("needs linux.uml to run here: {}", kernel_peer::why_not().unwrap_or_default())
            }
            _ => format!("needs {program}"),
        })
    }

    fn into_trial(self, room: &Arc<Room>, tries: &Arc<SecondTries>) -> Trial {
        let (title, room, tries) = (self.title(), Arc::clone(room), Arc::clone(tries));
        Trial::ignorable_test(title.clone(), move || match self.lacks() {
            Some(why) => Ok(Completion::ignored_with(why)),
            None => sixway_trial::timed(&title, || {
                let once = || attempt(|| self.run().map_err(|failure| failure.to_string()));
                let first = room.with(self.share(), once);
                tries.after(&title, first, || room.alone(once))
            })
            .map(|()| Completion::Completed)
            .map_err(Failed::from),
        })
    }
}

/// Tests wait for programs and clocks more than they compute: three for each CPU, or half as many that are busy.
fn at_once() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from) * 3
}

fn all() -> Vec<Interop> {
    let waiting = [
        peers::TESTS,
        kernel::TESTS,
        life::TESTS,
        nat64::TESTS,
        siit::TESTS,
        day::TESTS,
        day_line::TESTS,
        day_power::TESTS,
        day_upgrade::TESTS,
        site_dns::TESTS,
        site_doctor::TESTS,
        site_icmpv6::TESTS,
        site_ipv6::TESTS,
        site_kea::TESTS,
        site_leases::TESTS,
        site_nat64::TESTS,
        site_rules::TESTS,
        site_six_rd::TESTS,
        site_tunnel_nat64::TESTS,
        site_unit::TESTS,
        site_up::TESTS,
        site_watch::TESTS,
        nat44::TESTS,
        event_log::TESTS,
        nat44_own_tunnels::TESTS,
        nat44_portless::TESTS,
        nat44_programs::TESTS,
        ftp::TESTS,
        one_address::TESTS,
        overload::TESTS,
        pcp::TESTS,
        pcp_anycast::TESTS,
        pcp_changes::TESTS,
        pcp_clients::TESTS,
        pools::TESTS,
        queues::TESTS,
        realms::TESTS,
        realms_in_vrfs::TESTS,
        nat46::TESTS,
        npt66::TESTS,
        package::TESTS,
        container::TESTS,
        path_mtu::TESTS,
        decoder::TESTS,
        demo::TESTS,
        advertisements::TESTS,
        appliance::TESTS,
        appliance::SIZES,
        &dns64_clients::tests(),
        dns64_daemon::TESTS,
        teredo_server::TESTS,
        teredo_interval::TESTS,
        teredo_nats::TESTS,
        teredo_neighbours::TESTS,
        teredo_secure::TESTS,
        teredo_windows::TESTS,
        &dns64_upstreams::tests(),
    ]
    .concat();
    let busy = [
        ip_in_ip::TESTS,
        appliance::BOOTS,
        ds_lite::TESTS,
        ds_lite_anycast::TESTS,
        four_over_six::TESTS,
        dhcp_clients::TESTS,
        super_frames::TESTS,
        teredo_changes::TESTS,
        teredo_client::TESTS,
        teredo_decoder::TESTS,
        teredo_relay::TESTS,
        &tunnels::tests(),
        &dns64::tests(),
        &experiments::tests(),
        loads::TESTS,
    ]
    .concat();
    let tests = [waiting, busy.into_iter().map(Interop::busy).collect()].concat();
    let again = fast_path::again(&tests);
    let alone = fast_path::tests().into_iter().map(Interop::busy).collect();
    mixed([alone, again, tests].concat())
}

/// Those that are busy among those that wait, so that the CPUs have something to do all the time; of either, guests first, which take long.
fn mixed(mut tests: Vec<Interop>) -> Vec<Interop> {
    tests.sort_by_key(|test| !test.programs.contains(&"linux.uml"));
    let (busy, waiting): (Vec<_>, Vec<_>) = tests.into_iter().partition(|test| test.share() > 1);
    let spread = |tests: Vec<Interop>| {
        let count = tests.len();
        tests.into_iter().enumerate().map(move |(at, test)| (at * 1_000 / count, test))
    };
    let mut all: Vec<_> = spread(busy).chain(spread(waiting)).collect();
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, test)| test).collect()
}

fn main() {
    let mut arguments = Arguments::from_args();
    let threads = *arguments.test_threads.get_or_insert_with(at_once);
    // One at a time, if that is requested, however busy.
    let room = Arc::new(Room::new(threads.max(2)));
    let tries = Arc::new(SecondTries::default());
    let trials = all().into_iter().map(|test| test.into_trial(&room, &tries)).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    experiments::say_how_long();
    conclusion.exit();
}
