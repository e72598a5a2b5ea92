//! Samples from `data.csv`, the table that is published with a report: all values, without commands and without the tester's cost.

use super::cell::Cell;
use super::sample::{Sample, Value, Verdict};
use std::collections::BTreeMap;

/// The samples of a table, in its order.
///
/// # Errors
/// It is not such a table: the line and what is wrong.
pub(super) fn samples_of(text: &str) -> Result<Vec<Sample>, String> {
    let mut records = records(text).into_iter();
    let heads = records.next().ok_or("it is empty")?;
    let column = |name: &str| heads.iter().position(|head| head == name);
    let axes = match (column("realm"), column("round")) {
        (Some(realm), Some(round)) if realm < round => realm + 1..round,
        _ => return Err("it has no columns realm and round".to_owned()),
    };
    let mut all: Vec<Sample> = Vec::new();
    for (number, record) in records.enumerate() {
        let field =
            |name: &str| column(name).and_then(|at| record.get(at)).map(String::as_str).unwrap_or_default();
        let row = Row { field: &field };
        let wrong = |what: String| format!("record {}: {what}", number + 2);
        let mut point = BTreeMap::new();
        for at in axes.clone().filter(|at| record.get(*at).is_some_and(|text| !text.is_empty())) {
            point.insert(heads[at].clone(), number_of(&record[at]).map_err(wrong)?);
        }
        let cell = Cell {
            experiment: field("experiment").to_owned(),
            series: field("series").to_owned(),
            device: field("device").to_owned(),
            point,
            repeat: field("round").parse().map_err(|_| wrong("it has no round".to_owned()))?,
        };
        if all.last().is_none_or(|last| last.cell != cell) {
            all.push(row.sample(cell).map_err(wrong)?);
        }
        if let Some(sample) = all.last_mut() {
            row.add_to(sample).map_err(wrong)?;
        }
    }
    Ok(all)
}

/// A record, by the names of its fields.
struct Row<'a> {
    field: &'a dyn Fn(&str) -> &'a str,
}

impl Row<'_> {
    fn text(&self, name: &str) -> Option<String> {
        let text = (self.field)(name);
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn number(&self, name: &str) -> Result<Option<f64>, String> {
        self.text(name).map(|text| number_of(&text)).transpose()
    }

    /// What all records of a sample have in common.
    fn sample(&self, cell: Cell) -> Result<Sample, String> {
        let why = self.text("why");
        let verdict = verdict_of((self.field)("verdict"), why.as_deref().unwrap_or(TESTER))?;
        Ok(Sample {
            started: self.text("started").unwrap_or_default(),
            took: self.number("took")?.unwrap_or(0.0),
            control: self.number("control")?,
            failed: self.text("failed"),
            verdict,
            ..Sample::failed(cell, "")
        })
    }

    fn add_to(&self, sample: &mut Sample) -> Result<(), String> {
        let Some(name) = self.text("value_name") else { return Ok(()) };
        if let Some(why) = self.text("not_measurable") {
            sample.not_measurable.insert(name, why);
            return Ok(());
        }
        let unit = (self.field)("unit");
        let unit = serde_json::from_value(unit.into()).map_err(|_| format!("there is no unit {unit:?}"))?;
        let mut quantiles = [0.0; 7];
        let mut has_quantiles = true;
        let names = ["min", "q50", "q90", "q99", "q99_9", "q99_99", "max"];
        for (quantile, name) in quantiles.iter_mut().zip(names) {
            let figure = self.number(name)?;
            has_quantiles &= figure.is_some();
            *quantile = figure.unwrap_or_default();
        }
        let value = Value {
            value: self.number("value")?.ok_or_else(|| format!("{name} has no value"))?,
            unit,
            n: (self.field)("n").parse().map_err(|_| format!("{name} has no number of observations"))?,
            sd: self.number("sd")?,
            quantiles: has_quantiles.then_some(quantiles),
            uncertain: self.text("uncertain"),
            verdict: self.text("own_verdict").map(|text| verdict_of(&text, TESTER)).transpose()?,
        };
        sample.values.insert(name, value);
        Ok(())
    }
}

/// Why the tester was at its limit, where the table does not say.
const TESTER: &str = "the tester was at its limit";

fn verdict_of(text: &str, why: &str) -> Result<Verdict, String> {
    Verdict::read(text, why).ok_or_else(|| format!("there is no verdict {text:?}"))
}

fn number_of(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| format!("{text:?} is not a number"))
}

