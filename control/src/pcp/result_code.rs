//! Result codes (RFC 6887 §7.4).

/// How long a client should expect a short lifetime error again, in seconds (§7.4).
const SHORT: u32 = 30;
/// The same for a long lifetime error.
const LONG: u32 = 30 * 60;

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ResultCode {
    /// Success.
    Success = 0,
    /// The version is not 2.
    UnsuppVersion = 1,
    /// Disabled for this client, or refused by policy; another nonce.
    NotAuthorized = 2,
    /// The request could not be parsed.
    MalformedRequest = 3,
    /// An unknown opcode.
    UnsuppOpcode = 4,
    /// A mandatory option that is unknown or disabled.
    UnsuppOption = 5,
    /// An option with wrong contents, or in the wrong place.
    MalformedOption = 6,
    /// The NAT has no external address.
    NetworkFailure = 7,
    /// A table or the pool is full.
    NoResources = 8,
    /// A transport protocol that is not mapped.
    UnsuppProtocol = 9,
    /// The subscriber has as many mappings as it may.
    UserExQuota = 10,
    /// The suggested external endpoint is not available, and the client wants no other.
    CannotProvideExternal = 11,
    /// The client's address in the request is not the source of the packet.
    AddressMismatch = 12,
    /// The filters cannot be made.
    ExcessiveRemotePeers = 13,
}

impl ResultCode {
    /// All of them, by number.
    pub const ALL: [Self; 14] = [
        Self::Success,
        Self::UnsuppVersion,
        Self::NotAuthorized,
        Self::MalformedRequest,
        Self::UnsuppOpcode,
        Self::UnsuppOption,
        Self::MalformedOption,
        Self::NetworkFailure,
        Self::NoResources,
        Self::UnsuppProtocol,
        Self::UserExQuota,
        Self::CannotProvideExternal,
        Self::AddressMismatch,
        Self::ExcessiveRemotePeers,
    ];

    /// The RFC's name, in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::UnsuppVersion => "unsupp_version",
            Self::NotAuthorized => "not_authorized",
            Self::MalformedRequest => "malformed_request",
            Self::UnsuppOpcode => "unsupp_opcode",
            Self::UnsuppOption => "unsupp_option",
            Self::MalformedOption => "malformed_option",
            Self::NetworkFailure => "network_failure",
            Self::NoResources => "no_resources",
            Self::UnsuppProtocol => "unsupp_protocol",
            Self::UserExQuota => "user_ex_quota",
            Self::CannotProvideExternal => "cannot_provide_external",
            Self::AddressMismatch => "address_mismatch",
            Self::ExcessiveRemotePeers => "excessive_remote_peers",
        }
    }

    /// How long the error holds, in seconds; zero for success.
    pub const fn lifetime(self) -> u32 {
        match self {
            Self::Success => 0,
            Self::NetworkFailure | Self::NoResources | Self::UserExQuota | Self::CannotProvideExternal => {
                SHORT
            }
            Self::UnsuppVersion
            | Self::NotAuthorized
            | Self::MalformedRequest
            | Self::UnsuppOpcode
            | Self::UnsuppOption
            | Self::MalformedOption
            | Self::UnsuppProtocol
            | Self::AddressMismatch
            | Self::ExcessiveRemotePeers => LONG,
        }
    }

    /// Whether the request was not successfully parsed: then the response keeps the last 96 bits of the client's address (§7.2).
    pub(super) const fn is_unparsed(self) -> bool {
        matches!(
            self,
            Self::UnsuppVersion | Self::MalformedRequest | Self::UnsuppOpcode | Self::MalformedOption
        )
    }
}
