//! Values that are a word of a closed list.

/// A word of a closed list, as the configuration writes it.
pub trait Word: Copy + 'static {
    /// Every word with its meaning, in the schema's order.
    const WORDS: &'static [(&'static str, Self)];

    /// The word, as the configuration writes it.
    fn as_str(self) -> &'static str
    where
        Self: PartialEq,
    {
        Self::WORDS.iter().find(|(_, value)| *value == self).map_or("", |(word, _)| word)
    }
}

/// Writes the word of a value; for types of other crates.
pub(crate) fn serialize<T: Word + PartialEq, S: serde::Serializer>(
    value: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(value.as_str())
}

/// A closed list of words, read and written as in the configuration.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$word_doc])* $variant,)+
        }

        impl $name {
            /// The word, as the configuration writes it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl $crate::word::Word for $name {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$variant)),+];
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}
pub(crate) use words;

/// The words for the values of the data plane's own type.
macro_rules! words_of {
    ($type:ty { $($variant:ident = $word:literal,)+ }) => {
        impl $crate::word::Word for $type {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$variant)),+];
        }
    };
}
pub(crate) use words_of;
