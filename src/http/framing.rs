//! Where requests begin and end in what a client sends, and what in their first lines must be written otherwise.
//!
//! Clients write URLs as they are thought: `target=alias(a,"b")`, `target=ü.*`. Python's servers take that; the parser
//! of URLs below actix refuses the request. So `"`, `<`, `>`, backticks, DEL and bytes beyond ASCII are percent-encoded
//! here, in the URLs of request lines and nowhere else: headers and bodies go on as they came.
//!
//! Requests are told apart as actix does it (the same parser of heads, the same rules), so both see the same requests.
//! A head that actix would refuse is refused here, with a text. Knows nothing of sockets.

use std::borrow::Cow;
use std::mem::MaybeUninit;

use actix_web::http::{StatusCode, Uri};
use memchr::{memchr, memchr_iter, memrchr};
use percent_encoding::{AsciiSet, percent_encode};

use super::Problem;

/// The longest head of a request in bytes, as it comes and as it goes on: beyond it actix answers without a text.
const LONGEST_HEAD: usize = 128 * 1024 - 1;

/// The longest URL in bytes, percent-encoded: the parser of URLs counts in 16 bits.
const LONGEST_URL: usize = 65_534;

/// The most headers, as in actix.
const MOST_HEADERS: usize = 96;

/// ASCII that the parser of URLs refuses in a query, but for spaces and control characters: where these stand in a
/// line, it is not certain what is the URL. Bytes beyond ASCII are always encoded.
const REFUSED: &AsciiSet = &AsciiSet::EMPTY.add(b'"').add(b'<').add(b'>').add(b'`').add(0x7f);

/// What becomes of the bytes that come next.
#[derive(Debug)]
pub(super) enum Step {
    /// The first so many go on as they are.
    Pass(usize),
    /// It takes more of them to say.
    Wait,
    /// Instead of the first so many, these go on.
    Replace(usize, Vec<u8>),
    /// They are no request, so there is no knowing where another would begin.
    Refuse(Problem),
}

/// What one connection has come to.
#[derive(Debug)]
pub(super) struct Framing {
    state: State,
    /// How many bytes of a head hold no end of it.
    searched: usize,
    /// Whether the first line of that head is known to be good.
    line_is_good: bool,
    /// How many requests went on, wrapping.
    requests: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Head,
    Body {
        left: u64,
    },
    Chunked {
        part: Part,
        size: u64,
    },
    /// No longer requests: another protocol, or what actix refuses.
    Other,
}

/// What of a chunk comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Size,
    MoreSize,
    Blank,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    Trailer,
    TrailerLf,
    EndCr,
    EndLf,
}

impl Framing {
    /// At the beginning of a connection.
    pub fn new() -> Self {
        Self { state: State::Head, searched: 0, line_is_good: false, requests: 0 }
    }

    /// Whether what comes next is the head of a request, or the rest of one.
    pub fn is_between_requests(&self) -> bool {
        self.state == State::Head
    }

    /// How many requests went on, wrapping.
    pub fn requests(&self) -> u8 {
        self.requests
    }

    /// What becomes of `data`, the bytes that nothing has become of yet; at least one.
    pub fn next(&mut self, data: &[u8]) -> Step {
        match self.state {
            State::Head => self.head(data),
            State::Body { left } => {
                let passed = data.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                let left = left - passed as u64;
                self.state = if left == 0 { State::Head } else { State::Body { left } };
                Step::Pass(passed)
            }
            State::Chunked { part, size } => {
                let (passed, state) = chunked(data, part, size);
                self.state = state;
                Step::Pass(passed)
            }
            State::Other => Step::Pass(data.len()),
        }
    }

