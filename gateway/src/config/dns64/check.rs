//! What is told of a DNS64 beside the other sections.
