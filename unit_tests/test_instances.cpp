// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kokkos Tools prove that everything runs on the instance given, that nothing
// fences more, and how it is labelled.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <kindex/SortedArray.hpp>
#include <string>
#include <utility>
#include <vector>

#include "support/Queries.hpp"
#include "support/Recorder.hpp"

namespace kindex_test {
namespace {

template <class Exec>
class Instances : public ::testing::Test {};
TYPED_TEST_SUITE(Instances, Devices, DeviceName);

template <class Exec>
Exec other_instance() {
  return distinct_instances<Exec>(2)[1];
}

template <class Exec>
std::uint32_t id_of(const Exec& space) {
  return Kokkos::Tools::Experimental::device_id(space);
}

/// Kokkos::OpenMP reports the same id for all its instances: there, a kernel is
/// only seen to run on that device. Fences of all instances have an id of their
/// own everywhere.
template <class Exec>
constexpr bool ids_tell_instances() {
  return !std::is_same_v<Exec, Kokkos::DefaultHostExecutionSpace>;
}

template <class Exec>
struct CountHits {
  DeviceView<size_type, Exec> hits;
  template <class Key, class Value>
  KOKKOS_FUNCTION void operator()(size_type q, Key, Value) const {
    Kokkos::atomic_inc(&hits(q));
  }
};

template <class Exec, class Key>
struct Data {
  DeviceView<Key, Exec> keys;
  DeviceView<int, Exec> values;
  DeviceView<Key, Exec> queries, ends;
  DeviceView<size_type, Exec> first, last;
  DeviceView<bool, Exec> contained;

