"""Plumbago as a backend: of a real graphite-web that has it as a cluster server, and of another Plumbago."""
import tempfile
import unittest

import graphite_web
import servers
import trees
from servers import get, group

UNTIL = trees.NOW
FROM = trees.NOW - 7200

TARGETS = [
    "servers.*.cpu.user",
    "apps.*.*",
    "only.west.load",
    "sumSeries(servers.*.cpu.{user,system})",
    "aliasByNode(movingAverage(servers.web*.cpu.user,'10min'),1)",
    "timeShift(only.east.load,'1h')",
    "seriesByTag('name=disk.used')",
    "aliasByTags(seriesByTag('name=disk.used','dc=east'),'host')",
    "no.such.series",
]


def setUpModule():
    global lower
    folder = tempfile.mkdtemp(prefix="tiers-")
    east = graphite_web.GraphiteWeb("east", folder)
    trees.east(east.whisper)
    east.start()
    east.tag(trees.TAGGED["east"])
    files = tempfile.mkdtemp(dir=folder)
    trees.west(files)
    backends = group("east", "graphite", [east.url]) + group("west", "whisper", path=files)
    lower = servers.Plumbago("lower", servers.UNCACHED + backends, folder).start()


def tearDownModule():
    servers.stop_all()


def rendered(server, target, **params):
    params = {"target": target, "from": FROM, "until": UNTIL, "now": UNTIL, "format": "json", **params}
    answer = get(server.url + "/render", params)
    assert answer.status == 200, (target, answer)
    return answer.json()


def leaves(server, query):
    answer = get(server.url + "/metrics/find", {"query": query, "format": "completer"})
    assert answer.status == 200, answer
    return sorted((node["path"], str(node["is_leaf"])) for node in answer.json()["metrics"])


class Tier:
    """What lies above must answer as what lies below."""

    targets = TARGETS

    def test_render(self):
        for target in self.targets:
            with self.subTest(target):
                want = rendered(lower, target)
                self.assertEqual(rendered(self.upper, target), want)
                self.assertTrue(want or target == "no.such.series")

    def test_render_of_the_last_points(self):
        params = {"from": "-30min", "until": "now", "maxDataPoints": 7}
        self.assertEqual(rendered(self.upper, "servers.*.cpu.user", **params),
                         rendered(lower, "servers.*.cpu.user", **params))

    def test_find(self):
        for query in ("*", "servers.*", "servers.*.cpu.", "apps.c*", "no.such.*"):
            with self.subTest(query):
                self.assertEqual(leaves(self.upper, query), leaves(lower, query))
        self.assertIn(("servers.web03.", "0"), leaves(self.upper, "servers.*"))


class GraphiteWebOverPlumbago(Tier, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.upper = graphite_web.GraphiteWeb("frontend", tempfile.mkdtemp(), cluster=[lower.address]).start()

    @classmethod
    def tearDownClass(cls):
        cls.upper.stop()

    def test_tag_autocompletion(self):
        values = get(self.upper.url + "/tags/autoComplete/values", {"tag": "dc"}).json()
        self.assertEqual(values, ["east", "west"])


class PlumbagoOverPlumbago(Tier):
    protocol = None

    @classmethod
    def setUpClass(cls):
        config = servers.UNCACHED + group("lower", cls.protocol, [lower.url])
        cls.upper = servers.Plumbago(f"upper-{cls.protocol}", config, tempfile.mkdtemp()).start()

    @classmethod
    def tearDownClass(cls):
        cls.upper.stop()


class OverMsgpack(PlumbagoOverPlumbago, unittest.TestCase):
    protocol = "graphite"


class OverPickle(PlumbagoOverPlumbago, unittest.TestCase):
    protocol = "graphite-pickle"


class OverOldPickle(PlumbagoOverPlumbago, unittest.TestCase):
    protocol = "graphite-0.9"
    # There were no tags then, and such a backend is not asked for them.
    targets = [target for target in TARGETS if "seriesByTag" not in target]


class OverProtobuf2(PlumbagoOverPlumbago, unittest.TestCase):
    protocol = "carbonapi_v2_pb"


class OverProtobuf3(PlumbagoOverPlumbago, unittest.TestCase):
    protocol = "carbonapi_v3_pb"
