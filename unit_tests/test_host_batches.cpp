// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Batches in host memory, and the pipeline that they go through: the answers
// are those of std::, whatever the buckets, and nothing is left behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <kindex/PivotTree.hpp>
#include <kindex/SortedArray.hpp>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/Errors.hpp"
#include "support/HostViews.hpp"
#include "support/Keys.hpp"
#include "support/Queries.hpp"
#include "support/Recorder.hpp"

namespace kindex_test {
namespace {

using kindex::HostBatches;
using kindex::LookupPolicy;
using kindex::PipelineOptions;
using kindex::Reordering;
using kindex::SoA;
using kindex::query::Bucket;
using kindex::query::HybridPipeline;
using kindex::query::PipelineBatch;

template <class View>
bool is_untouched(const View& view) {
  using T = typename View::non_const_value_type;
  T fill;
  std::memset(static_cast<void*>(&fill), 0xA5, sizeof fill);
  const auto elements = elements_of(view);
  return std::all_of(elements.begin(), elements.end(),
                     [&](const T& e) { return e == fill; });
}

/// Keys, queries and what std:: answers. `hi` are the ends of ranges from
/// `queries`.
template <class Key>
struct Batch {
  std::vector<Key> keys, queries, hi;
  std::vector<std::uint32_t> found;
  std::vector<unsigned char> contained;
  std::vector<std::int32_t> lower;
  Ranks upper, counts, range_counts, offsets{0};
  std::vector<std::uint32_t> hits;
  std::vector<Key> hit_keys;

