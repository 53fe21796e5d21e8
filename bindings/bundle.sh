#!/bin/sh
# bundle.sh FOLDER FILE... -- copies the libraries that the FILEs need into FOLDER (a FILE of others goes there, too) and the
# font, with their licences, and prints the oldest glibc that all of them run with.  glibc and libgcc_s are every system's.
# They may be of another machine than this one: CC, its compiler ("ccache gcc", too), knows where its libraries lie.
set -eu
folder=$1
shift
mkdir -p "$folder/licences"
compiler=${CC:-cc}
program=${compiler##* }
readelf=$(command -v readelf || command -v "${program%gcc}readelf") || { echo "bundle.sh needs readelf (Debian: binutils)" >&2; exit 1; }
# Each library that a file needs, and what that one needs, on its way to none that is new.
seen=' '
needs() {
  for name in $("$readelf" -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
    case $seen in *" $name "*) continue ;; esac
    seen="$seen$name "
    case $name in libmneme* | libc.so* | libm.so* | libdl.so* | libpthread.so* | librt.so* | libgcc_s.so* | ld-linux*) continue ;; esac
    path=$($compiler -print-file-name="$name")
    case $path in /*) ;; *) path=$(ldconfig -p | awk -v n="$name" '$1 == n { print $NF; exit }') ;; esac
    [ -n "$path" ] || { echo "bundle.sh: $1 needs $name, which is not found" >&2; exit 1; }
    echo "$path"
    needs "$path"
  done
}
needed=$(for file in "$@"; do
  case ${file##*/} in mneme | libmneme*) ;; *) echo "$file" ;; esac
  needs "$file"
done | sort -u)
font=${MNEME_FONT:-$(find /usr/share/fonts -name DejaVuSans.ttf | head -1)}
[ -n "$font" ] || echo "bundle.sh: no font was found: pictures will need MNEME_FONT=FILE.ttf" >&2
# Whose they are, of all at once: dpkg-query reads the lists of all packages.
real() { basename "$(readlink -f "$1")"; }
owners=$(for library in $needed ${font:+"$font"}; do echo "*/$(real "$library")"; done | xargs dpkg-query -S 2> /dev/null) || true
for library in $needed ${font:+"$font"}; do
  case $library in *.ttf) name=DejaVuSans.ttf ;; *) name=$(basename "$library") ;; esac
  cp -L "$library" "$folder/$name"
  package=$(echo "$owners" | awk -v n="/$(real "$library")" 'substr($0, length($0) - length(n) + 1) == n { sub(/:.*/, ""); print; exit }')
  cp "/usr/share/doc/$package/copyright" "$folder/licences/$package.txt" 2> /dev/null ||
    echo "bundle.sh: $library: its licence was not found; add it before you pass this on" >&2
done
# Each finds the others without the program that loads it; so auditwheel understands a wheel of them.
if command -v patchelf > /dev/null; then
  for library in "$folder"/*.so*; do patchelf --set-rpath '$ORIGIN' "$library"; done
else echo "bundle.sh: no patchelf: the libraries run, but auditwheel would take them for the system's" >&2; fi
for file in "$@" $needed; do "$readelf" -V "$file"; done | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1 | sed s/GLIBC_//
