//! Tests of the state file.

use super::contents::Contents;
use super::directory::leftovers_among;
use super::listing::states;
use super::settings::{Changed, sysctl};
use super::*;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sixway-record-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn setting(&self, name: &str, value: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, format!("{value}\n")).unwrap();
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn settings_are_put_back_in_reverse_order_at_the_end() {
    let directory = Directory::new("order");
    let setting = directory.setting("forwarding", "0");
    let (mut record, left) = Record::take(&directory.0, "gw1").unwrap();
    assert!(left.is_empty());
    record.change(&(setting.clone(), "1".into())).unwrap();
    record.change(&(setting.clone(), "1".into())).unwrap();
    assert_eq!(sysctl(&setting).unwrap(), "1");
    assert_eq!(record.end(), Leftovers { settings: 1, ..Leftovers::default() });
    assert_eq!(sysctl(&setting).unwrap(), "0");
    assert!(!directory.0.join("gw1.state").exists());
}

#[test]
fn what_somebody_else_changed_since_is_left_alone() {
    let directory = Directory::new("else");
    let setting = directory.setting("rp_filter", "1");
    let (mut record, _) = Record::take(&directory.0, "gw1").unwrap();
    record.change(&(setting.clone(), "0".into())).unwrap();
    fs::write(&setting, "2\n").unwrap();
    assert!(record.end().is_empty());
    assert_eq!(sysctl(&setting).unwrap(), "2");
}

#[test]
fn forwarding_that_others_enabled_meanwhile_stays() {
    let directory = Directory::new("others-forward");
    let sysctl_of = |path: &str, value: &str| {
        let path = directory.0.join("net").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("{value}\n")).unwrap();
        path
    };
    for (ip_forward, enabled_meanwhile) in [("0", true), ("0", false), ("1", false)] {
        let all4 = sysctl_of("ipv4/conf/all/forwarding", ip_forward);
        let eth4 = sysctl_of("ipv4/conf/eth0/forwarding", "0");
        let accept_ra = sysctl_of("ipv6/conf/eth0/accept_ra", "1");
        let all6 = sysctl_of("ipv6/conf/all/forwarding", "0");
        let filter = sysctl_of("ipv4/conf/all/rp_filter", "1");
        let (mut record, _) = Record::take(&directory.0, "gw1").unwrap();
        for (path, value) in [(&eth4, "1"), (&accept_ra, "2"), (&all6, "1"), (&filter, "0")] {
            record.change(&(path.clone(), value.into())).unwrap();
        }
        if enabled_meanwhile {
            fs::write(&all4, "1\n").unwrap();
        }
        let left = record.end();
        let now = [&eth4, &accept_ra, &all6, &filter].map(|path| sysctl(path).unwrap());
        let case = format!("{ip_forward}, {enabled_meanwhile}: {left}");
        match (ip_forward, enabled_meanwhile) {
            (_, true) => {
                assert_eq!(now, ["1", "2", "1", "1"], "{case}");
                assert_eq!((left.settings, left.forwarding), (1, 3), "{case}");
            }
            // Also on a router that did not forward on eth0.
            (_, false) => assert_eq!(now, ["0", "1", "0", "1"], "{case}"),
        }
    }
}

#[test]
fn a_second_gateway_of_the_name_is_refused_while_the_first_runs() {
    let directory = Directory::new("second");
    let (record, _) = Record::take(&directory.0, "gw1").unwrap();
    let error = Record::take(&directory.0, "gw1").unwrap_err();
    assert!(error.to_string().contains(&format!("(process {})", std::process::id())), "{error}");
    record.end();
    assert!(Record::take(&directory.0, "gw1").is_ok());
}

#[test]
fn a_sudden_end_is_cleared_up_by_the_next_start() {
    let directory = Directory::new("sudden");
    let setting = directory.setting("forwarding", "0");
    let socket = directory.0.join("gw1.sock");
    drop(UnixListener::bind(&socket).unwrap());
    let (mut record, _) = Record::take(&directory.0, "gw1").unwrap();
    record.socket(&socket).unwrap();
    record.change(&(setting.clone(), "1".into())).unwrap();
    drop(record); // the lock goes, the record stays: as after SIGKILL
    let (record, left) = Record::take(&directory.0, "gw1").unwrap();
    assert_eq!(left, Leftovers { settings: 1, socket: true, ..Leftovers::default() });
    assert_eq!(sysctl(&setting).unwrap(), "0");
    assert!(!socket.exists());
    record.end();
}

#[test]
fn what_is_in_the_place_of_a_socket_and_another_ones_socket_stay() {
    let directory = Directory::new("place");
    let place = directory.0.join("gw1.sock");
    fs::write(&place, "precious").unwrap();
    let (mut record, _) = Record::take(&directory.0, "gw1").unwrap();
    record.socket(&place).unwrap();
    assert!(record.end().is_empty());
    assert_eq!(fs::read_to_string(&place).unwrap(), "precious");

    fs::remove_file(&place).unwrap();
    let (mut record, _) = Record::take(&directory.0, "gw1").unwrap();
    record.socket(&place).unwrap();
    drop(record); // as after SIGKILL
    let _listener = UnixListener::bind(&place).unwrap();
    assert!(Record::take(&directory.0, "gw1").unwrap().1.is_empty());
    assert!(place.exists());
}

