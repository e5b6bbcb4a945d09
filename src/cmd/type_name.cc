// SPDX-License-Identifier: Apache-2.0
#include "cmd/type_name.h"

#include <cstdlib>
#include <memory>
#include <string_view>

#include <cxxabi.h>

namespace clew::cmd {
namespace {

constexpr size_t kNameBytesMax = 256;
constexpr size_t kTextBytesMax = 4096;

// How often a text can become twice as long at most, to the base of 2. Each reference to a part
// (S_, S1_, T_) can stand for all that is in front of it, and each expansion of a pack (Dp, sp)
// repeats its pattern for the elements, of which there are fewer than bytes in the name. Letters of
// identifiers that look like these count, too.
size_t doublings_in(std::string_view name) {
  constexpr size_t kOfPack = 8;
  constexpr std::string_view kOfNumber = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  size_t doublings = 0;
  for (size_t i = 0; i + 1 < name.size(); ++i) {
    const std::string_view two = name.substr(i, 2);
    if (two == "Dp" || two == "sp") doublings += kOfPack;
    if (two[0] != 'S' && two[0] != 'T') continue;
    const size_t end = name.find_first_not_of(kOfNumber, i + 1);
    doublings += end != std::string_view::npos && name[end] == '_' ? 1 : 0;
  }
  return doublings;
}

}  // namespace

std::string readable_type(const std::string& name) {
  constexpr size_t kDoublingsMax = 8;
  if (name.size() > kNameBytesMax || doublings_in(name) > kDoublingsMax) return name;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      ::abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  if (status != 0 || !text) return name;
  const std::string_view readable = text.get();
  return readable.size() > kTextBytesMax ? name : std::string(readable);
}

}  // namespace clew::cmd
