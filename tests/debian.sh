# Debian in a folder, for the scripts beside this one, which source it and set `root`. Needs root, debootstrap and
# unshare.
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mirror=$(apt-get indextargets --format '$(SITE) $(RELEASE)' | awk '$2 == "bookworm" {print $1; exit}')

# Makes the system, unless an earlier call has: debian RELEASE PACKAGE,PACKAGE,...
debian() {
  [[ -e $root/.made ]] && return
  debootstrap --variant=minbase --include="$2" "$1" "$root" "$mirror" >/dev/null
  touch "$root/.made"
}

# Runs the script again in a mount namespace, where everything after this happens: nothing stays mounted. Copies the
# checkout to /src, and sets up pip as it is here: its files, its variables, and the folders of wheels that
# PIP_FIND_LINKS names.
enter() {
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
}
