// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The only place with SIMD intrinsics. Kokkos' SIMD types are those of the
// flags of the compilation; which instructions run is decided here, at run
// time.
#include <kindex/query/HostNodes.hpp>

#include <type_traits>

#if defined(__x86_64__) && defined(__GNUC__)
#define KINDEX_HAVE_X86_SIMD
#include <immintrin.h>
#endif
#if defined(__aarch64__) && defined(__ARM_NEON)
#define KINDEX_HAVE_NEON
#include <arm_neon.h>
#endif

namespace kindex::query {

namespace {

/// Keys of a line, of which each is `stride` keys from the next.
template <class Key, int stride>
constexpr int keys_of_line = line_bytes / int(sizeof(Key)) / stride;

/// Whether `Key` is a number that fits a lane.
template <class Key>
constexpr bool has_simd = std::is_arithmetic_v<Key> &&
                          (sizeof(Key) == 4 || sizeof(Key) == 8);

// ---- one line ---------------------------------------------------------------

// `below`: how many keys of the line are below `key`; `holds`: whether one is
// equal.

struct Scalar {
  template <int stride, class Key>
  static unsigned below(const Key* line, const Key& key) {
    unsigned count = 0;
    for (int i = 0; i < keys_of_line<Key, stride>; ++i)
      count += line[i * stride] < key ? 1 : 0;
    return count;
  }
  template <int stride, class Key>
  static bool holds(const Key* line, const Key& key) {
    bool found = false;
    for (int i = 0; i < keys_of_line<Key, stride>; ++i)
      found |= line[i * stride] == key;
    return found;
  }
};

#ifdef KINDEX_HAVE_X86_SIMD

#define KINDEX_AVX2 [[gnu::target("avx2,popcnt")]] inline
#define KINDEX_AVX512 [[gnu::target("avx512f,popcnt")]] inline

/// The bits of lanes that hold keys, not values.
template <int stride>
constexpr unsigned key_lanes = stride == 1 ? ~0U : 0x55555555U;

struct LinearAvx2 {
  template <int stride, class Key>
  KINDEX_AVX2 static unsigned below(const Key* line, const Key& key) {
    const auto* const half = reinterpret_cast<const char*>(line);
    constexpr int lanes = 32 / int(sizeof(Key));
    const unsigned both = lanes_below(half, key) | lanes_below(half + 32, key)
                                                       << (lanes % 32);
    return static_cast<unsigned>(__builtin_popcount(both & key_lanes<stride>));
  }
  template <int stride, class Key>
  KINDEX_AVX2 static bool holds(const Key* line, const Key& key) {
    const auto* const half = reinterpret_cast<const char*>(line);
    const unsigned any = lanes_equal(half, key) | lanes_equal(half + 32, key);
    return (any & key_lanes<stride>) != 0;
  }

  /// Bit i: whether element i of 32 bytes is below `key`.
  template <class Key>
  KINDEX_AVX2 static unsigned lanes_below(const char* bytes, Key key) {
    if constexpr (std::is_same_v<Key, float>) {
      return bits(
          _mm256_cmp_ps(floats(bytes), _mm256_set1_ps(key), _CMP_LT_OQ));
    } else if constexpr (std::is_same_v<Key, double>) {
      return bits(
          _mm256_cmp_pd(doubles(bytes), _mm256_set1_pd(key), _CMP_LT_OQ));
    } else if constexpr (sizeof(Key) == 4) {
      // Comparisons are signed.
      const __m256i flip =
          _mm256_set1_epi32(std::is_signed_v<Key> ? 0 : int(1U << 31));
      return bits(_mm256_castsi256_ps(_mm256_cmpgt_epi32(
          _mm256_xor_si256(_mm256_set1_epi32(static_cast<int>(key)), flip),
          _mm256_xor_si256(integers(bytes), flip))));
    } else {
      const __m256i flip = _mm256_set1_epi64x(
          std::is_signed_v<Key> ? 0 : static_cast<long long>(1ULL << 63));
      return bits(_mm256_castsi256_pd(_mm256_cmpgt_epi64(
          _mm256_xor_si256(_mm256_set1_epi64x(static_cast<long long>(key)),
                           flip),
          _mm256_xor_si256(integers(bytes), flip))));
    }
  }

