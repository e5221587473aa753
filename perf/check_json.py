#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that results of kindex_bench hold what they promise, of the operations
named or of all (for ctest)."""
import json
import sys

CONTEXT = {"date", "cpu", "compiler", "git_commit", "build_type", "spaces",
           "host_threads", "openmp", "kokkos", "kokkos_version"}
COUNTERS = {
    "build": {"items_per_second", "build_ms", "bytes_per_key", "GB_per_s"},
    "find": {"items_per_second", "ns_per_lookup", "batch_us", "bytes_per_key",
             "GB_per_s", "hit_rate", "of_limit", "one_sector_per_second"},
    "range": {"items_per_second", "hits_per_second", "hits_per_query"},
    "copy": {"GB_per_s"},
    "fit": {"items_per_second", "fit_ms", "segments", "segments_optimal",
            "GB_per_s"},
    "parent_chain": {"items_per_second", "lookups_per_second",
                     "lookups_per_query", "bytes_per_key", "GB_per_s"},
    "update": {"items_per_second", "batch_us"},
    "one_sector": {"items_per_second", "ns_per_lookup", "GB_per_s"},
}
COUNTERS["lower_bound"] = COUNTERS["find"]
COUNTERS["ref_find"] = COUNTERS["find"]
COUNTERS["build_sorted"] = COUNTERS["build"]

with open(sys.argv[1], encoding="utf-8") as file:
    content = json.load(file)
wrong = [f"context lacks {name}" for name in CONTEXT - set(content["context"])]
seen = set()
for benchmark in content["benchmarks"]:
    op, index, key = benchmark["name"].split("/")[:3]
    seen.add(op)
    if (key == "str" and index != "limit"
            and not benchmark.get("chars_per_key", 0) > 0):
        wrong.append(f"{benchmark['name']} lacks chars_per_key")
    if op.startswith("build") and index == "b_plus_tree":
        wrong += [f"{benchmark['name']} lacks {name}"
                  for name in ("sort_ms", "inner_ms")
                  if not benchmark.get(name, 0) > 0]
    if benchmark.get("error_occurred"):
        wrong.append(f"{benchmark['name']} failed")
    wrong += [f"{benchmark['name']} lacks {name}"
              for name in COUNTERS[op] if not benchmark.get(name, 0) > 0]
wrong += [f"no benchmark of {op}"
          for op in set(sys.argv[2:] or COUNTERS) - seen]
sys.exit("\n".join(wrong) or 0)
