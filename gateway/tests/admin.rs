//! The admin API over a Unix socket, with a fake gateway behind it.

use sixway::admin::{
    AdminError, Backend, Client, ClientError, Named, PoolPart, PoolVerb, Query, Ranking, router,
};
use sixway::view::{
    AddressBlocksRow, BindingRow, CounterRow, Dns64Row, DrainingRow, DropRow, Ended, FastPathRow, Flush,
    Flushed, LeaseRow, LiveRow, NewRemote, Page, PcpRow, PoolBlocksRow, PoolRow, RouterAdvertisementRow,
    SessionRow, SixRdRow, Status, SubscriberRow, Subscribers, TeredoRow, TeredoServerRow,
};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

struct Fake;

impl Backend for Fake {
    async fn status(&self) -> Result<Status, AdminError> {
        Ok(Status { name: "gw1".into(), uptime_seconds: 7, ..Status::default() })
    }
    async fn counters(&self) -> Result<Vec<CounterRow>, AdminError> {
        Ok(vec![CounterRow {
            name: "received".into(),
            value: 3,
            by_worker: vec![1, 2],
            ..CounterRow::default()
        }])
    }
    async fn teredo(&self) -> Result<Vec<TeredoRow>, AdminError> {
        Ok(vec![TeredoRow { name: "teredo_relay".into(), ..TeredoRow::default() }])
    }
    async fn leases(&self) -> Result<Vec<LeaseRow>, AdminError> {
        Ok(vec![LeaseRow { ipv4: "192.0.2.17".into(), ..LeaseRow::default() }])
    }
    async fn end_lease(&self, ipv4: std::net::Ipv4Addr) -> Result<(), AdminError> {
        Err(AdminError::NotFound(format!("{ipv4} is not leased")))
    }
    async fn live(
        &self,
        filter: sixway::admin::LiveFilter,
        _: std::time::Duration,
    ) -> Result<tokio::sync::mpsc::Receiver<LiveRow>, AdminError> {
        let (rows, told) = tokio::sync::mpsc::channel(4);
        let packet = format!("{filter:?}");
        rows.try_send(LiveRow { packet, ..LiveRow::default() }).unwrap();
        Ok(told)
    }
    async fn drops(&self, _: sixway::trace::Detail) -> Result<Vec<DropRow>, AdminError> {
        Err(AdminError::Busy("worker 1 did not answer in time".into()))
    }
    /// As many rows as the limit asks, which say what the query was.
    async fn sessions(&self, query: Query) -> Result<Page<SessionRow>, AdminError> {
        let row = SessionRow { inside: format!("{query:?}"), ..SessionRow::default() };
        let limit = query.limit.unwrap_or(0);
        let start: usize = query.cursor.map_or(0, |cursor| cursor.parse().unwrap());
        let rows = vec![row; limit.min(25_000 - start)];
        let next = (start + limit < 25_000).then(|| (start + limit).to_string());
        Ok(Page { rows, total: 25_000, next })
    }
    async fn bindings(&self, _: Query) -> Result<Page<BindingRow>, AdminError> {
        Ok(Page { rows: vec![], total: 0, next: None })
    }
    async fn pools(&self) -> Result<Vec<PoolRow>, AdminError> {
        Ok(vec![PoolRow { pool: "main".into(), ..PoolRow::default() }])
    }
    async fn pool_blocks(&self) -> Result<Vec<PoolBlocksRow>, AdminError> {
        let by_address = vec![AddressBlocksRow { address: [192, 0, 2, 4].into(), given: 3, free: 123 }];
        Ok(vec![PoolBlocksRow { pool: "main".into(), by_address, ..PoolBlocksRow::default() }])
    }
    async fn draining(&self) -> Result<Vec<DrainingRow>, AdminError> {
        let prefix = "192.0.2.4/30".parse().unwrap();
        let (mechanism, pool) = ("nat64".into(), "main".into());
        Ok(vec![DrainingRow { mechanism, pool, prefix, bindings: 3, hosts: 2, portless: 0 }])
    }
    async fn change_pool(&self, verb: PoolVerb, part: PoolPart) -> Result<(), AdminError> {
        Err(AdminError::Conflict(format!("{verb:?} {} of {}", part.prefix, part.pool)))
    }
    async fn subscribers(&self, ranking: Ranking) -> Result<Subscribers, AdminError> {
        let row = SubscriberRow { subscriber: format!("{ranking:?}"), ..SubscriberRow::default() };
        Ok(Subscribers { rows: vec![row], total: 1 })
    }
    async fn end_subscriber(
        &self,
        inside: sixway_wire::Prefix6,
        _: Option<String>,
    ) -> Result<Ended, AdminError> {
        match inside.length() {
            128 => Ok(Ended { bindings: 7 }),
            _ => Err(AdminError::NotFound(inside.to_string())),
        }
    }
    async fn make_binding(&self, named: Named) -> Result<(), AdminError> {
        named.binding().map(|_| ()).map_err(AdminError::BadRequest)
    }
    async fn end_binding(&self, _: Named) -> Result<(), AdminError> {
        Err(AdminError::NotFound("no such binding".into()))
    }
    async fn end_session(&self, _: Named) -> Result<(), AdminError> {
        Ok(())
    }
    fn six_rd(&self) -> Vec<SixRdRow> {
        vec![SixRdRow { name: "six_rd".into(), ..SixRdRow::default() }]
    }
    async fn fast_path(&self) -> Result<Option<FastPathRow>, AdminError> {
        Ok(None)
    }
    async fn end_fast_path(&self) -> Result<bool, AdminError> {
        Ok(false)
    }
    async fn leave(&self) -> Result<(), AdminError> {
        Err(AdminError::Conflict("it has no device".into()))
    }
    async fn set_remote(&self, _: NewRemote) -> Result<(), AdminError> {
        Ok(())
    }
    fn router_advertisements(&self) -> Vec<RouterAdvertisementRow> {
        Vec::new()
    }
    fn pcp(&self) -> Option<PcpRow> {
        None
    }
    fn teredo_server(&self) -> Option<TeredoServerRow> {
        Some(TeredoServerRow { exposes: "UDP 192.0.2.1:3544".into(), ..TeredoServerRow::default() })
    }