/// Records as RFC 4180 writes them: a field in quotes may have commas, line ends and doubled quotes.
fn records(text: &str) -> Vec<Vec<String>> {
    let (mut all, mut record, mut field) = (Vec::new(), Vec::new(), String::new());
    let (mut is_quoted, mut octets) = (false, text.chars().peekable());
    while let Some(character) = octets.next() {
        match (character, is_quoted) {
            ('"', true) if octets.peek() == Some(&'"') => field.extend(octets.next()),
            ('"', _) => is_quoted = !is_quoted,
            (',', false) => record.push(std::mem::take(&mut field)),
            ('\r', false) => {}
            ('\n', false) => {
                record.push(std::mem::take(&mut field));
                all.push(std::mem::take(&mut record));
            }
            (other, _) => field.push(other),
        }
    }
    // Of a line that was torn off there is no record.
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Unit;

    #[test]
    fn fields_in_quotes_have_commas_quotes_and_line_ends() {
        let text = "a,b\r\n\"x, \"\"y\"\"\",\"two\nlines\"\n,\ntorn";
        assert_eq!(records(text), [vec!["a", "b"], vec!["x, \"y\"", "two\nlines"], vec!["", ""]]);
    }

    /// As the first versions of the lab wrote it.
    #[test]
    fn a_table_without_the_newer_columns_is_read() {
        let text = "experiment,series,device,realm,hosts,octets,round,verdict,value_name,value,unit,n,sd,min,q50,q90,q99,q99_9,q99_99,max,started,failed\n\
                    e,s,d,here,4,,1,tester-bound,response,0.5,milliseconds,3,0.1,1,2,3,4,5,6,7,2026-11-27T03:26:54Z,\n\
                    e,s,d,here,4,,1,tester-bound,requests,1500,per-second,1,,,,,,,,,2026-11-27T03:26:54Z,\n\
                    e,s,d,here,8,,1,failed,,,,,,,,,,,,,2026-11-27T03:26:54Z,it broke\n";
        let samples = samples_of(text).unwrap();
        let [one, other] = &samples[..] else { panic!("{samples:?}") };
        assert_eq!(
            (one.cell.key().as_str(), other.cell.key().as_str()),
            ("e/s/d/hosts=4#1", "e/s/d/hosts=8#1")
        );
        assert!(matches!(one.verdict, Verdict::TesterBound { .. }) && one.failed.is_none(), "{one:?}");
        assert_eq!(one.values["response"].quantiles, Some([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]));
        assert_eq!(one.values["requests"], Value::one(1_500.0, Unit::PerSecond));
        assert_eq!((other.failed.as_deref(), other.values.len()), (Some("it broke"), 0));
    }

    #[test]
    fn a_value_of_another_load_has_a_verdict_of_its_own() {
        let text = "experiment,series,device,realm,round,verdict,value_name,value,unit,n,own_verdict\n\
                    e,s,d,here,0,device-bound,throughput,9,bits-per-second,1,\n\
                    e,s,d,here,0,device-bound,native-throughput,3,bits-per-second,1,tester-bound\n";
        let samples = samples_of(text).unwrap();
        let own = |name: &str| samples[0].values[name].verdict.as_ref().map(Verdict::text);
        assert_eq!((own("throughput"), own("native-throughput")), (None, Some("tester-bound")));
        assert!(
            samples_of(&text.replace("tester-bound", "fine")).unwrap_err().contains("no verdict \"fine\"")
        );
    }

    #[test]
    fn what_is_no_such_table_is_said() {
        let head = "experiment,series,device,realm,round,verdict,value_name,value,unit,n\n";
        for (text, what) in [
            (String::new(), "it is empty"),
            ("a,b\n".to_owned(), "no columns realm and round"),
            (format!("{head}e,s,d,here,x,failed,,,,\n"), "record 2: it has no round"),
            (format!("{head}e,s,d,here,0,fine,,,,\n"), "record 2: there is no verdict \"fine\""),
            (
                format!("{head}e,s,d,here,0,not loaded,v,1,furlongs,1\n"),
                "record 2: there is no unit \"furlongs\"",
            ),
            (format!("{head}e,s,d,here,0,not loaded,v,?,count,1\n"), "record 2: \"?\" is not a number"),
            (format!("{head}e,s,d,here,0,not loaded,v,NaN,count,1\n"), "record 2: \"NaN\" is not a number"),
            (format!("{head}e,s,d,here,0,not loaded,v,inf,count,1\n"), "record 2: \"inf\" is not a number"),
        ] {
            let said = samples_of(&text).unwrap_err();
            assert!(said.contains(what), "{said}");
        }
    }
}
