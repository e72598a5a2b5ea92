//! Rules against queries.