    fn head(&mut self, data: &[u8]) -> Step {
        // Empty lines before a request are allowed.
        let empty = data.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
        if empty > 0 {
            return Step::Pass(empty);
        }
        // Methods are letters. It may be TLS, or anything else.
        if !data.first().is_some_and(u8::is_ascii_graphic) {
            return Step::Refuse(not_http());
        }
        let Some(end) = end_of_head(data, self.searched) else {
            self.searched = data.len();
            return self.beginning(data).map_or_else(Step::Refuse, |()| Step::Wait);
        };
        let head = &data[..end];
        let encoded = encoded(head);
        let sent = encoded.as_deref().unwrap_or(head);
        let state = match read(sent) {
            // Both find the end of a head at its first empty line.
            Ok(Some((length, state))) if length == sent.len() && length <= LONGEST_HEAD => state,
            Ok(Some((length, _))) if length > LONGEST_HEAD => return Step::Refuse(too_long()),
            Ok(_) => return Step::Refuse(Problem::bad_request("the head of the request has no clear end")),
            Err(problem) => return Step::Refuse(problem),
        };
        *self = Self { state, requests: self.requests.wrapping_add(1), ..Self::new() };
        match encoded {
            Some(encoded) => Step::Replace(end, encoded),
            None => Step::Pass(end),
        }
    }

    /// Says early what is wrong with a head of which only this has come.
    fn beginning(&mut self, data: &[u8]) -> Result<(), Problem> {
        if data.len() >= LONGEST_HEAD {
            return Err(too_long());
        }
        if !self.line_is_good
            && let Some(end) = memchr(b'\n', data)
        {
            let line = &data[..=end];
            read(encoded(line).as_deref().unwrap_or(line))?;
            self.line_is_good = true;
        }
        Ok(())
    }
}

/// The length of the head at the start of `data`, of which the first `searched` bytes hold no end.
fn end_of_head(data: &[u8], searched: usize) -> Option<usize> {
    let from = searched.saturating_sub(2);
    memchr_iter(b'\n', &data[from..]).find_map(|at| {
        let next = from + at + 1;
        match &data[next..] {
            [b'\n', ..] => Some(next + 1),
            [b'\r', b'\n', ..] => Some(next + 2),
            _ => None,
        }
    })
}

/// The head with what is refused in the URL of its first line percent-encoded, if there is any. What is no UTF-8 is
/// taken for Latin-1, as Django has it.
fn encoded(head: &[u8]) -> Option<Vec<u8>> {
    let line = &head[..memchr(b'\n', head)?];
    let (from, until) = (memchr(b' ', line)? + 1, memrchr(b' ', line)?);
    let url = line.get(from..until)?;
    if !url.iter().any(|b| matches!(b, b'"' | b'<' | b'>' | b'`' | 0x7f..)) {
        return None;
    }
    let text = match str::from_utf8(url) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(url.iter().map(|b| char::from(*b)).collect()),
    };
    let mut sent = Vec::with_capacity(head.len() + 2 * text.len());
    sent.extend_from_slice(&head[..from]);
    percent_encode(text.as_bytes(), REFUSED).for_each(|piece| sent.extend_from_slice(piece.as_bytes()));
    sent.extend_from_slice(&head[until..]);
    Some(sent)
}

/// The length of a head and what follows it; `None` when it is not complete.
fn read(head: &[u8]) -> Result<Option<(usize, State)>, Problem> {
    let mut space = [const { MaybeUninit::uninit() }; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut []);
    let length = match request.parse_with_uninit_headers(head, &mut space) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(malformed(error, head)),
    };
    let (method, url) = (request.method.unwrap_or_default(), request.path.unwrap_or_default());
    if url.len() > LONGEST_URL {
        let text = format!(
            "the URL takes {} bytes percent-encoded, which is more than {LONGEST_URL}; send its parameters as the form of a \
             POST",
            url.len()
        );
        return Err(Problem::new(StatusCode::URI_TOO_LONG, text));
    }
    if Uri::try_from(url).is_err() {
        return Err(Problem::bad_request("the URL of the request is malformed"));
    }
    Ok(Some((length, after(method, request.version == Some(1), request.headers)?)))
}

