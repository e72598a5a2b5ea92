//! Answers without data: refused queries, failures, and bogus answers.

use super::super::answer::Answer;
use super::super::compose::{self, ResponseOptions};
use super::super::outcome::Outcome;
use super::failures::Failed;
use super::info_code::{
    BOGUS, INDETERMINATE, NO_REACHABLE_AUTHORITY, NOT_AUTHORITATIVE, NOT_SUPPORTED, OTHER, PROHIBITED,
};
use super::responder::{QueryContext, Responder};

/// RFC 1035 §4.1.1.
const SERVFAIL: u16 = 2;
/// RFC 1035 §4.1.1.
const REFUSED: u16 = 5;
/// RFC 7873 §8.
const BADCOOKIE: u16 = 23;

impl Responder {
    fn say(
        case: &QueryContext<'_>,
        rcode: u16,
        why: (u16, &str),
        outcome: Outcome,
        out: &mut Vec<u8>,
    ) -> Outcome {
        compose::empty(
            out,
            case.query,
            rcode,
            None,
            &ResponseOptions { extended_error: Some(why), ..case.response_options() },
        );
        outcome
    }

    /// The client may not ask.
    pub(super) fn forbid(case: &QueryContext<'_>, out: &mut Vec<u8>) -> Outcome {
        Self::say(case, REFUSED, (PROHIBITED, "not a client of this resolver"), Outcome::Refused, out)
    }

    /// The client is over its rate, or forged queries with its address are: it can prove its address by a cookie, or over TCP, and then has
    /// a separate rate.
    pub(super) fn forbid_for_now(case: &QueryContext<'_>, out: &mut Vec<u8>) -> Outcome {
        if case.proven {
            return Self::say(case, REFUSED, (PROHIBITED, "too many queries"), Outcome::RateLimited, out);
        }
        if case.has_bad_cookie() {
            compose::empty(out, case.query, BADCOOKIE, None, &case.response_options());
        } else {
            Self::ask_again_by_stream(case, out);
        }
        Outcome::RateLimited
    }

    /// This may not be asked.
    pub(super) fn refuse(case: &QueryContext<'_>, out: &mut Vec<u8>) -> Outcome {
        Self::say(case, REFUSED, (NOT_SUPPORTED, "not forwarded"), Outcome::Refused, out)
    }

    /// Without RD, only what is known is answered.
    pub(super) fn refuse_recursion(case: &QueryContext<'_>, out: &mut Vec<u8>) -> Outcome {
        Self::say(case, REFUSED, (NOT_AUTHORITATIVE, "recursion not desired"), Outcome::Refused, out)
    }

    /// There is a server, and no address that could represent it.
    pub(super) fn unmapped(case: &QueryContext<'_>, why: &'static str, out: &mut Vec<u8>) -> Outcome {
        Self::say(case, SERVFAIL, (OTHER, why), Outcome::Unmapped, out)
    }

    /// An empty answer of no length at all: the client repeats its query over TCP, which cannot be forged.
    pub(super) fn ask_again_by_stream(case: &QueryContext<'_>, out: &mut Vec<u8>) -> Outcome {
        let options = ResponseOptions { limit: Some(0), ..case.response_options() };
        compose::empty(out, case.query, 0, None, &options);
        Outcome::Truncated
    }

    /// There is no room to wait, or to ask.
    pub(super) fn overloaded(case: &QueryContext<'_>, why: (u16, &str), out: &mut Vec<u8>) -> Outcome {
        Self::say(case, SERVFAIL, why, Outcome::Overload, out)
    }

    /// There is little room, and the client's cookie is not ours: it has a good one now.
    pub(super) fn bad_cookie(case: &QueryContext<'_>, out: &mut Vec<u8>) -> Outcome {
        compose::empty(out, case.query, BADCOOKIE, None, &case.response_options());
        Outcome::Overload
    }

    /// It has taken too long.
    pub(super) fn too_late(case: &QueryContext<'_>, out: &mut Vec<u8>) -> Outcome {
        let why = (NO_REACHABLE_AUTHORITY, "no answer in time");
        Self::say(case, SERVFAIL, why, Outcome::UpstreamFailure, out)
    }

    /// It failed lately.
    pub(super) fn failed(&self, case: &QueryContext<'_>, failed: Failed, out: &mut Vec<u8>) -> Outcome {
        Self::say(case, SERVFAIL, (failed.code, failed.why), Outcome::UpstreamFailure, out)
    }

    /// It does not validate (RFC 6147 §5.5: RCODE 2).
    pub(super) fn bogus(case: &QueryContext<'_>, answer: &Answer, out: &mut Vec<u8>) -> Outcome {
        Self::say(case, SERVFAIL, answer.own_error().unwrap_or((BOGUS, "")), Outcome::Bogus, out)
    }

    /// The A records validate, but the absence of AAAA records is not proven: in a signed zone it would be, so there may be some
    /// (RFC 6147 §5.5).
    pub(super) fn unproven(case: &QueryContext<'_>, out: &mut Vec<u8>) -> Outcome {
        let why = (INDETERMINATE, "the answer for AAAA cannot be validated");
        Self::say(case, SERVFAIL, why, Outcome::Bogus, out)
    }
}
