//! Options of requests (RFC 6887 §7.3, §13, RFC 7225, RFC 7753), octets to values.
//!
//! ```text
//!     |  Option Code  |  Reserved     |       Option Length           |
//!     :                       (optional) Data, padded to 4 octets     :
//! ```

use super::filter::FilterOption;
use super::message::{ANNOUNCE, MAP, PEER, address_of, take};
use super::result_code::ResultCode;
use core::net::IpAddr;

/// §13.1.
pub(super) const THIRD_PARTY: u8 = 1;
/// §13.2.
pub(super) const PREFER_FAILURE: u8 = 2;
/// §13.3.
pub(super) const FILTER: u8 = 3;
/// RFC 7225 §4.
pub(super) const PREFIX64: u8 = 129;
/// RFC 7753 §4.
pub(super) const PORT_SET: u8 = 130;
/// From here on a server may ignore options that it does not know.
const OPTIONAL: u8 = 128;

/// The options of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) third_party: Option<IpAddr>,
    pub(super) prefer_failure: bool,
    pub(super) filters: Vec<FilterOption>,
    pub(super) prefix64: bool,
    /// The number of ports, and whether parity is to be preserved.
    pub(super) port_set: Option<(u16, bool)>,
    /// A mandatory option is not known.
    pub(super) has_unknown: bool,
}

/// Reads the options of a request with this opcode.
pub(super) fn parse(octets: &[u8], opcode: u8) -> Result<Options, ResultCode> {
    let mut options = Options::default();
    // An error in the structure counts more than one in an option.
    for option in split(octets)? {
        options.add(option, opcode)?;
    }
    if options.has_unknown { Err(ResultCode::UnsuppOption) } else { Ok(options) }
}

/// Codes and contents.
fn split(mut octets: &[u8]) -> Result<Vec<(u8, &[u8])>, ResultCode> {
    let mut all = Vec::new();
    while !octets.is_empty() {
        let [code, _, high, low] = take(&mut octets).ok_or(ResultCode::MalformedOption)?;
        let length = usize::from(u16::from_be_bytes([high, low]));
        let data = octets.get(..length).ok_or(ResultCode::MalformedOption)?;
        octets = octets.get(length.next_multiple_of(4)..).ok_or(ResultCode::MalformedOption)?;
        all.push((code, data));
    }
    Ok(all)
}

impl Options {
    fn add(&mut self, (code, data): (u8, &[u8]), opcode: u8) -> Result<(), ResultCode> {
        let malformed = ResultCode::MalformedOption;
        let belongs = |opcodes: &[u8]| if opcodes.contains(&opcode) { Ok(()) } else { Err(malformed) };
        match code {
            THIRD_PARTY => {
                belongs(&[MAP, PEER])?;
                let address = <[u8; 16]>::try_from(data).map_err(|_| malformed)?;
                once(self.third_party.replace(address_of(address)).is_none())
            }
            // §12.1.
            PREFER_FAILURE if opcode == PEER => Err(ResultCode::MalformedRequest),
            PREFER_FAILURE => {
                belongs(&[MAP])?;
                once(data.is_empty() && !std::mem::replace(&mut self.prefer_failure, true))
            }
            FILTER => {
                belongs(&[MAP])?;
                self.filters.push(filter(data).ok_or(malformed)?);
                Ok(())
            }
            PREFIX64 if opcode == MAP || opcode == ANNOUNCE => {
                once(!std::mem::replace(&mut self.prefix64, true))
            }
            PORT_SET if opcode == MAP => {
                let [high, low, _, _, flags] = <[u8; 5]>::try_from(data).map_err(|_| malformed)?;
                let set = (u16::from_be_bytes([high, low]), flags & 1 != 0);
                once(self.port_set.replace(set).is_none())
            }
            _ => {
                self.has_unknown |= code < OPTIONAL;
                Ok(())
            }
        }
    }
}

const fn once(is_first: bool) -> Result<(), ResultCode> {
    if is_first { Ok(()) } else { Err(ResultCode::MalformedOption) }
}

/// The contents of a FILTER.
fn filter(data: &[u8]) -> Option<FilterOption> {
    let data = <[u8; 20]>::try_from(data).ok()?;
    let mut rest = &data[..];
    let [_, length, high, low] = take(&mut rest)?;
    let (address, port) = (address_of(take(&mut rest)?), u16::from_be_bytes([high, low]));
    match (address, length) {
        (_, 0) => Some(FilterOption::Clear),
        (IpAddr::V4(_), 96..=128) => Some(FilterOption::Admit { address, length: length - 96, port }),
        (IpAddr::V6(_), 1..=128) => Some(FilterOption::Admit { address, length, port }),
        (IpAddr::V4(_) | IpAddr::V6(_), _) => None,
    }
}
