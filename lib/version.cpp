// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <kindex/Version.hpp>

namespace kindex {

int version() noexcept { return KINDEX_VERSION; }

}  // namespace kindex
