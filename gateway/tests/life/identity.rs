//! Flows and sessions stay with the translator that made them: in whatever order the configuration has it, from one process to the next, and
//! across a version whose maps are others.

use super::fast_path::{build, instead_of_siit, wait_until};
use super::network::{Network, Running, SIXWAY};
use super::shared_pool::Answering;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Port 7 of the IPv4 host tells everybody whom it sees, by TCP and UDP.
const TELL: &str = "import socket, threading\n\
    tcp = socket.create_server(('', 7)); udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); udp.bind(('', 7))\n\
    def answer(one, whom):\n  \
      while one.recv(1): one.sendall(b'%s %d\\n' % (whom[0].encode(), whom[1]))\n\
    def accept():\n  \
      while True:\n    \
        threading.Thread(target=answer, args=tcp.accept(), daemon=True).start()\n\
    threading.Thread(target=accept, daemon=True).start()\n\
    while True:\n  \
      octets, whom = udp.recvfrom(9)\n  \
      udp.sendto(b'%s %d\\n' % (whom[0].encode(), whom[1]), whom)\n";

/// Two conversations with each of these addresses, by TCP and UDP. Each answer says as whom the other end sees this one; it has to stay the same
/// until a file comes, which is named first. Datagrams that are lost while nothing carries them are sent again, for a while.
const TALK: &str = "import os, socket, sys, time\n\
    def ask(one, file):\n  \
      for _ in range(40):\n    \
        one.send(b'?')\n    \
        try: return file.readline() if file else one.recv(99)\n    \
        except TimeoutError:\n      \
          if file: raise\n\
    talks = []\n\
    for target in sys.argv[2:]:\n  \
      for kind in socket.SOCK_STREAM, socket.SOCK_DGRAM:\n    \
        one = socket.socket(socket.AF_INET6, kind); one.settimeout(20 if kind == socket.SOCK_STREAM else .5); one.connect((target, 7))\n    \
        talks.append((one, one.makefile('rb') if kind == socket.SOCK_STREAM else None))\n\
    seen = [ask(*talk) for talk in talks]\n\
    print('begun', seen, flush=True)\n\
    rounds = 0\n\
    while not os.path.exists(sys.argv[1]):\n  \
      now = [ask(*talk) for talk in talks]; rounds += 1\n  \
      if now != seen or None in now: sys.exit(f'{seen} became {now}')\n  \
      if rounds % 10 == 0: print('round', rounds, flush=True)\n  \
      time.sleep(.01)\n\
    print('the same', flush=True)\n";

/// Conversations that go on.
struct Talking {
    child: Child,
    said: PathBuf,
    stop: PathBuf,
}

impl Talking {
    fn begin(network: &Network, name: &str, targets: &[&str]) -> Self {
        let [said, stop] = ["said", "stop"].map(|what| network.directory.join(format!("{name}.{what}")));
        let out = fs::File::create(&said).unwrap();
        let child = Command::new("ip")
            .args(["netns", "exec", &network.host("client"), "python3", "-c", TALK])
            .arg(&stop)
            .args(targets)
            .stderr(out.try_clone().unwrap())
            .stdout(out)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let talking = Self { child, said, stop };
        talking.go_on();
        talking
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.said).unwrap()
    }

    /// Waits until every conversation has gone on for some rounds.
    fn go_on(&self) {
        let rounds = || self.said().matches("round").count();
        let before = rounds();
        wait_until("they go on", || rounds() > before + 1 || self.said().contains("rror"));
        assert!(!self.said().contains("rror"), "{}", self.said());
    }

    /// Each has kept its other end.
    fn end(mut self) {
        fs::write(&self.stop, "").unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success() && self.said().ends_with("the same\n"), "{}", self.said());
    }
}

