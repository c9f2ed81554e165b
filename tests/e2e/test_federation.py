"""Plumbago over two real graphite-web servers that hold different series."""
import tempfile
import unittest

import graphite_web
import servers
import trees
from servers import get, group, post

UNTIL = trees.NOW
FROM = trees.NOW - 7200


def setUpModule():
    global east, west
    folder = tempfile.mkdtemp(prefix="federation-")
    east = graphite_web.GraphiteWeb("east", folder)
    west = graphite_web.GraphiteWeb("west", folder)
    trees.east(east.whisper)
    trees.west(west.whisper)
    for server in (east, west):
        server.start()
        server.tag(trees.TAGGED[server.name])


def tearDownModule():
    servers.stop_all()


def rendered(server, *targets, **params):
    params = {"target": targets, "from": FROM, "until": UNTIL, "now": UNTIL, "format": "json", **params}
    answer = get(server.url + "/render", {name: value for name, value in params.items() if value is not None})
    if answer.status != 200:
        raise AssertionError(f"{targets}: {answer}")
    return answer.json()


def names(series):
    return [one["target"] for one in series]


def found(server, query, **params):
    answer = get(server.url + "/metrics/find", {"query": query, "format": "completer", **params})
    assert answer.status == 200, answer
    return answer.json()["metrics"]


