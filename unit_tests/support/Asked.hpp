// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Queries with their right answers, for what is special to an index.
#ifndef KINDEX_UNIT_TESTS_SUPPORT_ASKED_HPP
#define KINDEX_UNIT_TESTS_SUPPORT_ASKED_HPP

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "conformance/Checks.hpp"
#include "support/Keys.hpp"
#include "support/Queries.hpp"
#include "support/Values.hpp"

namespace kindex_test {

/// Queries, and what an index of the ascending `keys` answers with row ids.
template <class Exec, class Key>
struct Asked {
  std::string name;
  std::vector<Key> queries;
  Ranks lower, upper;
  std::vector<std::uint32_t> found;
  DeviceView<Key, Exec> device_keys, device_queries;

  Asked(std::string what, const std::vector<Key>& keys,
        std::vector<Key> queries_)
      : name(std::move(what)),
        queries(std::move(queries_)),
        device_keys(to_device<Exec>(keys)),
        device_queries(to_device<Exec>(queries)) {
    for (const Key& q : queries) {
      const auto range =
          std::equal_range(keys.begin(), keys.end(), q, Keys<Key>::less);
      lower.push_back(range.first - keys.begin());
      upper.push_back(range.second - keys.begin());
      found.push_back(lower.back() == upper.back()
                          ? ~std::uint32_t{0}
                          : static_cast<std::uint32_t>(lower.back()));
    }
  }

  Failures compare(const std::string& how, const Ranks& got_lower,
                   const Ranks& got_upper,
                   const std::vector<std::uint32_t>& got_found) const {
    const auto query = [&](std::size_t i) {
      return "query " + to_text(queries[i]);
    };
    const std::string on =
        ", " + how + ", " + name + ", n = " + std::to_string(size());
    Failures failures;
    failures.compare("lower bound" + on, lower, got_lower, query);
    failures.compare("upper bound" + on, upper, got_upper, query);
    failures.compare("find" + on, found, got_found, query);
    return failures;
  }

  size_type size() const { return device_keys.extent(0); }
};

/// Every key and its neighbours, each once, and the type's extremes; of many
/// keys, a part.
template <class Key>
std::vector<Key> queries_around(const std::vector<Key>& ascending) {
  constexpr std::size_t most = 6000;
  std::vector<Key> keys = ascending;
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  if (keys.size() > most) {
    std::mt19937_64 rng(keys.size());
    std::shuffle(keys.begin() + 50, keys.end() - 50, rng);
    std::rotate(keys.begin() + 50, keys.end() - 50, keys.end());
    keys.resize(most);
  }
  std::vector<Key> queries = Keys<Key>::extremes();
  for (const Key key : keys)
    for (const Key q : {Keys<Key>::below(key), key, Keys<Key>::above(key)})
      queries.push_back(q);
  std::sort(queries.begin(), queries.end(), Keys<Key>::less);
  queries.erase(std::unique(queries.begin(), queries.end()), queries.end());
  std::shuffle(queries.begin(), queries.end(), std::mt19937_64(1));
  return queries;
}

template <class Exec, class Ref, class Key>
struct RefKernel {
  Ref ref;
  DeviceView<Key, Exec> queries;
  DeviceView<size_type, Exec> lower, upper;
  DeviceView<std::uint32_t, Exec> found;
  KOKKOS_FUNCTION void operator()(size_type i) const {
    const auto bounds = ref.equal_range(queries(i));
    lower(i) = bounds.first;
    upper(i) = bounds.second;
    found(i) = ref.find(queries(i));
  }
};

/// Bounds and rows, in bulk. Exec accesses Views, `space` searches.
template <class Exec, class Index, class Key, class Space = Exec>
Failures check_bulk_answers(const Index& index, const Asked<Exec, Key>& asked,
                            const std::string& how, const Space& space = {}) {
  const std::size_t m = asked.queries.size();
  const auto lower = filled<size_type, Exec>(m),
             upper = filled<size_type, Exec>(m);
  const auto found = filled<std::uint32_t, Exec>(m);
  index.equal_range(space, asked.device_queries, lower, upper);
  index.find(space, asked.device_queries, found);
  return asked.compare(how, to_host(lower), to_host(upper), to_host(found));
}

/// The same by the ref, where every lookup is alone.
template <class Exec, class Index, class Key>
Failures check_ref_answers(const Index& index, const Asked<Exec, Key>& asked,
                           const std::string& how) {
  using Ref = typename Index::Ref;
  static_assert(std::is_trivially_copyable_v<Ref>);
  const std::size_t m = asked.queries.size();
  const RefKernel<Exec, Ref, Key> kernel{
      index.ref(), asked.device_queries, filled<size_type, Exec>(m),
      filled<size_type, Exec>(m), filled<std::uint32_t, Exec>(m)};
  Kokkos::parallel_for(
      "test::RefKernel",
      Kokkos::RangePolicy<Exec, Kokkos::IndexType<size_type>>(Exec{}, 0, m),
      kernel);
  return asked.compare("ref of " + how, to_host(kernel.lower),
                       to_host(kernel.upper), to_host(kernel.found));
}

}  // namespace kindex_test

#endif
