//! Queries for A records of hosts whose addresses are leased.

use super::super::answer::rtype;
use super::super::compose::{self, LocalRecord};
use super::super::key::Key;
use super::super::leased::LeasedAddress;
use super::super::outcome::Outcome;
use super::responder::{Evaluation, QueryContext, Responder};

/// The longest TTL, in seconds: a lease may end at any time.
const LONGEST_TTL: u32 = 30;
/// The name of the question (RFC 1035 §4.1.4).
const OF_QUESTION: [u8; 2] = [0xc0, 0x0c];

impl Responder {
    /// The answer, if the name is such a host's. Validating clients get the upstream's answer.
    pub(super) fn leased(&self, case: &QueryContext<'_>, key: &Key, out: &mut Vec<u8>) -> Option<Evaluation> {
        let names = self.leased.as_ref().filter(|_| !case.is_untouched())?;
        let outcome = match names.address(key.name(), (case.client, !case.is_datagram()), case.now) {
            LeasedAddress::NotListed => return None,
            LeasedAddress::Unproven => Self::ask_again_by_stream(case, out),
            LeasedAddress::None => Self::unmapped(case, "no address for this host", out),
            LeasedAddress::Has(address, seconds) => {
                let (owner, data) = (Some(&OF_QUESTION[..]), address.octets());
                let ttl = seconds.min(LONGEST_TTL);
                let record = LocalRecord { owner, rtype: rtype::A, ttl, data: &data };
                compose::local(out, case.query, 0, (&[record], &[]), &case.response_options());
                Outcome::Leased
            }
        };
        Some(Evaluation::said(outcome))
    }
}
