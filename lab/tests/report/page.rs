//! The page as text: it is one file, and it has what a reader looks for.

use crate::sample::{chapters, page, results};
use sixway_lab::analyse::{Direction, compare};
use sixway_lab::report::{csv, data, html, markdown};
use sixway_lab::results::{COMMANDS, Sample, Store, Unit, Value, commands, read};
use sixway_lab::{device, experiment};

#[test]
fn the_page_has_no_external_link() {
    let page = page();
    for word in ["http:", "https:", "<script", "<link", "@import", "src=", "<iframe", "<object"] {
        assert!(!page.contains(word), "{word}");
    }
    let references = page.match_indices("url(").filter(|(at, _)| !page[*at..].starts_with("url(#hatch-"));
    assert_eq!(references.count(), 0, "only patterns of the page itself");
}

#[test]
fn what_programs_said_is_not_taken_for_html() {
    let page = page();
    assert!(page.contains("&lt;no such file&gt; &amp; nothing else"));
    assert!(!page.contains("<no such"));
    for tag in ["section", "table", "svg", "details"] {
        let open = page.matches(&format!("<{tag}")).count();
        assert_eq!(open, page.matches(&format!("</{tag}>")).count(), "<{tag}>");
    }
}

#[test]
fn each_experiment_has_question_network_figures_tables_and_a_way_to_repeat_it() {
    let page = page();
    let sections: Vec<&str> = page.split("<section").skip(1).collect();
    assert_eq!(sections.len(), 2);
    for section in sections {
        for part in ["class=\"lead\"", "The network", "<figcaption>", "<table>", "sixway-lab run "] {
            assert!(section.contains(part), "{part}");
        }
    }
    for text in ["holds", "does not hold", "not shown here", "3.52", "FreeBSD does not run here", "CC0-1.0"] {
        assert!(page.contains(text), "{text}");
    }
}

/// Times of an emulated machine are 20 times those of this one: together they would be taken for a comparison.
#[test]
fn an_emulated_machine_is_in_no_table_or_figure_with_a_real_one() {
    let text = markdown(&results(), &chapters());
    let absolute =
        text.split("### One server\n").nth(1).and_then(|rest| rest.split("###").next()).unwrap_or("");
    assert!(absolute.contains("| kernel |") && !absolute.contains("guest"), "{absolute}");
    let ratios = text.split("### One server: ratios to plain forwarding\n").nth(1).unwrap_or("");
    assert!(ratios.contains("| guest-sit | guest-plain |"), "{ratios}");
    assert!(ratios.contains("| sixway-with-a-long-name | kernel |"), "{ratios}");
    assert!(page().contains("Response time, ms (uml)"));
}

#[test]
fn rates_of_devices_that_were_not_at_their_limit_are_not_divided() {
    let text = markdown(&results(), &chapters());
    let ratios = text.split("ratios to plain forwarding\n").nth(1).unwrap_or("");
    let row = |hosts: u32| {
        let begins = format!("| {hosts} | sixway-with-a-long-name | kernel |");
        ratios.lines().find(|line| line.starts_with(&begins)).unwrap_or("")
    };
    let ratio_of_requests = |hosts| row(hosts).split(" | ").nth(4).map(str::to_owned);
    assert_eq!(ratio_of_requests(2).as_deref(), Some("–"), "not loaded: {}", row(2));
    assert!(ratio_of_requests(4).is_some_and(|it| it.starts_with("0.49")), "{}", row(4));
    assert_eq!(ratio_of_requests(10).as_deref(), Some("–"), "tester-bound: {}", row(10));
}

