//! Any octets are a DHCP client's lease with a 6rd domain or none; a domain that is read keeps the rules of RFC 5969 §7.1.1.

use sixway_control::option_6rd::SixRdOffer;

pub fn run(octets: &[u8]) {
    let text = String::from_utf8_lossy(octets);
    for offer in [SixRdOffer::in_message(octets), SixRdOffer::in_dhclient_leases(&text, "eth0")] {
        let Some(SixRdOffer { domain, .. }) = offer else { continue };
        assert!(domain.mask_length <= 32 && domain.delegated_length() <= 128);
        assert!(domain.relays.len() <= 8, "{domain:?}");
        assert!(domain.relays.iter().all(|relay| !relay.is_multicast() && !relay.is_loopback()));
        // What a site takes has a border relay, a prefix of a provider, and a /64 for each of its links.
        assert!(domain.suits(1).is_err() || !domain.relays.is_empty() && domain.prefix.length() >= 16);
        assert!(domain.suits(1).is_err() || domain.delegated_length() <= 64);
        assert!(domain.suits(2).is_err() || domain.delegated_length() < 64);
    }
}