/// What follows a head. What leaves a doubt about it is refused, as actix does it: another server in between might
/// think otherwise.
fn after(method: &str, newer: bool, headers: &[httparse::Header<'_>]) -> Result<State, Problem> {
    let (mut length, mut chunked, mut host, mut other) = (None, false, false, false);
    for header in headers {
        let value = || str::from_utf8(header.value).map(str::trim).unwrap_or_default();
        let is = |name: &str| header.name.eq_ignore_ascii_case(name);
        if is("content-length") {
            let number = Some(value()).filter(|v| !v.starts_with('+')).and_then(|v| v.parse::<u64>().ok());
            match number {
                Some(number) if length.is_none() => length = Some(number),
                _ => return Err(Problem::bad_request("the header Content-Length is wrong, or there are several")),
            }
        } else if is("transfer-encoding") {
            if chunked || !newer || !value().eq_ignore_ascii_case("chunked") {
                return Err(Problem::bad_request("the header Transfer-Encoding can only be `chunked`, in HTTP/1.1"));
            }
            chunked = true;
        } else if is("host") {
            if host {
                return Err(Problem::bad_request("there are several headers Host"));
            }
            host = true;
        } else if is("upgrade") && value().eq_ignore_ascii_case("websocket") {
            other = true;
        }
    }
    if newer && !host {
        return Err(Problem::bad_request("the header Host is missing, which HTTP/1.1 requires"));
    }
    if !newer && method == "POST" && length.is_none() {
        return Err(Problem::bad_request("the header Content-Length is missing, which a POST in HTTP/1.0 requires"));
    }
    Ok(match length {
        Some(_) if chunked => return Err(Problem::bad_request("there are both Content-Length and Transfer-Encoding")),
        None if chunked => State::Chunked { part: Part::Size, size: 0 },
        _ if other => State::Other,
        Some(left) if left > 0 => State::Body { left },
        _ if method == "CONNECT" => State::Other,
        _ => State::Head,
    })
}

/// How much of `data` is of a chunked body, and what comes then.
fn chunked(data: &[u8], mut part: Part, mut size: u64) -> (usize, State) {
    let mut at = 0;
    while let Some(&byte) = data.get(at) {
        if part == Part::Data {
            let passed = usize::try_from(size).unwrap_or(usize::MAX).min(data.len() - at);
            size -= passed as u64;
            at += passed;
            if size == 0 {
                part = Part::DataCr;
            }
            continue;
        }
        let digit = char::from(byte).to_digit(16).map(u64::from);
        part = match (part, byte) {
            (Part::Size | Part::MoreSize, _) if digit.is_some() => {
                let Some(more) = size.checked_mul(16) else { return (data.len(), State::Other) };
                size = more + digit.unwrap_or_default();
                Part::MoreSize
            }
            (Part::MoreSize | Part::Blank, b' ' | b'\t') => Part::Blank,
            (Part::MoreSize | Part::Blank, b';') | (Part::Extension, b'\t') => Part::Extension,
            (Part::MoreSize | Part::Blank | Part::Extension, b'\r') => Part::SizeLf,
            (Part::Extension, _) if !byte.is_ascii_control() => Part::Extension,
            (Part::SizeLf, b'\n') if size > 0 => Part::Data,
            (Part::SizeLf | Part::TrailerLf, b'\n') => Part::EndCr,
            (Part::DataCr, b'\r') => Part::DataLf,
            (Part::DataLf, b'\n') => Part::Size,
            (Part::Trailer, b'\r') => Part::TrailerLf,
            (Part::EndCr, b'\r') => Part::EndLf,
            (Part::EndCr | Part::Trailer, _) => Part::Trailer,
            (Part::EndLf, b'\n') => return (at + 1, State::Head),
            _ => return (data.len(), State::Other),
        };
        at += 1;
    }
    (at, State::Chunked { part, size })
}

fn not_http() -> Problem {
    Problem::bad_request("this is no HTTP request; HTTP/1.0 and HTTP/1.1 are spoken here, without TLS")
}

fn too_long() -> Problem {
    let text = format!("the URL and the headers together take more than {LONGEST_HEAD} bytes");
    Problem::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, text)
}

