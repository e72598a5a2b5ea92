//! `sixway six-rd`: the arithmetic of RFC 5969 §4 in both directions, without a running gateway.

use super::failure::Failure;
use super::output::say;

use clap::{Args, Subcommand};
use sixway_dataplane::tunnel::address::Domain;
use sixway_wire::{Prefix4, Prefix6};
use std::net::{Ipv4Addr, Ipv6Addr};

#[derive(Debug, Subcommand)]
pub(super) enum SixRdCommand {
    /// Print the prefix delegated to a customer with this IPv4 address.
    Prefix {
        #[command(flatten)]
        domain: DomainArguments,
        /// The customer's IPv4 address.
        address: Ipv4Addr,
    },
    /// Print the IPv4 address of the customer that owns an IPv6 address.
    Address {
        #[command(flatten)]
        domain: DomainArguments,
        /// The IPv6 address.
        address: Ipv6Addr,
    },
}

/// A 6rd domain (RFC 5969 §7.1.1).
#[derive(Debug, Args)]
pub(super) struct DomainArguments {
    /// The 6rd prefix (6rdPrefix/6rdPrefixLen), for example 2001:db8::/32.
    #[arg(long, value_name = "PREFIX")]
    prefix: Prefix6,
    /// IPv4MaskLen: how many leading bits all customers' IPv4 addresses share; taken from --common if that is given.
    #[arg(long, value_name = "BITS")]
    mask_length: Option<u8>,
    /// The IPv4 prefix common to all customers' addresses, for example 10.0.0.0/8.
    #[arg(long, value_name = "PREFIX")]
    common: Option<Prefix4>,
    /// Print JSON instead of text.
    #[arg(long)]
    json: bool,
}

impl DomainArguments {
    /// The domain; `near`: an address with the leading bits of all customers, if none are configured.
    fn domain(&self, near: Option<Ipv4Addr>) -> Result<Domain, Failure> {
        let wrong = |what: &str| Failure::Wrong(what.into());
        let common = match (self.common, self.mask_length, near) {
            (Some(common), None, _) => common,
            (Some(common), Some(length), _) if length == common.length() => common,
            (Some(_), Some(_), _) => {
                return Err(wrong("--mask-length differs from the length of --common; omit it"));
            }
            (None, Some(33..), _) => return Err(wrong("--mask-length must be between 0 and 32")),
            (None, length, Some(near)) => Prefix4::holding(near, length.unwrap_or(0)),
            (None, None | Some(0), None) => Prefix4::holding(Ipv4Addr::UNSPECIFIED, 0),
            (None, Some(_), None) => {
                return Err(wrong(
                    "--common is required, for example 10.0.0.0/8: the IPv6 address does not contain those bits",
                ));
            }
        };
        Domain::new(self.prefix, common)
            .map_err(|fault| Failure::Wrong(format!("--prefix {}: {fault}", self.prefix)))
    }

    fn tell(&self, name: &str, value: &str) {
        if self.json { say(&serde_json::json!({ name: value }).to_string()) } else { say(value) }
    }
}

/// Computes and prints.
pub(super) fn run(command: &SixRdCommand) -> Result<(), Failure> {
    match command {
        SixRdCommand::Prefix { domain, address } => {
            let delegated = domain.domain(Some(*address))?.delegated(*address).ok_or_else(|| {
                Failure::Wrong(format!("{address} is outside --common: not a customer's address"))
            })?;
            domain.tell("prefix", &delegated.to_string());
        }
        SixRdCommand::Address { domain, address } => {
            let edge = domain.domain(None)?.customer_edge_of(*address).ok_or_else(|| {
                Failure::Wrong(format!("{address} is outside {}: it belongs to no customer", domain.prefix))
            })?;
            domain.tell("address", &edge.to_string());
        }
    }
    Ok(())
}
