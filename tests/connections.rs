//! Requests through a real socket, as clients write them.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use plumbago::backend::{Backend, BackendId};
use plumbago::config::Config;
use plumbago::fetch::{Group, GroupKind};
use plumbago::http::{self, App};
use plumbago::series::{Series, Step};
use plumbago::store::MemoryStore;

/// A server over series of these names.
fn serve(names: &[&str]) -> SocketAddr {
    let step = Step::new(60).expect("a step");
    let series = names.iter().map(|name| Series::new(*name, 0, step, vec![1.0; 10]));
    let store: Arc<dyn Backend> = Arc::new(MemoryStore::new(BackendId::new("memory"), series));
    let config = Config { http_threads: 1, fetch_threads: 1, ..Config::default() };
    let group = Group::new("test", GroupKind::Shards, vec![store]);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    http::serve_aside(App::with_groups(config, vec![group]).expect("an app"), listener).expect("a thread");
    address
}

/// An answer: status, head in lower case, body.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

/// All that comes back when these pieces are sent on one connection, until the server closes it.
fn talk(address: SocketAddr, pieces: &[&[u8]]) -> Vec<Answer> {
    let mut client = TcpStream::connect(address).expect("the server listens");
    client.set_nodelay(true).expect("set");
    client.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
    for piece in pieces {
        client.write_all(piece).expect("sent");
    }
    let mut bytes = Vec::new();
    client.read_to_end(&mut bytes).expect("the server closes the connection in time");
    let mut rest = String::from_utf8(bytes).expect("UTF-8");
    let mut answers = Vec::new();
    while !rest.is_empty() {
        let (head, after) = rest.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head: {rest}"));
        let head = head.to_lowercase();
        let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).expect("a status");
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.expect("a length").parse().expect("a number");
        answers.push(Answer { status, body: after[..length].to_owned(), head });
        rest = after[length..].to_owned();
    }
    answers
}

/// A request for JSON of a target as it is written.
fn get(target: &[u8], last: bool) -> Vec<u8> {
    let end = if last { "Connection: close\r\n" } else { "" };
    let after = format!("&from=0&until=60&now=60 HTTP/1.1\r\nHost: x\r\n{end}\r\n");
    [b"GET /render?format=json&target=", target, after.as_bytes()].concat()
}

