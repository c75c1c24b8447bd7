#!/bin/bash
# Builds Tenon on a fresh machine; see docs/building.md. Each word is a function below.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

usage() {
  cat <<'TEXT'
usage: ./build.sh [WORD] [--preset NAME] [--yes]

  build    configure and build into build/ (the default)
  test     build, then run every test
  demo     build, compile a trained text recogniser and let it read a picture
  bench    build, then write a page about this machine: kernels against its peak, networks against others
  dist     one relocatable archive for x86-64 Linux, LLVM and all in it, in build-dist/
  python   build and install the Python package into .venv
  clean    remove what the presets have built

  --preset NAME   release (default: build/), debug (build-debug/), asan, tsan, runtime
  --yes           install missing Debian packages without asking
TEXT
}

say() { printf '== %s\n' "$*"; }
die() { printf 'build.sh: %s\n' "$*" >&2; exit 1; }

word=build
preset=release
yes=0

read_arguments() {
  local words=0
  while (($#)); do
    case $1 in
      build | test | demo | bench | dist | python | clean)
        words=$((words + 1))
        word=$1
        ;;
      --preset)
        (($# > 1)) || usage_error "--preset needs a name"
        preset=$2
        shift
        ;;
      --preset=*) preset=${1#*=} ;;
      --yes | -y) yes=1 ;;
      --help | -h)
        usage
        exit 0
        ;;
      *) usage_error "unknown word '$1'" ;;
    esac
    shift
  done
  ((words <= 1)) || usage_error "expected one word"
  case $preset in
    release) build_dir=build ;;
    debug | asan | tsan | runtime) build_dir=build-$preset ;;
    *) usage_error "unknown preset '$preset'" ;;
  esac
}

usage_error() {
  printf 'build.sh: %s\n\n' "$1" >&2
  usage >&2
  exit 2
}

# --- what the machine must have ---

# The lists of packages that the word needs: tests need more than building.
package_lists() {
  echo scripts/debian-packages.txt
  [[ $word != test && $word != bench && $preset != *san ]] || echo scripts/debian-packages-test.txt
}

missing_packages() {
  local package
  package_lists | xargs grep -hv '^#' | while read -r package; do
    [[ $(dpkg-query -W -f='${Status}' "$package" 2>/dev/null) == *"ok installed" ]] || echo "$package"
  done
}

may_install() {
  ((yes)) && return
  ((EUID == 0)) && [[ ! -t 0 ]] && return
  local answer
  read -r -p "install these packages? [y/N] " answer || return
  [[ $answer == [yY]* ]]
}

