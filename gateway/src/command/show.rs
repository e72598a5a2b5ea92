//! `sixway show`: queries the running gateway and prints the response.

use super::failure::Failure;
use super::run_directory::RUN_DIRECTORY;
use super::show_arguments::{ShowArguments, ShowKind};
use crate::admin::{Client, ClientError, MAX_LIMIT, Query};
use crate::show::{self, Colour};
use crate::view::{
    BindingRow, CounterRow, Dns64Row, DrainingRow, DropRow, FastPathRow, LeaseRow, Page, PcpRow,
    PoolBlocksRow, PoolRow, RouterAdvertisementRow, SessionRow, SixRdRow, Status, Subscribers, TeredoRow,
    TeredoServerRow,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Runs the command.
pub(super) fn run(arguments: &ShowArguments) -> Result<(), Failure> {
    let query = arguments.query();
    query.filter().map_err(|error| Failure::Wrong(format!("--{error}")))?;
    if arguments.limit == 0 {
        return Err(Failure::Wrong("--limit must be at least 1; omit it for the first 1,000 rows".into()));
    }
    arguments.refuse_filters_that_mean_nothing(&query)?;
    let socket = match &arguments.socket {
        Some(path) => path.clone(),
        None => only_socket(Path::new(RUN_DIRECTORY))?,
    };
    let client = Client::new(&socket);
    let text = match arguments.kind {
        None => arguments.one::<Status>(&client, "/v1/status", show::summary),
        Some(ShowKind::Counters) => {
            arguments
                .one::<Vec<CounterRow>>(&client, "/v1/counters", |rows, colour| show::counters(rows, colour))
        }
        Some(ShowKind::Drops) => {
            arguments.one::<Vec<DropRow>>(&client, "/v1/drops", |rows, colour| show::drops(rows, colour))
        }
        Some(ShowKind::Pools) => arguments.pools(&client),
        Some(ShowKind::Config) if !arguments.json => client.text("/v1/config.toml", &[]),
        Some(ShowKind::Config) => {
            arguments.one::<serde_json::Value>(&client, "/v1/config", |value, _| json(value))
        }
        Some(ShowKind::Leases) => {
            arguments.one::<Vec<LeaseRow>>(&client, "/v1/leases", |rows, colour| show::leases(rows, colour))
        }
        Some(ShowKind::Teredo) => {
            arguments.one::<Vec<TeredoRow>>(&client, "/v1/teredo", |rows, colour| show::teredo(rows, colour))
        }
        Some(ShowKind::SixRd) => {
            arguments.one::<Vec<SixRdRow>>(&client, "/v1/six-rd", |rows, colour| show::six_rd(rows, colour))
        }
        Some(ShowKind::RouterAdvertisements) => arguments.one::<Vec<RouterAdvertisementRow>>(
            &client,
            "/v1/router-advertisements",
            |rows, colour| show::router_advertisements(rows, colour),
        ),
        Some(ShowKind::TeredoServer) => {
            arguments.one::<Option<TeredoServerRow>>(&client, "/v1/teredo-server", show::teredo_server)
        }
        Some(ShowKind::Pcp) => arguments.one::<Option<PcpRow>>(&client, "/v1/pcp", show::pcp),
        Some(ShowKind::Dns64) => arguments.one::<Option<Dns64Row>>(&client, "/v1/dns64", show::dns64),
        Some(ShowKind::Fastpath) => {
            arguments.one::<Option<FastPathRow>>(&client, "/v1/fastpath", show::fast_path)
        }
        Some(ShowKind::Sessions) => {
            arguments.pages::<SessionRow>(&client, "/v1/sessions", query, show::sessions)
        }
        Some(ShowKind::Subscribers) => arguments.subscribers(&client),
        Some(ShowKind::Bindings) => {
            arguments.pages::<BindingRow>(&client, "/v1/bindings", query, show::bindings)
        }
    }
    .map_err(failure)?;
    match io::stdout().lock().write_all(text.as_bytes()) {
        // `sixway show sessions | head` is not an error.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::Failed(format!("standard output: {error}")))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

pub(super) fn failure(error: ClientError) -> Failure {
    match error {
        ClientError::Refused(400..=499, what) => Failure::Wrong(what),
        ClientError::Refused(..) | ClientError::Unreachable(..) | ClientError::Garbled(_) => {
            Failure::Failed(error.to_string())
        }
    }
}

impl ShowArguments {
    fn query(&self) -> Query {
        Query {
            inside: self.inside.clone(),
            outside: self.outside.clone(),
            remote: self.remote.clone(),
            port: self.port,
            protocol: self.protocol.clone(),
            limit: Some(self.limit),
            cursor: None,
        }
    }

    /// A filter that would be ignored is a mistake, and silence would hide it.
    fn refuse_filters_that_mean_nothing(&self, query: &Query) -> Result<(), Failure> {
        let filtered = Query { limit: None, ..query.clone() } != Query::default();
        if self.kind != Some(ShowKind::Subscribers) && (self.top.is_some() || self.by.is_some()) {
            return Err(Failure::Wrong("--top and --by apply only to `show subscribers`".into()));
        }
        match self.kind {
            Some(ShowKind::Sessions) => Ok(()),
            Some(ShowKind::Bindings) if query.remote.is_some() => Err(Failure::Wrong(
                "bindings have no remote endpoint: omit --remote, or use `show sessions`".into(),
            )),
            Some(ShowKind::Bindings) => Ok(()),
            Some(ShowKind::Subscribers)
                if Query { inside: None, limit: None, ..query.clone() } != Query::default() =>
            {
                Err(Failure::Wrong("of the filters, only --inside applies to `show subscribers`".into()))
            }
            Some(ShowKind::Subscribers) => Ok(()),
            None
            | Some(
                ShowKind::Counters
                | ShowKind::Drops
                | ShowKind::Pools
                | ShowKind::Leases
                | ShowKind::Teredo
                | ShowKind::SixRd
                | ShowKind::RouterAdvertisements
                | ShowKind::TeredoServer
                | ShowKind::Pcp
                | ShowKind::Dns64
                | ShowKind::Fastpath
                | ShowKind::Config,
            ) => match filtered {
                true => {
                    Err(Failure::Wrong("filters apply only to `show sessions` and `show bindings`".into()))
                }
                false => Ok(()),
            },
        }
    }

    fn one<T: DeserializeOwned + Serialize>(
        &self,
        client: &Client,
        path: &str,
        table: impl Fn(&T, Colour) -> String,
    ) -> Result<String, ClientError> {
        let value: T = client.get(path, &[])?;
        Ok(self.print(&value, table))
    }

    /// Requests the use of the pools; the table is followed by that of pools that are being drained.
    fn pools(&self, client: &Client) -> Result<String, ClientError> {
        let rows: Vec<PoolRow> = client.get("/v1/pools", &[])?;
        let text = self.print(&rows, |rows: &Vec<PoolRow>, colour| show::pools(rows, colour));
        if self.json {
            return Ok(text);
        }
        let blocks: Vec<PoolBlocksRow> = client.get("/v1/pools/blocks", &[])?;
        let text =
            text + &self.print(&blocks, |rows: &Vec<PoolBlocksRow>, colour| show::pool_blocks(rows, colour));
        let draining: Vec<DrainingRow> = client.get("/v1/pools/draining", &[])?;
        Ok(text + &self.print(&draining, |rows: &Vec<DrainingRow>, colour| show::draining(rows, colour)))
    }

    /// Asks for the first subscribers.
    fn subscribers(&self, client: &Client) -> Result<String, ClientError> {
        let parameters = [
            ("inside", self.inside.clone()),
            ("by", self.by.map(|by| by.name().to_owned())),
            ("top", self.top.map(|top| top.to_string())),
        ];
        let found: Subscribers = client.get("/v1/subscribers", &parameters)?;
        Ok(self.print(&found, show::subscribers))
    }

    /// Asks page by page until the limit is reached or the table ends.
    fn pages<T: DeserializeOwned + Serialize>(
        &self,
        client: &Client,
        path: &str,
        mut query: Query,
        table: impl Fn(&Page<T>, Colour) -> String,
    ) -> Result<String, ClientError> {
        let mut all: Page<T> = Page { rows: Vec::new(), total: 0, next: None };
        loop {
            query.limit = Some((self.limit - all.rows.len()).min(MAX_LIMIT));
            let page: Page<T> = client.get(path, &parameters(&query))?;
            all.rows.extend(page.rows);
            (all.total, all.next) = (page.total, page.next);
            if all.next.is_none() || all.rows.len() >= self.limit {
                return Ok(self.print(&all, table));
            }
            query.cursor.clone_from(&all.next);
        }
    }

    fn print<T: Serialize>(&self, value: &T, table: impl Fn(&T, Colour) -> String) -> String {
        if self.json { json(value) } else { table(value, colour()) }
    }
}

fn parameters(query: &Query) -> Vec<(&'static str, Option<String>)> {
    vec![
        ("inside", query.inside.clone()),
        ("outside", query.outside.clone()),
        ("remote", query.remote.clone()),
        ("port", query.port.map(|port| port.to_string())),
        ("protocol", query.protocol.clone()),
        ("limit", query.limit.map(|limit| limit.to_string())),
        ("cursor", query.cursor.clone()),
    ]
}

pub(super) fn json<T: Serialize>(value: &T) -> String {
    // Our rows have only strings for keys, so that this cannot fail.
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

fn colour() -> Colour {
    let wanted = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    if wanted { Colour::Ansi } else { Colour::Never }
}

/// The one socket in the directory of running gateways.
pub(super) fn only_socket(directory: &Path) -> Result<PathBuf, Failure> {
    let entries = std::fs::read_dir(directory).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => no_gateway(directory),
        io::ErrorKind::PermissionDenied => {
            Failure::Failed(format!("only the owner may read {}: run this as root", directory.display()))
        }
        _ => Failure::Failed(format!("{}: {error}", directory.display())),
    })?;
    let mut sockets: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "sock"))
        .collect();
    sockets.sort();
    match sockets.as_slice() {
        [] => Err(no_gateway(directory)),
        [only] => Ok(only.clone()),
        several => {
            let names: Vec<String> =
                several.iter().map(|path| format!("--socket {}", path.display())).collect();
            Err(Failure::Wrong(format!("several gateways are running; choose one with {}", names.join(", "))))
        }
    }
}

fn no_gateway(directory: &Path) -> Failure {
    Failure::Failed(format!(
        "no gateway is running: no socket in {}. Start one with: sixway run -c FILE, or sixway up",
        directory.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn what(outcome: Result<PathBuf, Failure>) -> String {
        match outcome {
            Ok(path) => path.display().to_string(),
            Err(Failure::Failed(what) | Failure::Wrong(what)) => what,
        }
    }

    #[test]
    fn the_only_socket_is_taken_and_several_are_named() {
        let directory = std::env::temp_dir().join(format!("sixway-sockets-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        assert!(what(only_socket(&directory)).starts_with("no gateway is running"));
        std::fs::write(directory.join("gw1.sock"), "").unwrap();
        std::fs::write(directory.join("gw1.state"), "").unwrap();
        assert!(what(only_socket(&directory)).ends_with("gw1.sock"));
        std::fs::write(directory.join("gw2.sock"), "").unwrap();
        let several = what(only_socket(&directory));
        assert!(several.contains("gw1.sock") && several.contains("gw2.sock"), "{several}");
        std::fs::remove_dir_all(&directory).unwrap();
        assert!(what(only_socket(&directory)).starts_with("no gateway is running"));
    }
}
