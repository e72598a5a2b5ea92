//! A process that has no descriptor left. It is alone in its process: other tests need theirs.

use sixway_link::UdpExchange;
use std::net::{Ipv4Addr, SocketAddr};

#[test]
fn an_exchange_without_a_descriptor_says_so_in_the_kernels_own_word() {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the struct is valid for the call, which reads it alone.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const none) }, 0);
    let refused = UdpExchange::open(SocketAddr::from((Ipv4Addr::LOCALHOST, 53))).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EMFILE), "{refused}");
}
