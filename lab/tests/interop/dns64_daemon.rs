//! A DNS64 as its operator sees it: it is killed and started again, ends in order, asks the configured upstreams, and answers the configured clients.

use crate::Interop;
use crate::dns64_upstreams::crowd::Crowd;
use crate::dns64_upstreams::message::{name, query};
use crate::dns64_upstreams::upstream::{Manner, Upstream};
use sixway_lab::dns64::{Asker, Flags, Reply};
use sixway_lab::failure::{Asking as _, Failure, Result};
use sixway_lab::forwarder::NAT64;
use sixway_lab::gateway::{run_sixway, run_sixway_on};
use sixway_lab::interrupt;
use sixway_lab::name_service::{DNS64, RESOLVER, Resolving, addresses, serve};
use sixway_lab::sixway::sixway;
use sixway_lab::topology::{Network, client_gateway_server, two_clients};
use std::io::{Read as _, Write as _};
use std::net::{Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant};

pub const TESTS: &[Interop] = &[
    Interop::new("dns64_answers_again_after_a_crash", &["sixway", "nsd", "taskset"], after_a_crash),
    Interop::new("dns64_ends_in_order_while_queries_wait", &["sixway"], ends_in_order),
    Interop::new("dns64_asks_the_upstream_of_the_longest_zone", &["sixway"], by_zone),
    Interop::new("dns64_of_an_ipv6_only_host_asks_through_a_nat64", &["sixway", "nsd", "taskset"], through),
    Interop::new(
        "dns64_with_aaaa_only_names_hides_what_has_ipv4",
        &["sixway", "nsd", "taskset", "unshare", "getent"],
        aaaa_only,
    ),
    Interop::new(
        "dns64_gives_other_clients_another_prefix",
        &["sixway", "nsd", "taskset"],
        rules_for_clients,
    ),
    Interop::new("dns64_refuses_strangers", &["sixway", "nsd", "taskset"], strangers),
    Interop::new(
        "dns64_answers_at_an_address_that_comes_later",
        &["sixway", "nsd", "taskset"],
        later_address,
    ),
    Interop::new("dns64_asks_again_for_what_it_was_told_to_forget", &["sixway"], flushed),
];

const SHOP: &str = "shop A 203.0.113.2\n";
const SERVER: &str = "64:ff9b::cb00:7102";

fn asker_at(network: &Network, host: &str, resolver: &str) -> Result<Asker> {
    let resolver: Ipv6Addr =
        resolver.parse().map_err(|_| Failure::Unexpected(format!("{resolver} is no address")))?;
    Asker::open(network.host(host)?, SocketAddr::new(resolver.into(), 53))
}

fn ask(network: &Network, host: &str, name: &str, kind: &str) -> Result<Reply> {
    asker_at(network, host, RESOLVER)?.ask(name, kind, Flags::NONE)
}

/// A DNS64 alone, with more lines at its section's beginning, and upstreams at 203.0.113.20 and on, each with lines of its own.
fn alone(lines: &str, upstreams: &[&str]) -> String {
    let mut text = format!(
        "[gateway]\n[dns64]\nlisten = [\"{RESOLVER}\"]\nprefix = \"2001:db8:64::/96\"\ntranslated_elsewhere = true\nspecial_names = \"upstream\"\n{lines}\n"
    );
    for (number, lines) in upstreams.iter().enumerate() {
        text += &format!("[[dns64.upstream]]\naddress = \"203.0.113.{}\"\n{lines}\n", 20 + number);
    }
    text
}

fn upstream(network: &Network, number: u8, manner: Manner) -> Result<Upstream> {
    let address = format!("203.0.113.{}", 20 + number);
    network.address("server", "up0", &format!("{address}/24"))?;
    Upstream::start(network.host("server")?, &address, manner)
}

fn after_a_crash() -> Result<()> {
    let network = client_gateway_server()?;
    serve(&network, SHOP)?;
    let configuration = format!("{NAT64}{DNS64}");
    for _ in 0..3 {
        let process = run_sixway(&network, &configuration)?;
        assert_eq!(ask(&network, "client", "shop.example", "AAAA")?.data("AAAA"), [SERVER]);
        network.with_process(process, |process| process.kill())?;
    }
    let process = run_sixway(&network, &configuration)?;
    assert_eq!(ask(&network, "client", "shop.example", "AAAA")?.data("AAAA"), [SERVER]);
    let status = network.with_process(process, |process| process.stop())?;
    assert_eq!(status.and_then(|status| status.code()), Some(0), "its exit status after SIGTERM");
    Ok(())
}

