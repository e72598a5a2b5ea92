//! Worlds that are ready side by side, each in a network namespace of its own, for a thread that goes from one to another.

use super::generator::Input;
use super::judge::Harness;
use super::rig::Hook;
use super::scene::Scene;
use super::world::World;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// A world at a hook, and its namespace.
pub struct Room {
    namespace: File,
    bench: Harness<'static>,
}

impl Room {
    /// Takes the calling thread into a new namespace and sets the world up there, for as long as the process lives. Where the kernel does not let us,
    /// the test is ignored.
    pub fn new(world: World, hook: Hook) -> Self {
        // SAFETY: unshare touches no memory; a network namespace may differ from thread to thread.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            sixway_trial::ignore(format!("needs root (unshare: {})", io::Error::last_os_error()));
        }
        super::namespace::ip("link set lo up");
        let world: &'static World = Box::leak(Box::new(world));
        let scene: &'static Scene = Box::leak(Box::new(Scene::new(world.routes(), &world.local)));
        let bench = Harness::new(world, scene, hook);
        let namespace = File::open("/proc/thread-self/ns/net").unwrap();
        Self { namespace, bench }
    }

    /// Tries a frame there, and panics if something is wrong. Whether it was forwarded.
    pub fn tries(&mut self, input: &Input) -> bool {
        // SAFETY: setns touches no memory.
        assert_eq!(unsafe { libc::setns(self.namespace.as_raw_fd(), libc::CLONE_NEWNET) }, 0);
        self.bench.renew();
        // What should become of it is asked in any case: a fuzzer is guided by the way there.
        self.bench.expects(input);
        match self.bench.check(input) {
            Ok(times) => times > 0,
            Err(why) => panic!("{}: {why}", self.bench.name()),
        }
    }
}
