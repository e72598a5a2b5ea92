//! Any text is a hosts file; what it has is within its bounds, and each of its names is answered.

use sixway_control::dns64::Hosts;

pub fn run(octets: &[u8]) {
    let text = String::from_utf8_lossy(octets);
    let (hosts, faults) = Hosts::read(&text);
    assert!(faults.len() <= 10 && faults.iter().all(|fault| fault.line > 0 && !fault.what.is_empty()));
    assert!(faults.windows(2).all(|pair| pair[0].line <= pair[1].line));
    let (again, same) = Hosts::read(&text);
    assert!(hosts == again && faults == same);
    assert!(hosts.names().all(|name| sixway_control::dns64::name::measure(name) == Some(name.len())));
}
