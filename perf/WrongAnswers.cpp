// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Proves that kindex_bench notices wrong answers: indexes that err in one place
// must fail, and say where.
#include "BuildCase.hpp"
#include "ChainCase.hpp"
#include "DivisionCase.hpp"
#include "FitCase.hpp"
#include "OnHost.hpp"
#include "PointCase.hpp"
#include "RangeCase.hpp"
#include "UpdateCase.hpp"
#include "baselines/StdLowerBound.hpp"

#include <kindex/BPlusTree.hpp>
#include <kindex/HybridBPlusTree.hpp>
#include <kindex/HybridLearnedIndex.hpp>
#include <kindex/RadixTree.hpp>
#include <kindex/RegularBPlusTree.hpp>
#include <kindex/SortedArray.hpp>

#include <gtest/gtest.h>

namespace kindex::perf {
namespace {

using Key = std::uint64_t;
using Value = std::uint32_t;
using Keys = Kokkos::View<const Key*, Kokkos::HostSpace>;
using Values = Kokkos::View<const Value*, Kokkos::HostSpace>;

/// What goes wrong, of all that could.
enum class Fault {
  none,
  value,          ///< a value of one hit
  missing,        ///< a miss that finds something
  unwritten,      ///< a result is left as it was
  rank,           ///< a rank too high
  count,          ///< a count too low
  range_value,    ///< one value of a range
  range_missing,  ///< a range lacks its last hit
  chain_key,      ///< a wrong ancestor
  chain_length,   ///< a chain lacks its last ancestor
  changed,        ///< a value of a batch of operations
  forgotten,      ///< an operation that does nothing
  disturbed       ///< an operation changes another key's value
};
Fault fault = Fault::none;

/// Right but for the fault, which hits the query in the middle of a batch.
class Erring : public StdLowerBound<Key, Value> {
  using Base = StdLowerBound<Key, Value>;

 public:
  using Base::Base;

  /// Errs for queries of odd keys.
  struct Ref {
    static constexpr int lanes = 1;
    const Base* base;

    Value find(const Key& query) const {
      Value value{};
      base->find(HostExec(),
                 Kokkos::View<const Key*, Kokkos::HostSpace>(&query, 1),
                 Kokkos::View<Value*, Kokkos::HostSpace>(&value, 1));
      return value ^ (fault == Fault::value ? query % 2 : 0);
    }
  };
  Ref ref() const { return {this}; }

  template <class Exec, class Out>
  void find(const Exec& space, const Keys& queries, const Out& out) const {
    const std::uint64_t middle = queries.extent(0) / 2;
    const Value before = out(middle);
    Base::find(space, queries, out);
    if (fault == Fault::value) out(middle) ^= 1;
    if (fault == Fault::unwritten) out(middle) = before;
    if (fault == Fault::missing)
      for (std::uint64_t i = 0; i < queries.extent(0); ++i)
        if (out(i) == ~Value{0}) out(i) = 0;
  }
  template <class Exec, class Ranks>
  void lower_bound(const Exec& space, const Keys& queries,
                   const Ranks& ranks) const {
    Base::lower_bound(space, queries, ranks);
    if (fault == Fault::rank) ++ranks(queries.extent(0) / 2);
  }
  template <class Exec, class Counts>
  void count(const Exec& space, const Keys& queries,
             const Counts& counts) const {
    Base::count(space, queries, counts);
    if (fault == Fault::count) --counts(queries.extent(0) / 2);
  }
  template <class Exec>
  void range(const Exec& space, const Keys& lo, const Keys& hi,
             HostRanges<Value>& hits) const {
    Base::range(space, lo, hi, hits);
    const std::uint64_t last = lo.extent(0);
    if (fault == Fault::range_value) ++hits.values(hits.offsets(last) / 2);
    if (fault == Fault::range_missing) --hits.offsets(last);
  }
};

/// The same for chains and batches of operations.
template <class Stored>
class ErringTree : public RadixTree<Key, Stored, Kokkos::HostSpace> {
  using Base = RadixTree<Key, Stored, Kokkos::HostSpace>;

 public:
  using Base::Base;

  template <class Exec, class Parents, class Lengths>
  void parent_chain(const Exec& space, const Keys& keys, const Parents& parents,
                    const Lengths& lengths) const {
    Base::parent_chain(space, keys, parents, lengths);
    // Of the longest chains, which do not come from keys that are not there.
    std::uint64_t at = 0;
    for (std::uint64_t i = 0; i < keys.extent(0); ++i)
      if (lengths(i) > lengths(at)) at = i;
    if (fault == Fault::chain_key) ++parents(at, lengths(at) / 2);
    if (fault == Fault::chain_length) --lengths(at);
  }

