//! The templates of IPFIX records about NAT (RFC 8158 §4.6).

/// An Information Element: its number and its octets.
pub(super) type Element = (u16, u16);

const TIME: Element = (323, 8);
const NAT_EVENT: Element = (230, 1);
const PROTOCOL: Element = (4, 1);
const SOURCE4: Element = (8, 4);
const SOURCE6: Element = (27, 16);
const SOURCE_PORT: Element = (7, 2);
const POST_SOURCE4: Element = (225, 4);
const POST_SOURCE_PORT: Element = (227, 2);
const POST_DESTINATION4: Element = (226, 4);
const POST_DESTINATION_PORT: Element = (228, 2);
const RANGE_START: Element = (361, 2);
const RANGE_END: Element = (362, 2);
const POOL_ID: Element = (283, 4);
const VRF: Element = (234, 4);
const QUOTA_EVENT: Element = (466, 4);
const THRESHOLD_EVENT: Element = (467, 4);
const MAX_SESSIONS: Element = (471, 4);
const MAX_BINDINGS: Element = (472, 4);
const MAX_OF_USER: Element = (473, 4);
const POOL_LOW: Element = (477, 4);
const PORTS_HIGH: Element = (478, 4);

/// A kind of record. Its number is that of its template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Template {
    Nat44Binding = 256,
    Nat64Binding = 257,
    Nat44Session = 258,
    Nat64Session = 259,
    Nat44Block = 260,
    Nat64Block = 261,
    AddressesExhausted = 262,
    SessionsExceeded = 263,
    BindingsExceeded = 264,
    UserExceeded44 = 265,
    UserExceeded64 = 266,
    PortsHigh = 267,
    PoolLow = 268,
    DsLiteBinding = 269,
    DsLiteSession = 270,
    Nat64Address = 271,
}

const BINDING44: [Element; 7] =
    [TIME, NAT_EVENT, PROTOCOL, SOURCE4, SOURCE_PORT, POST_SOURCE4, POST_SOURCE_PORT];
const BINDING64: [Element; 7] =
    [TIME, NAT_EVENT, PROTOCOL, SOURCE6, SOURCE_PORT, POST_SOURCE4, POST_SOURCE_PORT];
const SESSION44: [Element; 9] = [
    TIME,
    NAT_EVENT,
    PROTOCOL,
    SOURCE4,
    SOURCE_PORT,
    POST_SOURCE4,
    POST_SOURCE_PORT,
    POST_DESTINATION4,
    POST_DESTINATION_PORT,
];
const SESSION64: [Element; 9] = [
    TIME,
    NAT_EVENT,
    PROTOCOL,
    SOURCE6,
    SOURCE_PORT,
    POST_SOURCE4,
    POST_SOURCE_PORT,
    POST_DESTINATION4,
    POST_DESTINATION_PORT,
];

/// As of NAT44, with the address of the B4 (RFC 6333 §6.6, §11).
const BINDING_DS_LITE: [Element; 8] =
    [TIME, NAT_EVENT, PROTOCOL, SOURCE6, SOURCE4, SOURCE_PORT, POST_SOURCE4, POST_SOURCE_PORT];
const SESSION_DS_LITE: [Element; 10] = [
    TIME,
    NAT_EVENT,
    PROTOCOL,
    SOURCE6,
    SOURCE4,
    SOURCE_PORT,
    POST_SOURCE4,
    POST_SOURCE_PORT,
    POST_DESTINATION4,
    POST_DESTINATION_PORT,
];

/// RFC 8158 §4.6.9: a lease of 4over6.
const ADDRESS64: [Element; 4] = [TIME, NAT_EVENT, SOURCE6, POST_SOURCE4];

/// RFC 8158 §4.6.10.
const BLOCK44: [Element; 6] = [TIME, NAT_EVENT, SOURCE4, POST_SOURCE4, RANGE_START, RANGE_END];
const BLOCK64: [Element; 6] = [TIME, NAT_EVENT, SOURCE6, POST_SOURCE4, RANGE_START, RANGE_END];

/// RFC 8158 §4.6.5.
const EXHAUSTED: [Element; 3] = [TIME, NAT_EVENT, POOL_ID];
/// RFC 8158 §4.6.7.1 to §4.6.7.3.
const SESSIONS: [Element; 4] = [TIME, NAT_EVENT, QUOTA_EVENT, MAX_SESSIONS];
const BINDINGS: [Element; 4] = [TIME, NAT_EVENT, QUOTA_EVENT, MAX_BINDINGS];
const USER44: [Element; 6] = [TIME, NAT_EVENT, QUOTA_EVENT, MAX_OF_USER, SOURCE4, VRF];
const USER64: [Element; 6] = [TIME, NAT_EVENT, QUOTA_EVENT, MAX_OF_USER, SOURCE6, VRF];
/// RFC 8158 §4.6.8.2, and the protocol.
const HIGH: [Element; 5] = [TIME, NAT_EVENT, THRESHOLD_EVENT, PORTS_HIGH, PROTOCOL];
/// RFC 8158 §4.6.8.1.
const LOW: [Element; 5] = [TIME, NAT_EVENT, THRESHOLD_EVENT, POOL_ID, POOL_LOW];

impl Template {
    pub(super) const ALL: [Self; 16] = [
        Self::Nat44Binding,
        Self::Nat64Binding,
        Self::Nat44Session,
        Self::Nat64Session,
        Self::Nat44Block,
        Self::Nat64Block,
        Self::AddressesExhausted,
        Self::SessionsExceeded,
        Self::BindingsExceeded,
        Self::UserExceeded44,
        Self::UserExceeded64,
        Self::PortsHigh,
        Self::PoolLow,
        Self::DsLiteBinding,
        Self::DsLiteSession,
        Self::Nat64Address,
    ];

    pub(super) const fn elements(self) -> &'static [Element] {
        match self {
            Self::Nat44Binding => &BINDING44,
            Self::Nat64Binding => &BINDING64,
            Self::Nat44Session => &SESSION44,
            Self::Nat64Session => &SESSION64,
            Self::Nat44Block => &BLOCK44,
            Self::Nat64Block => &BLOCK64,
            Self::AddressesExhausted => &EXHAUSTED,
            Self::SessionsExceeded => &SESSIONS,
            Self::BindingsExceeded => &BINDINGS,
            Self::UserExceeded44 => &USER44,
            Self::UserExceeded64 => &USER64,
            Self::PortsHigh => &HIGH,
            Self::PoolLow => &LOW,
            Self::DsLiteBinding => &BINDING_DS_LITE,
            Self::DsLiteSession => &SESSION_DS_LITE,
            Self::Nat64Address => &ADDRESS64,
        }
    }
}
