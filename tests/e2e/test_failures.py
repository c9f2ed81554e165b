"""What clients see when real backends hold the same series with gaps, stop, and come back."""
import os
import shutil
import tempfile
import time
import unittest

import graphite_web
import servers
import trees
from servers import get, group

UNTIL = trees.NOW
FROM = trees.NOW - 7200
PARTIAL = "X-Plumbago-Partial"


def setUpModule():
    global east, west, folder
    folder = tempfile.mkdtemp(prefix="failures-")
    east = graphite_web.GraphiteWeb("east", folder)
    west = graphite_web.GraphiteWeb("west", folder)
    trees.east(east.whisper)
    trees.west(west.whisper)
    east.start()
    west.start()


def tearDownModule():
    servers.stop_all()


def render(server, *targets, **params):
    params = {"target": targets, "from": FROM, "until": UNTIL, "now": UNTIL, "format": "json", **params}
    return get(server.url + "/render", params)


def points(answer, name):
    (series,) = [one for one in answer.json() if one["target"] == name]
    return series["datapoints"]


def eventually(check, patience=15):
    """Whether `check` comes true while a backend's rest passes."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        if check():
            return True
        time.sleep(0.05)
    return False


class WhisperFiles(unittest.TestCase):
    """A tree of which some cannot be read, served by a user who is not allowed everything."""

    NOBODY = 65534

    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.mkdtemp(dir=folder)
        cls.tree = os.path.join(cls.home, "whisper")
        for name in ("apps.good", "apps.broken", "apps.closed", "lost.broken", "shut.away"):
            trees.write(cls.tree, name, trees.wave(3))
        with open(os.path.join(cls.tree, "apps/broken.wsp"), "r+b") as file:
            file.truncate(20)
        with open(os.path.join(cls.tree, "lost/broken.wsp"), "wb") as file:
            file.write(b"\0" * 400)
        # Whoever creates a file has not come further yet.
        open(os.path.join(cls.tree, "apps/new.wsp"), "wb").close()
        os.chmod(os.path.join(cls.tree, "apps/closed.wsp"), 0)
        os.chmod(os.path.join(cls.tree, "shut"), 0)
        binary = user = None
        if os.geteuid() == 0:
            user = cls.NOBODY
            binary = shutil.copy(servers.Plumbago.binary, cls.home)
            for place in (os.path.dirname(folder), folder, cls.home):
                os.chmod(place, 0o755)
        config = group("files", "whisper", path=cls.tree)
        cls.plumbago = servers.Plumbago("whisper-files", config, cls.home, binary, user).start()

    @classmethod
    def tearDownClass(cls):
        cls.plumbago.stop()
        os.chmod(os.path.join(cls.tree, "shut"), 0o755)

    def test_an_answer_without_files_that_cannot_be_read_says_so(self):
        # Twice: it must not be kept and then look whole.
        for _ in range(2):
            answer = render(self.plumbago, "apps.*")
            self.assertEqual((answer.status, [one["target"] for one in answer.json()]), (200, ["apps.good"]))
            self.assertIn("2 of 4 files could not be read", answer.headers[PARTIAL])
            self.assertIn("no-store", answer.headers["Cache-Control"])

    def test_other_answers_are_whole(self):
        for target in ("apps.good", "apps.{good,new}", "apps.g*"):
            answer = render(self.plumbago, target)
            self.assertEqual((answer.status, [one["target"] for one in answer.json()]), (200, ["apps.good"]))
            self.assertNotIn(PARTIAL, answer.headers)

    def test_an_answer_without_any_file_is_an_error(self):
        for target in ("lost.*", "lost.broken", "apps.closed", "shut.away"):
            answer = render(self.plumbago, target)
            self.assertEqual(answer.status, 502, target)
            self.assertEqual(answer.text.count("\n"), 1, answer.text)

    def test_a_folder_that_cannot_be_listed_is_not_empty(self):
        answer = render(self.plumbago, "*.*")
        self.assertEqual((answer.status, [one["target"] for one in answer.json()]), (200, ["apps.good"]))
        self.assertIn(PARTIAL, answer.headers)
        answer = get(self.plumbago.url + "/metrics/find", {"query": "shut.*"})
        self.assertEqual((answer.status, answer.json()), (200, []))
        self.assertIn("folders could not be listed", answer.headers[PARTIAL])


class WithBackends(unittest.TestCase):
    """Each test begins with both backends up, and has a Plumbago of its own over them."""

    def setUp(self):
        for server in (east, west):
            if not server.alive():
                server.start()
            server.forget()

    def over_both(self, head="", **settings):
        config = head + group("all", "graphite", [east.url, west.url], **settings)
        plumbago = servers.Plumbago(self.id().rsplit(".", 1)[-1], config, tempfile.mkdtemp(dir=folder)).start()
        self.addCleanup(plumbago.stop)
        return plumbago


class Replicas(WithBackends):
    def test_gaps_of_merged_replicas_are_filled_from_each_other(self):
        plumbago = self.over_both(kind="merged-replicas")
        answer = render(plumbago, "replicated.*")
        self.assertEqual(answer.status, 200)
        self.assertNotIn(PARTIAL, answer.headers)
        for name, wave in (("replicated.first", trees.wave(7)), ("replicated.second", trees.wave(9))):
            want = [[wave((UNTIL - t) // 60), t] for t in range(FROM + 60, UNTIL + 60, 60)]
            self.assertEqual(points(answer, name), want)
        self.assertEqual([one["target"] for one in answer.json()], ["replicated.first", "replicated.second"])

    def test_a_merged_replica_that_is_down_makes_the_answer_partial(self):
        plumbago = self.over_both(kind="merged-replicas")
        west.stop()
        answer = render(plumbago, "replicated.first")
        self.assertEqual(answer.status, 200)
        self.assertIn(west.url, answer.headers[PARTIAL])
        nulls = sum(value is None for value, _ in points(answer, "replicated.first"))
        self.assertEqual(nulls, 60)

    def test_another_replica_answers_for_one_that_is_down(self):
        plumbago = self.over_both(servers.UNCACHED, kind="replicas", rotate=False)
        self.assertEqual(render(plumbago, "replicated.second").status, 200)
        self.assertEqual((len(east.arrived("/render")), len(west.arrived("/render"))), (1, 0))
        east.stop()
        answer = render(plumbago, "replicated.first", "replicated.second")
        self.assertEqual(answer.status, 200)
        self.assertNotIn(PARTIAL, answer.headers, "one replica is enough")
        self.assertEqual(len(west.arrived("/render")), 1)
        (last, _) = points(answer, "replicated.second")[-1]
        self.assertEqual(last, trees.wave(9)(0), "the points that only the second one has")

    def test_replicas_take_turns(self):
        plumbago = self.over_both(servers.UNCACHED, kind="replicas")
        for _ in range(6):
            self.assertEqual(render(plumbago, "replicated.first").status, 200)
        self.assertEqual((len(east.arrived("/render")), len(west.arrived("/render"))), (3, 3))


class Outages(WithBackends):
    def test_a_partial_answer_is_marked_and_never_kept(self):
        plumbago = self.over_both()
        west.stop()
        for _ in range(2):
            answer = render(plumbago, "servers.*.cpu.user", cacheTimeout=600)
            self.assertEqual(answer.status, 200)
            self.assertEqual([one["target"][8:11] for one in answer.json()], ["web"] * 3)
            self.assertIn(west.url, answer.headers[PARTIAL])
            self.assertIn("no-store", answer.headers["Cache-Control"])
        west.start()
        whole = lambda: PARTIAL not in render(plumbago, "servers.*.cpu.user", cacheTimeout=600).headers
        self.assertTrue(eventually(whole), "it does not ask the backend that is back")
        answer = render(plumbago, "servers.*.cpu.user", cacheTimeout=600)
        self.assertEqual(len(answer.json()), 5)
        self.assertEqual(answer.headers["Cache-Control"], "max-age=600")

    def test_a_whole_answer_is_kept(self):
        plumbago = self.over_both()
        first = render(plumbago, "servers.*.cpu.user", cacheTimeout=600)
        east.stop()
        west.stop()
        second = render(plumbago, "servers.*.cpu.user", cacheTimeout=600)
        self.assertEqual((second.status, second.body), (200, first.body))
        self.assertNotIn(PARTIAL, second.headers)

    def test_find_over_one_of_two_is_marked_too(self):
        plumbago = self.over_both()
        west.stop()
        answer = get(plumbago.url + "/metrics/find", {"query": "only.*"})
        self.assertEqual([node["text"] for node in answer.json()], ["east"])
        self.assertIn(west.url, answer.headers[PARTIAL])
        west.start()
        both = lambda: len(get(plumbago.url + "/metrics/find", {"query": "only.*"}).json()) == 2
        self.assertTrue(eventually(both), "the partial answer was kept")

    def test_strict_makes_a_partial_answer_an_error(self):
        plumbago = self.over_both("strict = true\n")
        self.assertEqual(render(plumbago, "servers.*.cpu.user").status, 200)
        west.stop()
        answer = render(plumbago, "servers.*.cpu.user", noCache=1, **{"from": FROM - 60})
        self.assertEqual(answer.status, 502)
        self.assertTrue(answer.headers["Content-Type"].startswith("text/plain"))
        self.assertIn(west.url, answer.text.splitlines()[0])

    def test_without_any_backend_there_is_an_error_until_they_are_back(self):
        plumbago = self.over_both(servers.UNCACHED)
        east.stop()
        west.stop()
        for url in ("/render?target=servers.*.cpu.user&format=json", "/metrics/find?query=*"):
            with self.subTest(url):
                # Often enough that the backends are left in peace for a while; that is no other answer.
                for _ in range(4):
                    answer = get(plumbago.url + url)
                    self.assertEqual(answer.status, 502, answer)
                    self.assertTrue(answer.headers["Content-Type"].startswith("text/plain"))
        self.assertTrue(plumbago.alive())
        self.assertEqual(get(plumbago.url + "/healthz").status, 200)
        east.start()
        west.start()
        back = lambda: (a := render(plumbago, "servers.*.cpu.user")).status == 200 and PARTIAL not in a.headers
        self.assertTrue(eventually(back))
        self.assertEqual(len(render(plumbago, "servers.*.cpu.user").json()), 5)

    def test_what_does_not_exist_is_no_error(self):
        answer = render(self.over_both(), "no.such.series")
        self.assertEqual((answer.status, answer.json()), (200, []))
