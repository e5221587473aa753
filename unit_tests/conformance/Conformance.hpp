// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Builds an index in every way from a data set and checks it.
#ifndef KINDEX_UNIT_TESTS_CONFORMANCE_CONFORMANCE_HPP
#define KINDEX_UNIT_TESTS_CONFORMANCE_CONFORMANCE_HPP

#include <cctype>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "conformance/Checks.hpp"
#include "conformance/IndexList.hpp"

namespace kindex_test {

enum class Input { rows, values, sorted_rows, sorted_values, unchecked_values };
inline constexpr Input all_inputs[] = {Input::rows, Input::values,
                                       Input::sorted_rows, Input::sorted_values,
                                       Input::unchecked_values};

inline const char* name_of(Input input) {
  switch (input) {
    case Input::rows: return "index(keys)";
    case Input::values: return "index(keys, values)";
    case Input::sorted_rows: return "index(sorted, keys)";
    case Input::sorted_values: return "index(sorted, keys, values)";
    default: return "index(sorted, keys, values, Check::off)";
  }
}

/// One index type on one device.
template <class EntryType, class Exec>
struct Subject {
  using Entry = EntryType;
  using Index = typename Entry::Index;
};

template <class SubjectType>
struct Conformance;

template <class Entry, class Exec>
struct Conformance<Subject<Entry, Exec>> {
  using Index = typename Entry::Index;
  using Key = typename Index::key_type;
  using Value = typename Index::value_type;
  /// Who accesses keys, values, queries and results.
  using Home = typename Entry::template Home<Exec>;

  /// Whether the index can be built without values: only where row ids are
  /// values.
  static constexpr bool has_rows = std::is_integral_v<Value>;

  static Failures check(const DataSet<Key>& data) {
    const Reference<Key> reference(data);
    const Batch<Home, Key> batch(reference);
    Failures failures;
    for (const Input input : all_inputs)
      failures += check(reference, batch, input, {kindex::LookupPolicy{}});
    return failures;
  }

  /// One way of building only.
  static Failures check(const DataSet<Key>& data, Input input,
                        const std::vector<kindex::LookupPolicy>& policies = {
                            kindex::LookupPolicy{}}) {
    const Reference<Key> reference(data);
    return check(reference, Batch<Home, Key>(reference), input, policies);
  }

  /// A batch without queries.
  static Failures check_empty_batch(
      const DataSet<Key>& data,
      const std::vector<kindex::LookupPolicy>& policies) {
    Reference<Key> reference(data);
    reference.ask_nothing();
    return check(reference, Batch<Home, Key>(reference), Input::values,
                 policies);
  }