  Batch(int n, int m) {
    std::mt19937 rng(static_cast<unsigned>(31 * n + m));
    const auto draw = [&] {
      return Keys<Key>::of(static_cast<int>(rng() % (2 * n + 3)));
    };
    for (int i = 0; i < n; ++i) keys.push_back(draw());
    std::sort(keys.begin(), keys.end());
    for (int i = 0; i < m; ++i) {
      const int from = static_cast<int>(rng() % (2 * n + 3));
      queries.push_back(Keys<Key>::of(from));
      hi.push_back(Keys<Key>::of(from + static_cast<int>(rng() % 7) - 2));
    }
    for (int i = 0; i < m; ++i) {
      const auto begin = keys.begin();
      const auto [first, last] =
          std::equal_range(begin, keys.end(), queries[i]);
      const auto end = std::upper_bound(begin, keys.end(), hi[i]);
      lower.push_back(static_cast<std::int32_t>(first - begin));
      upper.push_back(last - begin);
      counts.push_back(last - first);
      contained.push_back(first != last);
      found.push_back(first == last
                          ? ~std::uint32_t{0}
                          : static_cast<std::uint32_t>(first - begin));
      for (auto hit = first; hit < end; ++hit) {
        hits.push_back(static_cast<std::uint32_t>(hit - begin));
        hit_keys.push_back(*hit);
      }
      range_counts.push_back(end > first ? end - first : 0);
      offsets.push_back(hits.size());
    }
  }
};

/// Sums the values of the hits of each range.
template <class Exec>
struct SumHits {
  DeviceView<std::uint64_t, Exec> sums;
  template <class Key>
  KOKKOS_FUNCTION void operator()(size_type q, Key, std::uint32_t value) const {
    Kokkos::atomic_add(&sums(q), std::uint64_t{value} + 1);
  }
};

/// `place`: HostBatches, or an instance of Exec.
template <template <class> class View, class Exec, class Place, class Index,
          class Key>
void expect_point_answers(const Place& place, const Index& index,
                          const Batch<Key>& batch) {
  const std::size_t m = batch.queries.size();
  const auto queries = host_input<View<Key>>(batch.queries);
  const View<const Key> constant = queries;
  const auto found = host_output<View<std::uint32_t>>(m);
  index.find(place, constant, found);
  EXPECT_TRUE(elements_of(found) == batch.found) << "find";
  index.find(place, queries, found, 77);
  for (std::size_t i = 0; i < m; ++i)
    ASSERT_EQ(found(i), batch.contained[i] ? batch.found[i] : 77u);
  const auto contained = host_output<View<unsigned char>>(m);
  index.contains(place, constant, contained);
  EXPECT_TRUE(elements_of(contained) == batch.contained) << "contains";
  const auto lower = host_output<View<std::int32_t>>(m);
  index.lower_bound(place, constant, lower);
  EXPECT_TRUE(elements_of(lower) == batch.lower) << "lower_bound";
  const auto upper = host_output<View<size_type>>(m);
  index.upper_bound(place, queries, upper);
  EXPECT_TRUE(elements_of(upper) == batch.upper) << "upper_bound";
  EXPECT_TRUE(elements_of(queries) == batch.queries) << "queries were written";
}

template <template <class> class View, class Exec, class Place, class Index,
          class Key>
void expect_range_answers(const Place& place, const Index& index,
                          const Batch<Key>& batch) {
  const std::size_t m = batch.queries.size();
  const auto lo = host_input<View<Key>>(batch.queries);
  const View<const Key> hi = host_input<View<Key>>(batch.hi);
  // Results of different sizes, the larger one first and last.
  const auto narrow = host_output<View<std::int32_t>>(m);
  const auto wide = host_output<View<size_type>>(m);
  index.equal_range(place, lo, narrow, wide);
  EXPECT_TRUE(elements_of(narrow) == batch.lower) << "equal_range";
  EXPECT_TRUE(elements_of(wide) == batch.upper) << "equal_range";
  index.equal_range(place, lo, wide, narrow);
  EXPECT_TRUE(elements_of(wide) ==
              Ranks(batch.lower.begin(), batch.lower.end()))
      << "equal_range";
  EXPECT_TRUE(Ranks(elements_of(narrow).size()) == Ranks(m));
  for (std::size_t i = 0; i < m; ++i)
    ASSERT_EQ(static_cast<size_type>(narrow(i)), batch.upper[i]);
  index.count(place, lo, wide);
  EXPECT_TRUE(elements_of(wide) == batch.counts) << "count";
  index.range_count(place, lo, hi, wide);
  EXPECT_TRUE(elements_of(wide) == batch.range_counts) << "range_count";

  auto hits = index.range(place, lo, hi, kindex::with_keys);
  static_assert(std::is_same_v<typename decltype(hits.values)::memory_space,
                               typename Exec::memory_space>);
  EXPECT_TRUE(to_host(hits.offsets) == batch.offsets) << "range";
  EXPECT_TRUE(to_host(hits.values) == batch.hits) << "range";
  EXPECT_TRUE(to_host(hits.keys) == batch.hit_keys) << "range";
  index.range(place, lo, hi, hits);
  EXPECT_TRUE(to_host(hits.offsets) == batch.offsets) << "range again";
  EXPECT_TRUE(to_host(hits.values) == batch.hits) << "range again";

  const DeviceView<std::uint64_t, Exec> sums("test::sums", m);
  Kokkos::fence("test::sums");
  index.for_each_in_range(place, lo, hi, SumHits<Exec>{sums});
  std::vector<std::uint64_t> expected(m, 0);
  for (std::size_t i = 0; i < m; ++i)
    for (size_type h = batch.offsets[i]; h < batch.offsets[i + 1]; ++h)
      expected[i] += batch.hits[h] + 1;
  EXPECT_TRUE(to_host(sums) == expected) << "for_each_in_range";
}

template <class Exec, class Index>
void expect_answers_in_all_buckets() {
  using Key = typename Index::key_type;
  const Exec space;
  struct Case {
    size_type bucket;
    std::vector<int> queries;
  };
  for (const auto& [bucket, queries] :
       {Case{1, {0, 1, 50}}, Case{7, {0, 3, 7, 700}}, Case{64, {63, 1000}},
        Case{16384, {16384, 40003}}, Case{0, {5, 1000}}})
    for (const int buffers : {1, 2, 3, 4}) {
      const HostBatches batches(
          space,
          PipelineOptions().set_bucket_size(bucket).set_buffers(buffers));
      for (const int m : queries) {
        SCOPED_TRACE(std::string(Index::name()) + ", bucket " +
                     std::to_string(bucket) + ", " + std::to_string(buffers) +
                     " buffers, " + std::to_string(m) + " queries");
        const Batch<Key> batch(1000, m);
        const Index index(space, kindex::sorted, to_device<Exec>(batch.keys));
        expect_point_answers<HostView, Exec>(batches, index, batch);
        expect_range_answers<HostView, Exec>(batches, index, batch);
      }
    }
}

template <class Exec>
class HostBatch : public ::testing::Test {
 public:
  using Memory = typename Exec::memory_space;
};
TYPED_TEST_SUITE(HostBatch, Devices, DeviceName);

TYPED_TEST(HostBatch, AnswersOfSortedArray) {
  using M = typename TestFixture::Memory;
  expect_answers_in_all_buckets<
      TypeParam, kindex::SortedArray<std::uint32_t, std::uint32_t, M, SoA>>();
}

TYPED_TEST(HostBatch, AnswersOfPivotTree) {
  using M = typename TestFixture::Memory;
  expect_answers_in_all_buckets<
      TypeParam, kindex::PivotTree<std::uint64_t, std::uint32_t, M>>();
}

TYPED_TEST(HostBatch, AnswersOfWideKeysInStridedViews) {
  using Exec = TypeParam;
  using M = typename TestFixture::Memory;
  using Index = kindex::SortedArray<kindex::Key128, std::uint32_t, M, SoA>;
  const Exec space;
  // Large enough for copies by many threads.
  for (const int m : {1000, 20000}) {
    const Batch<kindex::Key128> batch(3000, m);
    const Index index(space, kindex::sorted, to_device<Exec>(batch.keys));
    const HostBatches batches(space, PipelineOptions().set_bucket_size(9000));
    expect_point_answers<StridedView, Exec>(batches, index, batch);
    expect_range_answers<StridedView, Exec>(batches, index, batch);
  }
}

/// The device copies them itself.
TYPED_TEST(HostBatch, AnswersInPageLockedViews) {
  using Exec = TypeParam;
  using M = typename TestFixture::Memory;
  using Index = kindex::PivotTree<std::uint64_t, std::uint32_t, M>;
  const Exec space;
  const Batch<std::uint64_t> batch(1000, 5000);
  const Index index(space, kindex::sorted, to_device<Exec>(batch.keys));
  for (const size_type bucket : {1, 700, 5000}) {
    const HostBatches batches(space, PipelineOptions().set_bucket_size(bucket));
    expect_point_answers<PinnedView, Exec>(batches, index, batch);
    expect_range_answers<PinnedView, Exec>(batches, index, batch);
  }
}

/// Without HostBatches: on GPUs through the pool, on hosts as ever.
TYPED_TEST(HostBatch, AnswersWithoutHostBatches) {
  using Exec = TypeParam;
  using M = typename TestFixture::Memory;
  using Index = kindex::PivotTree<std::uint64_t, std::uint32_t, M>;
  const Exec space;
  for (const int m : {0, 1, 1000, 300000}) {
    const Batch<std::uint64_t> batch(1000, m);
    const Index index(space, kindex::sorted, to_device<Exec>(batch.keys));
    expect_point_answers<HostView, Exec>(space, index, batch);
    expect_range_answers<HostView, Exec>(space, index, batch);
    if constexpr (kindex::query::DeviceTraits<Exec>::is_gpu) {
      EXPECT_EQ(kindex::query::impl::PipelinePool<Exec>::size(), 1u);
    }
  }
  const Batch<std::uint64_t> batch(1000, 5000);
  const Index index(space, kindex::sorted, to_device<Exec>(batch.keys));
  expect_point_answers<StridedView, Exec>(space, index, batch);
  expect_range_answers<StridedView, Exec>(space, index, batch);
}

TYPED_TEST(HostBatch, QueriesOfAnotherType) {
  using Exec = TypeParam;
  const Exec space;
  const auto keys = to_device<Exec>(std::vector<std::uint32_t>{1, 5, 5, 9});
  const kindex::SortedArray index(space, kindex::sorted, keys);
  const HostBatches batches(space, PipelineOptions().set_bucket_size(2));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto queries = host_input<HostView<double>>(
      std::vector<double>{-1, 1, 4.5, 5, 1e20, nan, 9});
  const auto ranks = host_output<HostView<int>>(7);
  index.lower_bound(batches, queries, ranks);
  EXPECT_EQ(elements_of(ranks), (std::vector<int>{0, 0, 1, 1, 4, 4, 3}));
  const auto rows = host_output<HostView<std::int64_t>>(7);
  index.find(batches, queries, rows, 100);
  EXPECT_EQ(elements_of(rows),
            (std::vector<std::int64_t>{100, 0, 100, 1, 100, 100, 3}));
}

TYPED_TEST(HostBatch, PoliciesApplyToEachBucket) {
  using Exec = TypeParam;
  const Exec space;
  const Batch<std::uint32_t> batch(30000, 10000);
  const kindex::SortedArray index(space, kindex::sorted,
                                  to_device<Exec>(batch.keys));
  const HostBatches batches(space, PipelineOptions().set_bucket_size(3000));
  const auto queries = host_input<HostView<std::uint32_t>>(batch.queries);
  const auto expect = [&](const auto& policy, const char* what) {
    const auto found = host_output<HostView<std::uint32_t>>(10000);
    index.find(batches, queries, found, policy);
    EXPECT_TRUE(elements_of(found) == batch.found) << what;
  };
  expect(kindex::BasicLookupPolicy<kindex::PinnedTop>().set_pinned_steps(3),
         "pinned");
  const auto partitioned =
      LookupPolicy().set_reordering(Reordering::partitioned);
  expect(partitioned, "partitioned in memory of its own");
  const size_type bytes = index.workspace_bytes(3000, partitioned);
  const DeviceView<std::byte, Exec> workspace("test::workspace", 4 * bytes);
  const auto with = [&](LookupPolicy policy, size_type size) {
    return policy.set_workspace(Kokkos::subview(
        workspace, Kokkos::pair<size_type, size_type>(0, size)));
  };
  // Room for one bucket at a time, for two, for more than are in flight.
  for (const size_type size : {bytes, 2 * bytes + 100, 4 * bytes})
    expect(with(partitioned, size), "partitioned in a workspace");
  // All that the whole batch needs is enough for its buckets, too.
  ASSERT_LT(index.workspace_bytes(10000, partitioned), 4 * bytes);
  expect(with(partitioned, index.workspace_bytes(10000, partitioned)),
         "partitioned in a workspace for the whole");
  expect(with(LookupPolicy(), 4 * bytes), "automatic");

  const auto found = host_output<HostView<std::uint32_t>>(10000);
  try {
    index.find(batches, queries, found, with(partitioned, bytes / 2));
    ADD_FAILURE() << "a workspace that is too small was taken";
  } catch (const kindex::Error& error) {
    EXPECT_NE(std::string(error.what()).find(std::to_string(bytes / 2)),
              std::string::npos)
        << error.what();
  }
  EXPECT_TRUE(is_untouched(found));
  expect(LookupPolicy(), "after an error");
}

template <class Exec>
struct IgnoreHits {
  template <class Key, class Value>
  KOKKOS_FUNCTION void operator()(size_type, Key, Value) const {}
};

TYPED_TEST(HostBatch, ErrorsLeaveResultsUntouched) {
  using Exec = TypeParam;
  const Exec space;
  const kindex::SortedArray index(space,
                                  to_device<Exec>(std::vector<int>(300, 7)));
  const auto check = [&](const auto& place) {
    const auto queries = host_input<HostView<int>>(std::vector<int>(21, 1));
    const auto fewer = host_input<HostView<int>>(std::vector<int>(20, 1));
    const auto right = host_output<HostView<size_type>>(21);
    const auto wrong = host_output<HostView<size_type>>(23);
    const auto narrow = host_output<HostView<std::uint8_t>>(21);
    expect_error([&] { index.find(place, queries, wrong); },
                 {"kindex::find", "21", "23"});
    expect_error([&] { index.contains(place, queries, wrong); },
                 {"kindex::contains", "21", "23"});
    expect_error([&] { index.lower_bound(place, queries, wrong); },
                 {"kindex::lower_bound", "21", "23"});
    expect_error([&] { index.upper_bound(place, queries, narrow); },
                 {"kindex::upper_bound", "300"});
    expect_error([&] { index.equal_range(place, queries, right, wrong); },
                 {"kindex::equal_range", "last", "21", "23"});
    expect_error([&] { index.equal_range(place, queries, right, narrow); },
                 {"kindex::equal_range", "last", "300"});
    expect_error([&] { index.count(place, queries, narrow); },
                 {"kindex::count", "300"});
    expect_error([&] { index.range_count(place, queries, fewer, right); },
                 {"kindex::range_count", "21", "20"});
    expect_error([&] { index.range(place, queries, fewer); },
                 {"kindex::range", "21", "20"});
    auto hits = index.range(place, fewer, fewer);
    expect_error([&] { index.range(place, queries, fewer, hits); },
                 {"kindex::range", "21", "20"});
    EXPECT_EQ(hits.offsets.extent(0), 21u);
    expect_error(
        [&] {
          index.for_each_in_range(place, queries, fewer, IgnoreHits<Exec>{});
        },
        {"kindex::for_each_in_range", "21", "20"});
    EXPECT_TRUE(is_untouched(right));
    EXPECT_TRUE(is_untouched(wrong));
    EXPECT_TRUE(is_untouched(narrow));
  };
  check(HostBatches(space));
  check(space);
}

// ---- the pipeline itself ----------------------------------------------------

/// Doubles numbers; each thread takes a while.
struct SlowDouble {
  const std::uint32_t* in;
  std::uint32_t* out;
  std::uint64_t* sink;  ///< so that waiting is not optimised away
  int rounds;
  KOKKOS_FUNCTION void operator()(std::uint64_t i) const {
    std::uint64_t x = i + 1;
    for (int r = 0; r < rounds; ++r) x = x * 6364136223846793005u + 1;
    if (x == 0) *sink = x;
    out[i] = 2 * in[i];
  }
};

template <class Exec>
void launch_slow_double(const Exec& space, const std::uint32_t* in,
                        std::uint32_t* out, std::uint64_t* sink,
                        std::uint64_t count, int rounds) {
  Kokkos::parallel_for(
      "kindex::test::slow_double",
      Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::uint64_t>>(space, 0,
                                                                  count),
      SlowDouble{in, out, sink, rounds});
}

/// Doubles numbers in a pipeline and records what it does.
template <class Exec>
struct Doubling {
  HybridPipeline<Exec> pipeline;
  DeviceView<std::uint64_t, Exec> sink{"test::sink", 1};
  int rounds = kindex::query::DeviceTraits<Exec>::is_gpu ? 200000 : 100;
  std::vector<std::string> calls;
  std::string throws_at;  ///< as in `calls`
  std::chrono::milliseconds finish_takes{0};

