//! Colours of series. A series also has a marker of its own, and published ones are hollow and dashed, so that nothing depends on colour.

/// Series that have a colour of their own; further ones begin again with dashes.
pub(super) const COLOURS: usize = 6;

/// On white paper and bright screens.
const LIGHT: [&str; COLOURS] = ["#0b62c4", "#e0301e", "#0a9b72", "#8a4f86", "#6f9438", "#2b2f36"];
/// On dark screens.
const DARK: [&str; COLOURS] = ["#6a9dff", "#ee6a35", "#2fe39b", "#b27a94", "#ffe04a", "#d6f1f4"];
/// What they are drawn on.
const PAPER: (&str, &str) = ("#ffffff", "#16181d");

/// The variables of a style sheet: those of bright surfaces, and those of dark ones.
pub(super) fn variables() -> (String, String) {
    let list = |colours: [&str; COLOURS], paper: &str| {
        let series: Vec<_> =
            colours.iter().enumerate().map(|(at, colour)| format!("--c{at}:{colour};")).collect();
        format!("--paper:{paper};{}", series.concat())
    };
    (list(LIGHT, PAPER.0), list(DARK, PAPER.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Colour = [f64; 3];

    /// What sees an sRGB colour, as a matrix on linear light: everybody, and without one kind of cone (Machado, Oliveira, Fernandes 2009).
    const EYES: [(&str, [Colour; 3]); 4] = [
        ("all cones", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        (
            "deuteranopia",
            [
                [0.367_322, 0.860_646, -0.227_968],
                [0.280_085, 0.672_501, 0.047_413],
                [-0.011_820, 0.042_940, 0.968_881],
            ],
        ),
        (
            "protanopia",
            [
                [0.152_286, 1.052_583, -0.204_868],
                [0.114_503, 0.786_281, 0.099_216],
                [-0.003_882, -0.048_116, 1.051_998],
            ],
        ),
        (
            "tritanopia",
            [
                [1.255_528, -0.076_749, -0.178_779],
                [-0.078_411, 0.930_809, 0.147_602],
                [0.004_733, 0.691_367, 0.303_900],
            ],
        ),
    ];

    fn linear(hex: &str) -> Colour {
        [1, 3, 5].map(|at| {
            let value = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        })
    }

    fn times(matrix: &[Colour; 3], colour: Colour) -> Colour {
        let row = |row: &Colour| row.iter().zip(colour).map(|(a, b)| a * b).sum::<f64>();
        [row(&matrix[0]), row(&matrix[1]), row(&matrix[2])]
    }

    /// CIELAB of linear light.
    fn lab(colour: Colour) -> Colour {
        let [red, green, blue] = colour.map(|value| value.clamp(0.0, 1.0));
        let f = |value: f64| if value > 0.008_856 { value.cbrt() } else { 7.787 * value + 16.0 / 116.0 };
        let x = f((0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505);
        let y = f(0.2126 * red + 0.7152 * green + 0.0722 * blue);
        let z = f((0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089);
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    fn distance(a: Colour, b: Colour) -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
    }

    fn luminance(hex: &str) -> f64 {
        let [red, green, blue] = linear(hex);
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    #[test]
    fn colours_differ_for_the_colour_blind() {
        for colours in [LIGHT, DARK] {
            for (eye, matrix) in EYES {
                for (at, a) in colours.iter().enumerate() {
                    for b in &colours[at + 1..] {
                        let [a_seen, b_seen] = [a, b].map(|hex| lab(times(&matrix, linear(hex))));
                        let apart = distance(a_seen, b_seen);
                        assert!(apart > 15.0, "{a} and {b} with {eye}: {apart:.1}");
                    }
                }
            }
        }
    }

    /// WCAG 2.1, 1.4.11: graphics have a contrast of 3 to what is next to them.
    #[test]
    fn colours_have_contrast_to_the_paper() {
        for (colours, paper) in [(LIGHT, PAPER.0), (DARK, PAPER.1)] {
            for colour in colours {
                let (a, b) = (luminance(colour), luminance(paper));
                let contrast = (a.max(b) + 0.05) / (a.min(b) + 0.05);
                assert!(contrast >= 3.0, "{colour} on {paper}: {contrast:.1}");
            }
        }
    }
}
