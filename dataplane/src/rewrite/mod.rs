//! What is done to a packet once it is decided, and what the gateway says itself.

// empty