class Speaking:
    """Tests for each protocol that graphite-web speaks."""

    protocol = None

    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp()
        backends = group("all", cls.protocol, [east.url, west.url])
        cls.plumbago = servers.Plumbago(cls.protocol, servers.UNCACHED + backends, folder).start()

    @classmethod
    def tearDownClass(cls):
        cls.plumbago.stop()

    def setUp(self):
        east.forget()
        west.forget()

    def count(self, path="/render"):
        return len(east.arrived(path)), len(west.arrived(path))

    # What one server alone has is answered as that server answers it.

    def same(self, server, *targets, **params):
        want = rendered(server, *targets, **params)
        got = rendered(self.plumbago, *targets, **params)
        self.assertTrue(want and any(one["datapoints"] for one in want), f"{targets}: nothing to compare")
        self.assertEqual(names(want), names(got), targets)
        for a, b in zip(want, got):
            self.assertEqual(a["tags"], b["tags"], targets)
            self.assertEqual([t for _, t in a["datapoints"]], [t for _, t in b["datapoints"]], targets)
            for (v, t), (w, _) in zip(a["datapoints"], b["datapoints"]):
                if v is None or w is None:
                    self.assertEqual(v, w, f"{targets} at {t}")
                else:
                    self.assertAlmostEqual(v, w, delta=1e-9 * max(1, abs(v)), msg=f"{targets} at {t}")

    def test_paths_and_globs_are_answered_as_by_their_server(self):
        for target in ("only.east.load", "servers.web*.cpu.user", "servers.web0[12].cpu.{user,system}", "servers.web??.*"):
            with self.subTest(target):
                self.same(east, target)
        for target in ("only.west.load", "servers.db*.cpu.*", "apps.cart.*", "apps.shop.orders"):
            with self.subTest(target):
                self.same(west, target)

    def test_functions_are_answered_as_by_their_server(self):
        for target in (
            "sumSeries(servers.web*.cpu.user)",
            "averageSeries(servers.web*.cpu.*)",
            "groupByNode(servers.web*.cpu.*,1,'max')",
            "aliasByNode(servers.web*.cpu.user,1,3)",
            "alias(scale(only.east.load,0.5),'half')",
            "aliasSub(servers.web01.cpu.user,'^.*web(..).*$','\\1')",
            "asPercent(servers.web*.cpu.user)",
            "perSecond(servers.web*.requests)",
            "nonNegativeDerivative(servers.web02.requests)",
            "summarize(servers.web01.cpu.user,'10min','max')",
            "movingAverage(servers.web*.cpu.user,5)",
            "movingAverage(servers.web*.cpu.user,'10min')",
            "timeShift(servers.web01.cpu.user,'1h')",
            "timeStack(servers.web01.cpu.user,'1h',0,2)",
            "keepLastValue(servers.web01.cpu.system)",
            "highestMax(servers.web*.cpu.user,2)",
            "sortByTotal(servers.web*.cpu.user)",
            "diffSeries(servers.web01.cpu.user,servers.web02.cpu.user)",
            "divideSeries(servers.web01.cpu.user,only.east.load)",
            "applyByNode(servers.web*.cpu.user,1,'maxSeries(%.cpu.*)')",
            "group(only.east.load,servers.web03.requests)",
            "constantLine(5)",
        ):
            with self.subTest(target):
                self.same(east, target)

    def test_several_targets_keep_their_order(self):
        self.same(east, "only.east.load", "servers.web01.cpu.user", "scale(only.east.load,2)", "only.east.load")

    def test_points_are_consolidated_as_by_their_server(self):
        for points in (1, 10, 25, 119, 500):
            with self.subTest(points):
                self.same(east, "servers.web*.cpu.user", maxDataPoints=points)
                self.same(east, "consolidateBy(servers.web*.cpu.system,'max')", maxDataPoints=points)

    def test_a_coarse_archive_is_read_for_old_data(self):
        self.same(east, "servers.web01.cpu.user", **{"from": UNTIL - 5 * 86400, "until": UNTIL - 3600})

    def test_tags_are_answered_as_by_their_server(self):
        self.same(east, "seriesByTag('name=disk.used','dc=east')")
        self.same(east, "aliasByTags(seriesByTag('name=disk.used','host=~[ab]'),'dc','host')")
        self.same(west, "seriesByTag('name=disk.used','dc=west')")

    # Both together.

    def test_a_glob_over_both_is_their_union(self):
        got = rendered(self.plumbago, "servers.*.cpu.user")
        want = rendered(east, "servers.*.cpu.user") + rendered(west, "servers.*.cpu.user")
        self.assertEqual(got, sorted(want, key=lambda one: one["target"]))
        self.assertEqual(len(got), 5)

    def test_functions_compute_over_the_union(self):
        (total,) = rendered(self.plumbago, "sumSeries(servers.*.cpu.user)")
        parts = rendered(self.plumbago, "servers.*.cpu.user")
        sums = [sum(p[0] for p in points) for points in zip(*(one["datapoints"] for one in parts))]
        for (value, _), want in zip(total["datapoints"], sums):
            self.assertAlmostEqual(value, want, places=6)

    def test_tags_of_both(self):
        got = rendered(self.plumbago, "seriesByTag('name=disk.used')")
        self.assertEqual(names(got), ["disk.used;dc=east;host=a", "disk.used;dc=east;host=b", "disk.used;dc=west;host=c"])

    def test_nothing_matched_is_an_empty_list(self):
        self.assertEqual(rendered(self.plumbago, "no.such.*", "sumSeries(nor.this)"), [])

    def test_find_is_the_union(self):
        paths = [node["path"] for node in found(self.plumbago, "servers.")]
        self.assertEqual(paths, [f"servers.{host}." for host in ("db01", "db02", "web01", "web02", "web03")])
        self.assertEqual(self.count("/metrics/find"), (1, 1))

    def test_a_node_that_is_a_branch_here_and_a_leaf_there_is_both(self):
        nodes = get(self.plumbago.url + "/metrics/find", {"query": "apps.*", "format": "treejson"}).json()
        kinds = sorted((node["text"], node["leaf"]) for node in nodes)
        expanded = get(self.plumbago.url + "/metrics/expand", {"query": "apps.*"}).json()["results"]
        self.assertEqual(expanded, ["apps.cart", "apps.shop"])
        self.assertIn(("shop", 0), kinds)
        listed = get(self.plumbago.url + "/metrics/find", {"query": "apps.cart", "format": "json"}).json()
        self.assertEqual(sorted(node["is_leaf"] for node in listed), [False, True])
        self.assertEqual(names(rendered(self.plumbago, "apps.cart", "apps.cart.*")), ["apps.cart", "apps.cart.items"])

    def test_tag_lookups_are_united(self):
        def tags(path, **params):
            return get(self.plumbago.url + "/tags" + path, params).json()

        self.assertEqual(tags("/autoComplete/values", tag="dc"), ["east", "west"])
        self.assertEqual(tags("/autoComplete/tags", tagPrefix="ho"), ["host"])
        self.assertEqual(len(tags("/findSeries", expr="name=disk.used")), 3)

    # One request to each backend for each range.

    def test_six_targets_are_one_request_to_each_backend(self):
        targets = [f"alias(maxSeries(servers.*.cpu.{kind}),'{kind}')" for kind in ("user", "system")]
        targets += ["scale(only.*.load,0.01)", "apps.cart", "apps.*.*", "servers.*.cpu.user"]
        rendered(self.plumbago, *targets)
        self.assertEqual(self.count(), (1, 1))
        ((_, asked),) = east.arrived("/render")
        patterns = {"servers.*.cpu.user", "servers.*.cpu.system", "only.*.load", "apps.cart", "apps.*.*"}
        self.assertEqual(set(asked["target"]), patterns)
        self.assertEqual(len(asked["target"]), len(patterns), "each pattern once")

    def test_one_request_for_each_distinct_range(self):
        for targets, ranges in (
            (["servers.*.cpu.user", "timeShift(servers.*.cpu.user,'1h')"], 2),
            (["movingAverage(servers.*.cpu.user,'10min')"], 1),
            (["movingAverage(servers.*.cpu.user,'10min')", "movingMax(only.*.load,'10min')", "apps.cart"], 2),
            (["servers.*.cpu.user|timeShift('1h')", "timeShift(seriesList=only.*.load,timeShift='1h')"], 1),
            (["timeStack(only.*.load,'1h',0,3)"], 3),
        ):
            with self.subTest(targets):
                self.setUp()
                rendered(self.plumbago, *targets)
                self.assertEqual(self.count(), (ranges, ranges), east.arrived())

    def test_what_needs_a_second_look_takes_two_rounds(self):
        for target in ("applyByNode(servers.*.cpu.user,1,'maxSeries(%.cpu.*)')",
                       "useSeriesAbove(servers.*.cpu.user,10,'user','system')"):
            with self.subTest(target):
                self.setUp()
                self.assertTrue(rendered(self.plumbago, target))
                self.assertTrue(all(1 <= n <= 2 for n in self.count()), self.count())

    def test_a_window_in_points_is_learnt_once(self):
        targets = ["movingMedian(servers.*.cpu.user,7)", "movingAverage(servers.*.cpu.system,7)"]
        rendered(self.plumbago, *targets)
        self.assertTrue(all(n <= 2 for n in self.count()), self.count())
        self.setUp()
        rendered(self.plumbago, *targets)
        # One round: the range itself, which proves the remembered step, and the one that reaches back.
        self.assertEqual(self.count(), (2, 2), "the step is remembered")

    def test_many_long_patterns_are_sent_by_post(self):
        targets = [f"servers.{{web{n:04}{'x' * 200},web01}}.cpu.user" for n in range(60)]
        got = rendered_by_post(self.plumbago, *targets)
        self.assertEqual(names(got), ["servers.web01.cpu.user"] * 60)
        self.assertEqual(self.count(), (1, 1))


def rendered_by_post(server, *targets, **params):
    params = {"target": targets, "from": FROM, "until": UNTIL, "now": UNTIL, "format": "json", **params}
    answer = post(server.url + "/render", params)
    assert answer.status == 200, answer
    return answer.json()


class InMsgpack(Speaking, unittest.TestCase):
    protocol = "graphite"


class InPickle(Speaking, unittest.TestCase):
    protocol = "graphite-pickle"
