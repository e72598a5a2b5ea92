//! Threads that process untrusted packets and queries give up privileges that they do not need: capabilities, and system calls that execute
//! programs or access other parts of the system.
//!
//! It binds the calling thread and the threads that it starts. A thread that was taken over still shares its memory with the others: this
//! makes such a takeover harder to use, but is not a boundary.

use caps::{CapSet, Capability, CapsHashSet};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch, apply_filter};
use std::collections::BTreeMap;
use std::io;

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    /// Packets, by descriptors that are open already.
    Packets,
    /// Queries, by sockets and files that it opens.
    Queries,
    /// The same, and it binds addresses with ports below 1024 when they appear.
    Listening,
}

/// System calls that no such thread makes.
const NEVER: &[libc::c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_fork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_vfork,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_open_by_handle_at,
    libc::SYS_perf_event_open,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_userfaultfd,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_capset,
    libc::SYS_kill,
];

/// Those that a thread of packets does not make either.
const NOT_FOR_PACKETS: &[libc::c_long] = &[
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
    libc::SYS_unlinkat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    libc::SYS_renameat2,
    libc::SYS_symlinkat,
];

/// Gives up what the duty does not need, permanently.
///
/// # Errors
/// The kernel refused; some may have been given up.
pub fn give_up(duty: Duty) -> io::Result<()> {
    let kept: CapsHashSet = match duty {
        Duty::Listening => [Capability::CAP_NET_BIND_SERVICE].into_iter().collect(),
        Duty::Packets | Duty::Queries => CapsHashSet::new(),
    };
    let held = caps::read(None, CapSet::Permitted).map_err(io::Error::other)?;
    let kept: CapsHashSet = kept.intersection(&held).copied().collect();
    for set in [CapSet::Effective, CapSet::Permitted] {
        caps::set(None, set, &kept).map_err(io::Error::other)?;
    }
    caps::clear(None, CapSet::Inheritable).map_err(io::Error::other)?;
    // It sets no_new_privs first.
    apply_filter(&filter(duty)?).map_err(io::Error::other)
}

fn filter(duty: Duty) -> io::Result<BpfProgram> {
    let more: &[libc::c_long] = if duty == Duty::Packets { NOT_FOR_PACKETS } else { &[] };
    let denied: BTreeMap<i64, Vec<_>> = NEVER.iter().chain(more).map(|call| (*call, Vec::new())).collect();
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(io::Error::other)?;
    let refusal = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let filter = SeccompFilter::new(denied, SeccompAction::Allow, refusal, arch).map_err(io::Error::other)?;
    filter.try_into().map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread of its own, whose state is read from /proc.
    fn after(duty: Duty, work: impl FnOnce() + Send) -> String {
        let in_thread = || {
            give_up(duty).unwrap();
            work();
            std::fs::read_to_string("/proc/thread-self/status").unwrap()
        };
        std::thread::scope(|scope| scope.spawn(in_thread).join().unwrap())
    }

    fn line<'t>(status: &'t str, name: &str) -> &'t str {
        status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim()
    }

    #[test]
    fn a_thread_of_packets_has_no_capability_and_cannot_become_another_program() {
        let status = after(Duty::Packets, || {
            let ran = std::process::Command::new("/bin/true").status();
            assert_eq!(ran.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
            let opened = std::net::UdpSocket::bind("127.0.0.1:0");
            assert_eq!(opened.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        });
        for set in ["CapEff:", "CapPrm:", "CapInh:"] {
            assert_eq!(line(&status, set), "0000000000000000", "{set}");
        }
        assert_eq!((line(&status, "NoNewPrivs:"), line(&status, "Seccomp:")), ("1", "2"));
        // The others keep what they have.
        assert!(std::process::Command::new("/bin/true").status().unwrap().success());
    }

    #[test]
    fn a_thread_of_queries_opens_sockets_and_no_programs() {
        after(Duty::Queries, || {
            assert!(std::net::UdpSocket::bind("127.0.0.1:0").is_ok());
            assert!(std::process::Command::new("/bin/true").status().is_err());
        });
    }
}