/// Neither is a figure about the device to compare with.
#[test]
fn uncertain_memory_is_marked_and_a_missing_one_has_a_reason() {
    let mut results = results();
    for sample in results.samples.iter_mut().filter(|sample| sample.cell.series == "load") {
        if sample.cell.device == "kernel" {
            sample.values.remove("memory");
            sample.not_measurable.insert("memory".to_owned(), "it has none, <really>".to_owned());
        } else if let Some(memory) = sample.values.get_mut("memory") {
            memory.uncertain = Some("entries × octets".to_owned());
        }
    }
    let text = markdown(&results, &chapters());
    let table = text.split("### One server\n").nth(1).and_then(|rest| rest.split("###").next()).unwrap_or("");
    assert!(table.contains("≈ memory of sixway-with-a-long-name: entries × octets."), "{table}");
    assert!(table.contains("No memory of kernel: it has none, &lt;really>."), "{table}");
    assert!(table.contains("| ≈ 21,900 | ") && table.contains("| not measurable | "), "{table}");
    let csv = csv(&results);
    let uncertain = csv.lines().filter(|line| line.ends_with(",entries × octets")).count();
    // A row of 15 has failed.
    assert_eq!(uncertain, 3 * 5 * 3 - 1);
    let data = data(&results, &chapters());
    let groups = data["experiments"][0]["groups"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of = |device: &str| {
        groups.iter().find(|group| group["device"] == device).unwrap_or(&serde_json::Value::Null)
    };
    assert_eq!(of("guest-sit")["values"]["memory"]["uncertain"], "entries × octets");
    assert_eq!(of("guest-sit")["values"]["memory"]["to_plain"]["ratio"], serde_json::Value::Null);
    assert_eq!(of("kernel")["not_measurable"]["memory"], "it has none, <really>");
}

#[test]
fn csv_has_a_line_for_each_value_and_json_the_ratios() {
    let (results, chapters) = (results(), chapters());
    let csv = csv(&results);
    let columns = csv.lines().next().map_or(0, |line| line.split(',').count());
    let values: usize = results.samples.iter().map(|sample| sample.values.len()).sum();
    assert_eq!(csv.lines().count(), 1 + values + 1, "values, a head, and one failure");
    for line in csv.lines().filter(|line| !line.contains('"')) {
        assert_eq!(line.split(',').count(), columns, "{line}");
    }
    let data = data(&results, &chapters);
    let groups = data["experiments"][0]["groups"].as_array().map_or(0, Vec::len);
    assert_eq!(groups, 20, "five loads of four devices");
    let ratio = data["experiments"][0]["groups"]
        .as_array()
        .and_then(|groups| groups.iter().find(|group| group["key"] == "made-up-2026/load/guest-sit/hosts=4"));
    let ratio = ratio.map(|group| group["values"]["response"]["to_plain"]["ratio"].clone());
    assert!(
        ratio.as_ref().and_then(serde_json::Value::as_f64).is_some_and(|it| (it - 1.5).abs() < 0.1),
        "{ratio:?}"
    );
}

/// A published folder has no samples: its report is the same.
#[test]
fn a_report_is_made_again_from_what_is_published() {
    let mut first = results();
    let sample = first.samples.iter_mut().find(|it| it.cell.series == "load" && it.failed.is_none());
    if let Some(sample) = sample {
        sample.not_measurable.insert("memory".to_owned(), "it has none, \"really\"".to_owned());
        sample.values.remove("memory");
    }
    let folder = std::env::temp_dir().join(format!("sixway-lab-published-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    let header = serde_json::to_string(&first.header).expect("a header is JSON");
    std::fs::write(folder.join("run.json"), header).expect("a file in a temporary folder");
    let without = read(&folder).expect_err("there are no values").to_string();
    assert!(without.contains("has neither samples.jsonl nor data.csv"), "{without}");
    std::fs::write(folder.join("data.csv"), csv(&first)).expect("a file in a temporary folder");
    // A cell that failed has none.
    first
        .samples
        .iter_mut()
        .filter(|sample| sample.failed.is_some())
        .for_each(|sample| sample.commands.clear());
    // Two configurations of a device, of which one has two rounds.
    let kernel = |sample: &&mut Sample| sample.cell.device == "kernel" && sample.failed.is_none();
    for (number, sample) in first.samples.iter_mut().filter(kernel).enumerate() {
        sample.commands = vec![format!("sysctl <{}>", number.min(1))];
    }
    let all = commands(&first.samples);
    assert!(all.len() >= 2, "{all:?}");
    std::fs::write(folder.join(COMMANDS), serde_json::to_string(&all).expect("they are JSON"))
        .expect("a file in a temporary folder");
    let again = read(&folder).expect("run.json and data.csv are enough");
    let resumed = Store::open(&folder, &first.header.asked, || Ok(first.header.clone()));
    let resumed = resumed.err().map(|failure| failure.to_string()).unwrap_or_default();
    std::fs::remove_dir_all(&folder).expect("a temporary folder is removed");
    assert!(resumed.contains("they cannot be continued"), "{resumed}");
    assert_eq!(again.samples.len(), first.samples.len());
    for (one, other) in first.samples.iter().zip(&again.samples) {
        let without = |sample: &Sample| Sample { commands: Vec::new(), ..sample.clone() };
        assert_eq!(without(one), without(other));
    }
    assert_eq!(commands(&again.samples), commands(&first.samples));
    assert_eq!(html(&again, &chapters()), html(&first, &chapters()), "a report of the table is the same");
    assert_eq!(csv(&again), csv(&first));
    assert_eq!(markdown(&again, &chapters()), markdown(&first, &chapters()));
    let same = compare(&first, &again);
    assert!(same.unmatched.is_empty() && !same.changes.is_empty(), "{same:?}");
    assert!(same.changes.iter().all(|it| it.direction != Direction::Worse), "{same:?}");
}

#[test]
fn a_table_has_deviations_durations_and_counts() {
    let mut results = results();
    let loads = results.samples.iter_mut().filter(|it| it.cell.series == "load" && it.failed.is_none());
    for (number, sample) in loads.enumerate() {
        if let Some(cpu) = sample.values.get_mut("cpu") {
            (cpu.n, cpu.sd) = (12, Some(0.056));
        }
        let duration = 300.0 + number as f64;
        sample.values.insert("duration".to_owned(), Value::one(duration, Unit::Milliseconds));
        sample.values.insert("sent".to_owned(), Value::one(14_080.0, Unit::Count));
    }
    let text = markdown(&results, &chapters());
    let table = |title: &str| {
        let rest = text.split(&format!("### {title}\n")).nth(1).unwrap_or("");
        rest.split("###").next().unwrap_or("").to_owned()
    };
    let load = table("One server");
    assert!(load.contains("| CPU, % | CPU sd, % |"), "{load}");
    assert!(load.contains(" | 5.60 | "), "{load}");
    assert!(load.contains("The load of a measurement took 0.30 to 0.36 s; 14,080 were sent."), "{load}");
    let loads = results.samples.iter_mut().filter(|it| it.cell.series == "load" && it.failed.is_none());
    for (number, sample) in loads.enumerate() {
        let twice = if number == 0 { 58.0 } else { 0.0 };
        sample.values.insert("duplicated".to_owned(), Value::one(twice, Unit::Count));
        sample.values.insert("reordered".to_owned(), Value::one(7.0, Unit::Count));
    }
    let disordered = markdown(&results, &chapters());
    assert!(disordered.contains("14,080 were sent, 58 of them came twice and 7 out of order at most."));
    let kinds = table("Kinds of tunnels");
    assert!(kinds.contains("A measurement took 3.00 s with all that was built for it."), "{kinds}");
}

/// RFC 8219 §12: the median of twenty repetitions, with the 1st and 99th percentiles.
#[test]
fn many_rounds_have_a_median_and_percentiles() {
    let of = |rounds: u32| {
        let mut results = results();
        let kept = |sample: &Sample| {
            (sample.cell.series.as_str(), sample.cell.device.as_str()) == ("load", "kernel")
                && sample.cell.at("hosts") == 4.0
                && sample.cell.repeat == 0
        };
        results.samples.retain(kept);
        let first = results.samples[0].clone();
        results.samples = (0..rounds)
            .map(|repeat| {
                let mut sample = first.clone();
                sample.cell.repeat = repeat;
                let response = f64::from(repeat + 1);
                sample.values.insert("response".to_owned(), Value::one(response, Unit::Milliseconds));
                sample
            })
            .collect();
        markdown(&results, &chapters())
    };
    let text = of(20);
    let table = text.split("### One server: medians\n").nth(1).expect("a table of medians");
    assert!(table.contains("10.5 (1.00 to 20.0)"), "{table}");
    assert!(!of(19).contains(": medians"));
}

#[test]
fn each_experiment_says_what_its_figures_and_tables_show() {
    for experiment in experiment::all() {
        let about = experiment.about();
        assert!(!experiment.figures().is_empty(), "{} has no figure", about.name);
        for figure in experiment.figures() {
            let known = about.tables.iter().any(|table| {
                table.series == figure.series
                    && table.columns.iter().any(|column| column.value == figure.value)
            });
            assert!(known, "{}: no table has {} of {}", about.name, figure.value, figure.series);
        }
        if let Some(drawing) = experiment.drawing() {
            let nodes = drawing.nodes.len();
            assert!(
                drawing.links.iter().all(|wire| wire.ends.0 < nodes && wire.ends.1 < nodes),
                "{}",
                about.name
            );
        }
    }
    assert!(
        device::all().iter().any(|device| device.is_plain()),
        "there is plain forwarding to compare with"
    );
}
