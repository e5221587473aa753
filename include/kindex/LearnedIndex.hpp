// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_LEARNEDINDEX_HPP
#define KINDEX_LEARNEDINDEX_HPP

/// \file
/// Ascending keys under piecewise-linear models: the PGM-index.

#include <kindex/build/Entries.hpp>
#include <kindex/build/LinearFit.hpp>
#include <kindex/build/SegmentModel.hpp>
#include <kindex/query/AscendingRef.hpp>
#include <kindex/query/BulkQueries.hpp>
#include <kindex/query/NearSearch.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <utility>
#include <vector>

namespace kindex {

/// How a LearnedIndex finds the segment of a key.
enum class Strategy {
  automatic,  ///< whichever a build finds faster for some of its own keys
  complete,   ///< level by level, from the root
  concise     ///< among the leaf segments, from a table of the keys' top bits
};

/// How a LearnedIndex is built.
struct LearnedIndexOptions {
  /// The most ranks by which a segment's line may miss a key's; at least 1, up
  /// to 2^20. Without a value: three quarters of the entries in 64 bytes, 8 to
  /// 12, which was fastest on an H100 for uniform keys; larger for 2^16 entries
  /// and more, until the model takes at most some 3 % of their bytes.
  std::optional<size_type> epsilon = std::nullopt;
  /// The same for the levels of segments above.
  size_type upper_epsilon = 4;
  /// How segments are found.
  Strategy strategy = Strategy::automatic;
  /// Pieces in which keys are fitted in parallel, up to 2^20; 0: chosen. Each
  /// takes some 5 KiB while it is fitted, and many more than a quarter of the
  /// segments cost time.
  size_type chunks = 0;
};

/// What LearnedIndex::tune looks for.
class Objective {
 public:
  /// Most lookups per second.
  static Objective throughput() { return Objective(~size_type{0}); }
  /// Most lookups per second with a model of at most `bytes`.
  static Objective memory_below(size_type bytes) { return Objective(bytes); }

  /// The most bytes of the model.
  size_type model_bytes() const { return model_bytes_; }

 private:
  explicit Objective(size_type bytes) : model_bytes_(bytes) {}