    async fn dns64(&self) -> Result<Option<Dns64Row>, AdminError> {
        Ok(Some(Dns64Row { queries: 7, ..Dns64Row::default() }))
    }
    async fn flush(&self, flush: Flush) -> Result<Flushed, AdminError> {
        match (flush.name, flush.all) {
            (Some(name), None) => Ok(Flushed { answers: name.len() as u64 }),
            (None, Some(true)) => Ok(Flushed { answers: 99 }),
            (_, _) => Err(AdminError::BadRequest("name is missing; pass name, or all=true".into())),
        }
    }
    async fn reload(&self, confirm: Option<std::time::Duration>) -> Result<(), AdminError> {
        match confirm {
            None => Err(AdminError::BadRequest("sixway.toml:1  nat64  is wrong".into())),
            Some(_) => Ok(()),
        }
    }
    async fn keep_reload(&self) -> Result<(), AdminError> {
        Ok(())
    }
    async fn roll_back(&self) -> Result<(), AdminError> {
        Err(AdminError::Conflict("nothing is on trial".into()))
    }
    fn config(&self) -> serde_json::Value {
        serde_json::json!({ "tun": { "name": "sixway0" } })
    }
    fn config_text(&self) -> String {
        "[tun]\nname = \"sixway0\"\n".into()
    }
    async fn metrics(&self) -> Result<String, AdminError> {
        Ok("# EOF\n".into())
    }
}

/// The fake gateway's socket, in a directory of its own that goes with it.
struct Served {
    directory: PathBuf,
    socket: PathBuf,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn served() -> Served {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let directory = std::env::temp_dir().join(format!("sixway-admin-{}-{number}", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    let socket = directory.join("gw1.sock");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    listener.set_nonblocking(true).unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::UnixListener::from_std(listener).unwrap();
            axum::serve(listener, router(Arc::new(Fake))).await.unwrap();
        });
    });
    Served { directory, socket }
}