/// The names in the JSON of a good answer.
fn names(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.status, 200, "{answer:?}");
    let series: serde_json::Value = serde_json::from_str(&answer.body).expect("JSON");
    series.as_array().expect("a list").iter().map(|s| s["target"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn urls_as_they_are_thought() {
    let address = serve(&["a.b", "ü.c", "x{y"]);
    let cases: [(&[u8], &[&str]); 8] = [
        (b"alias(a.b,\"c\")", &["c"]),
        (b"alias(a.b,\"<c>`d\x7f\")", &["<c>`d\x7f"]),
        ("ü.*".as_bytes(), &["ü.c"]),
        ("alias(a.b,'日本🙂')".as_bytes(), &["日本🙂"]),
        // Latin-1: what Django makes of a URL that is no UTF-8.
        (b"alias(a.b,'\xfc')", &["ü"]),
        (b"alias(a.b,'\xfc\xc3%C3%BC')", &["üÃü"]),
        // What is encoded is read as UTF-8 and nothing else, in Django too.
        (b"alias(a.b,'%FC%22+%3Cd')", &["\u{fffd}\" <d"]),
        (b"aliasByNode({a,\xc3\xbc}.{b,c}|scale(1),0)", &["a", "ü"]),
    ];
    for (target, expected) in cases {
        let shown = String::from_utf8_lossy(target);
        let whole = get(target, true);
        let answers = talk(address, &[&whole]);
        assert_eq!(answers.iter().map(names).collect::<Vec<_>>(), [expected], "{shown}");
        let bytes: Vec<&[u8]> = whole.chunks(1).collect();
        let answers = talk(address, &bytes);
        assert_eq!(answers.iter().map(names).collect::<Vec<_>>(), [expected], "{shown}, byte by byte");
    }
    let answers =
        talk(address, &[b"GET /render?format=json&target=alias(a.b,\"c\")&until=60&now=60&from=0 HTTP/1.0\r\n\r\n"]);
    assert_eq!(answers.iter().map(names).collect::<Vec<_>>(), [["c"]]);
    let answers = talk(address, &["GET /ü\" HTTP/1.0\r\n\r\n".as_bytes()]);
    assert_eq!((answers[0].status, answers[0].body.as_str()), (404, "there is nothing at this path\n"));
}

#[test]
fn many_requests_on_one_connection() {
    let address = serve(&["a.b"]);
    let form = "target=alias(a.b,\"form\")&format=json&from=0&until=60&now=60";
    let head =
        "POST /render HTTP/1.1\r\nHost: x\r\nX-Quoted: \"<ü>\"\r\nContent-Type: application/x-www-form-urlencoded\r\n";
    let sized = format!("{head}Content-Length: {}\r\n\r\n{form}", form.len());
    let (first, second) = form.split_at(20);
    let (m, n) = (first.len(), second.len());
    let chunked =
        format!("{head}Transfer-Encoding: chunked\r\n\r\n{m:x};a=\"b\"\r\n{first}\r\n{n:X}\r\n{second}\r\n0\r\n\r\n");
    let (quoted, last) = (get(b"alias(a.b,\"quoted\")", false), get(b"alias(a.b,\"last\")", true));
    let plain = get(b"a.b", false);
    let requests: [&[u8]; 7] =
        [&plain, &quoted, sized.as_bytes(), &quoted, chunked.as_bytes(), chunked.as_bytes(), &last];
    let expected = ["a.b", "quoted", "form", "quoted", "form", "form", "last"];
    let all = requests.concat();
    for pieces in [vec![&all[..]], all.chunks(7).collect(), requests.to_vec()] {
        let answers = talk(address, &pieces);
        assert_eq!(answers.iter().flat_map(names).collect::<Vec<_>>(), expected, "in {} pieces", pieces.len());
    }
    // Many at once, more than are read at once.
    let many = [quoted.repeat(3000), last].concat();
    let answers = talk(address, &[&many]);
    assert_eq!(answers.len(), 3001);
    assert!(answers[..3000].iter().all(|answer| names(answer) == ["quoted"]));
    assert_eq!(names(&answers[3000]), ["last"]);
}

/// What comes back for requests that are sent at once is what each of them asks for.
#[test]
fn requests_sent_ahead_are_answered_each_as_it_wants() {
    let address = serve(&["a.b"]);
    let replies = |sent: &[u8]| {
        let mut client = TcpStream::connect(address).expect("the server listens");
        client.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
        client.write_all(sent).expect("sent");
        let mut text = String::new();
        client.read_to_string(&mut text).expect("the server closes the connection in time");
        text
    };
    let (plain, last) = (get(b"a.b", false), get(b"a.b", true));
    let head = [b"HEAD", &plain[3..]].concat();
    // No body comes with the answer to HEAD, and one with that to GET, whatever follows.
    let text = replies(&[&head[..], &last].concat());
    assert_eq!((text.matches("HTTP/1.1 200").count(), text.matches("[{").count()), (2, 1), "{text}");
    assert!(text.ends_with("}]"), "{text}");
    let text = replies(&[&plain[..], b"HEAD", &last[3..]].concat());
    assert_eq!((text.matches("HTTP/1.1 200").count(), text.matches("[{").count()), (2, 1), "{text}");
    assert!(text.ends_with("\r\n\r\n"), "{text}");
    // The connection ends with the first answer that is to end it.
    let text = replies(&[&plain[..], &last, &plain].concat());
    assert_eq!(text.matches("HTTP/1.1 200").count(), 2, "{text}");
    let text = replies(&[&b"GET /version HTTP/1.0\r\n\r\n"[..], &plain].concat());
    assert_eq!((text.matches("HTTP/1.0 200").count(), text.matches("HTTP/1.1").count()), (1, 0), "{text}");
}

#[test]
fn long_lines() {
    let address = serve(&["a.b"]);
    // Three bytes for each, within what a URL may take.
    let quotes = "\"".repeat(20_000);
    let answers = talk(address, &[&get(format!("alias(a.b,'{quotes}')").as_bytes(), true)]);
    assert_eq!(answers.iter().flat_map(names).collect::<Vec<_>>(), [quotes]);
    let answers = talk(address, &[&get("\"".repeat(65_536).as_bytes(), true)]);
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].status, 414);
    assert!(answers[0].body.starts_with("the URL takes 196"), "{}", answers[0].body);
    let answers = talk(address, &[b"GET / HTTP/1.1\r\nHost: x\r\nA: ", "a".repeat(2_000_000).as_bytes()]);
    assert_eq!(answers[0].status, 431);
    assert!(answers[0].body.starts_with("the URL and the headers together"), "{}", answers[0].body);
}

#[test]
fn what_is_no_request_is_answered_in_words() {
    let address = serve(&["a.b"]);
    let cases: [(&[u8], &str); 6] = [
        (b"GET /render?target=alias(a.b, \"c\") HTTP/1.1\r\nHost: x\r\n\r\n", "there is a space in the URL"),
        (b"GET / HTTP/1.1\r\n\r\n", "the header Host is missing"),
        (
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nGET /\"",
            "the header Content-Length",
        ),
        (b"GET /\r\n", "this is no HTTP request"),
        (b"\x16\x03\x01\x02\x00\x01\x00", "this is no HTTP request"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "this is no HTTP request"),
    ];
    for (bytes, text) in cases {
        // Also behind a request that is answered, and before more that is not read.
        let all = [&get(b"alias(a.b,\"c\")", false), bytes, &get(b"a.b", true)].concat();
        let answers = talk(address, &[&all]);
        assert_eq!(answers.len(), 2, "{answers:?}");
        assert_eq!(names(&answers[0]), ["c"]);
        for answer in [&answers[1], &talk(address, &[bytes])[0]] {
            assert_eq!(answer.status, 400, "{answer:?}");
            assert!(answer.body.starts_with(text) && answer.body.ends_with('\n'), "{answer:?}");
            assert!(answer.head.contains("content-type: text/plain") && answer.head.contains("connection: close"));
        }
    }
    // What stands for them is not there for others.
    let answers = talk(address, &[b"GET /malformed-request HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"]);
    assert_eq!((answers[0].status, answers[0].body.as_str()), (404, "there is nothing at this path\n"));
}
