"""Instances of the real graphite-web, each with its own storage folder, under gunicorn."""
import json
import os
import shutil
import subprocess
import sys
import urllib.parse

import servers

SETTINGS = """
SECRET_KEY = "not a secret"
STORAGE_DIR = CONF_DIR = {folder!r}
LOG_DIR = {logs!r}
WHISPER_DIR = {whisper!r}
STANDARD_DIRS = [WHISPER_DIR]
CARBONLINK_HOSTS = []
CLUSTER_SERVERS = {cluster!r}
REMOTE_RETRY_DELAY = 0.1
# Each answer is of now.
DEFAULT_CACHE_DURATION = FIND_CACHE_DURATION = TAGDB_CACHE_DURATION = 0
"""


class GraphiteWeb(servers.Server):
    """One instance. `cluster`: the addresses of the servers it is a frontend of."""

    def __init__(self, name, folder, cluster=()):
        self.folder = os.path.join(folder, name)
        self.whisper = os.path.join(self.folder, "whisper")
        self.arrivals = os.path.join(self.folder, "arrivals.jsonl")
        logs = os.path.join(self.folder, "log")
        for made in (self.whisper, logs):
            os.makedirs(made)
        settings = SETTINGS.format(folder=self.folder, logs=logs, whisper=self.whisper, cluster=list(cluster))
        with open(os.path.join(self.folder, f"settings_{name}.py"), "w") as file:
            file.write(settings)
        open(self.arrivals, "w").close()
        port = servers.free_port()
        here = os.path.dirname(os.path.abspath(__file__))
        env = {
            "PYTHONPATH": os.pathsep.join([self.folder, here]),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONWARNINGS": "ignore",
            "DJANGO_SETTINGS_MODULE": "graphite.settings",
            "GRAPHITE_SETTINGS_MODULE": f"settings_{name}",
            "ARRIVALS": self.arrivals,
        }
        command = [
            sys.executable, "-m", "gunicorn", "--bind", f"127.0.0.1:{port}", "--workers", "1", "--threads", "8",
            "--worker-class", "gthread", "--graceful-timeout", "1", "--worker-tmp-dir", self.folder,
            "counted_wsgi:application",
        ]
        super().__init__(name, command, port, "/version", env, self.folder)

    def start(self):
        database = os.path.join(self.folder, "graphite.db")
        if not os.path.exists(database):
            self._make(database)
        return super().start()

    def _make(self, database):
        """The tables are the same for all, and making them takes seconds: once, then copied."""
        template = os.path.join(os.path.dirname(self.folder), "template.db")
        if not os.path.exists(template):
            migrate = [sys.executable, "-m", "django", "migrate", "--run-syncdb", "-v", "0"]
            with open(self.log, "ab") as log:
                subprocess.run(migrate, check=True, env=self.env, stdout=log, stderr=log, timeout=300)
            shutil.copy(database, template)
        else:
            shutil.copy(template, database)

    def tag(self, paths):
        answer = servers.post(self.url + "/tags/tagMultiSeries", {"path": paths})
        assert answer.status == 200, answer

    def arrived(self, path=""):
        """The requests that came since `forget`, as (path, parameters); `path` narrows to those that begin so."""
        with open(self.arrivals) as file:
            arrived = [json.loads(line) for line in file]
        return [(p, urllib.parse.parse_qs(query)) for p, query in arrived if p.startswith(path)]

    def forget(self):
        os.truncate(self.arrivals, 0)
