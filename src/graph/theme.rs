//! Themes: the sections of graphite-web's example of `graphTemplates.conf`.

use super::Color;

/// Colours of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Theme {
    pub name: &'static str,
    pub background: &'static str,
    pub foreground: &'static str,
    pub major: &'static str,
    pub minor: &'static str,
    /// Comma list, for series without a colour of their own, in turn.
    pub lines: &'static str,
}

const DEFAULT: Theme = Theme {
    name: "default",
    background: "white",
    foreground: "black",
    major: "rose",
    minor: "grey",
    lines: "blue,green,red,purple,brown,yellow,aqua,grey,magenta,pink,gold,rose",
};

const SOLARIZED: &str = "268bd2aa,859900aa,dc322faa,d33682aa,db4b16aa,b58900aa,2aa198aa,6c71c4aa";

const fn dark(name: &'static str, lines: &'static str) -> Theme {
    Theme { name, background: "black", foreground: "white", major: "white", minor: "grey", lines }
}

const fn lines(name: &'static str, lines: &'static str) -> Theme {
    Theme { name, lines, ..DEFAULT }
}

const THEMES: &[Theme] = &[
    DEFAULT,
    Theme {
        name: "solarized-light",
        background: "#fdf6e3",
        foreground: "#657b83",
        major: "#073642",
        minor: "#586e75",
        lines: SOLARIZED,
    },
    Theme {
        name: "solarized-dark",
        background: "#002b36",
        foreground: "#839496",
        major: "#fdf6e3",
        minor: "#eee8d5",
        lines: SOLARIZED,
    },
    dark("classic", DEFAULT.lines),
    dark("noc", "blue,green,red,yellow,purple,brown,aqua,grey,magenta,pink,gold,rose"),
    Theme { name: "summary", background: "black", lines: "6666ff,66ff66,ff6666", ..DEFAULT },
    Theme { name: "alphas", major: "grey", minor: "rose", lines: "00ff00aa,ff000077,00337799", ..DEFAULT },
    lines("grafana", "7eb26d,eab839,6ed0e0,ef843c,e24d42,1f78c1,ba43a9,705da0,508642,cca300,447ebc"),
    lines("ocean1", "f7fcf0,e0f3db,ccebc5,a8ddb5,7bccc4,4eb3d3,2b8cbe,0868ac,084081"),
    lines("ocean2", "084081,0868ac,2b8cbe,4eb3d3,7bccc4,a8ddb5,ccebc5,e0f3db,f7fcf0"),
    lines("forest1", "f7fcf5,e5f5e0,c7e9c0,a1d99b,74c476,41ab5d,238b45,005a32"),
    lines("forest2", "005a32,238b45,41ab5d,74c476,a1d99b,c7e9c0,e5f5e0,f7fcf5"),
    lines("sunset1", "fff5eb,fee6ce,fdd0a2,fdae6b,fd8d3c,f16913,d94801,8c2d04"),
    lines("sunset2", "8c2d04,d94801,f16913,fd8d3c,fdae6b,fdd0a2,fee6ce,fff5eb"),
    lines("moonlight1", "fcfbfd,efedf5,dadaeb,bcbddc,9e9ac8,807dba,6a51a3,4a1486"),
    lines("moonlight2", "4a1486,6a51a3,807dba,9e9ac8,bcbddc,dadaeb,efedf5,fcfbfd"),
    lines("lava1", "fff5f0,fee0d2,fcbba1,fc9272,fb6a4a,ef3b2c,cb181d,99000d"),
    lines("lava2", "99000d,cb181d,ef3b2c,fb6a4a,fc9272,fcbba1,fee0d2,fff5f0"),
];

impl Theme {
    /// By name; any other name is the default.
    pub fn named(name: &str) -> &'static Self {
        THEMES.iter().find(|theme| theme.name == name).unwrap_or(&THEMES[0])
    }

    /// One of its colours as a colour.
    pub fn color(text: &str) -> Color {
        Color::parse(text).unwrap_or(Color::BLACK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_colour_is_one() {
        for theme in THEMES {
            let list = theme.lines.split(',');
            for color in list.chain([theme.background, theme.foreground, theme.major, theme.minor]) {
                assert!(Color::parse(color).is_some(), "{}: {color}", theme.name);
            }
        }
        assert_eq!(Theme::named("noc").background, "black");
        assert_eq!(Theme::named("no such").name, "default");
    }
}
