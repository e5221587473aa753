// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_UNIT_TESTS_SUPPORT_ERRORS_HPP
#define KINDEX_UNIT_TESTS_SUPPORT_ERRORS_HPP

#include <gtest/gtest.h>

#include <kindex/Error.hpp>
#include <string>
#include <vector>

namespace kindex_test {

/// What the Error says that `call` throws, or that there was none. Other
/// exceptions end the test.
template <class Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const kindex::Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

/// Expects all of `parts` in a message.
inline void expect_names(const std::string& message,
                         const std::vector<std::string>& parts) {
  for (const auto& part : parts)
    EXPECT_NE(message.find(part), std::string::npos)
        << "'" << part << "' is missing in: " << message;
}

/// Expects `call` to throw an Error whose message has all of `parts`.
template <class Call>
void expect_error(const Call& call, const std::vector<std::string>& parts) {
  const std::string message = message_of(call);
  EXPECT_NE(message, "nothing was thrown");
  expect_names(message, parts);
}

}  // namespace kindex_test

#endif