  template <class Exec, class Given>
  void insert(const Exec& space, const Keys& keys, const Given& values) {
    Base::insert(space, keys, spoilt(values));
    disturb(space);
  }
  template <class Exec, class Given>
  void update(const Exec& space, const Keys& keys, const Given& values) {
    if (fault == Fault::forgotten) return;
    Base::update(space, keys, spoilt(values));
    disturb(space);
  }
  template <class Exec>
  void erase(const Exec& space, const Keys& keys) {
    if (fault == Fault::forgotten) return;
    Base::erase(space, keys);
    disturb(space);
  }

 private:
  /// The values, or with two of them changed: insertions are found by the first
  /// of equal keys, updates by the last.
  template <class Given>
  static Values spoilt(const Given& values) {
    const auto spoilt = host_array<Value>("spoilt", values.extent(0));
    Kokkos::deep_copy(spoilt, values);
    if (fault == Fault::changed)
      for (std::uint64_t i : {std::uint64_t{0}, values.extent(0) - 1})
        spoilt(i) += 5000000;
    return spoilt;
  }

  /// Changes the value of the first key.
  template <class Exec>
  void disturb(const Exec& space) {
    if (fault != Fault::disturbed) return;
    const Key first = this->ref().key(0);
    const Value wrong = 5000000;
    Base::update(space, Keys(&first, 1), Values(&wrong, 1));
  }
};

/// What verification says about the fault; "" if it finds nothing.
template <class Verify>
std::string verdict(Fault which, ValueMode mode, const Verify& verify) {
  Session session;
  session.options.queries = 1000;
  session.options.hit_rate = 0.5;
  IndexList<Key, Value, HostExec> list;
  list.add<Erring>("erring");
  const Subject<Key, Value, HostExec> subject{
      session, parse_key_spec("wiki:u64:5000"), mode, list.entries().front()};
  fault = which;
  std::string what;
  try {
    verify(subject);
  } catch (const Error& error) {
    what = error.what();
  }
  fault = Fault::none;
  return what;
}

template <class Result>
std::string point_verdict(Fault which, ValueMode mode, Op op) {
  return verdict(which, mode, [&](const auto& subject) {
    for (Transfers transfers : {Transfers::out, Transfers::in})
      PointRun<Key, Value, Result, HostExec>(subject, {op, 1000, transfers})
          .verify();
  });
}

std::string range_verdict(Fault which, ValueMode mode) {
  return verdict(which, mode, [](const auto& subject) {
    RangeRun<Key, Value, HostExec>(subject, {Op::range, 5, 1000}).verify();
  });
}

std::string chain_verdict(Fault which) {
  return verdict(which, ValueMode::none, [](const auto& subject) {
    ChainRun<ErringTree<Key>, Key, HostExec>(subject, {"erring", 1000})
        .verify();
  });
}

std::string update_verdict(Fault which, Change change) {
  return verdict(which, ValueMode::none, [&](const auto& subject) {
    ResidentUpdates<ErringTree<Value>, Key, HostExec>(subject,
                                                      {"erring", change, 1000})
        .verify();
  });
}

class WrongAnswers : public ::testing::TestWithParam<ValueMode> {};

TEST_P(WrongAnswers, RightOnesPass) {
  EXPECT_EQ(point_verdict<Value>(Fault::none, GetParam(), Op::find), "");
  EXPECT_EQ(
      point_verdict<std::uint32_t>(Fault::none, GetParam(), Op::lower_bound),
      "");
  EXPECT_EQ(point_verdict<std::uint32_t>(Fault::none, GetParam(), Op::count),
            "");
  EXPECT_EQ(range_verdict(Fault::none, GetParam()), "");
}

TEST_P(WrongAnswers, OfFind) {
  for (Fault which : {Fault::value, Fault::missing, Fault::unwritten}) {
    const auto what = point_verdict<Value>(which, GetParam(), Op::find);
    EXPECT_NE(what.find("wrong result: find of key"), std::string::npos)
        << what;
  }
}

TEST_P(WrongAnswers, OfFindInAKernel) {
  EXPECT_EQ(point_verdict<Value>(Fault::none, GetParam(), Op::ref_find), "");
  const auto what =
      point_verdict<Value>(Fault::value, GetParam(), Op::ref_find);
  EXPECT_NE(what.find("wrong result: ref_find of key"), std::string::npos)
      << what;
}

TEST_P(WrongAnswers, OfRanksAndCounts) {
  EXPECT_NE(
      point_verdict<std::uint32_t>(Fault::rank, GetParam(), Op::lower_bound)
          .find("lower_bound of key"),
      std::string::npos);
  EXPECT_NE(point_verdict<std::uint32_t>(Fault::count, GetParam(), Op::count)
                .find("count of key"),
            std::string::npos);
}

TEST_P(WrongAnswers, OfRange) {
  for (Fault which : {Fault::range_value, Fault::range_missing})
    EXPECT_NE(range_verdict(which, GetParam()).find("wrong result: range ["),
              std::string::npos);
}

TEST_P(WrongAnswers, OfABuild) {
  const auto build = [](const auto& subject) { verify_build(subject); };
  EXPECT_EQ(verdict(Fault::none, GetParam(), build), "");
  EXPECT_NE(verdict(Fault::value, GetParam(), build), "");
}

TEST(WrongChains, AreNoticed) {
  EXPECT_EQ(chain_verdict(Fault::none), "");
  for (Fault which : {Fault::chain_key, Fault::chain_length}) {
    const auto what = chain_verdict(which);
    EXPECT_NE(what.find("wrong result: parent_chain of key"), std::string::npos)
        << what;
  }
}

TEST(WrongUpdates, AreNoticed) {
  for (Change change : {Change::values, Change::insert, Change::erase}) {
    EXPECT_EQ(update_verdict(Fault::none, change), "");
    for (Fault which : {Fault::changed, Fault::forgotten, Fault::disturbed}) {
      // Erasures know no values, and insertions are not forgotten.
      if (change == Change::erase && which == Fault::changed) continue;
      if (change == Change::insert && which == Fault::forgotten) continue;
      const auto what = update_verdict(which, change);
      EXPECT_NE(what.find("wrong result: after a batch"), std::string::npos)
          << what;
    }
  }
}

TEST(Hierarchies, ReachTheRootFromEveryKey) {
  const auto all = DataSet<Key>::make(parse_key_spec("wiki:u64:5000"), 1);
  const Hierarchy<Key> hierarchy(all, 1);
  const std::uint64_t size = hierarchy.data.size();
  ASSERT_LT(size, all.size());  // that set has equal keys
  std::uint64_t longest = 0, roots = 0;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    std::uint64_t steps = 0;
    hierarchy.for_each_parent(rank, [&](std::uint32_t) { return ++steps < 9; });
    longest = std::max(longest, steps);
    roots += steps == 0;
    EXPECT_EQ(hierarchy.parent_keys(rank),
              hierarchy.data.sorted(hierarchy.parents(rank)));
  }
  EXPECT_EQ(roots, 1u);
  EXPECT_EQ(longest, 4u);  // 1 + 10 + 100 + 1000 keys are above the others
  EXPECT_EQ(longest, hierarchy.height);
}

TEST(Transfers, InBucketsAreVerified) {
  Session session;
  session.options.queries = 70000;
  session.options.hit_rate = 0.5;
  IndexList<Key, Value, HostExec> list;
  list.add<SortedArray<Key, Value, Kokkos::HostSpace>>("sorted_array");
  list.add<Erring>("erring");
  ASSERT_TRUE(list.entries()[0].takes_host_batches);
  ASSERT_FALSE(list.entries()[1].takes_host_batches);
  const Subject<Key, Value, HostExec> subject{
      session, parse_key_spec("wiki:u64:5000"), ValueMode::u32,
      list.entries()[0]};
  for (const Transfers how : {Transfers::overlapped, Transfers::direct})
    for (std::uint64_t bucket_size : {0, 300}) {
      PointCase point{Op::find, 70000, how, {bucket_size}};
      PointRun<Key, Value, Value, HostExec>(subject, point).verify();
      point.op = Op::lower_bound;
      PointRun<Key, Value, std::uint32_t, HostExec>(subject, point).verify();
    }
  EXPECT_EQ(point_name(subject, {Op::find, 9, Transfers::overlapped, {300}}),
            std::string("find/sorted_array/u64/") + HostExec::name() +
                "/n:5000/keys:wiki/values:u32/hit:0.5/q:9/order:random"
                "/transfers:overlapped/bucket:300");
}

/// Hybrid indexes whose device is the host, as kindex_bench has them on GPUs.
IndexList<Key, Value, HostExec> hybrids() {
  using Memory = Kokkos::HostSpace;
  IndexList<Key, Value, HostExec> list;
  list.add<OnHost<HybridBPlusTree<Key, Value, Memory>>>("hybrid_b_plus_tree");
  list.add<OnHost<RegularBPlusTree<Key, Value, Memory, query::Hybrid>>>(
      "regular_b_plus_tree");
  list.add<OnHost<HybridLearnedIndex<Key, Value, Memory>>>(
      "hybrid_learned_index");
  return list;
}

TEST(Hybrids, HaveRangesInHostMemory) {
  const auto list = hybrids();
  for (const auto& entry : list.entries())
    for (const ValueMode mode : {ValueMode::none, ValueMode::u32}) {
      Session session;
      EXPECT_TRUE(entry.takes_no_others && entry.takes_host_ranges);
      EXPECT_TRUE(entry.supports(Op::range, mode));
      const Subject<Key, Value, HostExec> subject{
          session, parse_key_spec("wiki:u64:20000"), mode, entry};
      for (const std::uint64_t hits : {1, 2, 4, 8, 16, 32}) {
        const RangeCase range{
            Op::range, hits, 1000, Transfers::overlapped, {300, 2}};
        RangeRun<Key, Value, HostExec>(subject, range).verify();
        EXPECT_TRUE(range_name(subject, range)
                        .ends_with("/hits:" + std::to_string(hits) +
                                   "/q:1000/order:random/transfers:overlapped"
                                   "/bucket:300/buffers:2"));
      }
    }
}

TEST(Hybrids, AreBuiltInPhases) {
  auto list = hybrids();
  list.add<BPlusTree<Key, Value, Kokkos::HostSpace>>("b_plus_tree");
  list.add<SortedArray<Key, Value, Kokkos::HostSpace>>("sorted_array");
  for (const auto& entry : list.entries())
    for (const ValueMode mode : {ValueMode::none, ValueMode::u32}) {
      Session session;
      session.options.queries = 1000;
      ASSERT_TRUE(entry.supports(Op::build, mode));
      const Subject<Key, Value, HostExec> subject{
          session, parse_key_spec("uniform:u64:50000"), mode, entry};
      verify_build(subject);
      const auto phases =
          build_phases([&] { subject.build(HostExec(), subject.input()); });
      const bool has_levels =
          entry.name == "hybrid_b_plus_tree" || entry.name == "b_plus_tree";
      ASSERT_EQ(phases.has_value(), has_levels) << entry.name;
      if (!has_levels) continue;
      EXPECT_GT(phases->sort, 0);
      EXPECT_GT(phases->inner, 0);
      EXPECT_GT(phases->mirror, 0);
    }
}

TEST(Hybrids, WorkIsDivided) {
  const auto list = hybrids();
  int divisible = 0;
  for (const auto& entry : list.entries()) {
    if (!entry.supports(Op::divide, ValueMode::none)) continue;
    ++divisible;
    Session session;
    const Subject<Key, Value, HostExec> subject{
        session, parse_key_spec("uniform:u64:50000"), ValueMode::none, entry};
    auto& index = subject.index(HostExec());
    const DivisionCase how{500, WorkDivision{1, 0.25}, {300}};
    EXPECT_TRUE(division_name(subject, how)
                    .ends_with("/values:none/levels:1/share:0.25/q:500"
                               "/order:random/transfers:overlapped"
                               "/bucket:300"));
    EXPECT_TRUE(division_name(subject, {3000, {}})
                    .ends_with("/values:none/division:found/q:3000"
                               "/order:random/transfers:overlapped"));
    const PointRun<Key, Value, std::uint32_t, HostExec> run(subject,
                                                            how.point());
    int divisions = 0;
    for_each_division([&](const std::optional<WorkDivision>& division) {
      ++divisions;
      const Divided divided(index, division ? within(*division, index.height())
                                            : run.balance(index));
      run.verify();
    });
    EXPECT_EQ(divisions, 26);
    EXPECT_EQ(within({9, 0.5}, index.height()),
              (WorkDivision{index.height(), 0}));
    EXPECT_EQ(within({0, 1}, index.height()), (WorkDivision{0, 1}));
  }
  EXPECT_EQ(divisible, 2);
}

TEST(Hybrids, PhasesLeaveToolsAsTheyWere) {
  namespace Tools = Kokkos::Tools::Experimental;
  static int kernels = 0;
  kernels = 0;
  Tools::set_begin_parallel_for_callback(
      [](const char*, std::uint32_t, std::uint64_t*) { ++kernels; });
  const auto run = [] {
    for (const char* label :
         {"kindex::BPlusTree::write_levels", "kindex::BPlusTree::write_pivots"})
      Kokkos::parallel_for(label, Kokkos::RangePolicy<HostExec>(0, 1),
                           [](int) {});
  };
  EXPECT_TRUE(build_phases(run).has_value());
  EXPECT_EQ(kernels, 0);
  run();
  EXPECT_EQ(kernels, 2);
  Tools::set_begin_parallel_for_callback(nullptr);
}

/// Hits of another range.
class ErringHybrid
    : public OnHost<HybridBPlusTree<Key, Value, Kokkos::HostSpace>> {
 public:
  using OnHost::OnHost;
  template <class Queries>
  void host_range(const HostBatches<HostExec>& batches, const Queries& lo,
                  const Queries& hi, hits_type& hits) const {
    OnHost::host_range(batches, lo, hi, hits);
    ++hits.values(hits.values.extent(0) / 2);
  }
};

TEST(Hybrids, WrongRangesAreNoticed) {
  Session session;
  IndexList<Key, Value, HostExec> list;
  list.add<ErringHybrid>("erring");
  const Subject<Key, Value, HostExec> subject{
      session, parse_key_spec("wiki:u64:5000"), ValueMode::u32,
      list.entries()[0]};
  const RangeRun<Key, Value, HostExec> run(
      subject, {Op::range, 5, 1000, Transfers::overlapped});
  try {
    run.verify();
    FAIL() << "nothing was noticed";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("wrong result: range ["),
              std::string::npos);
  }
}

