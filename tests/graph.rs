//! Pictures: sizes, colours of pixels that can be computed by hand, texts of an SVG, and what a server says of them.

mod support;

use actix_web::test::TestRequest;
use plumbago::clock::TimeZone;
use plumbago::encode::ImageFormat;
use plumbago::graph::{self, Options};
use plumbago::series::{Series, Step};
use serde_json::Value;
use support::server::Server;

/// 2023-11-14 22:00:00 UTC.
const T: i64 = 1_699_999_200;

const BLUE: [u8; 3] = [100, 100, 255];
const GREEN: [u8; 3] = [0, 200, 0];
const WHITE: [u8; 3] = [255, 255, 255];

/// A minute a point, the first at [`T`].
fn series(name: &str, values: &[f64]) -> Series {
    Series::new(name, T, Step::new(60).expect("positive"), values.to_vec())
}

fn constant(name: &str, value: f64) -> Series {
    series(name, &[value; 60])
}

fn draw(series: &[Series], params: &[(&str, &str)], format: ImageFormat) -> Vec<u8> {
    let options = Options::read(params.iter().copied()).expect("good parameters");
    graph::render(series, &options, &TimeZone::utc(), format).expect("a picture")
}

fn svg(series: &[Series], params: &[(&str, &str)]) -> String {
    String::from_utf8(draw(series, params, ImageFormat::Svg)).expect("UTF-8")
}

/// The texts of an SVG, in order.
fn texts(svg: &str) -> Vec<String> {
    let texts = svg.split("<text").skip(1).map(|part| {
        let from = part.find('>').expect("an end of the tag") + 1;
        part[from..part.find("</text>").expect("an end")].to_owned()
    });
    texts.collect()
}

/// What an SVG says to scripts.
fn metadata(svg: &str) -> Value {
    let from = svg.find("metadata = ").expect("metadata") + "metadata = ".len();
    let to = svg.find("\n]]>").expect("the end of metadata");
    serde_json::from_str(&svg[from..to]).expect("JSON")
}

struct Pixels {
    width: usize,
    height: usize,
    samples: usize,
    data: Vec<u8>,
}

impl Pixels {
    fn of(png: &[u8]) -> Self {
        let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().expect("a PNG");
        let mut data = vec![0; reader.output_buffer_size().expect("a size")];
        let info = reader.next_frame(&mut data).expect("a frame");
        Self { width: info.width as usize, height: info.height as usize, samples: info.color_type.samples(), data }
    }

    fn drawn(series: &[Series], params: &[(&str, &str)]) -> Self {
        Self::of(&draw(series, params, ImageFormat::Png))
    }

    fn at(&self, x: usize, y: usize) -> [u8; 3] {
        let i = (y * self.width + x) * self.samples;
        [self.data[i], self.data[i + 1], self.data[i + 2]]
    }

    fn has(&self, color: [u8; 3]) -> bool {
        self.data.chunks(self.samples).any(|p| p[..3] == color)
    }
}

/// A picture of the graph alone: 101 pixels for 0 to 100.
const ALONE: [(&str, &str); 6] =
    [("graphOnly", "true"), ("width", "200"), ("height", "101"), ("yMin", "0"), ("yMax", "100"), ("lineWidth", "3")];

#[test]
fn formats_and_sizes() {
    let png = draw(&[constant("a", 1.0)], &[("width", "640"), ("height", "123")], ImageFormat::Png);
    assert_eq!(png[..8], *b"\x89PNG\r\n\x1a\n");
    assert_eq!(png[16..24], [0, 0, 2, 128, 0, 0, 0, 123]);
    let plain = Pixels::drawn(&[constant("a", 1.0)], &[]);
    assert_eq!((plain.width, plain.height, plain.at(0, 0)), (330, 250, WHITE));
    let svg = svg(&[constant("a", 1.0)], &[("width", "640"), ("height", "123")]);
    assert!(svg.starts_with("<?xml"));
    assert!(svg.contains("width=\"640px\" height=\"123px\" viewBox=\"0 0 640 123\""));
}