/// Queries by datagrams and on streams wait for an upstream that says nothing.
fn ends_in_order() -> Result<()> {
    let network = client_gateway_server()?;
    let silent = upstream(&network, 0, Manner::Silent)?;
    let process = run_sixway(&network, &alone("", &[""]))?;
    let client = network.host("client")?;
    let asking = || "asking".to_owned();
    let socket = client.enter(|| UdpSocket::bind("[::]:0"))?.asking(asking)?;
    for number in 0..200 {
        socket.send_to(&query(number, &name(number)), (RESOLVER, 53)).asking(asking)?;
    }
    let mut stream = client.enter(|| TcpStream::connect((RESOLVER, 53)))?.asking(asking)?;
    let question = query(1, &name(999));
    stream.write_all(&[&(question.len() as u16).to_be_bytes()[..], &question].concat()).asking(asking)?;
    interrupt::wait_until(Duration::from_secs(3), "questions upstream", || Ok(silent.asked() > 100))?;
    let start = Instant::now();
    let status = network.with_process(process, |process| process.stop())?;
    let took = start.elapsed();
    assert_eq!(status.and_then(|status| status.code()), Some(0), "its exit status after SIGTERM");
    assert!(took < Duration::from_secs(2), "it took {took:?} to end");
    stream.set_read_timeout(Some(Duration::from_secs(2))).asking(asking)?;
    let mut rest = Vec::new();
    let ended = stream.read_to_end(&mut rest);
    assert!(ended.is_ok() || rest.is_empty(), "the stream ends: {ended:?} after {} octets", rest.len());
    run_sixway(&network, &alone("", &[""]))?;
    Ok(())
}

/// The default one refuses all; the zone's is honest, but for one name that has a third.
fn by_zone() -> Result<()> {
    let network = client_gateway_server()?;
    let default = upstream(&network, 0, Manner::Refusing)?;
    let zone = upstream(&network, 1, Manner::Honest)?;
    let below = upstream(&network, 2, Manner::Refusing)?;
    let third = format!("names = [\"{}\"]", name(64));
    run_sixway(&network, &alone("", &["", "names = [\"crowd.test\"]", &third]))?;
    let crowd = Crowd::ask(network.host("client")?, RESOLVER, 0..64, 16)?;
    assert_eq!((crowd.right, crowd.answered()), (64, 64), "{crowd:?}");
    assert_eq!((default.asked(), below.asked()), (0, 0), "those who have other names");
    let before = zone.asked();
    for (name, whose) in [(name(64), &below), ("other.test".to_owned(), &default)] {
        let reply = ask(&network, "client", &name, "AAAA")?;
        assert!(reply.answer.is_empty() && reply.rcode != "NOERROR", "{name}: {reply:?}");
        assert!(whose.asked() > 0, "{name} was asked of another");
    }
    assert_eq!(zone.asked(), before);
    Ok(())
}

/// The client is its own DNS64, and has no IPv4; the gateway is its NAT64.
fn through() -> Result<()> {
    let network = client_gateway_server()?;
    serve(&network, SHOP)?;
    run_sixway(&network, NAT64)?;
    let own = "[gateway]\n[dns64]\nlisten = [\"2001:db8:1::2\"]\nprefix = \"64:ff9b::/96\"\ntranslate_non_global = true\n\
               translated_elsewhere = true\n[[dns64.upstream]]\naddress = \"203.0.113.2\"\nthrough = \"nat64\"\n";
    for transport in ["udp", "tcp"] {
        let process = run_sixway_on(&network, "client", &format!("{own}transport = \"{transport}\"\n"))?;
        let reply =
            asker_at(&network, "client", "2001:db8:1::2")?.ask("shop.example", "AAAA", Flags::NONE)?;
        assert_eq!(reply.data("AAAA"), [SERVER], "by {transport}: {reply:?}");
        network.with_process(process, |process| process.stop())?;
    }
    Ok(())
}

fn aaaa_only() -> Result<()> {
    let network = client_gateway_server()?;
    serve(&network, &format!("{SHOP}both A 203.0.113.2\nboth AAAA 2001:db8:aaaa::1\n"))?;
    let rule = "[[dns64.rule]]\nnames = [\"example\"]\nsynthesis = \"always\"\na_records = \"hide\"\n";
    run_sixway(&network, &format!("{NAT64}{DNS64}{rule}"))?;
    let client = Resolving::by(&network, "client", RESOLVER)?;
    for name in ["shop.example", "both.example"] {
        assert_eq!(addresses(&client, name)?, [SERVER], "{name}");
        let hidden = ask(&network, "client", name, "A")?;
        assert_eq!((hidden.rcode.as_str(), hidden.answer.len()), ("NOERROR", 0), "{hidden:?}");
    }
    Ok(())
}

