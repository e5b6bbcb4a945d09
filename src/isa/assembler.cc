// SPDX-License-Identifier: Apache-2.0
// A scanner for one line, a parser for one instruction that follows the form of its opcode row, and
// a last step that resolves labels.
#include "isa/assembler.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "base/nearest.h"
#include "isa/opcode.h"

namespace clew::isa {
namespace {

enum class TokenKind : uint8_t { Word, Number, Punctuation };

struct Token {
  TokenKind kind;
  std::string_view text;
  size_t column;  // From 1.
};

constexpr uint32_t kMnemonicWordsMax = 3;  // "lock fetch add"

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '%' || c == '.' ||
         is_digit(c);
}
bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

std::vector<Token> scan(std::string_view line) {
  std::vector<Token> tokens;
  size_t at = 0;
  while (at < line.size() && line[at] != '#') {
    const size_t start = at++;
    if (is_space(line[start])) continue;
    TokenKind kind = TokenKind::Punctuation;
    if (is_word(line[start])) {
      kind = is_digit(line[start]) ? TokenKind::Number : TokenKind::Word;
      while (at < line.size() && is_word(line[at]))
        ++at;
    }
    tokens.push_back({kind, line.substr(start, at - start), start + 1});
  }
  return tokens;
}

// The whole text as a number: false when it is none or does not fit.
bool parse_unsigned(std::string_view text, uint64_t& value) {
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (hexadecimal) text.remove_prefix(2);
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, hexadecimal ? 16 : 10);
  return error == std::errc() && end == text.data() + text.size();
}

std::string nearest_mnemonic(std::string_view word) {
  std::vector<std::string_view> names;
  for (const OpcodeRow& row : opcode_table())
    names.push_back(row.mnemonic);
  return nearest_name(word, names);
}

class Assembler {
 public:
  explicit Assembler(std::string name) { program_.name = std::move(name); }

  Expected<Program> assemble(std::string_view text) {
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      CLEW_TRY(parse_line(text.substr(0, end)));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (program_.code.empty()) return fail(ErrorCode::InvalidQuery, "error: no instructions");
    for (const LabelUse& use : uses_)
      CLEW_TRY(resolve(use));
    return std::move(program_);
  }

 private:
  struct LabelUse {
    size_t instruction;
    bool far;  // The distance goes into the immediate.
    std::string_view name;
    size_t line;
    size_t column;
  };

  Expected<void> parse_line(std::string_view line) {
    ++line_;
    line_end_column_ = line.size() + 1;
    tokens_ = scan(line);
    next_ = 0;
    if (tokens_.size() >= 2 && tokens_[0].kind == TokenKind::Word && tokens_[1].text == ":") {
      CLEW_TRY(define_label(tokens_[0]));
      next_ = 2;
    }
    if (next_ == tokens_.size()) return {};
    CLEW_TRY(parse_instruction());
    if (program_.code.size() <= kInstructionsMax) return {};
    return fail(ErrorCode::Limit,
                fmt::format("{}:1: error: more than {} instructions", line_, kInstructionsMax));
  }

  Expected<void> define_label(const Token& name) {
    const bool is_new = labels_.emplace(name.text, program_.code.size()).second;
    if (!is_new) return error(name.column, fmt::format("label '{}' is already defined", name.text));
    return {};
  }

  Expected<void> parse_instruction() {
    const OpcodeRow* row = CLEW_TRY(take_mnemonic());
    CLEW_TRY(check_operand_count(*row));
    current_ = Instruction{row->opcode, 0, 0, 0};
    if (row->form == Form::Load64) return parse_load64(*row);
    CLEW_TRY(parse_operands(*row));
    if (next_ != tokens_.size()) return expected("the end of the line");
    program_.code.push_back(current_);
    return {};
  }

  // The longest run of words that is a mnemonic: "lock fetch add" before "lock".
  Expected<const OpcodeRow*> take_mnemonic() {
    std::string words;
    const OpcodeRow* row = nullptr;
    const size_t first = next_;
    for (size_t i = first; i < tokens_.size() && i < first + kMnemonicWordsMax; ++i) {
      if (tokens_[i].kind != TokenKind::Word || tokens_[i].text[0] == '%') break;
      if (i > first) words += ' ';
      words += tokens_[i].text;
      if (const OpcodeRow* longer = find_row(words)) {
        row = longer;
        next_ = i + 1;
      }
    }
    if (row) return row;
    const std::string nearest = nearest_mnemonic(words);
    return error(tokens_[first].column,
                 fmt::format("no instruction '{}'{}", words.empty() ? tokens_[first].text : words,
                             did_you_mean(nearest)));
  }