/// What is wrong with a head.
fn malformed(error: httparse::Error, head: &[u8]) -> Problem {
    use httparse::Error as E;
    let line = head.split(|b| *b == b'\n').next().unwrap_or_default().trim_ascii_end();
    match error {
        E::HeaderName | E::HeaderValue => {
            Problem::bad_request(format!("a header of the request is malformed: {error}"))
        }
        E::TooManyHeaders => {
            let text = format!("there are more than {MOST_HEADERS} headers");
            Problem::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, text)
        }
        _ if !(line.ends_with(b" HTTP/1.1") || line.ends_with(b" HTTP/1.0")) => not_http(),
        _ if memchr_iter(b' ', line).count() > 2 => Problem::bad_request(
            "there is a space in the URL of the request: it must be percent-encoded, as \
             `curl -G --data-urlencode 'target=alias(a, \"b\")' URL` does it",
        ),
        _ => Problem::bad_request(
            "the first line of the request is malformed: control characters must be percent-encoded in a URL",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What goes on of these pieces, one after the other; and the status of the refusal that ends it.
    fn sent(pieces: &[&[u8]]) -> (Vec<u8>, Option<u16>) {
        let (mut framing, mut held, mut out) = (Framing::new(), Vec::new(), Vec::new());
        for piece in pieces {
            held.extend_from_slice(piece);
            while !held.is_empty() {
                match framing.next(&held) {
                    Step::Pass(n) => out.extend(held.drain(..n)),
                    Step::Wait => break,
                    Step::Replace(n, with) => {
                        held.drain(..n);
                        out.extend(with);
                    }
                    Step::Refuse(problem) => return (out, Some(problem.status().as_u16())),
                }
            }
        }
        out.extend(held);
        (out, None)
    }

    fn assert_sent(from: &[u8], to: &[u8]) {
        let shown = String::from_utf8_lossy(from);
        assert_eq!(sent(&[from]), (to.to_vec(), None), "{shown}");
        // However it comes.
        let bytes: Vec<&[u8]> = from.chunks(1).collect();
        assert_eq!(sent(&bytes), (to.to_vec(), None), "{shown}, byte by byte");
        for at in 0..from.len() {
            assert_eq!(sent(&[&from[..at], &from[at..]]), (to.to_vec(), None), "{shown}, cut at {at}");
        }
    }

    #[test]
    fn urls_are_encoded_and_nothing_else() {
        let lines: [(&[u8], &[u8]); 10] = [
            (b"GET /a?t=alias(a,\"b\") HTTP/1.1", b"GET /a?t=alias(a,%22b%22) HTTP/1.1"),
            (b"GET /a?t=<`>\x7f HTTP/1.1", b"GET /a?t=%3C%60%3E%7F HTTP/1.1"),
            ("GET /ü?t=ü HTTP/1.1".as_bytes(), b"GET /%C3%BC?t=%C3%BC HTTP/1.1"),
            // Latin-1, with what was encoded before it.
            (b"GET /a?t=\xfc%C3%BC HTTP/1.1", b"GET /a?t=%C3%BC%C3%BC HTTP/1.1"),
            (b"GET /a?t=\xfc\xc3\xbc HTTP/1.1", b"GET /a?t=%C3%BC%C3%83%C2%BC HTTP/1.1"),
            (b"GET http://h/a?t=\"b\" HTTP/1.1", b"GET http://h/a?t=%22b%22 HTTP/1.1"),
            // What is allowed stays, also where it could be encoded.
            (b"GET /a?t={b,c}|d(\\'^')&x[]=%22+#\" HTTP/1.1", b"GET /a?t={b,c}|d(\\'^')&x[]=%22+#%22 HTTP/1.1"),
            (b"GET / HTTP/1.0", b"GET / HTTP/1.0"),
            (b"GET * HTTP/1.0", b"GET * HTTP/1.0"),
            (b"HEAD /\" HTTP/1.1", b"HEAD /%22 HTTP/1.1"),
        ];
        for (from, to) in lines {
            let headers = "\r\nHost: x\r\nReferer: \"<ü>`\r\nX: GET /\" HTTP/1.1\r\n\r\n".as_bytes();
            assert_sent(&[from, headers].concat(), &[to, headers].concat());
            // Lines may end without a carriage return, and empty lines come before the first.
            assert_sent(&[b"\r\n\n", from, b"\nHost: x\n\n"].concat(), &[b"\r\n\n", to, b"\nHost: x\n\n"].concat());
        }
    }

    #[test]
    fn bodies_go_on_as_they_are_and_requests_after_them_are_found() {
        let (get, encoded): (&[u8], &[u8]) =
            (b"GET /\" HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /%22 HTTP/1.1\r\nHost: x\r\n\r\n");
        let whole: [&[u8]; 7] = [
            b"POST / HTTP/1.1\r\nHost: x\r\ncontent-LENGTH:  18 \r\n\r\nGET /\" HTTP/1.1\r\n\r",
            b"POST / HTTP/1.0\r\nContent-Length: 3\r\n\r\n\"\"\"",
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: CHUNKED\r\n\r\n\
              13\r\nGET /\" HTTP/1.1\r\n\r\n\r\nA ;x=\"\t\r\n\"\"\"\"\"\"\"\"\"\"\r\n0\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\
              1\r\n\"\r\n0\r\nGET /\" HTTP/1.1: \"\r\nY: \"\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            b"",
        ];
        for body in whole {
            assert_sent(&[body, get, get].concat(), &[body, encoded, encoded].concat());
            assert_sent(&[get, body, get].concat(), &[encoded, body, encoded].concat());
        }
    }

    #[test]
    fn what_is_no_longer_requests_goes_on_as_it_is() {
        let heads: [&[u8]; 6] = [
            b"GET /chat HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: WebSocket\r\n\r\n",
            b"CONNECT h:1 HTTP/1.1\r\nHost: x\r\n\r\n",
            // Chunks that actix refuses.
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\"\r\n",
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\n",
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n\"\"\r\n0\r\n\r\n",
        ];
        for head in heads {
            let all = [head, b"GET /\" HTTP/1.1\r\nHost: x\r\n\r\n"].concat();
            assert_sent(&all, &all);
        }
    }

    #[test]
    fn what_is_refused() {
        let post = "POST / HTTP/1.1\r\nHost: x\r\n";
        let many = format!("GET / HTTP/1.1\r\nHost: x\r\n{}\r\n", "a: b\r\n".repeat(MOST_HEADERS));
        let long = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "\"".repeat(LONGEST_URL / 3 + 1));
        let endless = format!("GET / HTTP/1.1\r\na: {}", "b".repeat(LONGEST_HEAD));
        let cases: [(&[u8], u16, &str); 20] = [
            (b"GET /a?t=b(c, d) HTTP/1.1\r\n", 400, "space in the URL"),
            (b"GET /a?t=\"b c\" HTTP/1.0\r\n\r\n", 400, "space in the URL"),
            (b"GET /a?t=b\tc HTTP/1.1\r\n", 400, "control characters"),
            (b"GET /a\rb HTTP/1.1\r\n", 400, "control characters"),
            (b"GET /\n", 400, "no HTTP request"),
            (b"GET / HTTP/2.0\r\n", 400, "no HTTP request"),
            (b"\x16\x03\x01", 400, "no HTTP request"),
            (b"hello\n", 400, "no HTTP request"),
            (b"GET a/b HTTP/1.0\r\n\r\n", 400, "URL of the request is malformed"),
            (b"GET / HTTP/1.1\r\n\r\n", 400, "Host is missing"),
            (b"GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", 400, "several headers Host"),
            (b"GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400, "invalid header name"),
            (b"POST / HTTP/1.0\r\n\r\n", 400, "Content-Length is missing"),
            (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400, "only be `chunked`"),
            (&[post.as_bytes(), b"Content-Length: +1\r\n\r\n"].concat(), 400, "Content-Length is wrong"),
            (&[post.as_bytes(), b"Content-Length: 1\r\ncontent-length: 1\r\n\r\n"].concat(), 400, "there are several"),
            (&[post.as_bytes(), b"Transfer-Encoding: gzip, chunked\r\n\r\n"].concat(), 400, "only be `chunked`"),
            (
                &[post.as_bytes(), b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"].concat(),
                400,
                "both Content-Length and",
            ),
            (many.as_bytes(), 431, "more than 96 headers"),
            (long.as_bytes(), 414, "the URL takes 65536 bytes"),
        ];
        for (bytes, status, text) in cases {
            let mut framing = Framing::new();
            let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(80)]);
            let Step::Refuse(problem) = framing.next(bytes) else { panic!("{shown} is taken") };
            assert_eq!(problem.status().as_u16(), status, "{shown}: {problem}");
            assert!(problem.to_string().contains(text), "{shown}: {problem}");
        }
        assert_eq!(sent(&[endless.as_bytes()]).1, Some(431));
        // Both requests of a connection are read before something is refused.
        let good: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        assert_eq!(sent(&[good, good, b"GET / /"]), ([good, good, b"GET / /"].concat(), None));
        assert_eq!(sent(&[good, good, b"GET / / HTTP/1.1\r\n"]), ([good, good].concat(), Some(400)));
    }
}
