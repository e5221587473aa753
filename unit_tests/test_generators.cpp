// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The key sets of kindex_bench: the same everywhere, shaped as promised, and
// asked for in words that are checked.
#include <gtest/gtest.h>
#include <Generators.hpp>
#include <KeySpec.hpp>
#include <KeyType.hpp>
#include <Random.hpp>
#include <Zipf.hpp>
#include <kindex/Error.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace kindex::perf {
namespace {

template <class Key>
std::vector<Key> generated(Generator generator, std::size_t n,
                           std::uint64_t seed = default_seed) {
  std::vector<Key> keys(n);
  generate<Key>(generator, seed, std::span<Key>(keys));
  return keys;
}

template <class Key>
std::vector<Key> sorted(std::vector<Key> keys) {
  std::sort(keys.begin(), keys.end());
  return keys;
}

template <class Key>
std::size_t distinct(const std::vector<Key>& keys) {
  auto copy = sorted(keys);
  return static_cast<std::size_t>(std::unique(copy.begin(), copy.end()) -
                                  copy.begin());
}

/// A hash of all bytes, in which any change shows.
template <class Key>
std::uint64_t fingerprint(const std::vector<Key>& keys) {
  std::uint64_t hash = 0;
  const auto* bytes = reinterpret_cast<const unsigned char*>(keys.data());
  for (std::size_t i = 0; i < keys.size() * sizeof(Key); ++i)
    hash = mix(hash ^ bytes[i]);
  return hash;
}

// ---- the same on every machine
// -----------------------------------------------

/// Fingerprints of 1000 keys; recorded once, they must never change.
struct Golden {
  const char* generator;
  std::uint64_t u32, u64, i64, f64;
};
constexpr Golden golden[] = {
    {"uniform", 0x16e183d2ad18a74au, 0x6e719db0f4793484u, 0x81f35cee1986181cu,
     0x310402cf3872a002u},
    {"dense", 0xc0fcbbe97bd4c76au, 0x1e6e3205f30c0795u, 0x94081956bd8793ebu,
     0x8672b65316ea1e1u},
    {"normal", 0x4b024f2067d9e349u, 0x857026d0318eb45cu, 0xaea312d5844f10du,
     0x8005c705aaf4072fu},
    {"lognormal", 0x22a396d687a73ac8u, 0xb779efc82fb1d740u, 0xaa17c66a19f691bbu,
     0x99d1ad6aea2e94bu},
    {"exponential", 0x9b46d5700440a58u, 0x80ed198d450493bbu,
     0xbf0fc75b5f226112u, 0xe7c62cc732ea0649u},
    {"books", 0xf916de00b47d61ffu, 0x1c15b732901007abu, 0x6b5410b48e90ddebu,
     0x2e966d0932777ea5u},
    {"fb", 0x70e65882bb5a6184u, 0x7ee2d518ca245014u, 0x8ee201b2a2659a39u,
     0x1c6896a3572f43b2u},
    {"wiki", 0xb35624971eb82700u, 0x128102380e4673d6u, 0xa082d76845c25d59u,
     0xd5885c0d0541f374u},
    {"osm", 0x71b70a299d854642u, 0xc6bade0a42a3383au, 0x36383d2775c36d34u,
     0xc6ea87ae87937298u},
    {"isbn", 0x32f67fbf76ba301fu, 0x1a7ce669ba21a68fu, 0xfdec86c367c7cdb2u,
     0xd4dd1122e1b5bd46u},
    {"uuid", 0x16e183d2ad18a74au, 0x98385184ee8e4d41u, 0x7ea39ea19c221784u,
     0x382abcb5cd999da8u},
};

TEST(Generators, SameOnEveryMachine) {
  for (const Golden& row : golden) {
    const Generator generator = *generator_named(row.generator);
    EXPECT_EQ(fingerprint(generated<std::uint32_t>(generator, 1000)), row.u32)
        << row.generator;
    EXPECT_EQ(fingerprint(generated<std::uint64_t>(generator, 1000)), row.u64)
        << row.generator;
    EXPECT_EQ(fingerprint(generated<std::int64_t>(generator, 1000)), row.i64)
        << row.generator;
    EXPECT_EQ(fingerprint(generated<double>(generator, 1000)), row.f64)
        << row.generator;
  }
}

TEST(Generators, FirstUniformKeys) {
  const auto keys = generated<std::uint32_t>(Generator::uniform, 4);
  EXPECT_EQ(keys, (std::vector<std::uint32_t>{1045903027u, 991789929u,
                                              3255471717u, 1234214456u}));
}

TEST(Generators, SeedChangesTheSet) {
  for (const GeneratorInfo& info : generators) {
    const Generator generator = *generator_named(info.name);
    EXPECT_NE(generated<std::uint64_t>(generator, 1000, 1),
              generated<std::uint64_t>(generator, 1000, 2))
        << info.name;
  }
}

// ---- shaped as promised
// ------------------------------------------------------

TEST(Generators, EveryTypeOfEverySet) {
  for (const GeneratorInfo& info : generators) {
    const Generator generator = *generator_named(info.name);
    for (std::string_view type : key_type_names)
      for (std::size_t n : {0u, 1u, 2u, 17u, 1000u})
        with_key_type(*key_type_named(type), [&]<class Key>() {
          for (const Key& key : generated<Key>(generator, n))
            ASSERT_TRUE(!(key < key) && key == key) << info.name << type;
        });
  }
}

TEST(Generators, DenseHasNoGaps) {
  for (std::size_t n : {1u, 2u, 3u, 64u, 1000u, 65537u}) {
    const auto keys = sorted(generated<std::uint32_t>(Generator::dense, n));
    for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(keys[i], i);
  }
  const auto keys = sorted(generated<std::int32_t>(Generator::dense, 1000));
  EXPECT_EQ(keys.front(), -500);
  EXPECT_EQ(keys.back(), 499);
  EXPECT_EQ(distinct(keys), 1000u);
}

TEST(Generators, SetsComeInRandomOrder) {
  for (const GeneratorInfo& info : generators) {
    const auto keys = generated<Key128>(*generator_named(info.name), 10000);
    std::size_t ascents = 0;
    for (std::size_t i = 1; i < keys.size(); ++i)
      ascents += keys[i - 1] < keys[i] ? 1 : 0;
    EXPECT_GT(ascents, 4500u) << info.name;
    EXPECT_LT(ascents, 5500u) << info.name;
  }
}

TEST(Generators, UniformFillsTheRange) {
  const auto keys =
      sorted(generated<std::uint32_t>(Generator::uniform, 100000));
  EXPECT_LT(keys.front(), 1u << 20);
  EXPECT_GT(keys.back(), ~0u - (1u << 20));
  EXPECT_NEAR(keys[50000] / 4294967296.0, 0.5, 0.01);
  const auto bytes = generated<std::int8_t>(Generator::uniform, 100000);
  EXPECT_EQ(distinct(bytes), 256u);
}

TEST(Generators, NormalHasItsMoments) {
  const auto keys = generated<double>(Generator::normal, 200000);
  double sum = 0, squares = 0;
  for (double key : keys) {
    sum += key;
    squares += key * key;
  }
  EXPECT_NEAR(sum / 200000, 0, 0.01);
  EXPECT_NEAR(squares / 200000, 1, 0.02);
}

TEST(Generators, ExponentialAndLognormalHaveTheirMedians) {
  const auto exponential =
      sorted(generated<double>(Generator::exponential, 200000));
  EXPECT_NEAR(exponential[100000], std::log(2.0), 0.01);
  EXPECT_GT(exponential.front(), 0);
  const auto lognormal =
      sorted(generated<double>(Generator::lognormal, 200000));
  EXPECT_NEAR(lognormal[100000], 1, 0.03);
  EXPECT_NEAR(std::log(lognormal[168269]), 2, 0.05) << "one sigma up";
}

TEST(Generators, FbHasFewOutliersUpToTheMaximum) {
  const auto keys = sorted(generated<std::uint64_t>(Generator::fb, 100000));
  EXPECT_EQ(keys.back(), ~std::uint64_t{0});
  const auto inside = static_cast<std::size_t>(
      std::upper_bound(keys.begin(), keys.end(), (std::uint64_t{1} << 46) - 1) -
      keys.begin());
  EXPECT_EQ(inside, 100000u - 21);
  EXPECT_NEAR(static_cast<double>(keys[50000]) * 0x1p-46, 0.5, 0.01);
}

TEST(Generators, WikiHasBurstsOfEqualKeys) {
  const auto keys = generated<std::uint64_t>(Generator::wiki, 100000);
  const std::size_t different = distinct(keys);
  EXPECT_LT(different, 90000u);
  EXPECT_GT(different, 30000u);
  EXPECT_GE(*std::min_element(keys.begin(), keys.end()), 979'000'000u);
}

TEST(Generators, OsmIsClustered) {
  // Of 256 equal parts of the range, some hold far more than others.
  std::vector<std::size_t> parts(256);
  for (std::uint64_t key : generated<std::uint64_t>(Generator::osm, 100000))
    ++parts[key >> 56];
  std::sort(parts.begin(), parts.end());
  EXPECT_EQ(parts.front(), 0u);
  EXPECT_GT(parts.back(), 4 * 100000u / 256);
}

TEST(Generators, IsbnHasValidCheckDigits) {
  const auto keys = generated<std::uint64_t>(Generator::isbn, 10000);
  EXPECT_EQ(distinct(keys), 10000u);
  for (std::uint64_t key : keys) {
    EXPECT_EQ(key / 10'000'000'000u, 978u);
    std::uint64_t sum = 0;
    for (std::uint64_t rest = key, weight = 1; rest > 0;
         rest /= 10, weight = 4 - weight)
      sum += rest % 10 * weight;
    EXPECT_EQ(sum % 10, 0u) << key;
  }
}

TEST(Generators, UuidIsVersion4) {
  for (const Key128& key : generated<Key128>(Generator::uuid, 1000)) {
    EXPECT_EQ((key.hi >> 12) & 15, 4u);
    EXPECT_EQ(key.lo >> 62, 2u);
  }
}

// ---- what they are made of
// ---------------------------------------------------

TEST(Permutation, HitsEveryPlaceOnce) {
  for (std::uint64_t n : {1u, 2u, 3u, 5u, 16u, 17u, 1000u, 4096u, 4097u}) {
    const Permutation permutation(n, 7);
    std::set<std::uint64_t> places;
    for (std::uint64_t i = 0; i < n; ++i) {
      const std::uint64_t place = permutation(i);
      ASSERT_LT(place, n);
      places.insert(place);
    }
    EXPECT_EQ(places.size(), n);
  }
}

TEST(Zipf, FrequenciesFollowTheLaw) {
  constexpr std::uint64_t n = 1000, draws = 200000;
  for (double theta : {0.5, 0.99, 1.0, 1.00001, 1.5, 3.0}) {
    const Zipf zipf(n, theta);
    const CounterRandom random(1, 1);
    std::vector<double> frequency(n);
    for (std::uint64_t i = 0; i < draws; ++i) {
      const std::uint64_t rank = zipf(random, i);
      ASSERT_LT(rank, n);
      frequency[rank] += 1.0 / draws;
    }
    double norm = 0;
    for (std::uint64_t k = 1; k <= n; ++k)
      norm += std::pow(static_cast<double>(k), -theta);
    for (std::uint64_t k : {1u, 2u, 3u, 10u})
      EXPECT_NEAR(frequency[k - 1], std::pow(k, -theta) / norm, 0.005)
          << "theta " << theta << ", rank " << k;
  }
}

TEST(Zipf, OneItem) {
  const Zipf zipf(1, 0.99);
  for (std::uint64_t i = 0; i < 100; ++i)
    EXPECT_EQ(zipf(CounterRandom(1, 1), i), 0u);
}

// ---- asked for in words
// ------------------------------------------------------

TEST(KeySpec, Generated) {
  const KeySpec spec = parse_key_spec("wiki:i64:10M");
  EXPECT_EQ(spec.generator, Generator::wiki);
  EXPECT_EQ(spec.type, KeyType::i64);
  EXPECT_EQ(spec.size, 10'000'000u);
  EXPECT_EQ(spec.set_name(), "wiki");
  for (const GeneratorInfo& info : generators)
    for (std::string_view type : key_type_names)
      if (info.name != "uuid" || type == "k128")
        EXPECT_EQ(name_of(parse_key_spec(std::string(info.name) + ':' +
                                         std::string(type) + ":5")
                              .type),
                  type);
}

TEST(KeySpec, FileNamesDoNotSplitBenchmarkNames) {
  KeySpec spec;
  spec.file = "keys/a b,c\"d\ne\tf\x1b\x7fg-\xc3\xa9_uint32";
  EXPECT_EQ(spec.set_name(), "a_b_c_d_e_f__g-\xc3\xa9_uint32");
}

TEST(KeySpec, Counts) {
  EXPECT_EQ(parse_count("1", "x"), 1u);
  EXPECT_EQ(parse_count("10k", "x"), 10'000u);
  EXPECT_EQ(parse_count("3M", "x"), 3'000'000u);
  EXPECT_EQ(parse_count("2G", "x"), 2'000'000'000u);
  EXPECT_EQ(parse_count("2^24", "x"), std::uint64_t{1} << 24);
  EXPECT_EQ(parse_count("5e3", "x"), 5000u);
  EXPECT_EQ(parse_count("2^63", "x"), std::uint64_t{1} << 63);
  for (const char* bad :
       {"", "0", "-1", "x", "10Q", "10Mx", "2^", "2^x", "1e", "2^64", "1e20",
        "99999999999999999999", "10^1000000", "1.5M", " 1", "20000000000G"})
    EXPECT_THROW(parse_count(bad, "x"), Error) << "'" << bad << "'";
}

/// What is said about a specification that must be refused.
std::string refusal(const std::string& text) {
  try {
    parse_key_spec(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(KeySpec, RefusalsHelp) {
  const auto expect_says = [](const std::string& text,
                              const std::string& part) {
    const std::string message = refusal(text);
    EXPECT_NE(message.find(part), std::string::npos)
        << "'" << message << "' does not say '" << part << "'";
    EXPECT_NE(message.find(text), std::string::npos) << message;
  };
  expect_says("uniforn:u32:10M", "no generator 'uniforn'; known are uniform");
  expect_says("uniform:u33:10M", "no key type 'u33'; known are u8, u16");
  expect_says("uniform:u32:ten", "'ten' is not a count");
  expect_says("uniform:u32:0", "'0' is not a count");
  expect_says("uniform:u32", "GENERATOR:TYPE:N");
  expect_says("uniform:u32:1:2", "GENERATOR:TYPE:N");
  expect_says("uuid:u64:10", "write uuid:k128:10");
  expect_says("uniform:u8:2^32", "at most 4294967294");
  expect_says("no_such_file", "neither an existing file nor");
}

}  // namespace
}  // namespace kindex::perf
