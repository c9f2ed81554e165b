//! Names of formats and what they are called on the wire.

/// What `/render` can answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Series as data.
    Data(DataFormat),
    /// A picture.
    Image(ImageFormat),
}

/// Forms of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataFormat {
    /// Points as `[value, time]`, with tags.
    Json,
    /// A line a point: name, local time, value.
    Csv,
    /// A line a series: `name,start,end,step|values`.
    Raw,
    /// Python's pickle, which other Graphite servers ask for.
    Pickle,
    /// The same dictionaries as MessagePack.
    MsgPack,
    /// One table of all series, for dygraphs.
    Dygraph,
    /// Points as `{x, y}`, for Rickshaw.
    Rickshaw,
    /// Protobuf of go-carbon and carbonapi, version 2.
    CarbonApiV2,
    /// Protobuf of go-carbon and carbonapi, version 3.
    CarbonApiV3,
}

/// Forms of pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ImageFormat {
    /// The default of `/render`.
    Png,
    /// Vectors.
    Svg,
    /// A page.
    Pdf,
}

impl Format {
    /// Every name of the `format` parameter with what it stands for.
    pub const NAMES: &'static [(&'static str, Format)] = &[
        ("json", Format::Data(DataFormat::Json)),
        ("csv", Format::Data(DataFormat::Csv)),
        ("raw", Format::Data(DataFormat::Raw)),
        ("pickle", Format::Data(DataFormat::Pickle)),
        ("msgpack", Format::Data(DataFormat::MsgPack)),
        ("dygraph", Format::Data(DataFormat::Dygraph)),
        ("rickshaw", Format::Data(DataFormat::Rickshaw)),
        ("carbonapi_v2_pb", Format::Data(DataFormat::CarbonApiV2)),
        ("protobuf", Format::Data(DataFormat::CarbonApiV2)),
        ("protobuf3", Format::Data(DataFormat::CarbonApiV2)),
        ("carbonapi_v3_pb", Format::Data(DataFormat::CarbonApiV3)),
        ("png", Format::Image(ImageFormat::Png)),
        ("svg", Format::Image(ImageFormat::Svg)),
        ("pdf", Format::Image(ImageFormat::Pdf)),
    ];

    /// By the value of the `format` parameter, in which case matters. Any other name is answered as a PNG, as
    /// graphite-web does; that is the caller's to say.
    #[must_use]
    pub fn from_parameter(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(n, _)| *n == name).map(|(_, format)| *format)
    }

    /// The `Content-Type` of an answer that is not wrapped in a callback.
    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Data(format) => format.content_type(),
            Self::Image(format) => format.content_type(),
        }
    }
}

impl DataFormat {
    /// The `Content-Type` of a script that calls back with JSON.
    pub const JSONP: &'static str = "text/javascript";

    /// The `Content-Type`.
    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Json | Self::Dygraph | Self::Rickshaw => "application/json",
            Self::Csv => "text/csv",
            Self::Raw => "text/plain",
            Self::Pickle => "application/pickle",
            Self::MsgPack => "application/x-msgpack",
            Self::CarbonApiV2 => "application/x-protobuf",
            Self::CarbonApiV3 => "application/x-carbonapi-v3-pb",
        }
    }

    /// Whether a callback is honoured: the forms of JSON.
    #[must_use]
    pub fn is_json(self) -> bool {
        matches!(self, Self::Json | Self::Dygraph | Self::Rickshaw)
    }
}

impl ImageFormat {
    /// The `Content-Type`.
    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Svg => "image/svg+xml",
            Self::Pdf => "application/x-pdf",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_case_sensitive_and_unique() {
        for (index, (name, format)) in Format::NAMES.iter().enumerate() {
            assert_eq!(Format::from_parameter(name), Some(*format));
            assert!(Format::NAMES[..index].iter().all(|(n, _)| n != name), "{name} twice");
        }
        assert_eq!(Format::from_parameter("JSON"), None);
        assert_eq!(Format::from_parameter(""), None);
    }
}