  /// Bit i: whether element i of 32 bytes equals `key`.
  template <class Key>
  KINDEX_AVX2 static unsigned lanes_equal(const char* bytes, Key key) {
    if constexpr (std::is_same_v<Key, float>) {
      return bits(
          _mm256_cmp_ps(floats(bytes), _mm256_set1_ps(key), _CMP_EQ_OQ));
    } else if constexpr (std::is_same_v<Key, double>) {
      return bits(
          _mm256_cmp_pd(doubles(bytes), _mm256_set1_pd(key), _CMP_EQ_OQ));
    } else if constexpr (sizeof(Key) == 4) {
      return bits(_mm256_castsi256_ps(_mm256_cmpeq_epi32(
          integers(bytes), _mm256_set1_epi32(static_cast<int>(key)))));
    } else {
      return bits(_mm256_castsi256_pd(_mm256_cmpeq_epi64(
          integers(bytes), _mm256_set1_epi64x(static_cast<long long>(key)))));
    }
  }

 private:
  KINDEX_AVX2 static __m256i integers(const char* bytes) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(bytes));
  }
  KINDEX_AVX2 static __m256 floats(const char* bytes) {
    return _mm256_castsi256_ps(integers(bytes));
  }
  KINDEX_AVX2 static __m256d doubles(const char* bytes) {
    return _mm256_castsi256_pd(integers(bytes));
  }
  KINDEX_AVX2 static unsigned bits(__m256 lanes) {
    return static_cast<unsigned>(_mm256_movemask_ps(lanes));
  }
  KINDEX_AVX2 static unsigned bits(__m256d lanes) {
    return static_cast<unsigned>(_mm256_movemask_pd(lanes));
  }
};

struct HierarchicalAvx2 {
  template <int stride, class Key>
  KINDEX_AVX2 static unsigned below(const Key* line, const Key& key) {
    constexpr int half = keys_of_line<Key, stride> / 2;
    // By the last key of the first half; a factor, since a branch would be
    // mispredicted every other time.
    const unsigned upper = line[(half - 1) * stride] < key ? 1 : 0;
    const unsigned lanes = LinearAvx2::lanes_below(
        reinterpret_cast<const char*>(line) + upper * 32, key);
    return upper * half +
           static_cast<unsigned>(__builtin_popcount(lanes & key_lanes<stride>));
  }
  template <int stride, class Key>
  KINDEX_AVX2 static bool holds(const Key* line, const Key& key) {
    return LinearAvx2::holds<stride>(line, key);
  }
};

struct LinearAvx512 {
  template <int stride, class Key>
  KINDEX_AVX512 static unsigned below(const Key* line, const Key& key) {
    return static_cast<unsigned>(
        __builtin_popcount(lanes<true>(line, key) & key_lanes<stride>));
  }
  template <int stride, class Key>
  KINDEX_AVX512 static bool holds(const Key* line, const Key& key) {
    return (lanes<false>(line, key) & key_lanes<stride>) != 0;
  }

 private:
  /// Bit i: whether element i is below `key`, or whether it equals it.
  template <bool less, class Key>
  KINDEX_AVX512 static unsigned lanes(const Key* line, Key key) {
    const __m512i all = _mm512_loadu_si512(line);
    if constexpr (std::is_same_v<Key, float>) {
      return _mm512_cmp_ps_mask(_mm512_castsi512_ps(all), _mm512_set1_ps(key),
                                less ? _CMP_LT_OQ : _CMP_EQ_OQ);
    } else if constexpr (std::is_same_v<Key, double>) {
      return _mm512_cmp_pd_mask(_mm512_castsi512_pd(all), _mm512_set1_pd(key),
                                less ? _CMP_LT_OQ : _CMP_EQ_OQ);
    } else if constexpr (sizeof(Key) == 4) {
      const __m512i same = _mm512_set1_epi32(static_cast<int>(key));
      if constexpr (!less)
        return _mm512_cmpeq_epi32_mask(all, same);
      else if constexpr (std::is_signed_v<Key>)
        return _mm512_cmplt_epi32_mask(all, same);
      else
        return _mm512_cmplt_epu32_mask(all, same);
    } else {
      const __m512i same = _mm512_set1_epi64(static_cast<long long>(key));
      if constexpr (!less)
        return _mm512_cmpeq_epi64_mask(all, same);
      else if constexpr (std::is_signed_v<Key>)
        return _mm512_cmplt_epi64_mask(all, same);
      else
        return _mm512_cmplt_epu64_mask(all, same);
    }
  }
};

