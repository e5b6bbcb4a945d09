// SPDX-License-Identifier: Apache-2.0
#include "target/demangle.h"

#include <array>
#include <cstdint>

#include <cxxabi.h>

namespace clew::target {

namespace {

struct Suffix {
  std::string_view word;
  CloneKind kind;
};
// GCC: clone_function_name() and its callers; LLVM: promotion and splitting of functions.
constexpr std::array<Suffix, 9> kSuffixes = {{{"isra", CloneKind::Copy},
                                              {"constprop", CloneKind::Copy},
                                              {"lto_priv", CloneKind::Copy},
                                              {"localalias", CloneKind::Copy},
                                              {"llvm", CloneKind::Copy},
                                              {"__uniq", CloneKind::Copy},
                                              {"cfi", CloneKind::Copy},
                                              {"part", CloneKind::Part},
                                              {"cold", CloneKind::Cold}}};

const Suffix* find_suffix(std::string_view word) {
  for (const Suffix& suffix : kSuffixes) {
    if (suffix.word == word) return &suffix;
  }
  return nullptr;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Takes one ".word" or ".word.number" off the end, or gives null.
const Suffix* take_suffix(std::string_view& name) {
  std::string_view rest = name;
  size_t dot = rest.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return nullptr;
  if (is_number(rest.substr(dot + 1))) {
    rest = rest.substr(0, dot);
    dot = rest.rfind('.');
    if (dot == std::string_view::npos || dot == 0) return nullptr;
  }
  const Suffix* suffix = find_suffix(rest.substr(dot + 1));
  if (suffix != nullptr) name = rest.substr(0, dot);
  return suffix;
}

bool is_identifier(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$' || static_cast<uint8_t>(c) >= 0x80;
}

size_t operator_symbol_size(std::string_view text) {
  static constexpr std::array<std::string_view, 41> kSymbols = {
      "()", "[]", "->*", "<=>", "<<=", ">>=", "->", "<<", ">>", "<=", ">=", "==",   "!=", "&&",
      "||", "++", "--",  "+=",  "-=",  "*=",  "/=", "%=", "&=", "|=", "^=", "+",    "-",  "*",
      "/",  "%",  "&",   "|",   "^",   "~",   "!",  "=",  "<",  ">",  ",",  "\"\"", "?"};
  for (const std::string_view symbol : kSymbols) {
    if (text.starts_with(symbol)) return symbol.size();
  }
  return 0;
}

// The parenthesis that the last byte of `text` closes, or npos.
size_t matching_open(std::string_view text) {
  size_t depth = 0;
  for (size_t i = text.size(); i-- > 0;) {
    if (text[i] == ')') ++depth;
    if (text[i] == '(' && --depth == 0) return i;
  }
  return std::string_view::npos;
}

bool take_end(std::string_view& text, std::string_view end) {
  if (!text.ends_with(end)) return false;
  text.remove_suffix(end.size());
  return true;
}

void drop_qualifiers(std::string_view& text) {
  while (take_end(text, " const") || take_end(text, " volatile") || take_end(text, " &") ||
         take_end(text, " &&") || take_end(text, " noexcept")) {
  }
}

void drop_clones(std::string_view& text) {
  while (text.ends_with(']')) {
    const size_t open = text.rfind(" [clone ");
    if (open == std::string_view::npos) return;
    text = text.substr(0, open);
  }
}

// Whether the space at `at` stands between a parameter list and its qualifier.
bool is_before_qualifier(std::string_view text, size_t at) {
  if (at == 0 || text[at - 1] == ' ') return false;
  for (const std::string_view word : {"const", "volatile", "&&", "&"}) {
    const std::string_view rest = text.substr(at + 1);
    if (!rest.starts_with(word)) continue;
    if (rest.size() == word.size() || !is_identifier(rest[word.size()])) return true;
  }
  return false;
}

constexpr std::string_view kOperator = "operator";

bool is_operator_at(std::string_view text, size_t at) {
  if (!text.substr(at).starts_with(kOperator)) return false;
  const size_t end = at + kOperator.size();
  return (at == 0 || !is_identifier(text[at - 1])) &&
         (end == text.size() || !is_identifier(text[end]));
}

// Of the operator's name that `text` starts with. Before template arguments there is a space:
// `operator< <int>`.
size_t operator_size(std::string_view text) {
  const size_t symbol = operator_symbol_size(text.substr(kOperator.size()));
  const size_t size = kOperator.size() + symbol;
  return symbol != 0 && text.substr(size).starts_with(" <") ? size + 1 : size;
}

// Where the declarator's name starts: behind the last space that separates the return type from it.
// Spaces inside brackets do not, nor those before the qualifiers of an enclosing function
// (`f() const::{lambda()#1}::operator()`), nor any in an operator's name.
size_t name_start(std::string_view text) {
  size_t start = 0;
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
      case '(':
      case '<':
      case '{':
      case '[':
        ++depth;
        break;
      case ')':
      case '}':
      case ']':
        --depth;
        break;
      case '>':
        if (i == 0 || text[i - 1] != '-') --depth;  // Not the arrow of `decltype (a->b)`.
        break;
      case ' ':
        if (depth == 0 && !is_before_qualifier(text, i)) start = i + 1;
        break;
      case 'o':
        if (!is_operator_at(text, i)) break;
        // A conversion, new or delete: all the rest is the name.
        if (depth == 0 && operator_symbol_size(text.substr(i + kOperator.size())) == 0)
          return start;
        i += operator_size(text.substr(i)) - 1;
        break;
      default:
        break;
    }
  }
  return start;
}

// Functions in their own right that print like the one they lead to.
bool is_thunk(std::string_view demangled) {
  static constexpr std::array<std::string_view, 7> kPrefixes = {
      "non-virtual thunk to ",     "virtual thunk to ",         "covariant return thunk to ",
      "transaction clone for ",    "TLS wrapper function for ", "TLS init function for ",
      "non-transaction clone for "};
  for (const std::string_view prefix : kPrefixes) {
    if (demangled.starts_with(prefix)) return true;
  }
  return false;
}

}  // namespace

