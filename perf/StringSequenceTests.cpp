// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "StringSequence.hpp"

#include "KeySpec.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace kindex::perf {
namespace {

std::vector<std::string> strings(StringGenerator generator, std::uint64_t first,
                                 std::uint64_t count,
                                 std::uint64_t seed = default_seed) {
  const StringSequence sequence(generator, seed);
  std::vector<std::string> all;
  for (std::uint64_t i = first; i < first + count; ++i) {
    std::string text(longest_string, '\0');
    text.resize(sequence.write(i, text.data()));
    EXPECT_EQ(sequence.size(i), text.size());
    all.push_back(text);
  }
  return all;
}

TEST(StringSequence, SameOnEveryMachine) {
  EXPECT_EQ(strings(StringGenerator::words, 0, 3),
            (std::vector<std::string>{"xjif", "hejem", "qvfpdx"}));
  EXPECT_EQ(strings(StringGenerator::urls, 0, 2),
            (std::vector<std::string>{
                "https://hraekitttwtz.com/oykhxnaigwmi/ssmuizzdb/4437086925",
                "https://errurczw.edu/vxlvqkhwwx/8853978897"}));
  EXPECT_EQ(strings(StringGenerator::uuids, 0, 1),
            (std::vector<std::string>{"42053995-1f14-4287-ac03-cbb8802b2780"}));
}

TEST(StringSequence, StringsAreDifferent) {
  // More than there are words of 4 letters in their turn.
  constexpr std::uint64_t first = 9 * 26 * 26 * 26 * 26 - 100'000,
                          count = 300'000;
  for (const GeneratorInfo& info : string_generators) {
    const auto all = strings(*string_generator_named(info.name), first, count);
    EXPECT_EQ(std::set(all.begin(), all.end()).size(), count) << info.name;
    EXPECT_NE(strings(*string_generator_named(info.name), first, 10, 1),
              strings(*string_generator_named(info.name), first, 10, 2));
  }
}

TEST(StringSequence, Words) {
  std::set<std::size_t> lengths;
  for (const std::string& word : strings(StringGenerator::words, 0, 10'000)) {
    lengths.insert(word.size());
    for (char c : word) ASSERT_TRUE('a' <= c && c <= 'z') << word;
  }
  EXPECT_EQ(lengths, (std::set<std::size_t>{4, 5, 6, 7, 8, 9, 10, 11, 12}));
}

TEST(StringSequence, Urls) {
  for (const std::string& url : strings(StringGenerator::urls, 0, 10'000)) {
    ASSERT_TRUE(url.starts_with("http") && url.size() >= 30 &&
                url.size() <= longest_string)
        << url;
    const auto slashes = std::count(url.begin(), url.end(), '/');
    ASSERT_TRUE(slashes >= 4 && slashes <= 7) << url;
  }
}

TEST(StringSequence, Uuids) {
  for (const std::string& uuid : strings(StringGenerator::uuids, 0, 10'000)) {
    ASSERT_EQ(uuid.size(), 36u);
    for (std::size_t i = 0; i < uuid.size(); ++i)
      ASSERT_EQ(uuid[i] == '-', i == 8 || i == 13 || i == 18 || i == 23);
    ASSERT_EQ(uuid[14], '4');
    ASSERT_NE(std::string("89ab").find(uuid[19]), std::string::npos);
  }
}

TEST(StringSequence, AsKeys) {
  const KeySpec spec = parse_key_spec("urls:str:10M");
  EXPECT_EQ(spec.strings, StringGenerator::urls);
  EXPECT_EQ(spec.type, KeyType::str);
  EXPECT_EQ(spec.size, 10'000'000u);
  EXPECT_EQ(spec.set_name(), "urls");
  EXPECT_EQ(name_of(spec.type), "str");
}

}  // namespace
}  // namespace kindex::perf
