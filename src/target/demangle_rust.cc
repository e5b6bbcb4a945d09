// SPDX-License-Identifier: Apache-2.0
// Rust's v0 mangling, RFC 2603: a prefix grammar with back references, one member function per
// rule below. Back references can make a short name print without end, so depth and output have
// limits; a name beyond them counts as malformed.
#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "target/demangle.h"
#include "target/demangle_rust_parts.h"

namespace clew::target {
namespace {

constexpr size_t kOutputMaxBytes = 16384;
constexpr unsigned kNestingMax = 160;

// RFC 3492 with `_` as the delimiter.
class Punycode {
 public:
  static bool decode(std::string_view text, std::string& out) {
    std::vector<uint32_t> points;
    const size_t delimiter = text.rfind('_');
    if (delimiter != std::string_view::npos) {
      points.assign(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(delimiter));
      text.remove_prefix(delimiter + 1);
    }
    Punycode state;
    while (!text.empty()) {
      if (!state.insert_next(text, points)) return false;
    }
    for (const uint32_t point : points) {
      append_utf8(out, point);
    }
    return true;
  }

 private:
  static constexpr uint64_t kBase = 36;
  static constexpr uint64_t kThresholdMin = 1;
  static constexpr uint64_t kThresholdMax = 26;

  bool insert_next(std::string_view& text, std::vector<uint32_t>& points) {
    uint64_t weight = 1;
    uint64_t delta = 0;
    for (uint64_t k = kBase;; k += kBase) {
      if (text.empty()) return false;
      const char c = text.front();
      text.remove_prefix(1);
      const bool is_letter = c >= 'a' && c <= 'z';
      if (!is_letter && (c < '0' || c > '9')) return false;
      const auto digit = static_cast<uint64_t>(is_letter ? c - 'a' : c - '0' + 26);
      delta += digit * weight;
      const uint64_t threshold = k <= bias_                   ? kThresholdMin
                                 : k >= bias_ + kThresholdMax ? kThresholdMax
                                                              : k - bias_;
      if (digit < threshold) break;
      weight *= kBase - threshold;
      if (delta > UINT32_MAX || weight > UINT32_MAX) return false;
    }
    const uint64_t count = points.size() + 1;
    position_ += delta;
    code_ += position_ / count;
    position_ %= count;
    if (!is_scalar_value(code_)) return false;
    points.insert(points.begin() + static_cast<std::ptrdiff_t>(position_),
                  static_cast<uint32_t>(code_));
    ++position_;
    adapt(delta, count);
    return true;
  }

  void adapt(uint64_t delta, uint64_t count) {
    delta /= first_ ? 700 : 2;
    first_ = false;
    delta += delta / count;
    uint64_t k = 0;
    while (delta > (kBase - kThresholdMin) * kThresholdMax / 2) {
      delta /= kBase - kThresholdMin;
      k += kBase;
    }
    bias_ = k + (kBase - kThresholdMin + 1) * delta / (delta + 38);
  }

  uint64_t code_ = 128;
  uint64_t position_ = 0;
  uint64_t bias_ = 72;
  bool first_ = true;
};

std::string_view basic_type(char tag) {
  struct Basic {
    char tag;
    std::string_view name;
  };
  static constexpr std::array<Basic, 21> kBasics = {{
      {'a', "i8"},   {'b', "bool"},  {'c', "char"},  {'d', "f64"}, {'e', "str"}, {'f', "f32"},
      {'h', "u8"},   {'i', "isize"}, {'j', "usize"}, {'l', "i32"}, {'m', "u32"}, {'n', "i128"},
      {'o', "u128"}, {'p', "_"},     {'s', "i16"},   {'t', "u16"}, {'u', "()"},  {'v', "..."},
      {'x', "i64"},  {'y', "u64"},   {'z', "!"},
  }};
  for (const Basic& basic : kBasics) {
    if (basic.tag == tag) return basic.name;
  }
  return {};
}

struct Identifier {
  std::string_view text;
  bool is_punycode = false;
};

// The rules print as they parse. After a failure every rule returns at once.
class RustV0 {
 public:
  RustV0(std::string_view text, std::string& out) : text_(text), out_(out) {}

