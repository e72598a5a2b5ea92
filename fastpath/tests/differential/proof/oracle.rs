//! What should become of a frame: what the host's kernel and the engine would make of it together, the slow way.

use super::generator::Input;
use super::routes::Target;
use super::scene::{NARROW, Port, Scene, VLAN};
use super::world::World;
use sixway_dataplane::engine::Engine;
use sixway_dataplane::parse::{Addresses, Packet, parse};
use sixway_dataplane::{Frame, Instant, Outbox, Verdict};
use sixway_wire::protocol;
use std::net::IpAddr;

/// MTU of the TUN device, in octets.
const TUN_MTU: usize = 1_500;

/// What should become of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The program must leave it alone, and why.
    Pass(String),
    /// If the program forwards it, then as this.
    Forward(Forwarded),
}

/// A frame that leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forwarded {
    /// By which device, for whom.
    pub port: Port,
    /// The IP packet.
    pub packet: Vec<u8>,
    /// Its identification is anyone's guess, and its header's checksum with it.
    pub any_identification: bool,
}

/// Judges frames of one world.
pub struct Oracle<'a> {
    pub world: &'a World,
    pub scene: &'a Scene,
    pub engine: &'a mut Engine,
    pub now: Instant,
}

/// A frame less its Ethernet header: the device that the kernel would say it came by, and the packet with what is behind it.
pub fn arrived(input: &Input) -> Result<(Port, &[u8]), String> {
    let (to, rest) = input.frame.split_at_checked(12).ok_or("no Ethernet header")?;
    let (mut port, mut rest) = (input.port, rest);
    if let [0x81, 0, high, low, inner @ ..] = rest {
        let vlan = u16::from_be_bytes([high & 0x0f, *low]);
        // The tag of a priority belongs to the untagged device; the program may leave it alone, too.
        if vlan != VLAN || port != Port::Trunk {
            return Err(format!("VLAN {vlan} is nobody's"));
        }
        (port, rest) = (Port::Tagged, inner);
    }
    if to[..6] != port.mac() {
        return Err("for another MAC address".into());
    }
    match rest {
        [8, 0, packet @ ..] if packet.first().is_some_and(|first| first >> 4 == 4) => Ok((port, packet)),
        [0x86, 0xdd, packet @ ..] if packet.first().is_some_and(|first| first >> 4 == 6) => {
            Ok((port, packet))
        }
        _ => Err("neither IPv4 nor IPv6".into()),
    }
}

impl Oracle<'_> {
    pub fn expects(&mut self, input: &Input) -> Expected {
        match self.forwards(input) {
            Ok(forwarded) => Expected::Forward(forwarded),
            Err(why) => Expected::Pass(why),
        }
    }

    fn forwards(&mut self, input: &Input) -> Result<Forwarded, String> {
        let (_, octets) = arrived(input)?;
        let packet = self.taken(octets)?;
        let made = self.engine_makes(octets)?;
        let is_4 = made[0] >> 4 == 4;
        let was_4 = matches!(packet.addresses, Addresses::V4 { .. });
        let (packet, any_identification) = match (was_4, is_4) {
            (true, false) if packet.protocol == protocol::IPV6 => (count_hop(made)?, false),
            // In a tunnel, not translated: it grows.
            (false, true) if made.len() == 20 + packet.length as usize => {
                // The kernel has routed it into the tunnel, which is a hop.
                let counted = count_hop(octets[..packet.length as usize].to_vec())?;
                let made = self.engine_makes(&counted)?;
                if made[8] <= 1 {
                    return Err("the kernel answers: the outer header has no hop left".into());
                }
                (made, true)
            }
            _ => {
                let may_be_cut = is_4 && made[6] & 0x40 == 0;
                // Where hosts do not share the source, the identification stays.
                let is_same_source = was_4 && made[12..16] == octets[12..16];
                (made, may_be_cut && !is_same_source)
            }
        };
        self.sent(packet, any_identification)
    }

    /// Whether the kernel would give the packet to the engine.
    fn taken(&self, octets: &[u8]) -> Result<Packet, String> {
        let packet = parse(octets).map_err(|reason| format!("{reason:?}"))?;
        let (source, destination): (IpAddr, IpAddr) = match packet.addresses {
            Addresses::V4 { source, destination } => (source.into(), destination.into()),
            Addresses::V6 { source, destination } => (source.into(), destination.into()),
        };
        if octets[0] >> 4 == 4 {
            if header_sum(octets) != 0xffff {
                return Err("the kernel drops a wrong header checksum".into());
            }
            if self.scene.target(source) == Target::Local {
                return Err("the kernel drops a source of its own".into());
            }
        }
        match self.scene.sent(source, destination) {
            Target::Tun if packet.hops <= 1 => Err("the kernel answers: it has no hop left".into()),
            Target::Tun if packet.length as usize > TUN_MTU => {
                Err("the kernel answers: too big for the TUN device".into())
            }
            Target::Tun => Ok(packet),
            Target::Local if packet.protocol == protocol::IPV6 && self.world.local.contains(&destination) => {
                Ok(packet)
            }
            target => Err(format!("the kernel does not route it to the engine, but to {target:?}")),
        }
    }

    fn engine_makes(&mut self, octets: &[u8]) -> Result<Vec<u8>, String> {
        let mut frame = Frame::holding(octets);
        let mut out = Outbox::new(64);
        self.engine.process(std::slice::from_mut(&mut frame), self.now, &mut out);
        match frame.verdict {
            Verdict::Forward if out.is_empty() => Ok(frame.bytes().to_vec()),
            verdict => Err(format!("the engine: {verdict:?}")),
        }
    }

    /// Where the kernel sends it.
    fn sent(&self, packet: Vec<u8>, any_identification: bool) -> Result<Forwarded, String> {
        let (source, destination): (IpAddr, IpAddr) = if packet[0] >> 4 == 4 {
            let address = |at: usize| <[u8; 4]>::try_from(&packet[at..at + 4]).unwrap().into();
            (address(12), address(16))
        } else {
            let address = |at: usize| <[u8; 16]>::try_from(&packet[at..at + 16]).unwrap().into();
            (address(8), address(24))
        };
        let target = self.scene.sent(source, destination);
        let Target::Neighbour(port, mtu) = target else {
            return Err(format!("the kernel sends the result to {target:?}"));
        };
        let link = if port == Port::Narrow { NARROW } else { 1_500 };
        let mtu = mtu.unwrap_or(link).min(link);
        if port == Port::Unhooked {
            return Err("no program may send there".into());
        }
        if packet.len() > usize::from(mtu) {
            return Err(format!("the kernel answers: it is larger than {mtu} octets"));
        }
        Ok(Forwarded { port, packet, any_identification })
    }
}

/// The kernel counts down the hop limit of an IPv6 packet that it forwards.
fn count_hop(mut packet: Vec<u8>) -> Result<Vec<u8>, String> {
    if packet[7] <= 1 {
        return Err("the kernel answers: it has no hop left".into());
    }
    packet[7] -= 1;
    Ok(packet)
}

/// The folded sum of an IPv4 header: all ones if its checksum is right.
pub fn header_sum(packet: &[u8]) -> u16 {
    super::draft::folded(super::draft::sum(&packet[..usize::from(packet[0] & 15) * 4]))
}
