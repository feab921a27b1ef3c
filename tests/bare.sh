#!/usr/bin/env bash
# The two commands of README.md in a bare Debian: python3, python3-venv and g++, nothing else. Then both again with the
# network gone.
#
#   tests/bare.sh [ROOT] [PYTEST ARGUMENTS]
#
# ROOT keeps the system for the next time. The arguments choose among the tests.
set -euo pipefail
root=${1:-$(mktemp -d)}
shift || true
. "$(dirname "$0")/debian.sh"
debian bookworm python3,python3-venv,g++,ca-certificates
enter "$@"
commands='cd /src && time python3 build.py demo && time python3 build.py test "$@"'

echo "== with the network"
chroot "$root" "${inside[@]}" bash -euc "$commands" bare "$@"
echo "== without the network"
unshare --net chroot "$root" "${inside[@]}" bash -euc "$commands" bare "$@"
echo "both commands passed, with the network and without"
