// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_QUERY_HOSTNODES_HPP
#define KINDEX_QUERY_HOSTNODES_HPP

/// \file
/// How a thread of a host searches nodes of one cache line: by the widest
/// instructions that its processor has, many lookups in turns.

#include <kindex/Key.hpp>

namespace kindex {

/// How a thread of a host finds the number of keys below the one searched in a
/// node, of 64 bytes. Never changes a result.
enum class NodeSearch {
  automatic,          ///< the fastest of those that the processor has
  scalar,             ///< one key after the other
  linear_avx2,        ///< all keys, 32 bytes at a time
  hierarchical_avx2,  ///< the key in the middle, then the half it leads to
  linear_avx512,      ///< all keys at once
  linear_neon         ///< all keys, 16 bytes at a time (64-bit ARM)
};

/// Whether the processor that this runs on has what `how` needs. SIMD exists
/// for numbers of 4 and 8 bytes; other keys are searched one by one in any way.
bool is_available(NodeSearch how);

/// The name of an enumerator.
const char* name_of(NodeSearch how);

namespace query {

/// `how`, or for NodeSearch::automatic what that means on this processor.
NodeSearch chosen_node_search(NodeSearch how = NodeSearch::automatic);

/// A level of nodes of pivots among those that are stored.
struct PivotLevel {
  size_type offset;  ///< its first pivot among all
  size_type nodes;   ///< its nodes
};

/// Bytes of the nodes that a host searches so: a cache line.
inline constexpr int line_bytes = 64;

/// Memory of which element `i` is read soon.
struct ReadSoon {
  const void* first = nullptr;  ///< element 0; null: nothing is
  size_type bytes = 0;          ///< of an element
};

/// Leads `count` keys, in turns, from nodes of the first of some levels to
/// children of the last; while others take their turn, each one's next node is
/// fetched (Shahvarani and Jacobsen, SIGMOD 2016: software pipelining). Nodes
/// have 64 bytes of pivots and a child more than pivots. Compiled in the
/// library for all key types.
///
/// \tparam Index std::uint32_t or std::uint64_t.
/// \param how as chosen_node_search returns it.
/// \param levels `height` levels, from the root, of `pivots`.
/// \param keys the keys.
/// \param nodes their nodes; nodes behind a level's end are its last.
/// \param children what is read of the last level's children.
template <class Key, class Index>
void descend_lines(NodeSearch how, const PivotLevel* levels, int height,
                   const Key* pivots, const Key* keys, Index* nodes, int count,
                   const ReadSoon& children);

/// For each of `count` keys the number of keys below it in a leaf of 64 bytes,
/// and `equal` more if one of them equals it. As descend_lines.
///
/// \param first the first key of leaf 0; a key of a leaf is `stride` keys from
///   the next, 1 or, beside values of that size, 2.
/// \param leaves each key's leaf.
template <class Key, class Index>
void count_in_lines(NodeSearch how, const Key* first, int stride,
                    const Key* keys, const Index* leaves, unsigned* counts,
                    int count, unsigned equal);

}  // namespace query
}  // namespace kindex

#endif
