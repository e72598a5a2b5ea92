//! The impairments of packets.

use clap::Args;
use std::time::Duration;

/// Impairments of packets, in both directions. Probabilities are from 0 to 1.
#[derive(Args, Clone, Copy, Debug, Default, PartialEq)]
pub struct Impairment {
    /// Probability that a packet is lost
    #[arg(long, default_value_t = 0.0)]
    pub loss: f64,
    /// Probability that a packet is duplicated
    #[arg(long, default_value_t = 0.0)]
    pub duplicate: f64,
    /// Probability that a bit of a packet is inverted
    #[arg(long, default_value_t = 0.0)]
    pub corrupt: f64,
    /// Probability that a packet waits until three later ones have passed
    #[arg(long, default_value_t = 0.0)]
    pub reorder: f64,
    /// Mean time that packets are delayed, in milliseconds
    #[arg(long, default_value_t = 0.0)]
    pub delay: f64,
    /// Standard deviation of that time (normally distributed, but not below zero), in milliseconds
    #[arg(long, default_value_t = 0.0)]
    pub jitter: f64,
    /// Seed of the random numbers
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

impl Impairment {
    /// As words of a command line.
    pub fn arguments(&self) -> Vec<String> {
        let Self { loss, duplicate, corrupt, reorder, delay, jitter, seed } = self;
        vec![
            format!("--loss={loss}"),
            format!("--duplicate={duplicate}"),
            format!("--corrupt={corrupt}"),
            format!("--reorder={reorder}"),
            format!("--delay={delay}"),
            format!("--jitter={jitter}"),
            format!("--seed={seed}"),
        ]
    }

    /// The mean delay.
    pub fn mean(&self) -> Duration {
        Duration::from_secs_f64(self.delay.max(0.0) / 1e3)
    }
}