  static size_t operand_count(Form form) {
    switch (form) {
      case Form::Exit:
        return 0;
      case Form::Unary:
      case Form::Swap:
      case Form::Jump:
      case Form::JumpFar:
      case Form::CallAccessor:
      case Form::CallLocal:
        return 1;
      case Form::Binary:
      case Form::MoveSigned:
      case Form::Load:
      case Form::StoreImmediate:
      case Form::StoreRegister:
      case Form::Atomic:
      case Form::Load64:
        return 2;
      case Form::JumpIf:
        return 3;
    }
    return 0;
  }

  Expected<void> check_operand_count(const OpcodeRow& row) {
    size_t found = next_ < tokens_.size() ? 1 : 0;
    for (size_t i = next_; i < tokens_.size(); ++i)
      found += tokens_[i].text == "," ? 1 : 0;
    if (found == operand_count(row.form)) return {};
    return error(tokens_[0].column,
                 fmt::format("invalid number of operands for {}: found {}, expected {}",
                             row.mnemonic, found, operand_count(row.form)));
  }

  Expected<void> parse_operands(const OpcodeRow& row) {
    switch (row.form) {
      case Form::Binary:
        return parse_binary(row);
      case Form::MoveSigned:
        return parse_move_signed(row);
      case Form::Unary:
        return parse_destination();
      case Form::Swap:
        current_.immediate = row.selector;
        return parse_destination();
      case Form::Jump:
        return parse_target(false);
      case Form::JumpFar:
        return parse_target(true);
      case Form::JumpIf:
        return parse_jump_if();
      case Form::CallAccessor:
        return parse_accessor();
      case Form::CallLocal:
        set_source(static_cast<uint8_t>(row.selector));
        return parse_target(true);
      case Form::Exit:
        return {};
      case Form::Load:
        return parse_load();
      case Form::StoreImmediate:
        return parse_store(row, false);
      case Form::StoreRegister:
      case Form::Atomic:
        return parse_store(row, true);
      case Form::Load64:
        return {};  // Of two instructions: parse_load64().
    }
    return {};
  }

  Expected<void> parse_binary(const OpcodeRow& row) {
    current_.offset = static_cast<int16_t>(row.selector);
    CLEW_TRY(parse_destination());
    CLEW_TRY(take(","));
    return parse_source();
  }

  Expected<void> parse_move_signed(const OpcodeRow& row) {
    current_.offset = static_cast<int16_t>(row.selector);
    CLEW_TRY(parse_destination());
    CLEW_TRY(take(","));
    set_source(CLEW_TRY(take_register()));
    return {};
  }

  Expected<void> parse_jump_if() {
    CLEW_TRY(parse_destination());
    CLEW_TRY(take(","));
    CLEW_TRY(parse_source());
    CLEW_TRY(take(","));
    return parse_target(false);
  }

  Expected<void> parse_load() {
    CLEW_TRY(parse_destination());
    CLEW_TRY(take(","));
    set_source(CLEW_TRY(take_memory_operand()));
    return {};
  }

  Expected<void> parse_store(const OpcodeRow& row, bool from_register) {
    set_destination(CLEW_TRY(take_memory_operand()));
    CLEW_TRY(take(","));
    current_.immediate = row.selector;
    if (from_register) {
      set_source(CLEW_TRY(take_register()));
    } else {
      current_.immediate = CLEW_TRY(take_immediate());
    }
    return {};
  }

  Expected<void> parse_load64(const OpcodeRow& row) {
    CLEW_TRY(parse_destination());
    CLEW_TRY(take(","));
    const size_t value_column = column();
    const uint64_t value = CLEW_TRY(take_constant());
    if (next_ != tokens_.size()) return expected("the end of the line");
    CLEW_TRY(check_load64(row, value, value_column));
    set_source(static_cast<uint8_t>(row.selector));
    current_.immediate = static_cast<int32_t>(value);
    program_.code.push_back(current_);
    program_.code.push_back({0, 0, 0, static_cast<int32_t>(value >> 32)});
    return {};
  }

