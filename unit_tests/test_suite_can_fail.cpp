// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The conformance checks find a wrong index: for every verb, one that answers
// it wrongly is reported, and only it.
#include <gtest/gtest.h>

#include <cstdint>
#include <kindex/SortedArray.hpp>
#include <string>
#include <vector>

#include "conformance/Checks.hpp"

namespace kindex_test {
namespace {

enum Wrong {
  nothing,
  find,
  contains,
  count,
  lower_bound,
  upper_bound,
  equal_range,
  range_count,
  range,
  for_each_in_range,
  key,
  value,
  last_wrong
};

constexpr const char* verb_name[] = {
    "nothing",     "find",        "contains",    "count", "lower_bound",
    "upper_bound", "equal_range", "range_count", "range", "for_each_in_range",
    "key",         "value"};

/// A handle that is off by one at one verb.
template <class Good>
struct WrongRef {
  Good good;
  Wrong wrong;
  template <class Q>
  KOKKOS_FUNCTION auto find(const Q& q) const {
    auto answer = good.find(q);
    if (wrong == kindex_test::find) ++answer;
    return answer;
  }
  template <class Q, class Value>
  KOKKOS_FUNCTION auto find(const Q& q, Value missing) const {
    auto answer = good.find(q, missing);
    if (wrong == kindex_test::find) ++answer;
    return answer;
  }
  template <class Q>
  KOKKOS_FUNCTION bool contains(const Q& q) const {
    return good.contains(q) != (wrong == kindex_test::contains);
  }
  template <class Q>
  KOKKOS_FUNCTION size_type count(const Q& q) const {
    return good.count(q) + (wrong == kindex_test::count);
  }
  template <class Q>
  KOKKOS_FUNCTION size_type lower_bound(const Q& q) const {
    return good.lower_bound(q) + (wrong == kindex_test::lower_bound);
  }
  template <class Q>
  KOKKOS_FUNCTION size_type upper_bound(const Q& q) const {
    return good.upper_bound(q) - (wrong == kindex_test::upper_bound);
  }
  template <class Q>
  KOKKOS_FUNCTION auto equal_range(const Q& q) const {
    auto both = good.equal_range(q);
    both.second += wrong == kindex_test::equal_range;
    return both;
  }
  template <class Q>
  KOKKOS_FUNCTION size_type range_count(const Q& lo, const Q& hi) const {
    return good.range_count(lo, hi) + (wrong == kindex_test::range_count);
  }
  template <class Q>
  KOKKOS_FUNCTION auto range(const Q& lo, const Q& hi) const {
    auto both = good.range(lo, hi);
    both.second += wrong == kindex_test::range;
    return both;
  }
  template <class Q, class Visit>
  KOKKOS_FUNCTION void for_each_in_range(const Q& lo, const Q& hi,
                                         const Visit& visit) const {
    auto both = good.range(lo, hi);
    if (wrong == kindex_test::for_each_in_range && both.second > both.first)
      --both.second;
    for (auto rank = both.first; rank < both.second; ++rank)
      visit(good.key(rank), good.value(rank));
  }
  KOKKOS_FUNCTION auto key(size_type rank) const {
    return good.key(wrong == kindex_test::key ? good.size() - 1 - rank : rank);
  }
  KOKKOS_FUNCTION auto value(size_type rank) const {
    return good.value(rank) + (wrong == kindex_test::value);
  }
  KOKKOS_FUNCTION size_type size() const { return good.size(); }
};

/// An index that answers one verb wrongly.
template <class Good>
struct WrongIndex {
  Good good;
  Wrong wrong;