#endif

#ifdef KINDEX_HAVE_NEON

struct LinearNeon {
  template <int stride, class Key>
  static unsigned below(const Key* line, const Key& key) {
    constexpr int lanes = 16 / int(sizeof(Key));
    auto count = less(line, key);
    for (int i = 1; i < line_bytes / 16; ++i)
      count = sum(count, less(line + i * lanes, key));
    return total<stride>(negative(count));
  }
  template <int stride, class Key>
  static bool holds(const Key* line, const Key& key) {
    constexpr int lanes = 16 / int(sizeof(Key));
    auto count = equal(line, key);
    for (int i = 1; i < line_bytes / 16; ++i)
      count = sum(count, equal(line + i * lanes, key));
    return total<stride>(negative(count)) != 0;
  }

 private:
  // Comparisons give -1 for each lane where they hold.
  static uint32x4_t less(const float* x, float key) {
    return vcltq_f32(vld1q_f32(x), vdupq_n_f32(key));
  }
  static uint64x2_t less(const double* x, double key) {
    return vcltq_f64(vld1q_f64(x), vdupq_n_f64(key));
  }
  static uint32x4_t less(const std::int32_t* x, std::int32_t key) {
    return vcltq_s32(vld1q_s32(x), vdupq_n_s32(key));
  }
  static uint32x4_t less(const std::uint32_t* x, std::uint32_t key) {
    return vcltq_u32(vld1q_u32(x), vdupq_n_u32(key));
  }
  static uint64x2_t less(const std::int64_t* x, std::int64_t key) {
    return vcltq_s64(vld1q_s64(x), vdupq_n_s64(key));
  }
  static uint64x2_t less(const std::uint64_t* x, std::uint64_t key) {
    return vcltq_u64(vld1q_u64(x), vdupq_n_u64(key));
  }
  static uint32x4_t equal(const float* x, float key) {
    return vceqq_f32(vld1q_f32(x), vdupq_n_f32(key));
  }
  static uint64x2_t equal(const double* x, double key) {
    return vceqq_f64(vld1q_f64(x), vdupq_n_f64(key));
  }
  static uint32x4_t equal(const std::int32_t* x, std::int32_t key) {
    return vceqq_s32(vld1q_s32(x), vdupq_n_s32(key));
  }
  static uint32x4_t equal(const std::uint32_t* x, std::uint32_t key) {
    return vceqq_u32(vld1q_u32(x), vdupq_n_u32(key));
  }
  static uint64x2_t equal(const std::int64_t* x, std::int64_t key) {
    return vceqq_s64(vld1q_s64(x), vdupq_n_s64(key));
  }
  static uint64x2_t equal(const std::uint64_t* x, std::uint64_t key) {
    return vceqq_u64(vld1q_u64(x), vdupq_n_u64(key));
  }

  static uint32x4_t sum(uint32x4_t a, uint32x4_t b) { return vaddq_u32(a, b); }
  static uint64x2_t sum(uint64x2_t a, uint64x2_t b) { return vaddq_u64(a, b); }
  static uint32x4_t negative(uint32x4_t a) {
    return vsubq_u32(vdupq_n_u32(0), a);
  }
  static uint64x2_t negative(uint64x2_t a) {
    return vsubq_u64(vdupq_n_u64(0), a);
  }

