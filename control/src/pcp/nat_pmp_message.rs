//! What responses of NAT-PMP have in common (RFC 6886 §3.2, §3.5).

use super::message::RESPONSE;
use super::result_code::ResultCode;
use core::net::Ipv4Addr;

/// §3.2.
pub(super) const VERSION: u8 = 0;
/// §3.2.
pub(super) const EXTERNAL_ADDRESS: u8 = 0;
/// §3.5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum Outcome {
    Success = 0,
    NotAuthorized = 2,
    NetworkFailure = 3,
    OutOfResources = 4,
    UnsupportedOpcode = 5,
}

impl Outcome {
    /// What PCP's result codes are in NAT-PMP.
    pub(super) const fn of(result: ResultCode) -> Self {
        match result {
            ResultCode::Success => Self::Success,
            ResultCode::NetworkFailure => Self::NetworkFailure,
            ResultCode::NoResources | ResultCode::UserExQuota | ResultCode::CannotProvideExternal => {
                Self::OutOfResources
            }
            ResultCode::UnsuppVersion
            | ResultCode::NotAuthorized
            | ResultCode::MalformedRequest
            | ResultCode::UnsuppOpcode
            | ResultCode::UnsuppOption
            | ResultCode::MalformedOption
            | ResultCode::UnsuppProtocol
            | ResultCode::AddressMismatch
            | ResultCode::ExcessiveRemotePeers => Self::NotAuthorized,
        }
    }
}

/// The external address, without a request (§3.2.1).
pub(super) fn announcement(address: Ipv4Addr, epoch: u32) -> Vec<u8> {
    [header(EXTERNAL_ADDRESS, Outcome::Success, epoch), address.octets().to_vec()].concat()
}

/// What all responses begin with.
pub(super) fn header(opcode: u8, outcome: Outcome, epoch: u32) -> Vec<u8> {
    let [high, low] = (outcome as u16).to_be_bytes();
    let mut octets = vec![VERSION, opcode | RESPONSE, high, low];
    octets.extend(epoch.to_be_bytes());
    octets
}