  bool symbol() {
    path(true);
    if (!failed_ && at_ < text_.size()) {  // The crate that instantiates it: not part of the name.
      silent_ = true;
      path(false);
    }
    return !failed_ && at_ == text_.size();
  }

 private:
  // Entered by every rule that can recurse.
  class Nesting {
   public:
    explicit Nesting(RustV0& parser) : parser_(parser) {
      if (++parser_.depth_ > kNestingMax) parser_.failed_ = true;
    }
    ~Nesting() { --parser_.depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    RustV0& parser_;
  };

  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  char next() {
    if (at_ >= text_.size()) {
      failed_ = true;
      return '\0';
    }
    return text_[at_++];
  }
  bool accept(char c) {
    if (failed_ || peek() != c) return false;
    ++at_;
    return true;
  }
  void print(std::string_view text) {
    if (silent_ || failed_) return;
    if (out_.size() + text.size() > kOutputMaxBytes) {
      failed_ = true;
      return;
    }
    out_ += text;
  }

  uint64_t base_62() {
    if (accept('_')) return 0;
    uint64_t value = 0;
    while (!accept('_')) {
      const char c = next();
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'z' ? c - 'a' + 10
                        : c >= 'A' && c <= 'Z' ? c - 'A' + 36
                                               : -1;
      if (digit < 0 || value > (UINT64_MAX - 62) / 62) failed_ = true;
      if (failed_) return 0;
      value = value * 62 + static_cast<uint64_t>(digit);
    }
    return value + 1;
  }
  uint64_t optional_base_62(char tag) { return accept(tag) ? base_62() + 1 : 0; }

  // A number has no leading zeros: "00" is two of them.
  size_t decimal() {
    if (accept('0')) return 0;
    size_t value = 0;
    const char* begin = text_.data() + at_;
    const auto parsed = std::from_chars(begin, text_.data() + text_.size(), value);
    if (parsed.ec != std::errc()) failed_ = true;
    at_ += static_cast<size_t>(parsed.ptr - begin);
    return value;
  }

  Identifier identifier() {
    Identifier result{.text = {}, .is_punycode = accept('u')};
    const size_t size = decimal();
    if (failed_) return result;
    accept('_');
    if (size > text_.size() - at_) {
      failed_ = true;
      return result;
    }
    result.text = text_.substr(at_, size);
    at_ += size;
    return result;
  }
  void print(const Identifier& name) {
    if (!name.is_punycode) return print(name.text);
    std::string decoded;
    print(Punycode::decode(name.text, decoded) ? decoded
                                               : fmt::format("punycode{{{}}}", name.text));
  }

  // Runs a rule at an earlier place. Only backwards, so that it ends; nesting bounds the rest.
  template <typename Rule>
  void back_reference(Rule rule) {
    const size_t tag_at = at_ - 1;
    const uint64_t target = base_62();
    if (failed_ || target >= tag_at) {
      failed_ = true;
      return;
    }
    if (silent_) return;
    const size_t resume = at_;
    at_ = target;
    rule();
    at_ = resume;
  }

  void path(bool in_value) {
    const Nesting nesting(*this);
    if (failed_) return;
    const char tag = next();
    if (tag == 'C') {
      optional_base_62('s');
      print(identifier());
    } else if (tag == 'N') {
      nested_path(in_value);
    } else if (tag == 'M' || tag == 'X' || tag == 'Y') {
      impl_path(tag);
    } else if (tag == 'I') {
      path(in_value);
      print(in_value ? "::<" : "<");
      list([this] { generic_argument(); });
      print(">");
    } else if (tag == 'B') {
      back_reference([this, in_value] { path(in_value); });
    } else {
      failed_ = true;
    }
  }