  explicit Doubling(const PipelineOptions& options) : pipeline(options) {}

  void note(const char* stage, const Bucket& bucket) {
    calls.push_back(stage + std::to_string(bucket.begin));
    if (calls.back() == throws_at) throw std::runtime_error(throws_at);
  }

  void run(const Exec& space, const std::uint32_t* in, std::uint32_t* out,
           size_type queries) {
    calls.clear();
    pipeline.run(
        space,
        PipelineBatch{queries, sizeof(std::uint32_t), sizeof(std::uint32_t)},
        [&](const Bucket& bucket, std::byte* staging) {
          note("fill ", bucket);
          std::memcpy(staging, in + bucket.begin, 4 * bucket.count);
        },
        [&](const Exec& instance, const Bucket& bucket,
            const std::byte* device_in, std::byte* device_out) {
          launch_slow_double(instance,
                             reinterpret_cast<const std::uint32_t*>(device_in),
                             reinterpret_cast<std::uint32_t*>(device_out),
                             sink.data(), bucket.count, rounds);
          note("search ", bucket);
        },
        [&](const Bucket& bucket, const std::byte* staging) {
          note("finish ", bucket);
          std::this_thread::sleep_for(finish_takes);
          std::memcpy(out + bucket.begin, staging, 4 * bucket.count);
        });
  }
};

std::vector<std::uint32_t> numbers(std::size_t m) {
  std::vector<std::uint32_t> all(m);
  std::iota(all.begin(), all.end(), 5u);
  return all;
}

std::vector<std::uint32_t> doubled(std::vector<std::uint32_t> all) {
  for (auto& number : all) number *= 2;
  return all;
}

TYPED_TEST(HostBatch, SourcesAndTargetsNeedNoHost) {
  using Exec = TypeParam;
  const auto in = host_input<PinnedView<std::uint32_t>>(numbers(1000));
  const auto out = host_output<PinnedView<std::uint32_t>>(1000);
  EXPECT_TRUE(kindex::query::is_copied_directly<Exec>(in.data(), 4000));
  const HostView<std::uint32_t> pageable("test::pageable", 1000);
  EXPECT_NE(kindex::query::is_copied_directly<Exec>(pageable.data(), 4000),
            kindex::query::DeviceTraits<Exec>::is_gpu);
  HybridPipeline<Exec> pipeline(PipelineOptions().set_bucket_size(300));
  PipelineBatch batch{1000, 4, 4};
  batch.source = reinterpret_cast<const std::byte*>(in.data());
  batch.target = reinterpret_cast<std::byte*>(out.data());
  pipeline.run(
      Exec{}, batch, [](const Bucket&, std::byte*) { ADD_FAILURE() << "fill"; },
      [](const Exec& instance, const Bucket& bucket, const std::byte* from,
         std::byte* to) {
        launch_slow_double(
            instance, reinterpret_cast<const std::uint32_t*>(from),
            reinterpret_cast<std::uint32_t*>(to), nullptr, bucket.count, 10);
      },
      [](const Bucket&, const std::byte*) { ADD_FAILURE() << "finish"; });
  EXPECT_EQ(elements_of(out), doubled(numbers(1000)));
}

TYPED_TEST(HostBatch, StagesOfTheBucketsOverlap) {
  const auto in = numbers(10);
  for (const int buffers : {1, 2, 3, 4}) {
    Doubling<TypeParam> doubling(
        PipelineOptions().set_bucket_size(3).set_buffers(buffers));
    std::vector<std::uint32_t> out(10, 0);
    doubling.run(TypeParam{}, in.data(), out.data(), 10);
    EXPECT_EQ(out, doubled(in));
    std::vector<std::string> expected;
    for (int i = 0; i < 4 + buffers; ++i) {
      if (i >= buffers)
        expected.push_back("finish " + std::to_string(3 * (i - buffers)));
      if (i < 4) expected.push_back("fill " + std::to_string(3 * i));
      if (i < 4) expected.push_back("search " + std::to_string(3 * i));
    }
    EXPECT_EQ(doubling.calls, expected) << buffers << " buffers";
    doubling.run(TypeParam{}, in.data(), out.data(), 0);
    EXPECT_TRUE(doubling.calls.empty()) << "an empty batch";
  }
}

TYPED_TEST(HostBatch, BucketsAreChosenByWhoRunsThePipeline) {
  const HybridPipeline<TypeParam> pipeline;
  PipelineBatch batch{100000, 4, 4};
  EXPECT_EQ(pipeline.bucket_size(batch), 16384u);
  batch.bucket_size = 50000;
  EXPECT_EQ(pipeline.bucket_size(batch), 50000u);
  EXPECT_EQ(pipeline.buffers(batch), 2);
  batch.queries = 40;
  EXPECT_EQ(pipeline.bucket_size(batch), 40u);
  EXPECT_EQ(pipeline.buffers(batch), 1);
  const HybridPipeline<TypeParam> seven(PipelineOptions().set_bucket_size(7));
  EXPECT_EQ(seven.bucket_size(batch), 7u);
  EXPECT_EQ(seven.buffers(batch), 3);
  batch.buffers = 2;
  EXPECT_EQ(seven.buffers(batch), 2);
  const HybridPipeline<TypeParam> four(
      PipelineOptions().set_bucket_size(7).set_buffers(4));
  EXPECT_EQ(four.buffers(batch), 4);
  batch.most_buffers = 1;
  EXPECT_EQ(four.buffers(batch), 1);
  expect_error([] { PipelineOptions().set_buffers(-1); }, {"buffers", "-1"});
  expect_error([] { PipelineOptions().set_buffers(5); }, {"buffers", "5"});
  using kindex::query::impl::host_bucket_size;
  EXPECT_EQ(host_bucket_size(size_type{1} << 30, 8), 1u << 21);
  EXPECT_EQ(host_bucket_size(size_type{1} << 30, 24), 1u << 20);
  EXPECT_EQ(host_bucket_size(size_type{1} << 30, 4096), 1u << 16);
  EXPECT_EQ(host_bucket_size(1000, 8), 1u << 16);
}

/// What the caller owns may be overwritten when the call has returned: nothing
/// reads or writes it any more.
TYPED_TEST(HostBatch, NothingIsInFlightAfterTheCall) {
  using Exec = TypeParam;
  for (const int buffers : {1, 2, 3, 4}) {
    Doubling<Exec> doubling(
        PipelineOptions().set_bucket_size(64).set_buffers(buffers));
    doubling.finish_takes = std::chrono::milliseconds(2);
    auto in = std::make_unique<std::vector<std::uint32_t>>(numbers(1000));
    auto out = std::make_unique<std::vector<std::uint32_t>>(1000, 0u);
    doubling.run(Exec{}, in->data(), out->data(), 1000);
    const auto results = *out;
    in->assign(1000, 0u);
    out->assign(1000, 0xA5A5A5A5u);
    Kokkos::fence("test::late_work");
    EXPECT_EQ(results, doubled(numbers(1000)));
    EXPECT_EQ(*out, std::vector<std::uint32_t>(1000, 0xA5A5A5A5u));
    // Sixteen buckets, each of which took that long at least.
    const auto latency = doubling.pipeline.latency();
    EXPECT_EQ(latency.buckets, 16u);
    EXPECT_GE(latency.mean_seconds, 0.002);
    EXPECT_GE(latency.longest_seconds, latency.mean_seconds);
    in.reset();
    out.reset();
    Kokkos::fence("test::late_work");
  }
  // The same of a verb.
  const Exec space;
  const Batch<std::uint32_t> batch(30000, 20000);
  const kindex::SortedArray index(space, kindex::sorted,
                                  to_device<Exec>(batch.keys));
  const HostBatches batches(space, PipelineOptions().set_bucket_size(5000));
  const auto expect_done = [&](const auto& queries, const auto& found) {
    const auto before = elements_of(found);  // as host_output leaves it
    index.find(batches, queries, found);
    const auto results = elements_of(found);
    std::memset(queries.data(), 0, 4 * queries.extent(0));
    std::memset(found.data(), 0xA5, 4 * found.extent(0));
    Kokkos::fence("test::late_work");
    EXPECT_TRUE(results == batch.found);
    EXPECT_TRUE(elements_of(found) == before);
  };
  expect_done(host_input<HostView<std::uint32_t>>(batch.queries),
              host_output<HostView<std::uint32_t>>(20000));
  // And where the device copies from there and to there.
  expect_done(host_input<PinnedView<std::uint32_t>>(batch.queries),
              host_output<PinnedView<std::uint32_t>>(20000));
}

TYPED_TEST(HostBatch, ExceptionsLeaveAUsablePipeline) {
  const auto in = numbers(1000);
  for (const int buffers : {1, 2, 3, 4}) {
    Doubling<TypeParam> doubling(
        PipelineOptions().set_bucket_size(100).set_buffers(buffers));
    for (const char* stage :
         {"fill 0", "fill 300", "fill 900", "search 0", "search 500",
          "finish 0", "finish 400", "finish 900"}) {
      SCOPED_TRACE(stage);
      std::vector<std::uint32_t> out(1000, 0);
      doubling.throws_at = stage;
      try {
        doubling.run(TypeParam{}, in.data(), out.data(), 1000);
        ADD_FAILURE() << "the exception was lost";
      } catch (const std::runtime_error& error) {
        EXPECT_STREQ(error.what(), stage);
      }
      EXPECT_EQ(doubling.calls.back(), stage) << "a call after the exception";
      doubling.throws_at.clear();
      doubling.run(TypeParam{}, in.data(), out.data(), 1000);
      EXPECT_EQ(out, doubled(in));
    }
  }
}

/// Queries that earlier work on the instance is still writing.
TYPED_TEST(HostBatch, ComesAfterEarlierWorkOnTheInstance) {
  using Exec = TypeParam;
  using Staging = typename HybridPipeline<Exec>::staging_space;
  const Exec space = distinct_instances<Exec>(2)[1];
  const std::size_t m = 5000;
  const auto keys = doubled(numbers(m));
  const kindex::SortedArray index(space, kindex::sorted, to_device<Exec>(keys));
  const auto source = to_device<Exec>(numbers(m));
  const auto target = filled<std::uint32_t, Exec>(m);
  const Kokkos::View<std::uint32_t*, Staging> queries("test::queries", m);
  const auto ranks = host_output<HostView<size_type>>(m);
  const DeviceView<std::uint64_t, Exec> sink("test::sink", 1);
  const HostBatches batches(space, PipelineOptions().set_bucket_size(600));
  Kokkos::fence("test::setup");
  launch_slow_double(space, source.data(), target.data(), sink.data(), m,
                     kindex::query::DeviceTraits<Exec>::is_gpu ? 3000000 : 100);
  Kokkos::deep_copy(space, queries, target);
  index.lower_bound(batches, queries, ranks);
  for (std::size_t i = 0; i < m; ++i) ASSERT_EQ(ranks(i), i);
}

TYPED_TEST(HostBatch, TwoThreadsAtOnce) {
  using Exec = TypeParam;
  using Pool = kindex::query::impl::PipelinePool<Exec>;
  using Index = kindex::SortedArray<std::uint32_t, std::uint32_t,
                                    typename TestFixture::Memory, SoA>;
  const Batch<std::uint32_t> batch(1000, 30000);
  const Index index(Exec{}, kindex::sorted, to_device<Exec>(batch.keys));
  const auto instances = distinct_instances<Exec>(2);
  // Each with a pipeline of its own while the other has one, too.
  std::atomic<int> arrived{0};
  std::atomic<int> wrong{0};
  const void* pipelines[2] = {};
  const auto double_numbers = [&](int thread) {
    const auto lease = Pool::take(instances[thread]);
    pipelines[thread] = &lease.pipeline();
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
    const auto in = numbers(2000);
    std::vector<std::uint32_t> out(2000);
    lease.pipeline().run(
        instances[thread], PipelineBatch{2000, 4, 4, 128},
        [&](const Bucket& bucket, std::byte* staging) {
          std::memcpy(staging, in.data() + bucket.begin, 4 * bucket.count);
        },
        [&](const Exec& instance, const Bucket& bucket,
            const std::byte* device_in, std::byte* device_out) {
          launch_slow_double(instance,
                             reinterpret_cast<const std::uint32_t*>(device_in),
                             reinterpret_cast<std::uint32_t*>(device_out),
                             nullptr, bucket.count, 10);
        },
        [&](const Bucket& bucket, const std::byte* staging) {
          std::memcpy(out.data() + bucket.begin, staging, 4 * bucket.count);
        });
    if (out != doubled(in)) ++wrong;
  };
  const auto work = [&](int thread) {
    double_numbers(thread);
    // The implicit path of GPUs, and the direct one of hosts.
    const HostView<std::uint32_t> queries("test::queries", 30000);
    const HostView<std::uint32_t> found("test::found", 30000);
    std::copy(batch.queries.begin(), batch.queries.end(), queries.data());
    for (int i = 0; i < 10; ++i) {
      index.find(instances[thread], queries, found);
      instances[thread].fence("test::find");
      if (elements_of(found) != batch.found) ++wrong;
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_NE(pipelines[0], pipelines[1]);
  EXPECT_EQ(Pool::size(), 2u);
  { const auto lease = Pool::take(instances[0]); }
  EXPECT_EQ(Pool::size(), 2u) << "pipelines are used again";

  // HostBatches that two threads share serve one after the other.
  const HostBatches batches(instances[0],
                            PipelineOptions().set_bucket_size(1000));
  const auto share = [&] {
    const auto queries = host_input<HostView<std::uint32_t>>(batch.queries);
    const auto found = host_output<HostView<std::uint32_t>>(30000);
    for (int i = 0; i < 5; ++i) {
      index.find(batches, queries, found);
      if (elements_of(found) != batch.found) ++wrong;
    }
  };
  std::thread third(share);
  share();
  third.join();
  EXPECT_EQ(wrong, 0);
}

/// The ids of fences of all instances.
std::set<std::uint32_t> ids_of_global_fences() {
  Recorder recorder;
  Kokkos::fence("test::global");
  std::set<std::uint32_t> ids;
  for (const auto& event : recorder.stop()) ids.insert(event.device);
  return ids;
}

/// What no call may do once it has memory.
std::string offences(const std::vector<Event>& events,
                     const std::set<std::uint32_t>& global) {
  std::string found;
  for (const auto& event : events) {
    if (event.kind == Event::fence && global.count(event.device) > 0)
      found += "of all instances: " + event.text() + "\n";
    if ((event.kind == Event::fence || event.kind == Event::kernel) &&
        event.label.rfind("kindex::", 0) != 0 &&
        event.label.rfind("Kokkos::", 0) != 0)
      found += "no label of kindex: " + event.text() + "\n";
    if (event.kind == Event::deallocation &&
        event.label.rfind("Kokkos::", 0) != 0)
      found += "memory was freed: " + event.text() + "\n";
  }
  return found;
}

TYPED_TEST(HostBatch, NoGlobalFenceAndNoAllocationAgain) {
  using Exec = TypeParam;
  const auto global = ids_of_global_fences();
  ASSERT_FALSE(global.empty());
  const Exec space = distinct_instances<Exec>(2)[1];
  const Batch<std::uint32_t> batch(1000, 100000);
  const kindex::SortedArray index(space, kindex::sorted,
                                  to_device<Exec>(batch.keys));
  const HostBatches batches(space, PipelineOptions().set_bucket_size(30000));
  const auto queries = host_input<HostView<std::uint32_t>>(batch.queries);
  const auto ends = host_input<HostView<std::uint32_t>>(batch.hi);
  const auto found = host_output<HostView<std::uint32_t>>(100000);
  const auto first = host_output<HostView<size_type>>(100000);
  const auto last = host_output<HostView<size_type>>(100000);
  const auto check = [&](const auto& place) {
    Recorder recorder;
    index.find(place, queries, found);
    index.contains(place, queries, found);
    index.lower_bound(place, queries, first);
    index.equal_range(place, queries, first, last);
    index.count(place, queries, first);
    index.range_count(place, queries, ends, first);
    index.for_each_in_range(place, queries, ends, IgnoreHits<Exec>{});
    const auto events = recorder.stop();
    space.fence("test::verbs");
    EXPECT_EQ(offences(events, global), "");
    EXPECT_EQ(joined(allocations(events)), "");
  };
  // The largest buckets first: nothing grows later.
  index.equal_range(batches, queries, first, last);
  EXPECT_GE(batches.pipeline().memory_bytes(), 3u * 30000u * 20u);
  const auto bytes = batches.pipeline().memory_bytes();
  check(batches);
  EXPECT_EQ(batches.pipeline().memory_bytes(), bytes);
  EXPECT_TRUE(elements_of(last) == batch.upper);
  index.equal_range(space, queries, first, last);
  check(space);
  // `range` allocates its hits and no more.
  Recorder recorder;
  const auto hits = index.range(batches, queries, ends);
  const auto events = recorder.stop();
  EXPECT_EQ(allocations(events).size(), 2u) << joined(allocations(events));
  EXPECT_EQ(offences(events, global), "");
  EXPECT_TRUE(to_host(hits.values) == batch.hits);
}

}  // namespace
}  // namespace kindex_test
