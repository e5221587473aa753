#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# From a fresh Debian or Ubuntu to results, in one command:
#
#   sh cmake/quickstart.sh         compare indexes on 10 million generated keys, on
#                                  every device here; writes build/report.html
#   sh cmake/quickstart.sh test    build and run all tests
#
# What is missing is installed as root or through sudo; otherwise the command that
# installs it is printed. Arguments that begin with -D go to CMake. May be repeated
# at any time: what is done is not done again.

set -eu

usage() {
  sed -n '4,/^$/s/^# \{0,1\}//p' "$0"
}

step() {
  printf '\n==> %s\n' "$*"
}

fail() {
  printf '\nquickstart: %s\n' "$*" >&2
  exit 1
}

# run_or <sentence> <command...>: stops with the sentence when the command fails.
run_or() {
  sentence=$1
  shift
  "$@" || fail "$sentence"
}

# ---- what to do --------------------------------------------------------------

mode=compare
cmake_options=
for argument in "$@"; do
  case $argument in
    test) mode="test" ;;
    -D*) cmake_options="$cmake_options $argument" ;;
    -h | --help)
      usage
      exit 0
      ;;
    *)
      usage >&2
      fail "does not know the argument '$argument'."
      ;;
  esac
done

case $0 in
  */*) cd "${0%/*}/.." ;;
  *) cd .. ;;
esac
[ -f cmake/quickstart.sh ] ||
  fail "belongs into the folder cmake of the Kindex sources."

# ---- what it takes -----------------------------------------------------------

# Empty where it is no matter of packages.
missing_packages() {
  for package in "$@"; do
    case $(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true) in
      *" ok installed") ;;
      *) printf ' %s' "$package" ;;
    esac
  done
}

packages="build-essential cmake ninja-build git ca-certificates
  libbenchmark-dev libabsl-dev libcli11-dev"
case $mode in
  compare) packages="$packages python3-matplotlib" ;;
  test) packages="$packages libgtest-dev" ;;
esac

step "Looking for what it takes"
if command -v dpkg-query >/dev/null 2>&1 && command -v apt-get >/dev/null 2>&1; then
  # Only Debian has its keyring by default; Kokkos may have to come from there.
  packages="$packages debian-archive-keyring"
  # The list is meant to be split into words.
  # shellcheck disable=SC2086
  missing=$(missing_packages $packages)
  if [ -n "$missing" ]; then
    echo "Missing:$missing"
    if [ "$(id -u)" -eq 0 ]; then
      as_root=
    elif command -v sudo >/dev/null 2>&1; then
      as_root=sudo
      echo "Installing them with sudo, which may ask for your password."
    else
      fail "needs packages that only root can install. Ask for:
  apt-get install --no-install-recommends$missing"
    fi
    install="env DEBIAN_FRONTEND=noninteractive apt-get"
    # shellcheck disable=SC2086
    run_or "could not read the package lists. Is the network up, and does
/etc/apt/sources.list name a mirror that answers?" $as_root $install -q update
    # shellcheck disable=SC2086
    run_or "could not install:$missing" \
      $as_root $install -q install -y --no-install-recommends $missing
  fi
else
  for tool in cmake c++ git; do
    command -v "$tool" >/dev/null 2>&1 ||
      fail "needs $tool, and this is no Debian or Ubuntu where it could be
installed from. Install a C++20 compiler, CMake 3.22, git, GoogleTest, Google
Benchmark, Abseil, CLI11 and Python's matplotlib."
  done
fi
echo "All there."

# ---- configure ---------------------------------------------------------------

# CUDA's installer leaves its compiler outside of the PATH.
if ! command -v nvcc >/dev/null 2>&1 && [ -x /usr/local/cuda/bin/nvcc ]; then
  PATH=$PATH:/usr/local/cuda/bin
  export PATH
fi

set -- -S . -B build -DCMAKE_BUILD_TYPE=Release -DKindex_ENABLE_PERF=ON
case $mode in
  compare)
    set -- "$@" "-DKindex_PERF_KEY_TYPES="
    [ -f build/CMakeCache.txt ] || set -- "$@" -DKindex_ENABLE_TESTS=OFF
    ;;
  test)
    # Those that the tests of kindex_bench ask for.
    set -- "$@" "-DKindex_PERF_KEY_TYPES=u8;u32;u64" \
      -DKindex_ENABLE_TESTS=ON
    ;;
esac
if [ ! -f build/CMakeCache.txt ] && command -v ninja >/dev/null 2>&1; then
  set -- "$@" -G Ninja
fi

step "Configuring in build/"
# shellcheck disable=SC2086
run_or "could not configure; the first CMake Error above says what is wrong.
If it is about something that has changed since, remove the folder build and
start again." cmake "$@" $cmake_options

# ---- build -------------------------------------------------------------------

# A compiler at work on Kokkos takes up to 2 GB; better slow than out of memory.
jobs=$(nproc 2>/dev/null || echo 2)
if [ -r /proc/meminfo ]; then
  room=$(awk '/^MemAvailable/ { print int($2 / 2000000) }' /proc/meminfo)
  [ "$room" -ge 1 ] || room=1
  [ "$jobs" -le "$room" ] || jobs=$room
fi

step "Building with $jobs jobs"
case $mode in
  compare) target=kindex_bench ;;
  test) target=all ;;
esac
run_or "could not build; the first error: above is the one to look at." \
  cmake --build build --parallel "$jobs" --target "$target"

# ---- run ---------------------------------------------------------------------

case $mode in
  compare)
    if nvidia-smi -L >/dev/null 2>&1 &&
      ! build/perf/kindex_bench --list --keys uniform:u32:10 | grep -q /Cuda/; then
      echo "The NVIDIA GPU of this machine is left out: that needs CUDA's compiler"
      echo "(nvcc) and a Kokkos with CUDA, or one that can be built along."
    fi
    step "Comparing on 10 million keys"
    : "${OMP_PROC_BIND:=spread}" "${OMP_PLACES:=threads}"
    export OMP_PROC_BIND OMP_PLACES
    run_or "the comparison failed; its last lines say why." \
      build/perf/kindex_bench --keys uniform:u32:10000000 --index all \
      --space all --json build/results.json --report build/report.html
    [ -s build/report.html ] ||
      fail "the comparison ended without writing build/report.html."
    step "Done. The report to look at: $(pwd)/build/report.html"
    ;;
  test)
    # Many short programs at once: a few threads each, which sleep while they wait
    # and are not bound to the same cores.
    cores=$(nproc 2>/dev/null || echo 2)
    threads=$((cores < 4 ? cores : 4))
    at_once=$((cores / threads > 2 ? cores / threads : 2))
    : "${OMP_NUM_THREADS:=$threads}" "${OMP_WAIT_POLICY:=passive}"
    : "${OMP_PROC_BIND:=false}"
    export OMP_NUM_THREADS OMP_WAIT_POLICY OMP_PROC_BIND

    step "Testing, $at_once at a time"
    run_or "tests failed; their output is above, and all of it in
build/Testing/Temporary/LastTest.log." \
      ctest --test-dir build --output-on-failure --parallel "$at_once"
    ;;
esac
