//! Who reaches a qualified client (RFC 4380 §3.1, §5.2.4, RFC 6081 §5.2).

use super::*;
use sixway_wire::teredo::{TEREDO_PORT, Trailer, bubble};

const HELLO: &[u8] = b"\x60hello";

impl World {
    /// A host on the Internet sends to an endpoint; whether the client receives it.
    pub(super) fn hears(&mut self, to: Endpoint4) -> bool {
        self.client.borrow_mut().peers.heard.clear();
        self.stranger.borrow_mut().send(to, HELLO);
        let time = self.round_trips(1);
        self.network.run(time);
        let client = self.client.borrow();
        client.peers.heard.iter().any(|(from, payload)| *from == STRANGER && payload == HELLO)
    }

    /// A host on the Internet sends a bubble through the client's server; from where the direct bubble with its nonce came.
    pub(super) fn meets(&mut self) -> Option<Endpoint4> {
        let address = self.client.borrow().address()?;
        let mut trailer = [0; 6];
        Trailer::Nonce([1, 2, 3, 4]).write(&mut trailer).unwrap();
        let payload = [&bubble(stranger6(), address.address(), 255)[..], &trailer].concat();
        self.stranger.borrow_mut().heard.clear();
        self.stranger.borrow_mut().send(Endpoint4::new(address.server, TEREDO_PORT), &payload);
        let time = self.round_trips(2);
        self.network.run(time);
        let expected = [&bubble(address.address(), stranger6(), 255)[..], &trailer].concat();
        let stranger = self.stranger.borrow();
        stranger.heard.iter().find(|(_, payload)| *payload == expected).map(|(from, _)| *from)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(sixway_trial::budget(512)))]

    #[test]
    fn a_stranger_reaches_the_mapped_endpoint_behind_a_cone_nat_alone_and_everywhere_after_a_bubble(
        case in cases(), idle in 0..3_000_u64,
    ) {
        let kind = case.options.kind;
        let mut world = World::new(case, Settings::new(vec![SERVER]));
        world.network.run(Duration::from_secs(5));
        // As long as it is maintained, it is reachable.
        world.network.run(Duration::from_secs(idle));
        let mapped = world.client.borrow().address().expect("qualified").mapped();
        let open = matches!(kind, Kind::Absent | Kind::Cone);
        prop_assert_eq!(world.hears(mapped), open);
        // Through the server, whatever the NAT.
        let from = world.meets().expect("a direct bubble comes");
        prop_assert_eq!(from == mapped, !kind.is_symmetric(), "{:?}", kind);
        prop_assert!(world.hears(from));
        if kind.is_symmetric() {
            prop_assert!(!world.hears(mapped), "only by where the bubble came from (RFC 6081 §5.2.4.4)");
        }
        let client = world.client.borrow();
        prop_assert_eq!((client.used.len(), client.stopped.len()), (1, 0), "the address stayed");
    }
}
