//! DHCPv4 messages (RFC 2131 §2, RFC 2132): the fixed header and the options that a lease needs. Others are skipped.

use super::malformed::Malformed;
use core::net::{Ipv4Addr, Ipv6Addr};

/// Octets in front of the magic cookie.
const HEADER: usize = 236;
/// RFC 2131 §3.
const COOKIE: [u8; 4] = [99, 130, 83, 99];
/// The least length of a BOOTP message, which some peers expect.
const LEAST: usize = 300;
/// The hardware type of our clients, whose hardware address is the IPv6 address of their tunnel: an experimental one (RFC 5494 §2).
pub const HARDWARE_TYPE: u8 = 36;
/// The longest client identifier that is kept.
const MAX_CLIENT_ID: usize = 255;

const PAD: u8 = 0;
const SUBNET_MASK: u8 = 1;
const REQUESTED_ADDRESS: u8 = 50;
const LEASE_TIME: u8 = 51;
const MESSAGE_TYPE: u8 = 53;
const SERVER_ID: u8 = 54;
const RENEWAL_TIME: u8 = 58;
const REBINDING_TIME: u8 = 59;
const CLIENT_ID: u8 = 61;
/// RFC 8539 §7.2: OPTION_DHCP4O6_S46_SADDR.
const SOFTWIRE_SOURCE: u8 = 109;
const END: u8 = 255;

/// DHCP message types (RFC 2132 §9.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum MessageKind {
    /// DHCPDISCOVER.
    Discover = 1,
    /// DHCPOFFER.
    Offer = 2,
    /// DHCPREQUEST.
    Request = 3,
    /// DHCPDECLINE.
    Decline = 4,
    /// DHCPACK.
    Ack = 5,
    /// DHCPNAK.
    Nak = 6,
    /// DHCPRELEASE.
    Release = 7,
    /// DHCPINFORM.
    Inform = 8,
}

impl MessageKind {
    const fn of(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Discover,
            2 => Self::Offer,
            3 => Self::Request,
            4 => Self::Decline,
            5 => Self::Ack,
            6 => Self::Nak,
            7 => Self::Release,
            8 => Self::Inform,
            _ => return None,
        })
    }
}

/// A message. Addresses that are zero are [`Ipv4Addr::UNSPECIFIED`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dhcpv4 {
    /// Whether a server sent it (`op`).
    pub is_reply: bool,
    /// Its type.
    pub kind: MessageKind,
    /// Hardware type and address.
    pub hardware: (u8, Vec<u8>),
    /// Transaction id.
    pub xid: u32,
    /// Seconds since the client began.
    pub secs: u16,
    /// Flags: the broadcast bit is the first.
    pub flags: u16,
    /// Client's address, while it has a lease.
    pub ciaddr: Ipv4Addr,
    /// "Your" address: what is leased.
    pub yiaddr: Ipv4Addr,
    /// Relay agent's address.
    pub giaddr: Ipv4Addr,
    /// Requested IP Address.
    pub requested: Option<Ipv4Addr>,
    /// IP Address Lease Time in seconds.
    pub lease_time: Option<u32>,
    /// Server Identifier.
    pub server: Option<Ipv4Addr>,
    /// Renewal (T1) Time in seconds.
    pub renewal: Option<u32>,
    /// Rebinding (T2) Time in seconds.
    pub rebinding: Option<u32>,
    /// Subnet Mask.
    pub mask: Option<Ipv4Addr>,
    /// Client-identifier.
    pub client_id: Vec<u8>,
    /// The client's end of its tunnel (RFC 8539).
    pub softwire_source: Option<Ipv6Addr>,
}

impl Dhcpv4 {
    /// A client's message without options.
    pub const fn new(kind: MessageKind, xid: u32) -> Self {
        Self {
            is_reply: false,
            kind,
            hardware: (0, Vec::new()),
            xid,
            secs: 0,
            flags: 0,
            ciaddr: Ipv4Addr::UNSPECIFIED,
            yiaddr: Ipv4Addr::UNSPECIFIED,
            giaddr: Ipv4Addr::UNSPECIFIED,
            requested: None,
            lease_time: None,
            server: None,
            renewal: None,
            rebinding: None,
            mask: None,
            client_id: Vec::new(),
            softwire_source: None,
        }
    }

