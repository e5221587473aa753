// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <kindex/io/KeyFile.hpp>

#include <fstream>
#include <limits>
#include <string>
#include <system_error>

namespace kindex {
namespace {

constexpr size_type header_bytes = sizeof(std::uint64_t);

size_type key_bytes(KeyFileType type) {
  return type == KeyFileType::uint32 ? 4 : 8;
}

size_type actual_bytes(const std::filesystem::path& path,
                       const char* function) {
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    impl::fail(function, "there is no file '", path.string(), "'");
  if (!std::filesystem::is_regular_file(path, error))
    impl::fail(function, "'", path.string(), "' is not a regular file");
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error)
    impl::fail(function, "cannot tell the size of '", path.string(),
               "': ", error.message());
  return bytes;
}

void check_size(const std::filesystem::path& path, KeyFileType type,
                size_type size, size_type actual, const char* function) {
  const size_type most =
      (std::numeric_limits<size_type>::max() - header_bytes) / key_bytes(type);
  if (size > most)
    impl::fail(function, "'", path.string(), "' claims ", size, " keys of ",
               key_bytes(type),
               " bytes, expected more than 2^64 bytes, actual ", actual,
               " bytes; is this a key file in another byte order?");
  const size_type expected = header_bytes + size * key_bytes(type);
  if (expected != actual)
    impl::fail(function, "'", path.string(), "' claims ", size, " keys of ",
               key_bytes(type), " bytes, expected ", expected,
               " bytes, actual ", actual, " bytes");
}

std::ifstream open_for_reading(const std::filesystem::path& path,
                               const char* function) {
  std::ifstream file(path, std::ios::binary);
  if (!file) impl::fail(function, "cannot open '", path.string(), "'");
  return file;
}

size_type read_count(std::ifstream& file, const std::filesystem::path& path,
                     const char* function) {
  std::uint64_t size = 0;
  if (!file.read(reinterpret_cast<char*>(&size), header_bytes))
    impl::fail(function, "cannot read the count of '", path.string(), "'");
  return size;
}

}  // namespace

KeyFileType key_file_type(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  if (name.ends_with("_uint32")) return KeyFileType::uint32;
  if (name.ends_with("_uint64")) return KeyFileType::uint64;
  impl::fail("kindex::key_file_type", "the name '", name,
             "' ends in neither _uint32 nor _uint64, so its key type is "
             "unknown");
}

KeyFileInfo key_file_info(const std::filesystem::path& path) {
  constexpr auto function = "kindex::key_file_info";
  KeyFileInfo info;
  info.type = key_file_type(path);
  const size_type actual = actual_bytes(path, function);
  if (actual < header_bytes)
    impl::fail(function, "'", path.string(), "' has no room for its count, ",
               "expected at least ", header_bytes, " bytes, actual ", actual,
               " bytes");
  std::ifstream file = open_for_reading(path, function);
  info.size = read_count(file, path, function);
  check_size(path, info.type, info.size, actual, function);
  return info;
}

namespace impl {

void read_key_file(const std::filesystem::path& path, KeyFileType type,
                   void* keys, size_type size) {
  constexpr auto function = "kindex::read_key_file";
  std::ifstream file = open_for_reading(path, function);
  if (read_count(file, path, function) != size)
    fail(function, "'", path.string(), "' changed while it was being read");
  const size_type bytes = size * key_bytes(type);
  if (bytes > 0 &&
      !file.read(static_cast<char*>(keys), static_cast<std::streamsize>(bytes)))
    fail(function, "'", path.string(), "' broke off, expected ", bytes,
         " bytes of keys, actual ", file.gcount(), " bytes");
}

void write_key_file(const std::filesystem::path& path, KeyFileType type,
                    const void* keys, size_type size) {
  constexpr auto function = "kindex::write_key_file";
  if (key_file_type(path) != type)
    fail(function, "the name '", path.filename().string(),
         "' promises another type than the keys have, expected the suffix ",
         type == KeyFileType::uint32 ? "_uint32" : "_uint64");
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!file) fail(function, "cannot open '", path.string(), "' for writing");
  const std::uint64_t count = size;
  file.write(reinterpret_cast<const char*>(&count), header_bytes);
  file.write(static_cast<const char*>(keys),
             static_cast<std::streamsize>(size * key_bytes(type)));
  file.close();
  if (!file)
    fail(function, "could not write ", header_bytes + size * key_bytes(type),
         " bytes to '", path.string(), "'; is the disk full?");
}

}  // namespace impl
}  // namespace kindex
