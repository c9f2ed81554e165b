"""A storage backend over tests/golden/dataset.json that speaks graphite-web 1.x: render, find and tags as pickle,
MessagePack or JSON. It runs in threads of the test's own process.

It does what the recorded graphite-web's storage did and no more: paths and seriesByTag, no functions.
"""
import collections
import fnmatch
import hashlib
import http.server
import json
import os
import pickle
import re
import threading
import urllib.parse

import msgpack

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden")


class BadRequest(Exception):
    pass


class Store:
    """The series, as a tree of paths and as sets of tags."""

    def __init__(self):
        with open(os.path.join(GOLDEN, "dataset.json"), encoding="utf-8") as file:
            self.series = {one["name"]: one for one in json.load(file)["series"]}
        self.leaves, self.branches, self.tagged = {}, set(), {}
        for name, one in self.series.items():
            one["values"] = [None if value is None else float(value) for value in one["values"]]
            path = name
            if ";" in name:
                self.tagged[name] = parsed(name)
                digest = hashlib.sha256(name.encode()).hexdigest()
                path = ".".join(("_tagged", digest[:3], digest[3:6], name.replace(".", "_DOT_")))
            self.leaves[path] = name
            parts = path.split(".")
            self.branches.update(".".join(parts[:n]) for n in range(1, len(parts)))

    def find(self, pattern):
        """(path, is a leaf) of each node that matches. As for graphite-web, dots at the ends match nothing;
        those behind are repeated."""
        dots = "." * (len(pattern) - len(pattern.rstrip(".")))
        pattern = pattern.strip(".")
        if pattern in self.tagged:
            return [(pattern, True)]
        matches = matcher(pattern)
        nodes = [(path + dots, True) for path in self.leaves if matches(path)]
        nodes += [(path + dots, False) for path in self.branches if matches(path)]
        return sorted(nodes)

    def lookup(self, expression):
        """Path and series of each leaf that a target of a render request means."""
        query = re.fullmatch(r"\s*seriesByTag\s*\((.*)\)\s*", expression, re.S)
        if query:
            specs = [a or b for a, b in re.findall(r'"([^"]*)"|\'([^\']*)\'', query.group(1))]
            return [(name, self.series[name]) for name in self.find_tagged(specs) if name in self.series]
        paths = [path for path, leaf in self.find(expression) if leaf]
        return [(path, self.series[self.leaves.get(path.rstrip("."), path)]) for path in paths]

    def find_tagged(self, specs, bounded=True):
        """Names of the series with such tags, sorted. `bounded`: a condition must not hold for an absent tag."""
        conditions = [condition(spec) for spec in specs]
        if bounded and all(holds("") for _, holds in conditions):
            raise BadRequest("At least one tagspec must not match the empty string")
        return sorted(name for name, tags in self.tagged.items()
                      if all(holds(tags.get(tag, "")) for tag, holds in conditions))


def parsed(name):
    """The tags of a name in either spelling. Raises BadRequest."""
    metric, _, rest = name.partition(";")
    pairs = [part.partition("=") for part in rest.split(";")] if rest else []
    if name.endswith("}") and "{" in name:
        metric, _, rest = name[:-1].partition("{")
        pairs = [(tag, "=", value) for tag, value in re.findall(r'([^=,]+)="([^"]*)",?', rest)]
    if not metric:
        raise BadRequest(f"Cannot parse path {name}, no metric found")
    tags = {"name": metric.lstrip("~")}
    for tag, equals, value in pairs:
        if not equals or not tag:
            raise BadRequest(f"Cannot parse path {name}, invalid segment {tag}{equals}{value}")
        if not value or value.startswith("~") or re.search("[;!^]", tag):
            raise BadRequest(f"Tag {tag} or its value {value} is not allowed")
        tags[tag] = value
    return tags


def canonical(tags):
    return ";".join([tags["name"]] + [f"{tag}={tags[tag]}" for tag in sorted(tags) if tag != "name"])


def condition(spec):
    """The tag of an expression such as `dc=~east.*`, and what its value must satisfy; an absent one is empty."""
    match = re.fullmatch(r"([^;!=]+)(!?=~?)([^;]*)", spec)
    if not match:
        raise BadRequest(f"Invalid tagspec {spec}")
    tag, operator, wanted = match.groups()
    if operator.endswith("~"):
        regex = re.compile(wanted)
        return tag, (lambda v: not regex.match(v)) if operator[0] == "!" else lambda v: bool(regex.match(v))
    return tag, (lambda v: v != wanted) if operator[0] == "!" else lambda v: v == wanted


def matcher(pattern):
    """Whether a whole path matches a pattern, braces expanded, stars within one part of the path."""
    plain = pattern.replace("\\.", ".")
    regexes = [re.compile(r"\.".join(part_regex(part) for part in one.split("."))) for one in expanded(plain)]
    return lambda path: any(regex.fullmatch(path) for regex in regexes)


