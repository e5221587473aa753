// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_ERROR_HPP
#define KINDEX_ERROR_HPP

/// \file
/// The one exception type of the library.

#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace kindex {

/// Thrown on the host when a precondition does not hold. The message names
/// the function, the argument, the offending position and the value. An index
/// on which a call threw is as it was before the call.
class Error : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

namespace impl {

template <class T>
void append(std::ostream& out, const T& part) {
  if constexpr (std::is_integral_v<T>) {
    out << +part;  // characters are numbers here
  } else {
    out << part;
  }
}

/// Throws an Error whose message is `function: part part ...`.
template <class... Parts>
[[noreturn]] void fail(const char* function, const Parts&... parts) {
  std::ostringstream message;
  message.precision(17);
  message << function << ": ";
  (append(message, parts), ...);
  throw Error(message.str());
}

}  // namespace impl
}  // namespace kindex

#endif
