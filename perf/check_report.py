#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks what a report says of ablations and ranges, by results that are made
up and hold nothing but small whole numbers (for ctest)."""
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def benchmark(op, index, n, rest, **counters):
    name = f"{op}/{index}/u32/Cuda/n:{n}{rest}/manual_time"
    return {"name": name, "run_name": name, "run_type": "iteration",
            "real_time": 1.0, **counters}


def point(index, n, billions):
    return benchmark("lower_bound", index, n, "/keys:uniform/values:none/hit:1"
                     "/q:1024/order:random", items_per_second=1e9 * billions,
                     ns_per_lookup=1.0, bytes_per_key=4.0)


def hits(index, number, gigabytes):
    return benchmark("range", index, 4096, "/keys:uniform/values:none"
                     f"/hits:{number}/q:16/order:random", items_per_second=1.0,
                     ns_per_lookup=1.0, bytes_per_key=4.0, GB_per_s=gigabytes,
                     hits_per_second=float(number), batch_us=16.0)


def report(*runs, gpus=()):
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number, benchmarks in enumerate(runs):
            paths.append(os.path.join(folder, f"made_up_{number}.json"))
            with open(paths[-1], "w", encoding="utf-8") as file:
                gpu = {"gpu": gpus[number]} if gpus else {}
                json.dump({"context": {"date": "", "spaces": "Cuda", **gpu},
                           "benchmarks": benchmarks}, file)
        page = os.path.join(folder, "report.html")
        subprocess.run([sys.executable, os.path.join(HERE, "report.py"),
                        "--output", page, *paths], check=True)
        with open(page, encoding="utf-8") as file:
            return file.read()


def row(page, *cells):
    """Whether a table has a row with these cells, "*" before what it marks."""
    def cell(text):
        if not text.startswith("*"):
            return f"<td[^>]*>{re.escape(text)}</td>"
        return f'<td class="number best">{re.escape(text[1:])}</td>'
    return re.search("<tr>" + "".join(map(cell, cells)), page) is not None


plain = [benchmark("copy", "limit", 1 << 20, "", GB_per_s=100.0),
         point("sorted_array", 4096, 2), point("sorted_array", 1 << 20, 1),
         hits("sorted_array", 64, 25.0), hits("sorted_array", 16384, 80.0)]
def fan_out(index, millions):
    return benchmark("range", index, 4096, "/keys:uniform/values:u32/hits:64"
                     "/q:16/order:random", items_per_second=1.0,
                     ns_per_lookup=1.0, bytes_per_key=8.0, GB_per_s=1.0,
                     hits_per_second=1e6 * millions)


variants = [point("sorted_array+fixed+pinned_10", 4096, 1),
            point("sorted_array+fixed+pinned_10", 1 << 20, 3),
            point("sorted_array+fixed+pinned_16_kib+team_sorted", 4096, 4),
            point("eytzinger_k17", 4096, 5), point("eytzinger_k9", 4096, 6),
            point("eytzinger_k17+one_thread", 4096, 7),
            point("b_plus_tree", 4096, 8), point("b_plus_tree+scalar", 4096, 9),
            point("b_plus_tree+linear_avx512", 4096, 10),
            point("b_plus_tree+in_flight_16", 4096, 11),
            point("b_plus_tree+ordinary_pages", 4096, 12),
            point("radix_tree+leaf_16", 4096, 13),
            fan_out("eytzinger_k17", 500), fan_out("eytzinger_k9", 250)]
def sent(index, transfers, billions, bucket="", **counters):
    return benchmark("lower_bound", index, 4096, "/keys:uniform/values:none"
                     f"/hit:1/q:1024/order:random/transfers:{transfers}{bucket}",
                     items_per_second=1e9 * billions, ns_per_lookup=1.0,
                     bytes_per_key=4.0, GB_per_s_in=8.0 * billions,
                     GB_per_s_out=4.0 * billions, **counters)


transfers = [
    {**benchmark("link", "limit", 1024, "/in:8/out:4", GB_per_s=36.0,
                 items_per_second=3e9)},
    sent("sorted_array", "in", 1, of_link=0.25),
    sent("sorted_array", "overlapped", 3, of_link=0.75),
    sent("hybrid", "overlapped", 2, of_link=0.05, of_last_mile=0.97),
    sent("sorted_array", "overlapped", 2, "/bucket:65536"),
    sent("sorted_array", "overlapped", 1, "/bucket:131072"),
    sent("sorted_array", "direct", 4, "/bucket:65536", of_link=0.9,
         bucket_us=81.25, longest_bucket_us=93.75),
    sent("sorted_array", "overlapped", 0.5, "/bucket:131072/buffers:1")]
host_memory = report(plain + transfers)

def swept(index, queries, microseconds, transfers="/transfers:in",
          space="Cuda", **counters):
    made = benchmark("find", index, 4096, "/keys:uniform/values:none/hit:1"
                     f"/q:{queries}/order:random{transfers}",
                     items_per_second=1e6 * queries / microseconds,
                     ns_per_lookup=1e3 * microseconds / queries,
                     batch_us=microseconds, bytes_per_key=4.0, **counters)
    for name in ("name", "run_name"):
        made[name] = made[name].replace("/Cuda/", f"/{space}/")
    return made


sizes = [(256, 16), (1024, 16), (4096, 32)]
resident_only = report(plain + [
    swept("pivot_tree", q, us, transfers="") for q, us in sizes])
hosts = [swept("eytzinger", q, q / 64, "", "OpenMP") for q, _ in sizes]
sweeps = report(plain + hosts
                + [swept("pivot_tree", q, us) for q, us in sizes])
# A host of 1/64 us per lookup: 12.5 us and 1/256 us each are made up at 1067.
model = {"predicted_fixed_us": 12.5, "predicted_ns_per_lookup": 1000 / 256}
slow = {"predicted_fixed_us": 12.5, "predicted_ns_per_lookup": 1000 / 32}
calibrated = [swept("pivot_tree", q, us, predicted_ms=0.25, **model)
              for q, us in sizes]
predictions = report(plain + hosts + calibrated
                     + [swept("sorted_array", q, us, **slow)
                        for q, us in sizes])
elsewhere = report(plain + hosts, calibrated)
overlapped = report(plain + [
    swept("pivot_tree", q, us, "/transfers:overlapped", predicted_ms=0.5,
          GB_per_s_in=1.0, GB_per_s_out=1.0) for q, us in sizes])

def short_range(index, number, millions, rest="", space="Cuda"):
    made = benchmark("range", index, 4096, f"/keys:uniform/values:none"
                     f"/hits:{number}/q:16/order:random{rest}",
                     items_per_second=1e6 * millions, ns_per_lookup=1.0,
                     bytes_per_key=4.0, GB_per_s=1.0, GB_per_s_in=2.0,
                     GB_per_s_out=3.0, hits_per_second=1e6 * millions * number)
    for name in ("name", "run_name"):
        made[name] = made[name].replace("/Cuda/", f"/{space}/")
    return made


short_ranges = report(plain[:3] + [
    short_range(*one) for number in (1, 8, 32) for one in (
        ("hybrid", number, 64, "/transfers:overlapped"),
        ("hybrid", number, 96, "/transfers:overlapped/bucket:65536"),
        ("b_plus_tree", number, 48, "", "OpenMP"))])

def phases(index, op, values, **counters):
    return benchmark(op, index, 4096, f"/keys:uniform/values:{values}",
                     items_per_second=1e9, GB_per_s=2.0, bytes_per_key=4.0,
                     build_ms=sum(counters.values()), **counters)


builds = report(plain + [
    phases("hybrid_b_plus_tree", "build", "u32", sort_ms=16.0, inner_ms=4.0,
           mirror_ms=2.0),
    phases("b_plus_tree", "build_sorted", "u32", sort_ms=8.0, inner_ms=4.0)])
def divided(division, billions, **counters):
    return benchmark("divide", "hybrid", 4096, "/keys:uniform/values:none/"
                     f"{division}/q:1024/order:random/transfers:overlapped",
                     items_per_second=1e9 * billions, ns_per_lookup=1.0,
                     bytes_per_key=4.0, GB_per_s_in=1.0, GB_per_s_out=1.0,
                     **counters)


divisions = report(plain + [
    divided("levels:0/share:0", 0.5, levels=0, share=0),
    divided("levels:0/share:0.25", 0.75, levels=0, share=0.25),
    divided("levels:1/share:0", 0.25, levels=1, share=0),
    divided("division:found", 1, levels=0, share=0.125, balance_ms=64.0)])
fits = report(plain + [
    benchmark("fit", "learned_index", 4096, "/keys:uniform/epsilon:16",
              items_per_second=2e9, fit_ms=8.0, GB_per_s=16.0, segments=1010.0,
              segments_optimal=1000.0),
    benchmark("fit", "learned_index", 1 << 29, "/keys:uniform/epsilon:128",
              items_per_second=1e9, fit_ms=4.0, GB_per_s=8.0, segments=12.0)])
updates = report(plain + [
    benchmark("update", "regular_b_plus_tree", 4096,
              f"/keys:uniform/change:values/method:{method}/batch:{batch}",
              items_per_second=1e6 * millions, batch_us=1.0,
              leaves_per_operation=0.5, deferred=0.125,
              device_bytes_per_operation=1500.0,
              automatic=int(method != "in_place" and
                            (method == "synchronised") == (batch <= 64)))
    for method, all_millions in (("synchronised", (4, 4, 4, 4)),
                                 ("asynchronous", (5, 2, 6, 8)),
                                 ("in_place", (16,)))
    for batch, millions in zip(
        (4096,) if method == "in_place" else (1, 64, 4096, 65536),
        all_millions)])
one_method = report(plain + [
    benchmark("update", "radix_tree", 4096,
              f"/keys:uniform/change:{change}/batch:1024",
              items_per_second=1e6 * millions, batch_us=16.0)
    for change, millions in (("insert", 64), ("erase", 32))])
radix = report(plain + [
    benchmark(op, "radix_tree", 4096, "/keys:uniform/values:none/hit:1/q:1024"
              "/order:random", items_per_second=1e6 * millions,
              ns_per_lookup=1.0, bytes_per_key=4.0)
    for op, millions in (("find", 4000), ("ref_find", 2000))] + [
    benchmark("parent_chain", "radix_tree", 4096, "/keys:uniform/values:parents"
              "/fan_out:10/hit:1/q:1024/order:random", items_per_second=1e6,
              ns_per_lookup=1.0, bytes_per_key=8.0, lookups_per_second=4e6,
              lookups_per_query=4.0)] + [
    {**hits("radix_tree", 1000, 1.0), "hits_per_second": 9e9}])
def of_strings(op, **counters):
    made = benchmark(op, "string_radix_tree", 4096, "/keys:words/values:none"
                     "/hit:1/q:1024/order:random", ns_per_lookup=1.0,
                     items_per_second=3e9, bytes_per_key=24.0,
                     chars_per_key=8.0, GB_per_s=1.0, **counters)
    for name in ("name", "run_name"):
        made[name] = made[name].replace("/u32/", "/str/")
    return made


strings = report(plain + [of_strings("find"), of_strings("ref_find"),
                          of_strings("build", build_ms=2.0)])
bounds = report(plain + [point("learned_index", 4096, 3)] + [
    {**point(f"learned_index+epsilon_{epsilon}+{way}", 4096, billions),
     "bytes_per_key": 4.0 + 1.0 / epsilon}
    for epsilon, billions in ((8, 2), (16, 4), (32, 1))
    for way in ("concise", "complete", "concise+partitioned")])

without, full = report(plain), report(plain + variants)
again = [benchmark("copy", "limit", 1 << 20, "", GB_per_s=50.0)]
merged = report(plain, again)
two_machines = report(plain, [point(r["name"].split("/")[1], 4096, 6) for r in
                              plain if r["name"].startswith("lower_bound/")],
                      gpus=("NVIDIA A", "NVIDIA B"))
throughput = full[full.index(">Throughput<"):full.index(">Range queries against")]

checks = {
    "no ablations, no section": "optimisation is worth" not in without,
    "hits of fan-outs": row(full, "eytzinger", "k17", "*0.5")
                        and "billion hits per second" in full,
    "no sweep, no batches": "Batch size, in" not in without
                            and "batch-times" not in without,
    "resident batches need no CPU": "Batch size, in" in resident_only
        and row(resident_only, "pivot_tree", "Cuda", "u32 uniform", "2¹²",
                "256", "16", "16.0", "62.5", ""),
    "batches with transfers": row(sweeps, "pivot_tree", "Cuda", "u32 uniform",
                                  "2¹²", "2¹²", "32", "128.0", "7.81", "")
                              and "Batch size, in" not in sweeps,
    "where the GPU gets ahead": "GPU ahead from 2¹²" in sweeps
        and row(sweeps, "best of each", "u32 uniform", "2¹²", "2¹²", ""),
    "no model, no prediction": "predicted from" not in sweeps,
    "predictions of batches": row(
        predictions, "pivot_tree", "Cuda", "u32 uniform", "2¹²", "2¹²", "32",
        "128.0", "7.81", "250"),
    "predicted break-even": "predicted from 1.07k" in predictions
        and row(predictions, "pivot_tree", "u32 uniform", "2¹²", "", "1.07k")
        and row(predictions, "best of each", "u32 uniform", "2¹²", "2¹²",
                "1.07k"),
    "predicted never": row(predictions, "sorted_array", "u32 uniform", "2¹²",
                           "", "never"),
    "predictions are of the same file": "predicted from" not in elsewhere
        and row(elsewhere, "pivot_tree", "u32 uniform", "2¹²", "", ""),
    "overlapped batches": row(
        overlapped, "pivot_tree", "Cuda", "u32 uniform", "2¹²", "256", "16",
        "16.0", "62.5", "500"),
    "no updates, no section": "Batches of operations" not in without,
    "updates": row(updates, "Cuda", "u32 uniform", "2¹²", "values", "4,096",
                   "4.000", "6.000", "16.000", "1.50", "asynchronous", "0.500",
                   "12.5 %", "1,500")
        and row(updates, "Cuda", "u32 uniform", "2¹²", "values", "64", "4.000",
                "2.000", "", "0.50", "synchronised", "0.500", "12.5 %",
                "1,500"),
    "where methods cross for good": "values: 4,096." in updates
        and "ahead from 2¹²" in updates and "automatic up to 64" in updates,
    "one length, no section": "Short and long ranges" not in without,
    "ranges of some lengths": "hits per range" in short_ranges
        and row(short_ranges, "b_plus_tree", "OpenMP", "u32 uniform", "no",
                "2¹²", "8", "16", "", "48.0", "384.0"),
    "ranges in the fastest buckets": row(
        short_ranges, "hybrid", "Cuda", "u32 uniform", "overlapped", "2¹²",
        "32", "16", "2¹⁶", "96.0", "3,072.0")
        and not row(short_ranges, "hybrid", "Cuda", "u32 uniform", "overlapped",
                    "2¹²", "32", "16", "chosen", "64.0", "2,048.0"),
    "ranges in host memory": row(
        short_ranges, "hybrid", "Cuda", "range", "u32 uniform, 8 hits",
        "overlapped", "2¹²", "16", "chosen", "chosen", "64.0", "2", "3", "", ""),
    "no phases of builds, no part": "Phases of rebuilding" not in without,
    "phases of builds": row(
        builds, "hybrid_b_plus_tree", "Cuda", "u32 uniform, values u32", "any",
        "2¹²", "22", "16", "4", "2"),
    "phases without a copy": row(
        builds, "b_plus_tree", "Cuda", "u32 uniform, values u32", "sorted",
        "2¹²", "12", "8", "4", ""),
    "no divisions, no section": "Dividing searches" not in without,
    "a map of divisions": "levels D of the host" in divisions
        and row(divisions, "hybrid", "Cuda", "u32 uniform", "2¹²",
                "chosen buckets", "2¹⁰", "D = 0, R = 0", "0", "0", "500.0",
                "50 %", "")
        and row(divisions, "hybrid", "Cuda", "u32 uniform", "2¹²",
                "chosen buckets", "2¹⁰", "fastest of the map", "0", "0.25",
                "750.0", "75 %", "")
        and row(divisions, "hybrid", "Cuda", "u32 uniform", "2¹²",
                "chosen buckets", "2¹⁰", "found by measuring", "0", "0.125",
                "1,000.0", "100 %", "64"),
    "divisions stay among themselves":
        "Batches in host memory" not in divisions,
    "updates of one method": row(
        one_method, "radix_tree", "Cuda", "u32 uniform", "2¹²", "insert", "2¹⁰",
        "64.000", "16") and "synchronised" not in one_method,
    "methods alone": "microseconds of a batch" not in updates,
    "strings": row(strings, "string_radix_tree", "Cuda", "str words", "2¹²",
                   "2¹⁰", "3,000.0", "1", "", "1", "no")
        and row(strings, "string_radix_tree", "Cuda", "str words", "2¹²",
                "24.00", "8.00")
        and row(strings, "sorted_array", "Cuda", "u32 uniform", "2¹²", "4.00",
                "0.00")
        and "characters per key" not in without,
    "no radix tree, no section": ">Radix tree<" not in without,
    "the radix tree's table": ">Radix tree<" in radix and row(
        radix, "Cuda", "u32 uniform", "2¹²", "4,000", "2,000", "4", "9,000"),
    "chains": row(radix, "radix_tree", "Cuda", "u32 uniform, values parents",
                  "2¹²", "2¹⁰", "1.0", "1", "", "0", "no", "4.0", "4.00"),
    "no fits, no section": "Fitting segments" not in without,
    "fits": row(fits, "Cuda", "u32 uniform", "2¹²", "16", "8", "2,000.0", "16",
                "1,010", "1,000", "1.00 %"),
    "fits without the fewest": row(fits, "Cuda", "u32 uniform", "2²⁹", "128",
                                   "4", "1,000.0", "8", "12", "", ""),
    "error bounds": "bytes of the model per key" in bounds
        and row(bounds, "learned_index", "complete", "u32 uniform", "2¹²", "16",
                "4", "0.0625")
        and not row(bounds, "learned_index", "concise, partitioned",
                    "u32 uniform", "2¹²", "16", "4", "0.0625"),
    "error bounds by setting": row(
        bounds, "learned_index", "epsilon 16, concise, partitioned", "*4"),
    "no transfers, no section": "Batches in host memory" not in without,
    "transfers one after the other": row(
        host_memory, "sorted_array", "Cuda", "lower_bound", "u32 uniform", "in",
        "2¹²", "2¹⁰", "", "", "1,000.0", "8", "4", "25 %"),
    "overlapped transfers": row(
        host_memory, "sorted_array", "Cuda", "lower_bound", "u32 uniform",
        "overlapped", "2¹²", "2¹⁰", "chosen", "chosen", "3,000.0", "24", "12", "75 %"),
    "the host's part": row(
        host_memory, "hybrid", "Cuda", "lower_bound", "u32 uniform",
        "overlapped", "2¹²", "2¹⁰", "chosen", "chosen", "2,000.0", "16", "8",
        "5 %", "97 %"),
    "buckets": row(
        host_memory, "sorted_array", "Cuda", "lower_bound", "u32 uniform",
        "overlapped", "2¹²", "2¹⁰", "2¹⁶", "chosen", "2,000.0", "16", "8", "")
               and "queries per bucket" in host_memory,
    "buckets one after the other": row(
        host_memory, "sorted_array", "Cuda", "lower_bound", "u32 uniform",
        "overlapped", "2¹²", "2¹⁰", "2¹⁷", "1", "500.0", "4", "2", "")
                                   and "1 in flight" in host_memory,
    "page-locked memory": row(
        host_memory, "sorted_array", "Cuda", "lower_bound", "u32 uniform",
        "direct", "2¹²", "2¹⁰", "2¹⁶", "chosen", "4,000.0", "32", "16", "90 %",
        "", "81.2", "93.8")
                          and "sorted_array, direct" in host_memory,
    "the link": row(host_memory, "Cuda", "link to the host, both ways at once",
                    "8 bytes in, 4 back", "2¹⁰", "36", "3,000", "0.333"),
    "transfers stay out of the throughput": "3,000.0" not in host_memory[
        :host_memory.index(">Batches in host memory<")],
    "the range section stands alone": row(
        without, "sorted_array", "Cuda", "u32 uniform, 64 hits", "2¹²", "16",
        "25", "25 %"),
    "shares are of the same run's copying": row(
        merged, "sorted_array", "Cuda", "u32 uniform, 64 hits", "2¹²", "16",
        "25", "25 %"),
    "each number of hits": row(
        full, "sorted_array", "Cuda", "u32 uniform, 16384 hits", "2¹²", "16",
        "80", "80 %"),
    "plain indexes stay above": "sorted_array" in throughput,
    "ablations stay apart": "pinned" not in throughput
                            and "eytzinger" not in throughput,
    "machines stay apart": row(two_machines, "sorted_array", "Cuda, A",
                               "u32 uniform")
        and row(two_machines, "sorted_array", "Cuda, B", "u32 uniform")
        and "Cuda, " not in merged,
    "the best is marked": row(full, "sorted_array", "plain", "*2", "1"),
    "by column": row(full, "sorted_array", "fixed, pinned 10", "1", "*3"),
    "combinations": row(full, "sorted_array", "fixed, pinned 16 kib, "
                        "team sorted", "*4"),
    "fan-outs": row(full, "eytzinger", "k9", "*6"),
    "how hosts search": row(full, "b_plus_tree", "scalar", "9")
                        and row(full, "b_plus_tree", "linear avx512", "*10")
                        and row(full, "b_plus_tree", "in flight 16", "*11")
                        and row(full, "b_plus_tree", "ordinary pages", "*12"),
    "forms of radix trees": row(full, "radix_tree", "leaf 16", "*13"),
    "variants of fan-outs": row(full, "eytzinger_k17", "one thread", "*7")
                            and row(full, "eytzinger_k17", "plain", "5"),
}
sys.exit("\n".join(f"not so: {name}" for name, holds in checks.items()
                   if not holds) or 0)
