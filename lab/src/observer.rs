//! One observer in each thread learns which networks begin and end there, and when a wait is given up.

use std::cell::RefCell;
use std::rc::Rc;

/// What an observer learns.
pub trait Observer {
    /// A network has these namespaces, which have no links yet.
    fn begins(&self, network: &str, namespaces: Vec<String>);

    /// A network is about to end; its namespaces still exist.
    fn ends(&self, network: &str);

    /// Something did not happen in time.
    fn timed_out(&self);
}

thread_local! {
    static OBSERVER: RefCell<Option<Rc<dyn Observer>>> = const { RefCell::new(None) };
}

/// An observer at work. When this is dropped, the previous one is at work again.
pub struct Observing(Option<Rc<dyn Observer>>);

/// Makes this the thread's observer.
pub fn observe(observer: Rc<dyn Observer>) -> Observing {
    Observing(OBSERVER.replace(Some(observer)))
}

impl Drop for Observing {
    fn drop(&mut self) {
        OBSERVER.set(self.0.take());
    }
}

/// Calls the thread's observer, if it has one.
pub fn tell(what: impl FnOnce(&dyn Observer)) {
    // A thread that ends has no observer.
    let observer = OBSERVER.try_with(|it| it.borrow().clone()).ok().flatten();
    if let Some(observer) = observer {
        what(&*observer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrupt;
    use std::cell::Cell;
    use std::time::Duration;

    #[derive(Default)]
    struct Counting(Cell<u32>);

    impl Observer for Counting {
        fn begins(&self, _: &str, _: Vec<String>) {}

        fn ends(&self, _: &str) {}

        fn timed_out(&self) {
            self.0.set(self.0.get() + 1);
        }
    }

    #[test]
    fn a_wait_that_is_given_up_is_observed_in_its_thread_only() {
        let counting = Rc::new(Counting::default());
        let give_up = || interrupt::wait_until(Duration::ZERO, "nothing", || Ok(false)).unwrap_err();
        let observing = observe(counting.clone());
        give_up();
        std::thread::scope(|scope| scope.spawn(|| drop(give_up())).join().unwrap());
        drop(observing);
        give_up();
        assert_eq!(counting.0.get(), 1);
    }
}
