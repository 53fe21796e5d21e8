#!/bin/sh
# packages.sh WHAT -- the packages that WHAT needs (packages.txt): uses what is there, installs what is missing where it may,
# and else prints whom to ask for what.  WHAT: deps (all, by sudo if you are not root), demo (likewise, but some are optional),
# build and test (by root only: nobody else is asked for a password).  Status 1 where something needed is missing.
set -u
list=$(dirname "$0")/packages.txt
sudo=
case ${1-} in
  deps) groups='build run font show test' needed=$groups sudo=sudo ;;
  demo) groups='build run font show' needed='build run' sudo=sudo ;;
  build) groups='build run font' needed=$groups ;;
  test) groups='build run font show test' needed='build run font' ;;
  *) echo "packages.sh: '${1-}', expected deps, demo, build or test" >&2; exit 2 ;;
esac

rows() { for g in $1; do sed '/^#/d' "$list" | awk -v g="$g" '$2 == g'; done; }

# Is it there, though Debian's package is not?
found() {
  case $1 in
    program) command -v "$2" ;;
    header) echo "#include <$2>" | ${CC:-cc} ${CFLAGS-} -E - ;;
    pkgconfig) pkg-config --exists "$2" ;;
    module) luajit -e "require '$2'" ;;
    python) python3 -c "import $2" ;;
    library) luajit -e "require('ffi').load('$2')" ;;
    file) test -e "$2" ;;
    font) [ -n "${MNEME_FONT-}" ] || find /usr/share/fonts /usr/local/share/fonts -name "$2" | grep -q . ;;
    *) false ;;
  esac > /dev/null 2>&1
}

# The packages of some groups that are missing, in one line.
missing() {
  installed=$(rows "$1" | cut -d ' ' -f 1 | xargs dpkg-query -W -f '${Package} ${db:Status-Status}\n' 2> /dev/null | sed -n 's/ installed$//p')
  rows "$1" | while read -r name _ _ kind what; do
    echo "$installed" | grep -qxF -e "$name" || found "$kind" "$what" || printf ' %s' "$name"
  done
}

none=$(missing "$groups")
[ -n "$none" ] || exit 0

why=
if ! command -v apt-get > /dev/null; then why='there is no apt-get here'
elif [ "$(id -u)" = 0 ]; then sudo=
elif [ -z "$sudo" ]; then why='only root installs'
elif ! command -v sudo > /dev/null; then why='there is no sudo here, and only root installs'
fi
install() {                    # what nothing works without goes first: a package that this Debian lacks may not keep it away
  apt="$sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600"
  until said=$($apt update 2>&1); do             # another apt, such as a fresh machine's own, ends first
    case $said in */lists/lock*) sleep 2 ;; *) echo "$said" >&2; return 1 ;; esac
  done
  for some in "$needed" "$groups"; do
    now=$(missing "$some")
    [ -z "$now" ] || $apt -y --no-install-recommends -o Dpkg::Use-Pty=0 install $now > /dev/null || return
  done
}
if [ -z "$why" ]; then
  echo "installing$none"
  install && exit 0
  why="${sudo:-apt-get} failed"
  none=$(missing "$groups")
fi

conda=$(rows "$groups" | awk '$3 != "-" && !seen[$3]++ { printf " %s", $3 }')
need=$(missing "$needed")
echo "missing ($why):$none"
echo "  ask an administrator for:"
echo "    apt-get install$none"
case $none in *fonts*) echo '  or name a font of your own: export MNEME_FONT=FILE.ttf' ;; esac
if [ -n "$need" ]; then
  echo "  or, with conda (the names are conda-forge's):"
  echo "    conda create -n mneme -c conda-forge make$conda"
  echo '    conda activate mneme && luarocks --lua-version=5.1 --lua-dir="$CONDA_PREFIX" --tree="$CONDA_PREFIX" install luafilesystem'
  echo "  or unpack the tarball that \`make dist\` writes on another machine: it needs none of these"
  exit 1
fi
[ "$1" = test ] && echo "  going on: tests that need them are skipped, and say so (\`make deps\` installs them)"
[ "$1" = demo ] && echo "  going on without them"
exit 0
