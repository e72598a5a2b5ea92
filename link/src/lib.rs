//! Links.
#![warn(missing_docs)]
