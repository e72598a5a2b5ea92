//! DNS cookies for clients (RFC 7873), made as RFC 9018 §4 has it, so that servers with one secret understand each other's.
//!
//! ```text
//!   client cookie │ version 1 │ reserved │ timestamp │ hash          hash = SipHash-2-4(all before it │ client's address, secret)
//!   8 octets      │ 1         │ 3        │ 4         │ 8
//! ```
//!
//! A client that shows a cookie of ours gets packets at its address: it is not forged.

use std::net::IpAddr;

/// RFC 7873 §4: a client's part.
const CLIENT: usize = 8;
/// RFC 7873 §4: a server's part has from 8 to 32 octets.
const SERVER: std::ops::RangeInclusive<usize> = 8..=32;
/// RFC 9018 §4.1: the version, and the octets that are reserved.
const HEAD: [u8; 4] = [1, 0, 0, 0];
/// RFC 9018 §4.3: a cookie is accepted for this time, in seconds, …
const LONGEST: u32 = 3_600;
/// … and so far in the future.
const AHEAD: u32 = 300;

/// Octets of a whole cookie that is made here.
pub const COOKIE_OCTETS: usize = CLIENT + 16;

/// A secret, shared by all servers that a client may take for the same one.
pub type CookieSecret = [u8; 16];

/// A server's own secrets, if it was given none: another one each day (RFC 7873 §7.1), all made from one seed, so that those who have the seed have
/// the same at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OwnSecrets {
    seed: CookieSecret,
}

impl OwnSecrets {
    /// RFC 7873 §7.1: a secret makes cookies for at most 26 hours; a day is usual.
    const LIFE: u64 = 86_400;

    pub(super) fn new(seed: CookieSecret) -> Self {
        Self { seed }
    }

    /// The accepted secrets; the first one is used for new cookies. The previous one is accepted as long as cookies made with it may be
    /// valid.
    pub(super) fn at(self, seconds: u64) -> arrayvec::ArrayVec<CookieSecret, 2> {
        // Nobody outside knows when it changes.
        let shifted = seconds.saturating_add(siphash(&self.seed, b"when") % Self::LIFE);
        let (day, since) = (shifted / Self::LIFE, shifted % Self::LIFE);
        let is_recent = since <= u64::from(LONGEST + AHEAD);
        let previous = day.checked_sub(1).filter(|_| is_recent);
        [day].into_iter().chain(previous).map(|day| self.of_day(day)).collect()
    }

    fn of_day(self, day: u64) -> CookieSecret {
        let half = |number: u8| {
            let mut input = [number; 9];
            input[..8].copy_from_slice(&day.to_be_bytes());
            siphash(&self.seed, &input).to_le_bytes()
        };
        let mut secret = CookieSecret::default();
        secret[..8].copy_from_slice(&half(0));
        secret[8..].copy_from_slice(&half(1));
        secret
    }
}

/// A client's COOKIE option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cookie {
    client: [u8; CLIENT],
    /// What it says that we gave it, if that is of our length.
    server: Option<[u8; 16]>,
}

impl Cookie {
    /// `None`: of no length that a cookie has (RFC 7873 §5.2.2).
    pub(super) fn read(option: &[u8]) -> Option<Self> {
        let (client, server) = option.split_first_chunk()?;
        let is_whole = server.is_empty() || SERVER.contains(&server.len());
        is_whole.then(|| Self { client: *client, server: server.try_into().ok() })
    }

    /// Whether it is one of ours, made with one of these secrets for this client, and lately.
    pub(super) fn is_valid(&self, secrets: &[CookieSecret], client: IpAddr, seconds: u64) -> bool {
        let Some((head, hash)) = self.server.as_ref().and_then(|server| server.split_last_chunk::<8>())
        else {
            return false;
        };
        let Some(timestamp) = head.last_chunk::<4>().map(|octets| u32::from_be_bytes(*octets)) else {
            return false;
        };
        // Serial number arithmetic (RFC 1982).
        let age = (seconds as u32).wrapping_sub(timestamp);
        let is_recent = age <= LONGEST || age.wrapping_neg() <= AHEAD;
        is_recent
            && head[0] == HEAD[0]
            && secrets.iter().any(|secret| self.hash(head, client, secret) == *hash)
    }

