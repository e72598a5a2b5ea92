//! A Teredo client that consists of one socket with a public address: it answers a relay's bubbles, and sends and gets packets without a program.

use crate::failure::{Asking as _, Failure, Result};
use crate::namespace::Namespace;
use crate::packet;
use crate::probe::open;
use sixway_wire::teredo::{Prologue, TeredoAddress, TeredoInterface, bubble};
use sixway_wire::{Endpoint4, Ipv6Header};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// The port of all inner UDP packets at the native host.
const PORT: u16 = 4_000;

/// A client that the relay trusts.
pub struct Stub {
    /// Connected with the relay.
    pub socket: UdpSocket,
    /// The client's address.
    pub address: Ipv6Addr,
    native: Ipv6Addr,
}

impl Stub {
    /// Opens a socket at `here` on `host`, and lets `native` send until the relay has sent a packet with data.
    ///
    /// # Errors
    /// The relay never did.
    pub fn meet(
        (host, here): (&Namespace, Endpoint4),
        (native_host, native): (&Namespace, Ipv6Addr),
        (server, relay): (Ipv4Addr, SocketAddr),
    ) -> Result<Self> {
        let socket = open(host, SocketAddr::new(here.address.into(), here.port))?;
        socket.set_read_timeout(Some(Duration::from_millis(100))).asking(|| "a time limit".to_owned())?;
        let interface = TeredoInterface { flags: 0, mapped: here };
        let address = TeredoAddress { server, interface }.address();
        let asking = open(native_host, SocketAddr::new(native.into(), PORT))?;
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(20) {
            asking.send_to(&[0; 16], (address, PORT)).asking(|| "sending to the client".to_owned())?;
            let mut octets = [0; 2_048];
            let Ok(length) = socket.recv(&mut octets) else { continue };
            let Ok((_, inner)) = Prologue::split(&octets[..length]) else { continue };
            let Ok((header, payload)) = Ipv6Header::split_quoted(inner) else { continue };
            if !payload.is_empty() {
                socket.connect(relay).asking(|| format!("connecting with {relay}"))?;
                return Ok(Self { socket, address, native });
            }
            // Directly, or by the server.
            let answer = bubble(address, header.source, 64);
            socket.send_to(&answer, relay).asking(|| "answering a bubble".to_owned())?;
        }
        Err(Failure::Unexpected("the relay sends nothing to its client".into()))
    }

    /// What it sends in its tunnel: small UDP packets of as many flows.
    pub fn packets(&self, flows: u16, payload: &[u8]) -> Vec<Vec<u8>> {
        (0..flows)
            .map(|flow| packet::udp((self.address, 20_000 + flow), (self.native, PORT), payload))
            .collect()
    }
}
