#!/usr/bin/env bash
# The two commands of README.md in a bare Debian: python3, python3-venv and g++, nothing else. Then both again with the
# network gone.
#
#   tests/bare.sh [ROOT] [PYTEST ARGUMENTS]
#
# Needs root, debootstrap and unshare. ROOT keeps the system for the next time. The arguments choose among the tests. pip
# is set up as it is here: its files, its variables, and the folders of wheels that PIP_FIND_LINKS names.
set -euo pipefail
source=$(cd "$(dirname "$0")/.." && pwd)
root=${1:-$(mktemp -d)}
shift || true
mirror=$(apt-get indextargets --format '$(SITE) $(RELEASE)' | awk '$2 == "bookworm" {print $1; exit}')

if [[ ! -x $root/usr/bin/g++ ]]; then
  debootstrap --variant=minbase --include=python3,python3-venv,g++,ca-certificates bookworm "$root" "$mirror" >/dev/null
fi

# Everything below happens in a mount namespace of this process: nothing stays mounted.
if [[ -z ${IN_NAMESPACE:-} ]]; then
  IN_NAMESPACE=1 exec unshare --mount "$0" "$root" "$@"
fi
mkdir -p "$root"/{src,proc,dev,etc/ssl/certs}
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --bind /etc/ssl/certs "$root/etc/ssl/certs"
for folder in ${PIP_FIND_LINKS:-}; do
  [[ -d $folder ]] && mkdir -p "$root$folder" && mount --bind "$folder" "$root$folder"
done
for file in /etc/pip.conf /etc/resolv.conf /etc/hosts; do
  [[ -e $file ]] && cp -L "$file" "$root$file"
done
mkdir -p "$root/root/.config/pip"
cp ~/.config/pip/pip.conf "$root/root/.config/pip/" 2>/dev/null || true
rm -rf "$root/src" && mkdir "$root/src"
(cd "$source" && git ls-files -z | tar --null -cT -) | tar -xC "$root/src"

inside=(env -i HOME=/root PATH=/usr/bin:/bin LANG=C.UTF-8)
while IFS= read -r variable; do inside+=("$variable"); done < <(env | grep -E '^PIP_' || true)
commands='cd /src && time python3 build.py demo && time python3 build.py test "$@"'

echo "== with the network"
chroot "$root" "${inside[@]}" bash -euc "$commands" bare "$@"
echo "== without the network"
unshare --net chroot "$root" "${inside[@]}" bash -euc "$commands" bare "$@"
echo "both commands passed, with the network and without"
