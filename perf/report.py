#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Turns results of kindex_bench into one self-contained HTML page with plots.

Several JSON files (one per machine, say) are merged into one report:

    python3 report.py --output report.html results/h100.json results/epyc.json

With --picture FILE.svg it draws one plot for a README instead, or besides.
"""
import argparse
import html
import io
import json
import math
import re
import sys
from collections import defaultdict
from dataclasses import dataclass, field

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: E402

HOST_SPACES = {"OpenMP", "Serial", "Threads", "HPX"}

# ---- results -----------------------------------------------------------------


def is_host(space):
    """Of a space that may be followed by its machine."""
    return space.split(",")[0] in HOST_SPACES


@dataclass
class Result:
    """One benchmark: the parts of its name, and its counters."""

    op: str
    index: str
    key: str
    space: str
    n: int
    tags: dict = field(default_factory=dict)  # keys, values, q, hit, order, ...
    counters: dict = field(default_factory=dict)
    source: str = ""

    @property
    def on_gpu(self):
        return not is_host(self.space)

    @property
    def transfers(self):
        """How queries come from the host and results go back; "": not."""
        return self.tags.get("transfers", "")

    @property
    def bucket(self):
        """Queries of a bucket of transfers in buckets; 0: chosen."""
        return int(self.tags.get("bucket", 0))

    @property
    def buffers(self):
        """Buckets of such transfers in flight; 0: chosen."""
        return int(self.tags.get("buffers", 0))

    @property
    def queries(self):
        return int(self.tags.get("q", 0))

    def group(self):
        """What must agree for two results to share a panel."""
        tags = (f"{k}:{v}" for k, v in self.tags.items()
                if k not in ("q", "transfers", "bucket", "buffers"))
        return (self.key, *tags)


def parse(benchmark, source):
    name = re.sub(r"/(manual_time|min_time:[^/]*|repeats:\d+|iterations:\d+)",
                  "", benchmark["run_name"])
    parts = name.split("/")
    tags = dict(part.split(":", 1) for part in parts[4:])
    n = int(tags.pop("n"))
    standard = {"name", "run_name", "run_type", "repetitions", "threads",
                "repetition_index", "iterations", "time_unit", "cpu_time",
                "family_index", "per_family_instance_index", "label"}
    counters = {k: v for k, v in benchmark.items()
                if k not in standard and isinstance(v, (int, float))}
    return Result(*parts[:4], n, tags, counters, source)


def machine_of(context):
    """Where a file was recorded: its GPU, or else its processor."""
    return context.get("gpu", "").replace("NVIDIA ", "") or " × ".join(
        str(context[key]) for key in ("host_threads", "cpu") if key in context)


def load(paths):
    """Results, contexts by file, and names of benchmarks that failed. Where
    there are several machines, spaces are named after theirs."""
    results, contexts, failed = {}, {}, []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
        contexts[path] = content["context"]
        samples = defaultdict(list)
        for benchmark in content["benchmarks"]:
            if benchmark.get("run_type") == "aggregate":
                continue
            if benchmark.get("error_occurred"):
                failed.append((benchmark["name"],
                               benchmark.get("error_message", "")))
                continue
            samples[benchmark["run_name"]].append(benchmark)
        for name, repetitions in samples.items():
            repetitions.sort(key=lambda b: b["real_time"])
            # Later files add to or replace earlier ones. Copy bandwidth is
            # what results of the same file are compared with.
            key = (name, path if name.startswith("copy/")
                   else machine_of(contexts[path]))
            results[key] = parse(repetitions[len(repetitions) // 2], path)
    if len({machine_of(context) for context in contexts.values()}) > 1:
        for r in results.values():
            r.space += ", " + machine_of(contexts[r.source])
    return list(results.values()), contexts, failed


# ---- numbers for people --------------------------------------------------------


def power_of_two(n):
    return n > 0 and n & (n - 1) == 0


SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def count(n):
    """1234567 as 1.23M, a large power of two as 2ᵏ."""
    if n >= 1024 and power_of_two(n := int(n)):
        return "2" + str(n.bit_length() - 1).translate(SUPERSCRIPTS)
    return si(n)


def si(x):
    if x == 0:
        return "0"
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(x) >= size:
            return f"{x / size:.3g}{unit}"
    return f"{x:.3g}"


def digits(x):
    """Three digits, never as a power of ten."""
    return f"{x:,.0f}" if abs(x) >= 100 else f"{x:.3g}"


# ---- plots ---------------------------------------------------------------------

# Stand-ins that become CSS variables, so that one drawing suits light and dark.
INK, MUTED, GRID = "#010203", "#010204", "#010205"
SERIES = [f"#0a0b{i:02x}" for i in range(10)]
VARIABLES = {INK: "--ink", MUTED: "--muted", GRID: "--grid",
             **{color: f"--series-{i + 1}" for i, color in enumerate(SERIES)}}
# One more than colors, so that both together stay unique for long.
MARKERS = "osD^vPXh<>p"
# Where nothing defines these variables: equally far from white and from a dark
# page, about 4.3 : 1 to either.
MID_TONES = {
    "--ink": "#777a7f", "--muted": "#777a7f",
    **{f"--series-{i + 1}": color for i, color in enumerate((
        "#2477e9", "#c85a06", "#008d40", "#9e58de", "#9b7400", "#dc3b72",
        "#0c8888", "#6e7b8c", "#e03e38", "#778100"))}}

plt.rcParams.update({
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 10,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "axes.edgecolor": GRID,
    "axes.labelcolor": MUTED,
    "axes.titlecolor": INK,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "lines.linewidth": 2,
    "lines.markersize": 6.5,
    "legend.frameon": False,
})


class Palette:
    """A color and a marker per name, the same wherever it is used."""

    def __init__(self, order):
        self.order = order

    @classmethod
    def of_indexes(cls, results):
        return cls(sorted({r.index for r in results if r.index != "limit"},
                          key=lambda name: (name.startswith(BASELINES), name)))

    def style(self, index):
        if index == "limit":
            return {"color": MUTED, "marker": ""}
        i = self.order.index(index)
        return {"color": SERIES[i % len(SERIES)],
                "marker": MARKERS[i % len(MARKERS)]}


BASELINES = ("std_", "absl_", "art_", "kokkos_", "libart", "pgm_", "thrust_")


def painted(figure, name, paint, **options):
    """The figure as SVG of no font family, `paint` naming each CSS variable's
    color."""
    plt.rcParams["svg.hashsalt"] = name
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", **options,
                   metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    plt.close(figure)
    text = buffer.getvalue()
    text = text[text.index("<svg"):]
    for color, variable in VARIABLES.items():
        text = text.replace(color, paint(variable))
    text = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", text)
    return re.sub(r"font: (\w+) ([\d.]+)px [^;\"]*",
                  r"font-weight: \1; font-size: \2px", text)


def svg(figure, name):
    """The figure as inline SVG, its colors replaced by CSS variables."""
    text = painted(figure, name, "var({})".format, bbox_inches="tight")
    # Identifiers must stay unique among several drawings on one page.
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", text)
    width = re.search(r'width="([\d.]+)pt"', text)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    pixels = round(float(width.group(1)) * 4 / 3)
    return text.replace("<svg", f'<svg style="width:{pixels}px" role="img"', 1)


def panels(count_of_panels, name):
    """A figure of small plots, at most three in a row."""
    columns = 2 if count_of_panels in (2, 4) else min(3, count_of_panels)
    rows = math.ceil(count_of_panels / columns)
    figure, axes = plt.subplots(rows, columns, squeeze=False, num=name,
                                figsize=(max(4.6 * columns, 5.6), 3.5 * rows),
                                layout="constrained")
    figure.get_layout_engine().set(h_pad=0.12, w_pad=0.08)
    flat = list(axes.flat)
    for unused in flat[count_of_panels:]:
        unused.set_visible(False)
    return figure, flat[:count_of_panels]


def log_axis(axis, values, text, base):
    axis_name = axis.axis_name
    axis.axes.set(**{f"{axis_name}scale": "log"})
    axis.set_major_locator(LogLocator(base=base, numticks=8))
    axis.set_major_formatter(FuncFormatter(lambda x, _: text(x)))
    axis.set_minor_formatter(NullFormatter())
    axis.set_minor_locator(matplotlib.ticker.NullLocator())


def size_axis(axes, sizes, label):
    sizes = sorted(set(sizes))
    log_axis(axes.xaxis, sizes, count, 2)
    if len(sizes) <= 8:
        axes.set_xticks(sizes, [count(n) for n in sizes])
    else:
        axes.set_xticks(sizes[::2], [count(n) for n in sizes[::2]])
    if len(sizes) == 1:
        axes.set_xlim(sizes[0] / 2, sizes[0] * 2)
    axes.set_xlabel(label)


def value_axis(axes, values, label, text=si):
    """Logarithmic where values span more than a factor of 8."""
    if values and min(values) > 0 and max(values) / min(values) > 8:
        axes.set_yscale("log")
        subs = (1.0,) if max(values) / min(values) > 100 else (1.0, 2.0, 5.0)
        axes.yaxis.set_major_locator(LogLocator(base=10, subs=subs))
        axes.yaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    else:
        axes.set_ylim(bottom=0, top=max(values) * 1.08 if values else None)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: text(y)))
    axes.set_ylabel(label)


def group_title(group):
    key, *tags = group
    tags = dict(tag.split(":", 1) for tag in tags)
    title = f"{key} {tags.get('keys', '')}"
    if tags.get("values", "none") != "none":
        title += f", values {tags['values']}"
    if tags.get("hit", "1") != "1":
        title += f", hit rate {tags['hit']}"
    if tags.get("order", "random") != "random":
        title += f", {tags['order']}"
    if "hits" in tags:
        title += f", {tags['hits']} hits"
    return title


def series_label(result):
    return f"{result.index} · {result.space}"


MARKER_SHAPES = {
    "o": '<circle cx="17" cy="6" r="3.6"/>',
    "s": '<rect x="13.6" y="2.6" width="6.8" height="6.8"/>',
    "D": '<path d="M17 1.4l4.6 4.6-4.6 4.6-4.6-4.6z"/>',
    "^": '<path d="M17 1.8l4.4 7.8h-8.8z"/>',
    "v": '<path d="M17 10.2l4.4-7.8h-8.8z"/>',
    "P": '<path d="M15.6 1.8h2.8v2.8h2.8v2.8h-2.8v2.8h-2.8v-2.8h-2.8v-2.8h2.8z"/>',
    "X": '<path d="M13.6 4.4l2-2 1.4 1.6 1.4-1.6 2 2-1.6 1.6 1.6 1.6-2 2'
         '-1.4-1.6-1.4 1.6-2-2 1.6-1.6z"/>',
    "<": '<path d="M12.8 6l7.8-4.4v8.8z"/>',
    ">": '<path d="M21.2 6l-7.8-4.4v8.8z"/>',
    "p": '<path d="M17 1.6l4.4 3.2-1.7 5.1h-5.4l-1.7-5.1z"/>',
    "h": '<path d="M17 1.8l3.8 2.1v4.2l-3.8 2.1-3.8-2.1v-4.2z"/>',
    "*": '<path d="M17 .8l1.5 3.6 3.9.2-3 2.5 1 3.7-3.4-2-3.4 2 1-3.7-3-2.5'
         ' 3.9-.2z"/>',
}


class Lines:
    """Lines in panels, one per index and device, and their common legend."""

    def __init__(self, palette):
        self.palette = palette
        self.looks = {}

    def draw(self, axes, points, index, gpu, label, **style):
        look = {**self.palette.style(index),
                "linestyle": "-" if gpu else (0, (4, 2)), **style}
        if not gpu and look.get("marker"):
            look["markerfacecolor"] = "none"
        axes.plot(*zip(*sorted(points)), **look)
        self.looks.setdefault(label, (look, gpu))

    def legend(self):
        """As HTML, below the drawing; baselines and limits last."""
        def rank(label):
            index = label.split(" ")[0]
            return (index in ("one-sector", "predicted"), index.startswith(BASELINES), label)
        items = []
        for label in sorted(self.looks, key=rank):
            look, gpu = self.looks[label]
            color = f"var({VARIABLES[look['color']]})"
            dash = "" if gpu else ' stroke-dasharray="7 3.5"'
            marker = MARKER_SHAPES.get(look.get("marker"), "")
            fill = color if gpu else "var(--page)"
            items.append(
                f'<li><svg viewBox="0 0 34 12" width="34" height="12" '
                f'stroke="{color}" fill="{fill}" aria-hidden="true">'
                f'<path d="M0 6h34" stroke-width="2"{dash}/>{marker}</svg>'
                f"{html.escape(label)}</li>")
        return f'<ul class="legend">{"".join(items)}</ul>'


def by(results, key):
    groups = defaultdict(list)
    for result in results:
        groups[key(result)].append(result)
    return groups


def largest_batches(results):
    """Of results that differ in the batch alone, those of the largest batch."""
    best = {}
    for r in results:
        key = (r.op, r.index, r.space, r.n, r.group(), r.transfers, r.bucket,
               r.buffers)
        if key not in best or r.queries > best[key].queries:
            best[key] = r
    return list(best.values())


def limit_points(results, scale=1.0):
    """The one-sector limit against n, as these results know it."""
    return sorted({r.n: r.counters["one_sector_per_second"] * scale
                   for r in results
                   if "one_sector_per_second" in r.counters}.items())


def metric_figure(results, palette, name, metric, label, scale=1.0, text=si,
                  limits=False):
    """`metric` against n, one panel per key set."""
    groups = by(results, lambda r: r.group())
    figure, axes = panels(len(groups), name)
    lines = Lines(palette)
    for ax, (group, members) in zip(axes, sorted(groups.items())):
        values = []
        for (series, index, gpu), line in sorted(by(
                members, lambda r: (series_label(r), r.index, r.on_gpu)
        ).items()):
            points = [(r.n, r.counters[metric] * scale) for r in line]
            values += [y for _, y in points]
            lines.draw(ax, points, index, gpu, series)
        for space in sorted({r.space for r in members}):
            points = limit_points((r for r in members if r.space == space),
                                  scale)
            if limits and points:
                gpu = not is_host(space)
                lines.draw(ax, points, "limit", gpu,
                           f"one-sector limit · {space}", linewidth=1.2, marker="_" if len(points) == 1 else "",
                           markersize=14)
                values += [y for _, y in points]
        size_axis(ax, [r.n for r in members], "number of keys n")
        value_axis(ax, values, label, text)
        ax.set_title(group_title(group))
    return svg(figure, name) + lines.legend()


def bar_figure(results, palette, name, metric, label, scale=1.0, text=si,
               limits=False, split=True):
    """`metric` of a single n, as bars: one panel per key set, and per device
    if `split`, as devices differ by orders of magnitude."""
    groups = by(results, lambda r: (r.group(), not r.on_gpu if split else 0,
                                    r.space if split else ""))
    most = max(len(members) for members in groups.values())
    columns = min(2, len(groups))
    rows = math.ceil(len(groups) / columns)
    figure, axes = plt.subplots(
        rows, columns, squeeze=False, num=name, layout="constrained",
        figsize=(max(6.4 * columns, 7.5), (1.1 + 0.34 * (most + 1)) * rows))
    figure.get_layout_engine().set(h_pad=0.1, w_pad=0.1)
    flat = list(axes.flat)
    for unused in flat[len(groups):]:
        unused.set_visible(False)
    for ax, ((group, _, space), members) in zip(flat, sorted(groups.items())):
        members.sort(key=lambda r: r.counters[metric])
        values = [r.counters[metric] * scale for r in members]
        for y, (r, value) in enumerate(zip(members, values)):
            color = palette.style(r.index)["color"]
            ax.barh(y, value, height=0.62, linewidth=1.4, edgecolor=color,
                    color=color if r.on_gpu else "none",
                    hatch=None if r.on_gpu else "////")
            ax.annotate(text(value), (value, y), xytext=(5, 0),
                        textcoords="offset points", va="center", fontsize=9)
        marks = [r.counters["one_sector_per_second"] * scale for r in members
                 if "one_sector_per_second" in r.counters]
        widest = max(values)
        if limits and split and marks:
            widest = max(widest, marks[0])
            ax.axvline(marks[0], color=MUTED, linewidth=1.2,
                       linestyle=(0, (4, 2)))
            ax.annotate("one-sector limit", (marks[0], len(members) - 0.35),
                        fontsize=8.5, color=MUTED, ha="right", va="bottom",
                        xytext=(-4, 0), textcoords="offset points")
        ax.set_ylim(-0.6, len(members) + 0.1)
        ax.set_yticks(range(len(members)),
                      [r.index if split else series_label(r) for r in members],
                      color=INK)
        ax.set_xlim(0, widest * 1.15)
        ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: text(x)))
        ax.grid(False, axis="y")
        ax.tick_params(axis="y", length=0)
        ax.set_xlabel(label)
        title = f"{group_title(group)}, n = {count(members[0].n)}"
        ax.set_title(f"{space}: {title}" if split else title)
    return svg(figure, name)


def figure_against_n(results, *arguments, split=True, **options):
    """Lines where there are several n, otherwise bars."""
    if any(len({r.n for r in members}) > 1
           for members in by(results, lambda r: r.group()).values()):
        return metric_figure(results, *arguments, **options)
    return bar_figure(results, *arguments, split=split, **options)


# ---- the page ------------------------------------------------------------------


class Best(str):
    """A cell that a table marks."""


def table(header, rows, text_columns=1):
    def cell(tag, i, value):
        kind = "" if i < text_columns else ' class="number"'
        if isinstance(value, Best):
            kind = ' class="number best"'
        return f"<{tag}{kind}>{html.escape(str(value))}</{tag}>"
    head = "".join(cell("th", i, v) for i, v in enumerate(header))
    body = "".join("<tr>" + "".join(cell("td", i, v) for i, v in enumerate(row))
                   + "</tr>\n" for row in rows)
    return (f'<div class="scroll"><table><thead><tr>{head}</tr></thead>\n'
            f"<tbody>{body}</tbody></table></div>\n")


def details(summary, content):
    """Folds a long table away; short ones stand open."""
    is_open = content.count("<tr>") <= 16 and "<table" in content
    return (f"<details{' open' if is_open else ''}><summary>"
            f"{html.escape(summary)}</summary>\n{content}</details>\n")


def figure_block(drawing, caption=""):
    caption = f"<figcaption>{caption}</figcaption>" if caption else ""
    return f'<figure><div class="scroll">{drawing}</div>{caption}</figure>\n'


OP_TITLES = {
    "find": "Point lookups (find)",
    "ref_find": "Point lookups in a kernel of one's own (ref_find)",
    "parent_chain": "Keys followed to the root of a hierarchy (parent_chain)",
    "lower_bound": "Lower bounds",
    "count": "Counts of a key",
    "range": "Range queries",
    "for_each_in_range": "Range queries whose hits are visited",
}


def throughput_table(results):
    rows = []
    chains = any("lookups_per_second" in r.counters for r in results)
    for r in sorted(results, key=lambda r: (r.group(), r.n,
                                            -r.counters["items_per_second"])):
        c = r.counters
        limit = f"{100 * c['of_limit']:.0f} %" if "of_limit" in c else ""
        rows.append((r.index, r.space, group_title(r.group()), count(r.n),
                     count(r.queries), f"{c['items_per_second'] / 1e6:,.1f}",
                     digits(c["ns_per_lookup"]), limit,
                     digits(c.get("GB_per_s", 0)), r.transfers or "no"))
        if chains:
            rows[-1] += (f"{c['lookups_per_second'] / 1e6:,.1f}",
                         f"{c['lookups_per_query']:.2f}")
    return table(("index", "device", "keys", "n", "batch", "million/s",
                  "ns each", "of limit", "GB/s", "transfers",
                  *(("million lookups/s", "lookups each") if chains else ())),
                 rows, 3)


def main_results(results, op):
    """Of an operation, without what only the sweep over batches measured,
    without transfers where both were measured, and in the library's choice of
    buckets, or else the fastest."""
    chosen = [r for r in results if r.op == op]
    def way(r):
        own = r.bucket > 0 or r.buffers > 0
        return (("", "in", "overlapped", "direct").index(r.transfers), own,
                -r.counters["items_per_second"] if own else 0)
    first = {}
    for r in chosen:
        key = (r.index, r.space, r.n, r.group())
        first[key] = min(first.get(key, way(r)), way(r))
    chosen = [r for r in chosen
              if way(r) == first[r.index, r.space, r.n, r.group()]]
    most = {}
    for r in chosen:
        key = (r.space, r.group())
        most[key] = max(most.get(key, 0), r.queries)
    return [r for r in largest_batches(chosen)
            if r.queries == most[(r.space, r.group())]]


def throughput_section(results, palette):
    parts = []
    for op, title in OP_TITLES.items():
        chosen = main_results(results, op)
        if not chosen:
            continue
        transfers = any(r.transfers for r in chosen)
        drawing = figure_against_n(
            chosen, palette, f"throughput-{op}", "items_per_second",
            "queries per second", limits=not transfers)
        caption = ("On GPUs, queries travel from the host and results back."
                   if transfers else "")
        parts.append(f"<h3>{html.escape(title)}</h3>\n"
                     + figure_block(drawing, caption)
                     + details("Numbers", throughput_table(chosen)))
    if not parts:
        return "<p>No queries were measured in these runs.</p>"
    return "".join(parts)


def one_device_sentence(results):
    spaces = sorted({r.space for r in results})
    only = " and ".join(spaces) if spaces else "no device"
    return (f"<p>These runs have {html.escape(only)} only; this plot needs a "
            "CPU and a GPU. report.py draws it from the JSON files of "
            "both.</p>")


def has_both(results):
    return len({r.on_gpu for r in results}) == 2


def speedup_section(results, palette):
    queries = [r for op in OP_TITLES for r in main_results(results, op)]
    if not has_both(queries):
        return one_device_sentence(results)
    rows, bars = [], []
    for (op, group, n), members in sorted(by(
            queries, lambda r: (r.op, r.group(), r.n)).items()):
        host = {r.index: r for r in members if not r.on_gpu}
        gpu = {r.index: r for r in members if r.on_gpu}
        if not host or not gpu:
            continue
        rate = "items_per_second"
        pairs = [(index, gpu[index], host[index])
                 for index in gpu if index in host]
        pairs.append(("best of each", max(gpu.values(), key=lambda r: r.counters[rate]),
                      max(host.values(), key=lambda r: r.counters[rate])))
        for index, fast, slow in pairs:
            ratio = fast.counters[rate] / slow.counters[rate]
            bars.append((op, group, n, index, ratio))
            rows.append((index, op, group_title(group), count(n),
                         f"{slow.counters[rate] / 1e6:,.1f} ({slow.index})",
                         f"{fast.counters[rate] / 1e6:,.1f} ({fast.index})",
                         f"{ratio:.1f}"))
    if not bars:
        return ("<p>No key set was measured on both a CPU and a GPU, so there "
                "is nothing to compare.</p>")
    several = len({n for _, _, n, _, _ in bars}) > 1
    drawing = (speedup_figure if several else speedup_bars)(bars, palette)
    return (figure_block(drawing, "Throughput of the GPU ÷ throughput of the "
                         "CPU, with transfers only where the runs timed them.")
            + details("Numbers", table(
                ("index", "operation", "keys", "n", "CPU, million/s",
                 "GPU, million/s", "speed-up"), rows, 3)))


def speedup_bars(bars, palette):
    bars = sorted(bars, key=lambda b: (b[0], b[1], b[4]), reverse=True)
    groups = sorted({b[1] for b in bars})
    figure, ax = plt.subplots(num="speedup", layout="constrained",
                              figsize=(7.5, 0.9 + 0.36 * len(bars)))
    labels = []
    for y, (op, group, _, index, ratio) in enumerate(bars):
        color = INK if index == "best of each" else palette.style(index)["color"]
        ax.barh(y, ratio, height=0.62, color=color)
        ax.annotate(f"{ratio:.3g}×", (ratio, y), xytext=(5, 0),
                    textcoords="offset points", va="center", fontsize=9)
        labels.append(f"{op} · {index}" if len(groups) == 1
                      else f"{op} · {group_title(group)} · {index}")
    ax.axvline(1, color=MUTED, linewidth=1.2)
    ax.set_yticks(range(len(bars)), labels, color=INK)
    ax.set_xlim(0, max(b[4] for b in bars) * 1.12)
    ax.set_ylim(-0.6, len(bars) - 0.4)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}×"))
    ax.grid(False, axis="y")
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("GPU ÷ CPU")
    if len(groups) == 1:
        ax.set_title(f"{group_title(groups[0])}, n = {count(bars[0][2])}")
    return svg(figure, "speedup")


def speedup_figure(bars, palette):
    groups = by_tuple(bars, lambda b: (b[0], b[1]))
    figure, axes = panels(len(groups), "speedup")
    lines = Lines(palette)
    for ax, ((op, group), members) in zip(axes, sorted(groups.items())):
        values = []
        for index, line in sorted(by_tuple(members, lambda b: b[3]).items()):
            points = [(b[2], b[4]) for b in line]
            values += [y for _, y in points]
            if index == "best of each":
                lines.draw(ax, points, "limit", True, index, color=INK,
                           marker="*", markersize=8, linewidth=1, zorder=3)
            else:
                lines.draw(ax, points, index, True, index)
        size_axis(ax, [b[2] for b in members], "number of keys n")
        value_axis(ax, values, "GPU ÷ CPU", lambda x: f"{x:g}×")
        ax.set_title(f"{op}, {group_title(group)}")
    return svg(figure, "speedup") + lines.legend()


def by_tuple(items, key):
    groups = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups


def comes_sorted(build):
    return build.op == "build_sorted" or build.tags.get("values") == "none"


def build_section(results, palette):
    all_builds = [r for r in results if r.op in ("build", "build_sorted")]
    builds = [r for r in all_builds if r.op == "build"]
    if not all_builds:
        return "<p>Builds were not measured in these runs (--ops build).</p>"
    rows = [(r.index, r.space, group_title(r.group()),
             "sorted" if comes_sorted(r) else "any", count(r.n),
             digits(r.counters["build_ms"]),
             digits(r.counters["allocation_ms"])
             if "allocation_ms" in r.counters else "",
             f"{r.counters['items_per_second'] / 1e6:,.1f}",
             digits(r.counters["GB_per_s"]), r.transfers or "no")
            for r in sorted(all_builds, key=lambda r: (
                r.group(), r.n, r.op, r.counters["build_ms"]))]
    drawing = "" if not builds else figure_block(
        figure_against_n(builds, palette, "build", "build_ms", "milliseconds",
                         text=si),
        "Without values, keys come sorted and are only checked and copied; "
        "with values they come in any order. Lower is better.")
    return (drawing
            + details("Numbers", table(
                ("index", "device", "keys", "order", "n", "ms",
                 "of them allocation", "million keys/s", "GB/s", "transfers"),
                rows, 4))
            + build_phases_part(all_builds))


BUILD_PHASES = (("sort_ms", "entries"), ("inner_ms", "inner levels"),
                ("mirror_ms", "copy of them"))


def build_phases_part(builds):
    """Of what the time of building an implicit tree consists."""
    phased = [r for r in builds if "inner_ms" in r.counters]
    if not phased:
        return ""
    def row_of(r):
        order = "sorted" if comes_sorted(r) else "any order"
        return f"{series_label(r)}, {group_title(r.group())}, {order}"
    largest = {}
    for r in phased:
        if row_of(r) not in largest or r.n > largest[row_of(r)].n:
            largest[row_of(r)] = r
    figure, ax = plt.subplots(num="build-phases", layout="constrained",
                              figsize=(9, 1.3 + 0.36 * len(largest)))
    lines = Lines(Palette([name for _, name in BUILD_PHASES]))
    for y, (title, r) in enumerate(sorted(largest.items(), reverse=True)):
        left = 0
        for counter, name in BUILD_PHASES:
            width = r.counters.get(counter, 0)
            look = lines.palette.style(name)
            lines.looks.setdefault(name, ({**look, "marker": ""}, True))
            ax.barh(y, width, left=left, height=0.62, color=look["color"])
            left += width
        ax.annotate(digits(left), (left, y), xytext=(5, 0),
                    textcoords="offset points", va="center", fontsize=9)
    ax.set_yticks(range(len(largest)), [
        f"{title}, n = {count(r.n)}" for title, r in
        sorted(largest.items(), reverse=True)], color=INK)
    ax.grid(False, axis="y")
    ax.tick_params(axis="y", length=0)
    ax.set_xlim(right=ax.get_xlim()[1] * 1.08)
    ax.set_xlabel("milliseconds")
    rows = [(r.index, r.space, group_title(r.group()),
             "sorted" if comes_sorted(r) else "any", count(r.n),
             digits(r.counters["build_ms"]),
             *(digits(r.counters[counter]) if counter in r.counters else ""
               for counter, _ in BUILD_PHASES))
            for r in sorted(phased, key=lambda r: (
                r.group(), r.n, r.index, r.space, r.op))]
    return ("<h3>Phases of rebuilding an implicit tree</h3>\n"
            + figure_block(svg(figure, "build-phases") + lines.legend(),
                           "Entries are sorted and copied, or where they come "
                           "sorted checked and copied; inner levels are "
                           "written; those of a hybrid tree, whose build is on "
                           "the host, are copied to the device. Each with a "
                           "fence behind it, which builds do not have.")
            + details("Numbers", table(
                ("index", "device", "keys", "order", "n", "ms",
                 *(name + ", ms" for _, name in BUILD_PHASES)), rows, 4)))


def fit_sections(results):
    """The fits of learned indexes, by themselves."""
    fits = [r for r in results if r.op == "fit"]
    if not fits:
        return []
    def plain(r):
        return tuple(tag for tag in r.group() if not tag.startswith("epsilon:"))
    rows = []
    for r in sorted(fits, key=lambda r: (plain(r), r.n, r.space,
                                         int(r.tags["epsilon"]))):
        c = r.counters
        fewest = c.get("segments_optimal", 0)
        rows.append((
            r.space, group_title(plain(r)), count(r.n), r.tags["epsilon"],
            digits(c["fit_ms"]), f"{c['items_per_second'] / 1e6:,.1f}",
            digits(c["GB_per_s"]), f"{c['segments']:,.0f}",
            f"{fewest:,.0f}" if fewest else "",
            f"{100 * (c['segments'] / fewest - 1):.2f} %" if fewest else ""))
    return [("Fitting segments",
             "<p>The piecewise-linear fit of a learned index alone, of sorted "
             "keys in the device's memory. The fewest segments possible are "
             "those of one chunk, fitted on the host.</p>"
             + table(("device", "keys", "n", "epsilon", "ms", "million keys/s",
                      "GB/s", "segments", "fewest possible", "more"),
                     rows, 2))]


UPDATE_METHODS = ("in_place", "asynchronous", "synchronised")


def update_figure(cells, crossings):
    """Operations per second of all methods against the size of a batch, and
    where those cross that readers go on with."""
    figure, axes = panels(len(crossings), "updates")
    methods = [m for m in UPDATE_METHODS
               if any(of == m for _, _, of in cells)]
    lines = Lines(Palette(methods))
    for ax, (line, crossing) in zip(axes, sorted(crossings.items())):
        group, n, space, change = line
        values, sizes, switches = [], [], []
        for method in methods:
            points = {batch: c for (at, batch, of), c in cells.items()
                      if at == line and of == method}
            if not points:
                continue
            lines.draw(ax, [(batch, c["items_per_second"])
                            for batch, c in points.items()], method,
                       not is_host(space), method, markersize=4.5)
            values += [c["items_per_second"] for c in points.values()]
            sizes += points
            if method == "synchronised":
                switches = [b for b, c in points.items() if c.get("automatic")]
        size_axis(ax, sizes, "operations per batch")
        value_axis(ax, values, "operations per second")
        ax.set_title(f"{space}: {group_title(group)},\n"
                     f"n = {count(n)}, {change}")
        if crossing is not None:
            mark_batch(ax, crossing, f"ahead from {count(crossing)}")
        if switches:
            mark_batch(ax, max(switches),
                       f"automatic up to {count(max(switches))}", True)
    return figure_block(
        svg(figure, "updates") + lines.legend(),
        "The mark is from where on the asynchronous method stays ahead of the "
        "synchronised one; dashed: up to where UpdateMethod::automatic takes "
        "that while others read. While nobody does, it takes in_place.")


def update_sections(results):
    """Batches of operations."""
    updates = [r for r in results if r.op == "update"]
    if not updates:
        return []
    methods = [r for r in updates if "method" in r.tags]
    plain = [r for r in updates if "method" not in r.tags]
    return [("Batches of operations",
             (methods_of_update(methods) if methods else "")
             + (plain_updates(plain) if plain else ""))]


def update_group(result):
    """What batches of operations have in common."""
    varying = ("batch:", "method:", "change:")
    return tuple(t for t in result.group() if not t.startswith(varying))


def plain_updates(updates):
    """Of indexes that have one method."""
    rows = []
    for r in sorted(updates, key=lambda r: (
            r.index, r.space, update_group(r), r.n, r.tags["change"],
            int(r.tags["batch"]))):
        c = r.counters
        rows.append((r.index, r.space, group_title(update_group(r)), count(r.n),
                     r.tags["change"], count(int(r.tags["batch"])),
                     f"{c['items_per_second'] / 1e6:,.3f}",
                     digits(c["batch_us"])))
    return ("<p>Of keys in the device's memory, at random places: "
            "<em>values</em> are updates of entries that are there; new keys "
            "are inserted and, not in the same measurement, erased.</p>"
            + table(("index", "device", "keys", "n", "change", "batch",
                     "million operations/s", "microseconds of a batch"), rows,
                    5))


def methods_of_update(updates):
    """All methods side by side, and where those cross that readers go on
    with."""
    cells, where = {}, defaultdict(dict)
    for r in updates:
        line = (update_group(r), r.n, r.space, r.tags["change"])
        cells[line, int(r.tags["batch"]), r.tags["method"]] = r.counters
        where[line][int(r.tags["batch"])] = True
    rows, crossings, found = [], [], {}
    for line in sorted(where):
        group, n, space, change = line
        crossing = None
        for batch in sorted(where[line]):
            pair = [cells.get((line, batch, method))
                    for method in ("synchronised", "asynchronous")]
            shown = [f"{c['items_per_second'] / 1e6:,.3f}" if c else ""
                     for c in pair]
            ratio = ""
            if all(pair):
                faster = (pair[1]["items_per_second"]
                          / pair[0]["items_per_second"])
                ratio = f"{faster:.2f}"
                if faster < 1:
                    crossing = None
                elif crossing is None:
                    crossing = batch
            c = pair[1] or pair[0]
            taken = [name for name, of in zip(
                ("synchronised", "asynchronous"), pair)
                if of and of.get("automatic")]
            in_place = cells.get((line, batch, "in_place"))
            shown.append(f"{in_place['items_per_second'] / 1e6:,.3f}"
                         if in_place else "")
            c = c or in_place
            rows.append((space, group_title(group), count(n), change,
                         f"{batch:,}", *shown, ratio, *(taken or [""]),
                         f"{c['leaves_per_operation']:.3f}",
                         f"{100 * c['deferred']:.1f} %",
                         f"{c['device_bytes_per_operation']:,.0f}"))
        found[line] = crossing
        if crossing is not None:
            crossings.append(f"{space}, {group_title(group)}, n = {count(n)}, "
                             f"{change}: {crossing:,}")
    return ("<p>RegularBPlusTree: <em>values</em> are updates of entries that "
            "are there, <em>entries</em> erasures and insertions of them, at "
            "random places. From which batch size on the asynchronous method "
            "stays ahead: "
            + html.escape("; ".join(crossings) or "none of those measured")
            + ".</p>"
            + update_figure(cells, found)
            + table(("device", "keys", "n", "change", "batch",
                     "synchronised, million operations/s",
                     "asynchronous", "in place", "ratio of the first two",
                     "automatic takes while others read",
                     "leaves written per operation",
                     "in leaves split or joined",
                     "bytes to the device per operation"), rows, 4))


def radix_sections(results):
    """What Alam, Yoginath and Perumalla measured on GRT: a row per key set."""
    chosen = [r for r in results if r.index == "radix_tree"
              and not r.transfers]
    if not any(r.op in ("ref_find", "parent_chain") for r in chosen):
        return []
    kinds = ("find", "ref_find", "parent_chain", "range", "build", "insert",
             "erase")
    cells = defaultdict(dict)
    for r in chosen:
        kind = r.tags["change"] if r.op == "update" else r.op
        rate = r.counters.get("lookups_per_second", work_rate(r))
        column = (kinds.index(kind), int(r.tags.get(
            "hits", r.tags.get("batch", 0)))) if kind in kinds else None
        # Stored values before positions, and of batches the fastest.
        row = (r.space, r.key, r.tags["keys"], r.n)
        if column is not None:
            cells[row][column] = max(
                cells[row].get(column, (False, 0)),
                (r.tags.get("values") != "none", rate))
    titles = ("bulk", "in a kernel", "hierarchical", "ranges of {} hits, hits",
              "build, keys", "insert, batches of {}", "erase, batches of {}")
    columns = sorted({column for row in cells.values() for column in row})
    rows = [(space, f"{key} {keys}", count(n),
             *(digits(cells[space, key, keys, n][c][1] / 1e6)
               if c in cells[space, key, keys, n] else "" for c in columns))
            for space, key, keys, n in sorted(cells)]
    return [("Radix tree",
             "<p>The operations of Alam, Yoginath and Perumalla (2016), in "
             "million lookups per second; hierarchical ones count each lookup "
             "of a chain. With stored values where such were measured.</p>"
             + table(("device", "keys", "n",
                      *(titles[kind].format(si(size))
                        for kind, size in columns)), rows, 2))]


def memory_section(results, palette):
    seen = {}
    for r in results:
        if "bytes_per_key" in r.counters:
            tags = {k: v for k, v in r.tags.items() if k in ("keys", "values")}
            plain = Result("memory", r.index, r.key, r.space, r.n, tags,
                           r.counters, r.source)
            seen[(r.index, r.key, r.space, r.n, *tags.items())] = plain
    if not seen:
        return "<p>No index was measured in these runs.</p>"
    plain = list(seen.values())
    drawing = figure_against_n(plain, palette, "memory", "bytes_per_key",
                               "bytes per key", text=lambda x: f"{x:.3g}",
                               split=False)
    strings = any("chars_per_key" in r.counters for r in plain)
    rows = [(r.index, r.space, group_title(r.group()), count(r.n),
             f"{r.counters['bytes_per_key']:.2f}",
             *((f"{r.counters.get('chars_per_key', 0):.2f}",) if strings
               else ()))
            for r in sorted(plain, key=lambda r: (r.group(), r.n,
                                                  r.counters["bytes_per_key"]))]
    return (figure_block(drawing, "All that the index holds, keys and values "
                         "included. Lower is better.")
            + details("Numbers", table(
                ("index", "device", "keys", "n", "bytes per key",
                 *(("characters per key",) if strings else ())), rows, 3)))


def crossing(host, gpu):
    """The smallest batch from which on the GPU is ahead, or None."""
    common = sorted(set(host) & set(gpu))
    ahead = None
    for q in reversed(common):
        if gpu[q] <= host[q]:
            break
        ahead = q
    return ahead


def batch_us(result):
    """Microseconds of a batch."""
    return result.counters.get(
        "batch_us", result.counters["ns_per_lookup"] * result.queries / 1e3)


def batch_groups(results):
    """By key set and n, where there are several sizes of batches on a GPU."""
    groups = by(results, lambda r: (r.group(), r.n))
    return {key: members for key, members in sorted(groups.items())
            if len({r.queries for r in members if r.on_gpu}) > 1}


def predicted_us(result):
    """What the cost model says of a batch, or None."""
    milliseconds = result.counters.get("predicted_ms")
    return None if milliseconds is None else 1e3 * milliseconds


def predicted_rate(result):
    microseconds = predicted_us(result)
    return None if microseconds is None else 1e6 * result.queries / microseconds


def batch_figure(groups, palette, name, value, label, mark=None,
                 prediction=lambda r: None):
    """`value` against the size of a batch, and dashed what was predicted;
    `mark(axes, group, members)` adds to a panel."""
    figure, axes = panels(len(groups), name)
    lines = Lines(palette)
    for ax, ((group, n), members) in zip(axes, groups.items()):
        series = by(members, lambda r: (series_label(r), r.index, r.on_gpu))
        for (title, index, gpu), line in sorted(series.items()):
            lines.draw(ax, [(r.queries, value(r)) for r in line], index, gpu,
                       title, markersize=4.5, linewidth=1.6)
            predicted = [(r.queries, prediction(r)) for r in line
                         if prediction(r) is not None]
            if predicted:
                look = {"color": MUTED, "marker": ""}
                lines.looks.setdefault("predicted", (look, False))
                ax.plot(*zip(*sorted(predicted)), linewidth=1.1,
                        color=palette.style(index)["color"],
                        linestyle=(0, (3, 2)))
        size_axis(ax, [r.queries for r in members], "lookups per batch")
        value_axis(ax, [value(r) for r in members], label)
        ax.set_title(f"{group_title(group)}, n = {count(n)}")
        if mark:
            mark(ax, (group, n), members)
    return svg(figure, name) + lines.legend()


def batch_table(groups):
    rows = []
    for (group, n), members in groups.items():
        for r in sorted(members, key=lambda r: (r.index, r.space, r.queries)):
            rows.append((r.index, r.space, group_title(group), count(n),
                         count(r.queries), digits(batch_us(r)),
                         f"{r.counters['items_per_second'] / 1e6:,.1f}",
                         digits(r.counters["ns_per_lookup"]),
                         "" if predicted_us(r) is None
                         else digits(predicted_us(r))))
    return table(("index", "device", "keys", "n", "batch", "microseconds",
                  "million/s", "ns each", "predicted microseconds"), rows, 3)


def rate_of(result):
    return result.counters["items_per_second"]


def best_rates(members):
    """The best rate by batch size, of GPUs (True) and of CPUs (False)."""
    best = {True: {}, False: {}}
    for r in members:
        rates = best[r.on_gpu]
        rates[r.queries] = max(rates.get(r.queries, 0), rate_of(r))
    return best


def linear_cost(points):
    """(fixed, each) of the line through (batch, microseconds) of least relative
    squares, as kindex::LinearCost fits it."""
    weights = [1 / y ** 2 for _, y in points]
    total = sum(weights)
    x0 = sum(w * x for w, (x, _) in zip(weights, points)) / total
    y0 = sum(w * y for w, (_, y) in zip(weights, points)) / total
    square = sum(w * (x - x0) ** 2 for w, (x, _) in zip(weights, points))
    product = sum(w * (x - x0) * (y - y0)
                  for w, (x, y) in zip(weights, points))
    if square > 0 and product > 0:
        each = product / square
        if y0 - each * x0 >= 0:
            return y0 - each * x0, each
    return 0, (sum(w * x * y for w, (x, y) in zip(weights, points))
               / sum(w * x * x for w, (x, _) in zip(weights, points)))


def predicted_break_even(gpu, hosts):
    """The smallest batch from which on the model says that an index on a GPU is
    ahead of the fastest one on a CPU, or infinity."""
    last = max(r.queries for r in hosts)
    fastest = max((r for r in hosts if r.queries == last), key=rate_of)
    fixed, each = linear_cost([(r.queries, batch_us(r)) for r in hosts
                               if series_label(r) == series_label(fastest)])
    delay = gpu.counters["predicted_fixed_us"] - fixed
    gain = each - gpu.counters["predicted_ns_per_lookup"] / 1e3
    if delay < 0:
        return 1 if gain >= 0 else math.inf
    return math.floor(delay / gain) + 1 if gain > 0 else math.inf


def predicted_break_evens(members):
    """The same by index, where a model and hosts are in the same file."""
    found = {}
    for r in members:
        hosts = [h for h in members if not h.on_gpu and h.source == r.source]
        if r.on_gpu and hosts and "predicted_ns_per_lookup" in r.counters:
            found[r.index] = predicted_break_even(r, hosts)
    return found


def batch_or_never(batch):
    if batch is None:
        return ""
    return "never" if batch == math.inf else count(batch)


def mark_batch(ax, batch, text, predicted=False):
    look = ({"color": MUTED, "linestyle": (0, (3, 2))} if predicted
            else {"color": INK})
    ax.axvline(batch, linewidth=1.2, **look)
    ax.annotate(text, (batch, 0), xycoords=("data", "axes fraction"),
                xytext=(-5 if predicted else 5, 18 if predicted else 6),
                ha="right" if predicted else "left",
                textcoords="offset points", fontsize=9)


def batch_section(results, palette):
    sweep = [r for r in results if r.op == "find"
             and (r.transfers == "in" or not r.on_gpu)]
    if not has_both(sweep):
        if has_both(results):
            return ("<p>No batches of find were measured on both devices in "
                    "these runs (--sweep).</p>")
        return one_device_sentence(results)
    groups = {}
    for key, members in batch_groups(sweep).items():
        best = best_rates(members)
        if len(best[True].keys() & best[False].keys()) > 1:
            groups[key] = members
    if not groups:
        return ("<p>Batch sizes were not swept on both in these runs "
                "(kindex_bench --sweep).</p>")
    def mark(ax, _, members):
        best = best_rates(members)
        if win := crossing(best[False], best[True]):
            mark_batch(ax, win, f"GPU ahead from {count(win)}")
        batch = min(predicted_break_evens(members).values(), default=math.inf)
        if batch < math.inf:
            mark_batch(ax, batch, f"predicted from {count(batch)}", True)
    rows = []
    for (group, n), members in groups.items():
        best = best_rates(members)
        win = crossing(best[False], best[True])
        predicted = predicted_break_evens(members)
        for label in sorted({r.index for r in members if r.on_gpu}):
            sides = best_rates([r for r in members if r.index == label])
            at = crossing(sides[False], sides[True])
            rows.append((label, group_title(group), count(n),
                         "" if not sides[False] else
                         count(at) if at else "at no batch measured",
                         batch_or_never(predicted.get(label))))
        rows.append(("best of each", group_title(group), count(n),
                     count(win) if win else "at no batch measured",
                     batch_or_never(
                         min(predicted.values(), default=None))))
    rates = batch_figure(groups, palette, "batches", rate_of,
                         "lookups per second", mark, predicted_rate)
    times = batch_figure(groups, palette, "batch-times", batch_us,
                         "microseconds per batch", prediction=predicted_us)
    return (figure_block(rates,
                         "On the GPU, queries travel from the host and results "
                         "back; the mark is where the fastest GPU index "
                         "overtakes the fastest CPU index for good. Thin and "
                         "dashed: what kindex::TransferModel predicts, "
                         "calibrated in the same run, and from which batch on "
                         "it expects the GPU ahead of the fastest CPU index of "
                         "the same file.")
            + figure_block(times, "The same batches: how long each takes.")
            + details("Numbers", table(
                ("index", "keys", "n", "ahead of the same index on the CPU from",
                 "predicted ahead of the fastest from"), rows, 2))
            + details("Batches", batch_table(groups)))


def resident_sections(results, palette):
    """Batches of all sizes that stay in the device's memory."""
    chosen = [r for r in results if r.op == "find" and not r.transfers]
    groups = batch_groups(chosen)
    if not groups:
        return []
    # The hosts' batches are in their memory anyway.
    rates = batch_figure(groups, palette, "resident", rate_of,
                         "lookups per second")
    times = batch_figure(groups, palette, "resident-times", batch_us,
                         "microseconds per batch")
    return [("Batch size, in the device's memory",
             figure_block(rates, "Queries and results stay in the memory of the "
                          "device that searches.")
             + figure_block(times, "The same batches: how long each takes, the "
                            "launch of its kernel included.")
             + details("Batches", batch_table(groups)))]