def part_regex(part):
    if part == "**":
        return ".+"
    regex = fnmatch.translate(re.sub(r"\\(.)", r"[\1]", part))
    regex = re.fullmatch(r"\(\?s:(.*)\)\\[Zz]", regex, re.S).group(1)
    return re.sub(r"(?<!\\)\.\*", "[^.]*", regex) if "*" in part else regex


def expanded(pattern):
    braces = re.search(r"(?<!\\)\{([^{}]*)(?<!\\)\}", pattern)
    if not braces:
        return [pattern]
    head, tail = pattern[:braces.start()], pattern[braces.end():]
    return [one for middle in braces.group(1).split(",") for one in expanded(head + middle + tail)]


def points(series, since, until):
    """The points after `since` up to `until`, in the storage's grid, nulls where there are none."""
    step = series["step"]
    start, end = since - since % step + step, until - until % step + step
    if start == end:
        end += step
    first, last = (start - series["start"]) // step, (end - series["start"]) // step
    values = series["values"]
    inside = values[max(first, 0):max(last, 0)]
    before = [None] * min(max(-first, 0), last - first)
    return start, end, before + inside + [None] * (last - first - len(before) - len(inside))


class Backend(http.server.ThreadingHTTPServer):
    """Listens on `url` until `close`. `requests` counts by path."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.store, self.requests = Store(), collections.Counter()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def close(self):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def log_message(self, *_):
        pass

    def do_POST(self):
        self.do_GET()

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        params = urllib.parse.parse_qs(f"{url.query}&{body}", keep_blank_values=True)
        path = url.path.rstrip("/")
        self.server.requests[path] += 1
        try:
            status, answer = 200, self.answer(path, params)
        except BadRequest as error:
            status, answer = 400, str(error)
        encoding = params.get("format", ["json"])[-1]
        if status == 200 and encoding == "pickle":
            kind, body = "application/pickle", pickle.dumps(answer, protocol=2)
        elif status == 200 and encoding == "msgpack":
            kind, body = "application/x-msgpack", msgpack.packb(answer)
        else:
            kind, body = "application/json", json.dumps({"error": answer} if status == 400 else answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer(self, path, params):
        store, one = self.server.store, lambda name, default="": params.get(name, [default])[-1]
        listed = params.get("path", []) + params.get("path[]", [])
        specs = params.get("expr", []) + params.get("expr[]", [])
        limit = int(one("limit", "0")) or None
        if path == "/render":
            return self.render(params["target"], int(one("from")), int(one("until")))
        if path == "/metrics/find":
            return [self.node(*node) for node in store.find(one("query"))]
        if path == "/metrics/index.json":
            return sorted(store.leaves)
        if path in ("/tags/tagSeries", "/tags/tagMultiSeries"):
            tags = [parsed(name) for name in listed]
            names = [canonical(one) for one in tags]
            store.tagged.update(zip(names, tags))
            return names[0] if path == "/tags/tagSeries" else names
        if path == "/tags/delSeries":
            for name in listed:
                store.tagged.pop(canonical(parsed(name)), None)
            return True
        if path == "/tags/findSeries":
            return store.find_tagged(specs)
        chosen = store.find_tagged(specs, bounded=False) if specs else sorted(store.tagged)
        tags = [store.tagged[name] for name in chosen]
        if path == "/tags/autoComplete/tags":
            used = {condition(spec)[0] for spec in specs}
            prefix = one("tagPrefix")
            return sorted({tag for t in tags for tag in t if tag.startswith(prefix)} - used)[:limit or 100]
        if path == "/tags/autoComplete/values":
            tag, prefix = one("tag"), one("valuePrefix")
            return sorted({t[tag] for t in tags if tag in t and t[tag].startswith(prefix)})[:limit or 100]
        keep = re.compile(one("filter"))
        if path == "/tags":
            names = sorted(tag for tag in {tag for t in tags for tag in t} if keep.match(tag))
            return [{"id": n, "tag": tag} for n, tag in enumerate(names[:limit])]
        if path.startswith("/tags/"):
            tag = urllib.parse.unquote(path[len("/tags/"):])
            counts = collections.Counter(t[tag] for t in tags if tag in t)
            if not counts:
                return None
            values = [value for value in sorted(counts) if keep.match(value)][:limit]
            return {"id": 0, "tag": tag, "values": [{"id": 0, "value": v, "count": counts[v]} for v in values]}
        raise BadRequest(f"there is no {path} here")

    def render(self, targets, since, until):
        answer = []
        for target in targets:
            for path, series in self.server.store.lookup(target):
                start, end, values = points(series, since, until)
                answer.append({
                    "name": path, "pathExpression": target, "start": start, "end": end, "step": series["step"],
                    "values": values, "valuesPerPoint": 1, "consolidationFunc": "average", "xFilesFactor": 0.0})
        return answer

    def node(self, path, leaf):
        if not leaf:
            return {"path": path, "is_leaf": False}
        series = self.server.store.series[self.server.store.leaves.get(path, path)]
        last = series["start"] + (len(series["values"]) - 1) * series["step"]
        return {"path": path, "is_leaf": True, "intervals": [(series["start"], last)]}
