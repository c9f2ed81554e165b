#!/usr/bin/env bash
# Installs what the tests need, then runs all of them: format, lints, documentation, Rust tests, and the end-to-end tests
# against real graphite-web. Stops at the first part that fails and shows its log. Writes only below target/ and into
# folders for temporary files (and, as root, installs missing system packages with apt).
#
#   bash tests/run.sh            everything
#   bash tests/run.sh --debug    the same, end to end over the debug binary (builds faster)
#   bash tests/run.sh --e2e      only the end-to-end part; names of tests may follow
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

profile=release only_e2e=false
while [ $# -gt 0 ]; do
    case $1 in
        --debug) profile=debug ;;
        --e2e) only_e2e=true ;;
        -*) sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2 ;;
        *) break ;;
    esac
    shift
done

target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target/run"
target=$(cd "$target" && pwd)
logs=$target/run venv=$target/run/venv
export TMPDIR="${TMPDIR:-/tmp}"

running=
# Each part is a process group of its own, so that whatever ends this script ends all that it started.
set -m
trap 'if [ -n "$running" ]; then kill -TERM -- "-$running" 2>/dev/null; wait "$running" 2>/dev/null; fi' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# part NAME COMMAND…: runs it with its output in a log, which is shown when it fails.
part() {
    local name=$1 log start=$SECONDS
    shift
    log=$logs/$(tr -c 'a-zA-Z0-9\n' '-' <<<"$name").log
    printf '\n== %s\n' "$name"
    "$@" >"$log" 2>&1 </dev/null &
    running=$!
    if ! wait "$running"; then
        running=
        tail -n 300 "$log"
        printf '\n== %s: FAILED after %d s (whole log: %s)\n' "$name" $((SECONDS - start)) "$log"
        exit 1
    fi
    running=
    # What a test says aloud (a count, a tool that cannot exist here) is worth reading also when all is well.
    grep -E '^(test result: |     Summary |NOTE: )' "$log" || true
    printf '   ok, %d s\n' $((SECONDS - start))
}

system_packages() {
    local missing=()
    command -v cc >/dev/null || missing+=(build-essential)
    command -v python3 >/dev/null || missing+=(python3)
    python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
    # graphite-web draws with it, and does not start without it.
    python3 -c 'import ctypes.util, sys; sys.exit(ctypes.util.find_library("cairo") is None)' || missing+=(libcairo2)
    [ ${#missing[@]} -gt 0 ] || return 0
    echo "missing: ${missing[*]}"
    local apt=(env DEBIAN_FRONTEND=noninteractive apt-get)
    if ! command -v apt-get >/dev/null; then
        echo "there is no apt-get here; install the equivalents of these packages, then run this again"
        return 1
    fi
    [ "$(id -u)" = 0 ] || apt=(sudo -n "${apt[@]}")
    "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends "${missing[@]}"
}

# A Python that graphite-web 1.1.10 runs on: its Django needs a module that Python 3.13 has no more.
python_for_graphite() {
    local python
    for python in python3 python3.12 python3.11 python3.10 python3.9; do
        if "$python" -c 'import sys, ensurepip, venv; sys.exit(not (3, 8) <= sys.version_info < (3, 13))' 2>/dev/null; then
            echo "$python"
            return
        fi
    done
    echo "graphite-web 1.1.10 needs a Python from 3.8 to 3.12, which is not here" >&2
    return 1
}

python_packages() {
    local wanted=tests/e2e/requirements.txt
    if cmp -s "$wanted" "$venv/installed.txt" && "$venv/bin/python" -c 'import graphite, whisper, msgpack'; then
        return
    fi
    rm -rf "$venv"
    "$(python_for_graphite)" -m venv "$venv"
    # Without this graphite-web installs itself into /opt/graphite.
    GRAPHITE_NO_PREFIX=True "$venv/bin/python" -m pip install --disable-pip-version-check --no-input \
        --cache-dir "$logs/pip" -r "$wanted"
    cp "$wanted" "$venv/installed.txt"
}

rust_tests() {
    if cargo nextest --version >/dev/null 2>&1; then
        cargo nextest run --no-fail-fast --status-level fail --final-status-level fail
    else
        cargo test --no-fail-fast
    fi
}

build_binary() {
    if [ "$profile" = release ]; then cargo build --release; else cargo build; fi
}

part "system packages" system_packages
part "Python packages" python_packages
if ! $only_e2e; then
    part "format" cargo fmt --all --check
    part "lints" cargo clippy --all-targets -- -D warnings
    part "Rust tests" rust_tests
    part "documentation" env RUSTDOCFLAGS="-D warnings" cargo doc --no-deps
    part "documentation tests" cargo test --doc
fi
part "build ($profile)" build_binary

printf '\n== end to end, against real graphite-web\n'
"$venv/bin/python" -B tests/e2e/run.py --binary "$target/$profile/plumbago" --logs "$logs/e2e" "$@" </dev/null &
running=$!
status=0
wait "$running" || status=$?
running=
[ $status = 0 ] || { printf '\n== end to end: FAILED (logs of the servers: %s)\n' "$logs/e2e"; exit 1; }
printf '\n== all passed, %d s\n' $SECONDS
