//! Which IPv6 address stands for which IPv4 address: by algorithm (RFC 6052) and by table (RFC 7757).
