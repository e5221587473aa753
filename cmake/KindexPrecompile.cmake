# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# kindex_precompile(<target> [header...])
#
# Lets a program of many sources read the headers that they all begin with once:
# Kokkos, those of the library's queries, and the ones named. Not where a device's
# compiler is wrapped around the host's, which reads sources twice.
function(kindex_precompile target)
  if(Kokkos_ENABLE_CUDA OR Kokkos_ENABLE_HIP OR Kokkos_ENABLE_SYCL)
    return()
  endif()
  target_precompile_headers(${target} PRIVATE <Kokkos_Core.hpp>
                            <kindex/query/BulkQueries.hpp> ${ARGN})
endfunction()
