//! A world's rules as the programs have them.

use super::scene::{Port, Scene, VLAN};
use super::world::World;
use sixway_fastpath::Rules;
use sixway_fastpath::layout;
use sixway_fastpath::rules::{Offer, Surroundings};

/// All that the programs must know: every device has them, and what comes by the VLAN is known.
pub fn rules(scene: &Scene, world: &World) -> Rules {
    let ports = Port::ALL.map(|port| {
        let is_vlan = port == Port::Tagged;
        layout::Port {
            ifindex: scene.index(port),
            below: scene.index(if is_vlan { Port::Trunk } else { port }),
            vlan: if is_vlan { VLAN } else { 0 },
            mac: port.mac(),
            ..layout::Port::zero()
        }
    });
    let around = Surroundings {
        tun: scene.tun_index,
        tun_mtu: 1_500,
        ports: ports.into(),
        // 18 minutes.
        idle_tcp: 1 << 20,
        idle_udp: 1 << 20,
        idle_icmp: 1 << 20,
        absence: 1 << 20,
        forwards_syn: true,
        ..Surroundings::default()
    };
    let offer = Offer::of(&world.config, &around);
    assert_eq!(offer.unoffered, [], "{}", world.name);
    let mut rules = offer.rules;
    rules.config.can_decap_gso = 1;
    rules
}
