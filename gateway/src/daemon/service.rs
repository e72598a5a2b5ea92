//! Notifications of the service manager (sd_notify(3)). Without one, there are none.

use sd_notify::NotifyState;

/// Sends it; a failure is only logged.
fn tell(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::debug!("the service manager was not told: {error}");
    }
}

/// The gateway is ready, in this process.
pub(super) fn ready() {
    tell(&[NotifyState::Ready, NotifyState::MainPid(std::process::id()), NotifyState::Watchdog]);
}

/// The gateway reads its configuration again, and will be ready again.
pub(super) fn reloading() {
    tell(&[NotifyState::Reloading]);
}

/// The gateway ends.
pub(super) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// All workers answer.
pub(super) fn alive() {
    tell(&[NotifyState::Watchdog]);
}
