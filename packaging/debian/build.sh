#!/usr/bin/env bash
# The Debian packages of the committed tree, into a folder; then what lintian says of them.
#
#   packaging/debian/build.sh OUT [OPTIONS OF dpkg-buildpackage]
#
# Needs dpkg-dev, debhelper, dh-python, cmake, ninja-build, nlohmann-json3-dev, python3-all and lintian.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
out=$(mkdir -p "${1:?a folder for the packages}" && cd "$1" && pwd)
shift

# The version is pyproject.toml's; a release candidate comes before its release. The ABI's version is the library's.
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$top/pyproject.toml" | sed 's/\(a\|b\|rc\)\([0-9]*\)$/~\1\2/')
soversion=$(sed -n 's/^_FILE = "libneml2_capi\.so\.\([0-9]*\)"/\1/p' "$top/neml2_capi/_ffi/library.py")

tree=$out/neml2-capi-$version
rm -rf "$tree" && mkdir -p "$tree/debian/source"
git -C "$top" archive HEAD CMakeLists.txt LICENSE README.md capi cmake include neml2_capi | tar -xC "$tree"

cd "$tree/debian"
cp "$here"/{copyright,rules,*.install} .
sed "s/@SOVERSION@/$soversion/" "$here/control.in" > control
cp "$here/libneml2-capi.install.in" "libneml2-capi$soversion.install"
echo '3.0 (native)' > source/format
cat > changelog <<END
neml2-capi ($version) unstable; urgency=medium

  * CHANGELOG.md of the project tells what is new.

 -- The neml2_capi developers <neml2-capi@localhost>  $(git -C "$top" log -1 --format=%aD)
END
cd "$tree"
dpkg-buildpackage --no-sign --build=binary "$@"
lintian --tag-display-limit 0 "$out"/*.changes
