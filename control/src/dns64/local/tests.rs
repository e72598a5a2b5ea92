//! Questions that no upstream sees.