 private:
  static Failures check(const Reference<Key>& r, const Batch<Home, Key>& batch,
                        Input input,
                        const std::vector<kindex::LookupPolicy>& policies) {
    if constexpr (!has_rows) {
      if (input == Input::rows) input = Input::values;
      if (input == Input::sorted_rows) input = Input::sorted_values;
    }
    const bool sorted = input != Input::rows && input != Input::values;
    const bool rows = input == Input::rows || input == Input::sorted_rows;

    std::vector<Value> values(r.input.size()), values_by_rank(r.input.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      if constexpr (has_rows)
        values[i] = rows ? static_cast<Value>(i) : make_value<Value>(i);
      else
        values[i] = make_value<Value>(i);
    }
    for (std::size_t i = 0; i < values.size(); ++i)
      values_by_rank[i] = sorted ? values[i] : values[r.order[i]];
    const Answers<Key, Value> answers(r, values_by_rank);

    const Exec space{};
    Index index;
    {
      const auto keys = to_device<Home>(sorted ? r.sorted : r.input);
      if constexpr (has_rows) {
        if (input == Input::rows) index = Index(space, keys);
        if (input == Input::sorted_rows)
          index = Index(space, kindex::sorted, keys);
      }
      if (!rows) {
        const auto device_values = to_device<Home>(values);
        if (input == Input::values) index = Index(space, keys, device_values);
        if (input == Input::sorted_values)
          index = Index(space, kindex::sorted, keys, device_values);
        if (input == Input::unchecked_values)
          index = Index(space, kindex::sorted, keys, device_values,
                        kindex::Check::off);
        space.fence("test::build");
      }
      space.fence("test::build");
    }
    Failures failures;
    const std::string what = name_of(input);
    if (index.size() != r.input.size() || index.empty() != r.input.empty())
      failures.lines.push_back("size of " + what + " on " + r.describe() +
                               " is " + std::to_string(index.size()));
    failures += check_ref<Entry::ranges>(Home{}, index.ref(), r, values_by_rank,
                                         answers, batch, what);
    for (std::size_t i = 0; i < policies.size(); ++i)
      failures += check_bulk<Entry::ranges>(
          space, index, r, answers, batch, policies[i],
          what + (policies.size() > 1 ? ", policy " + std::to_string(i) : ""));
    return failures;
  }
};

/// Every scheduling, odd team sizes, lookups per thread from 1 to 16, and
/// partitioned batches.
inline std::vector<kindex::LookupPolicy> all_policies() {
  std::vector<kindex::LookupPolicy> policies{kindex::LookupPolicy{}};
  for (const auto reordering :
       {kindex::Reordering::none, kindex::Reordering::partitioned})
    policies.push_back(kindex::LookupPolicy{}.set_reordering(reordering));
  for (const int team_size : {0, 33})
    policies.push_back(kindex::LookupPolicy{}
                           .set_scheduling(kindex::Scheduling::one_per_core)
                           .set_team_size(team_size));
  for (const auto scheduling :
       {kindex::Scheduling::automatic, kindex::Scheduling::dynamic,
        kindex::Scheduling::fixed}) {
    policies.push_back(kindex::LookupPolicy{}.set_scheduling(scheduling));
    for (const int team_size : {1, 2, 3, 7, 32, 33, 100, 256})
      policies.push_back(kindex::LookupPolicy{}
                             .set_scheduling(scheduling)
                             .set_team_size(team_size));
    for (int lookups = 1; lookups <= 16; ++lookups)
      policies.push_back(kindex::LookupPolicy{}
                             .set_scheduling(scheduling)
                             .set_lookups_per_thread(lookups));
    policies.push_back(kindex::LookupPolicy{}
                           .set_scheduling(scheduling)
                           .set_team_size(5)
                           .set_lookups_per_thread(3));
  }
  return policies;
}

namespace impl {

template <class... Lists>
struct Concat;
template <class... A>
struct Concat<::testing::Types<A...>> {
  using type = ::testing::Types<A...>;
};
template <class... A, class... B, class... More>
struct Concat<::testing::Types<A...>, ::testing::Types<B...>, More...> {
  using type = typename Concat<::testing::Types<A..., B...>, More...>::type;
};

template <class Entries, class Exec>
struct SubjectsOn;
template <class... Entries, class Exec>
struct SubjectsOn<::testing::Types<Entries...>, Exec> {
  using type = ::testing::Types<Subject<Entries, Exec>...>;
};

template <class Key, class Execs>
struct Subjects;
template <class Key, class... Execs>
struct Subjects<Key, ::testing::Types<Execs...>> {
  using type = typename Concat<typename SubjectsOn<
      IndexList<Key, typename Execs::memory_space>, Execs>::type...>::type;
};

template <class T>
struct ExecOf;
template <class Entry, class Exec>
struct ExecOf<Subject<Entry, Exec>> {
  using type = Exec;
};

}  // namespace impl

/// All indexes on all devices, for one key type.
template <class Key>
using Subjects = typename impl::Subjects<Key, Devices>::type;

/// `SortedArray_uint32_uint64_AoS.OpenMP` and the like, made from the type's
/// name.
struct SubjectName {
  template <class T>
  static std::string GetName(int i) {
    using Index = typename T::Index;
    std::string type = ::testing::internal::GetTypeName<Index>(), name;
    for (std::size_t at; (at = type.find("::")) != std::string::npos;) {
      std::size_t from = at;
      while (from > 0 &&
             (std::isalnum(static_cast<unsigned char>(type[from - 1])) ||
              type[from - 1] == '_'))
        --from;
      type.erase(from, at + 2 - from);
    }
    for (const char c : type) {
      if (std::isalnum(static_cast<unsigned char>(c)))
        name += c;
      else if (!name.empty() && name.back() != '_')
        name += '_';
    }
    while (!name.empty() && name.back() == '_') name.pop_back();
    return std::to_string(i) + "." + name + "." + impl::ExecOf<T>::type::name();
  }
};

}  // namespace kindex_test

#endif
