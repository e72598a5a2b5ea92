//! The origin of a binding: a packet from inside, or the administrator.

/// The origin of a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum BindingKind {
    /// The slot holds none.
    Free,
    /// A packet from inside; it ends with the last session that a packet from inside created or answered.
    Dynamic,
    /// The administrator.
    Static,
}
