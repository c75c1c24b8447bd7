#!/bin/bash
# pack.sh BUILD PYTHON: one archive of what BUILD (of the preset dist) has made, in BUILD: compiler, runtime, cores of other
# machines, headers, the Python package with what it needs, pages, and the licences of what is linked into it. PYTHON has pip.
set -euo pipefail
readonly here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly source=$(cd "$here/../.." && pwd)
readonly build=$(cd "$1" && pwd) python=$2
readonly newest_libc=2.31 most=$((40 * 1000 * 1000))
readonly pythons="3.10 3.11 3.12 3.13 3.14"
readonly linked="clang-19 libc6-dev libcli11-dev libfmt-dev liblld-19-dev libprotozero-dev libsqlite3-dev libstdc++-12-dev
  libzip-dev libzstd-dev llvm-19-dev nlohmann-json3-dev zlib1g-dev"

version=$(sed -n 's/^project(Tenon VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")
readonly name=tenon-$version-$(uname -m)-linux
readonly folder=$build/$name

install_parts() {
  local component
  for component in runtime compiler python; do
    cmake --install "$build" --prefix "$folder" --component "$component" --strip >/dev/null
  done
}

# The part of the Python package that knows the Python at hand: files with a version each in their names, side by side.
python_parts() {
  local version wheel
  for version in $pythons; do
    "$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --implementation cp \
      --python-version "$version" --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 \
      --dest "$build/wheels" "$(grep '^nanobind-backend==' "$source/scripts/requirements.txt")"
  done
  for wheel in "$build"/wheels/nanobind_backend-*.whl; do
    "$python" -m zipfile -e "$wheel" "$folder/python"
  done
}

licences() {
  local package
  mkdir -p "$folder/share/licences"
  for package in $linked; do
    [[ ! -e /usr/share/doc/$package/copyright ]] || cp -L "/usr/share/doc/$package/copyright" "$folder/share/licences/$package"
  done
}

# Nothing in it may ask for a newer libc than newest_libc, or for a library that is not in it or of libc.
check() {
  local file version needed
  while read -r file; do
    file -b "$file" | grep -q 'ELF 64-bit.*x86-64.*dynamically linked\|shared object, x86-64' || continue
    version=$({ llvm-readelf-19 --version-info "$file" | grep -o 'GLIBC_[0-9.]*' || true; } | sort -uV | tail -1)
    [[ $(printf '%s\n' "GLIBC_$newest_libc" "$version" | sort -V | tail -1) == "GLIBC_$newest_libc" ]] ||
      { echo "$file needs $version" && return 1; }
    needed=$(llvm-readelf-19 --needed-libs "$file" | sed -n 's/^ *\(lib[^ ]*\|ld-[^ ]*\)$/\1/p' |
      grep -Ev '^(lib(c|m|dl|pthread|rt)\.so\.[0-9]|ld-linux-x86-64\.so\.2|libtenon_(runtime|compiler)\.so)$' || true)
    [[ -z $needed || $file == */nanobind_backend* ]] || { echo "$file needs $needed" && return 1; }
  done < <(find "$folder" -type f)
}

rm -rf "$folder" "$build/wheels"
install_parts
python_parts
licences
mkdir -p "$folder/share/doc"
cp "$source/README.md" "$folder/"
cp -r "$source/docs" "$source/examples" "$folder/share/doc/"
check
archive=$build/$name.tar.xz
tar -C "$build" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -cf - "$name" | xz -T0 -9 >"$archive.part"
mv "$archive.part" "$archive"
size=$(stat -c %s "$archive")
echo "$archive: $((size / 1000)) KB"
((size <= most)) || { echo "expected at most $((most / 1000)) KB"; exit 1; }