  Expected<void> check_load64(const OpcodeRow& row, uint64_t value, size_t value_column) {
    const auto kind = static_cast<Load64>(row.selector);
    if (kind == Load64::Window && value > std::numeric_limits<uint32_t>::max()) {
      return error(value_column, "a window offset of over 32 bits");
    }
    if (kind == Load64::Context && value != 0)
      return error(value_column, "an offset from the context");
    if (kind == Load64::SiteConstant) {
      if (value >= kSiteConstantsMax) {
        return error(value_column,
                     fmt::format("site constant {}, at most {} exist", value, kSiteConstantsMax));
      }
      const auto count = static_cast<uint32_t>(value) + 1;
      program_.site_constant_count = std::max(program_.site_constant_count, count);
    }
    return {};
  }

  Expected<void> parse_destination() {
    set_destination(CLEW_TRY(take_register()));
    return {};
  }

  Expected<void> parse_source() {
    if (next_ < tokens_.size() && tokens_[next_].text[0] == '%') {
      current_.opcode |= kSourceRegister;
      set_source(CLEW_TRY(take_register()));
    } else {
      current_.immediate = CLEW_TRY(take_immediate());
    }
    return {};
  }

  // A label, or a distance with its sign.
  Expected<void> parse_target(bool far) {
    const bool by_name = next_ < tokens_.size() && tokens_[next_].kind == TokenKind::Word;
    if (by_name) {
      const Token& name = tokens_[next_++];
      uses_.push_back({program_.code.size(), far, name.text, line_, name.column});
      return {};
    }
    if (!at_sign()) return expected("a label or a signed distance");
    const size_t distance_column = column();
    const int32_t distance = CLEW_TRY(take_immediate());
    return set_distance(current_, distance, {0, far, {}, line_, distance_column});
  }

  Expected<void> parse_accessor() {
    const bool by_name = next_ < tokens_.size() && tokens_[next_].kind == TokenKind::Word;
    if (!by_name) {
      current_.immediate = CLEW_TRY(take_immediate());
      return {};
    }
    const Token& name = tokens_[next_++];
    if (name.text[0] == '%') {
      return error(name.column,
                   "call through a register; only accessors and functions of the "
                   "program can be called");
    }
    std::vector<std::string_view> names;
    for (uint32_t i = 0; i < abi::kAccessorCount; ++i) {
      names.push_back(accessor_name(static_cast<abi::Accessor>(i)));
      if (names.back() != name.text) continue;
      current_.immediate = static_cast<int32_t>(i);
      return {};
    }
    const std::string nearest = nearest_name(name.text, names);
    return error(name.column, fmt::format("no accessor '{}'{}", name.text, did_you_mean(nearest)));
  }

  Expected<uint8_t> take_register() {
    if (next_ == tokens_.size() || tokens_[next_].text[0] != '%') return expected("a register");
    const Token& token = tokens_[next_++];
    uint64_t number = 0;
    const bool valid = token.text.starts_with("%r") && parse_unsigned(token.text.substr(2), number);
    if (!valid || number >= kRegisterCount) {
      return error(token.column,
                   fmt::format("invalid register {}; they are %r0 to %r10", token.text));
    }
    return static_cast<uint8_t>(number);
  }

  // [register], [register+offset], [register-offset]: sets the offset, returns the register.
  Expected<uint8_t> take_memory_operand() {
    CLEW_TRY(take("["));
    const uint8_t base = CLEW_TRY(take_register());
    if (at_sign()) {
      const size_t offset_column = column();
      const int32_t offset = CLEW_TRY(take_immediate());
      if (offset != static_cast<int16_t>(offset)) {
        return error(offset_column, "an offset of over 16 bits");
      }
      current_.offset = static_cast<int16_t>(offset);
    }
    CLEW_TRY(take("]"));
    return base;
  }

  struct Number {
    bool negative;
    bool hexadecimal;
    uint64_t magnitude;
  };

  Expected<Number> take_number() {
    Number number{};
    if (at_sign()) number.negative = tokens_[next_++].text == "-";
    if (next_ == tokens_.size() || tokens_[next_].kind != TokenKind::Number) {
      return expected("a number");
    }
    const Token& token = tokens_[next_++];
    number.hexadecimal = token.text.starts_with("0x") || token.text.starts_with("0X");
    if (!parse_unsigned(token.text, number.magnitude)) {
      return error(token.column, fmt::format("invalid number {}", token.text));
    }
    return number;
  }

