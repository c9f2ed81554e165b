"""Starts and stops servers: the Plumbago binary under test, and anything else that is a process.

Every server listens on a port that the system chose, has a log of its own, and is ended with all its children when the
tests end, however they end.
"""
import atexit
import http.client
import json
import os
import signal
import socket
import subprocess
import time
import urllib.parse

PATIENCE = 60
"""Seconds that a server may take to start. Nothing waits so long when all is well."""

_running = []


def free_port():
    """A port that nobody listens on now. The system hands out others first before it repeats one."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A process that listens on `port` of this machine. `ready` is a path that answers 200 once it is up."""

    logs = "."

    def __init__(self, name, command, port, ready, env=None, cwd=None, user=None):
        self.name, self.command, self.port, self.ready, self.user = name, command, port, ready, user
        self.env, self.cwd = dict(os.environ, **(env or {})), cwd
        self.process = None

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    @property
    def url(self):
        return f"http://{self.address}"

    @property
    def log(self):
        return os.path.join(self.logs, f"{self.name}.log")

    def start(self):
        other = {} if self.user is None else {"user": self.user, "group": self.user, "extra_groups": []}
        with open(self.log, "ab") as log:
            # A session of its own: its workers end with it.
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env, cwd=self.cwd,
                start_new_session=True, **other)
        _running.append(self)
        until = time.monotonic() + PATIENCE
        while True:
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended with {self.process.returncode}: {self.tail()}")
            try:
                if get(self.url + self.ready, timeout=5).status == 200:
                    return self
            except OSError:
                pass
            if time.monotonic() > until:
                self.stop()
                raise RuntimeError(f"{self.name} does not answer {self.ready}: {self.tail()}")
            time.sleep(0.02)

    def stop(self):
        if self.process is None:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, number)
            except ProcessLookupError:
                break
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                continue
        self.process.wait()
        self.process = None
        _running.remove(self)

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def tail(self):
        with open(self.log, errors="replace") as log:
            return "\n" + "".join(log.readlines()[-30:])


@atexit.register
def stop_all():
    for server in reversed(list(_running)):
        server.stop()


class Plumbago(Server):
    """The binary under test over a configuration."""

    binary = None

    def __init__(self, name, config, folder, binary=None, user=None):
        port = free_port()
        self.file = os.path.join(folder, f"{name}.toml")
        with open(self.file, "w") as file:
            file.write(config)
        command = [binary or self.binary, "serve", "--config", self.file, "--listen", f"127.0.0.1:{port}"]
        super().__init__(name, command, port, "/healthz", user=user)


def group(name, protocol, urls=(), kind="shards", **settings):
    """The text of a group of backends that notices quickly that one is down, and that it is back."""
    settings = {"retry_delay": "100ms", **settings}
    lines = ["[[group]]", f'name = "{name}"', f'kind = "{kind}"', f'protocol = "{protocol}"']
    if urls:
        lines.append(f"urls = {json.dumps(list(urls))}")
    lines += [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    return "\n".join(lines) + "\n"


UNCACHED = """
[cache]
series_size = 0
find_size = 0
response_size = 0
"""
"""Every request of a client reaches the backends."""


class Answer:
    """A whole answer to one request."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def text(self):
        return self.body.decode("utf-8", "replace")

    def json(self):
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise AssertionError(f"not JSON ({error}): {self.status} {self.text[:500]}") from None

    def __repr__(self):
        return f"{self.status} {self.text[:300]!r}"


def request(method, url, body=None, headers=None, timeout=60):
    """One request, taken as it is: no redirects, no errors for statuses."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)
    try:
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return Answer(answer.status, answer.headers, answer.read())
    except http.client.HTTPException as error:
        raise ConnectionError(f"{method} {url[:200]}: {error!r}") from error
    finally:
        connection.close()


def get(url, params=None, **options):
    """A GET with `params`, pairs or a dict whose values may be lists."""
    if params:
        url += "?" + urllib.parse.urlencode(params, doseq=True)
    return request("GET", url, **options)


def post(url, params, **options):
    """A POST of a form."""
    headers = {"Content-Type": "application/x-www-form-urlencoded", **options.pop("headers", {})}
    return request("POST", url, urllib.parse.urlencode(params, doseq=True), headers, **options)