  /// The sum of lanes that hold keys, not values.
  template <int stride>
  static unsigned total(uint32x4_t counts) {
    if constexpr (stride == 2)
      return vgetq_lane_u32(counts, 0) + vgetq_lane_u32(counts, 2);
    else
      return vaddvq_u32(counts);
  }
  template <int stride>
  static unsigned total(uint64x2_t counts) {
    if constexpr (stride == 2)
      return static_cast<unsigned>(vgetq_lane_u64(counts, 0));
    else
      return static_cast<unsigned>(vaddvq_u64(counts));
  }
};

#endif

// ---- many lookups -----------------------------------------------------------

/// What descend_lines is asked.
template <class Key, class Index>
struct Descent {
  const PivotLevel* levels;
  int height;
  const Key* pivots;
  const Key* keys;
  Index* nodes;
  int count;
  ReadSoon children;
};

/// What count_in_lines is asked.
template <class Key, class Index>
struct LeafCount {
  const Key* first;
  const Key* keys;
  const Index* leaves;
  unsigned* counts;
  int count;
  unsigned equal;
};

// Inlined where the instructions of `Line` may be used.

template <class Line, class Key, class Index>
[[gnu::always_inline]] inline void run(const Descent<Key, Index>& asked) {
  constexpr int node_keys = keys_of_line<Key, 1>;
  for (int level = 0; level < asked.height; ++level) {
    const Key* const pivots = asked.pivots + asked.levels[level].offset;
    const Index last = Index(asked.levels[level].nodes - 1);
    const bool is_last = level + 1 == asked.height;
    const char* const next =
        is_last ? static_cast<const char*>(asked.children.first)
                : reinterpret_cast<const char*>(asked.pivots +
                                                asked.levels[level + 1].offset);
    const size_type next_bytes = is_last ? asked.children.bytes : line_bytes;
    for (int i = 0; i < asked.count; ++i) {
      const Index node = asked.nodes[i] < last ? asked.nodes[i] : last;
      const Index child =
          node * (node_keys + 1) +
          Index(Line::template below<1>(pivots + size_type(node) * node_keys,
                                        asked.keys[i]));
      asked.nodes[i] = child;
      if (next != nullptr) {
        // Perhaps behind the end: a prefetch of no memory does nothing.
        __builtin_prefetch(next + child * next_bytes);
        if (next_bytes > line_bytes)
          __builtin_prefetch(next + child * next_bytes + line_bytes);
      }
    }
  }
}

template <class Line, int stride, class Key, class Index>
[[gnu::always_inline]] inline void run_leaves(
    const LeafCount<Key, Index>& asked) {
  constexpr int line_keys = line_bytes / int(sizeof(Key));
  for (int i = 0; i < asked.count; ++i) {
    const Key* const line =
        asked.first + size_type(asked.leaves[i]) * line_keys;
    const Key key = asked.keys[i];
    unsigned count = Line::template below<stride>(line, key);
    if (asked.equal != 0 && Line::template holds<stride>(line, key))
      count += asked.equal;
    asked.counts[i] = count;
  }
}

#ifdef KINDEX_HAVE_X86_SIMD

template <class Line, class Asked, int stride>
KINDEX_AVX2 void run_avx2(const Asked& asked) {
  if constexpr (stride == 0) {
    run<Line>(asked);
  } else {
    run_leaves<Line, stride>(asked);
  }
}

template <class Asked, int stride>
KINDEX_AVX512 void run_avx512(const Asked& asked) {
  if constexpr (stride == 0) {
    run<LinearAvx512>(asked);
  } else {
    run_leaves<LinearAvx512, stride>(asked);
  }
}

#endif

/// \tparam stride of leaves; 0: inner nodes.
template <class Key, int stride, class Asked>
void run_with(NodeSearch how, const Asked& asked) {
#ifdef KINDEX_HAVE_X86_SIMD
  if constexpr (has_simd<Key>) {
    switch (how) {
      case NodeSearch::linear_avx2:
        return run_avx2<LinearAvx2, Asked, stride>(asked);
      case NodeSearch::hierarchical_avx2:
        return run_avx2<HierarchicalAvx2, Asked, stride>(asked);
      case NodeSearch::linear_avx512: return run_avx512<Asked, stride>(asked);
      default: break;
    }
  }
#endif
#ifdef KINDEX_HAVE_NEON
  if constexpr (has_simd<Key>) {
    if (how == NodeSearch::linear_neon) {
      if constexpr (stride == 0)
        return run<LinearNeon>(asked);
      else
        return run_leaves<LinearNeon, stride>(asked);
    }
  }
#endif
  if constexpr (stride == 0) {
    run<Scalar>(asked);
  } else {
    run_leaves<Scalar, stride>(asked);
  }
}

}  // namespace

