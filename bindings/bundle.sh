#!/bin/sh
# bundle.sh FOLDER FILE... -- copies the libraries that the FILEs need into FOLDER (a FILE of others goes there, too) and the
# font, with their licences, and prints the oldest glibc that all of them run with.  glibc and libgcc_s are every system's.
set -eu
folder=$1
shift
mkdir -p "$folder/licences"
needed=$(for file in "$@"; do
  case ${file##*/} in mneme | libmneme*) ;; *) echo "$file" ;; esac
  ldd "$file" | awk '$2 == "=>" && $3 ~ "^/" { print $3 }'
done | sort -u | grep -Ev '/(libmneme.*|libc|libm|libdl|libpthread|librt|libgcc_s|ld-linux.*)\.so')
font=${MNEME_FONT:-$(find /usr/share/fonts -name DejaVuSans.ttf | head -1)}
[ -n "$font" ] || echo "bundle.sh: no font was found: pictures will need MNEME_FONT=FILE.ttf" >&2
for library in $needed ${font:+"$font"}; do
  case $library in *.ttf) name=DejaVuSans.ttf ;; *) name=$(basename "$library") ;; esac
  cp -L "$library" "$folder/$name"
  package=$(dpkg-query -S "*/$(basename "$(readlink -f "$library")")" 2> /dev/null | sed -n '1s/:.*//p')
  cp "/usr/share/doc/$package/copyright" "$folder/licences/$package.txt" 2> /dev/null ||
    echo "bundle.sh: $library: its licence was not found; add it before you pass this on" >&2
done
# Each finds the others without the program that loads it; so auditwheel understands a wheel of them.
if command -v patchelf > /dev/null; then
  for library in "$folder"/*.so*; do patchelf --set-rpath '$ORIGIN' "$library"; done
else echo "bundle.sh: no patchelf: the libraries run, but auditwheel would take them for the system's" >&2; fi
objdump -T "$@" $needed | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1 | sed s/GLIBC_//
