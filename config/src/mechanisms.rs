//! The mechanisms that need nothing of the configuration but a section, and nothing of the host but routes. A new one is a file with its
//! section, a line in [`Mechanisms`], in [`Mechanisms::read`] and in [`Mechanisms::all`], and its keys in the schema.

use std::net::IpAddr;

use serde::Serialize;
use sixway_dataplane::engine::TunnelConfig;
use sixway_wire::Prefix6;

use crate::fault::Report;
use crate::four_over_six::FourOverSix;
use crate::ip_in_ip::IpInIp;
use crate::mechanism::{FromSection, Mechanism};
use crate::mechanism_sections::{default_name, too_many};
use crate::nat46::Nat46;
use crate::npt66::Npt66;
use crate::route::Route;
use crate::schema::{FOUR_OVER_SIX, IP_IN_IP, NAT46, NPT66, Section, TEREDO_CLIENT, TEREDO_RELAY};
use crate::section::Reader;
use crate::source_rule::{Network, SourceRule};
use crate::surroundings::Surroundings;
use crate::teredo_client::TeredoClient;
use crate::teredo_relay::TeredoRelay;
use crate::tunnel_context::TunnelContext;

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Mechanisms {
    /// The NAT46: first, so that its table follows those of the translators that have sections of their own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nat46: Vec<Nat46>,
    /// Prefix translators.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    npt66: Vec<Npt66>,
    /// Tunnels of IP in IP.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ip_in_ip: Vec<IpInIp>,
    /// Ends of 4over6 tunnels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub four_over_six: Vec<FourOverSix>,
    /// Teredo's relays.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub teredo_relay: Vec<TeredoRelay>,
    /// A Teredo client: one at most.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub teredo_client: Vec<TeredoClient>,
}

impl Mechanisms {
    /// Reads all sections.
    pub(crate) fn read<'a>(
        sections: impl Fn(&'static Section, &mut Report) -> Vec<Reader<'a>>,
        mut context: TunnelContext,
    ) -> Option<Self> {
        let nat46 = read_all(&NAT46, sections(&NAT46, context.report), &mut context);
        let npt66 = read_all(&NPT66, sections(&NPT66, context.report), &mut context);
        let ip_in_ip = read_all(&IP_IN_IP, sections(&IP_IN_IP, context.report), &mut context);
        let four_over_six = read_all(&FOUR_OVER_SIX, sections(&FOUR_OVER_SIX, context.report), &mut context);
        let teredo_relay = read_all(&TEREDO_RELAY, sections(&TEREDO_RELAY, context.report), &mut context);
        let teredo_client = read_all(&TEREDO_CLIENT, sections(&TEREDO_CLIENT, context.report), &mut context);
        Some(Self {
            nat46: nat46?,
            npt66: npt66?,
            ip_in_ip: ip_in_ip?,
            four_over_six: four_over_six?,
            teredo_relay: teredo_relay?,
            teredo_client: teredo_client?,
        })
    }

    /// All of them, in the order of the configuration.
    pub fn all(&self) -> Vec<&dyn Mechanism> {
        let npt66 = self.npt66.iter().map(|it| it as &dyn Mechanism);
        let nat46 = self.nat46.iter().map(|it| it as &dyn Mechanism);
        let ip_in_ip = self.ip_in_ip.iter().map(|it| it as &dyn Mechanism);
        let four_over_six = self.four_over_six.iter().map(|it| it as &dyn Mechanism);
        let teredo_relay = self.teredo_relay.iter().map(|it| it as &dyn Mechanism);
        let teredo_client = self.teredo_client.iter().map(|it| it as &dyn Mechanism);
        let teredo = teredo_relay.chain(teredo_client);
        nat46.chain(npt66).chain(ip_in_ip).chain(four_over_six).chain(teredo).collect()
    }

    /// Tunnels of IP in IP.
    pub fn ip_in_ip(&self) -> &[IpInIp] {
        &self.ip_in_ip
    }

    /// The NAT46.
    pub(crate) fn nat46(&self) -> Option<&Nat46> {
        self.nat46.first()
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    /// Whether packets of hosts with IPv4 addresses come to any of them.
    pub(crate) fn serve_ipv4(&self) -> bool {
        self.all().into_iter().any(Mechanism::serves_ipv4)
    }

    /// The same of IPv6.
    pub(crate) fn serve_ipv6(&self) -> bool {
        self.all().into_iter().any(Mechanism::serves_ipv6)
    }

    /// Whether any of them is routed to by an IPv4 address.
    pub(crate) fn are_reached_by_ipv4(&self) -> bool {
        self.all().into_iter().flat_map(Mechanism::routes).any(|route| matches!(route, Route::V4(_)))
    }

    /// The same of IPv6.
    pub(crate) fn are_reached_by_ipv6(&self) -> bool {
        self.all().into_iter().flat_map(Mechanism::routes).any(|route| matches!(route, Route::V6(_)))
    }

    /// The addresses at which tunnels end, with the tunnels' names.
    pub fn locals(&self) -> Vec<(&str, IpAddr)> {
        let of = |it: &'_ dyn Mechanism| it.locals();
        self.all()
            .into_iter()
            .flat_map(|it| of(it).into_iter().map(move |local| (it.name(), local)))
            .collect()
    }

    /// Those that change while the gateway runs, as they are at the moment, with their names.
    pub(crate) fn changing(&self, now: &Surroundings) -> Vec<(&str, TunnelConfig)> {
        self.all().into_iter().filter_map(|it| Some((it.name(), it.changing(now)?))).collect()
    }

    /// What is routed by its source.
    pub(crate) fn source_rules(&self) -> Vec<SourceRule> {
        let mut rules = Vec::new();
        for (from, except) in self.all().into_iter().filter_map(Mechanism::inside_sources) {
            let own = except.iter().copied().chain([from]);
            let rule = |except: Option<Prefix6>| SourceRule {
                from: Network::V6(from),
                except: except.map(Network::V6),
                interface: None,
            };
            rules.extend(own.map(|to| rule(Some(to))));
            rules.push(rule(None));
        }
        rules
    }
}

fn read_all<M: FromSection>(
    schema: &'static Section,
    written: Vec<Reader>,
    context: &mut TunnelContext,
) -> Option<Vec<M>> {
    let TunnelContext { mtu, host, .. } = *context;
    too_many(&written, context.report);
    let mut read: Vec<Option<M>> = Vec::with_capacity(written.len());
    for (index, section) in written.iter().enumerate() {
        let name = default_name(schema.name, index, written.len());
        let inner = TunnelContext { index, mtu, host, claims: context.claims, report: context.report };
        let one = M::read(section, name, &read, inner);
        if let Some(one) = &one
            && read.iter().flatten().any(|other| other.name() == one.name())
        {
            let what = format!("the name {} is already used; choose a different name", one.name());
            context.report.fault(section.place(), what);
        }
        read.push(one);
    }
    read.into_iter().collect()
}
