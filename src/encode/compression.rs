//! Compression of answers, at levels that cost less than they save.
//!
//! Numbers compress about 3.5 times whatever the method, so the cheapest is best: zstd at level 1 where the client
//! takes it, else gzip at 3. Brotli costs more for little, and is used when a client wants it most or takes nothing
//! else. This is work for the processor, not for an event loop.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};

/// Answers below this size, in bytes, are sent as they are.
pub const WORTHWHILE: usize = 1024;

const ZSTD_LEVEL: i32 = 1;
const ZLIB_LEVEL: u32 = 3;
const BROTLI_LEVEL: i32 = 2;
/// Log2 of brotli's window; 4 MiB, its default.
const BROTLI_WINDOW: i32 = 22;

/// A content coding of HTTP. (There is none for "as it is", because such an answer has no `Content-Encoding`.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ContentCoding {
    /// `zstd`
    Zstd,
    /// `gzip`
    Gzip,
    /// `br`
    Brotli,
    /// `deflate`: the zlib format.
    Deflate,
}

impl ContentCoding {
    /// In the order in which they are chosen when the client does not care.
    const ALL: [Self; 4] = [Self::Zstd, Self::Gzip, Self::Brotli, Self::Deflate];

    /// Its name in `Content-Encoding`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
            Self::Brotli => "br",
            Self::Deflate => "deflate",
        }
    }

    /// The best of those that an `Accept-Encoding` header allows; `None` when the answer should go as it is.
    #[must_use]
    pub fn choose(accept_encoding: &str) -> Option<Self> {
        let accepted: Vec<(&str, f64)> = accept_encoding.split(',').map(weighed).collect();
        let said = |name: &str| accepted.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, weight)| *weight);
        let weight = |coding: Self| {
            let alias = if coding == Self::Gzip { said("x-gzip") } else { None };
            said(coding.name()).or(alias).or_else(|| said("*")).unwrap_or(0.0)
        };
        // A client that does not name "as it is" takes it only when there is nothing better.
        let least = said("identity").unwrap_or(0.0);
        let mut best = None;
        for coding in Self::ALL {
            let weight = weight(coding);
            if weight > 0.0 && weight >= least && best.is_none_or(|(_, most)| weight > most) {
                best = Some((coding, weight));
            }
        }
        best.map(|(coding, _)| coding)
    }

    /// The body in this coding.
    ///
    /// # Errors
    /// The compressor failed, which in memory means a bug or no memory; the body can be sent as it is.
    pub fn compress(self, body: &[u8]) -> io::Result<Vec<u8>> {
        let half = Vec::with_capacity(body.len() / 2);
        match self {
            Self::Zstd => zstd::bulk::compress(body, ZSTD_LEVEL),
            Self::Gzip => {
                let mut encoder = GzEncoder::new(half, Compression::new(ZLIB_LEVEL));
                encoder.write_all(body)?;
                encoder.finish()
            }
            Self::Deflate => {
                let mut encoder = ZlibEncoder::new(half, Compression::new(ZLIB_LEVEL));
                encoder.write_all(body)?;
                encoder.finish()
            }
            Self::Brotli => {
                let parameters = brotli::enc::BrotliEncoderParams {
                    quality: BROTLI_LEVEL,
                    lgwin: BROTLI_WINDOW,
                    size_hint: body.len(),
                    ..Default::default()
                };
                let mut out = half;
                brotli::BrotliCompress(&mut &*body, &mut out, &parameters)?;
                Ok(out)
            }
        }
    }
}

/// A name of a list such as `gzip;q=0.5` with its weight, which is 1 when nothing is said and 0 when it is garbled.
fn weighed(entry: &str) -> (&str, f64) {
    let mut parts = entry.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default();
    let quality = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
    let weight = quality.map_or(1.0, |q| q.parse::<f64>().ok().filter(|q| (0.0..=1.0).contains(q)).unwrap_or(0.0));
    (name, weight)
}

/// The body compressed as the client allows, with the coding's name for `Content-Encoding`; `None` when it should go
/// as it is: it is small, the client takes no coding, or it would not become smaller.
#[must_use]
pub fn compressed(body: &[u8], accept_encoding: &str) -> Option<(ContentCoding, Vec<u8>)> {
    if body.len() < WORTHWHILE {
        return None;
    }
    let coding = ContentCoding::choose(accept_encoding)?;
    let smaller = coding.compress(body).ok().filter(|bytes| bytes.len() < body.len())?;
    Some((coding, smaller))
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn chosen(header: &str) -> Option<&'static str> {
        ContentCoding::choose(header).map(ContentCoding::name)
    }

    #[test]
    fn clients_choose() {
        for (header, name) in [
            ("", None),
            ("identity", None),
            ("gzip, deflate", Some("gzip")),
            ("gzip, deflate, br", Some("gzip")),
            ("gzip, deflate, br, zstd", Some("zstd")),
            ("br", Some("br")),
            ("GZIP", Some("gzip")),
            ("x-gzip", Some("gzip")),
            ("deflate;q=0.5, gzip;q=0", Some("deflate")),
            ("br;q=1.0, gzip;q=0.8, *;q=0.1", Some("br")),
            ("*", Some("zstd")),
            ("zstd;q=0, *;q=0.5", Some("gzip")),
            ("*;q=0", None),
            ("gzip;q=nonsense", None),
            ("identity;q=1, gzip;q=0.5", None),
            ("gzip;q=0.5, identity;q=0", Some("gzip")),
            ("compress", None),
            (";,;;q=,", None),
        ] {
            assert_eq!(chosen(header), name, "{header}");
        }
    }

    #[test]
    fn what_is_compressed_reads_back() {
        let body = "[27.2, 1699998660], ".repeat(500).into_bytes();
        for coding in ContentCoding::ALL {
            let (chosen, bytes) = compressed(&body, coding.name()).expect("worth it");
            assert_eq!(chosen, coding);
            assert!(bytes.len() < body.len() / 5);
            let mut read = Vec::new();
            match coding {
                ContentCoding::Zstd => read = zstd::bulk::decompress(&bytes, body.len()).expect("zstd"),
                ContentCoding::Gzip => {
                    flate2::read::GzDecoder::new(&*bytes).read_to_end(&mut read).expect("gzip");
                }
                ContentCoding::Deflate => {
                    flate2::read::ZlibDecoder::new(&*bytes).read_to_end(&mut read).expect("zlib");
                }
                ContentCoding::Brotli => {
                    brotli::Decompressor::new(&*bytes, 4096).read_to_end(&mut read).expect("brotli");
                }
            }
            assert_eq!(read, body, "{coding:?}");
        }
    }

    #[test]
    fn small_and_random_bodies_go_as_they_are() {
        assert_eq!(compressed(&[b'a'; WORTHWHILE - 1], "gzip"), None);
        assert_eq!(compressed(&[b'a'; WORTHWHILE * 2], "identity"), None);
        let mut state = 1_u64;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        })
        .take(4096)
        .collect();
        assert_eq!(compressed(&noise, "gzip"), None);
    }
}
