//! Fragments (RFC 791 §3.2, RFC 8200 §4.5): put together where a NAT needs the whole, cut where a link is too small.