NodeSearch chosen_node_search(NodeSearch how) {
  if (how != NodeSearch::automatic) return how;
  static const NodeSearch best = [] {
    for (const auto search : {NodeSearch::linear_avx512,
                              NodeSearch::linear_avx2, NodeSearch::linear_neon})
      if (is_available(search)) return search;
    return NodeSearch::scalar;
  }();
  return best;
}

template <class Key, class Index>
void descend_lines(NodeSearch how, const PivotLevel* levels, int height,
                   const Key* pivots, const Key* keys, Index* nodes, int count,
                   const ReadSoon& children) {
  run_with<Key, 0>(how, Descent<Key, Index>{levels, height, pivots, keys, nodes,
                                            count, children});
}

template <class Key, class Index>
void count_in_lines(NodeSearch how, const Key* first, int stride,
                    const Key* keys, const Index* leaves, unsigned* counts,
                    int count, unsigned equal) {
  const LeafCount<Key, Index> asked{first, keys, leaves, counts, count, equal};
  if (stride == 1) {
    run_with<Key, 1>(how, asked);
  } else {
    run_with<Key, 2>(how, asked);
  }
}

#define KINDEX_HOST_NODES_BY(Key, Index)                                      \
  template void descend_lines(NodeSearch, const PivotLevel*, int, const Key*, \
                              const Key*, Index*, int, const ReadSoon&);      \
  template void count_in_lines(NodeSearch, const Key*, int, const Key*,       \
                               const Index*, unsigned*, int, unsigned)
#define KINDEX_HOST_NODES(Key)              \
  KINDEX_HOST_NODES_BY(Key, std::uint32_t); \
  KINDEX_HOST_NODES_BY(Key, std::uint64_t)

KINDEX_HOST_NODES(std::int8_t);
KINDEX_HOST_NODES(std::int16_t);
KINDEX_HOST_NODES(std::int32_t);
KINDEX_HOST_NODES(std::int64_t);
KINDEX_HOST_NODES(std::uint8_t);
KINDEX_HOST_NODES(std::uint16_t);
KINDEX_HOST_NODES(std::uint32_t);
KINDEX_HOST_NODES(std::uint64_t);
KINDEX_HOST_NODES(float);
KINDEX_HOST_NODES(double);
KINDEX_HOST_NODES(Key128);

}  // namespace kindex::query

namespace kindex {

bool is_available(NodeSearch how) {
  switch (how) {
    case NodeSearch::automatic:
    case NodeSearch::scalar: return true;
#ifdef KINDEX_HAVE_X86_SIMD
    case NodeSearch::linear_avx2:
    case NodeSearch::hierarchical_avx2:
      return __builtin_cpu_supports("avx2") > 0 &&
             __builtin_cpu_supports("popcnt") > 0;
    case NodeSearch::linear_avx512:
      return __builtin_cpu_supports("avx512f") > 0 &&
             __builtin_cpu_supports("popcnt") > 0;
#endif
#ifdef KINDEX_HAVE_NEON
    case NodeSearch::linear_neon: return true;
#endif
    default: return false;
  }
}

const char* name_of(NodeSearch how) {
  switch (how) {
    case NodeSearch::automatic: return "automatic";
    case NodeSearch::scalar: return "scalar";
    case NodeSearch::linear_avx2: return "linear_avx2";
    case NodeSearch::hierarchical_avx2: return "hierarchical_avx2";
    case NodeSearch::linear_avx512: return "linear_avx512";
    case NodeSearch::linear_neon: return "linear_neon";
  }
  return "unknown";
}

}  // namespace kindex
