// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KINDEX_IO_KEY_FILE_HPP
#define KINDEX_IO_KEY_FILE_HPP

/// \file
/// Key files in the SOSD format (Kipf et al., 2019), in which learned-index
/// papers exchange their data sets: a 64-bit count, then that many keys, all
/// in native byte order. The key type is the suffix of the file's name:
/// `books_200M_uint32`, `osm_cellids_800M_uint64`.

#include <kindex/Error.hpp>
#include <kindex/Types.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <type_traits>

namespace kindex {

/// The key types that a key file can hold.
enum class KeyFileType {
  uint32,  ///< 4-byte keys, name ends in `_uint32`
  uint64   ///< 8-byte keys, name ends in `_uint64`
};

/// What the name and the first 8 bytes of a key file say, found consistent.
struct KeyFileInfo {
  KeyFileType type = KeyFileType::uint64;  ///< from the suffix of the name
  size_type size = 0;                      ///< number of keys
};

/// The key type that a file's name promises, judged by the suffix of the last
/// path component alone; the file need not exist.
///
/// \throws Error when the name ends in neither `_uint32` nor `_uint64`.
KeyFileType key_file_type(const std::filesystem::path& path);

/// Reads the header of a key file and checks it against the file's size.
/// Costs one read of 8 bytes.
///
/// \throws Error when the name has no known suffix, the file cannot be read,
/// or its size is not exactly what its count demands; the message gives the
/// expected and the actual number of bytes.
KeyFileInfo key_file_info(const std::filesystem::path& path);

namespace impl {

void read_key_file(const std::filesystem::path& path, KeyFileType type,
                   void* keys, size_type size);
void write_key_file(const std::filesystem::path& path, KeyFileType type,
                    const void* keys, size_type size);

template <class Key>
constexpr KeyFileType key_file_type_of() {
  static_assert(
      std::is_same_v<Key, std::uint32_t> || std::is_same_v<Key, std::uint64_t>,
      "kindex: a key file holds uint32 or uint64 keys");
  return sizeof(Key) == 4 ? KeyFileType::uint32 : KeyFileType::uint64;
}

}  // namespace impl

/// Reads all keys of a key file, in the file's order.
///
/// Memory is allocated only after the size of the file proved right, so a
/// damaged count cannot exhaust it.
///
/// \tparam Key `std::uint32_t` or `std::uint64_t`, as the name promises.
/// \return `[size]` keys in host memory.
/// \throws Error as key_file_info(), and when the name promises another type.
template <class Key>
Kokkos::View<Key*, Kokkos::HostSpace> read_key_file(
    const std::filesystem::path& path) {
  constexpr KeyFileType type = impl::key_file_type_of<Key>();
  const KeyFileInfo info = key_file_info(path);
  if (info.type != type) {
    impl::fail("kindex::read_key_file", "'", path.string(), "' holds ",
               info.type == KeyFileType::uint32 ? "uint32" : "uint64",
               " keys, asked for ",
               type == KeyFileType::uint32 ? "uint32" : "uint64");
  }
  Kokkos::View<Key*, Kokkos::HostSpace> keys(
      Kokkos::view_alloc("kindex::read_key_file::keys",
                         Kokkos::WithoutInitializing),
      info.size);
  impl::read_key_file(path, type, keys.data(), info.size);
  return keys;
}

/// Writes a key file; an existing file is replaced.
///
/// \param path its suffix must promise the type of the keys.
/// \param keys `[size]` contiguous keys in host memory.
/// \throws Error when the suffix is wrong or the file cannot be written.
template <class Key, class... Properties>
void write_key_file(const std::filesystem::path& path,
                    const Kokkos::View<Key*, Properties...>& keys) {
  using KeysView = Kokkos::View<Key*, Properties...>;
  static_assert(
      Kokkos::SpaceAccessibility<Kokkos::HostSpace,
                                 typename KeysView::memory_space>::accessible,
      "kindex::write_key_file: keys must be accessible from the host");
  if (!keys.span_is_contiguous())
    impl::fail("kindex::write_key_file", "keys are not contiguous");
  impl::write_key_file(path, impl::key_file_type_of<std::remove_const_t<Key>>(),
                       keys.data(), keys.extent(0));
}

}  // namespace kindex

#endif
