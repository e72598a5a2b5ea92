//! Interop tests: real programs in network namespaces, the gateway driven from outside as a user would. What a machine cannot run
//! (no root, a program that is not installed) is shown as ignored, with the reason in front of its name.

mod advertisements;
mod counters;
mod datagrams;
mod decoder;
mod dns64;
mod dns64_clients;
mod dns64_daemon;
mod dns64_upstreams;
mod experiments;
mod kernel;
mod life;
mod nat64;
mod path_mtu;
mod peers;
mod siit;
mod super_frames;
mod tunnels;

use libtest_mimic::{Arguments, Failed, Trial};
use sixway_lab::failure::Result;
use sixway_lab::forwarder::sixway;
use sixway_lab::{kernel_peer, programs};

/// In the place of a program: the tunnel module with 6rd for a Linux guest, which `make peer` builds.
const SIT_6RD: &str = "sit with 6rd (make peer)";

/// A test: its name, the programs that it drives, and what it does.
#[derive(Clone, Copy)]
struct Interop {
    name: &'static str,
    programs: &'static [&'static str],
    test: fn() -> Result<()>,
}

impl Interop {
    const fn new(name: &'static str, programs: &'static [&'static str], test: fn() -> Result<()>) -> Self {
        Self { name, programs, test }
    }

    fn lacks(&self) -> Option<String> {
        if !nix::unistd::geteuid().is_root() {
            return Some("needs root".to_owned());
        }
        let needed = self.programs.iter().chain(["ip"].iter());
        let there = |program: &str| match program {
            "sixway" => sixway().is_ok(),
            SIT_6RD => kernel_peer::with_six_rd().is_some(),
            "linux.uml" => kernel_peer::can_run(),
            program => programs::installed(program),
        };
        let missing = needed.copied().find(|program| !there(program));
        missing.map(|program| format!("needs {program}"))
    }

    fn into_trial(self) -> Trial {
        let lacks = self.lacks();
        let test = self.test;
        Trial::test(self.name, move || test().map_err(|failure| Failed::from(failure.to_string())))
            .with_ignored_flag(lacks.is_some())
            .with_kind(lacks.unwrap_or_default())
    }
}

fn main() {
    let tests = [
        peers::TESTS,
        kernel::TESTS,
        life::TESTS,
        nat64::TESTS,
        siit::TESTS,
        path_mtu::TESTS,
        decoder::TESTS,
        super_frames::TESTS,
        advertisements::TESTS,
        &tunnels::tests(),
        &dns64::tests(),
        &dns64_clients::tests(),
        dns64_daemon::TESTS,
        &dns64_upstreams::tests(),
        experiments::TESTS,
    ]
    .concat();
    let trials = tests.into_iter().map(Interop::into_trial).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
