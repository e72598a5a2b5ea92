//! What DNS threads, the control thread and workers know of leases, and when.

use super::*;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

const HOST: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x99, 0xb, 0, 0, 0, 1);

/// A concentrator's book with a lease file in this directory, which is removed at the end.
struct Site {
    directory: PathBuf,
    config: Config,
}

impl Site {
    fn new(name: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("sixway-book-{name}-{}", std::process::id()));
        let _absent = std::fs::remove_dir_all(&directory);
        let file = directory.join("a.leases");
        let config = crate::sample::config(&format!(
            "[four_over_six]\nrole = \"concentrator\"\naddresses = \"2001:db8:c::1\"\npool = \"198.51.100.0/24\"\n\
             clients = \"2001:db8:99::/48\"\nlease_file = {file:?}\n"
        ));
        Self { directory, config }
    }

    fn book(&self) -> Arc<LeaseBook> {
        Arc::new(LeaseBook::load(&self.config, &mut [], Clock::start(), 7).unwrap().unwrap())
    }

    fn file(&self) -> Option<String> {
        std::fs::read_to_string(self.directory.join("a.leases")).ok()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _absent = std::fs::remove_dir_all(&self.directory);
    }
}

fn asker() -> Asker {
    Asker { client: Ipv4Addr::new(203, 0, 113, 53).into(), is_proven: true }
}

/// What the control thread does, with workers that answer immediately.
fn tell(book: &LeaseBook) {
    book.write_down();
    for (place, _, pending) in book.take_pending() {
        book.note_told(place, &pending);
    }
}

/// `max_leases` is 65,536 by default.
#[test]
fn the_most_leases_are_what_the_pool_can_give() {
    let most = |pool: &str, more: &str| {
        let mut site = Site::new("most");
        let text = format!(
            "[four_over_six]\nrole = \"concentrator\"\naddresses = \"2001:db8:c::1\"\npool = {pool}\n\
             clients = \"2001:db8:99::/48\"\nlease_file = {:?}\n{more}",
            site.directory.join("a.leases")
        );
        site.config = crate::sample::config(&text);
        let book = site.book();
        assert!(book.states()[0].1.ends_with(" leases"), "{:?}", book.states());
        book.counts("four_over_six").unwrap().1
    };
    let fixed =
        |host: &str, ipv4: &str| format!("[[four_over_six.static]]\nhost = \"{host}\"\nipv4 = \"{ipv4}\"\n");
    let one = fixed("2001:db8:99:b::9", "198.51.100.20");
    let network = fixed("2001:db8:99:c::9", "198.51.100.24/30");
    assert_eq!(most("\"198.51.100.16/28\"", ""), 16);
    assert_eq!(most("[\"198.51.100.16/28\", \"203.0.113.0/24\"]", ""), 16 + 256);
    assert_eq!(most("\"198.51.100.16/28\"", &one), 16);
    assert_eq!(most("\"198.51.100.16/28\"", &format!("{one}{network}")), 16 - 3);
    assert_eq!(most("\"198.51.100.16/28\"", "max_leases = 9\n"), 9);
    assert_eq!(most("\"10.0.0.0/8\"", ""), 65_536);
}

#[test]
fn a_query_for_a_name_writes_nothing_and_the_control_thread_does_before_workers_are_told() {
    let site = Site::new("written");
    let book = site.book();
    assert_eq!(book.look_up(0, HOST, asker()), LeasedAddress::None, "nobody told the workers");
    assert_eq!(site.file(), None);
    tell(&book);
    let written = site.file().unwrap();
    assert!(written.starts_with("waits 198.51.100.0 2001:db8:99:b::1 "), "{written}");
    assert!(written.ends_with(" 203.0.113.53 proven\n"), "{written}");
    assert!(matches!(book.look_up(0, HOST, asker()), LeasedAddress::Has(..)));
    assert_eq!(site.file().as_ref(), Some(&written), "nothing is new");
    // After a restart it still waits.
    drop(book);
    let rows = site.book().rows(9);
    assert_eq!((rows.len(), rows[0].state.as_str()), (1, "leased"));
}

