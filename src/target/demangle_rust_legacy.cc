// SPDX-License-Identifier: Apache-2.0
// Rust's legacy mangling: that of C++ for a path of names, the last of which is a hash.
#include <array>
#include <charconv>
#include <vector>

#include "target/demangle_rust_parts.h"

namespace clew::target {
namespace {

// The legacy mangling writes what C++ cannot hold as $XX$.
bool append_escape(std::string_view escape, std::string& out) {
  struct Escape {
    std::string_view code;
    std::string_view text;
  };
  static constexpr std::array<Escape, 8> kEscapes = {{{"SP", "@"},
                                                      {"BP", "*"},
                                                      {"RF", "&"},
                                                      {"LT", "<"},
                                                      {"GT", ">"},
                                                      {"LP", "("},
                                                      {"RP", ")"},
                                                      {"C", ","}}};
  for (const Escape& known : kEscapes) {
    if (known.code != escape) continue;
    out += known.text;
    return true;
  }
  if (!escape.starts_with('u')) return false;
  uint32_t code = 0;
  const char* end = escape.data() + escape.size();
  const auto parsed = std::from_chars(escape.data() + 1, end, code, 16);
  if (parsed.ec != std::errc() || parsed.ptr != end || !is_scalar_value(code) || code < 0x20) {
    return false;
  }
  append_utf8(out, code);
  return true;
}

bool append_legacy_part(std::string_view part, std::string& out) {
  if (part.starts_with("_$")) part.remove_prefix(1);
  while (!part.empty()) {
    size_t taken = 1;
    if (part.starts_with("..")) {
      out += "::";
      taken = 2;
    } else if (part.front() == '$') {
      const size_t end = part.find('$', 1);
      const bool closed = end != std::string_view::npos;
      if (!closed || !append_escape(part.substr(1, end - 1), out)) return false;
      taken = end + 1;
    } else {
      out += part.front();
    }
    part.remove_prefix(taken);
  }
  return true;
}

bool is_legacy_hash(std::string_view part) {
  return part.size() == 17 && part[0] == 'h' &&
         part.find_first_not_of("0123456789abcdef", 1) == std::string_view::npos;
}

}  // namespace

bool demangle_rust_legacy(std::string_view text, std::string& out) {
  std::vector<std::string_view> parts;
  while (!text.starts_with('E')) {
    size_t size = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), size);
    if (parsed.ec != std::errc()) return false;
    text.remove_prefix(static_cast<size_t>(parsed.ptr - text.data()));
    if (size == 0 || size > text.size()) return false;
    parts.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  if (text != "E" || parts.size() < 2 || !is_legacy_hash(parts.back())) return false;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    if (i > 0) out += "::";
    if (!append_legacy_part(parts[i], out)) return false;
  }
  return true;
}

}  // namespace clew::target
