// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Key files: what is written can be read, and no damaged file gets past.
#include <gtest/gtest.h>
#include <kindex/io/KeyFile.hpp>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

namespace {

/// A folder of its own for each test, gone afterwards.
class KeyFile : public ::testing::Test {
 protected:
  KeyFile()
      : folder_(
            std::filesystem::temp_directory_path() /
            ("kindex_key_file_" +
             std::string(::testing::UnitTest::GetInstance()
                             ->current_test_info()
                             ->name()) +
             std::to_string(::testing::UnitTest::GetInstance()->random_seed()) +
             std::to_string(reinterpret_cast<std::uintptr_t>(this)))) {
    std::filesystem::create_directories(folder_);
  }
  ~KeyFile() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::filesystem::path path(const std::string& name) const {
    return folder_ / name;
  }

  /// A file of `count`, then `payload` bytes of 0x11.
  std::filesystem::path file(const std::string& name, std::uint64_t count,
                             std::size_t payload) const {
    std::ofstream out(path(name), std::ios::binary);
    out.write(reinterpret_cast<const char*>(&count), sizeof count);
    out << std::string(payload, '\x11');
    return path(name);
  }

  /// What is said about a file that must be refused.
  static std::string refusal(const std::filesystem::path& file) {
    try {
      kindex::key_file_info(file);
    } catch (const kindex::Error& error) {
      return error.what();
    }
    return "accepted";
  }