#[test]
fn queries_are_answered_while_the_disk_stands_still() {
    let site = Site::new("stands-still");
    let book = site.book();
    book.look_up(0, HOST, asker());
    tell(&book);
    // The control thread is in the middle of a write.
    let _writes = book.disks();
    let other = Arc::clone(&book);
    let asked = thread::spawn(move || other.look_up(0, HOST, asker()));
    assert!(matches!(asked.join().unwrap(), LeasedAddress::Has(..)));
}

#[test]
fn a_query_waits_for_a_change_that_is_on_its_way_or_is_newer_than_what_the_workers_know() {
    let site = Site::new("told");
    let book = site.book();
    let asks = || {
        let other = Arc::clone(&book);
        thread::spawn(move || other.look_up(0, HOST, asker()))
    };
    book.look_up(0, HOST, asker());
    // On its way.
    let mut told = book.take_pending();
    let (place, _, first) = told.remove(0);
    assert_eq!(asks().join().unwrap(), LeasedAddress::None);
    // The lease ends and begins again before the workers have answered.
    assert!(book.end(Ipv4Addr::new(198, 51, 100, 0)));
    let waits = asks();
    while book.all().iter().all(|one| !one.pending.values().any(Option::is_some)) {
        thread::yield_now();
    }
    book.note_told(place, &first);
    assert_eq!(waits.join().unwrap(), LeasedAddress::None, "they know of the former one only");
    // A worker did not get it.
    let (place, _, second) = book.take_pending().remove(0);
    book.put_back(place, second);
    assert_eq!(asks().join().unwrap(), LeasedAddress::None);
}

#[test]
fn workers_do_not_know_of_a_lease_that_has_changed_again() {
    let site = Site::new("again");
    let mut book = site.book();
    Arc::get_mut(&mut book).unwrap().awaited.patience = Duration::ZERO;
    let address = Ipv4Addr::new(198, 51, 100, 0);
    assert_eq!(book.look_up(0, HOST, asker()), LeasedAddress::None);
    let (place, _, first) = book.take_pending().remove(0);
    assert!(book.end(address));
    assert_eq!(book.look_up(0, HOST, asker()), LeasedAddress::None);
    book.note_told(place, &first);
    assert!(!book.awaited.wait(address), "they know of the former one only");
    tell(&book);
    assert!(book.awaited.wait(address));
}

#[test]
fn a_query_that_waits_is_answered_when_the_workers_know() {
    let site = Site::new("known");
    let mut book = site.book();
    Arc::get_mut(&mut book).unwrap().awaited.patience = Duration::from_secs(60);
    let other = Arc::clone(&book);
    let waits = thread::spawn(move || other.look_up(0, HOST, asker()));
    while book.all().iter().all(|one| one.pending.is_empty()) {
        thread::yield_now();
    }
    // A worker did not get it the first time.
    let (place, _, first) = book.take_pending().remove(0);
    book.put_back(place, first);
    assert!(!waits.is_finished());
    tell(&book);
    assert!(matches!(waits.join().unwrap(), LeasedAddress::Has(..)));
}

#[test]
fn a_full_disk_costs_no_query_and_what_it_lacks_is_written_later() {
    let site = Site::new("full");
    let book = site.book();
    // Nothing can be written where a directory should be.
    std::fs::write(&site.directory, "").unwrap();
    for number in 0..8 {
        let host = Ipv6Addr::from_bits(HOST.to_bits() + (number << 72));
        book.look_up(0, host, asker());
    }
    tell(&book);
    assert_eq!(book.rows(99).len(), 8);
    let failing = || book.files().pop().and_then(|files| files.unwritten);
    assert!(failing().unwrap().contains("a.leases: "), "{:?}", failing());
    std::fs::remove_file(&site.directory).unwrap();
    book.finish();
    assert_eq!(site.file().unwrap().lines().count(), 8);
    book.tick();
    assert_eq!(failing(), None);
}
