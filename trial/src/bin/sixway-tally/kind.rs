//! What is counted apart: the kind of a test is in the name of its binary, or of its module where a binary holds several kinds.

/// A kind of test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Unit,
    Scenario,
    Property,
    ModelAndReplay,
    Law,
    Interop,
}

impl Kind {
    pub const ALL: [Self; 6] =
        [Self::Unit, Self::Scenario, Self::Property, Self::ModelAndReplay, Self::Law, Self::Interop];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Unit => "unit",
            Self::Scenario => "scenario",
            Self::Property => "property",
            Self::ModelAndReplay => "model and replay",
            Self::Law => "law",
            Self::Interop => "interop",
        }
    }

    /// The name of the file or folder of tests says their kind.
    fn of(name: &str) -> Self {
        match name {
            "interop" => Self::Interop,
            "laws" | "layout" | "instructions" => Self::Law,
            "differential" => Self::ModelAndReplay,
            "properties" => Self::Property,
            _ if name.contains("replay") || name.ends_with("model") => Self::ModelAndReplay,
            _ if name.ends_with("_page") || name.ends_with("_pages") => Self::Law,
            _ => Self::Scenario,
        }
    }
}

/// The kind of the tests of a binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kinds {
    /// All of one.
    One(Kind),
    /// Each of that which its module's name says: `tests/main.rs`.
    ByModule,
}

impl Kinds {
    /// Those of the binary that cargo says it runs, if it says so in this line.
    pub fn announced(line: &str) -> Option<Self> {
        if line.starts_with("Doc-tests ") {
            return Some(Self::One(Kind::Unit));
        }
        let said = line.strip_prefix("Running ")?;
        let Some((_, path)) = said.split_once("tests/") else { return Some(Self::One(Kind::Unit)) };
        Some(match path.split([' ', '/', '.']).next().unwrap_or_default() {
            "main" => Self::ByModule,
            name => Self::One(Kind::of(name)),
        })
    }

    /// The kind of the test of this name.
    pub fn of(self, test: &str) -> Kind {
        match self {
            Self::One(kind) => kind,
            Self::ByModule => Kind::of(test.split("::").next().unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binaries_are_of_the_kind_that_their_names_say() {
        for (said, kind) in [
            ("Running unittests src/main.rs (target/debug/deps/x-1)", Kind::Unit),
            ("Running tests/keeper.rs (target/debug/deps/keeper-1)", Kind::Scenario),
            ("Running tests/properties/main.rs (target/debug/deps/properties-1)", Kind::Property),
            ("Running tests/laws/main.rs (target/debug/deps/laws-1)", Kind::Law),
            ("Running tests/instructions.rs (target/debug/deps/x-1)", Kind::Law),
            ("Running tests/interop/main.rs (target/debug/deps/x-1)", Kind::Interop),
            ("Doc-tests sixway_wire", Kind::Unit),
        ] {
            assert_eq!(Kinds::announced(said), Some(Kinds::One(kind)), "{said}");
            assert_eq!(Kinds::One(kind).of("replay::x"), kind, "its modules do not matter");
        }
        assert_eq!(Kinds::announced("test running ... ok"), None);
    }

    #[test]
    fn tests_of_a_binary_of_many_kinds_are_of_the_kind_that_their_modules_say() {
        let all =
            Kinds::announced("Running tests/main.rs (target/debug/deps/all-1)").expect("it is announced");
        for (test, kind) in [
            ("rfc6146::udp_crosses", Kind::Scenario),
            ("life::fast_path::it_goes_on", Kind::Scenario),
            ("properties::tunnels::there_and_back", Kind::Property),
            ("replay::any_octets", Kind::ModelAndReplay),
            ("replay_tunnel_packet::any_octets", Kind::ModelAndReplay),
            ("nat64_model::both_agree", Kind::ModelAndReplay),
            ("differential::states::one", Kind::ModelAndReplay),
            ("layout::structures_agree", Kind::Law),
            ("conformance_pages::every_row", Kind::Law),
            ("operations_page::it_is_made", Kind::Law),
        ] {
            assert_eq!(all.of(test), kind, "{test}");
        }
    }
}