    /// What the client is to show next time.
    pub(super) fn answer(&self, secret: &CookieSecret, client: IpAddr, seconds: u64) -> [u8; COOKIE_OCTETS] {
        let mut head = [0; 8];
        head[..4].copy_from_slice(&HEAD);
        head[4..].copy_from_slice(&(seconds as u32).to_be_bytes());
        let mut whole = [0; COOKIE_OCTETS];
        whole[..CLIENT].copy_from_slice(&self.client);
        whole[CLIENT..CLIENT + 8].copy_from_slice(&head);
        whole[CLIENT + 8..].copy_from_slice(&self.hash(&head, client, secret));
        whole
    }

    fn hash(&self, head: &[u8], client: IpAddr, secret: &CookieSecret) -> [u8; 8] {
        let mut input = arrayvec::ArrayVec::<u8, 32>::new();
        input.extend(self.client.into_iter().chain(head.iter().copied()));
        match client.to_canonical() {
            IpAddr::V4(address) => input.extend(address.octets()),
            IpAddr::V6(address) => input.extend(address.octets()),
        }
        siphash(secret, &input).to_le_bytes()
    }
}

/// SipHash-2-4 (Aumasson and Bernstein, 2012).
fn siphash(key: &[u8; 16], input: &[u8]) -> u64 {
    let word = |octets: &[u8]| {
        let mut word = [0; 8];
        word[..octets.len()].copy_from_slice(octets);
        u64::from_le_bytes(word)
    };
    let (k0, k1) = (word(&key[..8]), word(&key[8..]));
    let mut state = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    let mut chunks = input.chunks_exact(8);
    for chunk in &mut chunks {
        absorb(&mut state, word(chunk));
    }
    absorb(&mut state, word(chunks.remainder()) | (input.len() as u64) << 56);
    state[2] ^= 0xff;
    (0..4).for_each(|_| round(&mut state));
    state[0] ^ state[1] ^ state[2] ^ state[3]
}

fn absorb(state: &mut [u64; 4], word: u64) {
    state[3] ^= word;
    (0..2).for_each(|_| round(state));
    state[0] ^= word;
}