  void nested_path(bool in_value) {
    const char space = next();
    path(in_value);
    const uint64_t disambiguator = optional_base_62('s');
    const Identifier name = identifier();
    if (space >= 'A' && space <= 'Z') {
      print("::{");
      print(space == 'C' ? "closure" : space == 'S' ? "shim" : std::string_view(&space, 1));
      if (!name.text.empty()) print(":");
      print(name);
      print(fmt::format("#{}}}", disambiguator));
    } else if (space < 'a' || space > 'z') {
      failed_ = true;
    } else if (!name.text.empty()) {
      print("::");
      print(name);
    }
  }

  void impl_path(char tag) {
    if (tag != 'Y') {  // Where the impl is written: not part of the name.
      optional_base_62('s');
      const bool was_silent = std::exchange(silent_, true);
      path(false);
      silent_ = was_silent;
    }
    print("<");
    type();
    if (tag != 'M') {
      print(" as ");
      path(false);
    }
    print(">");
  }

  // Items up to 'E', with commas. The number of items.
  template <typename Item>
  unsigned list(Item item) {
    unsigned count = 0;
    while (!failed_ && !accept('E')) {
      if (count++ > 0) print(", ");
      item();
    }
    return count;
  }

  void generic_argument() {
    if (accept('L')) {
      lifetime(base_62());
    } else if (accept('K')) {
      constant();
    } else {
      type();
    }
  }

  void lifetime(uint64_t index) {
    if (index == 0) return print("'_");
    if (index > binders_) {
      failed_ = true;
      return;
    }
    const uint64_t depth = binders_ - index;
    print(depth < 26 ? fmt::format("'{}", static_cast<char>('a' + depth))
                     : fmt::format("'_{}", depth));
  }

  template <typename Body>
  void with_binder(Body body) {
    const uint64_t bound = optional_base_62('G');
    if (bound > 1000) failed_ = true;
    if (failed_) return;
    if (bound > 0) print("for<");
    for (uint64_t i = 0; i < bound; ++i) {
      if (i > 0) print(", ");
      ++binders_;
      lifetime(1);
    }
    if (bound > 0) print("> ");
    body();
    binders_ -= bound;
  }

  void type() {
    const Nesting nesting(*this);
    if (failed_) return;
    const char tag = next();
    const std::string_view basic = basic_type(tag);
    if (!basic.empty()) return print(basic);
    switch (tag) {
      case 'R':
      case 'Q':
        return reference(tag == 'Q');
      case 'P':
      case 'O':
        print(tag == 'P' ? "*const " : "*mut ");
        return type();
      case 'A':
      case 'S':
        return array(tag == 'A');
      case 'T':
        print("(");
        print(list([this] { type(); }) == 1 ? ",)" : ")");
        return;
      case 'F':
        return with_binder([this] { function_signature(); });
      case 'D':
        return dynamic_trait_object();
      case 'B':
        return back_reference([this] { type(); });
      default:
        --at_;
        return path(false);
    }
  }

  void reference(bool is_mutable) {
    print("&");
    if (accept('L')) {
      const uint64_t index = base_62();
      if (index > 0) {
        lifetime(index);
        print(" ");
      }
    }
    if (is_mutable) print("mut ");
    type();
  }

  void array(bool has_size) {
    print("[");
    type();
    if (has_size) {
      print("; ");
      constant();
    }
    print("]");
  }

  void function_signature() {
    if (accept('U')) print("unsafe ");
    if (accept('K')) {
      print("extern \"");
      if (accept('C')) {
        print("C");
      } else {
        std::string abi(identifier().text);
        std::replace(abi.begin(), abi.end(), '_', '-');
        print(abi);
      }
      print("\" ");
    }
    print("fn(");
    list([this] { type(); });
    print(")");
    if (accept('u')) return;  // Returns ().
    print(" -> ");
    type();
  }