size_t clone_suffix_at(std::string_view linkage) {
  if (linkage.find('.') == std::string_view::npos) return linkage.size();  // Nearly all.
  while (take_suffix(linkage) != nullptr) {
  }
  return linkage.size();
}

CloneKind clone_kind(std::string_view linkage) {
  if (linkage.find('.') == std::string_view::npos) return CloneKind::None;
  CloneKind kind = CloneKind::None;
  while (const Suffix* suffix = take_suffix(linkage)) {
    if (suffix->kind == CloneKind::Cold) return CloneKind::Cold;
    if (kind != CloneKind::Part) kind = suffix->kind;
  }
  return kind;
}

std::string_view plain_name(std::string_view demangled) {
  std::string_view text = demangled;
  drop_clones(text);
  drop_qualifiers(text);
  const bool thunk = is_thunk(text);
  if (text.ends_with(')') && !text.ends_with("operator()")) {
    const size_t open = matching_open(text);
    if (open == std::string_view::npos || open == 0) return demangled;
    text = text.substr(0, open);
  }
  // A function that returns a function pointer: `void (*name(int))(double)`.
  if (text.ends_with(')') && !text.ends_with("operator()")) {
    const size_t open = matching_open(text);
    const bool is_pointer = open != std::string_view::npos && text.substr(open).starts_with("(*");
    if (is_pointer && text.size() - open > 3) {
      return plain_name(text.substr(open + 2, text.size() - open - 3));
    }
  }
  if (!thunk) text = text.substr(name_start(text));
  while (text.ends_with(']')) {
    const size_t tag = text.rfind("[abi:");
    if (tag == std::string_view::npos || tag == 0) break;
    text = text.substr(0, tag);
  }
  return text.empty() ? demangled : text;
}

// The runtime grows the buffer that it is given with realloc, and gives it back.
std::string_view Demangler::demangle_cpp() {
  int status = 0;
  char* text = abi::__cxa_demangle(name_.c_str(), buffer_.get(), &buffer_size_, &status);
  if (status != 0 || text == nullptr) return {};
  (void)buffer_.release();
  buffer_.reset(text);
  return text;
}

Demangled Demangler::demangle(std::string_view linkage) {
  const size_t stem_size = clone_suffix_at(linkage);
  const std::string_view stem = linkage.substr(0, stem_size);
  const bool is_mangled = stem.starts_with("_Z") || stem.starts_with("_R");
  if (!is_mangled || linkage.size() > kMangledMaxBytes) return {};
  bool is_rust = demangle_rust(stem, result_);
  if (!is_rust) {
    name_ = stem;
    const std::string_view text = demangle_cpp();
    if (text.empty()) return {};
    result_ = text;
  }
  const std::string_view plain = is_rust ? std::string_view(result_) : plain_name(result_);
  const size_t plain_at = static_cast<size_t>(plain.data() - result_.data());
  const size_t plain_size = plain.size();
  if (stem_size < linkage.size()) {
    result_ += " [clone ";
    result_ += linkage.substr(stem_size);
    result_ += "]";
  }
  const std::string_view all = result_;
  return {.text = all, .plain = all.substr(plain_at, plain_size)};
}

}  // namespace clew::target