#[test]
fn cleanup_leaves_running_gateways_alone() {
    let directory = Directory::new("cleanup");
    let (running, _) = Record::take(&directory.0, "gw1").unwrap();
    drop(Record::take(&directory.0, "gw2").unwrap());
    let done = leftovers(&directory.0);
    assert_eq!(done.len(), 2);
    assert!(matches!(done[0], (_, Err(RecordError::Taken { .. }))));
    assert!(done[1].1.is_ok());
    assert!(!directory.0.join("gw2.state").exists());
    running.end();
}

#[test]
fn cleanup_drops_what_holds_no_settings_of_a_namespace_that_is_there() {
    let directory = Directory::new("elsewhere");
    let setting = directory.setting("forwarding", "1");
    let socket = directory.0.join("gw1.sock");
    drop(UnixListener::bind(&socket).unwrap());
    let changed =
        Changed { path: setting.clone(), before: "0".into(), value: "1".into(), made: 1, ip_forward: None };
    let left = |name: &str, namespace: &str, settings: &[&Changed]| {
        let contents = Contents {
            process: 1,
            namespace: namespace.into(),
            socket: Some(socket.clone()),
            settings: settings.iter().copied().cloned().collect(),
            ..Contents::default()
        };
        let text = serde_json::to_string(&contents).unwrap();
        fs::write(directory.0.join(format!("{name}.state")), text).unwrap();
    };
    left("gone", "net:[1]", &[&changed]);
    left("nothing", "net:[2]", &[]);
    left("there", "net:[2]", &[&changed]);
    let done = leftovers_among(&directory.0, |namespace| namespace == "net:[2]");
    let names: Vec<&str> = done.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["gone", "nothing", "there"]);
    assert!(matches!(done[0].1, Ok(Leftovers { settings: 0, socket: true, .. })));
    assert!(done[1].1.is_ok());
    assert!(matches!(done[2].1, Err(RecordError::Elsewhere(_))));
    assert_eq!(states(&directory.0), [directory.0.join("there.state")]);
    assert_eq!(sysctl(&setting).unwrap(), "1");
}

#[test]
fn settings_stay_while_another_gateway_runs_here_and_the_last_puts_all_back() {
    let directory = Directory::new("others");
    let (one, two) = (directory.setting("forwarding", "0"), directory.setting("rp_filter", "1"));
    let (mut first, _) = Record::take(&directory.0, "gw1").unwrap();
    first.change(&(one.clone(), "1".into())).unwrap();
    first.change(&(two.clone(), "0".into())).unwrap();
    let (mut second, _) = Record::take(&directory.0, "gw2").unwrap();
    second.change(&(two.clone(), "2".into())).unwrap();
    assert_eq!(first.end(), Leftovers { staying: 2, ..Leftovers::default() });
    assert_eq!((sysctl(&one).unwrap(), sysctl(&two).unwrap()), ("1".into(), "2".into()));
    assert_eq!(second.end(), Leftovers { settings: 3, ..Leftovers::default() });
    assert_eq!((sysctl(&one).unwrap(), sysctl(&two).unwrap()), ("0".into(), "1".into()));
    assert!(states(&directory.0).is_empty());
}

#[test]
fn settings_are_put_back_by_the_time_they_were_made_not_by_name() {
    let directory = Directory::new("time");
    let setting = directory.setting("rp_filter", "0");
    let (mut late, _) = Record::take(&directory.0, "gw1").unwrap();
    let (mut early, _) = Record::take(&directory.0, "gw2").unwrap();
    early.change(&(setting.clone(), "1".into())).unwrap();
    late.change(&(setting.clone(), "2".into())).unwrap();
    late.end();
    early.end();
    assert_eq!(sysctl(&setting).unwrap(), "0");
}

#[test]
fn a_gateway_that_comes_again_takes_its_settings_over() {
    let directory = Directory::new("again");
    let setting = directory.setting("forwarding", "0");
    let (mut first, _) = Record::take(&directory.0, "gw1").unwrap();
    first.change(&(setting.clone(), "1".into())).unwrap();
    let (second, _) = Record::take(&directory.0, "gw2").unwrap();
    drop(first); // as after SIGKILL
    let (first, left) = Record::take(&directory.0, "gw1").unwrap();
    assert!(left.is_empty() && left.staying == 1);
    assert!(second.end().is_empty());
    assert_eq!(sysctl(&setting).unwrap(), "1");
    assert_eq!(first.end(), Leftovers { settings: 1, ..Leftovers::default() });
    assert_eq!(sysctl(&setting).unwrap(), "0");
}