def limits_section(results):
    rows = []
    last = {(r.op, r.space, r.n, r.group()): r for r in results
            if r.index == "limit"}
    for r in sorted(last.values(),
                    key=lambda r: (r.space, r.op, r.key, r.n)):
        if r.op == "copy":
            rows.append((r.space, "copy", f"{r.n * 8 / 2**30:g} GiB", "",
                         digits(r.counters["GB_per_s"]), "", ""))
        elif r.op == "link":
            rows.append((r.space, "link to the host, both ways at once",
                         f"{r.tags['in']} bytes in, {r.tags['out']} back",
                         count(r.n), digits(r.counters["GB_per_s"]),
                         f"{r.counters['items_per_second'] / 1e6:,.0f}",
                         digits(1e9 / r.counters["items_per_second"])))
        else:
            rows.append((r.space, "one sector per query",
                         f"{count(r.n)} {r.key}, values {r.tags['values']}",
                         count(r.queries), digits(r.counters["GB_per_s"]),
                         f"{r.counters['items_per_second'] / 1e6:,.0f}",
                         digits(r.counters["ns_per_lookup"])))
    if not rows:
        return "<p>Limits were not measured in these runs.</p>"
    return table(("device", "limit", "array", "batch", "GB/s",
                  "million queries/s", "ns each"), rows, 3)


