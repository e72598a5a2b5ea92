//! Teredo behind NATs of eight kinds, in simulated time: the real client and the real server, and between them a network of model NATs.

mod carried;
mod changes;
mod engine_ends;
mod found;
mod hosts;
mod learning;
mod meeting;
mod nat;
mod neighbours;
mod network;
mod reached;

use core::cell::RefCell;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use hosts::{Answering, ClientHost, ServerHost, Stranger};
use nat::{Kind, Nat, Options};
use network::Network;
use proptest::prelude::*;
use sixway_control::teredo_client::{Local, ServerAddresses, Settings};
use sixway_wire::Endpoint4;
use std::rc::Rc;

const PRIMARY: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
const SECONDARY: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);
const SERVER: ServerAddresses = ServerAddresses { primary: PRIMARY, secondary: Some(SECONDARY) };
const NAT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);
const NAT_LATER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 8);
const STRANGER: Endpoint4 = Endpoint4::new(Ipv4Addr::new(203, 0, 113, 50), 3_545);

fn stranger6() -> Ipv6Addr {
    "2001:db8::50".parse().unwrap()
}

/// A client behind a NAT, its server, and a host on the Internet.
struct World {
    network: Network,
    server: Rc<RefCell<ServerHost>>,
    client: Rc<RefCell<ClientHost<Answering>>>,
    stranger: Rc<RefCell<Stranger>>,
    delay: Duration,
}

/// What is varied.
#[derive(Clone, Copy, Debug)]
struct Case {
    options: Options,
    delay: Duration,
    seed: u64,
}

fn cases() -> impl Strategy<Value = Case> {
    let kinds = prop::sample::select(&Kind::ALL[..]);
    (kinds, any::<bool>(), any::<bool>(), 1..400_u64, any::<u64>()).prop_map(
        |(kind, preserves_ports, hairpins, delay, seed)| Case {
            options: Options { kind, preserves_ports, hairpins, timeout: Duration::from_secs(60) },
            delay: Duration::from_millis(delay),
            seed,
        },
    )
}

impl World {
    fn new(case: Case, settings: Settings) -> Self {
        let Case { options, delay, seed } = case;
        let mut network = Network::new(delay, seed);
        let nat = network.nat(Nat::new(options, NAT, seed));
        let address = if options.kind == Kind::Absent { NAT } else { Ipv4Addr::new(10, 0, 0, 5) };
        let server = ServerHost::new(PRIMARY, Some(SECONDARY));
        network.attach(PRIMARY, None, server.clone());
        network.attach(SECONDARY, None, server.clone());
        let stranger = Stranger::new(STRANGER);
        network.attach(STRANGER.address, None, stranger.clone());
        let local = Local {
            endpoint: Endpoint4::new(address, 40_001),
            subnets: vec!["10.0.0.0/24".parse().unwrap()],
        };
        let client = ClientHost::new(settings, local, seed as u8, Answering::default(), network.now);
        network.attach(address, Some(nat), client.clone());
        Self { network, server, client, stranger, delay }
    }

    /// Lets time pass until the client has an address.
    fn qualify(&mut self, most: Duration) -> Option<Duration> {
        let client = self.client.clone();
        self.network.run_until(most, || client.borrow().in_use.is_some())
    }

    /// A number of round trips, with the steps in which the model looks.
    fn round_trips(&self, number: u32) -> Duration {
        self.delay * 2 * number + Duration::from_millis(100)
    }
}
