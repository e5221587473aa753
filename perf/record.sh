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
#
# With --ablations in front it records what each optimisation of a lookup is
# worth on the GPU, in a build with the CMake variable Kindex_PERF_ABLATIONS,
# and, in a second file OUTPUT-sorted.json, with queries in ascending order:
#
#   sh perf/record.sh --ablations build-cuda/perf/kindex_bench \
#     perf/results/h100-ablations.json
set -eu

ablations=no
if [ "${1-}" = --ablations ]; then
  ablations=yes
  shift
fi
if [ $# -lt 2 ]; then
  echo "usage: sh record.sh [--ablations] KINDEX_BENCH OUTPUT.json" \
    "[OPTION...]" >&2
  exit 2
fi
bench=$1
output=$2
shift 2

if [ "$ablations" = no ]; then
  exec "$bench" \
    --keys uniform:u32:2^20 --keys uniform:u32:2^24 --keys uniform:u32:2^28 \
    --keys uniform:u64:2^27 \
    --values none,u32 --ops build,find,lower_bound,range \
    --queries 2^27 --host-queries 2^22 --sweep \
    --benchmark_min_time=0.1 --json "$output" "$@"
fi

# 64 MiB of queries in 2^26 are many times a GPU's L2 cache; a quarter of the
# largest set is what partitioned batches need.
plain=sorted_array,sorted_array_aos,pivot_tree,pivot_tree_aos,eytzinger
"$bench" \
  --keys uniform:u32:2^20 --keys uniform:u32:2^24 --keys uniform:u32:2^28 \
  --keys uniform:u64:2^27 \
  --space Cuda --index "$plain,thrust_lower_bound,ablations" \
  --values none --ops lower_bound,range --queries 2^26 \
  --range-hits 2^6,2^14 --range-queries 2^16 \
  --benchmark_min_time=0.01 --json "$output" "$@"
exec "$bench" \
  --keys uniform:u32:2^24 --keys uniform:u32:2^28 \
  --space Cuda --order sorted --values none --ops lower_bound --queries 2^26 \
  --index sorted_array,sorted_array+sorted_queries,pivot_tree,\
pivot_tree+sorted_queries,thrust_lower_bound \
  --benchmark_min_time=0.01 --json "${output%.json}-sorted.json" "$@"