def buckets_block(groups, name, counter, what, caption):
    """A counter against the size of buckets: a panel per operation, key set
    and index, a line per way."""
    figure, axes = panels(len(groups), name)
    def name_of(r):
        return (r.index
                + (", direct" if r.transfers == "direct" else "")
                + (f", {r.buffers} in flight" if r.buffers else ""))
    lines = Lines(Palette(sorted({name_of(r) for members in groups.values()
                                  for r in members})))
    for ax, ((op, group, n, index), members) in zip(axes, groups.items()):
        for (way, space), line in sorted(by(
                members, lambda r: (name_of(r), r.space)).items()):
            lines.draw(ax, [(r.bucket, r.counters[counter]) for r in line], way,
                       True, f"{way} · {space}")
        size_axis(ax, [r.bucket for r in members], "queries per bucket")
        value_axis(ax, [r.counters[counter] for r in members], what)
        ax.set_title(f"{op} of {index},\n{group_title(group)}, "
                     f"n = {count(n)}")
    return figure_block(svg(figure, name) + lines.legend(), caption)


def transfers_sections(results):
    """Batches in host memory: all at once against in buckets, and the link."""
    points = largest_batches([r for r in results if r.transfers
                              and r.op in OP_TITLES
                              and "GB_per_s_in" in r.counters])
    if not points:
        return []
    parts = []
    buckets = by([r for r in points if r.bucket],
                 lambda r: (r.op, r.group(), r.n, r.index))
    buckets = {key: members for key, members in sorted(buckets.items())
               if len({r.bucket for r in members}) > 1}
    if buckets:
        parts.append(buckets_block(
            buckets, "buckets", "items_per_second", "queries per second",
            "Transfers in buckets of different sizes, as many in flight as the "
            "library chose unless named otherwise; direct: from page-locked "
            "memory."))
    timed = {key: [r for r in members if "bucket_us" in r.counters]
             for key, members in buckets.items()}
    timed = {key: members for key, members in timed.items() if members}
    if timed:
        parts.append(buckets_block(
            timed, "bucket_latencies", "bucket_us",
            "microseconds of a bucket",
            "The same: from when the host begins to fill a bucket until it has "
            "finished it, on average."))
    groups = batch_groups([r for r in results if r.op == "find" and not r.bucket
                           and not r.buffers and r.transfers == "overlapped"])
    if groups:
        palette = Palette.of_indexes(
            [r for members in groups.values() for r in members])
        parts.append(
            figure_block(batch_figure(groups, palette, "overlapped", rate_of,
                                      "lookups per second",
                                      prediction=predicted_rate),
                         "Overlapped transfers in buckets of the library's "
                         "choice. Thin and dashed: as kindex::TransferModel "
                         "predicts.")
            + details("Batches", batch_table(groups)))
    rows = []
    for r in sorted(points, key=lambda r: (
            r.op, r.group(), r.n, r.index, r.transfers, r.bucket, r.buffers)):
        c = r.counters
        rows.append((
            r.index, r.space, r.op, group_title(r.group()), r.transfers,
            count(r.n), count(r.queries),
            "" if r.transfers == "in" else
            count(r.bucket) if r.bucket else "chosen",
            "" if r.transfers == "in" else r.buffers or "chosen",
            f"{c['items_per_second'] / 1e6:,.1f}", digits(c["GB_per_s_in"]),
            digits(c["GB_per_s_out"]),
            f"{100 * c['of_link']:.0f} %" if "of_link" in c else "",
            f"{100 * c['of_last_mile']:.0f} %" if "of_last_mile" in c else "",
            digits(c["bucket_us"]) if "bucket_us" in c else "",
            digits(c["longest_bucket_us"]) if "longest_bucket_us" in c else ""))
    parts.append(details("Numbers", table(
        ("index", "device", "operation", "keys", "transfers", "n", "batch",
         "bucket", "in flight", "million/s", "GB/s in", "GB/s back", "of the link",
         "of the host", "us of a bucket", "longest"), rows, 5)))
    return [("Batches in host memory",
             "<p>“in”: page-locked memory, copy, search and copy back one after "
             "the other. “overlapped”: any memory, in buckets whose steps "
             "overlap; “direct”: the same from page-locked memory, which "
             "takes no copies on the host. “of the link”: of what queries and "
             "results alone take "
             "from and to page-locked memory, both ways at once. “of the host”: "
             "of what the host’s part alone takes, where it ends the searches.</p>"
             + "".join(parts))]


