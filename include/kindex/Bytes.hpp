// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_BYTES_HPP
#define KINDEX_BYTES_HPP

/// \file
/// Byte strings as keys.

#include <kindex/Key.hpp>

#include <bit>
#include <cstdint>
#include <cstring>

namespace kindex {

namespace impl {

/// Words of the bytes from any address on, one after the other. A GPU loads
/// aligned words only, each of them once, and one ahead.
template <class Word>
class ByteWords {
 public:
  /// How many bytes must be there from where the next word begins.
  KOKKOS_FUNCTION static constexpr std::uint32_t needed() {
    KOKKOS_IF_ON_HOST((return sizeof(Word);))
    KOKKOS_IF_ON_DEVICE((return 2 * sizeof(Word);))
  }

  /// From `first` on, where `needed` bytes are.
  KOKKOS_FUNCTION explicit ByteWords(const unsigned char* first) : at_(first) {
    KOKKOS_IF_ON_DEVICE(
        (const auto offset = reinterpret_cast<std::uintptr_t>(first) % size;
         at_ -= offset; shift_ = 8 * int(offset);
         low_ = *reinterpret_cast<const Word*>(at_);))
  }

  /// The next word.
  KOKKOS_FUNCTION Word next() {
    Word word{};
    KOKKOS_IF_ON_HOST((std::memcpy(&word, at_, size);))
    KOKKOS_IF_ON_DEVICE(
        (const Word high = *reinterpret_cast<const Word*>(at_ + size);
         // Twice, as a shift by all bits is undefined.
         word = low_ >> shift_ | high << 1 << (8 * int(size) - 1 - shift_);
         low_ = high;))
    at_ += size;
    return word;
  }

  /// The first byte in which two words differ, given what differs.
  KOKKOS_FUNCTION static std::uint32_t first_byte(Word differ) {
    constexpr bool is_little = std::endian::native == std::endian::little;
    return std::uint32_t(is_little ? Kokkos::countr_zero(differ)
                                   : Kokkos::countl_zero(differ)) /
           8;
  }

 private:
  static constexpr std::uint32_t size = sizeof(Word);
  const unsigned char* at_;
  Word low_ = 0;
  int shift_ = 0;
};

/// Counts bytes that `a` and `b` have in common on from `common`, up to `most`,
/// by blocks of words whose loads overlap; returns whether the next one
/// differs.
template <class Word, int Block>
KOKKOS_FUNCTION bool count_words(const unsigned char* a, const unsigned char* b,
                                 std::uint32_t most, std::uint32_t& common) {
  using Words = ByteWords<Word>;
  constexpr std::uint32_t size = sizeof(Word);
  const std::uint32_t needed = (Block - 1) * size + Words::needed();
  if (most < common + needed) return false;
  Words own(a + common);
  Words other(b + common);
  do {
    Word differ[Block];
    for (int i = 0; i < Block; ++i) differ[i] = own.next();
    for (int i = 0; i < Block; ++i) differ[i] ^= other.next();
    Word any = 0;
    for (int i = 0; i < Block; ++i) any |= differ[i];
    if (any != 0) {
      Word first = 0;
      std::uint32_t skipped = 0;
      for (int i = Block - 1; i >= 0; --i)
        if (differ[i] != 0) {
          first = differ[i];
          skipped = std::uint32_t(i) * size;
        }
      common += skipped + Words::first_byte(first);
      return true;
    }
    common += Block * size;
  } while (common + needed <= most);
  return false;
}

}  // namespace impl

/// The number of leading bytes that `a` and `b` have in common, up to `most`;
/// `known` of them are known.
KOKKOS_INLINE_FUNCTION std::uint32_t common_bytes(const unsigned char* a,
                                                  const unsigned char* b,
                                                  std::uint32_t most,
                                                  std::uint32_t known = 0) {
  std::uint32_t common = known;
  bool differs = false;
  // A host's processor loads ahead by itself.
  KOKKOS_IF_ON_DEVICE(
      (differs = impl::count_words<std::uint64_t, 2>(a, b, most, common);))
  if (differs || impl::count_words<std::uint64_t, 1>(a, b, most, common) ||
      impl::count_words<std::uint32_t, 1>(a, b, most, common))
    return common;
  while (common < most && a[common] == b[common]) ++common;
  return common;
}

/// Where in the order a byte string stands as a query.
enum class Edge : std::uint32_t {
  at,         ///< at itself
  behind,     ///< behind itself, before the strings that it begins
  behind_all  ///< behind all strings that it begins
};

/// A byte string in memory that it does not own, ordered byte by byte as
/// unsigned numbers; a string comes before those that it begins. Any bytes are
/// legal, zero among them, and so is no byte at all. A GPU that compares
/// strings may load, and ignores, the bytes in front of one that share its
/// first aligned word of 8 bytes.
struct Bytes {
  const unsigned char* data = nullptr;  ///< the first byte
  std::uint32_t size = 0;               ///< how many
  Edge edge = Edge::at;                 ///< what a query means

  /// Byte `i`, or, behind the last, a number for the edge: below all bytes or
  /// above.
  KOKKOS_FUNCTION int symbol(std::uint32_t i) const {
    if (i < size) return data[i];
    return edge == Edge::at ? end : edge == Edge::behind ? end + 1 : 256;
  }
  /// The symbol of the end.
  static constexpr int end = -2;

  /// The number of leading bytes that two strings have in common.
  KOKKOS_FUNCTION friend std::uint32_t common_bytes(const Bytes& a,
                                                    const Bytes& b) {
    return common_bytes(a.data, b.data, a.size < b.size ? a.size : b.size);
  }
  /// Equality of bytes and edges.
  KOKKOS_FUNCTION friend bool operator==(const Bytes& a, const Bytes& b) {
    return a.size == b.size && a.edge == b.edge && common_bytes(a, b) == a.size;
  }
  /// Inequality.
  KOKKOS_FUNCTION friend bool operator!=(const Bytes& a, const Bytes& b) {
    return !(a == b);
  }
  /// The order of the first symbols that differ.
  KOKKOS_FUNCTION friend bool operator<(const Bytes& a, const Bytes& b) {
    const std::uint32_t common = common_bytes(a, b);
    return a.symbol(common) < b.symbol(common);
  }
  /// The same.
  KOKKOS_FUNCTION friend bool operator>(const Bytes& a, const Bytes& b) {
    return b < a;
  }
};

/// All byte strings that begin with `key`, as a query.
template <>
struct Prefix<Bytes> {
  Bytes key;  ///< what they begin with
};

/// What the verbs ask of queries.
template <>
struct KeyTraits<Bytes> {
  /// Never.
  KOKKOS_FUNCTION static bool is_nan(const Bytes&) { return false; }
};

}  // namespace kindex

#endif
