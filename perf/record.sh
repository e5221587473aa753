#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Records the reference results of a GPU and its host: one JSON file, verified
# and with its circumstances, to be kept under perf/results.
#
#   sh perf/record.sh build-cuda/perf/kindex_bench perf/results/h100.json
#
# About 6 minutes on an H100 with 16 host cores; 16 GiB of GPU memory and 24 GiB
# of host memory. What follows the two paths is passed on, for instance
# --index sorted_array or --benchmark_filter=Cuda.
set -eu

if [ $# -lt 2 ]; then
  echo "usage: sh record.sh KINDEX_BENCH OUTPUT.json [OPTION...]" >&2
  exit 2
fi
bench=$1
output=$2
shift 2

exec "$bench" \
  --keys uniform:u32:2^20 --keys uniform:u32:2^24 --keys uniform:u32:2^28 \
  --keys uniform:u64:2^27 \
  --values none,u32 --ops build,find,lower_bound,range \
  --queries 2^27 --host-queries 2^22 --sweep \
  --benchmark_min_time=0.1 --json "$output" "$@"