def division_sections(results):
    """Maps of how fast each division of work between host and device is."""
    divisions = [r for r in results if r.op == "divide"]
    if not divisions:
        return []
    def plain(r):
        return tuple(t for t in r.group() if not t.startswith(
            ("levels:", "share:", "division:")))
    groups = by(divisions, lambda r: (r.index, r.space, plain(r), r.n,
                                      r.bucket, r.queries))
    groups = dict(sorted(groups.items()))
    figure, axes = panels(len(groups), "divisions")
    rows = []
    for ax, ((index, space, group, n, bucket, queries), members) in zip(
            axes, groups.items()):
        # A tree may have fewer levels than were asked for.
        given = {(int(r.counters["levels"]), r.counters["share"]): r
                 for r in members if "division" not in r.tags}
        found = [r for r in members if "division" in r.tags]
        best = max(map(rate_of, members))
        for (levels, share), r in sorted(given.items()):
            ax.add_patch(plt.Rectangle(
                (share - 0.125, levels - 0.5), 0.25, 1, linewidth=0,
                color=SERIES[0], alpha=0.65 * (rate_of(r) / best) ** 2))
            ax.annotate(digits(rate_of(r) / 1e6), (share, levels),
                        ha="center", va="center", fontsize=9)
        for r in found:
            at = (r.counters["share"], r.counters["levels"])
            ax.plot(*at, marker="o", markersize=26, markerfacecolor="none",
                    color=SERIES[1], linewidth=0, clip_on=False)
        ax.set_xlim(-0.125, 1.125)
        ax.set_ylim(max((d for d, _ in given), default=0) + 0.5, -0.5)
        ax.set_xticks([0, 0.25, 0.5, 0.75, 1])
        ax.set_yticks(sorted({d for d, _ in given}))
        ax.grid(False)
        ax.tick_params(length=0)
        ax.set_xlabel("share R with one level more")
        ax.set_ylabel("levels D of the host")
        size = f"buckets of {count(bucket)}" if bucket else "chosen buckets"
        ax.set_title(f"{index}: {group_title(group)},\nn = {count(n)}, {size}")
        fastest = max(given.values(), key=rate_of, default=None)
        for what, r in ([("D = 0, R = 0", given.get((0, 0))),
                         ("fastest of the map", fastest)]
                        + [("found by measuring", r) for r in found]):
            if r is not None:
                rows.append((
                    index, space, group_title(group), count(n), size,
                    count(queries), what, f"{r.counters['levels']:.0f}",
                    f"{r.counters['share']:.3g}", f"{rate_of(r) / 1e6:,.1f}",
                    f"{100 * rate_of(r) / best:.0f} %",
                    digits(r.counters["balance_ms"])
                    if "balance_ms" in r.counters else ""))
    return [("Dividing searches between host and device",
             "<p>The host follows the topmost D levels of all lookups, and one "
             "level more of a share R of each bucket, the device those below, "
             "and the host ends in the leaf. Million lower bounds per second; "
             "the circle is what <code>balance</code> found.</p>"
             + figure_block(svg(figure, "divisions"))
             + table(("index", "device", "keys", "n", "in", "batch", "division",
                      "D", "R", "million/s", "of the fastest",
                      "ms to find it"), rows, 3))]


