//! Tunnel remotes given as names: each is resolved periodically.

use crate::config::{Config, Remote};
use sixway_wire::Prefix4;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;

/// Answers that wait.
const WAITING: usize = 64;

/// Where new remotes are sent: the tunnel's name and the address.
pub(super) type RemoteSender = Sender<(String, Ipv4Addr)>;

/// Where it is heard.
pub(super) type RemoteReceiver = Receiver<(String, Ipv4Addr)>;

/// The way of new remotes.
pub(super) fn remotes() -> (RemoteSender, RemoteReceiver) {
    channel(WAITING)
}

/// The remotes of a gateway that are names.
pub(super) struct RemoteNames {
    answers: RemoteReceiver,
    /// Keeps the channel open without names.
    _open: RemoteSender,
    /// They end with this.
    _asking: JoinSet<()>,
}

/// One of them.
struct Name {
    tunnel: String,
    name: String,
    every: Duration,
    within: Vec<Prefix4>,
}

impl RemoteNames {
    /// Starts resolving. Other addresses sent to `sender` stay in use until the DNS returns a new one.
    pub(super) fn new(config: &Config, sender: &RemoteSender, answers: RemoteReceiver) -> Self {
        let mut asking = JoinSet::new();
        for tunnel in &config.configured_tunnels {
            if let Remote::Name(name) = &tunnel.remote {
                let name = Name {
                    tunnel: tunnel.name.clone(),
                    name: name.clone(),
                    every: tunnel.remote_refresh,
                    within: tunnel.remote_within.clone(),
                };
                asking.spawn(ask(name, sender.clone()));
            }
        }
        Self { answers, _open: sender.clone(), _asking: asking }
    }

    /// Waits until the name of a tunnel's remote end resolves to another address: the tunnel's name, and the address.
    pub(super) async fn changed(&mut self) -> (String, Ipv4Addr) {
        match self.answers.recv().await {
            Some(answer) => answer,
            None => std::future::pending().await,
        }
    }
}

/// Resolves repeatedly. If a name is not found the previous address stays; that is logged once.
async fn ask(name: Name, answers: RemoteSender) {
    let (mut known, mut told) = (None, false);
    loop {
        match resolve(&name).await {
            Ok(address) => {
                if known != Some(address) {
                    tracing::info!("{}: {} is {address}", name.tunnel, name.name);
                    known = Some(address);
                    if answers.send((name.tunnel.clone(), address)).await.is_err() {
                        return;
                    }
                }
                told = false;
            }
            Err(what) if !told => {
                tracing::warn!(
                    "{}: {}: {what}; the previous remote address stays in use",
                    name.tunnel,
                    name.name
                );
                told = true;
            }
            Err(_) => {}
        }
        tokio::time::sleep(name.every).await;
    }
}

async fn resolve(name: &Name) -> Result<Ipv4Addr, String> {
    let answers =
        tokio::net::lookup_host((name.name.as_str(), 0)).await.map_err(|error| error.to_string())?;
    let v4: Vec<Ipv4Addr> = answers
        .filter_map(|answer| match answer.ip() {
            IpAddr::V4(address) => Some(address),
            IpAddr::V6(_) => None,
        })
        .collect();
    chosen(&v4, &name.within).ok_or_else(|| match v4.first() {
        None => "has no IPv4 address".to_owned(),
        Some(first) => format!("{first} is not within remote_within"),
    })
}

/// The least of the addresses that may be a remote: the order of the DNS' answers changes from one to the next.
pub(super) fn chosen(answers: &[Ipv4Addr], within: &[Prefix4]) -> Option<Ipv4Addr> {
    let may_be = |address: &&Ipv4Addr| within.is_empty() || within.iter().any(|one| one.contains(**address));
    answers.iter().filter(may_be).min().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_elsewhere_is_not_taken_and_of_several_always_the_same() {
        let [one, two, three] = [[198, 51, 100, 9], [198, 51, 100, 7], [192, 0, 2, 1]].map(Ipv4Addr::from);
        let within: Vec<Prefix4> = vec!["198.51.100.0/24".parse().unwrap()];
        assert_eq!(chosen(&[one, two, three], &within), Some(two));
        assert_eq!(chosen(&[three, two, one], &within), Some(two));
        assert_eq!(chosen(&[three], &within), None);
        assert_eq!(chosen(&[three], &[]), Some(three));
    }
}
