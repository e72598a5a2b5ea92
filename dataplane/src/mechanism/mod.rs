//! One file or folder for each mechanism: thin, an address policy and the verbs it is composed of.

pub mod siit;
