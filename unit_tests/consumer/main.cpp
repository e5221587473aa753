// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What a project that uses Kindex does: build an index, find keys, link, run.

#include <Kokkos_Core.hpp>
#include <cstdint>
#include <cstdio>
#include <kindex/SortedArray.hpp>
#include <kindex/Version.hpp>

namespace {

int count_wrong_answers() {
  using Exec = Kokkos::DefaultExecutionSpace;
  Exec space;
  int const n = 1000;
  Kokkos::View<std::uint32_t*, Exec> keys("keys", n);
  Kokkos::parallel_for(
      "fill", Kokkos::RangePolicy<Exec>(space, 0, n),
      KOKKOS_LAMBDA(int i) { keys(i) = 2u * static_cast<unsigned>(n - i); });

  kindex::SortedArray index(space, keys);

  // Key k of the input lies at position n - k / 2; odd keys are absent.
  Kokkos::View<std::uint32_t*, Exec> queries("queries", 2 * n);
  Kokkos::View<std::uint32_t*, Exec> found("found", 2 * n);
  Kokkos::parallel_for(
      "ask", Kokkos::RangePolicy<Exec>(space, 0, 2 * n),
      KOKKOS_LAMBDA(int i) { queries(i) = static_cast<unsigned>(i + 1); });
  index.find(space, queries, found);

  int wrong = 0;
  Kokkos::parallel_reduce(
      "check", Kokkos::RangePolicy<Exec>(space, 0, 2 * n),
      KOKKOS_LAMBDA(int i, int& sum) {
        std::uint32_t const key = queries(i);
        std::uint32_t const expected =
            key % 2 == 0 ? static_cast<std::uint32_t>(n) - key / 2
                         : ~std::uint32_t(0);
        if (found(i) != expected) ++sum;
      },
      wrong);
  return wrong;
}

}  // namespace

int main(int argc, char* argv[]) {
  if (kindex::version() != KINDEX_VERSION) {
    std::printf("headers and library differ in version\n");
    return 1;
  }
  Kokkos::ScopeGuard guard(argc, argv);
  int const wrong = count_wrong_answers();
  std::printf("%d wrong answers\n", wrong);
  return wrong != 0;
}
