//! The lab's own ground: networks come and go without a trace, and the peers that Sixway is compared with work in them.

use crate::Interop;
use sixway_lab::failure::{Failure, Result};
use sixway_lab::forwarder::{Forwarder, Running};
use sixway_lab::probe::{Direction, fetch, ping, serve_bulk, serve_page};
use sixway_lab::topology::{self, client_gateway_server};
use std::process::Command;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new(
        "a_network_leaves_nothing_behind_even_after_a_panic",
        &[],
        a_network_leaves_nothing_behind_even_after_a_panic,
    ),
    Interop::new("two_networks_do_not_see_each_other", &["ping"], two_networks_do_not_see_each_other),
    Interop::new("a_kept_network_is_removed_by_its_suffix", &[], a_kept_network_is_removed_by_its_suffix),
    Interop::new(
        "the_kernel_forwards_between_client_and_server",
        &["ping", "nginx", "curl", "iperf3"],
        || everything_arrives(Forwarder::Kernel),
    ),
    Interop::new(
        "tayga_translates_between_client_and_server",
        &["ping", "nginx", "curl", "iperf3", "tayga", "nft"],
        || everything_arrives(Forwarder::SharingTayga),
    ),
    Interop::new(
        "tayga_translates_without_masquerade_too",
        &["ping", "nginx", "curl", "iperf3", "tayga"],
        || everything_arrives(Forwarder::Tayga),
    ),
    Interop::new(
        "sixway_nat64_translates_between_client_and_server",
        &["ping", "nginx", "curl", "iperf3", "sixway"],
        || everything_arrives(Forwarder::Nat64),
    ),
    Interop::new(
        "sixway_siit_translates_between_client_and_server",
        &["ping", "nginx", "curl", "iperf3", "sixway"],
        || everything_arrives(Forwarder::Siit),
    ),
];

fn a_network_leaves_nothing_behind_even_after_a_panic() -> Result<()> {
    let (tell, told) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let network = client_gateway_server()?;
        let mut sleep = Command::new("sleep");
        sleep.arg("600");
        let process = network.start("server", sleep)?;
        tell.send((network.suffix().to_owned(), network.folder().to_owned(), process)).ok();
        std::panic::resume_unwind(Box::new("a panic in an experiment"));
        #[allow(unreachable_code, reason = "gives the closure its type")]
        Ok::<(), Failure>(())
    });
    assert!(thread.join().is_err());
    let (suffix, folder, process) = told.recv().expect("the network was built");
    assert_eq!(topology::left_over(&suffix), Vec::<String>::new());
    assert!(!folder.exists());
    assert!(!std::path::Path::new(&format!("/proc/{process}")).exists());
    Ok(())
}

fn two_networks_do_not_see_each_other() -> Result<()> {
    let one = client_gateway_server()?;
    let other = client_gateway_server()?;
    assert_ne!(one.suffix(), other.suffix());
    one.host("server")?.ip("address add 203.0.113.77/32 dev lo")?;
    one.route("gateway", "203.0.113.77 via 203.0.113.2")?;
    other.route("gateway", "203.0.113.77 via 203.0.113.2")?;
    let pings =
        |network: &topology::Network| ping(network.host("gateway")?, "203.0.113.77", 2, 56, Duration::ZERO);
    assert_eq!(pings(&one)?.answered, 2);
    assert_eq!(pings(&other)?.answered, 0);
    Ok(())
}

fn a_kept_network_is_removed_by_its_suffix() -> Result<()> {
    let network = client_gateway_server()?;
    let suffix = network.suffix().to_owned();
    let folder = network.folder().to_owned();
    let mut sleep = Command::new("sleep");
    sleep.arg("600");
    network.start("gateway", sleep)?;
    network.keep();
    assert_eq!(topology::left_over(&suffix).len(), 3);
    assert!(topology::remove("../../x").is_err());
    assert_eq!(topology::remove(&suffix)?, 3);
    assert_eq!(topology::left_over(&suffix), Vec::<String>::new());
    assert!(!folder.exists());
    Ok(())
}

fn everything_arrives(forwarder: Forwarder) -> Result<()> {
    let Running { network, target, listens, .. } = forwarder.start()?;
    let client = network.host("client")?;
    let trips = ping(client, target, 10, 56, Duration::from_millis(5))?;
    assert_eq!(trips.answered, 10, "of 10 pings");
    if !listens.contains(':') {
        serve_page(&network, "server", listens, "a page")?;
        assert_eq!(fetch(&network, "client", &format!("http://[{target}]/"))?.body, "a page");
    }
    let server = serve_bulk(&network, "server")?;
    for direction in [Direction::Up, Direction::Down] {
        let bulk = server.transfer("client", target, direction, Duration::from_secs(1))?;
        assert!(bulk.octets > 1_000_000, "{direction:?}: {} octets", bulk.octets);
    }
    Ok(())
}
