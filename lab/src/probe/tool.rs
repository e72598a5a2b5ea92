//! The papers' own tools, and the reason if one cannot run here.

use crate::programs;

/// A tool of a paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// iputils' ping: relay-2013, nat64-2014, gateway-2012.
    Ping = 1,
    /// D-ITG: tunnel-2012.
    Ditg,
    /// MGEN: gateway-2012's background.
    Mgen,
    /// SIPp, in place of gateway-2012's Linphone.
    Sipp,
    /// curl, from nginx.
    Curl,
    /// wget, from nginx: nat64-2014.
    Wget,
    /// iperf3: mechanisms-2006.
    Iperf,
    /// OpenVPN: nat64-2014.
    Openvpn,
}

impl Tool {
    /// All of them.
    pub const ALL: [Self; 8] =
        [Self::Ping, Self::Ditg, Self::Mgen, Self::Sipp, Self::Curl, Self::Wget, Self::Iperf, Self::Openvpn];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ping => "ping",
            Self::Ditg => "D-ITG",
            Self::Mgen => "MGEN",
            Self::Sipp => "SIPp",
            Self::Curl => "curl",
            Self::Wget => "wget",
            Self::Iperf => "iperf3",
            Self::Openvpn => "OpenVPN",
        }
    }

    /// Its programs.
    pub const fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Ping => &["ping"],
            Self::Ditg => &["ITGSend", "ITGRecv", "ITGDec"],
            Self::Mgen => &["mgen"],
            Self::Sipp => &["sipp"],
            Self::Curl => &["curl", "nginx"],
            Self::Wget => &["wget", "nginx"],
            Self::Iperf => &["iperf3"],
            Self::Openvpn => &["openvpn"],
        }
    }

    /// Why it cannot run here, if it cannot.
    pub fn cannot_run(self) -> Option<String> {
        let missing = |program: &&'static str| programs::require(program).err();
        self.programs().iter().find_map(missing).map(|failure| failure.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::PROGRAMS;

    #[test]
    fn each_program_of_a_tool_has_its_package() {
        for tool in Tool::ALL {
            for program in tool.programs() {
                assert!(PROGRAMS.iter().any(|(name, _)| name == program), "{} needs {program}", tool.name());
            }
        }
    }
}