fn sixway(arguments: &[&str]) -> (i32, String, String) {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_sixway")).args(arguments).output().unwrap();
    let text = |octets: Vec<u8>| String::from_utf8(octets).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_api_answers_in_json() {
    let served = served();
    let client = Client::new(&served.socket);
    let status: Status = client.get("/v1/status", &[]).unwrap();
    assert_eq!((status.name.as_str(), status.uptime_seconds), ("gw1", 7));
    let counters: Vec<CounterRow> = client.get("/v1/counters", &[]).unwrap();
    assert_eq!(counters[0].by_worker, [1, 2]);
    let config: serde_json::Value = client.get("/v1/config", &[]).unwrap();
    assert_eq!(config["tun"]["name"], "sixway0");
    assert_eq!(client.text("/v1/config.toml", &[]).unwrap(), "[tun]\nname = \"sixway0\"\n");
    let pools: Vec<PoolRow> = client.get("/v1/pools", &[]).unwrap();
    assert_eq!(pools[0].pool, "main");
    assert_eq!(client.text("/metrics", &[]).unwrap(), "", "Prometheus' format has no end");
}

#[test]
fn a_wrong_request_gets_a_fault_that_says_what_is_wrong() {
    let served = served();
    let client = Client::new(&served.socket);
    let refused = |path: &str, query: &[(&str, Option<String>)]| match client.text(path, query) {
        Err(ClientError::Refused(status, what)) => (status, what),
        other => panic!("{other:?}"),
    };
    let (status, what) = refused("/v1/sessions", &[("inside", Some("host".into()))]);
    assert_eq!(status, 400);
    assert!(what.contains("inside") && what.contains("2001:db8:1::/64"), "{what}");
    let (status, what) = refused("/v1/sessions", &[("limit", Some("1000000".into()))]);
    assert_eq!((status, what.contains("10000")), (400, true));
    let (status, what) = refused("/v1/sessions", &[("insde", Some("::1".into()))]);
    assert_eq!((status, what.contains("insde")), (400, true), "{what}");
    assert_eq!(refused("/v1/sesions", &[]).0, 404);
    assert_eq!(refused("/v1/drops", &[]), (503, "worker 1 did not answer in time".into()));
}

/// Status and body of the answer to a request with a body.
fn asked(served: &Served, method: &str, target: &str, body: &str) -> (u16, String) {
    let mut stream = std::os::unix::net::UnixStream::connect(&served.socket).unwrap();
    let length = body.len();
    write!(
        stream,
        "{method} {target} HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.into())
}

#[test]
fn changes_are_made_or_refused_with_what_is_wrong() {
    let served = served();
    let binding = r#"{"protocol":"tcp","inside":"[2001:db8::80]:80","outside":"192.0.2.1:80"}"#;
    assert_eq!(asked(&served, "POST", "/v1/bindings", binding).0, 201);
    for wrong in ["", "{}", &binding.replace("tcp", "gre"), &binding.replace("inside", "insde")] {
        let (status, what) = asked(&served, "POST", "/v1/bindings", wrong);
        assert!(status == 400 && what.contains("error"), "{wrong}: {status} {what}");
    }
    assert_eq!(asked(&served, "DELETE", "/v1/bindings?protocol=tcp&outside=192.0.2.1:80", "").0, 404);
    assert_eq!(asked(&served, "DELETE", "/v1/sessions?protocol=tcp", "").0, 204);
    assert_eq!(asked(&served, "DELETE", "/v1/status", "").0, 405);
}

#[test]
fn a_part_of_a_pool_is_named_by_its_prefix() {
    let served = served();
    let part = r#"{"pool":"main","prefix":"192.0.2.4/30"}"#;
    let query = "?pool=main&prefix=192.0.2.4/30";
    for (method, path, body, verb) in [
        ("POST", "/v1/pools/draining", part, "Drain"),
        ("DELETE", &format!("/v1/pools/draining{query}"), "", "Undrain"),
        ("POST", "/v1/pools/addresses", part, "Add"),
        ("DELETE", &format!("/v1/pools/addresses{query}"), "", "Remove"),
    ] {
        let (status, what) = asked(&served, method, path, body);
        assert!(status == 409 && what.contains(&format!("{verb} 192.0.2.4/30 of main")), "{status} {what}");
    }
    for wrong in ["", "{}", &part.replace("/30", "/29"), &part.replace("prefix", "address")] {
        assert_eq!(asked(&served, "POST", "/v1/pools/draining", wrong).0, 400, "{wrong}");
    }
    let socket = served.socket.to_str().unwrap();
    let (status, _, said) = sixway(&["pool", "drain", "main", "192.0.2.4/30", "--socket", socket]);
    assert!(status == 2 && said.contains("Drain 192.0.2.4/30 of main"), "{status} {said}");
    assert_eq!(sixway(&["pool", "drain", "main", "192.0.2.5/30", "--socket", socket]).0, 2);
    let (_, shown, _) = sixway(&["show", "pools", "--socket", socket]);
    assert!(shown.contains("main  192.0.2.4/30  3         2      0              in use"), "{shown}");
}

#[test]
fn answers_are_forgotten_by_name_or_all_of_them() {
    let served = served();
    let socket = served.socket.to_str().unwrap();
    let flush = |arguments: &[&str]| sixway(&[&["dns64", "flush", "--socket", socket], arguments].concat());
    assert_eq!(flush(&["example"]), (0, "7 answers removed from the cache\n".into(), String::new()));
    assert_eq!(flush(&["--all"]).1, "99 answers removed from the cache\n");
    assert_eq!(flush(&["--all", "--json"]).1, "{\n  \"answers\": 99\n}\n");
    assert_eq!((flush(&[]).0, flush(&["example", "--all"]).0), (2, 2));
    let row: Dns64Row = Client::new(&served.socket).get("/v1/dns64", &[]).unwrap();
    assert_eq!(row.queries, 7);
    assert_eq!(asked(&served, "DELETE", "/v1/dns64/cache", "").0, 400);
}

#[test]
fn show_reads_page_by_page_up_to_its_limit() {
    let served = served();
    let socket = served.socket.to_str().unwrap();
    let (status, out, _) = sixway(&["show", "sessions", "--json", "--limit", "24000", "--socket", socket]);
    assert_eq!(status, 0);
    let page: Page<SessionRow> = serde_json::from_str(&out).unwrap();
    assert_eq!((page.rows.len(), page.total), (24_000, 25_000));
    assert!(page.rows[23_999].inside.contains("cursor: Some(\"20000\")"));
}

#[test]
fn show_passes_its_filters_on() {
    let served = served();
    let socket = served.socket.to_str().unwrap();
    let (status, out, _) = sixway(&[
        "show",
        "sessions",
        "--inside",
        "[2001:db8::1]:80",
        "--protocol",
        "tcp",
        "--limit",
        "1",
        "--socket",
        socket,
    ]);
    assert_eq!(status, 0);
    assert!(
        out.contains(r#"inside: Some("[2001:db8::1]:80")"#) && out.contains(r#"protocol: Some("tcp")"#),
        "{out}"
    );
    assert!(out.ends_with("1 of 25,000 (more: --limit)\n"), "{out}");
}

#[test]
fn a_gateway_that_cannot_answer_makes_show_fail() {
    let served = served();
    let socket = served.socket.to_str().unwrap();
    let (status, out, error) = sixway(&["show", "drops", "--socket", socket]);
    assert_eq!((status, out.as_str(), error.as_str()), (1, "", "worker 1 did not answer in time\n"));
}

#[test]
fn without_a_gateway_show_says_so_in_one_line() {
    let (status, out, error) = sixway(&["show", "--socket", "/nonexistent/gw1.sock"]);
    assert_eq!((status, out.as_str()), (1, ""));
    assert_eq!(error, "no gateway is running: /nonexistent/gw1.sock does not exist\n");

    let directory = std::env::temp_dir().join(format!("sixway-stale-{}", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    let stale = directory.join("gw1.sock");
    drop(std::os::unix::net::UnixListener::bind(&stale).unwrap());
    let (status, _, error) = sixway(&["show", "--socket", stale.to_str().unwrap()]);
    std::fs::remove_dir_all(&directory).unwrap();
    assert_eq!(status, 1);
    assert!(error.starts_with("nothing answers at ") && error.contains("sixway cleanup"), "{error}");
    assert_eq!(error.lines().count(), 1);
}

#[test]
fn a_wrong_command_line_has_exit_status_two() {
    for arguments in [
        &["shw"][..],
        &["show", "sesions"],
        &["show", "--inside", "::1"],
        &["show", "sessions", "--inside", "1.2.3"],
        &["show", "sessions", "--limit", "0"],
        &["show", "bindings", "--remote", "1.2.3.4"],
        &["check", "a.toml", "-c", "b.toml"],
        &["run", "a.toml", "-c", "b.toml"],
    ] {
        let (status, out, error) = sixway(arguments);
        assert_eq!((status, out.as_str()), (2, ""), "{arguments:?}");
        assert!(!error.is_empty());
    }
    let (_, _, error) = sixway(&["show", "sessions", "--inside", "foo"]);
    let wanted = "an address, prefix, [ADDRESS]:PORT or IPv4 ADDRESS:PORT; write one such as 2001:db8:1::/64 or 10.0.0.0/8";
    assert_eq!(error, format!("--inside foo: not {wanted}\n"));
    assert_eq!(sixway(&["--version"]).0, 0);
    assert_eq!(sixway(&["show", "--help"]).0, 0);
}

#[test]
fn the_configuration_file_is_named_with_or_without_its_option() {
    let said = "/nonexistent/a.toml  cannot be read: No such file or directory (os error 2)\n1 error. Nothing was changed.\n";
    for arguments in [
        &["check", "/nonexistent/a.toml"][..],
        &["check", "-c", "/nonexistent/a.toml"],
        &["run", "/nonexistent/a.toml"],
    ] {
        assert_eq!(sixway(arguments), (2, String::new(), said.into()), "{arguments:?}");
    }
    let good = std::env::temp_dir().join(format!("sixway-good-{}.toml", std::process::id()));
    std::fs::write(&good, "[siit]\nprefix = \"2001:db8:64::/96\"\n").unwrap();
    let (status, out, error) = sixway(&["check", good.to_str().unwrap()]);
    std::fs::remove_file(&good).unwrap();
    assert_eq!((status, out.as_str()), (0, "No errors.\n"), "{error}");
}

#[test]
fn subscribers_are_asked_for_by_prefix_order_and_number() {
    let served = served();
    let client = Client::new(&served.socket);
    let ask = |query: &[(&str, Option<String>)]| client.get::<Subscribers>("/v1/subscribers", query);
    let found = ask(&[]).unwrap();
    assert_eq!(
        found.rows[0].subscriber,
        "Ranking { inside: None, by: None, top: Some(20), mechanism: None }"
    );
    let some = |text: &str| Some(text.to_owned());
    let query = [("inside", some("10.0.0.0/8")), ("by", some("rate")), ("top", some("3"))];
    let shown = ask(&query).unwrap().rows.remove(0).subscriber;
    assert_eq!(
        shown,
        "Ranking { inside: Some(\"10.0.0.0/8\"), by: Some(Rate), top: Some(3), mechanism: None }"
    );
    for (query, said) in [
        (("top", some("0")), "top = 0 is out of range; write 1 to 10000"),
        (("by", some("size")), "unknown variant `size`"),
        (("inside", some("nobody")), "write one such as"),
    ] {
        let Err(ClientError::Refused(400, what)) = ask(&[query]) else { panic!("{said}") };
        assert!(what.contains(said), "{what}");
    }
    let end = |inside: &[(&str, Option<String>)]| client.delete::<Ended>("/v1/subscribers", inside);
    assert_eq!(end(&[("inside", some("10.0.0.1"))]).unwrap().bindings, 7);
    assert!(matches!(end(&[("inside", some("10.0.0.0/24"))]), Err(ClientError::Refused(404, _))));
    let Err(ClientError::Refused(400, what)) = end(&[]) else { panic!() };
    assert!(what.contains("inside is missing"), "{what}");
}
