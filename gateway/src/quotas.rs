//! The limits of a configuration's translators, for records of the event log.

use crate::config::Config;
use crate::event_log::Quota;
use sixway_dataplane::nat::StateLimits;

/// In the engines' order.
pub(crate) fn quotas(config: &Config) -> Vec<Quota> {
    let quota = |name: &str, pool: &str, limits: &StateLimits| {
        let alarm = config.pool(pool).map(|pool| pool.alarm).unwrap_or_default();
        let of_subscriber = [limits.of_subscriber.sessions, limits.of_subscriber.bindings];
        Quota {
            translator: name.into(),
            sessions: limits.sessions,
            bindings: limits.bindings,
            of_subscriber: of_subscriber.into_iter().find(|most| *most > 0).unwrap_or(0),
            alarm: (alarm.at, alarm.clear),
        }
    };
    let nat64 = config.nat64.iter().map(|it| quota(&it.name, &it.pool, &it.limits));
    let nat44 = config.nat44s().map(|it| quota(&it.name, &it.pool, &it.limits));
    nat64.chain(nat44).chain(config.aftrs().map(|it| quota(&it.name, &it.pool, &it.limits))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_those_of_the_configuration_in_the_order_of_the_engines() {
        let text = "[gateway]\nipv4_address = \"198.51.100.1\"\nipv6_address = \"2001:db8::fe\"\n\
                    [[pool]]\nname = \"four\"\naddresses = [\"192.0.2.0/29\"]\nalarm_at = 60\nalarm_clear = 50\n\
                    [[pool]]\nname = \"six\"\naddresses = [\"192.0.2.8/29\"]\n\
                    [nat44]\ninside = [\"10.0.0.0/8\"]\npool = \"four\"\nmax_sessions = 9000\nmax_bindings = 8000\n\
                    max_bindings_per_subscriber = 70\n\
                    [nat64]\nprefix = \"64:ff9b::/96\"\npool = \"six\"\n\
                    [[pool]]\nname = \"red\"\naddresses = [\"192.0.2.16/29\"]\nalarm_at = 90\n\
                    [[realm]]\nname = \"red\"\ninside = [\"10.0.0.0/8\"]\ninterfaces = [\"red0\"]\ntable = 101\npool = \"red\"\nmax_sessions = 7000\n";
        let found = quotas(&crate::sample::config(text));
        assert_eq!(found.iter().map(|it| &*it.translator).collect::<Vec<_>>(), ["nat64", "nat44", "red"]);
        assert_eq!((found[2].sessions, found[2].alarm.0), (7_000, 90));
        let of_nat44 = &found[1];
        assert_eq!((of_nat44.sessions, of_nat44.bindings, of_nat44.of_subscriber), (9_000, 8_000, 70));
        assert_eq!((of_nat44.alarm, found[0].alarm, found[0].of_subscriber), ((60, 50), (80, 70), 0));
    }
}