  size_type model_bytes_;
};

/// One measurement of LearnedIndex::tune.
struct LearnedTrial {
  LearnedIndexOptions options;    ///< what was measured
  size_type segments = 0;         ///< of the lowest level
  size_type model_bytes = 0;      ///< beside keys and values
  double lookups_per_second = 0;  ///< `lower_bound` of the sample, median of 3
};

/// What LearnedIndex::tune found.
struct LearnedTuning {
  LearnedIndexOptions options;       ///< the best that the objective admits
  std::vector<LearnedTrial> trials;  ///< all that was measured
};

/// Ascending keys, as in SortedArray, and a model of where they stand: segments
/// of a piecewise-linear function that misses no key's rank by more than
/// `epsilon`, and above them, level by level, the same over the segments' first
/// keys, up to one root (Ferragina and Vinciguerra, "The PGM-index", 2020; on
/// GPUs: Zhong et al., 2022, and Liu et al., 2024). The segments are the fewest
/// possible, or up to 1 % more: see build::fit_segments. Duplicates keep the
/// order of the input.
///
/// The function maps coordinates to ranks: the bits of a key in order, the
/// upper half of a Key128. Keys of equal coordinate are a run with one rank,
/// that of its first; so that absent keys behind a run of duplicates are
/// predicted as well, the coordinate after it is a point of its own.
///
/// A lookup predicts a rank and searches from there, by lines of 64 bytes,
/// outwards (query::search_near). It ends only where the keys on both sides of
/// the bound were compared: neither rounding nor a run of duplicates of any
/// length can lose a key. With `epsilon` of 16 or less, it mostly reads one or
/// two lines; the model, some n/(4 epsilon^2) segments of 16 bytes for uniform
/// keys, should stay in a GPU's L2 cache.
///
/// \tparam Key, Value, MemorySpace, Layout as for SortedArray.
template <class Key, class Value = std::uint32_t,
          class MemorySpace = Kokkos::DefaultExecutionSpace::memory_space,
          class Layout = SoA>
class LearnedIndex
    : public query::BulkQueries<LearnedIndex<Key, Value, MemorySpace, Layout>,
                                Key, Value, MemorySpace> {
  using Storage = build::Entries<Key, Value, MemorySpace, Layout>;
  using Model = build::SegmentModel<Key, MemorySpace>;
  using Router = typename Model::Router;
  using X = typename Router::X;
  using Segment = typename Router::Segment;
  static constexpr int entry_bytes = std::is_same_v<Layout, SoA>
                                         ? sizeof(Key)
                                         : sizeof(build::Entry<Key, Value>);
  static constexpr int lanes = Router::lanes;
  /// Entries of a line: 64 bytes, and some for each lane.
  static constexpr int line_entries =
      std::max(1, 64 / entry_bytes / lanes) * lanes;
  static constexpr size_type block = line_entries;
  static constexpr int window = Router::window;
  static constexpr size_type most_epsilon = size_type{1} << 20;

 public:
  class Ref;

  /// The name that labels and messages carry.
  static constexpr const char* name() { return "LearnedIndex"; }

  /// The empty index.
  LearnedIndex() = default;

  /// Builds from keys in any order; values are the row ids 0...n-1.
  ///
  /// Sorts as SortedArray does, then fits: see build::fit_segments for its
  /// memory. Fences `space` once for each level, to learn its size, and for
  /// each error bound that is tried, once to keep the first 3 KiB of the model
  /// on the host, and twice to make the table of cells. With
  /// Strategy::automatic, indexes from 2^16 keys ask for up to 2^21 of their
  /// own keys (a host: 2^14), four times level by level and eight times by the
  /// table, which they keep unless it is 10 % slower; smaller ones are concise.
  /// No result depends on it.
  ///
  /// \param space, keys as for SortedArray.
  /// \param options error bounds and strategy.
  /// \throws Error as SortedArray, for an error bound of 0 or above 2^20, and
  ///   for more than 2^20 chunks.
  template <class Exec, class Keys>
  LearnedIndex(const Exec& space, const Keys& keys,
               const LearnedIndexOptions& options = {})
      : LearnedIndex(checked(options)) {
    entries_ = Storage::from_unsorted(name(), space, keys, block);
    build(space, options);
  }

  /// Builds from keys in any order and their values.
  ///
  /// \param space, keys, values, options as above.
  /// \throws Error as above.
  template <class Exec, class Keys, class Values>
  requires Kokkos::is_view_v<Keys> && Kokkos::is_view_v<Values> LearnedIndex(
      const Exec& space, const Keys& keys, const Values& values,
      const LearnedIndexOptions& options = {})
      : LearnedIndex(checked(options)) {
    entries_ = Storage::from_unsorted(name(), space, keys, values, block);
    build(space, options);
  }

  /// Builds from ascending keys; values are the row ids 0...n-1, which SoA does
  /// not store.
  ///
  /// \param space, keys, check as for SortedArray.
  /// \param options as above.
  /// \throws Error as above.
  template <class Exec, class Keys>
  LearnedIndex(const Exec& space, SortedTag, const Keys& keys,
               Check check = Check::on, const LearnedIndexOptions& options = {})
      : LearnedIndex(checked(options)) {
    entries_ = Storage::from_sorted(name(), space, keys, check, block);
    build(space, options);
  }

  /// Builds from ascending keys and their values.
  ///
  /// \param space, keys, values, check, options as above.
  /// \throws Error as above.
  template <class Exec, class Keys, class Values>
  requires Kokkos::is_view_v<Keys> && Kokkos::is_view_v<Values> LearnedIndex(
      const Exec& space, SortedTag, const Keys& keys, const Values& values,
      Check check = Check::on, const LearnedIndexOptions& options = {})
      : LearnedIndex(checked(options)) {
    entries_ = Storage::from_sorted(name(), space, keys, values, check, block);
    build(space, options);
  }

  /// Measures error bounds from 8 to 2048, each with both strategies.
  ///
  /// Sorts once, then fits and asks for each of them: some 20 fits and 70
  /// batches, most of which end with a fence of `space`.
  ///
  /// \param space, keys as for the constructor.
  /// \param sample queries such as will be asked, in memory that `space` can
  ///   access; as many as a batch has.
  /// \param objective what to look for.
  /// \returns options to build with, and the whole trade-off.
  /// \throws Error as the constructor; if `keys` or `sample` is empty; and if
  ///   no model is as small as the objective says, naming the smallest.
  template <class Exec, class Keys, class Queries>
  static LearnedTuning tune(const Exec& space, const Keys& keys,
                            const Queries& sample, const Objective& objective);

  /// The number of entries.
  size_type size() const { return entries_.size(); }

  /// Bytes that the index holds.
  size_type memory_bytes() const { return data_bytes() + model_bytes(); }

  /// Bytes of keys and values, with up to one line of padding.
  size_type data_bytes() const { return entries_.memory_bytes(); }

  /// Bytes of segments, levels and table.
  size_type model_bytes() const { return model_.memory_bytes(); }

  /// Segments of the lowest level.
  size_type segments() const { return height() == 0 ? 0 : segments_; }

  /// Levels of segments; 0 for no entries.
  int height() const { return model_.height(); }

  /// The most ranks by which a segment misses a key's.
  size_type epsilon() const { return epsilon_; }

  /// How segments are found.
  Strategy strategy() const {
    return model_.cells.extent(0) > 0 ? Strategy::concise : Strategy::complete;
  }

  /// The handle for kernels: trivially copyable, non-owning.
  Ref ref() const {
    Ref ref;
    ref.entries_ = entries_.ref();
    ref.router_ = model_.router();
    ref.lines_stay_ = size() * entry_bytes <= size_type{128} << 20;
    return ref;
  }

 private:
  template <class, class, class, class>
  friend class HybridLearnedIndex;

  /// An empty index, once the options are checked.
  explicit LearnedIndex(const LearnedIndexOptions& options)
      : epsilon_(
            options.epsilon.value_or(std::clamp(line_entries * 3 / 4, 8, 12))) {
  }

  static const LearnedIndexOptions& checked(const LearnedIndexOptions& options);

  template <class Exec>
  void build(const Exec& space, const LearnedIndexOptions& options);

  /// Bits that intercepts leave out of numbers up to `size`.
  static int scale_of(size_type size) {
    constexpr int bits = 32;
    const int used = std::bit_width(size);
    return used > bits ? used - bits : 0;
  }

  /// Writes the table of cells.
  template <class Exec>
  void tabulate(const Exec& space, const build::SegmentLevel& leaves);

  /// The median of three batches of `lower_bound`, after one that warms up.
  template <class Exec, class Queries>
  double seconds_of_batch(const Exec& space, const Queries& queries) const;

  Storage entries_;
  Model model_;
  size_type segments_ = 0;
  size_type epsilon_ = 0;
};

/// The handle of a LearnedIndex in a kernel: see query::RefVerbs for its verbs.
template <class Key, class Value, class MemorySpace, class Layout>
class LearnedIndex<Key, Value, MemorySpace, Layout>::Ref
    : public query::AscendingRef<Ref, Key, Value, Layout> {
  using query::AscendingRef<Ref, Key, Value, Layout>::entries_;

 public:
  using query::AscendingRef<Ref, Key, Value, Layout>::size;
  using pinned_type = Segment;  ///< what the search order consists of

  /// Lanes that read a line together, 16 bytes each.
  static constexpr int lanes = LearnedIndex::lanes;
  /// The same.
  static constexpr int most_lanes = lanes;
  /// Not measured to pay.
  static constexpr bool sorting_pays = false;
  /// Whether partitions gain where they can. Measured on an H100: 2^28 keys of
  /// 4 bytes, 23.3 instead of 19.7 billion lookups per second; 2^27 of 8, 18.3
  /// instead of 17.9 (perf/results/h100.json).
  KOKKOS_FUNCTION bool partitioning_pays(bool /*finds*/) const { return true; }

  /// A handle of the empty index.
  Ref() = default;

  /// The positions of each lane's own keys, which the lanes of a group search
  /// together.
  ///
  /// \tparam finds whether the first equal entry is wanted, or size(), instead
  ///   of the lower bound.
  template <bool finds, class Group, class Top, int Own>
  KOKKOS_FUNCTION void search(const Group& group, const Top& top,
                              const Key (&keys)[Own],
                              size_type (&positions)[Own]) const {
    if (size() == 0) {
      for (int o = 0; o < Own; ++o) positions[o] = 0;
    } else if (size() < (size_type{1} << 31)) {
      search_with<finds, std::uint32_t>(group, top, keys, positions);
    } else {
      search_with<finds, size_type>(group, top, keys, positions);
    }
  }

  /// The second half of a search: from `positions` on, which are guesses of any
  /// quality, to what `search` returns.
  ///
  /// \tparam finds as for search.
  template <bool finds, class Group, int Own>
  KOKKOS_FUNCTION void finish(const Group& group, const Key (&keys)[Own],
                              size_type (&positions)[Own]) const {
    if (size() == 0) {
      for (int o = 0; o < Own; ++o) positions[o] = 0;
    } else if (size() < (size_type{1} << 31)) {
      finish_from<finds, std::uint32_t>(group, keys, positions);
    } else {
      finish_from<finds, size_type>(group, keys, positions);
    }
  }

  /// Has a host fetch what `finish` reads first from a guess; not where there
  /// are no entries.
  KOKKOS_FUNCTION void prefetch(size_type guess) const {
    query::prefetch(&entries_.key(guess < size() ? guess : size() - 1));
  }

  /// How many segments are pinned for `steps` levels (−1: as many as fit) from
  /// the root, at most `most`. For the host.
  size_type pinned_size(int steps, size_type most) const {
    return router_.pinned_size(steps, most);
  }

  /// Segment i of the model, from the root.
  KOKKOS_FUNCTION Segment pinned_key(size_type i) const {
    return router_.pinned_key(i);
  }

  /// The first segments of the model, in host memory.
  query::PinnedKeys<Segment> top_on_host() const {
    return router_.top_on_host();
  }

 private:
  friend class LearnedIndex;

  template <bool finds, class Index, class Group, class Top, int Own>
  KOKKOS_FUNCTION void search_with(const Group& group, const Top& top,
                                   const Key (&keys)[Own],
                                   size_type (&positions)[Own]) const {
    Index near[Own];
    router_.route(group, top, keys, near);
    finish_with<finds>(group, keys, near, positions);
  }

  template <bool finds, class Index, class Group, int Own>
  KOKKOS_FUNCTION void finish_from(const Group& group, const Key (&keys)[Own],
                                   size_type (&positions)[Own]) const {
    Index near[Own];
    for (int o = 0; o < Own; ++o) near[o] = static_cast<Index>(positions[o]);
    finish_with<finds>(group, keys, near, positions);
  }

  /// From guesses, which are overwritten, to positions.
  template <bool finds, class Index, class Group, int Own>
  KOKKOS_FUNCTION void finish_with(const Group& group, const Key (&keys)[Own],
                                   Index (&near)[Own],
                                   size_type (&positions)[Own]) const {
    bool found[Own];
    // The value beside a key is read again.
    constexpr bool comes_back = finds && std::is_same_v<Layout, AoS>;
    if (comes_back || lines_stay_) {
      find_entries<finds, query::Reuse::often>(group, keys, near, found);
    } else {
      find_entries<finds, query::Reuse::never>(group, keys, near, found);
    }
    for (int o = 0; o < Own; ++o) {
      const bool wanted =
          finds ? found[o] && near[o] < size() : near[o] < size();
      positions[o] = wanted ? size_type(near[o]) : size();
    }
  }

  /// From guesses to bounds: any position from size() on where the key is above
  /// all.
  template <bool finds, query::Reuse reuse, class Index, class Group, int Own>
  KOKKOS_FUNCTION void find_entries(const Group& group, const Key (&keys)[Own],
                                    Index (&positions)[Own],
                                    bool (&found)[Own]) const {
    const auto load = [&](Index first) {
      return query::load_entries<line_entries, reuse>(group, entries_, first);
    };
    for (int o = 0; o < Own; ++o) {
      const Index last = Index(size()) - 1;
      const Index guess = positions[o] < last ? positions[o] : last;
      positions[o] = guess / Index(line_entries) * Index(line_entries);
    }
    const auto fetch = [&](Index first) {
      query::prefetch(&entries_.key(first < size() ? first : 0));
    };
    query::search_near<line_entries, query::NearBound::below, finds>(
        group, load, fetch, Index(size()), keys, positions, found);
  }

  Router router_;
  bool lines_stay_ = true;
};

template <class Key, class Value, class MemorySpace, class Layout>
const LearnedIndexOptions&
LearnedIndex<Key, Value, MemorySpace, Layout>::checked(
    const LearnedIndexOptions& options) {
  const auto check = [&](const char* what, size_type value) {
    if (value < 1 || value > most_epsilon)
      impl::fail("kindex::LearnedIndex", "options.", what, " is ", value,
                 ", not in 1...", most_epsilon);
  };
  if (options.epsilon) check("epsilon", *options.epsilon);
  check("upper_epsilon", options.upper_epsilon);
  if (options.chunks > 0) check("chunks", options.chunks);
  return options;
}

template <class Key, class Value, class MemorySpace, class Layout>
template <class Exec>
void LearnedIndex<Key, Value, MemorySpace, Layout>::build(
    const Exec& space, const LearnedIndexOptions& options) {
  if (size() == 0) return;
  using Range = Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>;
  using Segments = build::LinearSegments<X, MemorySpace>;
  const std::string label = "kindex::LearnedIndex";
  const auto fit_entries = [&] {
    return build::fit_segments<X>(
        space, label,
        build::CoordinateOfEntry<typename Storage::Ref>{entries_.ref()}, size(),
        epsilon_, options.chunks);
  };
  std::vector<Segments> fitted{fit_entries()};
  if (!options.epsilon && size() >= (size_type{1} << 16)) {
    // With up to two cells each.
    constexpr size_type bytes = sizeof(Segment) + 2 * sizeof(std::uint32_t);
    const size_type most = data_bytes() * 3 / 100;
    while (fitted[0].count * bytes > most && epsilon_ <= most_epsilon / 2) {
      // Segments become fewer at least as fast as epsilon grows, and every
      // lookup pays for a larger one: no larger than that asks for.
      const size_type model = fitted[0].count * bytes;
      epsilon_ = std::min(epsilon_ * 2, (epsilon_ * model + most - 1) / most);
      fitted[0] = fit_entries();
    }
  }
  while (fitted.back().count > 1)
    fitted.push_back(build::fit_segments<X>(
        space, label,
        build::CoordinateOfSegment<X>{fitted.back().starts.data()},
        fitted.back().count, options.upper_epsilon, options.chunks));

  const auto alloc = [&](const char* what) {
    return Kokkos::view_alloc(space, Kokkos::WithoutInitializing,
                              label + "::" + what);
  };
  // From the root, so that a prefix is what all lookups read.
  std::vector<build::SegmentLevel> levels(fitted.size());
  size_type segments = 0;
  for (std::size_t level = fitted.size(); level-- > 0;) {
    const size_type below = level == 0 ? size() : fitted[level - 1].count;
    levels[level] = {segments, fitted[level].count, scale_of(below)};
    segments += fitted[level].count + window;
  }
  model_.segments =
      Kokkos::View<Segment*, MemorySpace>(alloc("model"), segments);
  model_.levels = Kokkos::View<build::SegmentLevel*, MemorySpace>(
      alloc("levels"), levels.size());
  model_.level_ends = Kokkos::View<size_type*, Kokkos::HostSpace>(
      Kokkos::view_alloc(Kokkos::WithoutInitializing, label + "::level_ends"),
      levels.size());
  for (std::size_t level = 0; level < levels.size(); ++level) {
    const build::SegmentLevel& to = levels[level];
    model_.level_ends(level) = to.first + to.segments + window;
    const size_type below = level == 0 ? size() : levels[level - 1].segments;
    Kokkos::parallel_for(
        label + "::write_level", Range(space, 0, to.segments + window),
        build::WriteLevel<X>{fitted[level].starts.data(),
                             fitted[level].models.data(), to.segments, below,
                             to.scale, model_.segments.data() + to.first});
    Kokkos::parallel_for(label + "::write_levels",
                         Kokkos::RangePolicy<Exec>(space, 0, 1),
                         build::WriteElement<build::SegmentLevel>{
                             to, model_.levels.data() + level});
  }
  segments_ = levels[0].segments;
  model_.top = Kokkos::View<Segment*, Kokkos::HostSpace>(
      Kokkos::view_alloc(Kokkos::WithoutInitializing, label + "::top"),
      std::min(segments, query::BroadcastKeys<Segment>::capacity));
  Kokkos::deep_copy(
      space, model_.top,
      Kokkos::subview(model_.segments, Kokkos::pair<size_type, size_type>(
                                           0, model_.top.extent(0))));
  space.fence(label + "::build: the top of the model");
  if (options.strategy == Strategy::complete) return;
  tabulate(space, levels[0]);
  if (options.strategy == Strategy::concise || model_.cells.extent(0) == 0 ||
      size() < (size_type{1} << 16))
    return;
  // Enough for a GPU to be busy some 100 us: shorter ones are timed no better
  // than by a quarter.
  const size_type most = size_type{1}
                         << (query::DeviceTraits<Exec>::is_gpu ? 21 : 14);
  const Kokkos::View<Key*, MemorySpace> sample(alloc("sample"),
                                               std::min(size(), most));
  Kokkos::parallel_for(label + "::draw_sample",
                       Range(space, 0, sample.extent(0)),
                       build::DrawKeys<Ref, Key>{ref(), sample.data()});
  // Before and behind: what comes later finds a warmer device.
  double concise = seconds_of_batch(space, sample);
  const auto cells = std::exchange(model_.cells, {});
  const double complete = seconds_of_batch(space, sample);
  model_.cells = cells;
  concise = std::min(concise, seconds_of_batch(space, sample));
  // In doubt the table: partitioned batches are up to a quarter slower without.
  if (complete < 0.9 * concise) model_.cells = {};
}

template <class Key, class Value, class MemorySpace, class Layout>
template <class Exec, class Keys, class Queries>
LearnedTuning LearnedIndex<Key, Value, MemorySpace, Layout>::tune(
    const Exec& space, const Keys& keys, const Queries& sample,
    const Objective& objective) {
  const char* const function = "kindex::LearnedIndex::tune";
  if (keys.extent(0) == 0) impl::fail(function, "keys is empty");
  if (sample.extent(0) == 0) impl::fail(function, "sample is empty");
  const auto entries = Storage::from_unsorted(name(), space, keys, block);
  LearnedTuning tuning;
  size_type least = ~size_type{0};
  double best = 0;
  for (size_type epsilon = 8; epsilon <= 2048; epsilon *= 2)
    for (const Strategy strategy : {Strategy::concise, Strategy::complete}) {
      LearnedTrial trial;
      trial.options.epsilon = epsilon;
      trial.options.strategy = strategy;
      LearnedIndex index(trial.options);
      index.entries_ = entries;
      index.build(space, trial.options);
      trial.segments = index.segments();
      trial.model_bytes = index.model_bytes();
      trial.lookups_per_second = static_cast<double>(sample.extent(0)) /
                                 index.seconds_of_batch(space, sample);
      tuning.trials.push_back(trial);
      least = std::min(least, trial.model_bytes);
      if (trial.model_bytes <= objective.model_bytes() &&
          trial.lookups_per_second > best) {
        best = trial.lookups_per_second;
        tuning.options = trial.options;
      }
    }
  if (least > objective.model_bytes())
    impl::fail(function, "objective admits models up to ",
               objective.model_bytes(), " bytes, but the smallest has ", least);
  return tuning;
}

template <class Key, class Value, class MemorySpace, class Layout>
template <class Exec>
void LearnedIndex<Key, Value, MemorySpace, Layout>::tabulate(
    const Exec& space, const build::SegmentLevel& leaves) {
  // A cell for each segment; none where segments cannot be numbered in it.
  if (leaves.segments > std::numeric_limits<std::uint32_t>::max() / 2) return;
  const std::string label = "kindex::LearnedIndex";
  Segment ends[2];
  const auto fetch = [&](size_type i, Segment& to) {
    Kokkos::deep_copy(space, Kokkos::View<Segment, Kokkos::HostSpace>(&to),
                      Kokkos::subview(model_.segments, leaves.first + i));
  };
  fetch(0, ends[0]);
  fetch(leaves.segments - 1, ends[1]);
  space.fence(label + "::tabulate: the range of coordinates");
  const X range = ends[1].key - ends[0].key;
  const int bits = std::bit_width(std::bit_ceil(leaves.segments)) - 1;
  const int used = std::bit_width(range);
  const int shift = used > bits ? used - bits : 0;
  const size_type count = size_type(range >> shift) + 1;
  const Kokkos::View<std::uint32_t*, MemorySpace> cells(
      Kokkos::view_alloc(space, Kokkos::WithoutInitializing, label + "::cells"),
      count);
  Kokkos::parallel_for(
      label + "::write_cells",
      Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>(space, 0, count),
      build::WriteCells<X>{model_.segments.data() + leaves.first,
                           leaves.segments, shift, cells.data()});
  size_type crowded = 0;
  Kokkos::parallel_reduce(
      label + "::count_crowded",
      Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>(space, 0,
                                                              count - 1),
      build::CountCrowded{cells.data(), Router::many}, crowded);
  model_.cells = cells;
  model_.shift = shift;
  // Measured on an H100, 2^26 keys of 8 bytes: a look at the cell's end makes
  // osm-like lookups faster by 15 %, uniform ones, of which few are in such
  // cells, slower by 1.5 %.
  model_.crowds = crowded >= leaves.segments / 4;
}

template <class Key, class Value, class MemorySpace, class Layout>
template <class Exec, class Queries>
double LearnedIndex<Key, Value, MemorySpace, Layout>::seconds_of_batch(
    const Exec& space, const Queries& queries) const {
  const Kokkos::View<size_type*, MemorySpace> ranks(
      Kokkos::view_alloc(space, Kokkos::WithoutInitializing,
                         "kindex::LearnedIndex::trial"),
      queries.extent(0));
  const auto policy = LookupPolicy().set_reordering(Reordering::none);
  this->lower_bound(space, queries, ranks, policy);
  std::array<double, 3> seconds{};
  for (double& time : seconds) {
    space.fence("kindex::LearnedIndex::trial: before a batch");
    const Kokkos::Timer timer;
    this->lower_bound(space, queries, ranks, policy);
    space.fence("kindex::LearnedIndex::trial: a batch");
    time = timer.seconds();
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[1];
}

/// \cond
template <class Exec, class Keys>
LearnedIndex(const Exec&, const Keys&, const LearnedIndexOptions& = {})
    -> LearnedIndex<typename Keys::non_const_value_type, std::uint32_t,
                    typename Exec::memory_space>;
template <class Exec, class Keys, class Values>
requires Kokkos::is_view_v<Values> LearnedIndex(const Exec&, const Keys&,
                                                const Values&,
                                                const LearnedIndexOptions& = {})
->LearnedIndex<typename Keys::non_const_value_type,
               typename Values::non_const_value_type,
               typename Exec::memory_space>;
template <class Exec, class Keys>
LearnedIndex(const Exec&, SortedTag, const Keys&, Check = Check::on,
             const LearnedIndexOptions& = {})
    -> LearnedIndex<typename Keys::non_const_value_type, std::uint32_t,
                    typename Exec::memory_space>;
template <class Exec, class Keys, class Values>
requires Kokkos::is_view_v<Values> LearnedIndex(const Exec&, SortedTag,
                                                const Keys&, const Values&,
                                                Check = Check::on,
                                                const LearnedIndexOptions& = {})
->LearnedIndex<typename Keys::non_const_value_type,
               typename Values::non_const_value_type,
               typename Exec::memory_space>;
/// \endcond

}  // namespace kindex

#endif
