//! A host requests a mapping, and is reached from outside through it.

use super::faults::Faults;
use super::kept_out::connects;
use crate::failure::{Failure, Result};
use crate::port_mapping::MappingRequest;
use crate::probe::{fetch, serve_page};
use crate::site::{HOSTS, INSIDE4, SERVER4, Site};
use crate::terminal::bold;
use std::net::{IpAddr, SocketAddr};

const PAGE: &str = "from the host inside";

/// Shows a mapping from its request to its end.
pub(super) fn show(site: &Site, faults: &mut Faults) -> Result<()> {
    println!("\n  {}", bold("A host opens a port for its web server by PCP:"));
    let mut external = None;
    let outcome = opened(site).map(|(request, at)| {
        let said = format!("{at} is {}:{}, for {} s", request.client, request.port, request.lifetime);
        external = Some((request, at));
        said
    });
    faults.tell("mapping", &format!("{}, TCP port 80", HOSTS[0].kind.name()), outcome)?;
    let Some((request, at)) = external else { return Ok(()) };
    faults.tell("reached", &format!("http://{at}/ from outside"), reached(site, at))?;
    faults.tell("deleted", &format!("{at} from outside"), deleted(site, request, at))
}

fn parsed(address: &str) -> Result<IpAddr> {
    address.parse().map_err(|_| Failure::Unexpected(address.to_owned()))
}

fn opened(site: &Site) -> Result<(MappingRequest, SocketAddr)> {
    let (network, host) = (&site.network, &HOSTS[0]);
    let own = host.address(network, false)?;
    serve_page(network, host.role, &own, PAGE)?;
    let request = MappingRequest { client: parsed(&own)?, port: 80, suggested: 0, lifetime: 120 };
    let mapping = request.send(network.host(host.role)?, parsed(INSIDE4)?)?;
    Ok((request, mapping.external))
}

fn reached(site: &Site, at: SocketAddr) -> Result<String> {
    let page = fetch(&site.network, SERVER4.role, &format!("http://{at}/"))?;
    match page.body == PAGE {
        true => Ok(format!("the page, in {:.1} ms", page.seconds * 1e3)),
        false => Err(Failure::Unexpected(format!("status {}: not the page", page.status))),
    }
}

/// Sessions that exist continue (RFC 6887 §15.1); new ones after the end of the mapping are refused.
fn deleted(site: &Site, request: MappingRequest, at: SocketAddr) -> Result<String> {
    let (host, stranger) = (site.network.host(HOSTS[0].role)?, site.network.host("server")?);
    MappingRequest { lifetime: 0, ..request }.send(host, parsed(INSIDE4)?)?;
    match connects(stranger, at)? {
        false => Ok("the provider is not let in".to_owned()),
        true => Err(Failure::Unexpected(format!("{at} is open after its mapping was deleted"))),
    }
}
