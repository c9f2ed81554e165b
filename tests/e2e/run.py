"""Runs the end-to-end tests over a built binary; `bash tests/run.sh` calls it.

The last line is `N passed, N failed`. There is no third kind: a test that cannot run has failed.
"""
import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
import unittest

import servers


class Result(unittest.TestResult):
    """A line a test, its trouble right below it."""

    def __init__(self):
        super().__init__()
        self.passed = 0
        self.bad = set()

    def startTest(self, test):
        super().startTest(test)
        self.started = time.monotonic()

    def _line(self, test, word):
        print(f"   {word} {time.monotonic() - getattr(self, 'started', time.monotonic()):6.2f} s  {test.id()}", flush=True)

    @property
    def failed(self):
        return len(self.bad)

    def _fail(self, test, error):
        # Each test once, however many of its parts fail.
        self.bad.add(getattr(test, "test_case", test).id())
        self._line(test, "FAIL")
        trouble = self._exc_info_to_string(error, test).rstrip()
        if len(trouble) > 8000:
            trouble = trouble[:4000] + "\n…\n" + trouble[-4000:]
        print("      " + trouble.replace("\n", "\n      "), flush=True)

    def addSuccess(self, test):
        self.passed += 1
        self._line(test, "ok  ")

    def addError(self, test, error):
        self._fail(test, error)

    def addFailure(self, test, error):
        self._fail(test, error)

    def addSubTest(self, test, subtest, error):
        if error is not None:
            self._fail(subtest, error)

    def addSkip(self, test, reason):
        self.bad.add(test.id())
        self._line(test, f"SKIPPED ({reason}), which counts as a failure:")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    parser.add_argument("--logs", required=True)
    parser.add_argument("names", nargs="*", help="run only the tests whose id contains one of these")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))

    shutil.rmtree(options.logs, ignore_errors=True)
    os.makedirs(options.logs)
    servers.Server.logs = os.path.abspath(options.logs)
    servers.Plumbago.binary = os.path.abspath(options.binary)

    here = os.path.dirname(os.path.abspath(__file__))
    found = unittest.TestLoader().discover(here, "test_*.py", top_level_dir=here)
    suite = unittest.TestSuite(t for t in flat(found) if any(n in t.id() for n in options.names or [""]))
    result = Result()
    with tempfile.TemporaryDirectory(prefix="plumbago-e2e-") as folder:
        tempfile.tempdir = folder
        try:
            suite.run(result)
        finally:
            servers.stop_all()
            tempfile.tempdir = None
    if result.passed + result.failed == 0:
        print("   no test has such a name")
        return 1
    print(f"{result.passed} passed, {result.failed} failed")
    return 1 if result.failed else 0


def flat(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flat(test)
        else:
            yield test


if __name__ == "__main__":
    sys.exit(main())