fn round([v0, v1, v2, v3]: &mut [u64; 4]) {
    *v0 = v0.wrapping_add(*v1);
    *v1 = v1.rotate_left(13) ^ *v0;
    *v0 = v0.rotate_left(32);
    *v2 = v2.wrapping_add(*v3);
    *v3 = v3.rotate_left(16) ^ *v2;
    *v0 = v0.wrapping_add(*v3);
    *v3 = v3.rotate_left(21) ^ *v0;
    *v2 = v2.wrapping_add(*v1);
    *v1 = v1.rotate_left(17) ^ *v2;
    *v2 = v2.rotate_left(32);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn octets<const N: usize>(digits: &str) -> [u8; N] {
        let pair = |at: usize| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap();
        assert_eq!(digits.len(), 2 * N);
        std::array::from_fn(pair)
    }

    fn given(digits: &str) -> Cookie {
        Cookie::read(&octets::<24>(digits)).unwrap()
    }

    const SECRET: &str = "e5e973e5a6b2a43f48e7dc849e37bfcf";

    /// RFC 9018 Appendix A: secret, client, time, what it sent, what it got, and whether what it sent was valid.
    #[test]
    fn cookies_are_those_of_rfc_9018() {
        let new = "445536bcd2513298075a5d379663c962";
        let old = "dd3bdf9344b678b185a6f5cb60fca715";
        for (secrets, client, seconds, sent, got) in [
            (
                &[SECRET][..],
                "198.51.100.100",
                1_559_734_385,
                "2464c4abcf10c957010000005cf79f111f8130c3eee29480",
                "2464c4abcf10c957010000005cf7a871d4a564a1442aca77",
            ),
            (
                &[SECRET],
                "203.0.113.203",
                1_559_734_700,
                "fc93fc62807ddb8601abcdef5cf78f71a314227b6679ebf5",
                "fc93fc62807ddb86010000005cf7a9acf73a7810aca2381e",
            ),
            (
                &[new, old],
                "2001:db8:220:1:59de:d0f4:8769:82b8",
                1_559_741_961,
                "22681ab97d52c298010000005cf7c57926556bd0934c72f8",
                "22681ab97d52c298010000005cf7c609a6bb79d16625507a",
            ),
        ] {
            let secrets: Vec<CookieSecret> = secrets.iter().map(|secret| octets(secret)).collect();
            let client = client.parse().unwrap();
            let cookie = given(sent);
            // The second one is older than an hour.
            let sent_at = u32::from_be_bytes(octets::<24>(sent)[12..16].try_into().unwrap());
            assert!(cookie.is_valid(&secrets, client, u64::from(sent_at) + 60), "{sent}");
            assert_eq!(cookie.answer(&secrets[0], client, seconds), octets::<24>(got), "{sent}");
        }
        let first = Cookie::read(&octets::<8>("2464c4abcf10c957")).unwrap();
        let client = "198.51.100.100".parse().unwrap();
        let got = octets("2464c4abcf10c957010000005cf79f111f8130c3eee29480");
        assert_eq!(first.answer(&octets(SECRET), client, 1_559_731_985), got);
        assert!(!first.is_valid(&[octets(SECRET)], client, 1_559_731_985), "it shows nothing yet");
    }

    #[test]
    fn a_servers_own_secret_is_another_each_day_and_the_previous_is_believed_as_long_as_its_cookies() {
        let (own, same) = (OwnSecrets::new([3; 16]), OwnSecrets::new([3; 16]));
        let client = "192.0.2.1".parse().unwrap();
        let first = Cookie::read(&[1; 8]).unwrap();
        let start = 1_800_000_000;
        let mut changes = Vec::new();
        for minute in 0..4 * 1_440_u64 {
            let (at, before) = (start + 60 * minute, start + 60 * minute - 60);
            assert_eq!(own.at(at), same.at(at));
            if own.at(at)[0] != own.at(before)[0] {
                changes.push(minute);
                assert_eq!(own.at(at)[1], own.at(before)[0]);
            }
            // What was given half an hour ago is good.
            let given = Cookie::read(&first.answer(&own.at(at - 1_800)[0], client, at - 1_800)).unwrap();
            assert!(given.is_valid(&own.at(at), client, at), "{minute}");
        }
        assert_eq!(changes.len(), 4, "{changes:?}");
        assert_eq!(own.at(start + 60 * (changes[0] + 64)).len(), 2);
        assert_eq!(own.at(start + 60 * (changes[0] + 70)).len(), 1);
        assert_ne!(own.at(start)[0], OwnSecrets::new([4; 16]).at(start)[0]);
        assert_ne!(own.at(start)[0][..8], own.at(start)[0][8..]);
        assert_eq!(own.at(0).len(), own.at(0).len().min(2));
    }

    #[test]
    fn a_cookie_is_one_clients_and_for_an_hour() {
        let (secret, made) = (octets(SECRET), 1_559_731_985_u64);
        let cookie = given("2464c4abcf10c957010000005cf79f111f8130c3eee29480");
        let valid = |client: &str, seconds: u64| cookie.is_valid(&[secret], client.parse().unwrap(), seconds);
        for (seconds, expected) in [
            (made, true),
            (made + 3_600, true),
            (made + 3_601, false),
            (made - 300, true),
            (made - 301, false),
        ] {
            assert_eq!(valid("198.51.100.100", seconds), expected, "{seconds}");
            assert_eq!(valid("::ffff:198.51.100.100", seconds), expected, "{seconds}");
        }
        assert!(!valid("198.51.100.101", made));
        assert!(!cookie.is_valid(&[[7; 16]], "198.51.100.100".parse().unwrap(), made));
    }

    #[test]
    fn a_cookie_has_8_or_from_16_to_40_octets() {
        for length in 0..=50 {
            let expected = length == 8 || (16..=40).contains(&length);
            assert_eq!(Cookie::read(&vec![1; length]).is_some(), expected, "{length}");
        }
    }
}
