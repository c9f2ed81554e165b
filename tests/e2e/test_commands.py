"""The commands, as a person types them."""
import json
import os
import re
import select
import subprocess
import tempfile
import time
import unittest

import servers
import trees
from servers import get, group


def plumbago(*arguments):
    command = [servers.Plumbago.binary, *arguments]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)


def written(text):
    path = os.path.join(tempfile.mkdtemp(), "plumbago.toml")
    with open(path, "w") as file:
        file.write(text)
    return path


class Demo(unittest.TestCase):
    def test_the_printed_urls_work(self):
        port = servers.free_port()
        command = [servers.Plumbago.binary, "demo", "--listen", f"127.0.0.1:{port}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            try:
                text = self.printed(process)
                urls = re.findall(r"http://\S+", text)
                self.assertGreaterEqual(len(urls), 3, text)
                for url in urls:
                    with self.subTest(url):
                        self.check(url)
                self.assertTrue(any("/metrics/find" in url for url in urls), urls)
                self.assertTrue(any("(" in url for url in urls), "a function is shown")
            finally:
                process.terminate()
                self.assertEqual(process.wait(20), 0, "SIGTERM ends it in good order")

    def printed(self, process):
        """All that it prints until it says how to end it."""
        text, until = "", time.monotonic() + servers.PATIENCE
        while "Ctrl-C" not in text:
            ready = select.select([process.stdout], [], [], max(0, until - time.monotonic()))[0]
            self.assertTrue(ready, f"it does not go on: {text}")
            part = os.read(process.stdout.fileno(), 65536)
            self.assertTrue(part, f"it ended: {text}")
            text += part.decode()
        return text

    def check(self, url):
        until = time.monotonic() + servers.PATIENCE
        while True:
            try:
                answer = get(url)
                break
            except ConnectionError:
                self.assertLess(time.monotonic(), until)
                time.sleep(0.05)
        self.assertEqual(answer.status, 200, answer)
        self.assertTrue(answer.body)
        if answer.headers["Content-Type"].startswith("application/json"):
            self.assertTrue(answer.json(), "an empty answer")
            if "/render" in url:
                for series in answer.json():
                    self.assertTrue(any(value is not None for value, _ in series["datapoints"]), series["target"])


class Check(unittest.TestCase):
    def test_a_good_file_passes(self):
        done = plumbago("check", "--config", written(group("a", "graphite", ["http://127.0.0.1:1"])))
        self.assertEqual(done.returncode, 0, done)

    def test_every_mistake_is_reported_with_its_place_and_advice(self):
        path = written('lisen = "127.0.0.1:80"\nrequest_timeout = "10 parsecs"\n\n' + group(
            "a", "graphit", ["http://127.0.0.1:1"], kind="shard", timout="1s"))
        done = plumbago("check", "--config", path)
        self.assertEqual(done.returncode, 1)
        said = done.stdout + done.stderr
        for part in ("lisen", "listen", "request_timeout", "graphit", "shard", "timout", "timeout"):
            self.assertIn(part, said)
        self.assertGreaterEqual(len(re.findall(rf"^{re.escape(path)}:\d+: ", said, re.M)), 5, said)

    def test_a_file_that_is_not_there(self):
        done = plumbago("check", "--config", "/does/not/exist.toml")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/does/not/exist.toml", done.stderr)

    def test_serve_refuses_what_check_refuses(self):
        done = plumbago("serve", "--config", written('nonsense = 1\n' + group("a", "graphite", ["http://127.0.0.1:1"])))
        self.assertEqual(done.returncode, 1)
        self.assertIn("nonsense", done.stderr)

    def test_the_example_files_are_right(self):
        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../config")
        for name in sorted(os.listdir(folder)):
            with self.subTest(name):
                done = plumbago("check", "--config", os.path.join(folder, name))
                self.assertEqual(done.returncode, 0, done)


class Render(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        files = tempfile.mkdtemp()
        trees.west(files)
        cls.config = written(group("west", "whisper", path=files))
        cls.range = ("--from", str(trees.NOW - 600), "--until", str(trees.NOW))

    def test_json_on_standard_output(self):
        done = plumbago("render", "--config", self.config, *self.range, "servers.*.cpu.user", "scale(only.west.load,2)")
        self.assertEqual(done.returncode, 0, done)
        series = json.loads(done.stdout)
        self.assertEqual([one["target"] for one in series],
                         ["servers.db01.cpu.user", "servers.db02.cpu.user", "scale(only.west.load,2)"])
        wave = trees.wave(43)
        want = [[2 * wave((trees.NOW - t) // 60), t] for t in range(trees.NOW - 540, trees.NOW + 60, 60)]
        self.assertEqual(series[2]["datapoints"], want)

    def test_csv_into_a_file(self):
        output = os.path.join(tempfile.mkdtemp(), "out.csv")
        done = plumbago("render", "--config", self.config, *self.range, "--format", "csv", "--output", output,
                        "only.west.load")
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        with open(output) as file:
            self.assertEqual(len(file.readlines()), 10)

    def test_a_wrong_target_is_pointed_at(self):
        done = plumbago("render", "--config", self.config, "sumSeries(a.b")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("^", done.stderr)


class Functions(unittest.TestCase):
    def test_the_list_as_json(self):
        done = plumbago("functions", "--json")
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("movingAverage", json.loads(done.stdout))

    def test_the_reference_as_markdown(self):
        done = plumbago("functions", "--markdown")
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("movingAverage", done.stdout)
