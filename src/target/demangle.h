// SPDX-License-Identifier: Apache-2.0
// Names that compilers encode, made readable: C++ (Itanium ABI, through the C++ runtime's own
// demangler) and Rust (both manglings, demangle_rust.cc). Internal to target/.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

namespace clew::target {

struct Demangled {
  std::string_view text;   // `int ns::C<int>::f(long) const [clone .isra.0]`
  std::string_view plain;  // The part a user would call the name: `ns::C<int>::f`
};

// Names beyond this are left as they are: the C++ runtime's demangler recurses on them.
inline constexpr size_t kMangledMaxBytes = 16384;

// Demangles one name after the other and keeps its working memory between them. For one thread.
class Demangler {
 public:
  // Both empty when the name is not mangled (C), or malformed. Valid until the next call.
  Demangled demangle(std::string_view linkage);

 private:
  std::string_view demangle_cpp();

  std::string name_;  // With the NUL that the runtime wants.
  std::string result_;
  // The runtime's contract: it grows the buffer with realloc.
  std::unique_ptr<char, decltype(&std::free)> buffer_{nullptr, &std::free};
  size_t buffer_size_ = 0;
};

// Of a demangled C++ name: without return type, parameters, qualifiers, ABI tags at the end, and
// clone suffix. A view into `demangled`.
std::string_view plain_name(std::string_view demangled);

// Where the compiler's suffixes start in a linkage name: "foo.isra.0" gives 3, "foo" its size. A
// leading dot is part of the name.
size_t clone_suffix_at(std::string_view linkage);

// What the suffix says the symbol is.
enum class CloneKind : uint8_t {
  None,
  Copy,  // .isra .constprop .lto_priv .llvm .localalias …: the function itself in another dress
  Part,  // .part: a piece that is called
  Cold,  // .cold: a piece that is jumped to
};
CloneKind clone_kind(std::string_view linkage);

// Rust's two manglings: `_RNv…` and `_ZN…17h<hash>E`. False when the name is neither, or malformed;
// `result` is then undefined. The hash of the legacy form and disambiguators are left out.
bool demangle_rust(std::string_view linkage, std::string& result);

}  // namespace clew::target