  void dynamic_trait_object() {
    print("dyn ");
    with_binder([this] {
      bool first = true;
      while (!failed_ && !accept('E')) {
        if (!std::exchange(first, false)) print(" + ");
        dynamic_trait();
      }
    });
    if (!accept('L')) {
      failed_ = true;
      return;
    }
    const uint64_t index = base_62();
    if (index == 0) return;
    print(" + ");
    lifetime(index);
  }

  // A trait with its associated types: `Iterator<Item = u8>`.
  void dynamic_trait() {
    bool open = path_with_open_generics();
    while (accept('p')) {
      print(open ? ", " : "<");
      open = true;
      print(identifier());
      print(" = ");
      type();
    }
    if (open) print(">");
  }

  bool path_with_open_generics() {
    const Nesting nesting(*this);
    bool open = false;
    if (accept('B')) {
      back_reference([&] { open = path_with_open_generics(); });
    } else if (accept('I')) {
      path(false);
      print("<");
      list([this] { generic_argument(); });
      open = true;
    } else {
      path(false);
    }
    return open;
  }

  void constant() {
    const Nesting nesting(*this);
    if (failed_) return;
    if (accept('B')) return back_reference([this] { constant(); });
    const char tag = next();
    switch (tag) {
      case 'p':
        return print("_");
      case 'h':
      case 't':
      case 'm':
      case 'y':
      case 'o':
      case 'j':
        return integer_constant();
      case 'a':
      case 's':
      case 'l':
      case 'x':
      case 'n':
      case 'i':
        if (accept('n')) print("-");
        return integer_constant();
      case 'b':
      case 'c':
        return letter_constant(tag == 'b');
      default:
        failed_ = true;
    }
  }

  std::string_view hex_digits() {
    const size_t begin = at_;
    while (!failed_ && peek() != '_') {
      const char c = next();
      const bool is_hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
      if (!is_hex) failed_ = true;
    }
    const std::string_view digits = text_.substr(begin, at_ - begin);
    accept('_');
    return digits;
  }

  void integer_constant() {
    const std::string_view digits = hex_digits();
    uint64_t value = 0;
    if (digits.size() > 16) return print(fmt::format("0x{}", digits));
    std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    print(fmt::format("{}", value));
  }

  void letter_constant(bool is_bool) {
    const std::string_view digits = hex_digits();
    uint32_t value = 0;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    const bool valid = parsed.ec == std::errc() && (is_bool ? value <= 1 : is_scalar_value(value));
    if (!valid) {
      failed_ = true;
    } else if (is_bool) {
      print(value == 1 ? "true" : "false");
    } else {
      std::string character = "'";
      append_utf8(character, value);
      print(character + "'");
    }
  }

  std::string_view text_;
  std::string& out_;
  size_t at_ = 0;
  unsigned depth_ = 0;
  uint64_t binders_ = 0;
  bool silent_ = false;
  bool failed_ = false;
};

}  // namespace

void append_utf8(std::string& out, uint32_t code) {
  const auto continuation = [&](unsigned shift) {
    out += static_cast<char>(0x80 | ((code >> shift) & 0x3f));
  };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | (code >> 6));
    continuation(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | (code >> 12));
    continuation(6);
    continuation(0);
  } else {
    out += static_cast<char>(0xf0 | (code >> 18));
    continuation(12);
    continuation(6);
    continuation(0);
  }
}

bool is_scalar_value(uint64_t code) {
  return code < 0xd800 || (code >= 0xe000 && code <= 0x10ffff);
}

bool demangle_rust(std::string_view linkage, std::string& result) {
  result.clear();
  if (linkage.starts_with("_R")) return RustV0(linkage.substr(2), result).symbol();
  if (linkage.starts_with("_ZN")) return demangle_rust_legacy(linkage.substr(3), result);
  return false;
}

}  // namespace clew::target