/// 640 x 100 pixels are 480 x 75 points. The table of objects says where each of them is.
#[test]
fn a_pdf_is_well_formed() {
    let pdf = draw(&[constant("a", 1.0)], &[("width", "640"), ("height", "100")], ImageFormat::Pdf);
    let text = String::from_utf8_lossy(&pdf);
    assert!(text.starts_with("%PDF-1.4") && text.ends_with("%%EOF\n"));
    assert!(text.contains("/MediaBox [0 0 480 75]"));
    let find = |what: &[u8]| pdf.windows(what.len()).rposition(|w| w == what).expect("it is there");
    let tail = std::str::from_utf8(&pdf[find(b"startxref\n") + 10..]).expect("text");
    let table: usize = tail.lines().next().and_then(|l| l.parse().ok()).expect("a number");
    assert!(pdf[table..].starts_with(b"xref\n0 5\n"));
    let rows = std::str::from_utf8(&pdf[table..]).expect("text").lines().skip(3).take(4);
    for (i, row) in rows.enumerate() {
        let at: usize = row[..10].parse().expect("a place");
        assert!(pdf[at..].starts_with(format!("{} 0 obj\n", i + 1).as_bytes()), "{row}");
    }
}

/// 50 of 0 to 100 is the middle of 101 rows: row 50, and one row to each side for a width of 3.
#[test]
fn a_constant_is_a_line_at_its_height() {
    let pixels = Pixels::drawn(&[constant("a", 50.0)], &ALONE);
    for x in [10, 100, 180] {
        assert_eq!([49, 50, 51].map(|y| pixels.at(x, y)), [BLUE; 3], "at {x}");
        assert_eq!([0, 46, 54, 100].map(|y| pixels.at(x, y)), [WHITE; 4], "at {x}");
    }
}

/// 20, and 30 on top of it: up to row 80 the one, up to row 50 the other.
#[test]
fn areas_are_stacked() {
    let params = [&ALONE[..], &[("areaMode", "stacked")]].concat();
    let pixels = Pixels::drawn(&[constant("a", 20.0), constant("b", 30.0)], &params);
    assert_eq!([95, 84, 78, 55, 45].map(|y| pixels.at(100, y)), [BLUE, BLUE, GREEN, GREEN, WHITE]);
    // Not stacked, the second is seen only above the first.
    let params = [&ALONE[..], &[("areaMode", "all")]].concat();
    let pixels = Pixels::drawn(&[constant("a", 20.0), constant("b", 30.0)], &params);
    assert_eq!([95, 84, 76, 72, 65].map(|y| pixels.at(100, y)), [BLUE, BLUE, GREEN, GREEN, WHITE]);
    let params = [&ALONE[..], &[("areaMode", "first")]].concat();
    let pixels = Pixels::drawn(&[constant("a", 20.0), constant("b", 30.0)], &params);
    assert_eq!([95, 76, 70].map(|y| pixels.at(100, y)), [BLUE, WHITE, GREEN]);
}

/// 260 to 440, and 3 on top of it: graphite-web's axis begins at 0 because of the 3.
#[test]
fn the_axis_of_a_stack_shows_its_lowest_band() {
    let ramp: Vec<f64> = (0..60).map(|i| 260.0 + 3.0 * f64::from(i)).collect();
    let both = [series("a", &ramp), constant("b", 3.0)];
    assert_eq!(metadata(&svg(&both, &[("areaMode", "stacked")]))["y"]["bottom"], 0.0);
    assert_eq!(metadata(&svg(&both[..1], &[("areaMode", "stacked")]))["y"]["bottom"], 250.0);
}