  Expected<int32_t> take_immediate() {
    const size_t number_column = column();
    const Number number = CLEW_TRY(take_number());
    constexpr uint64_t kMax = std::numeric_limits<int32_t>::max();
    uint64_t limit = kMax;
    if (number.negative) limit = kMax + 1;
    if (number.hexadecimal && !number.negative) limit = std::numeric_limits<uint32_t>::max();
    if (number.magnitude > limit) return error(number_column, "an immediate of over 32 bits");
    return static_cast<int32_t>(number.negative ? 0 - number.magnitude : number.magnitude);
  }

  Expected<uint64_t> take_constant() {
    const size_t number_column = column();
    const Number number = CLEW_TRY(take_number());
    if (!number.negative) return number.magnitude;
    if (number.magnitude > uint64_t{1} << 63) {
      return error(number_column, "an immediate of over 64 bits");
    }
    return 0 - number.magnitude;
  }

  Expected<void> take(std::string_view punctuation) {
    if (next_ == tokens_.size() || tokens_[next_].text != punctuation) {
      return expected(fmt::format("'{}'", punctuation));
    }
    ++next_;
    return {};
  }

  Expected<void> resolve(const LabelUse& use) {
    const auto found = labels_.find(use.name);
    int64_t target = -1;
    if (found != labels_.end()) {
      target = static_cast<int64_t>(found->second);
    } else if (use.name == "exit") {
      target = first_exit();
    }
    if (target < 0) return unknown_label(use);
    const int64_t distance = target - static_cast<int64_t>(use.instruction) - 1;
    return set_distance(program_.code[use.instruction], distance, use);
  }

  [[nodiscard]] int64_t first_exit() const {
    const auto& code = program_.code;
    for (size_t at = 0; at < code.size(); ++at) {
      if (code[at].opcode == find_row("exit")->opcode) return static_cast<int64_t>(at);
      if (code[at].opcode == kLoad64Opcode) ++at;
    }
    return -1;
  }

  [[nodiscard]] tl::unexpected<Error> unknown_label(const LabelUse& use) const {
    std::vector<std::string_view> names;
    names.reserve(labels_.size());
    for (const auto& [name, at] : labels_)
      names.push_back(name);
    const std::string nearest = nearest_name(use.name, names);
    return error_at(use.line, use.column,
                    fmt::format("no label '{}'{}", use.name, did_you_mean(nearest)));
  }

  static Expected<void> set_distance(Instruction& branch, int64_t distance, const LabelUse& use) {
    if (use.far) {
      branch.immediate = static_cast<int32_t>(distance);
      return {};
    }
    if (distance != static_cast<int16_t>(distance)) {
      return error_at(use.line, use.column,
                      fmt::format("a branch over {} instructions does not fit 16 bits", distance));
    }
    branch.offset = static_cast<int16_t>(distance);
    return {};
  }

  [[nodiscard]] bool at_sign() const {
    return next_ < tokens_.size() && (tokens_[next_].text == "+" || tokens_[next_].text == "-");
  }

  [[nodiscard]] size_t column() const {
    return next_ < tokens_.size() ? tokens_[next_].column : line_end_column_;
  }

  void set_destination(uint8_t number) {
    current_.registers = static_cast<uint8_t>((current_.registers & 0xF0) | number);
  }
  void set_source(uint8_t number) {
    current_.registers = static_cast<uint8_t>((current_.registers & 0x0F) | number << 4);
  }

  [[nodiscard]] tl::unexpected<Error> expected(std::string_view what) const {
    const std::string found =
        next_ < tokens_.size() ? fmt::format("'{}'", tokens_[next_].text) : "the end of the line";
    return error(column(), fmt::format("found {}, expected {}", found, what));
  }

  [[nodiscard]] tl::unexpected<Error> error(size_t at_column, std::string_view what) const {
    return error_at(line_, at_column, what);
  }

  static tl::unexpected<Error> error_at(size_t line, size_t column, std::string_view what) {
    return fail(ErrorCode::InvalidQuery, fmt::format("{}:{}: error: {}", line, column, what));
  }

  Program program_;
  std::map<std::string_view, size_t> labels_;
  std::vector<LabelUse> uses_;
  size_t line_ = 0;
  // Of the line that is parsed now:
  size_t line_end_column_ = 1;
  std::vector<Token> tokens_;
  size_t next_ = 0;
  Instruction current_;
};

}  // namespace

Expected<Program> assemble(std::string_view text, std::string name) {
  return Assembler(std::move(name)).assemble(text);
}

}  // namespace clew::isa