install_packages() {
  command -v dpkg-query >/dev/null || {
    say "not a Debian system: the packages of $(package_lists | xargs) are taken to be there"
    return
  }
  local missing
  mapfile -t missing < <(missing_packages)
  ((${#missing[@]})) || return 0
  say "missing packages: ${missing[*]}"
  may_install || die "install them with: apt-get install ${missing[*]}"
  local as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || die "as root, run: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  "${as_root[@]}" apt-get update -q
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends "${missing[@]}" </dev/null
}

# .venv with the pinned packages; remade when the pins change.
make_venv() {
  local stamp=.venv/requirements.txt
  cmp -s scripts/requirements.txt "$stamp" && return
  say "Python packages into .venv"
  python3 -m venv --clear .venv
  .venv/bin/pip install --quiet --disable-pip-version-check -r scripts/requirements.txt
  cp scripts/requirements.txt "$stamp"
}

# --- the words ---

# build [TARGET…]: with the tests where the word is one that needs them.
build() {
  install_packages
  local tests=OFF
  [[ $word != test ]] || tests=ON
  local options=(-DTENON_PRECOMPILED_HEADERS=ON -DTENON_JOIN_UNITS=ON "-DTENON_BUILD_TESTS=$tests")
  [[ ! -x .venv/bin/python ]] || options+=("-DTENON_PYTHON=$PWD/.venv/bin/python")
  say "configure ($preset)"
  cmake --preset "$preset" "${options[@]}" >"$build_dir.log" 2>&1 || {
    cat "$build_dir.log" >&2
    die "configuring failed"
  }
  rm -f "$build_dir.log"
  say "build into $build_dir/ on $(nproc) CPUs; the first time this takes minutes"
  cmake --build --preset "$preset" ${1:+--target "$@"}
}

run_tests() {
  install_packages
  make_venv  # before configuring: some tests are made for the Python that is found there
  build
  say "test"
  ctest --test-dir "$build_dir" --output-on-failure --no-tests=error --timeout 900 -j "$(nproc)"
}

# The compiler and the one program.
demo() {
  build tenon ocr
  local work=$build_dir/demo
  mkdir -p "$work"
  if [[ ! -f $work/recogniser.onnx ]]; then
    say "fetch the recogniser (ch_PP-OCRv4_rec_infer.onnx of rapidocr-onnxruntime 1.4.4)"
    python3 -m venv --clear "$work/pip"
    "$work/pip/bin/pip" download --quiet --disable-pip-version-check --no-deps --dest "$work" \
      rapidocr-onnxruntime==1.4.4
    python3 scripts/extract_member.py "$work"/rapidocr_onnxruntime-1.4.4-*.whl \
      rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx "$work/recogniser.onnx"
  fi
  say "compile it for this machine"
  "$build_dir/bin/tenon" compile "$work/recogniser.onnx" -o "$work/recogniser.so" --shape x:1x3x48x320
  say "read examples/ocr/line.png"
  "$build_dir/bin/ocr" "$work/recogniser.so" examples/ocr/line.png
}

# bench/NAME.cc is the program bench_NAME, built on demand. TENON_BENCH_MODELS: a folder of networks with their weights, which
# are compared with the runtimes that are installed.
bench() {
  build
  make_venv
  cmake --build --preset "$preset" --target bench_micro_kernel bench_matmul tenon-measure tenon_python
  say "the page of this machine: $build_dir/bench.html"
  .venv/bin/python bench/page.py --build "$build_dir" --out "$build_dir/bench.html" \
    ${TENON_BENCH_MODELS:+--models "$TENON_BENCH_MODELS"}
}

# The package of build/, beside the libraries that it needs; `pip install .` makes a wheel of its own instead.
python_package() {
  install_packages
  make_venv
  build tenon tenon_python
  say "the Python package into .venv"
  local component
  for component in runtime compiler python; do
    cmake --install "$build_dir" --prefix .venv --component "$component" >/dev/null
  done
  .venv/bin/python -c 'import tenon; print("tenon", tenon.__version__, "in .venv/bin/python")'
}

# One archive that needs nothing of the machine it is unpacked on but libc (glibc 2.31 or later).
dist() {
  install_packages
  make_venv
  local sysroot=$PWD/build-dist.sysroot
  if [[ ! -e $sysroot/made || scripts/dist/packages.txt -nt $sysroot/made ]]; then
    say "headers and libraries of Debian's archive into $sysroot"
    scripts/dist/sysroot.sh "$sysroot"
  fi
  say "configure (dist)"
  cmake --preset dist "-DCMAKE_SYSROOT=$sysroot" "-DTENON_PYTHON=$PWD/.venv/bin/python" >/dev/null
  say "build into build-dist/; this takes minutes"
  cmake --build --preset dist
  say "pack"
  scripts/dist/pack.sh build-dist .venv/bin/python
}

clean() {
  local name
  for name in build build-debug build-asan build-tsan build-runtime build-python build-dist{,.sysroot,.sysroot.work}; do
    [[ -e $name ]] || continue
    say "remove $name/"
    rm -rf "$name"
  done
}

read_arguments "$@"
case $word in
  build) build ;;
  test) run_tests ;;
  demo) demo ;;
  bench) bench ;;
  dist) dist ;;
  python) python_package ;;
  clean) clean ;;
esac
