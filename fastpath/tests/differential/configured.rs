//! The programs' constants for a world.
use super::rig::Hook;
use super::scene::{Port, Scene, VLAN};
use super::world::World;
use sixway_dataplane::translate::HeaderByte;
use sixway_fastpath::layout::{self, Config};

pub fn configured(scene: &Scene, world: &World, _hook: Hook) -> Config {
    let mut config = Config::zero();
    config.tun = scene.tun_index;
    config.tun_mtu = 1_500;
    (config.idle_tcp, config.idle_udp, config.absence) = (1 << 20, 1 << 20, 1 << 20);
    config.plain_routing = 1;
    config.can_decap_gso = 1;
    (config.mtu4, config.mtu6) = (world.config.limits.mtu4, world.config.limits.mtu6);
    for port in Port::ALL {
        let is_vlan = port == Port::Tagged;
        let below = if is_vlan { Port::Trunk } else { port };
        config.ports[usize::from(config.ports_count)] = layout::Port {
            ifindex: scene.index(port),
            below: scene.index(below),
            vlan: if is_vlan { VLAN } else { 0 },
            mac: port.mac(),
            strict: 0,
            reserved: [0; 3],
        };
        config.ports_count += 1;
    }
    for nat64 in &world.config.nat64 {
        let one = &mut config.translators[usize::from(config.translators_count)];
        one.kind = 1;
        one.length = nat64.prefix.prefix().length();
        one.prefix = nat64.prefix.prefix().address().octets();
        one.lowest_mtu = nat64.policy.lowest_ipv6_mtu.min(world.config.limits.mtu6);
        if let HeaderByte::Set(tos) = nat64.policy.tos {
            (one.sets_tos, one.tos) = (1, tos);
        }
        if let HeaderByte::Set(tos) = nat64.policy.traffic_class {
            (one.sets_traffic_class, one.traffic_class) = (1, tos);
        }
        config.translators_count += 1;
        for prefix in &nat64.pool.addresses {
            let mask = u32::MAX << (32 - prefix.length());
            config.pools[usize::from(config.pools_count)] =
                layout::Pool4 { address: prefix.address().to_bits() & mask, mask, shared: 0 };
            config.pools_count += 1;
        }
    }
    config
}
