// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The benchmarks of byte strings.
#include "BuildCase.hpp"
#include "PointCase.hpp"
#include "baselines/StdLowerBound.hpp"
#ifdef KINDEX_PERF_HAVE_ABSL
#include "baselines/AbslBtree.hpp"
#endif
#ifdef KINDEX_PERF_HAVE_ART
#include "baselines/Libart.hpp"
#endif

#include <kindex/StringRadixTree.hpp>

#include <algorithm>

namespace kindex::perf {
namespace {

using Value = std::uint32_t;

/// StringRadixTree of packed strings.
template <class Memory>
class PackedRadixTree {
  using Tree = StringRadixTree<Value, Memory>;
  using Keys = Kokkos::View<const Bytes*, Memory>;

 public:
  using Ref = typename Tree::Ref;

  template <class Exec>
  PackedRadixTree(const Exec& space, SortedTag, const Keys& keys)
      : tree_(space, sorted, offsets_of(keys), chars_of(space, keys)) {}

  template <class Exec, class Values>
  PackedRadixTree(const Exec& space, const Keys& keys, const Values& values)
      : tree_(space, offsets_of(keys), chars_of(space, keys), values) {}

  template <class Exec, class Out>
  void find(const Exec& space, const Keys& queries, const Out& out) const {
    tree_.find(space, queries, out);
  }
  template <class Exec, class Ranks>
  void lower_bound(const Exec& space, const Keys& queries,
                   const Ranks& ranks) const {
    tree_.lower_bound(space, queries, ranks);
  }
  Ref ref() const { return tree_.ref(); }
  std::uint64_t memory_bytes() const { return tree_.memory_bytes(); }

 private:
  Tree tree_;
};

template <class Exec>
IndexList<Bytes, Value, Exec> registered_string_indexes() {
  using Memory = typename Exec::memory_space;
  IndexList<Bytes, Value, Exec> all;
  all.template add<PackedRadixTree<Memory>>("string_radix_tree");
  if constexpr (is_host<Exec>) {
    all.template add<StdLowerBound<Bytes, Value>>("std_lower_bound");
#ifdef KINDEX_PERF_HAVE_ABSL
    all.template add<AbslBtree<Bytes, Value>>("absl_btree");
#endif
#ifdef KINDEX_PERF_HAVE_ART
    all.template add<Libart<Bytes>>("libart");
#endif
  }
  return all;
}

bool is_offered(Op op) {
  return op == Op::build || op == Op::find || op == Op::ref_find ||
         op == Op::lower_bound;
}

/// Whether there are any, be it that others named the same set before.
template <class Exec>
bool add_cases_on(const KeySpec& spec, ValueMode mode, Session& session,
                  std::vector<Case>& cases) {
  bool adds = false;
  const Options& options = session.options;
  const auto indexes = registered_string_indexes<Exec>();
  for (const auto& entry : indexes.entries()) {
    if (!is_selected(options.indexes, entry.name)) continue;
    const Subject<Bytes, Value, Exec> subject{session, spec, mode, entry};
    for (Op op : options.ops) {
      if (!is_offered(op) || !entry.supports(op, mode)) continue;
      adds = true;
      add_case(
          one_sector_name(subject),
          [subject](benchmark::State& state) {
            measure_one_sector(subject, state);
          },
          cases);
      if (op == Op::build) {
        add_case(
            build_name(subject, false),
            [subject](benchmark::State& state) {
              measure_build(subject, false, state);
            },
            cases);
        continue;
      }
      const PointCase point{op, options.batch(is_host<Exec>)};
      add_case(
          point_name(subject, point),
          [subject, point](benchmark::State& state) {
            measure_point(subject, point, state);
          },
          cases);
    }
  }
  return adds;
}

}  // namespace

void add_string_cases(const KeySpec& spec, Session& session,
                      std::vector<Case>& cases) {
  const Options& options = session.options;
  bool adds = false;
  for_each_space([&]<class Exec>() {
    const bool is_resident =
        is_host<Exec> ||
        std::find(options.transfers.begin(), options.transfers.end(),
                  Transfers::out) != options.transfers.end();
    if (!is_resident || !is_selected(options.spaces, Exec::name())) return;
    for (ValueMode mode : options.values)
      if (mode != ValueMode::u64)
        adds |= add_cases_on<Exec>(spec, mode, session, cases);
  });
  if (adds) return;
  std::string names;
  for (const std::string& name : string_index_names())
    names += (names.empty() ? "" : ", ") + name;
  throw Error("--keys " + spec.set_name() +
              ":str: nothing that is asked for is measured on strings; there "
              "are build, find, ref_find and lower_bound of " +
              names + ", with values none and u32 and without transfers");
}

std::vector<std::string> string_index_names() {
  std::vector<std::string> names;
  for_each_space([&]<class Exec>() {
    const auto all = registered_string_indexes<Exec>();
    for (const auto& entry : all.entries())
      if (std::find(names.begin(), names.end(), entry.name) == names.end())
        names.push_back(entry.name);
  });
  return names;
}

}  // namespace kindex::perf