/// `areaMode=first` means the first that is drawn, and what functions have stacked is drawn first.
#[test]
fn stacked_series_come_before_all_others() {
    let mut stacked = constant("b", 30.0);
    stacked.style_mut().stacked = true;
    let drawn = |mode: &str| {
        let found = metadata(&svg(&[constant("a", 20.0), stacked.clone()], &[("areaMode", mode)]));
        let series = found["series"].as_array().expect("an array").clone();
        let of = |s: &Value| (s["name"].clone(), s["options"]["stacked"] == true, s["data"][0].clone());
        series.iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(drawn("first"), [("b".into(), true, 30.0.into()), ("a".into(), false, 20.0.into())]);
    // The other is put on top of it.
    assert_eq!(drawn("stacked"), [("b".into(), true, 30.0.into()), ("a".into(), true, 50.0.into())]);
}

/// 50 of 100 at the left, and 8 of 10 at the right: of the second area only what is above the first is seen.
#[test]
fn areas_of_two_axes_do_not_cover_each_other() {
    let mut right = constant("b", 8.0);
    right.style_mut().second_y_axis = true;
    let ends = [("yMinLeft", "0"), ("yMaxLeft", "100"), ("yMinRight", "0"), ("yMaxRight", "10"), ("areaMode", "all")];
    let pixels = Pixels::drawn(&[constant("a", 50.0), right], &[&ALONE[..], &ends].concat());
    assert_eq!([95, 55, 45, 25, 15].map(|y| pixels.at(100, y)), [BLUE, BLUE, GREEN, GREEN, WHITE]);
}

/// To graphite-web an `areaAlpha` of 0 is none.
#[test]
fn no_area_is_without_any_colour() {
    for alpha in ["0", "0.0"] {
        let params = [&ALONE[..], &[("areaMode", "all"), ("areaAlpha", alpha)]].concat();
        assert_eq!(Pixels::drawn(&[constant("a", 50.0)], &params).at(100, 80), BLUE);
    }
}

/// A half-transparent blue over white: halfway between the two.
#[test]
fn areas_can_be_transparent() {
    let params = [&ALONE[..], &[("areaMode", "all"), ("areaAlpha", "0.5"), ("lineWidth", "1")]].concat();
    let [r, g, b] = Pixels::drawn(&[constant("a", 50.0)], &params).at(100, 80);
    assert!(r.abs_diff(178) <= 1 && g.abs_diff(178) <= 1 && b == 255, "{r} {g} {b}");
}

/// A gap from the 20th to the 39th of 60 points, of 200 pixels: no line from about 66 (the line goes on for one point)
/// to 132.
#[test]
fn gaps_are_gaps() {
    let mut values = [50.0; 60];
    values[20..40].fill(f64::NAN);
    let gap = series("a", &values);
    let at = |params: &[(&str, &str)]| {
        let pixels = Pixels::drawn(std::slice::from_ref(&gap), &[&ALONE[..], params].concat());
        [30, 100, 180].map(|x| pixels.at(x, 50))
    };
    assert_eq!(at(&[]), [BLUE, WHITE, BLUE]);
    assert_eq!(at(&[("lineMode", "connected")]), [BLUE, BLUE, BLUE]);
    assert_eq!(at(&[("lineMode", "connected"), ("connectedLimit", "5")]), [BLUE, WHITE, BLUE]);
    assert_eq!(at(&[("drawNullAsZero", "true")]), [BLUE, WHITE, BLUE]);
    assert_eq!(at(&[("lineMode", "staircase")]), [BLUE, WHITE, BLUE]);
}

#[test]
fn events_are_upright_lines() {
    let mut events = series("a", &[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
    events.style_mut().draw_as_infinite = true;
    let pixels = Pixels::drawn(&[events], &ALONE);
    // The fourth of seven points is in the middle.
    assert_eq!([2, 50, 98].map(|y| pixels.at(99, y)), [BLUE; 3]);
    assert_eq!(pixels.at(50, 50), WHITE);
}

#[test]
fn colours() {
    let colored = |color: &str| {
        let mut one = constant("a", 50.0);
        one.style_mut().color = Some(color.to_owned());
        Pixels::drawn(&[one], &ALONE).at(100, 50)
    };
    // Digits only are a colour too.
    assert_eq!(colored("808080"), [128, 128, 128]);
    assert_eq!(colored("#f80"), [255, 136, 0]);
    assert_eq!(colored("purple"), [200, 100, 255]);
    let listed = |list| Pixels::drawn(&[constant("a", 50.0)], &[&ALONE[..], &[("colorList", list)]].concat());
    assert_eq!(listed("#ff0000").at(100, 50), [255, 0, 0]);
    assert_eq!(listed("%2300ff00,blue").at(100, 50), [0, 255, 0]);
    let with = |params: &[(&str, &str)]| Pixels::drawn(&[constant("a", 50.0)], params).at(0, 0);
    assert_eq!(with(&[("bgcolor", "%23102030")]), [16, 32, 48]);
    assert_eq!(with(&[("template", "noc")]), [0, 0, 0]);
    assert_eq!(with(&[("template", "no such")]), WHITE);
    let through = Pixels::drawn(&[constant("a", 50.0)], &[("bgcolor", "ffffff00")]);
    assert_eq!((through.samples, through.data[3]), (4, 0));
    let mut bad = constant("a", 1.0);
    bad.style_mut().color = Some("blau".to_owned());
    let error = graph::render(&[bad], &Options::default(), &TimeZone::utc(), ImageFormat::Png).expect_err("no colour");
    assert!(
        error.is_request() && error.to_string().starts_with("color: `blau`, given to `a`, is no colour"),
        "{error}"
    );
}

#[test]
fn texts_are_texts() {
    let svg = svg(
        &[constant("a <b> & \"c\"", 0.0), series("%e2%82%ac", &[5000.0; 60])],
        &[("title", "Two%0Alines"), ("vtitle", "up"), ("width", "500")],
    );
    let texts = texts(&svg);
    for text in ["Two", "lines", "up", "a &lt;b&gt; &amp; &quot;c&quot;", "€", "0", "1.0 k", "5.0 k", "22:10"] {
        assert!(texts.iter().any(|t| t == text), "{text}: {texts:?}");
    }
    for part in ["title", "vtitle", "legend", "axes", "grid", "lines"] {
        assert!(svg.contains(&format!("<g class=\"{part}\">")), "{part}");
    }
    assert_eq!(svg.matches("<g ").count(), svg.matches("</g>").count());
    let data = metadata(&svg);
    assert_eq!(data["x"]["start"], T);
    assert_eq!(data["x"]["end"], T + 59 * 60);
    assert_eq!(data["y"]["labels"][1], "1.0 k");
    assert_eq!(data["series"][0]["name"], "a <b> & \"c\"");
    assert_eq!(data["series"][1]["color"], "#00c800");
    assert!(!svg[svg.find("<script>").expect("a script")..].contains("a <b>"));
}

/// A legend has a place up to ten series, unless something else is asked for.
#[test]
fn legends() {
    let many = |n: usize| (0..n).map(|i| constant(&format!("name{i}"), i as f64)).collect::<Vec<_>>();
    let named =
        |n, params: &[(&str, &str)]| texts(&svg(&many(n), params)).iter().filter(|t| t.contains("name")).count();
    assert_eq!(named(10, &[]), 10);
    assert_eq!(named(11, &[]), 0);
    assert_eq!(named(11, &[("hideLegend", "false"), ("width", "800")]), 11);
    assert_eq!(named(3, &[("hideLegend", "true")]), 0);
    assert_eq!(named(3, &[("graphOnly", "1")]), 0);
    let same = [constant("name", 1.0), constant("name", 2.0), series("name of nothing", &[f64::NAN; 60])];
    let named = |params: &[(&str, &str)]| texts(&svg(&same, params)).iter().filter(|t| t.contains("name")).count();
    assert_eq!(named(&[]), 3);
    assert_eq!(named(&[("uniqueLegend", "true")]), 2);
    assert_eq!(named(&[("hideNullFromLegend", "true")]), 2);
    // Without a margin, the last line is within the picture too: its square of 12 pixels ends there at the latest.
    let edge = svg(&many(3), &[("margin", "0"), ("height", "100"), ("width", "100")]);
    let squares = edge.split("<g class=\"legend\">").nth(1).and_then(|part| part.split("</g>").next()).expect("a part");
    let tops = squares.split("<rect").skip(1).filter_map(|rect| rect.split("y=\"").nth(1)?.split('"').next());
    let lowest = tops.map(|y| y.parse::<f64>().expect("a number")).fold(0.0, f64::max);
    assert!(lowest + 11.0 <= 100.0, "{lowest}");
    // A hundred names leave half of the picture to the graph.
    let crowd = svg(&many(100), &[("hideLegend", "false")]);
    assert!(texts(&crowd).iter().any(|t| t.starts_with("… and ")), "{:?}", texts(&crowd));
    let area = &metadata(&crowd)["area"];
    let height = area["ymax"].as_f64().expect("a number") - area["ymin"].as_f64().expect("a number");
    assert!(height > 60.0, "{height}");
}

/// A picture that is all legend: its graph has one label and not two on top of each other.
#[test]
fn hardly_a_graph() {
    let drawn = svg(&[constant("a", 50.0), constant("b", 70.0)], &[("width", "100"), ("height", "60")]);
    let numbers = texts(&drawn).iter().filter(|t| t.parse::<f64>().is_ok()).count();
    assert_eq!(numbers, 1, "{:?}", texts(&drawn));
}

/// Each axis has the labels that its own series need: 0 to 5 k at the left, 44 to 56 at the right.
#[test]
fn two_axes() {
    let mut right = constant("right", 50.0);
    right.style_mut().second_y_axis = true;
    let both = [series("left", &[0.0, 5000.0, 0.0]), right];
    let texts = texts(&svg(&both, &[("width", "500"), ("vtitleRight", "percent")]));
    for text in ["0", "5.0 k", "44.0", "56.0", "percent"] {
        assert!(texts.iter().any(|t| t == text), "{text}: {texts:?}");
    }
    let svg = svg(&both, &[("rightColor", "ff8800"), ("yMinRight", "0"), ("yMaxRight", "80")]);
    assert!(svg.contains("stroke=\"#ff8800\""));
    assert_eq!(metadata(&svg)["yRight"]["top"], 80.0);
}

#[test]
fn axes_hide() {
    let count = |params: &[(&str, &str)]| texts(&svg(&[constant("a", 50.0)], params)).len();
    let (all, none) = (count(&[]), count(&[("hideAxes", "true")]));
    assert_eq!(none, 1, "the legend stays");
    let (x, y) = (count(&[("hideYAxis", "true")]) - 1, count(&[("hideXAxis", "true")]) - 1);
    assert_eq!(all, 1 + x + y);
    assert!(!svg(&[constant("a", 50.0)], &[("hideGrid", "true")]).contains("class=\"grid\""));
}

/// 42 000 lies between 10 k and 100 k of an axis from 1 to 100 k.
#[test]
fn logarithmic_axes() {
    let svg = svg(&[constant("a", 42_000.0)], &[("logBase", "10"), ("yMin", "1")]);
    let data = metadata(&svg);
    assert_eq!((&data["y"]["bottom"], data["y"]["top"].as_f64()), (&Value::from(1.0), Some(100_000.0)));
    let labels = ["1.0", "10.0", "100.0", "1.0 k", "10.0 k", "100.0 k"];
    assert!(labels.iter().all(|l| texts(&svg).iter().any(|t| t == l)), "{:?}", texts(&svg));
    let number = |name: &str| data["area"][name].as_f64().expect("a number");
    let (top, bottom) = (number("ymin"), number("ymax"));
    let path = svg.split("class=\"lines\"").nth(1).expect("lines");
    let y: f64 = path.split("<path d=\"M").nth(1).and_then(|p| p.split([' ', 'L']).nth(1)?.parse().ok()).expect("a y");
    let row = |power: f64| bottom - power / 5.0 * (bottom - top);
    assert!(y < row(4.0) && y > row(5.0), "{y}, {top} to {bottom}");
}

#[test]
fn labels_have_no_noise() {
    let tenths: Vec<f64> = (0..6).map(|i| f64::from(i) * 0.1).collect();
    let texts = texts(&svg(&[series("a", &tenths)], &[]));
    assert!(texts.iter().any(|t| t == "0.30") && !texts.iter().any(|t| t.contains("0.3000")), "{texts:?}");
}

#[test]
fn nothing_to_show_is_said() {
    for none in [vec![], vec![series("a", &[])]] {
        assert_eq!(texts(&svg(&none, &[])), ["No Data"]);
        let pixels = Pixels::drawn(&none, &[]);
        assert_eq!((pixels.width, pixels.height), (330, 250));
        assert!(pixels.has([200, 0, 50]), "the colour of the text");
    }
    // Absent points are no reason: the time is shown.
    assert!(texts(&svg(&[series("a", &[f64::NAN; 60])], &[])).iter().any(|t| t == "22:20"));
}

/// Whatever the values and options, there is a picture.
#[test]
fn odd_values_are_drawn() {
    const INF: f64 = f64::INFINITY;
    const NAN: f64 = f64::NAN;
    let values: [&[f64]; 10] = [
        &[1.0],
        &[NAN],
        &[INF, -INF, NAN],
        &[0.0, -0.0],
        &[f64::MAX, f64::MIN],
        &[1e-320, 1e-310],
        &[-5.0, -1.0],
        &[1.0, INF, 3.0],
        &[5.0; 500],
        &[NAN, 2.0, NAN],
    ];
    let options: [&[(&str, &str)]; 12] = [
        &[],
        &[("areaMode", "stacked"), ("areaAlpha", "0.5")],
        &[("areaMode", "all"), ("lineMode", "staircase"), ("logBase", "10")],
        &[("lineMode", "connected"), ("drawNullAsZero", "true"), ("logBase", "e")],
        &[("width", "1"), ("height", "1")],
        &[("width", "3"), ("height", "500"), ("title", "a"), ("vtitle", "b")],
        &[("yMin", "1e300"), ("yStep", "1e-300")],
        &[("yMax", "-7"), ("yLimit", "-8"), ("minorY", "100")],
        &[("margin", "5000"), ("fontSize", "100")],
        &[("yAxisSide", "right"), ("xFormat", "%%%q%"), ("minXStep", "1000")],
        &[("lineWidth", "0"), ("yDivisors", "1,100"), ("yUnitSystem", "binary")],
        &[("graphOnly", "true"), ("minXStep", "0")],
    ];
    let mut drawn = 0;
    for list in values {
        let mut second = series("b", list);
        second.style_mut().second_y_axis = true;
        let mut styled = series("c", list);
        styled.style_mut().stacked = true;
        styled.style_mut().dashed = Some(0.001);
        styled.style_mut().line_width = Some(f64::NAN);
        let mut events = series("d", list);
        events.style_mut().draw_as_infinite = true;
        events.style_mut().alpha = Some(-3.0);
        let sets = [vec![series("a", list)], vec![series("a", list), second], vec![styled, events]];
        for set in &sets {
            for params in options {
                // Small, because this is about what happens and not about what it looks like.
                let params = [&[("width", "120"), ("height", "80")], params].concat();
                let format = [ImageFormat::Png, ImageFormat::Svg, ImageFormat::Pdf][drawn % 3];
                assert!(!draw(set, &params, format).is_empty());
                drawn += 1;
            }
            // Else an option would always meet the same format.
            drawn += 1;
        }
    }
}

/// Two equal slices: the first is the right half.
#[test]
fn pies() {
    let halves = [("a".to_owned(), 2.0), ("b".to_owned(), 2.0), ("nothing".to_owned(), 0.0)];
    let options = Options::read([("width", "200"), ("height", "200"), ("hideLegend", "true"), ("valueLabels", "none")])
        .expect("good parameters");
    let pixels = Pixels::of(&graph::pie(&halves, &options, ImageFormat::Png).expect("a picture"));
    assert_eq!([pixels.at(150, 100), pixels.at(50, 100), pixels.at(2, 2)], [BLUE, GREEN, WHITE]);
    let text = |slices: &[(String, f64)], params: &[(&str, &str)]| {
        let options = Options::read(params.iter().copied()).expect("good parameters");
        texts(&String::from_utf8(graph::pie(slices, &options, ImageFormat::Svg).expect("a picture")).expect("UTF-8"))
    };
    assert_eq!(text(&halves, &[("title", "t")]), ["t", "a", "b", "nothing", "50.00%", "50.00%"]);
    assert_eq!(text(&halves, &[("valueLabels", "number"), ("valueLabelsMin", "1")])[3..], ["2", "2"]);
    for none in [vec![], vec![("a".to_owned(), 0.0)], vec![("a".to_owned(), f64::NAN), ("b".to_owned(), -1.0)]] {
        assert_eq!(text(&none, &[]), ["No Data"]);
    }
    assert!(!text(&[("a".to_owned(), f64::MAX), ("b".to_owned(), f64::INFINITY)], &[]).is_empty());
}

const WHEN: &str = "from=1699998600&until=1699999200&now=1699999200";

#[actix_web::test]
async fn a_server_answers_pictures() {
    let server = Server::recorded().await;
    for (query, content_type, magic) in [
        ("target=edge.ramp", "image/png", &b"\x89PNG"[..]),
        ("target=edge.ramp&format=png", "image/png", b"\x89PNG"),
        ("target=edge.ramp&format=bogus", "image/png", b"\x89PNG"),
        ("target=edge.ramp&format=svg", "image/svg+xml", b"<?xml"),
        ("target=edge.ramp&format=pdf", "application/x-pdf", b"%PDF"),
        ("target=edge.ramp&outputFormat=svg", "image/svg+xml", b"<?xml"),
        ("target=edge.ramp&format=svg&jsonp=cb", "text/javascript", b"cb(\"<?xml"),
        ("target=no.such.metric", "image/png", b"\x89PNG"),
        ("target=no.such.metric&format=svg", "image/svg+xml", b"<?xml"),
        ("format=png", "image/png", b"\x89PNG"),
        ("target=edge.ramp&target=slice:5&graphType=pie", "image/png", b"\x89PNG"),
        ("target=edge.ramp&target=slice:5&graphType=pie&format=json&pieMode=minimum", "image/png", b"\x89PNG"),
    ] {
        let answer = server.get(&format!("/render?{query}&{WHEN}")).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(content_type)), "{query}");
        assert!(answer.body.starts_with(magic), "{query}");
        assert_eq!(answer.header("cache-control"), Some("max-age=60"), "{query}");
    }
    let never = server.get(&format!("/render?target=edge.ramp&noCache=1&{WHEN}")).await;
    assert!(never.header("cache-control").is_some_and(|c| c.contains("no-store")));
}

/// Ten points from 1430 to 1439 have the mean 1434.5; the literal stands where it was asked for.
#[actix_web::test]
async fn slices_keep_their_order() {
    let server = Server::recorded().await;
    let query = "target=half:1434.5&target=edge.ramp&target=none:0&graphType=pie&format=svg&valueLabels=number";
    let answer = server.get(&format!("/render?{query}&{WHEN}")).await;
    assert_eq!(texts(answer.text()), ["half", "edge.ramp", "none", "1434", "1434"]);
}

#[actix_web::test]
async fn a_server_refuses_bad_pictures() {
    let server = Server::recorded().await;
    for (query, text) in [
        ("bgcolor=blau", "bgcolor: `blau` is no colour"),
        ("width=100000&height=100000", "width: `100000` is not a whole number from 1 to 16384"),
        ("width=16000&height=16000", "width and height: 16000 x 16000 is more than"),
        ("width=0", "width: `0` is not"),
        ("fontSize=x", "fontSize: `x` is not a number"),
        ("lineMode=x", "lineMode: `x` is none of"),
        ("pieMode=x", "pieMode: `x` is none of"),
        ("graphType=donut", "graphType: `donut` is neither line nor pie"),
        ("target=color(edge.ramp,'blau')", "color: `blau`, given to"),
    ] {
        let answer = server.get(&format!("/render?target=edge.ramp&{query}&{WHEN}")).await;
        assert_eq!((answer.status, answer.header("content-type")), (400, Some("text/plain; charset=utf-8")), "{query}");
        assert!(answer.text().starts_with(text) && answer.text().lines().count() == 1, "{query}: {}", answer.text());
        // Data do not care what a picture would look like.
        if !query.starts_with("graphType") {
            let data = server.get(&format!("/render?target=edge.ramp&{query}&{WHEN}&format=json")).await;
            assert_eq!(data.status, 200, "{query}");
        }
    }
}

#[actix_web::test]
async fn pictures_are_packed_once() {
    let server = Server::recorded().await;
    let get = |format: &str| TestRequest::get().uri(&format!("/render?target=edge.*&{WHEN}&format={format}"));
    let png = server.ask(get("png").insert_header(("Accept-Encoding", "gzip"))).await;
    assert_eq!(png.header("content-encoding"), None);
    let svg = server.ask(get("svg").insert_header(("Accept-Encoding", "gzip"))).await;
    assert_eq!(svg.header("content-encoding"), Some("gzip"));
}