# ---- ablations -----------------------------------------------------------------

# What is compared, and by which names: `setting` of index `base`. Where the plain
# index belongs to the comparison, `with_plain` is true.
ERROR_BOUNDS = r"(?P<base>\w+)\+(?P<setting>epsilon_\d+\+\w+(\+\w+)?)"
ABLATIONS = [
    ("Scheduling, team size and lookups per thread",
     r"(?P<base>\w+)\+(?P<setting>(dynamic|fixed|one_per_core)"
     r"\+(team|lookups)_\d+)", True),
    ("Pinning the top of the index in team scratch",
     r"(?P<base>\w+)\+(?P<setting>(dynamic|fixed)\+pinned_\w+)", True),
    ("Reordering lookups",
     r"(?P<base>\w+)\+(?P<setting>team_sorted\w*|partitioned)", True),
    ("Pinning and reordering together",
     r"(?P<base>\w+)\+(?P<setting>(dynamic|fixed)\+pinned_\w+"
     r"\+team_sorted\w*)", True),
    ("Layout of entries: SoA and AoS", r"(?P<base>\w+?)[_+](?P<setting>aos)",
     True),
    ("Levels of pivots stored",
     r"(?P<base>\w+)\+(?P<setting>levels_\w+)", True),
    ("Lookups in flight per thread of a host",
     r"(?P<base>\w+)\+(?P<setting>in_flight_\d+)", True),
    ("Pages of a host's memory",
     r"(?P<base>\w+)\+(?P<setting>ordinary_pages)", True),
    ("How a host searches a node",
     r"(?P<base>\w+)\+(?P<setting>scalar|\w*(avx2|avx512|neon)\w*)", True),
    ("Leaves and nodes of a radix tree",
     r"(?P<base>radix\w+)\+(?P<setting>leaf_\d+|wide_references|pinned_root)",
     True),
    ("Cooperation of lanes",
     r"(?P<base>\w+)\+(?P<setting>one_key_per_lane|one_thread)", True),
    ("Fan-out", r"(?P<base>\w+)_(?P<setting>k\d+)", False),
    ("Error bounds and search of a learned index", ERROR_BOUNDS, True),
    ("The promise that queries are sorted",
     r"(?P<base>\w+)\+(?P<setting>sorted_queries)", True),
]