#[test]
fn the_last_leaves_the_rest_of_a_killed_one_to_its_next_start() {
    let directory = Directory::new("rest");
    let setting = directory.setting("forwarding", "0");
    let socket = directory.0.join("gw1.sock");
    drop(UnixListener::bind(&socket).unwrap());
    let (mut killed, _) = Record::take(&directory.0, "gw1").unwrap();
    killed.socket(&socket).unwrap();
    killed.change(&(setting.clone(), "1".into())).unwrap();
    let (last, _) = Record::take(&directory.0, "gw2").unwrap();
    drop(killed);
    assert_eq!(last.end().settings, 1);
    assert_eq!(sysctl(&setting).unwrap(), "0");
    assert!(socket.exists());
    let (again, left) = Record::take(&directory.0, "gw1").unwrap();
    assert_eq!(left, Leftovers { socket: true, ..Leftovers::default() });
    again.end();
}

#[test]
fn cleanup_puts_settings_back_only_when_no_gateway_runs_here() {
    let directory = Directory::new("cleanup-others");
    let setting = directory.setting("forwarding", "0");
    let (mut first, _) = Record::take(&directory.0, "gw1").unwrap();
    first.change(&(setting.clone(), "1".into())).unwrap();
    let (second, _) = Record::take(&directory.0, "gw2").unwrap();
    first.end();
    let done = leftovers(&directory.0);
    assert_eq!(*done[0].1.as_ref().unwrap(), Leftovers { staying: 1, ..Leftovers::default() });
    assert_eq!(sysctl(&setting).unwrap(), "1");
    drop(second); // as after SIGKILL
    let done = leftovers(&directory.0);
    assert_eq!(done[0].1.as_ref().unwrap().settings, 1);
    assert_eq!(sysctl(&setting).unwrap(), "0");
    assert!(states(&directory.0).is_empty());
}

#[test]
fn of_many_that_end_together_one_is_the_last() {
    for round in 0..20 {
        let directory = Directory::new(&format!("at-once-{round}"));
        let setting = directory.setting("forwarding", "0");
        let mut records = Vec::new();
        for number in 0..4 {
            let (mut record, _) = Record::take(&directory.0, &format!("gw{number}")).unwrap();
            record.change(&(setting.clone(), "1".into())).unwrap();
            records.push(record);
        }
        std::thread::scope(|scope| {
            for record in records {
                scope.spawn(|| record.end());
            }
        });
        assert_eq!(sysctl(&setting).unwrap(), "0");
        assert!(states(&directory.0).is_empty());
    }
}

#[test]
fn a_damaged_record_is_named_and_kept() {
    for text in
        ["{\"process\": 1, \"na", "{\"process\":1,\"namespace\":\"\",\"socket\":null,\"settings\":[]}x"]
    {
        let directory = Directory::new("damaged");
        let path = directory.0.join("gw1.state");
        fs::write(&path, text).unwrap();
        for error in [
            Record::take(&directory.0, "gw1").unwrap_err(),
            clear_up(&directory.0, "gw1").unwrap_err(),
            leftovers(&directory.0).remove(0).1.unwrap_err(),
        ] {
            let error = error.to_string();
            assert!(error.starts_with(&format!("{} is damaged (", path.display())), "{error}");
            assert!(error.ends_with(&format!("(mv {0} {0}.damaged)", path.display())), "{error}");
        }
        // Its settings cannot be known; those of others are restored all the same.
        let setting = directory.setting("forwarding", "0");
        let (mut record, _) = Record::take(&directory.0, "gw2").unwrap();
        record.change(&(setting.clone(), "1".into())).unwrap();
        assert_eq!(record.end().settings, 1);
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        // A file that was just created has nothing in it.
        fs::write(&path, "").unwrap();
        assert!(Record::take(&directory.0, "gw1").unwrap().1.is_empty());
    }
}

#[test]
fn a_record_is_replaced_whole_and_stays_locked() {
    let directory = Directory::new("whole");
    let path = directory.0.join("gw1.state");
    let (mut record, _) = Record::take(&directory.0, "gw1").unwrap();
    let number = || fs::metadata(&path).unwrap().ino();
    let (before, open) = (number(), fs::read(&path).unwrap());
    let reader = fs::File::open(&path).unwrap();
    record.socket(&directory.0.join("gw1.sock")).unwrap();
    assert_ne!(number(), before, "another file has the name");
    let mut seen = Vec::new();
    (&reader).read_to_end(&mut seen).unwrap();
    assert_eq!(seen, open, "who reads sees the one or the other");
    assert!(matches!(Record::take(&directory.0, "gw1"), Err(RecordError::Taken { .. })));
    assert_eq!(states(&directory.0), std::slice::from_ref(&path), "nothing else is left in the directory");
    record.end();
    assert!(!path.exists() && !path.with_extension("new").exists());
}
