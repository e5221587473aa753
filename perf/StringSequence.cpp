// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "StringSequence.hpp"

#include "Zipf.hpp"

#include <algorithm>

namespace kindex::perf {
namespace {

constexpr std::uint64_t shortest = 4, lengths = 9, letters = 26;

constexpr std::uint64_t words_of(std::uint64_t length) {
  return length == 0 ? 1 : letters * words_of(length - 1);
}

/// Lengths take turns; the words of a length come in random order. Where a
/// length has no more, long words stand for it.
std::size_t write_word(std::uint64_t seed, std::uint64_t i, char* to) {
  std::uint64_t length = shortest + i % lengths, number = i / lengths;
  if (number >= words_of(length)) {
    number += length << 40;
    length = shortest + lengths - 1;
  }
  number = Permutation(words_of(length), seed + length)(number);
  for (std::uint64_t at = 0; at < length; ++at, number /= letters)
    to[at] = static_cast<char>('a' + number % letters);
  return length;
}

std::string word(std::uint64_t seed, std::uint64_t i) {
  char text[longest_string];
  return {text, write_word(seed, i, text)};
}

}  // namespace

StringSequence::StringSequence(StringGenerator generator, std::uint64_t seed)
    : generator_(generator), seed_(seed), first_(seed, 20), second_(seed, 21) {
  if (generator != StringGenerator::urls) return;
  constexpr std::string_view ends[] = {".com", ".org", ".net", ".edu"};
  const CounterRandom host(seed, 22), piece(seed, 23);
  const Zipf popular_host(100'000, 1), popular_piece(2'000, 1);
  for (std::uint64_t i = 0; i < 1 << 16; ++i) {
    const std::uint64_t rank = popular_host(host, i);
    hosts_.push_back(rank % 2 == 0 ? "www." : "");
    hosts_.back().append(word(seed + 1, rank)).append(ends[rank / 2 % 4]);
  }
  for (std::uint64_t i = 0; i < 1 << 12; ++i)
    pieces_.push_back(word(seed + 2, popular_piece(piece, i)));
}

std::size_t StringSequence::write(std::uint64_t i, char* to) const {
  switch (generator_) {
    case StringGenerator::words: return write_word(seed_, i, to);
    case StringGenerator::urls: return write_url(i, to);
    case StringGenerator::uuids: break;
  }
  return write_uuid(i, to);
}

/// Their last part, 10 digits, makes them different.
std::size_t StringSequence::write_url(std::uint64_t i, char* to) const {
  char* at = to;
  const auto append = [&at](std::string_view text) {
    at = std::copy(text.begin(), text.end(), at);
  };
  const std::uint64_t draw = first_(i), path = second_(i);
  append(draw % 4 == 0 ? "http://" : "https://");
  append(hosts_[(draw >> 2) % hosts_.size()]);
  const std::uint64_t pieces = 1 + (draw >> 32) % 4;
  for (std::uint64_t piece = 0; piece < pieces; ++piece) {
    append("/");
    append(pieces_[(path >> (16 * piece)) % pieces_.size()]);
  }
  append("/");
  constexpr std::uint64_t least = 1'000'000'000;
  append(std::to_string(least + Permutation(9 * least, seed_)(i)));
  return static_cast<std::size_t>(at - to);
}

/// RFC 9562, version 4: 122 random bits, 6 fixed.
std::size_t StringSequence::write_uuid(std::uint64_t i, char* to) const {
  constexpr std::string_view digits = "0123456789abcdef",
                             form = "xxxxxxxx-xxxx-4xxx-xxxx-xxxxxxxxxxxx";
  std::uint64_t hi = first_(i), lo = (second_(i) >> 2) | std::uint64_t{1} << 63;
  for (std::size_t at = 0; at < form.size(); ++at) {
    to[at] = form[at];
    if (form[at] == '-') continue;
    // The upper half has 16 digits and 2 dashes.
    std::uint64_t& half = at < 18 ? hi : lo;
    if (form[at] == 'x') to[at] = digits[half >> 60];
    half <<= 4;
  }
  return form.size();
}

}  // namespace kindex::perf