  explicit Data(std::size_t n = 5000, std::size_t m = 3000)
      : first(filled<size_type, Exec>(m)),
        last(filled<size_type, Exec>(m)),
        contained(filled<bool, Exec>(m)) {
    std::vector<Key> host_keys, host_queries, host_ends;
    std::vector<int> host_values;
    for (std::size_t i = 0; i < n; ++i) {
      host_keys.push_back(static_cast<Key>(i * 7919 % n / 2));
      host_values.push_back(static_cast<int>(i));
    }
    for (std::size_t i = 0; i < m; ++i) {
      host_queries.push_back(static_cast<Key>(i * 31 % n));
      host_ends.push_back(static_cast<Key>(i * 31 % n + 5));
    }
    keys = to_device<Exec>(host_keys);
    values = to_device<Exec>(host_values);
    queries = to_device<Exec>(host_queries);
    ends = to_device<Exec>(host_ends);
  }
};

using Calls = std::vector<std::pair<std::string, std::function<void()>>>;

/// Verbs that are asynchronous: one kernel each.
template <class Exec, class Index, class Key>
Calls asynchronous_calls(
    const Exec& space, const Index& index, const Data<Exec, Key>& d,
    const DeviceView<typename Index::value_type, Exec>& found,
    const kindex::LookupPolicy& policy) {
  return {
      {"find", [=] { index.find(space, d.queries, found, policy); }},
      {"contains",
       [=] { index.contains(space, d.queries, d.contained, policy); }},
      {"lower_bound",
       [=] { index.lower_bound(space, d.queries, d.first, policy); }},
      {"upper_bound",
       [=] { index.upper_bound(space, d.queries, d.first, policy); }},
      {"equal_range",
       [=] { index.equal_range(space, d.queries, d.first, d.last, policy); }},
      {"count", [=] { index.count(space, d.queries, d.first, policy); }},
      {"range_count",
       [=] { index.range_count(space, d.queries, d.ends, d.first, policy); }},
      {"for_each_in_range",
       [=] {
         index.for_each_in_range(space, d.queries, d.ends,
                                 CountHits<Exec>{d.first}, policy);
       }},
  };
}

template <class Exec, class Index, class Key>
void check_queries(const Exec& space, const Index& index,
                   const Data<Exec, Key>& data) {
  const auto found =
      filled<typename Index::value_type, Exec>(data.queries.extent(0));
  for (const auto scheduling :
       {kindex::Scheduling::automatic, kindex::Scheduling::dynamic,
        kindex::Scheduling::fixed, kindex::Scheduling::one_per_core}) {
    const auto policy = kindex::LookupPolicy{}.set_scheduling(scheduling);
    for (const auto& [verb, call] :
         asynchronous_calls(space, index, data, found, policy)) {
      SCOPED_TRACE(verb);
      Recorder recorder;
      call();
      const auto events = recorder.stop();
      space.fence("test::verb");
      EXPECT_EQ(number_of(events, Event::kernel), 1u);
      EXPECT_EQ(joined(allocations(events)), "");
      EXPECT_EQ(number_of(events, Event::copy), 0u);
      EXPECT_EQ(joined(violations(events, id_of(space), Fences::none)), "");
    }
    for (const bool with_keys : {false, true}) {
      SCOPED_TRACE(with_keys ? "range with keys" : "range");
      Recorder recorder;
      const auto hits =
          with_keys ? index.range(space, data.queries, data.ends,
                                  kindex::with_keys, policy)
                    : index.range(space, data.queries, data.ends, policy);
      const auto events = recorder.stop();
      EXPECT_GT(hits.values.extent(0), 0u);
      EXPECT_GE(number_of(events, Event::kernel), 2u);
      EXPECT_EQ(
          joined(violations(events, id_of(space), Fences::of_the_instance)),
          "");
    }
  }
}

template <class Exec>
void check_all_queries() {
  using Memory = typename Exec::memory_space;
  const Data<Exec, int> ints;
  const Data<Exec, double> doubles;
  const Exec space = other_instance<Exec>();
  ASSERT_TRUE(space != Exec{});
  ASSERT_TRUE(!ids_tell_instances<Exec>() || id_of(space) != id_of(Exec{}));
  check_queries(space,
                kindex::SortedArray<int, std::uint32_t, Memory, kindex::SoA>(
                    space, ints.keys),
                ints);
  check_queries(space,
                kindex::SortedArray<int, int, Memory, kindex::AoS>(
                    space, ints.keys, ints.values),
                ints);
  check_queries(space,
                kindex::SortedArray<double, std::uint32_t, Memory, kindex::SoA>(
                    space, doubles.keys),
                doubles);
}

TYPED_TEST(Instances, QueriesRunOnTheInstanceGiven) {
  check_all_queries<TypeParam>();
}

template <class Exec, class Key>
void check_builds() {
  using Memory = typename Exec::memory_space;
  using SoA = kindex::SortedArray<Key, std::uint32_t, Memory, kindex::SoA>;
  using AoS = kindex::SortedArray<Key, int, Memory, kindex::AoS>;
  const Data<Exec, Key> data;
  std::vector<Key> ascending;
  for (int i = 0; i < 5000; ++i) ascending.push_back(static_cast<Key>(i / 2));
  const auto sorted_keys = to_device<Exec>(ascending);
  const Exec space = other_instance<Exec>();
  SoA soa;
  AoS aos;
  const Calls builds = {
      {"keys", [&] { soa = SoA(space, data.keys); }},
      {"keys, values", [&] { aos = AoS(space, data.keys, data.values); }},
      {"sorted, keys", [&] { soa = SoA(space, kindex::sorted, sorted_keys); }},
      {"sorted, keys, values",
       [&] { aos = AoS(space, kindex::sorted, sorted_keys, data.values); }},
      {"sorted, keys, Check::off",
       [&] {
         soa = SoA(space, kindex::sorted, sorted_keys, kindex::Check::off);
       }},
  };
  for (const auto& [how, build] : builds) {
    SCOPED_TRACE(how);
    soa = SoA();
    aos = AoS();
    Recorder recorder;
    build();
    const auto events = recorder.stop();
    EXPECT_GE(number_of(events, Event::kernel), 1u);
    EXPECT_GE(allocations(events).size(), 1u);
    EXPECT_EQ(joined(violations(events, id_of(space),
                                Fences::of_the_instance_or_of_frees)),
              "");
  }
}

TYPED_TEST(Instances, BuildsRunOnTheInstanceGiven) {
  check_builds<TypeParam, int>();
  check_builds<TypeParam, double>();
}

TYPED_TEST(Instances, WorkspaceReplacesAllocations) {
  using Exec = TypeParam;
  const Data<Exec, int> data;
  const Exec space = other_instance<Exec>();
  const kindex::SortedArray index(space, data.keys);
  const size_type bytes = index.workspace_bytes(data.queries.extent(0));
  const DeviceView<std::byte, Exec> workspace("test::workspace", bytes + 16);
  const auto policy = kindex::LookupPolicy{}.set_workspace(Kokkos::subview(
      workspace,
      std::make_pair(std::size_t{0}, static_cast<std::size_t>(bytes))));
  const auto found = filled<std::uint32_t, Exec>(data.queries.extent(0));
  for (const auto& [verb, call] :
       asynchronous_calls(space, index, data, found, policy)) {
    SCOPED_TRACE(verb);
    Recorder recorder;
    call();
    EXPECT_EQ(joined(allocations(recorder.stop())), "");
  }
  // A range query allocates its results and nothing else.
  for (const bool with_keys : {false, true}) {
    Recorder recorder;
    const auto hits = with_keys
                          ? index.range(space, data.queries, data.ends,
                                        kindex::with_keys, policy)
                          : index.range(space, data.queries, data.ends, policy);
    const auto events = recorder.stop();
    const auto labels = allocations(events);
    EXPECT_EQ(joined(violations(events, id_of(space), Fences::of_the_instance)),
              "");
    EXPECT_EQ(labels.size(), with_keys ? 3u : 2u) << joined(labels);
    const auto plain =
        index.range(space, data.queries, data.ends, kindex::with_keys);
    EXPECT_TRUE(to_host(hits.offsets) == to_host(plain.offsets));
    EXPECT_TRUE(to_host(hits.values) == to_host(plain.values));
    if (with_keys) {
      EXPECT_TRUE(to_host(hits.keys) == to_host(plain.keys));
    }
  }
  // Too small: an error that says so, and nothing happens.
  ASSERT_GT(bytes, 16u);
  const auto small = kindex::LookupPolicy{}.set_workspace(Kokkos::subview(
      workspace,
      std::make_pair(std::size_t{0}, static_cast<std::size_t>(bytes - 1))));
  Recorder recorder;
  try {
    index.range(space, data.queries, data.ends, small);
    ADD_FAILURE() << "a workspace that is too small was taken";
  } catch (const kindex::Error& error) {
    EXPECT_NE(std::string(error.what()).find(std::to_string(bytes)),
              std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what()).find(std::to_string(bytes - 1)),
              std::string::npos)
        << error.what();
  }
  EXPECT_EQ(number_of(recorder.stop(), Event::kernel), 0u);
}

template <class Exec>
struct Nothing {
  KOKKOS_FUNCTION void operator()(int) const {}
};

template <class Exec>
void expect_reported(const Exec& space, const std::function<void()>& offence,
                     Fences allowed, const std::string& expected) {
  Recorder recorder;
  offence();
  const auto found = joined(violations(recorder.stop(), id_of(space), allowed));
  EXPECT_NE(found.find(expected), std::string::npos)
      << "'" << expected << "' was not reported, but: " << found;
}

// These tests can fail: what they must find is found.
TYPED_TEST(Instances, OffencesAreFound) {
  using Exec = TypeParam;
  using View = DeviceView<int, Exec>;
  using Policy = Kokkos::RangePolicy<Exec>;
  const Exec space = other_instance<Exec>();
  const Nothing<Exec> nothing;
  if (ids_tell_instances<Exec>())
    expect_reported(
        space,
        [&] {
          Kokkos::parallel_for("kindex::test", Policy(Exec{}, 0, 10), nothing);
        },
        Fences::none, "on another instance");
  expect_reported(
      space, [&] { Kokkos::parallel_for(Policy(space, 0, 10), nothing); },
      Fences::none, "no label of kindex");
  expect_reported(
      space,
      [&] { Kokkos::parallel_for("mine", Policy(space, 0, 10), nothing); },
      Fences::none, "no label of kindex");
  expect_reported(
      space, [&] { View view("mine", 10); }, Fences::of_the_instance,
      "no label of kindex");
  if (ids_tell_instances<Exec>())
    expect_reported(
        space,
        [&] { View view(Kokkos::view_alloc(std::string("kindex::v")), 10000); },
        Fences::of_the_instance_or_of_frees, "not of the instance");
  expect_reported(
      space, [&] { Kokkos::fence("kindex::test"); }, Fences::of_the_instance,
      "not of the instance");
  expect_reported(
      space, [&] { Kokkos::fence("kindex::test"); },
      Fences::of_the_instance_or_of_frees, "not of the instance");
  if (ids_tell_instances<Exec>())
    expect_reported(
        space, [&] { Exec{}.fence("kindex::test"); }, Fences::of_the_instance,
        "not of the instance");
  expect_reported(
      space,
      [&] {
        View view(Kokkos::view_alloc(space, std::string("kindex::v")), 100000);
      },
      Fences::of_the_instance, "not of the instance");
  expect_reported(
      space, [&] { space.fence("kindex::test"); }, Fences::none,
      "not asynchronous");
  expect_reported(
      space,
      [] {
        Kokkos::Profiling::pushRegion("mine");
        Kokkos::Profiling::popRegion();
      },
      Fences::none, "no label of kindex");
  const View a(
      Kokkos::view_alloc(std::string("test::a"), Kokkos::WithoutInitializing),
      10);
  const View b(
      Kokkos::view_alloc(std::string("test::b"), Kokkos::WithoutInitializing),
      10);
  expect_reported(
      space, [&] { Kokkos::deep_copy(a, b); }, Fences::of_the_instance,
      "not of the instance");

  Recorder recorder;
  Kokkos::parallel_for("kindex::test", Policy(space, 0, 10), nothing);
  EXPECT_EQ(joined(violations(recorder.stop(), id_of(space), Fences::none)),
            "");
}

}  // namespace
}  // namespace kindex_test
