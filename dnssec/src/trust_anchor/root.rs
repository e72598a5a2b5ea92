//! The root zone's trust anchors, as IANA publishes them: of 2017 (key tag 20326) and of 2024 (38696).

use super::presentation::read;
use crate::anchor::Anchor;

const ROOT: &str = "\
. IN DNSKEY 257 3 8 AwEAAaz/tAm8yTn4Mfeh5eyI96WSVexTBAvkMgJzkKTOiW1vkIbzxeF3+/4RgWOq7HrxRixHlFlExOLAJr5emLvN7SWXgnLh4+B5xQlNVz8Og8kvArMtNROxVQuCaSnIDdD5LKyWbRd2n9WGe2R8PzgCmr3EgVLrjyBxWezF0jLHwVN8efS3rCj/EWgvIWgb9tarpVUDK/b58Da+sqqls3eNbuv7pr+eoZG+SrDK6nWeL3c6H5Apxz7LjVc1uTIdsIXxuOLYA4/ilBmSVIzuDWfdRUfhHdY6+cn8HFRm+2hM8AnXGXws9555KrUB5qihylGa8subX2Nn6UwNR1AkUTV74bU=
. IN DNSKEY 257 3 8 AwEAAa96jeuknZlaeSrvyAJj6ZHv28hhOKkx3rLGXVaC6rXTsDc449/cidltpkyGwCJNnOAlFNKF2jBosZBU5eeHspaQWOmOElZsjICMQMC3aeHbGiShvZsx4wMYSjH8e7Vrhbu6irwCzVBApESjbUdpWWmEnhathWu1jo+siFUiRAAxm9qyJNg/wOZqqzL/dL/q8PkcRU5oUKEpUge71M3ej2/7CPqpdVwuMoTvoB+ZOT4YeGyxMvHmbrxlFzGOHOijtzN+u1TQNatX2XBuzZNQ1K+s2CXkPIZo7s6JgZyvaBevYtxPvYLw4z9mR7K2vaF18UYH9Z9GNUUeayffKC73PYc=
";

/// The root's keys.
#[must_use]
pub fn root() -> Vec<Anchor> {
    read(ROOT).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::dnskey::Dnskey;
    use super::*;
    use crate::anchor::AnchorKey;

    /// <https://data.iana.org/root-anchors/root-anchors.xml>, as Debian's dns-root-data has them too.
    const PUBLISHED: &str = "\
        . IN DS 20326 8 2 E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D\n\
        . IN DS 38696 8 2 683D2D0ACB8C9B712A1948B27F741219298D0A450D612C483AF444A4C0FB2B16\n";

    #[test]
    fn the_roots_keys_have_the_digests_that_iana_publishes() {
        let (keys, digests) = (root(), read(PUBLISHED).unwrap());
        assert_eq!((keys.len(), digests.len()), (2, 2));
        for (anchor, digest) in keys.iter().zip(&digests) {
            let (AnchorKey::Dnskey(rdata), AnchorKey::Ds(ds)) = (&anchor.key, &digest.key) else { panic!() };
            let key = Dnskey::new(rdata).unwrap();
            assert_eq!((&anchor.zone.0[..], &anchor.zone), (&[0][..], &digest.zone));
            assert!(key.matches(&anchor.zone, ds));
            assert_eq!(key.tag().to_be_bytes(), ds[..2]);
        }
    }
}