def is_ablation(index):
    """Whether the index is there for comparisons of settings only."""
    return "+" in index or re.search(r"_k\d+$", index) is not None


def ablation_members(results, pattern, with_plain):
    """(base, setting, result) of a comparison, plain indexes first."""
    members = []
    for r in results:
        if match := re.fullmatch(pattern, r.index):
            members.append((match["base"], match["setting"], r))
    compared = {(base, r.op, r.space, r.n, r.group()) for base, _, r in members}
    plain = [(r.index, "plain", r) for r in results if with_plain
             and (r.index, r.op, r.space, r.n, r.group()) in compared]
    return plain + members


def work_rate(result):
    """Hits per second of ranges, lookups of others."""
    return result.counters.get("hits_per_second",
                               result.counters["items_per_second"])


def work_unit(op):
    return "hits" if op in ("range", "for_each_in_range") else "lookups"


def ablation_table(members):
    """Rates by setting and key set, the best of each index marked."""
    columns = list(dict.fromkeys(
        (r.group(), r.n) for _, _, r in
        sorted(members, key=lambda m: (m[2].group(), m[2].n))))
    rates = {(base, setting, (r.group(), r.n)): work_rate(r)
             for base, setting, r in members}
    best = {}
    for (base, _, column), rate in rates.items():
        best[base, column] = max(best.get((base, column), 0), rate)
    rows = []
    for base, setting in dict.fromkeys(m[:2] for m in sorted(
            members, key=lambda m: m[0])):
        cells = []
        for column in columns:
            rate = rates.get((base, setting, column))
            text = "" if rate is None else digits(rate / 1e9)
            cells.append(Best(text) if rate == best.get((base, column), -1)
                         else text)
        rows.append((base, setting.replace("+", ", ").replace("_", " "),
                     *cells))
    header = [f"{group_title(group)}, {count(n)}" for group, n in columns]
    return table(("index", "setting", *header), rows, 2)


def ablation_figure(members, name):
    """Rates against settings: a panel per index and key set, a line per n."""
    panels_of = by_tuple(members, lambda m: (m[0], m[2].group()))
    figure, axes = panels(len(panels_of), name)
    sizes = sorted({r.n for _, _, r in members})
    lines = Lines(Palette([count(n) for n in sizes]))
    for ax, ((base, group), panel) in zip(axes, sorted(panels_of.items())):
        settings = list(dict.fromkeys(setting for _, setting, _ in panel))
        values = []
        for n in sizes:
            points = [(settings.index(setting), work_rate(r))
                      for _, setting, r in panel if r.n == n]
            if points:
                values += [y for _, y in points]
                lines.draw(ax, points, count(n), True, f"n = {count(n)}",
                           linewidth=1.2)
        ax.set_xticks(range(len(settings)),
                      [s.replace("+", ", ").replace("_", " ")
                       for s in settings], rotation=40, ha="right",
                      rotation_mode="anchor", fontsize=8.5)
        ax.set_xlim(-0.5, len(settings) - 0.5)
        value_axis(ax, values, f"{work_unit(panel[0][2].op)} per second")
        ax.set_title(f"{base}: {group_title(group)}")
    return svg(figure, name) + lines.legend()


