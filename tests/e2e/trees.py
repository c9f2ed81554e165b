"""Whisper trees with known values, written by the real whisper module.

All times are relative to one moment, so that a run is the same as any other but for the date.
"""
import hashlib
import os
import time

import whisper

STEP = 60
NOW = int(time.time()) // 3600 * 3600
"""The last full hour: the time of the last point of every series. Requests give it as `until`."""

HOURS = 30


def write(root, name, value, archives=((STEP, HOURS * 60), (600, 1008)), only=lambda i: True):
    """A series whose point `i` minutes before NOW has `value(i)`, where `only(i)` says that there is one."""
    if ";" in name:
        digest = hashlib.sha256(name.encode()).hexdigest()
        place = os.path.join("_tagged", digest[:3], digest[3:6], name.replace(".", "_DOT_"))
    else:
        place = name.replace(".", "/")
    path = os.path.join(root, place + ".wsp")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    whisper.create(path, list(archives), xFilesFactor=0.5, aggregationMethod="average")
    points = [(NOW - i * STEP, float(value(i))) for i in range(HOURS * 60) if only(i)]
    whisper.update_many(path, points, now=NOW)


def wave(seed):
    """Whole and broken numbers, up and down, with a few resets: enough for every function to have something to do."""
    return lambda i: (i * seed) % 97 + i % 7 / 8


def counter(seed):
    return lambda i: (HOURS * 60 - i) * seed % 5000


def east(root):
    for n in (1, 2, 3):
        write(root, f"servers.web0{n}.cpu.user", wave(n + 3))
        write(root, f"servers.web0{n}.cpu.system", wave(n + 11), only=lambda i: i % 10 != 3)
        write(root, f"servers.web0{n}.requests", counter(n + 20))
    write(root, "apps.cart", wave(5))
    write(root, "only.east.load", wave(13))
    write(root, "replicated.first", wave(7), only=lambda i: i // 10 % 2 == 0)
    write(root, "replicated.second", wave(9), only=lambda i: i > 30)
    write(root, "disk.used;dc=east;host=a", wave(17))
    write(root, "disk.used;dc=east;host=b", wave(19))


def west(root):
    for n in (1, 2):
        write(root, f"servers.db0{n}.cpu.user", wave(n + 31))
        write(root, f"servers.db0{n}.cpu.system", wave(n + 41), only=lambda i: i % 15 != 4)
    write(root, "apps.cart.items", wave(23))
    write(root, "apps.shop.orders", counter(29))
    write(root, "only.west.load", wave(43))
    write(root, "replicated.first", wave(7), only=lambda i: i // 10 % 2 == 1)
    write(root, "replicated.second", wave(9), only=lambda i: i <= 30)
    write(root, "disk.used;dc=west;host=c", wave(47))


TAGGED = {
    "east": ["disk.used;dc=east;host=a", "disk.used;dc=east;host=b"],
    "west": ["disk.used;dc=west;host=c"],
}
