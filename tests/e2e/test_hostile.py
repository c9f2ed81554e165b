"""Clients that send nonsense or hang up, and backends that never answer."""
import random
import socket
import tempfile
import threading
import time
import unittest

import servers
import trees
from servers import get, group, post


class NeverAnswers:
    """A backend that reads requests, says nothing, and counts the callers that went away."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.changed = threading.Condition()
        self.asked = self.gone = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self._hold, args=(connection,), daemon=True).start()

    def _hold(self, connection):
        with connection:
            asked = False
            while True:
                try:
                    data = connection.recv(65536)
                except OSError:
                    data = b""
                with self.changed:
                    if data and not asked:
                        asked = True
                        self.asked += 1
                    if not data and asked:
                        self.gone += 1
                    self.changed.notify_all()
                if not data:
                    return

    def wait(self, condition, patience=10):
        with self.changed:
            return self.changed.wait_for(lambda: condition(self), patience)

    def close(self):
        self.socket.close()


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp()
        trees.west(folder)
        cls.plumbago = servers.Plumbago("hostile", servers.UNCACHED + group("files", "whisper", path=folder), folder)
        cls.plumbago.start()
        cls.process = cls.plumbago.process

    @classmethod
    def tearDownClass(cls):
        cls.plumbago.stop()

    def refused(self, target):
        answer = post(self.plumbago.url + "/render", {"target": target, "format": "json"})
        self.assertEqual(answer.status, 400, f"{target[:60]!r}: {answer}")
        self.assertTrue(answer.headers["Content-Type"].startswith("text/plain"))
        self.assertLess(len(answer.body), 10_000)
        self.still_works()

    def still_works(self):
        self.assertIs(self.plumbago.process, self.process)
        self.assertTrue(self.plumbago.alive())
        answer = get(self.plumbago.url + "/render", {
            "target": "only.west.load", "from": trees.NOW - 600, "until": trees.NOW, "format": "json"})
        self.assertEqual(len(answer.json()), 1)

    def test_ten_thousand_nested_calls(self):
        self.refused("absolute(" * 10_000 + "a" + ")" * 10_000)
        # Also below the limit of a target's length.
        self.refused("abs(" * 10_000 + "a" + ")" * 10_000)
        self.refused("a" + "|abs()" * 10_000)
        self.refused("{" * 10_000)

    def test_a_megabyte_of_parentheses(self):
        for text in ("(", ")", "()", "f(", "template("):
            self.refused(text * (1_000_000 // len(text)))

    def test_random_bytes(self):
        chance = random.Random(20231114)
        for length in (1, 10, 100, 1000, 20_000):
            for _ in range(10):
                noise = bytes(chance.randrange(256) for _ in range(length))
                # No path, so that it is refused whatever comes before.
                body = b"format=json&target=f(" + "".join(f"%{byte:02x}" for byte in noise).encode()
                answer = servers.request("POST", self.plumbago.url + "/render", body,
                                         {"Content-Type": "application/x-www-form-urlencoded"})
                self.assertEqual(answer.status, 400, f"{noise!r}: {answer}")
        self.still_works()

    def test_random_bytes_instead_of_a_request(self):
        chance = random.Random(7)
        for length in (1, 100, 100_000):
            with socket.create_connection(("127.0.0.1", self.plumbago.port), timeout=10) as connection:
                try:
                    connection.sendall(bytes(chance.randrange(256) for _ in range(length)))
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(65536):
                        pass
                except ConnectionError:
                    pass
        self.still_works()

    def test_a_body_beyond_the_limit(self):
        try:
            answer = post(self.plumbago.url + "/render", {"target": "a" * 20_000_000, "format": "json"})
            self.assertIn(answer.status, (400, 413))
        except OSError:
            pass  # The connection was closed before all was sent.
        self.still_works()

    def test_many_targets(self):
        answer = post(self.plumbago.url + "/render", {"target": ["only.west.load"] * 5000, "format": "json"})
        self.assertEqual(answer.status, 413)
        self.still_works()


class Silence(unittest.TestCase):
    def setUp(self):
        self.backend = NeverAnswers()
        self.addCleanup(self.backend.close)

    def over(self, head="", **settings):
        config = head + group("silent", "graphite", [self.backend.url], **settings)
        plumbago = servers.Plumbago(self.id().rsplit(".", 1)[-1], config, tempfile.mkdtemp()).start()
        self.addCleanup(plumbago.stop)
        return plumbago

    def test_a_client_that_hangs_up_ends_the_requests_to_the_backends(self):
        plumbago = self.over(timeout="60s")
        shifted = "/render?format=json&target=a.b&target=timeShift(a.b,'1d')"
        for path, requests in ((shifted, 2), ("/metrics/find?query=a.*", 1)):
            with self.subTest(path):
                before = self.backend.asked
                with socket.create_connection(("127.0.0.1", plumbago.port)) as client:
                    client.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                    self.assertTrue(self.backend.wait(lambda b: b.asked == before + requests), "the backend is not asked")
                    self.assertLess(self.backend.gone, self.backend.asked)
                    began = time.monotonic()
                self.assertTrue(self.backend.wait(lambda b: b.gone == b.asked), "the backend's request goes on")
                self.assertLess(time.monotonic() - began, 5)

    def test_a_backend_that_is_too_slow_is_a_timeout(self):
        plumbago = self.over(timeout="300ms")
        answer = get(plumbago.url + "/render?format=json&target=a.b")
        self.assertEqual(answer.status, 504, answer)
        self.assertTrue(self.backend.wait(lambda b: b.gone == b.asked))

    def test_a_request_has_a_deadline(self):
        plumbago = self.over('request_timeout = "300ms"\n', timeout="60s")
        began = time.monotonic()
        answer = get(plumbago.url + "/render?format=json&target=a.b")
        self.assertEqual(answer.status, 504, answer)
        self.assertLess(time.monotonic() - began, 5)