def model_bytes(result):
    """Bytes per key that an index holds beside keys and values."""
    stored = result.tags.get("values", "none")
    bits = [result.key] + ([stored] if stored != "none" else [])
    return (result.counters["bytes_per_key"]
            - sum(int(re.sub(r"\D", "", name)) // 8 for name in bits))


def error_bound(setting):
    """epsilon_16+concise+pinned as (16, "concise, pinned"); plain as None."""
    match = re.fullmatch(r"epsilon_(\d+)\+(.*)", setting)
    return match and (int(match[1]), match[2].replace("+", ", ")
                      .replace("_", " "))


def error_bound_figure(members, name):
    """Rates and bytes of the model against the error bound, a line for each
    way to search: two panels per key set and size."""
    sets = by_tuple(members, lambda m: (m[2].group(), m[2].n))
    ways = sorted({error_bound(setting)[1] for _, setting, _ in members
                   if error_bound(setting)})
    figure, axes = panels(2 * len(sets), name)
    lines = Lines(Palette(ways))
    for i, ((group, n), points) in enumerate(sorted(sets.items())):
        rates, sizes = axes[2 * i], axes[2 * i + 1]
        bounds = sorted({error_bound(setting)[0] for _, setting, _ in points
                         if error_bound(setting)})
        for way in ways:
            found = [(error_bound(setting)[0], r) for _, setting, r in points
                     if error_bound(setting)
                     and error_bound(setting)[1] == way]
            if not found:
                continue
            lines.draw(rates, [(e, rate_of(r)) for e, r in found], way, True,
                       way, linewidth=1.4)
            # What is pinned or reordered has the same model.
            if "," not in way:
                lines.draw(sizes, [(e, model_bytes(r)) for e, r in found], way,
                           True, way, linewidth=1.4)
        for _, setting, r in points:
            if setting == "plain":
                lines.draw(rates, [(bounds[0], rate_of(r)),
                                   (bounds[-1], rate_of(r))],
                           "limit", False, "plain", linewidth=1.2)
        value_axis(rates, [rate_of(r) for _, _, r in points],
                   "lookups per second")
        value_axis(sizes, [model_bytes(r) for _, setting, r in points
                           if error_bound(setting)
                           and "," not in error_bound(setting)[1]],
                   "bytes of the model per key", "{:g}".format)
        for ax in (rates, sizes):
            log_axis(ax.xaxis, bounds, str, 2)
            ax.set_xticks(bounds, [str(e) for e in bounds], fontsize=8.5)
            ax.set_xlabel("error bound epsilon")
            ax.set_title(f"{group_title(group)}, n = {count(n)}")
    return svg(figure, name) + lines.legend()


def error_bound_table(members):
    rows = []
    for base, setting, r in sorted(
            (m for m in members if error_bound(m[1])),
            key=lambda m: (m[2].group(), m[2].n, error_bound(m[1])[::-1])):
        epsilon, way = error_bound(setting)
        if "," not in way:
            rows.append((base, way, group_title(r.group()), count(r.n), epsilon,
                         digits(rate_of(r) / 1e9), f"{model_bytes(r):.3g}"))
    return table(("index", "search", "keys", "n", "epsilon", "billion/s",
                  "bytes of the model per key"), rows, 3)


def ablation_sections(results):
    """What each setting is worth, if results of ablations are there."""
    points = largest_batches(
        [r for r in results if r.op in OP_TITLES and not r.transfers])
    if not any(is_ablation(r.index) for r in points):
        return []
    parts = []
    for number, (title, pattern, with_plain) in enumerate(ABLATIONS):
        found = ablation_members(points, pattern, with_plain)
        for (space, op), members in sorted(by_tuple(
                found, lambda m: (m[2].space, m[2].op)).items()):
            batches = " and ".join(dict.fromkeys(
                count(r.queries) for _, _, r in members))
            bounds = pattern == ERROR_BOUNDS
            draw = error_bound_figure if bounds else ablation_figure
            parts.append(
                f"<h3>{title}</h3>\n"
                + figure_block(
                    draw(members, f"ablation-{number}-{space}-{op}"),
                    f"{op} on {html.escape(space)}, batches of {batches}.")
                + (details("Error bounds", error_bound_table(members))
                   if bounds else "")
                + details(f"Numbers: billion {work_unit(op)} per second, the "
                          "best of each index marked",
                          ablation_table(members)))
    return [("What each optimisation is worth",
             "<p>Each index with one setting changed; “plain” is its default."
             "</p>" + "".join(parts))]


def bandwidth_sections(results):
    """Ranges against what copying reaches, where both were measured."""
    copies = {(r.source, r.space): r.counters["GB_per_s"]
              for r in results if r.op == "copy"}
    ranges = largest_batches(
        [r for r in results if r.op == "range" and not r.transfers
         and (r.source, r.space) in copies])
    if not ranges:
        return []
    def order(item):
        (group, gpu, space), _ = item
        hits = next((tag for tag in group if tag.startswith("hits:")), "hits:0")
        return (not gpu, space, int(hits.split(":")[1]), group)
    groups = sorted(by_tuple(
        ranges, lambda r: (r.group(), r.on_gpu, r.space)).items(), key=order)
    figure, axes = panels(len(groups), "bandwidth")
    lines, rows = Lines(Palette.of_indexes(ranges)), []
    for ax, ((group, gpu, space), members) in zip(axes, groups):
        for index, line in sorted(by(members, lambda r: r.index).items()):
            lines.draw(ax, [(r.n, r.counters["GB_per_s"]) for r in line], index,
                       gpu, f"{index} · {space}")
        sizes = {r.n for r in members}
        copy = max(copies[r.source, r.space] for r in members)
        ends = ((min(sizes) / 2, max(sizes) * 2) if len(sizes) == 1
                else (min(sizes), max(sizes)))
        lines.draw(ax, [(n, copy) for n in ends], "limit", gpu,
                   f"copying · {space}", linewidth=1.2)
        size_axis(ax, sizes, "number of keys n")
        value_axis(ax, [copy] + [r.counters["GB_per_s"] for r in members],
                   "GB/s", digits)
        ax.set_title(group_title(group))
        for r in sorted(members, key=lambda r: (r.n, -r.counters["GB_per_s"])):
            share = r.counters["GB_per_s"] / copies[r.source, r.space]
            rows.append((r.index, space, group_title(group), count(r.n),
                         count(r.queries), digits(r.counters["GB_per_s"]),
                         f"{100 * share:.0f} %"))
    return [("Range queries against the copy bandwidth", figure_block(
        svg(figure, "bandwidth") + lines.legend(),
        "The least that must move (both ends of a range, an offset, a sector, "
        "each hit in and out) per second; copying was measured in the same "
        "run.")
        + details("Numbers", table(
            ("index", "device", "keys", "n", "ranges", "GB/s",
             "of copying"), rows, 3)))]


def range_length_sections(results):
    """Ranges against the number of their hits, where that varies."""
    def plain(r):
        return tuple(t for t in r.group() if not t.startswith("hits:"))
    groups = by([r for r in results if r.op == "range"],
                lambda r: (plain(r), r.n))
    groups = {key: members for key, members in sorted(groups.items())
              if len({r.tags["hits"] for r in members}) > 2}
    if not groups:
        return []
    def name_of(r):
        return f"{r.index}, {r.transfers}" if r.transfers else r.index
    fastest = {}  # of all sizes and numbers of buckets
    for key, members in groups.items():
        for r in members:
            at = (key, name_of(r), r.space, int(r.tags["hits"]))
            if at not in fastest or rate_of(r) > rate_of(fastest[at]):
                fastest[at] = r
    figure, axes = panels(len(groups), "range-lengths")
    lines = Lines(Palette(sorted({name for _, name, _, _ in fastest})))
    rows = []
    for ax, (group, n) in zip(axes, groups):
        series = defaultdict(list)
        for (key, name, space, hits), r in fastest.items():
            if key == (group, n):
                series[name, space].append((hits, r))
        for (name, space), points in sorted(series.items()):
            lines.draw(ax, [(hits, rate_of(r)) for hits, r in points], name,
                       points[0][1].on_gpu, f"{name} · {space}")
            for hits, r in sorted(points, key=lambda point: point[0]):
                rows.append((r.index, space, group_title(group),
                             r.transfers or "no", count(n), f"{hits:,}",
                             count(r.queries),
                             "" if r.transfers != "overlapped" else
                             count(r.bucket) if r.bucket else "chosen",
                             f"{rate_of(r) / 1e6:,.1f}",
                             f"{r.counters['hits_per_second'] / 1e6:,.1f}"))
        size_axis(ax, [hits for points in series.values()
                       for hits, _ in points], "hits per range")
        value_axis(ax, [rate_of(r) for points in series.values()
                        for _, r in points], "ranges per second")
        ax.set_title(f"{group_title(group)}, n = {count(n)}")
    return [("Short and long ranges",
             "<p>Offsets and values of all hits are written. “overlapped”: "
             "ranges and hits are in host memory, in the fastest of the "
             "buckets measured.</p>"
             + figure_block(svg(figure, "range-lengths") + lines.legend())
             + details("Numbers", table(
                 ("index", "device", "keys", "transfers", "n", "hits", "batch",
                  "bucket", "million ranges/s", "million hits/s"), rows, 4)))]


CONTEXT_NAMES = [
    ("date", "measured"), ("host_name", "host"), ("cpu", "CPU"),
    ("host_threads", "host threads"), ("openmp", "OpenMP settings"),
    ("gpu", "GPU"), ("gpu_memory_gib", "GPU memory, GiB"),
    ("gpu_driver", "GPU driver"), ("cuda", "CUDA"), ("spaces", "Kokkos spaces"),
    ("kokkos_version", "Kokkos"), ("compiler", "compiler"),
    ("build_type", "build type"), ("kindex_version", "Kindex"),
    ("git_commit", "commit"), ("left_out", "left out")]


def context_section(contexts):
    names = [(key, name) for key, name in CONTEXT_NAMES
             if any(key in context for context in contexts.values())]
    rows = [[name] + [context.get(key, "") for context in contexts.values()]
            for key, name in names]
    header = [""] + [path.split("/")[-1] for path in contexts]
    text = table(header, rows, len(header))
    for path, context in contexts.items():
        if "kokkos" in context:
            lines = context["kokkos"].replace("; ", "\n")
            text += details(f"Kokkos configuration of {path.split('/')[-1]}",
                            f"<pre>{html.escape(lines)}</pre>")
    return text


def headline(results):
    """The fastest point lookups of each device at the largest n."""
    rows = []
    for space in sorted({r.space for r in results}):
        finds = [r for r in results if r.op == "find" and r.space == space
                 and not r.transfers]
        if not finds:
            continue
        best = max(finds, key=lambda r: (r.n, r.counters["items_per_second"]))
        rate = best.counters["items_per_second"]
        text = (f"{si(rate)} lookups/s" if rate < 1e9
                else f"{rate / 1e9:.1f} billion lookups/s")
        rows.append(f"<li><b>{text}</b><span>{html.escape(space)}, "
                    f"{html.escape(best.index)}, {count(best.n)} "
                    f"{html.escape(best.key)} keys</span></li>")
    return f'<ul class="headline">{"".join(rows)}</ul>' if rows else ""


STYLE = """
:root { color-scheme: light dark; --page: #fcfcfb; --ink: #1b1b1a;
  --muted: #5d5c58; --grid: #dedcd6; --card: #ffffff;
  --series-1: #1f6fd1; --series-2: #c2531a; --series-3: #14805e;
  --series-4: #9a3fb5; --series-5: #a87900; --series-6: #c0305f;
  --series-7: #4d6b1f; --series-8: #55606e; --series-9: #0b7285;
  --series-10: #8a4b2a; }
@media (prefers-color-scheme: dark) { :root { --page: #161615; --ink: #f1f0ec;
  --muted: #b3b1a9; --grid: #3a3935; --card: #1e1e1c;
  --series-1: #6ea8f5; --series-2: #f08a4f; --series-3: #3fc397;
  --series-4: #cf8be6; --series-5: #e0b23c; --series-6: #f27a9f;
  --series-7: #a5cc63; --series-8: #a9b4c2; --series-9: #4fc3d9;
  --series-10: #d6a184; } }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.55 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; margin: 0 0 .25rem; }
h2 { font-size: 1.25rem; margin: 2.75rem 0 .5rem;
  padding-top: 1rem; border-top: 1px solid var(--grid); }
h3 { font-size: 1rem; margin: 1.75rem 0 .5rem; }
p, figcaption, .sub { color: var(--muted); max-width: 75ch; }
figcaption { font-size: .88rem; margin-top: .25rem; }
figure { margin: .5rem 0; }
.scroll { overflow-x: auto; }
svg[role=img] { max-width: 100%; min-width: 340px; height: auto; display: block; }
.legend { list-style: none; padding: 0; margin: .5rem 0; display: flex;
  flex-wrap: wrap; gap: .2rem 1.5rem; font-size: .85rem; }
.legend svg { margin-right: .5rem; vertical-align: middle; }
svg text { font-family: system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
table { border-collapse: collapse; font-size: .86rem;
  font-variant-numeric: tabular-nums; margin: .5rem 0; }
th { text-align: left; font-weight: 600; color: var(--muted);
  vertical-align: bottom; }
th, td { padding: .25rem 1.1rem .25rem 0; border-bottom: 1px solid var(--grid); }
td { white-space: nowrap; }
.context td { white-space: normal; }
.number { text-align: right; }
.best { font-weight: 700; }
.best::before { content: "\\2605\\a0"; }
summary { cursor: pointer; color: var(--muted); font-size: .9rem;
  padding: .25rem 0; }
pre { font-size: .8rem; overflow-x: auto; background: var(--card);
  border: 1px solid var(--grid); padding: .75rem; }
.headline { display: flex; flex-wrap: wrap; gap: 1rem; list-style: none;
  padding: 0; margin: 1.25rem 0; }
.headline li { background: var(--card); border: 1px solid var(--grid);
  border-radius: 6px; padding: .7rem 1rem; }
.headline b { display: block; font-size: 1.25rem; }
.headline span { color: var(--muted); font-size: .88rem; }
.failed { border-left: 4px solid #d0342c; padding: .25rem 1rem; }
"""


def failures(failed):
    if not failed:
        return ""
    rows = "".join(f"<li><code>{html.escape(name)}</code>: "
                   f"{html.escape(message)}</li>" for name, message in failed)
    return (f'<div class="failed"><b>{len(failed)} benchmarks failed and are '
            f"missing below.</b><ul>{rows}</ul></div>")


def page(results, contexts, failed):
    all_measured = [r for r in results if r.index != "limit"]
    measured = [r for r in all_measured if not is_ablation(r.index)]
    palette = Palette.of_indexes(measured)
    dates = sorted(c.get("date", "")[:10] for c in contexts.values())
    sections = [
        ("Throughput", throughput_section(measured, palette)),
        *bandwidth_sections(results),
        *radix_sections(measured),
        *range_length_sections(measured),
        *ablation_sections(all_measured),
        ("GPU against CPU", speedup_section(measured, palette)),
        ("Batch size at which the GPU starts to win",
         batch_section(measured, palette)),
        *resident_sections(measured, palette),
        *transfers_sections(measured),
        *division_sections(measured),
        ("Build time", build_section(measured, palette)),
        *fit_sections(measured),
        *update_sections(measured),
        ("Memory", memory_section(measured, palette)),
        ("Limits of the devices",
         "<p>What the same run measured without any index: copying, and the "
         "one-sector limit, where each query is read, one random 32-byte "
         "sector of an array of the index's size is gathered, and one result "
         "is written.</p>" + limits_section(results)),
        ("Circumstances",
         f'<div class="context">{context_section(contexts)}</div>'),
    ]
    body = "".join(f"<section><h2>{title}</h2>\n{content}</section>\n"
                   for title, content in sections)
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Kindex benchmark</title><style>{STYLE}</style></head>
<body><main>
<h1>Kindex benchmark</h1>
<div class="sub">{html.escape(", ".join(dict.fromkeys(dates)))} · all results
verified against a host reference before they were timed; medians.
Lines and bars: solid for GPUs, dashed or hatched for CPUs.</div>
{headline(measured)}{failures(failed)}
{body}</main></body></html>
"""


# ---- the picture ---------------------------------------------------------------


def picture_results(results):
    """Throughput of plain lookups per index: lower_bound first, then find where
    an index has nothing else; of one key set, and of one host space."""
    plain = [r for r in results if r.key == "u32" and not r.transfers
             and r.tags.get("values") == "none" and r.tags.get("hit") == "1"
             and r.tags.get("order") == "random"]
    ordered = main_results(plain, "lower_bound")
    ranked = {(r.space, r.index) for r in ordered}
    chosen = ordered + [r for r in main_results(plain, "find")
                        if (r.space, r.index) not in ranked]
    sets = by(chosen, lambda r: r.tags.get("keys"))
    chosen = max(sets.values(), key=lambda members: (
        len({r.n for r in members}), len(members)), default=[])
    hosts = by((r for r in chosen if not r.on_gpu), lambda r: r.space)
    host = max(hosts, key=lambda space: max(
        r.counters["items_per_second"] for r in hosts[space]), default=None)
    return [r for r in chosen if r.on_gpu or r.space == host]


def picture_lines(chosen):
    """By index and device; of a CPU only the two best indexes of Kindex and
    the two best baselines."""
    lines = by(chosen, lambda r: (r.index, r.on_gpu))
    def fastest(key):
        last = max(lines[key], key=lambda r: r.n)
        return last.counters["items_per_second"]
    for baseline in (False, True):
        hosts = [key for key in lines if not key[1]
                 and key[0].startswith(BASELINES) == baseline]
        for key in sorted(hosts, key=fastest)[:-2]:
            del lines[key]
    return lines


def spread(heights, gap):
    """The same heights, moved as little as makes them `gap` apart."""
    blocks = []  # of labels that touch: [sum of wishes for its first, members]
    for i in sorted(range(len(heights)), key=heights.__getitem__):
        blocks.append([heights[i], [i]])
        while len(blocks) > 1:
            (low, below), (high, above) = blocks[-2:]
            if high / len(above) >= low / len(below) + gap * len(below):
                break
            blocks[-2:] = [[low + high - gap * len(below) * len(above),
                            below + above]]
    moved = dict.fromkeys(range(len(heights)))
    for total, members in blocks:
        for k, i in enumerate(members):
            moved[i] = total / len(members) + gap * k
    return list(moved.values())


def label_ends(axes, ends, gap=13.5):
    """Labels right of the last points; `ends` are (x, y, text, look)."""
    to_points = 72 / axes.figure.dpi
    for members in by_tuple(ends, lambda end: end[0]).values():
        heights = [axes.transData.transform((x, y))[1] * to_points
                   for x, y, _, _ in members]
        for (x, y, text, look), old, new in zip(members, heights,
                                                spread(heights, gap)):
            axes.annotate(
                text, (x, y), xytext=(30, new - old), textcoords="offset points",
                va="center_baseline", color=look["color"], annotation_clip=False,
                fontsize=9.5, fontweight=look.get("fontweight", "normal"),
                arrowprops={"arrowstyle": "-", "color": look["color"],
                            "linewidth": 0.8, "alpha": 0.7, "shrinkA": 2,
                            "shrinkB": 6, "relpos": (0, 0.5)})


def picture_titles(chosen, contexts):
    """What was looked up, and on which devices, in two lines."""
    def batch(side):
        return " and ".join(dict.fromkeys(
            count(r.queries) for r in chosen if r.on_gpu == side))
    devices = []
    for side, line, name in ((True, "solid", "gpu"), (False, "dashed", "cpu")):
        files = {r.source for r in chosen if r.on_gpu == side}
        found = [contexts[file] for file in contexts if file in files]
        if not found:
            continue
        device = re.sub(r"\((R|TM)\)", "", found[0].get(name, name.upper()))
        if not side and "host_threads" in found[0]:
            device += f", {found[0]['host_threads']} threads"
        devices.append(f"{line}: {device}, batches of {batch(side)}")
    op, keys = chosen[0].op, chosen[0].tags.get("keys", "")
    return (f"{op}: {keys} 32-bit keys without values, all present, in random "
            "order", " · ".join(devices))


def picture(results, contexts):
    """One SVG that stands alone, on light pages and on dark ones."""
    chosen = picture_results(results)
    if not chosen:
        raise ValueError("no lower_bound or find on u32 keys with values:none, "
                         "hit:1, order:random, without transfers")
    lines = picture_lines(chosen)
    figure = plt.figure("picture", figsize=(9.375, 5))  # 900 x 480 CSS pixels
    ax = figure.add_axes((0.075, 0.115, 0.64, 0.755))
    drawer = Lines(Palette.of_indexes(
        [r for members in lines.values() for r in members]))
    rate, values, ends = 1e-9, [], []
    def draw(points, index, gpu, label, **style):
        drawer.draw(ax, points, index, gpu, label, **style)
        values.extend(y for _, y in points)
        weight = ("normal" if index.startswith((*BASELINES, "limit"))
                  else "bold")
        ends.append((*max(points), label,
                     {**drawer.looks[label][0], "fontweight": weight}))
    for (index, gpu), members in sorted(lines.items()):
        label = index if gpu else f"{index}, CPU"
        if members[0].op != chosen[0].op:
            label += " (find)"
        draw([(r.n, r.counters["items_per_second"] * rate) for r in members],
             index, gpu, label,
             linewidth=1.3 if index.startswith(BASELINES) else 2.2)
    points = limit_points((r for r in chosen if r.on_gpu), rate)
    if points:
        draw(points, "limit", True, "one-sector limit", linewidth=1.6,
             linestyle=(0, (1, 1.5)), marker="_" if len(points) == 1 else "",
             markersize=14)
    sizes = [r.n for r in chosen]
    size_axis(ax, sizes, "number of keys")
    value_axis(ax, values, "billion lookups per second (log scale)"
               if max(values) / min(values) > 8
               else "billion lookups per second", "{:g}".format)
    if ax.get_yscale() == "log":
        ax.set_ylim(min(values) / 1.3, max(values) * 1.3)
    title, devices = picture_titles(chosen, contexts)
    ax.set_title(title, fontsize=12.5, pad=24)
    ax.annotate(devices, (0, 1), xycoords="axes fraction", xytext=(0, 9),
                textcoords="offset points", color=MUTED, fontsize=9.5)
    ax.grid(alpha=0.3)
    label_ends(ax, ends)
    text = painted(figure, "picture",
                   lambda variable: MID_TONES.get(variable, "#777a7f"))
    text = re.sub(r'width="[^"]*pt"', 'width="900"', text, count=1)
    text = re.sub(r'height="[^"]*pt"', 'height="480"', text, count=1)
    fonts = "system-ui, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, sans-serif"
    return (text.replace("<svg", f'<svg role="img" font-family="{fonts}"', 1)
            .replace(">", f">\n <title>{html.escape(title)}: throughput against "
                     "number of keys</title>", 1))


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("json", nargs="+", help="results of kindex_bench")
    parser.add_argument("--output", help="HTML file (default: report.html, "
                        "or none with --picture)")
    parser.add_argument("--picture", metavar="FILE.svg",
                        help="one plot for a README: lookups per second in u32 "
                        "keys against their number")
    arguments = parser.parse_args()
    try:
        results, contexts, failed = load(arguments.json)
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"report.py: cannot read the results: {error}")
    if arguments.picture:
        measured = [r for r in results
                    if r.index != "limit" and not is_ablation(r.index)]
        try:
            write(arguments.picture, picture(measured, contexts))
        except ValueError as error:
            sys.exit(f"report.py: nothing to picture: {error}")
    if arguments.output or not arguments.picture:
        write(arguments.output or "report.html",
              page(results, contexts, failed))


if __name__ == "__main__":
    main()
