"""What graphite-web answered, replayed against the running binary: tests/golden says what the cases are.

Numbers agree within 1e-9, or 1e-12 near zero; names, tags, times, nulls and order agree exactly, but a recorded infinity
may be null. A recorded 500 was an accident: any answer that is no 5xx is right. A recorded 404 or 405 may be any 4xx.
"""
import base64
import collections
import http.client
import io
import json
import math
import os
import pickle
import re
import tempfile
import unittest
import urllib.parse

import msgpack

import dataset_backend
import servers
from dataset_backend import GOLDEN
from servers import group

SHOWN = 25
"""Cases that are printed of a file that fails."""


def read(name):
    with open(os.path.join(GOLDEN, name), encoding="utf-8") as file:
        return file.read()


class OnlyData(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name} is not data")


def decoded(case, body):
    """The body in the form of the recordings."""
    params = dict(case["params"])
    encoding = params.get("format")
    if encoding == "pickle" or (encoding is None and "pickle" in params):
        return json.loads(json.dumps(OnlyData(io.BytesIO(body)).load()))
    if encoding == "msgpack":
        return json.loads(json.dumps(msgpack.unpackb(body)))
    text = body.decode()
    return text if isinstance(case["body"], str) else strictly(text)


def strictly(text):
    try:
        return json.loads(text, parse_constant=lambda word: "not JSON: " + word)
    except ValueError:
        return text


NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
ROWS_OF_A_DATABASE = ("id", "description")


def close(a, b):
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)


def encoded(pairs):
    return urllib.parse.urlencode([tuple(pair) for pair in pairs])


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def difference(want, got, place):
    """The first place where they differ, or None."""
    if is_number(want) and is_number(got):
        return None if close(want, got) else f"{place}: {want} is recorded, {got} came"
    if want in ("Infinity", "-Infinity", "NaN"):
        if got is None or got == want or (is_number(got) and not math.isfinite(got)):
            return None
    if isinstance(want, dict) and isinstance(got, dict):
        ours = {"description", "meta"}
        for key in want:
            if key in ROWS_OF_A_DATABASE and place.startswith(("/tags", "/functions")):
                continue
            if key not in got:
                return f"{place}: `{key}` is missing"
            found = difference(want[key], got[key], f"{place}.{key}")
            if found:
                return found
        extra = set(got) - set(want) - ours
        return f"{place}: more than recorded: {sorted(extra)}" if extra else None
    if isinstance(want, list) and isinstance(got, list):
        for at, pair in enumerate(zip(want, got)):
            found = difference(*pair, f"{place}[{at}]")
            if found:
                return found
        return None if len(want) == len(got) else f"{place}: {len(want)} items are recorded, {len(got)} came"
    if isinstance(want, str) and isinstance(got, str):
        a, b = (NUMBER.sub("#", text.replace("\r\n", "\n")) for text in (want, got))
        if a == b and all(close(float(x), float(y)) for x, y in zip(NUMBER.findall(want), NUMBER.findall(got))):
            return None
    elif type(want) is type(got) and want == got:
        return None
    return f"{place}: {short(want)} is recorded, {short(got)} came"


def short(value):
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) < 200 else text[:200] + "…"


def ordered(value):
    if isinstance(value, dict):
        return {key: ordered(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return sorted(value, key=lambda one: json.dumps(one, sort_keys=True))
    return value


def judged(case, status, body):
    """What is wrong with an answer, or None."""
    recorded = case["status"]
    if recorded == 500:
        return None if status < 500 else f"{status}: {body[:300]!r}"
    if recorded in (404, 405):
        return None if 400 <= status < 500 else f"{status}, where a 4xx is recorded"
    if recorded != status:
        return f"{status}, where {recorded} is recorded: {body[:300]!r}"
    if recorded != 200:
        return None
    want = case["body"]
    if isinstance(want, dict) and want.get("binary"):
        # The recording of an SVG has its first bytes as they are.
        plain = want["magic"].startswith("<")
        magic = want["magic"].encode() if plain else base64.b64decode(want["magic"])
        same = body[:4] == magic[:4] or (magic.startswith(b"<?xml") and b"<svg" in body[:400])
        return None if same else f"begins with {body[:8]!r}, not with {magic!r}"
    try:
        got = decoded(case, body)
    except Exception as error:
        return f"cannot be decoded: {error!r}: {body[:200]!r}"
    if case.get("unordered"):
        want, got = ordered(want), ordered(got)
    return difference(want, got, case["endpoint"])


class Replay:
    """The binary under test over the data set."""

    protocol = None

    @classmethod
    def setUpClass(cls):
        cls.backend = dataset_backend.Backend()
        config = servers.UNCACHED + group("data", cls.protocol, [cls.backend.url])
        cls.plumbago = servers.Plumbago(f"golden-{cls.protocol}", config, tempfile.mkdtemp()).start()
        cls.differs = json.loads(read("differs.json"))

    @classmethod
    def tearDownClass(cls):
        cls.plumbago.stop()
        cls.backend.close()

    def replay(self, name):
        connection = http.client.HTTPConnection("127.0.0.1", self.plumbago.port, timeout=30)
        self.addCleanup(connection.close)
        passed = on_purpose = 0
        wrong, groups = [], collections.Counter()
        for line in read(name).splitlines():
            case = json.loads(line)
            # Tags are edited in an embedded store; `tests/http.rs` replays these over one.
            if case["group"] == "tags:mutate":
                continue
            try:
                why = judged(case, *self.ask(connection, case))
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                why = f"no answer: {error!r}"
            if why is None:
                passed += 1
            elif case["id"] in self.differs:
                on_purpose += 1
            else:
                groups[case["group"]] += 1
                query = urllib.parse.unquote_plus(encoded(case["params"]))
                wrong.append(f"{case['id']} {case['group']} {case['method']} {case['endpoint']}?{query[:300]}\n    {why}")
        told = f"{name}: {passed} as recorded, {len(wrong)} not, {on_purpose} differ on purpose"
        if wrong:
            self.fail("\n".join([told, str(dict(groups)), *wrong[:SHOWN]]))
        self.assertTrue(passed, told)

    def ask(self, connection, case):
        url, body = case["endpoint"], None
        headers = dict(case.get("headers") or {})
        params = encoded(case["params"])
        if case["method"] == "POST":
            body = params
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            query = case.get("query") or ""
            params = query if isinstance(query, str) else encoded(query)
        connection.request(case["method"], url + (f"?{params}" if params else ""), body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()

    def test_functions(self):
        self.replay("functions.jsonl")

    def test_combined(self):
        self.replay("combined.jsonl")

    def test_more(self):
        self.replay("more.jsonl")

    def test_syntax(self):
        self.replay("syntax.jsonl")

    def test_time(self):
        self.replay("time.jsonl")

    def test_find(self):
        self.replay("find.jsonl")

    def test_tags(self):
        self.replay("tags.jsonl")

    def test_formats(self):
        self.replay("formats.jsonl")


class OverMsgpack(Replay, unittest.TestCase):
    protocol = "graphite"


class OverPickle(Replay, unittest.TestCase):
    protocol = "graphite-pickle"