TEST(Transfers, ArePredicted) {
  Session session;
  session.options.queries = 5000;
  IndexList<Key, Value, HostExec> list;
  list.add<SortedArray<Key, Value, Kokkos::HostSpace>>("sorted_array");
  const Subject<Key, Value, HostExec> subject{
      session, parse_key_spec("wiki:u64:5000"), ValueMode::u32,
      list.entries()[0]};
  const PointRun<Key, Value, std::uint32_t, HostExec> run(
      subject, {Op::lower_bound, 5000, Transfers::in});
  const TransferModel model = run.transfer_model();
  EXPECT_EQ(model.parameters().query_bytes, 8U);
  EXPECT_EQ(model.parameters().result_bytes, 4U);
  EXPECT_GT(model.seconds(5000), 0);
  // Measured once.
  EXPECT_EQ(run.transfer_model().seconds(5000), model.seconds(5000));
}

TEST(Transfers, OfTheLinkAreMeasured) {
  Session session;
  const LinkShape shape{8, 4, 1000};
  const double seconds = link_seconds<HostExec>(session, shape);
  EXPECT_GT(seconds, 0);
  EXPECT_EQ(link_seconds<HostExec>(session, shape), seconds);
}

/// What the check of a fit says after `spoil(starts, models)`.
template <class Spoil>
std::string fit_verdict(const Spoil& spoil) {
  auto keys = host_array<Key>("keys", 50000);
  for (std::uint64_t i = 0; i < keys.extent(0); ++i) keys(i) = i / 3 * i;
  const HostArray<const Key> sorted = keys;
  const auto fitted = fit_keys<Key>(HostExec(), sorted, 16);
  spoil(fitted.starts, fitted.models);
  try {
    check_fit<Key>(sorted, fitted.starts, fitted.models, 16);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(WrongFits, AreNoticed) {
  EXPECT_EQ(fit_verdict([](const auto&, const auto&) {}), "");
  EXPECT_NE(fit_verdict([](const auto&, const auto& models) {
              models(models.extent(0) / 2).intercept += 40;
            }).find("wrong result: the fit misses the rank"),
            std::string::npos);
  EXPECT_NE(fit_verdict([](const auto& starts, const auto&) {
              std::swap(starts(1), starts(2));
            }).find("does not begin behind the one before"),
            std::string::npos);
  EXPECT_NE(fit_verdict([](const auto& starts, const auto&) {
              starts(0) = 5;
            }).find("no segment at the first key"),
            std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Modes, WrongAnswers,
                         ::testing::Values(ValueMode::none, ValueMode::u32),
                         [](const auto& info) {
                           return std::string(name_of(info.param));
                         });

}  // namespace
}  // namespace kindex::perf

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  Kokkos::ScopeGuard kokkos(argc, argv);
  return RUN_ALL_TESTS();
}
