// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KeySpec.hpp"

#include <kindex/Error.hpp>
#include <kindex/io/KeyFile.hpp>

#include <charconv>
#include <limits>
#include <system_error>

namespace kindex::perf {
namespace {

std::string known_string_generators() {
  std::string names;
  for (const GeneratorInfo& info : string_generators)
    names += (names.empty() ? "" : ", ") + std::string(info.name);
  return names;
}

std::string known_generators() {
  std::string names;
  for (const GeneratorInfo& info : generators)
    names += std::string(info.name) + ", ";
  return names + known_string_generators();
}

std::string known_types() {
  std::string names;
  for (std::string_view name : key_type_names)
    names += std::string(name) + ", ";
  return names + std::string(string_type_name);
}

[[noreturn]] void fail(const std::string& text, const std::string& why) {
  throw Error("--keys " + text + ": " + why);
}

KeySpec generated(const std::string& text) {
  const std::size_t first = text.find(':');
  const std::size_t second = text.find(':', first + 1);
  if (second == std::string::npos ||
      text.find(':', second + 1) != std::string::npos)
    fail(text,
         "a generated set is written GENERATOR:TYPE:N, for instance "
         "uniform:u32:10M");
  const std::string generator = text.substr(0, first);
  const std::string type = text.substr(first + 1, second - first - 1);

  KeySpec spec;
  spec.generator = generator_named(generator);
  spec.strings = string_generator_named(generator);
  if (!spec.generator && !spec.strings)
    fail(text, "there is no generator '" + generator + "'; known are " +
                   known_generators());
  const auto key_type = key_type_named(type);
  if (!key_type)
    fail(text,
         "there is no key type '" + type + "'; known are " + known_types());
  spec.type = *key_type;
  if (spec.strings && spec.type != KeyType::str)
    fail(text, generator + " are strings: write " + generator +
                   ":str:" + text.substr(second + 1));
  if (!spec.strings && spec.type == KeyType::str)
    fail(text, "generators of strings are " + known_string_generators());
  if (spec.generator == Generator::uuid && spec.type != KeyType::k128)
    fail(text,
         "UUIDs have 16 bytes: write uuid:k128:" + text.substr(second + 1));
  spec.size = parse_count(text.substr(second + 1), "--keys " + text);
  return spec;
}

KeySpec from_file(const std::string& text) {
  KeySpec spec;
  spec.file = text;
  std::error_code error;
  if (!std::filesystem::exists(spec.file, error))
    fail(text,
         "neither an existing file nor GENERATOR:TYPE:N (for instance "
         "uniform:u32:10M); generators are " +
             known_generators());
  const KeyFileInfo info = key_file_info(spec.file);
  spec.type = info.type == KeyFileType::uint32 ? KeyType::u32 : KeyType::u64;
  spec.size = info.size;
  if (spec.size == 0) fail(text, "the file holds no keys");
  return spec;
}

}  // namespace

std::string KeySpec::set_name() const {
  if (generator) return std::string(name_of(*generator));
  if (strings) return std::string(name_of(*strings));
  std::string name = file.filename().string();
  const auto is_control = [](unsigned char c) { return c < 32 || c == 127; };
  for (char& c : name)  // would split a benchmark name, or a line
    if (c == '/' || c == ',' || c == ' ' || c == '"' || is_control(c)) c = '_';
  return name;
}

std::string KeySpec::description() const {
  return std::to_string(size) + " " + std::string(name_of(type)) + " keys (" +
         set_name() + ")";
}

KeySpec parse_key_spec(const std::string& text) {
  std::error_code error;
  const bool is_file = std::filesystem::exists(text, error);
  KeySpec spec = !is_file && text.find(':') != std::string::npos
                     ? generated(text)
                     : from_file(text);
  if (spec.size > most_keys)
    fail(text, std::to_string(spec.size) +
                   " keys are more than kindex_bench measures: its row ids and "
                   "ranks have 32 bits, so at most " +
                   std::to_string(most_keys));
  return spec;
}

std::uint64_t parse_count(std::string_view text, const std::string& what) {
  const auto bad = [&]() -> std::uint64_t {
    throw Error(what + ": '" + std::string(text) +
                "' is not a count; write it like 1000000, 10M, 2^24 or 1e7");
  };
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || number == 0) return bad();

  std::uint64_t base = 1, power = 1;
  if (rest != end && (*rest == '^' || *rest == 'e')) {
    base = *rest == '^' ? number : 10;
    if (*rest == '^') number = 1;
    auto [after, exponent_error] = std::from_chars(rest + 1, end, power);
    if (exponent_error != std::errc{} || after != end || power > 64)
      return bad();
  } else if (rest != end) {
    base = *rest == 'k' ? 1'000 : *rest == 'M' ? 1'000'000 : 1'000'000'000;
    if ((*rest != 'k' && *rest != 'M' && *rest != 'G') || rest + 1 != end)
      return bad();
  }
  for (std::uint64_t i = 0; i < power; ++i) {
    if (number > std::numeric_limits<std::uint64_t>::max() / base)
      throw Error(what + ": '" + std::string(text) + "' exceeds 64 bits");
    number *= base;
  }
  return number;
}

}  // namespace kindex::perf
