#!/bin/sh
# bundle.sh FOLDER FILE... -- copies the libraries that the FILEs need into FOLDER (a FILE of others goes there, too), with
# their licences, and prints the oldest glibc that all of them run with.  What belongs to glibc and the compiler's own
# run-time support is every system's.
set -eu
folder=$1
shift
mkdir -p "$folder/licences"
needed=$(for file in "$@"; do
  case $file in *mneme*) ;; *) echo "$file" ;; esac
  ldd "$file" | awk '$2 == "=>" && $3 ~ "^/" { print $3 }'
done | sort -u | grep -Ev '/(libmneme.*|libc|libm|libdl|libpthread|librt|libgcc_s|ld-linux.*)\.so')
for library in $needed; do
  cp -L "$library" "$folder/$(basename "$library")"
  package=$(dpkg-query -S "*/$(basename "$(readlink -f "$library")")" | sed -n '1s/:.*//p')
  cp "/usr/share/doc/$package/copyright" "$folder/licences/$package.txt"
done
objdump -T "$@" $needed | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1 | sed s/GLIBC_//