impl Drop for Talking {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Two translators whose prefixes change checksums in the same way: what one's flow says of its packets would do for the other.
const ONE: &str =
    "[[nat64]]\nname = \"one\"\nprefix = \"64:ff9b::/96\"\npool = \"first\"\ntranslate_non_global = true\n";
const TWO: &str = "[[nat64]]\nname = \"two\"\nprefix = \"2001:dffe::/96\"\npool = \"second\"\n";
/// In place of the second, with its pool, and the same to checksums.
const HEIR: &str = "[[nat64]]\nname = \"heir\"\nprefix = \"2001:db8:d246::/96\"\npool = \"second\"\n";
const POOLS: &str = "[[pool]]\nname = \"first\"\naddresses = [\"192.0.2.0/28\"]\n\
                     [[pool]]\nname = \"second\"\naddresses = [\"192.0.2.16/28\"]\n";
const TARGETS: [&str; 2] = ["64:ff9b::203.0.113.2", "2001:dffe::203.0.113.2"];

/// The translators in this order, with a fast path.
fn in_order(text: &str, translators: [&str; 2]) -> String {
    instead_of_siit(text, &format!("{POOLS}{}", translators.concat()))
}

/// Translator, protocol, inside and outside of each session, and what carries it.
fn sessions(network: &Network) -> Vec<[String; 5]> {
    let rows: serde_json::Value = serde_json::from_str(&network.show(&["sessions", "--json"])).unwrap();
    let text = |row: &serde_json::Value, key: &str| row[key].as_str().unwrap().to_owned();
    let rows = rows["rows"].as_array().unwrap().iter();
    let mut found: Vec<_> = rows
        .map(|row| ["mechanism", "protocol", "inside", "outside", "path"].map(|key| text(row, key)))
        .collect();
    found.sort();
    found
}

fn on_the_fast_path(network: &Network) -> usize {
    sessions(network).iter().filter(|row| row[4].starts_with("fast")).count()
}

fn ended(network: &Network, gateway: &mut Running) {
    gateway.signal("TERM");
    assert_eq!(gateway.end(), 0, "{}", gateway.said());
    assert_eq!(network.pinned(), [] as [String; 0]);
    assert!(!network.has_device() && !network.state().exists());
}

#[test]
fn flows_and_sessions_stay_with_their_translator_in_whatever_order_the_sections_are() {
    let (network, text) = build();
    let _far = Answering::on(&network, "server", TELL);
    let (order, other_order) = (in_order(&text, [ONE, TWO]), in_order(&text, [TWO, ONE]));
    let mut first = network.start(&order);
    let talking = Talking::begin(&network, "talk", &TARGETS);
    wait_until("the fast path carries all", || on_the_fast_path(&network) == 4);
    // Those of ICMP are the engine's.
    TARGETS.iter().for_each(|target| network.ping(target));
    let had = sessions(&network);
    assert_eq!(had.len(), 6, "{had:?}");

    let mut second = network.start_with(&other_order, &["--takeover"]);
    assert_eq!(first.end(), 0, "{}", first.said());
    assert!(second.said().contains("4 flows continue in the fast path, 0 ended"), "{}", second.said());
    assert!(second.said().contains("2 of 2 sessions continue"), "{}", second.said());
    assert_eq!(sessions(&network), had);
    talking.go_on();

    second.signal("KILL");
    second.end();
    talking.go_on();
    let third = network.start(&order);
    assert!(third.said().contains("4 flows continue in the fast path, 0 ended"), "{}", third.said());
    assert_eq!(sessions(&network), had.iter().filter(|row| row[1] != "icmp").cloned().collect::<Vec<_>>());
    talking.go_on();

    // What the engine adds from here on lies in the slots of before.
    let more = Talking::begin(&network, "more", &TARGETS);
    wait_until("the fast path carries all", || on_the_fast_path(&network) == 8);
    let mut fourth = network.start_with(&other_order, &["--takeover"]);
    assert!(fourth.said().contains("8 flows continue in the fast path, 0 ended"), "{}", fourth.said());
    // By itself, too.
    network.configure(&order);
    fourth.signal("HUP");
    wait_until("it is there again", || fourth.said().matches("ready in").count() == 2);
    let said = fourth.said();
    assert_eq!(said.matches("8 flows continue in the fast path, 0 ended").count(), 2, "{said}");
    talking.end();
    more.end();
    ended(&network, &mut fourth);
}

#[test]
fn flows_and_sessions_of_a_translator_that_is_gone_are_nobodys_whoever_has_its_place_and_its_pool() {
    let (network, text) = build();
    let _far = Answering::on(&network, "server", TELL);
    let mut first = network.start(&in_order(&text, [ONE, TWO]));
    let stays = Talking::begin(&network, "stays", &TARGETS[..1]);
    let goes = Talking::begin(&network, "goes", &TARGETS[1..]);
    wait_until("the fast path carries all", || on_the_fast_path(&network) == 4);
    TARGETS.iter().for_each(|target| network.ping(target));

    let mut second = network.start_with(&in_order(&text, [HEIR, ONE]), &["--takeover"]);
    assert_eq!(first.end(), 0, "{}", first.said());
    let said = second.said();
    assert!(said.contains("2 flows continue in the fast path, 2 ended"), "{said}");
    assert!(said.contains("2 flows ended: the translator does not exist"), "{said}");
    assert!(said.contains("1 of 2 sessions continue"), "{said}");
    assert!(said.contains("1 session ended: the translator does not exist"), "{said}");
    assert!(sessions(&network).iter().all(|row| row[0] == "one"), "{:?}", sessions(&network));
    drop(goes);
    stays.go_on();
    let heir = Talking::begin(&network, "heir", &["2001:db8:d246::203.0.113.2"]);
    wait_until("the fast path carries the heir's, too", || on_the_fast_path(&network) == 4);
    stays.end();
    heir.end();
    ended(&network, &mut second);
}

/// The program of the last version whose maps were others: `make previous`. Where it is not, the test is ignored.
fn previous() -> PathBuf {
    let made = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/previous/sixway");
    let program = std::env::var_os("SIXWAY_PREVIOUS").map_or_else(|| made.into(), PathBuf::from);
    if !program.exists() {
        sixway_trial::ignore(format!("there is no {}: make previous", program.display()));
    }
    program
}

/// Layout version of a program's maps, if it can tell.
fn layout(program: &Path) -> Option<u32> {
    let output = Command::new(program).args(["fastpath", "layout"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().parse().ok()
}

#[test]
fn an_upgrade_across_a_layout_takes_flows_back_first_and_loses_no_session() {
    let old = previous();
    let (network, text) = build();
    assert_ne!(layout(&old), layout(Path::new(SIXWAY)), "it is not of another layout");
    let _far = Answering::on(&network, "server", TELL);
    let (order, other_order) = (in_order(&text, [ONE, TWO]), in_order(&text, [TWO, ONE]));
    let mut first = network.start_program(&old, &order, &[]);
    let talking = Talking::begin(&network, "talk", &TARGETS);
    wait_until("the fast path carries all", || on_the_fast_path(&network) == 4);
    TARGETS.iter().for_each(|target| network.ping(target));
    let had = sessions(&network);
    assert_eq!(had.len(), 6, "{had:?}");

    // In another order, too: what the old one leaves names translators by their places.
    let mut second = network.start_with(&other_order, &["--takeover"]);
    assert_eq!(first.end(), 0, "{}", first.said());
    let said = second.said();
    assert!(said.contains("from the fast path to its engine: layout version"), "{said}");
    assert!(said.contains("6 of 6 sessions continue"), "{said}");
    let plain =
        |rows: Vec<[String; 5]>| rows.into_iter().map(|[a, b, c, d, _]| [a, b, c, d]).collect::<Vec<_>>();
    assert_eq!(plain(sessions(&network)), plain(had));
    wait_until("the fast path carries them again", || on_the_fast_path(&network) == 4);
    talking.end();
    ended(&network, &mut second);
}

#[test]
fn pins_of_another_layout_that_nobody_runs_are_removed_and_that_is_said() {
    let old = previous();
    let (network, text) = build();
    let mut first = network.start_program(&old, &text, &[]);
    first.signal("KILL");
    first.end();
    let mut second = network.start(&text);
    let said = second.said();
    assert!(
        said.contains("flows of the previous process are lost") && said.contains("layout version"),
        "{said}"
    );
    network.ping("2001:db8:64::203.0.113.2");
    ended(&network, &mut second);
}

#[test]
fn flows_that_the_next_process_has_no_table_for_return_to_the_engine_first() {
    let (network, text) = build();
    let _far = Answering::on(&network, "server", TELL);
    let text = in_order(&text, [ONE, TWO]);
    let mut first = network.start(&text);
    let talking = Talking::begin(&network, "talk", &TARGETS);
    wait_until("the fast path carries all", || on_the_fast_path(&network) == 4);
    // Another number of flows is another table.
    let mut second = network.start_with(&format!("{text}flows = 2048\n"), &["--takeover"]);
    assert_eq!(first.end(), 0, "{}", first.said());
    assert!(second.said().contains("4 of 4 sessions continue"), "{}", second.said());
    wait_until("the fast path carries them again", || on_the_fast_path(&network) == 4);

    // And so by itself.
    network.configure(&format!("{text}flows = 4096\n"));
    second.signal("HUP");
    wait_until("it is there again", || second.said().matches("ready in").count() == 2);
    let said = second.said();
    assert!(said.contains("moving flows from the fast path to the engine"), "{said}");
    assert_eq!(said.matches("4 of 4 sessions continue").count(), 2, "{said}");
    talking.end();
    ended(&network, &mut second);
}
