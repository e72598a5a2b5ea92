//! All devices. A new one is a line here.

use super::contract::Device;
use super::kernel::KernelForwarding;
use super::sixway::SixwayOnTun;

/// All devices, in the order of lists and tables.
pub fn all() -> [&'static dyn Device; 2] {
    [&SixwayOnTun, &KernelForwarding]
}

/// The device of this name.
pub fn find(name: &str) -> Option<&'static dyn Device> {
    all().into_iter().find(|device| device.card().name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_device_has_a_name_of_its_own_and_a_task() {
        let names: BTreeSet<_> = all().iter().map(|device| device.card().name).collect();
        assert_eq!(names.len(), all().len());
        assert!(all().iter().all(|device| !device.tasks().is_empty()));
    }
}
