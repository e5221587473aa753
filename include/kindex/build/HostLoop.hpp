// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_BUILD_HOSTLOOP_HPP
#define KINDEX_BUILD_HOSTLOOP_HPP

/// \file
/// Loops on the host, with all of its threads or with the caller's alone.

#include <kindex/Types.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace kindex::build {

/// Whose threads run loops, and what they are called. Bodies are called by
/// address, so that the parallel loop is compiled once; an iteration should be
/// worth a call. They must not throw. For one thread.
class HostLoop {
 public:
  /// \param label prefix of all labels.
  /// \param parallel whether all of the host's threads run it.
  HostLoop(std::string label, bool parallel)
      : label_(std::move(label)), parallel_(parallel) {
    // Loops need no memory then, and cannot fail.
    name_.reserve(label_.size() + 64);
  }

  /// Whether all of the host's threads run it.
  bool is_parallel() const { return parallel_; }
  /// The prefix of all labels.
  const std::string& label() const { return label_; }

  /// Calls `body(i)` for i = 0...n-1, and returns when all are done.
  template <class Body>
  void operator()(const char* what, size_type n, const Body& body) const {
    if (!parallel_ || n < 2) {
      for (size_type i = 0; i < n; ++i) body(i);
    } else {
      name_.assign(label_).append(what);
      run(name_, n, {&body, [](const void* context, size_type i) {
                       (*static_cast<const Body*>(context))(i);
                     }});
    }
  }

  /// The same for ranges [begin, end) of some `share` iterations.
  template <class Body>
  void in_shares(const char* what, size_type n, size_type share,
                 const Body& body) const {
    (*this)(what, (n + share - 1) / share, [&](size_type s) {
      body(s * share, std::min(n, (s + 1) * share));
    });
  }

 private:
  struct Call {
    const void* context;
    void (*body)(const void*, size_type);
    void operator()(size_type i) const { body(context, i); }
  };

  static void run(const std::string& label, size_type n, const Call& call) {
    using Host = Kokkos::DefaultHostExecutionSpace;
    using Policy = Kokkos::RangePolicy<Host, Kokkos::Schedule<Kokkos::Dynamic>,
                                       Kokkos::IndexType<size_type>>;
    const Host host;
    const size_type threads = host.concurrency();
    Policy policy(host, 0, n);
    policy.set_chunk_size(
        static_cast<int>(std::clamp<size_type>(n / (threads * 8), 1, 64)));
    Kokkos::parallel_for(label, policy, call);
    host.fence(label);
  }

  std::string label_;
  bool parallel_;
  mutable std::string name_;  ///< of the loop that runs
};

}  // namespace kindex::build

#endif
