#!/bin/sh
# release.sh FOLDER [ROOT...] -- checks what `make release` wrote into FOLDER: sizes, the wheels' tags and links, that the demo of this machine's wheel
# is trained and shown, and that of its tarball in each ROOT, a bare root file system (debootstrap makes one), as nobody and without a network of
# its own; of another machine's tarball a small training, by qemu-user.
set -eu
cd "$1"
shift
fail() { echo "release: $*" >&2; exit 1; }
machine=$(uname -m)
wheel=$(ls mneme_rl-*-manylinux_*_"$machine".whl) tarball=$(ls mneme-*-linux-"$machine".tar.gz)
for one in mneme_rl-*-manylinux_*.whl; do
  bytes=$(wc -c < "$one")
  [ "$bytes" -le 25000000 ] || fail "$one has $bytes bytes, expected 25,000,000 or fewer"
  glibc=$(echo "$one" | sed 's/.*manylinux_2_\([0-9]*\)_.*/\1/')
  [ "$glibc" -le 34 ] || fail "$one needs glibc 2.$glibc, expected 2.34 or older"
  echo "$one: $bytes bytes, glibc 2.$glibc"
  if command -v auditwheel > /dev/null; then
    auditwheel show "$one" | tr -s '\n' ' ' | grep -o 'following platform tag: "[^"]*"' | grep -qF "manylinux_2_${glibc}_" ||
      fail "auditwheel finds another tag for $one (patchelf, when the libraries were bundled?)"
    echo "auditwheel: manylinux_2_$glibc"
  else echo "not checked: auditwheel is not installed"; fi
done

at=$(mktemp -d)
trap 'rm -rf "$at"' EXIT
for one in mneme-*-linux-*.tar.gz; do
  other=${one##*-linux-} other=${other%.tar.gz}
  [ "$other" != "$machine" ] || continue
  command -v "qemu-$other" > /dev/null || { echo "not checked: $one runs (qemu-user)"; continue; }
  mkdir "$at/$other" && tar --strip-components=1 -C "$at/$other" -xzf "$one"
  "qemu-$other" "$at/$other/bin/mneme" run train env=tmaze env.corridor=3 core=gru core.d_model=16 hidden=16 num_envs=4 num_steps=32 steps=2048 \
    threads=1 run="$at/run" > "$at/said" 2>&1 || { tail -5 "$at/said"; fail "$one does not train"; }
  "qemu-$other" "$at/$other/bin/mneme" view "$at/run" out="$at/run/page.png" wait=1 > "$at/said" 2>&1 || { tail -5 "$at/said"; fail "$one shows nothing"; }
  echo "$one: trained and shown by qemu-$other"
done
processor() { # into $used: seconds that this script's children used
  times > "$at/times"
  used=$(awk 'NR == 2 { for (i = 1; i < 3; i++) { split($i, t, /[ms]/); n += 60 * t[1] + t[2] } printf "%d\n", n }' "$at/times")
}
demo() { # what a user types, and how long it took
  processor
  began=$(date +%s) before=$used
  "$@" run demo run=/tmp/demo-$$ > "$at/said" 2>&1 || { tail -5 "$at/said"; fail "the demo did not train: $*"; }
  "$@" view /tmp/demo-$$ out=/tmp/demo-$$/episode.gif > "$at/said" 2>&1 || { tail -5 "$at/said"; fail "the demo is not shown: $*"; }
  processor
  echo "trained and shown in $(($(date +%s) - began)) s, $((used - before)) s of processor time: $*"
}
if python3 -m venv "$at/v" > /dev/null 2>&1; then
  "$at/v/bin/pip" -q --disable-pip-version-check install --no-index --no-deps "$wheel"
  demo env -i HOME="$at" PATH=/usr/bin:/bin "$at/v/bin/mneme"
  rm -rf /tmp/demo-$$
else echo "not checked: the wheel in an environment of Python's (python3-venv)"; fi
for root in "$@"; do
  mkdir -p "$root/opt/mneme" "$root/proc"
  tar --strip-components=1 -C "$root/opt/mneme" -xzf "$tarball"
  mountpoint -q "$root/proc" || mount -t proc proc "$root/proc"
  if ! said=$(chroot "$root" /opt/mneme/bin/mneme --version 2>&1); then echo "$root: refused: $said"
  else
    echo "$root: $(sed -n 's/^PRETTY_NAME=//p' "$root/etc/os-release")"
    demo chroot --userspec=65534:65534 "$root" env -i HOME=/tmp PATH=/usr/bin:/bin /opt/mneme/bin/mneme
  fi
  rm -rf "$root/opt/mneme" "$root/tmp/demo-$$"
  umount "$root/proc"
done
rm -f SHA256SUMS && sha256sum ./* > "$at/SHA256SUMS" && mv "$at/SHA256SUMS" .
echo "$(pwd)/SHA256SUMS"
