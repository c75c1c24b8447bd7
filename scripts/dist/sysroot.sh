#!/bin/bash
# sysroot.sh FOLDER: a folder with the headers and libraries of packages.txt, from Debian's archive, as a compiler's sysroot.
# Nothing is installed on this machine. libzip, of which Debian has no static library, is compiled from Debian's source.
set -euo pipefail
readonly here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly folder=$1
readonly mirror=${TENON_DEBIAN_MIRROR:-http://deb.debian.org/debian}
readonly keys=/usr/share/keyrings/debian-archive-keyring.gpg
readonly work=$folder.work

lists() {
  local suite
  for suite in bullseye bookworm trixie; do echo "deb [signed-by=$keys] $mirror $suite main"; done
  echo "deb-src [signed-by=$keys] $mirror bookworm main"
}

apt() {
  apt-get -q -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
    -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root "$@"
}

# Links that name a place in the root of a system would lead out of the sysroot.
mend_links() {
  find "$folder" -type l -lname '/*' | while read -r link; do
    ln -sfrT "$folder$(readlink "$link")" "$link"
  done
}

static_libzip() {
  (cd "$work" && apt source --download-only libzip && tar xf libzip_*.orig.tar.*)
  cmake -S "$work"/libzip-*/ -B "$work/libzip" -G Ninja --log-level=ERROR -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_C_COMPILER=clang-19 -DCMAKE_SYSROOT="$folder" -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
    -DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY -DBUILD_SHARED_LIBS=OFF \
    -DENABLE_{COMMONCRYPTO,GNUTLS,MBEDTLS,OPENSSL,WINDOWS_CRYPTO,BZIP2,LZMA,ZSTD}=OFF -DBUILD_{TOOLS,REGRESS,EXAMPLES,DOC}=OFF \
    -DCMAKE_INSTALL_PREFIX="$folder/usr" -DCMAKE_INSTALL_LIBDIR=lib/x86_64-linux-gnu
  cmake --build "$work/libzip" --target install >"$work/libzip.log"
}

mkdir -p "$work/lists/partial" "$work/cache" "$work/debs"
lists >"$work/sources.list"
apt update >"$work/update.log"
grep -v '^#' "$here/packages.txt" | while read -r suite package; do
  echo "$package/$suite"
done | (cd "$work/debs" && xargs -n 1 bash -c '"$@" || exit 255' - \
  apt-get -q -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
  -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root download) >"$work/download.log"
rm -rf "$folder"
for package in "$work"/debs/*.deb; do dpkg -x "$package" "$folder"; done
mend_links
# The unwinder of the newer compiler asks libc for what the older one does by itself.
cp "$folder"/usr/lib/gcc/x86_64-linux-gnu/{10,12}/libgcc_eh.a
static_libzip
touch "$folder/made"