/// The neighbour's translator is another one.
fn rules_for_clients() -> Result<()> {
    let network = two_clients()?;
    serve(&network, SHOP)?;
    let rule = "[[dns64.rule]]\nclients = [\"2001:db8:3::/64\"]\nprefix = \"2001:db8:65::/96\"\n";
    let allow = "[dns64]\nallow = [\"2001:db8:1::/64\", \"2001:db8:3::/64\"]\ntranslated_elsewhere = true\n";
    run_sixway(&network, &format!("{NAT64}{}{rule}", DNS64.replace("[dns64]\n", allow)))?;
    assert_eq!(ask(&network, "client", "shop.example", "AAAA")?.data("AAAA"), [SERVER]);
    let other = ask(&network, "neighbour", "shop.example", "AAAA")?;
    assert_eq!(other.data("AAAA"), ["2001:db8:65::cb00:7102"]);
    let known = ask(&network, "neighbour", "ipv4only.arpa", "AAAA")?;
    assert_eq!(known.data("AAAA"), ["2001:db8:65::c000:aa", "2001:db8:65::c000:ab"]);
    Ok(())
}

/// A client that is not on the listening address's link is a stranger, unless `allow` names it.
fn strangers() -> Result<()> {
    for (allow, welcome) in [
        ("", false),
        ("allow = [\"2001:db8:1::/64\"]\n", false),
        ("allow = [\"2001:db8:1::/64\", \"2001:db8:3::2/128\"]\n", true),
    ] {
        let network = two_clients()?;
        serve(&network, SHOP)?;
        let section = format!("[dns64]\n{allow}");
        run_sixway(&network, &format!("{NAT64}{}", DNS64.replace("[dns64]\n", &section)))?;
        assert_eq!(ask(&network, "client", "shop.example", "AAAA")?.data("AAAA"), [SERVER]);
        for name in ["shop.example", "ipv4only.arpa"] {
            let said = ask(&network, "neighbour", name, "AAAA")?;
            let expected = if welcome { "NOERROR" } else { "REFUSED" };
            assert_eq!(said.rcode, expected, "{allow}: {said:?}");
            assert_eq!(said.answer.is_empty(), !welcome, "{allow}: {said:?}");
        }
        let by_stream = asks_by_stream(&network)?;
        assert_eq!(by_stream, welcome, "{allow}: by a stream");
    }
    Ok(())
}

/// Whether the neighbour gets records by TCP.
fn asks_by_stream(network: &Network) -> Result<bool> {
    let mut said = Vec::new();
    let connected = network.host("neighbour")?.enter(|| TcpStream::connect((RESOLVER, 53)))?;
    let Ok(mut stream) = connected else { return Ok(false) };
    let question = query(1, "shop.example");
    stream.set_read_timeout(Some(Duration::from_secs(2))).asking(|| "setting a time to wait".to_owned())?;
    stream.write_all(&[&(question.len() as u16).to_be_bytes()[..], &question].concat()).ok();
    let mut room = [0; 512];
    while let Ok(length @ 1..) = stream.read(&mut room) {
        said.extend(&room[..length]);
        if said.len() > 2 && said.len() >= usize::from(u16::from_be_bytes([said[0], said[1]])) + 2 {
            break;
        }
    }
    Ok(said.get(9).is_some_and(|records| *records > 0))
}

fn later_address() -> Result<()> {
    let network = client_gateway_server()?;
    serve(&network, SHOP)?;
    let listen = format!("listen = [\"{RESOLVER}\", \"2001:db8:1::53\"]");
    let section = DNS64.replace(&format!("listen = [\"{RESOLVER}\"]"), &listen);
    run_sixway(&network, &format!("{NAT64}{section}"))?;
    assert_eq!(ask(&network, "client", "shop.example", "AAAA")?.data("AAAA"), [SERVER]);
    network.address("gateway", "in0", "2001:db8:1::53/64")?;
    let asker = asker_at(&network, "client", "2001:db8:1::53")?;
    interrupt::wait_until(Duration::from_secs(5), "an answer from the new address", || {
        let reply = asker.ask_within("shop.example", "AAAA", Flags::NONE, Duration::from_millis(200));
        Ok(reply.is_ok_and(|reply| reply.data("AAAA") == [SERVER]))
    })
}

fn flushed() -> Result<()> {
    let network = client_gateway_server()?;
    let honest = upstream(&network, 0, Manner::Honest)?;
    let process = run_sixway(&network, &alone("prefetch = false", &[""]))?;
    let client = network.host("client")?;
    let ask_all = || Crowd::ask(client, RESOLVER, 0..16, 16);
    assert_eq!(ask_all()?.right, 16);
    let before = honest.asked();
    assert_eq!((ask_all()?.right, honest.asked()), (16, before), "from the cache");
    let socket = network.folder().join("sixway-gateway.sock");
    let mut flush = Command::new(sixway()?);
    flush.args(["dns64", "flush", &name(3), "--socket"]).arg(socket);
    network.host("gateway")?.run(flush, Duration::from_secs(5))?.succeeded()?;
    assert_eq!(ask_all()?.right, 16);
    assert_eq!(honest.asked(), before + 2, "A and AAAA of one name");
    network.with_process(process, |process| process.must_run())?
}