 private:
  std::filesystem::path folder_;
};

template <class Key>
Kokkos::View<Key*, Kokkos::HostSpace> view_of(const std::vector<Key>& keys) {
  Kokkos::View<Key*, Kokkos::HostSpace> view("keys", keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) view(i) = keys[i];
  return view;
}

template <class Key>
std::vector<Key> vector_of(const Kokkos::View<Key*, Kokkos::HostSpace>& view) {
  return {view.data(), view.data() + view.extent(0)};
}

template <class Key>
void expect_round_trip(const std::filesystem::path& path,
                       const std::vector<Key>& keys) {
  kindex::write_key_file(path, view_of(keys));
  EXPECT_EQ(std::filesystem::file_size(path), 8 + keys.size() * sizeof(Key));
  EXPECT_EQ(kindex::key_file_info(path).size, keys.size());
  EXPECT_EQ(vector_of(kindex::read_key_file<Key>(path)), keys);
}

void expect_says(const std::string& message, const std::string& part) {
  EXPECT_NE(message.find(part), std::string::npos)
      << "'" << message << "' does not say '" << part << "'";
}

TEST_F(KeyFile, RoundTripOf32Bits) {
  expect_round_trip<std::uint32_t>(path("some_uint32"),
                                   {0, 3, 3, 7, 0xffffffffu, 1});
}

TEST_F(KeyFile, RoundTripOf64Bits) {
  expect_round_trip<std::uint64_t>(
      path("some_uint64"), {std::numeric_limits<std::uint64_t>::max(), 0, 5});
}

TEST_F(KeyFile, RoundTripOfNoKeys) {
  expect_round_trip<std::uint64_t>(path("none_uint64"), {});
}

TEST_F(KeyFile, WrittenTwiceHoldsTheSecond) {
  expect_round_trip<std::uint32_t>(path("twice_uint32"), {1, 2, 3, 4});
  expect_round_trip<std::uint32_t>(path("twice_uint32"), {9});
}

TEST_F(KeyFile, TypeIsTheSuffixOfTheLastComponent) {
  EXPECT_EQ(kindex::key_file_type("a_uint64/b_uint32"),
            kindex::KeyFileType::uint32);
  EXPECT_EQ(kindex::key_file_type("/x/osm_cellids_800M_uint64"),
            kindex::KeyFileType::uint64);
  for (const char* name : {"a_uint64/b", "keys", "keys_uint16", "keys_int64",
                           "keys_uint64.bin", "uint64", ""})
    EXPECT_THROW(kindex::key_file_type(name), kindex::Error) << name;
}

TEST_F(KeyFile, WrongTypeIsRefused) {
  const auto file = path("some_uint32");
  kindex::write_key_file(file, view_of<std::uint32_t>({1, 2}));
  EXPECT_THROW(kindex::read_key_file<std::uint64_t>(file), kindex::Error);
  EXPECT_THROW(kindex::write_key_file(file, view_of<std::uint64_t>({1})),
               kindex::Error);
  EXPECT_EQ(kindex::key_file_info(file).size, 2u) << "was overwritten";
}

TEST_F(KeyFile, NoFile) {
  expect_says(refusal(path("absent_uint64")), "no file");
}

TEST_F(KeyFile, Folder) {
  std::filesystem::create_directory(path("folder_uint64"));
  expect_says(refusal(path("folder_uint64")), "not a regular file");
}

TEST_F(KeyFile, NoRoomForTheCount) {
  std::ofstream(path("short_uint64"), std::ios::binary) << "1234567";
  expect_says(refusal(path("short_uint64")), "at least 8 bytes, actual 7");
  std::ofstream(path("empty_uint32"), std::ios::binary) << "";
  expect_says(refusal(path("empty_uint32")), "at least 8 bytes, actual 0");
}

TEST_F(KeyFile, Truncated) {
  const std::string message = refusal(file("cut_uint64", 3, 23));
  expect_says(message, "expected 32 bytes");
  expect_says(message, "actual 31 bytes");
  expect_says(refusal(file("cut_uint32", 3, 8)), "expected 20 bytes");
}

TEST_F(KeyFile, BytesLeftOver) {
  const std::string message = refusal(file("long_uint32", 2, 9));
  expect_says(message, "expected 16 bytes");
  expect_says(message, "actual 17 bytes");
}

TEST_F(KeyFile, CountTooLargeIsNoticedBeforeAllocating) {
  // 2^50 keys: an allocation would throw something else than Error
  const auto large = file("large_uint64", std::uint64_t{1} << 50, 16);
  expect_says(refusal(large), "actual 24 bytes");
  EXPECT_THROW(kindex::read_key_file<std::uint64_t>(large), kindex::Error);
}

TEST_F(KeyFile, CountThatOverflowsIsRefused) {
  // 8 + count * 8 is 24 modulo 2^64, the very size of the file
  const std::uint64_t wraps = (std::uint64_t{1} << 61) + 2;
  expect_says(refusal(file("wraps_uint64", wraps, 16)), "more than 2^64 bytes");
  // 8 + count * 4 is 16 modulo 2^64
  const std::uint64_t wraps32 = (std::uint64_t{1} << 62) + 2;
  expect_says(refusal(file("wraps_uint32", wraps32, 8)),
              "more than 2^64 bytes");
  expect_says(refusal(file("most_uint64", ~std::uint64_t{0}, 0)),
              "more than 2^64 bytes");
  // 2^61 - 1 keys are 2^64 - 8 bytes: with the count one byte too many
  const std::uint64_t edge = (std::uint64_t{1} << 61) - 1;
  expect_says(refusal(file("edge_uint64", edge, 0)), "more than 2^64 bytes");
}

TEST_F(KeyFile, OtherByteOrderIsRefused) {
  const auto swapped = file("swapped_uint64", std::uint64_t{3} << 56, 24);
  expect_says(refusal(swapped), "actual 32 bytes");
}

TEST_F(KeyFile, CannotBeWritten) {
  EXPECT_THROW(kindex::write_key_file(path("no/such/folder_uint32"),
                                      view_of<std::uint32_t>({1})),
               kindex::Error);
}

TEST_F(KeyFile, StridedKeysAreRefused) {
  const Kokkos::View<std::uint32_t**, Kokkos::LayoutLeft, Kokkos::HostSpace>
      keys("keys", 2, 3);
  const auto row = Kokkos::subview(keys, 0, Kokkos::ALL);
  EXPECT_THROW(kindex::write_key_file(path("row_uint32"), row), kindex::Error);
}

}  // namespace
