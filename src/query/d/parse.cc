// SPDX-License-Identifier: Apache-2.0
// The frame of the parser: its tokens, and what kind of item stands next.
#include "query/d/parse.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "query/d/parser.h"
#include "query/d/switch_word.h"

namespace clew::query::d {
namespace {

// Words that begin a declaration, unless they are part of a probe description ("string:::").
constexpr std::array<std::string_view, 29> kDeclarationWords = {
    "auto",     "char",   "const",    "double",   "enum",         "extern",  "float", "inline",
    "int",      "long",   "provider", "register", "restrict",     "self",    "short", "signed",
    "static",   "string", "struct",   "this",     "translator",   "typedef", "union", "unsigned",
    "userland", "void",   "volatile", "_Bool",    "__extension__"};

constexpr std::string_view kDescriptionOnly = "-.?$[\\!";

}  // namespace

Compiled<Program> parse(std::string_view text, const CompileOptions& options, TypeTable& types) {
  if (text.size() > kProgramBytesMax)
    return compile_error("D_SYNTAX", "program text is too large", 0);
  Parser parser(text, options, types);
  auto program = parser.run();
  if (!program) program.error().is_tagged = parser.wants_tags();
  return program;
}

Compiled<std::vector<ProviderDefinition>> parse_providers(std::string_view text,
                                                          const CompileOptions& options,
                                                          TypeTable& types) {
  if (text.size() > kProgramBytesMax)
    return compile_error("D_SYNTAX", "program text is too large", 0);
  Parser parser(text, options, types);
  CLEW_TRY(parser.run());
  return parser.take_providers();
}

// --- tokens --------------------------------------------------------------------------------------

Compiled<void> Parser::advance() {
  last_end_ = here_.span.end;
  here_ = CLEW_TRY(lexer_.next());
  CLEW_TRY(count_bracket('(', ')', parentheses_));
  return count_bracket('[', ']', brackets_);
}

// One that closes nothing has its own words, wherever it stands.
Compiled<void> Parser::count_bracket(char opening, char closing, uint32_t& depth) {
  if (here_.kind != TokenKind::Punctuator || here_.text.size() != 1) return {};
  if (here_.text[0] == opening) ++depth;
  if (here_.text[0] != closing) return {};
  if (depth == 0) return fail_here("D_SYNTAX", fmt::format("extra {} in input stream", closing));
  --depth;
  return {};
}

Compiled<bool> Parser::accept(std::string_view symbol) {
  if (!at(symbol)) return false;
  CLEW_TRY(advance());
  return true;
}

Compiled<void> Parser::expect(std::string_view symbol) {
  if (!at(symbol)) return syntax_error();
  return advance();
}

Compiled<void> Parser::expect_last(std::string_view symbol) {
  if (!at(symbol)) return syntax_error();
  return {};
}

Compiled<std::string> Parser::identifier() {
  if (here_.kind != TokenKind::Identifier || !here_.module.empty()) return syntax_error();
  std::string name = here_.name;
  CLEW_TRY(advance());
  return name;
}

tl::unexpected<CompileError> Parser::syntax_error() const {
  if (here_.kind == TokenKind::End) return fail_here("D_SYNTAX", "syntax error near end of input");
  return fail_here("D_SYNTAX", fmt::format("syntax error near \"{}\"", here_.text));
}

tl::unexpected<CompileError> Parser::fail_here(std::string tag, std::string message) const {
  return compile_error(std::move(tag), std::move(message), here_.line, here_.span);
}

Compiled<void> Parser::check_nesting() const {
  if (nesting_ > kNestingMax) return fail_here("D_SYNTAX", "program is nested too deeply");
  return {};
}

// --- items ---------------------------------------------------------------------------------------

Compiled<Program> Parser::run() {
  for (;;) {
    CLEW_TRY(lexer_.skip_blank());
    flush_options();
    if (lexer_.at_end()) break;
    CLEW_TRY(item());
  }
  const bool may_be_empty =
      options_.allow_empty_files ||
      std::any_of(program_.options.begin(), program_.options.end(), [](const PragmaOption& option) {
        return option.name == "empty" && is_on(option.value.value_or(""));
      });
  if (items_ == 0 && !may_be_empty)
    return compile_error("D_EMPTY", "empty D program translation unit", lexer_.line());
  CLEW_TRY(lexer_.check_arguments());
  program_.dependencies = lexer_.take_dependencies();
  program_.attributes = lexer_.take_attributes();
  return std::move(program_);
}

Compiled<void> Parser::item() {
  ++items_;
  if (!at_declaration()) return clause();
  CLEW_TRY(start());
  if (at("inline")) return inline_definition();
  if (at("translator")) return translator();
  if (at("provider")) return provider();
  return declaration();
}

// A word is a declaration's when it is a keyword or the name of a type, and what stands behind it
// is no part of a probe description.
bool Parser::at_declaration() {
  if (lexer_.peek() == '`') return true;
  const std::string_view word = lexer_.peek_identifier();
  if (word.empty()) return false;
  const char next = lexer_.peek(word.size());
  if (lexer_.peek_description().find(':') != std::string_view::npos) return false;
  if (lexer_.peek_description().find('`') != std::string_view::npos) return true;
  if (kDescriptionOnly.find(next) != std::string_view::npos && next != '\0') return false;
  const bool is_keyword = std::find(kDeclarationWords.begin(), kDeclarationWords.end(), word) !=
                          kDeclarationWords.end();
  if (is_keyword) return true;
  const char after = lexer_.peek_after(word.size());
  if (!is_identifier_start(after) && after != '*' && after != '(') return false;
  return types_.find("", Tag::None, word) != kNoType;
}

void Parser::flush_options() {
  for (PragmaOption& option : lexer_.take_options()) {
    program_.options.push_back(std::move(option));
    add_item(Program::Item::Option, program_.options.size());
  }
}

void Parser::add_item(Program::Item item, size_t count) {
  program_.order.emplace_back(item, static_cast<uint32_t>(count - 1));
}

}  // namespace clew::query::d
