//! Secure qualification (RFC 4380 §5.2.2): our client and our server with a client identifier and a secret.

use crate::Interop;
use crate::teredo_client::{client_says, has_address, passes};
use crate::teredo_peer::{Peer, SERVER as ASKED, authentication, solicitation};
use sixway_lab::failure::{Failure, Result};
use sixway_lab::gateway::{run_sixway, run_sixway_on, show_on};
use sixway_lab::interrupt;
use sixway_lab::teredo::{CLIENT, RELAY, SERVER, address_of, network};
use sixway_lab::topology::Network;
use std::time::Duration;

pub const TESTS: &[Interop] = &[
    Interop::new("a_teredo_client_with_a_secret_qualifies_and_reaches_a_host", TRAFFIC, right_secret),
    Interop::new("a_teredo_client_with_a_wrong_secret_has_no_address_and_says_why", PROGRAMS, wrong_secret),
    Interop::new("an_answer_with_a_forged_authentication_gives_no_address", PROGRAMS, forged_server),
];

const PROGRAMS: &[&str] = &["sixway", "nft"];
const TRAFFIC: &[&str] = &["sixway", "nft", "ping", "nginx", "curl"];

/// The server knows this secret under the identifier "alice".
const SECRET: &str = "b5f1c3a4e2d09876\n";

fn server(network: &Network) -> Result<String> {
    let file = network.file("server.secret", SECRET)?;
    Ok(format!("{SERVER}[[teredo_server.client]]\nid = \"alice\"\nsecret_file = {file:?}\n"))
}

fn client(network: &Network, secret: &str) -> Result<String> {
    let file = network.file("client.secret", secret)?;
    Ok(format!("{CLIENT}client_id = \"alice\"\nsecret_file = {file:?}\n"))
}

/// What the server has counted.
fn server_says(network: &Network) -> Result<String> {
    let words = show_on(network, "server", &["teredo-server"])?;
    Ok(network.host("server")?.run(words, Duration::from_secs(5))?.succeeded()?.stdout)
}

fn right_secret() -> Result<()> {
    let network = network()?;
    run_sixway(&network, RELAY)?;
    run_sixway_on(&network, "server", &server(&network)?)?;
    run_sixway_on(&network, "client", &client(&network, SECRET)?)?;
    let address = has_address(&network, "client", |_| true)?;
    passes(&network)?;
    let said = client_says(&network)?;
    assert!(said.contains("qualified") && said.contains(&address), "{said}");
    // Whoever has no secret gets no answer.
    let stranger = Peer::on(&network, "gateway", "198.51.100.34:5000")?;
    stranger.send(ASKED, &[&authentication([1; 8]), &solicitation(0)])?;
    let heard = stranger.hears(Duration::from_secs(1), |_| true)?;
    assert!(heard.is_none(), "{heard:?}");
    interrupt::wait_until(Duration::from_secs(5), "counters of the Teredo server", || {
        interrupt::pause(Duration::from_millis(100))?;
        let said = server_says(&network)?;
        let counted = |name: &str| said.lines().any(|line| line.split_whitespace().next() == Some(name));
        Ok(counted("authentic") && counted("not_authentic"))
    })
}

/// A server says nothing to whom it does not know: nobody learns which identifiers it knows. So the client tells what may be the cause.
fn wrong_secret() -> Result<()> {
    let network = network()?;
    run_sixway_on(&network, "server", &server(&network)?)?;
    run_sixway_on(&network, "client", &client(&network, "b5f1c3a4e2d09877\n")?)?;
    interrupt::wait_until(Duration::from_secs(30), "a client that gives up", || {
        interrupt::pause(Duration::from_millis(200))?;
        assert_eq!(address_of(&network, "client")?, None);
        Ok(client_says(&network)?.contains("waiting: "))
    })?;
    let said = client_says(&network)?;
    for words in ["no answer from server 198.51.100.1", "client_id and secret_file", "next attempt in"] {
        assert!(said.contains(words), "{words}:\n{said}");
    }
    let said = server_says(&network)?;
    let refused = said.lines().find(|line| line.starts_with("not_authentic"));
    let refused = refused.ok_or_else(|| Failure::Unexpected(format!("nothing refused: {said}")))?;
    // Three solicitations, and nothing else.
    assert_eq!(refused.split_whitespace().nth(1), Some("3"), "{said}");
    Ok(())
}

/// Somebody on the path repeats the nonce, and lies about the mapped address: without the secret that is nothing.
fn forged_server() -> Result<()> {
    let network = network()?;
    let forger = Peer::on(&network, "server", "198.51.100.1:3544")?;
    run_sixway_on(&network, "client", &client(&network, SECRET)?)?;
    let asked = forger.must_hear("a solicitation", |heard| heard.icmpv6() == Some(133))?;
    let nonce = asked.nonce.ok_or_else(|| Failure::Unexpected(format!("no nonce in {asked:?}")))?;
    for value in [&[0; 20][..], &[]] {
        let head = [&[0, 1, 5, value.len() as u8][..], b"alice", value, &nonce, &[0]].concat();
        let bare = [&[0, 1, 0, 0][..], &nonce, &[0]].concat();
        let origin = [0, 0, 0x3f, 0xff, !198, !51, !100, !18];
        let advertisement = crate::teredo_peer::advertisement(asked.source());
        forger.send(asked.from, &[if value.is_empty() { &bare } else { &head }, &origin, &advertisement])?;
    }
    interrupt::wait_until(Duration::from_secs(10), "refused answers", || {
        interrupt::pause(Duration::from_millis(100))?;
        let said = client_says(&network)?;
        Ok(said.contains("answers refused: 2") && said.contains("authentication value is wrong"))
    })?;
    assert_eq!(address_of(&network, "client")?, None);
    Ok(())
}
