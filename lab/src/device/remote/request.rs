//! A remote device as it is written on the command line.

use super::interfaces::Interface;
use super::recipe::{Recipe, Transport};
use crate::failure::{Failure, Result};

/// A remote device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its name in results.
    pub name: String,
    /// What runs on it.
    pub recipe: Recipe,
    /// Interfaces of this machine that lead to its inside and outside interfaces.
    pub here: [Interface; 2],
    /// What it calls its own.
    pub there: [String; 2],
}

const FORM: &str = "NAME=ssh:USER@HOST,recipe=FILE,inside=IF,outside=IF,inside-there=IF,outside-there=IF, \
                    or script:FILE in place of ssh and recipe";

/// How to get to another machine, and the interfaces with these names, of an option's value in this form.
pub(super) fn read<const N: usize>(
    (option, text, form): (&str, &str, &str),
    names: [&str; N],
) -> Result<(String, Recipe, [String; N])> {
    let wrong = |what: &str| Failure::Unexpected(format!("{option} {text}: {what}; it is written {form}"));
    let (name, rest) = text.split_once('=').ok_or_else(|| wrong("there is no name"))?;
    if !is_name(name) {
        return Err(wrong("a name has letters a to z, digits, hyphens and underscores only"));
    }
    let mut parts = rest.split(',');
    let transport = parts.next().unwrap_or_default();
    let (mut file, mut ends) = (None, [const { None::<String> }; N]);
    for part in parts {
        let (key, value) = part.split_once('=').ok_or_else(|| wrong("a part has no value"))?;
        match names.iter().position(|end| *end == key) {
            Some(at) => ends[at] = Some(value.to_owned()),
            None if key == "recipe" => file = Some(value.to_owned()),
            None => return Err(wrong(&format!("{key} is unknown"))),
        }
    }
    let (transport, file) = match transport.split_once(':') {
        Some(("script", file)) => (Transport::Local, file.to_owned()),
        Some(("ssh", host)) if host.is_empty() || host.starts_with('-') => {
            return Err(wrong("the host has no name, or begins with a hyphen"));
        }
        Some(("ssh", host)) => {
            (Transport::Ssh(host.to_owned()), file.ok_or_else(|| wrong("there is no recipe"))?)
        }
        _ => return Err(wrong("it begins with neither ssh nor script")),
    };
    if let Some(at) = ends.iter().position(Option::is_none) {
        return Err(wrong(&format!("there is no {}", names[at])));
    }
    let recipe = Recipe { transport, file: file.into() };
    Ok((name.to_owned(), recipe, ends.map(Option::unwrap_or_default)))
}

/// Whether a name fits into keys of cells, names of files and command lines.
fn is_name(text: &str) -> bool {
    let fits = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || "_-".contains(it);
    !text.is_empty() && !text.starts_with('-') && text.chars().all(fits)
}

impl Request {
    /// Reads it.
    ///
    /// # Errors
    /// It is not written as it should be.
    pub fn parse(text: &str) -> Result<Self> {
        let names = ["inside", "outside", "inside-there", "outside-there"];
        let (name, recipe, [inside, outside, inside_there, outside_there]) =
            read(("--remote", text, FORM), names)?;
        let here = [Interface::parse(&inside), Interface::parse(&outside)];
        Ok(Self { name, recipe, here, there: [inside_there, outside_there] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remote_device_is_read_and_what_is_missing_is_named() {
        let text = "bsd=ssh:root@192.0.2.9,recipe=stf.sh,inside=eth1,outside=eth2,inside-there=em0,outside-there=em1";
        let request = Request::parse(text).unwrap();
        assert_eq!((request.name.as_str(), request.there[1].as_str()), ("bsd", "em1"));
        assert_eq!(request.recipe.transport, Transport::Ssh("root@192.0.2.9".to_owned()));
        assert_eq!(request.here[0], Interface::parse("eth1"));
        for (text, what) in [
            ("bsd", "no name"),
            ("bsd=telnet:x", "neither ssh nor script"),
            ("bsd=ssh:x", "no recipe"),
            ("bsd=script:x,inside=a,outside=b,inside-there=c", "no outside-there"),
            ("bsd=script:x,colour=a", "colour is unknown"),
            ("a/../b=script:x", "a name has letters"),
            ("=script:x", "a name has letters"),
            ("-x=script:x", "a name has letters"),
            ("bsd=ssh:-oProxyCommand=x,recipe=x", "begins with a hyphen"),
        ] {
            assert!(Request::parse(text).unwrap_err().to_string().contains(what), "{text}");
        }
    }
}