  template <class Exec, class Q, class Out, class Value>
  void find(const Exec& space, const Q& q, const Out& out, Value missing,
            const kindex::LookupPolicy& policy) const {
    good.find(space, q, out, wrong == kindex_test::find ? missing + 1 : missing,
              policy);
  }
  template <class Exec, class Q, class Out>
  void contains(const Exec& space, const Q& q, const Out& out,
                const kindex::LookupPolicy& policy) const {
    if (wrong == kindex_test::contains) return;  // leaves the output as it was
    good.contains(space, q, out, policy);
  }
  template <class Exec, class Q, class Out>
  void count(const Exec& space, const Q& q, const Out& out,
             const kindex::LookupPolicy& policy) const {
    if (wrong == kindex_test::count)
      return good.lower_bound(space, q, out, policy);
    good.count(space, q, out, policy);
  }
  template <class Exec, class Q, class Out>
  void lower_bound(const Exec& space, const Q& q, const Out& out,
                   const kindex::LookupPolicy& policy) const {
    if (wrong == kindex_test::lower_bound)
      return good.upper_bound(space, q, out, policy);
    good.lower_bound(space, q, out, policy);
  }
  template <class Exec, class Q, class Out>
  void upper_bound(const Exec& space, const Q& q, const Out& out,
                   const kindex::LookupPolicy& policy) const {
    if (wrong == kindex_test::upper_bound)
      return good.lower_bound(space, q, out, policy);
    good.upper_bound(space, q, out, policy);
  }
  template <class Exec, class Q, class Out>
  void equal_range(const Exec& space, const Q& q, const Out& first,
                   const Out& last, const kindex::LookupPolicy& policy) const {
    if (wrong == kindex_test::equal_range)
      return good.equal_range(space, q, last, first, policy);
    good.equal_range(space, q, first, last, policy);
  }
  template <class Exec, class Q, class Out>
  void range_count(const Exec& space, const Q& lo, const Q& hi, const Out& out,
                   const kindex::LookupPolicy& policy) const {
    if (wrong == kindex_test::range_count)
      return good.range_count(space, lo, lo, out, policy);
    good.range_count(space, lo, hi, out, policy);
  }
  template <class Exec, class Q>
  auto range(const Exec& space, const Q& lo, const Q& hi,
             const kindex::LookupPolicy& policy) const {
    return wrong == kindex_test::range ? good.range(space, lo, lo, policy)
                                       : good.range(space, lo, hi, policy);
  }
  template <class Exec, class Q>
  auto range(const Exec& space, const Q& lo, const Q& hi,
             kindex::WithKeysTag tag,
             const kindex::LookupPolicy& policy) const {
    return wrong == kindex_test::range ? good.range(space, lo, lo, tag, policy)
                                       : good.range(space, lo, hi, tag, policy);
  }
  template <class Exec, class Q, class Visit>
  void for_each_in_range(const Exec& space, const Q& lo, const Q& hi,
                         const Visit& visit,
                         const kindex::LookupPolicy& policy) const {
    good.for_each_in_range(space, lo,
                           wrong == kindex_test::for_each_in_range ? lo : hi,
                           visit, policy);
  }
};

template <class Exec>
class SuiteCanFail : public ::testing::Test {};
TYPED_TEST_SUITE(SuiteCanFail, Devices, DeviceName);

template <class Exec>
struct Fixture {
  using Index =
      kindex::SortedArray<int, std::uint32_t, typename Exec::memory_space>;
  Reference<int> reference{mixed_keys<int>(201)};
  std::vector<std::uint32_t> values_by_rank{reference.order.begin(),
                                            reference.order.end()};
  Answers<int, std::uint32_t> answers{reference, values_by_rank};
  Batch<Exec, int> batch{reference};
  Index index{Exec{}, to_device<Exec>(reference.input)};
};

void expect_exactly(const Failures& failures, const std::string& prefix,
                    Wrong wrong) {
  if (wrong == nothing) {
    EXPECT_TRUE(failures.empty()) << failures.text();
    return;
  }
  const std::string verb = prefix + verb_name[wrong];
  EXPECT_FALSE(failures.empty()) << "a wrong " << verb << " was not found";
  for (const auto& line : failures.lines) {
    EXPECT_EQ(line.rfind(verb, 0), 0u) << "not " << verb << ": " << line;
    EXPECT_NE(line.find_first_of(" .:", verb.size()), std::string::npos)
        << line;
  }
}

TYPED_TEST(SuiteCanFail, RefThatIsOffByOne) {
  using Exec = TypeParam;
  const Fixture<Exec> f;
  using Ref = decltype(f.index.ref());
  for (int wrong = nothing; wrong < last_wrong; ++wrong)
    expect_exactly(
        check_ref<true>(
            Exec{}, WrongRef<Ref>{f.index.ref(), static_cast<Wrong>(wrong)},
            f.reference, f.values_by_rank, f.answers, f.batch, "a wrong ref"),
        "ref.", static_cast<Wrong>(wrong));
}

TYPED_TEST(SuiteCanFail, IndexThatAnswersWrongly) {
  using Exec = TypeParam;
  const Fixture<Exec> f;
  using Index = typename Fixture<Exec>::Index;
  for (int wrong = nothing; wrong < key; ++wrong)
    expect_exactly(
        check_bulk<true>(Exec{},
                         WrongIndex<Index>{f.index, static_cast<Wrong>(wrong)},
                         f.reference, f.answers, f.batch,
                         kindex::LookupPolicy{}, "a wrong index"),
        "", static_cast<Wrong>(wrong));
}

TYPED_TEST(SuiteCanFail, IndexThatIsNotStable) {
  using Exec = TypeParam;
  const Fixture<Exec> f;
  using Index = typename Fixture<Exec>::Index;
  // Ranks are right, but equal keys come in the opposite order.
  std::vector<int> backwards(f.reference.input.rbegin(),
                             f.reference.input.rend());
  std::vector<std::uint32_t> rows(backwards.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    rows[i] = static_cast<std::uint32_t>(rows.size() - 1 - i);
  const Index unstable(Exec{}, to_device<Exec>(backwards),
                       to_device<Exec>(rows));
  const auto failures =
      check_bulk<true>(Exec{}, unstable, f.reference, f.answers, f.batch,
                       kindex::LookupPolicy{}, "it");
  ASSERT_FALSE(failures.empty());
  bool find_failed = false, range_failed = false;
  for (const auto& line : failures.lines) {
    find_failed |= line.rfind("find of", 0) == 0;
    range_failed |= line.rfind("range: values", 0) == 0;
    EXPECT_NE(line.rfind("lower_bound", 0), 0u) << line;
  }
  EXPECT_TRUE(find_failed) << failures.text();
  EXPECT_TRUE(range_failed) << failures.text();
}

}  // namespace
}  // namespace kindex_test
