//! A gateway that has no descriptor left. It is alone in its process: other tests need theirs.

use nix::sys::resource::{Resource, setrlimit};
use sixway::config::Surroundings;

#[test]
fn addresses_stay_as_they_were_where_the_kernel_does_not_say() {
    let before = sixway::host::surroundings();
    assert_ne!(before, Surroundings::default(), "this host has an address");
    setrlimit(Resource::RLIMIT_NOFILE, 0, 0).unwrap();
    assert_eq!(sixway::host::surroundings_now(before.clone()), before);
}