    /// Reads a message. An option that comes twice counts the first time, except a long client identifier, which is joined (RFC 3396).
    ///
    /// # Errors
    /// Why it is discarded.
    pub fn parse(octets: &[u8]) -> Result<Self, Malformed> {
        let (header, rest) = octets.split_at_checked(HEADER).ok_or(Malformed::Truncated)?;
        let (cookie, mut options) = rest.split_first_chunk::<4>().ok_or(Malformed::NoCookie)?;
        if *cookie != COOKIE {
            return Err(Malformed::NoCookie);
        }
        let word =
            |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let half = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let length = usize::from(header[2]);
        if !matches!(header[0], 1 | 2) || length > 16 {
            return Err(Malformed::BadHeader);
        }
        let mut kind = None;
        let mut message = Self {
            is_reply: header[0] == 2,
            hardware: (header[1], header[28..28 + length].to_vec()),
            secs: half(8),
            flags: half(10),
            ciaddr: word(12).into(),
            yiaddr: word(16).into(),
            giaddr: word(24).into(),
            ..Self::new(MessageKind::Discover, word(4))
        };
        while let Some((code, rest)) = options.split_first() {
            options = rest;
            match *code {
                PAD => continue,
                END => break,
                _ => {}
            }
            let (length, rest) = options.split_first().ok_or(Malformed::Truncated)?;
            let (data, rest) = rest.split_at_checked((*length).into()).ok_or(Malformed::Truncated)?;
            options = rest;
            message.take(*code, data, &mut kind)?;
        }
        message.kind = kind.ok_or(Malformed::NoType)?;
        Ok(message)
    }

    fn take(&mut self, code: u8, data: &[u8], kind: &mut Option<MessageKind>) -> Result<(), Malformed> {
        let number = || -> Result<u32, Malformed> {
            let octets: [u8; 4] = data.try_into().map_err(|_| Malformed::BadOption(code))?;
            Ok(u32::from_be_bytes(octets))
        };
        match code {
            MESSAGE_TYPE => {
                let [number] = data else { return Err(Malformed::BadOption(code)) };
                *kind = kind.or(MessageKind::of(*number));
            }
            REQUESTED_ADDRESS => self.requested = self.requested.or(Some(number()?.into())),
            LEASE_TIME => self.lease_time = self.lease_time.or(Some(number()?)),
            SERVER_ID => self.server = self.server.or(Some(number()?.into())),
            RENEWAL_TIME => self.renewal = self.renewal.or(Some(number()?)),
            REBINDING_TIME => self.rebinding = self.rebinding.or(Some(number()?)),
            SUBNET_MASK => self.mask = self.mask.or(Some(number()?.into())),
            CLIENT_ID => {
                if data.is_empty() || self.client_id.len() + data.len() > MAX_CLIENT_ID {
                    return Err(Malformed::BadOption(code));
                }
                self.client_id.extend(data);
            }
            SOFTWIRE_SOURCE => {
                let octets: [u8; 16] = data.try_into().map_err(|_| Malformed::BadOption(code))?;
                self.softwire_source = self.softwire_source.or(Some(octets.into()));
            }
            _ => {}
        }
        Ok(())
    }

    /// As octets, without IP and UDP headers.
    pub fn to_octets(&self) -> Vec<u8> {
        let mut octets = vec![0; HEADER];
        let hardware = &self.hardware.1[..self.hardware.1.len().min(16)];
        octets[0] = if self.is_reply { 2 } else { 1 };
        (octets[1], octets[2]) = (self.hardware.0, hardware.len() as u8);
        octets[4..8].copy_from_slice(&self.xid.to_be_bytes());
        octets[8..10].copy_from_slice(&self.secs.to_be_bytes());
        octets[10..12].copy_from_slice(&self.flags.to_be_bytes());
        octets[12..16].copy_from_slice(&self.ciaddr.octets());
        octets[16..20].copy_from_slice(&self.yiaddr.octets());
        octets[24..28].copy_from_slice(&self.giaddr.octets());
        octets[28..28 + hardware.len()].copy_from_slice(hardware);
        octets.extend(COOKIE);
        let mut option = |code: u8, data: &[u8]| {
            octets.extend([code, data.len() as u8]);
            octets.extend(data);
        };
        option(MESSAGE_TYPE, &[self.kind as u8]);
        let numbers = [
            (SUBNET_MASK, self.mask.map(u32::from)),
            (REQUESTED_ADDRESS, self.requested.map(u32::from)),
            (LEASE_TIME, self.lease_time),
            (SERVER_ID, self.server.map(u32::from)),
            (RENEWAL_TIME, self.renewal),
            (REBINDING_TIME, self.rebinding),
        ];
        for (code, number) in numbers {
            if let Some(number) = number {
                option(code, &number.to_be_bytes());
            }
        }
        if !self.client_id.is_empty() {
            option(CLIENT_ID, &self.client_id[..self.client_id.len().min(MAX_CLIENT_ID)]);
        }
        if let Some(source) = self.softwire_source {
            option(SOFTWIRE_SOURCE, &source.octets());
        }
        octets.push(END);
        octets.resize(octets.len().max(LEAST), PAD);
        octets
    }
}
