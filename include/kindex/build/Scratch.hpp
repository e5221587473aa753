// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_BUILD_SCRATCH_HPP
#define KINDEX_BUILD_SCRATCH_HPP

/// \file
/// Memory for what a batch needs while it lasts.

#include <kindex/Types.hpp>

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace kindex::build {

/// Memory that is kept from one batch to the next: on a GPU, to allocate and
/// free a few dozen arrays can take longer than the batch, as each is freed by
/// a fence of the device. For one batch at a time, on one instance, or several
/// that are ordered.
///
/// A copy has none, as the one that it is a copy of may be in use.
template <class MemorySpace>
class Scratch {
 public:
  Scratch() = default;
  /// Has no memory.
  Scratch(const Scratch& /*other*/) {}
  /// Gives back what it has.
  Scratch& operator=(const Scratch& other) {
    if (this != &other) *this = Scratch();
    return *this;
  }
  /// Takes the memory, and leaves none.
  Scratch(Scratch&& other) noexcept
      : blocks_(std::exchange(other.blocks_, {})),
        used_(std::exchange(other.used_, 0)) {}
  /// Takes the memory, and leaves none.
  Scratch& operator=(Scratch&& other) noexcept {
    std::swap(blocks_, other.blocks_);
    std::swap(used_, other.used_);
    other.clear();
    return *this;
  }
  ~Scratch() = default;

  /// Begins a batch: all that was taken may be taken again. What the batch
  /// before had to allocate piece by piece is one piece then.
  template <class Exec>
  void begin(const Exec& space, const std::string& label) {
    used_ = 0;
    if (blocks_.size() < 2) return;
    const size_type bytes = memory_bytes();
    blocks_.clear();
    blocks_.push_back(allocate(space, label, bytes));
  }

  /// An array that is not initialised, until the next batch. Allocates where
  /// there is not enough memory.
  template <class T, class Exec>
  Kokkos::View<T*, MemorySpace> take(const Exec& space,
                                     const std::string& label, size_type size) {
    static_assert(alignof(T) <= alignment);
    const size_type bytes =
        (size * sizeof(T) + alignment - 1) / alignment * alignment;
    if (blocks_.empty() || used_ + bytes > blocks_.back().extent(0)) {
      blocks_.push_back(allocate(space, label, bytes));
      used_ = 0;
    }
    auto* const first = blocks_.back().data() + used_;
    used_ += bytes;
    return Kokkos::View<T*, MemorySpace>(reinterpret_cast<T*>(first), size);
  }

  /// Bytes held.
  size_type memory_bytes() const {
    size_type bytes = 0;
    for (const Block& block : blocks_) bytes += block.extent(0);
    return bytes;
  }

  /// Gives all memory back.
  void clear() noexcept {
    blocks_.clear();
    used_ = 0;
  }

 private:
  using Block = Kokkos::View<std::byte*, MemorySpace>;
  static constexpr size_type alignment = 256;

  template <class Exec>
  static Block allocate(const Exec& space, const std::string& label,
                        size_type bytes) {
    return Block(Kokkos::view_alloc(space, Kokkos::WithoutInitializing, label),
                 bytes);
  }

  std::vector<Block> blocks_;
  size_type used_ = 0;  ///< bytes of the last block
};

/// An array that is not initialised: of `scratch`, or, where that is null, of
/// its own.
template <class T, class MemorySpace, class Exec>
Kokkos::View<T*, MemorySpace> temporary(const Exec& space,
                                        const std::string& label,
                                        size_type size,
                                        Scratch<MemorySpace>* scratch) {
  if (scratch != nullptr) return scratch->template take<T>(space, label, size);
  return Kokkos::View<T*, MemorySpace>(
      Kokkos::view_alloc(space, Kokkos::WithoutInitializing, label), size);
}

/// The same memory, if it is in `To`.
template <class To, class MemorySpace>
Scratch<To>* scratch_in(Scratch<MemorySpace>* scratch) {
  if constexpr (std::is_same_v<To, MemorySpace>) {
    return scratch;
  } else {
    return nullptr;
  }
}

}  // namespace kindex::build

#endif
