"""usage: python3 record.py FOLDER     (needs PyPI's whisper 1.1.10)

Makes small whisper files with the reference implementation and records what it was told to write and what it then
fetches: FOLDER/*.wsp and FOLDER/expected.json. Everything follows from the seed.
"""
import json
import os
import random
import sys

import whisper

FOLDER = sys.argv[1]
START = 1_700_000_000 - 1_700_000_000 % 3600
FILES = {
    # name: (archives, xFilesFactor, aggregation, seconds between points, share of gaps)
    "average": ([(10, 30), (60, 20), (300, 16)], 0.5, "average", 10, 0.3),
    "sum": ([(10, 12), (60, 30)], 0.0, "sum", 10, 0.5),
    "last": ([(1, 60), (60, 30)], 0.2, "last", 1, 0.7),
    "max": ([(10, 6), (60, 10), (120, 10)], 1.0, "max", 5, 0.1),
    "min": ([(10, 12), (60, 30)], 0.0, "min", 10, 0.6),
    "avg_zero": ([(10, 12), (60, 30)], 0.3, "avg_zero", 10, 0.5),
    "absmax": ([(10, 12), (60, 30)], 0.0, "absmax", 7, 0.5),
    "absmin": ([(10, 12), (60, 30)], 0.0, "absmin", 20, 0.2),
    "single": ([(60, 15)], 0.5, "average", 60, 0.2),
    "empty": ([(60, 15), (300, 12)], 0.5, "average", None, 0),
}

expected = {}
for name, (archives, xff, method, pace, gaps) in FILES.items():
    rng = random.Random(name)
    path = os.path.join(FOLDER, name + ".wsp")
    if os.path.exists(path):
        os.unlink(path)
    whisper.create(path, list(archives), xFilesFactor=xff, aggregationMethod=method)
    longest = max(s * p for s, p in archives)
    now = START + rng.randrange(100)
    writes = []
    # Long enough for every ring to wrap around twice.
    while pace and now < START + 2.3 * longest:
        span = rng.randrange(1, archives[0][0] * archives[0][1] * 2)
        times = range(now, now + span, pace)
        points = [(t, round(rng.uniform(-50, 100), 2)) for t in times if rng.random() >= gaps]
        if rng.random() < 0.1:
            now += longest // 3
        now += span
        rng.shuffle(points)
        if rng.random() < 0.1:
            points.append((now + 5, 1.25))
        if points:
            whisper.update_many(path, points, now=now)
            writes.append({"now": now, "points": points})
    fetches = []
    for i in range(80):
        at = now + rng.choice([0, 0, 0, 1, 17, 60, 333, longest // 2, -100])
        reach = rng.choice([s * p for s, p in archives])
        age = rng.choice([1, 30, rng.randrange(1, reach), rng.randrange(1, reach), reach, reach + 1, 3 * longest])
        start = at - age + rng.choice([0, 0, 1, 59])
        until = min(start + rng.choice([1, 9, 60, rng.randrange(1, reach), age, 2 * longest]), at + 400)
        if i == 0:
            start, until = at + 10, at + 20
        if until <= start:
            continue
        answer = whisper.fetch(path, start, until, now=at)
        fetches.append([start, until, at, answer and {"info": answer[0], "values": answer[1]}])
    expected[name] = {
        "archives": archives, "xff": xff, "method": method, "writes": writes, "fetches": fetches,
    }

with open(os.path.join(FOLDER, "expected.json"), "w") as f:
    json.dump(expected, f, separators=(",", ":"))
    f.write("\n")
