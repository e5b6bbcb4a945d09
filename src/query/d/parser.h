// SPDX-License-Identifier: Apache-2.0
// The parser of D programs, private to parse*.cc: recursive descent with one token of lookahead.
// Between clauses there is no token at hand, since a probe description is no sequence of tokens:
// an item begins with start() or with the lexer's words, and ends *at* its last token.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "query/d/lexer.h"
#include "query/d/parse.h"

namespace clew::query::d {

// Limits on hostile text: of nesting, which is recursion here and in every later stage, and of the
// operators of one expression, since a chain of them makes a deep tree without recursion.
inline constexpr uint32_t kNestingMax = 256;
inline constexpr uint32_t kOperatorsMax = 1000;
inline constexpr size_t kProgramBytesMax = size_t{16} << 20;

enum class StorageClass : uint8_t { None, Typedef, Extern, Static, Auto, Register, Self, This };

struct Specifiers {
  StorageClass storage = StorageClass::None;
  TypeId type = kNoType;
  bool is_tagged = false;  // By struct, union or enum: that may be all of a declaration.
};

// What a declarator derives from the type before it, from the name outwards.
struct DeclaratorLayer {
  enum class Kind : uint8_t { Pointer, Array, Function, Associative } kind = Kind::Pointer;
  uint32_t count = 0;                     // Array
  std::vector<TypeParameter> parameters;  // Function, Associative
  bool is_variadic = false;
};

struct Declarator {
  std::string name;  // Empty when it is abstract.
  std::vector<DeclaratorLayer> layers;
  Span span;
  uint32_t line = 0;
};

// Where a parameter begins, and what ends the list of it.
struct ParameterPlace {
  const Token& begin;
  std::string_view close;
};

class Parser {
 public:
  Parser(std::string_view text, const CompileOptions& options, TypeTable& types)
      : lexer_(text, options), options_(options), types_(types) {}

  Compiled<Program> run();
  // Of what run() read.
  [[nodiscard]] std::vector<ProviderDefinition> take_providers();
  [[nodiscard]] bool wants_tags() const { return lexer_.wants_tags(); }

 private:
  // Counts nesting while it lives.
  class Nested {
   public:
    explicit Nested(uint32_t& depth) : depth_(depth) { ++depth_; }
    ~Nested() { --depth_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    uint32_t& depth_;
  };
  // Inside brackets and parentheses `/` is always division.
  class Bracketed {
   public:
    explicit Bracketed(bool& in_predicate) : in_predicate_(in_predicate), was_(in_predicate) {
      in_predicate_ = false;
    }
    ~Bracketed() { in_predicate_ = was_; }
    Bracketed(const Bracketed&) = delete;
    Bracketed& operator=(const Bracketed&) = delete;

   private:
    bool& in_predicate_;
    const bool was_;
  };

  // --- tokens (parse.cc) ---
  [[nodiscard]] bool at(std::string_view symbol) const { return here_.is(symbol); }
  Compiled<void> start() { return advance(); }
  Compiled<void> advance();
  Compiled<bool> accept(std::string_view symbol);
  Compiled<void> expect(std::string_view symbol);
  Compiled<void> expect_last(std::string_view symbol);  // Does not go past it.
  Compiled<std::string> identifier();
  [[nodiscard]] tl::unexpected<CompileError> syntax_error() const;
  [[nodiscard]] tl::unexpected<CompileError> fail_here(std::string tag, std::string message) const;
  [[nodiscard]] Compiled<void> check_nesting() const;
  [[nodiscard]] Span span_from(uint32_t begin) const { return {begin, last_end_}; }

  // --- items (parse.cc, parse_definition.cc) ---
  Compiled<void> item();
  [[nodiscard]] bool at_declaration();
  void flush_options();
  void add_item(Program::Item item, size_t count);
  Compiled<void> declaration();
  Compiled<void> declare(const Specifiers& specifiers, const Declarator& declarator);
  Compiled<void> declare_variable(const Specifiers& specifiers, const Declarator& declarator);
  [[nodiscard]] Compiled<void> check_object(TypeId type, const Declarator& declarator) const;
  [[nodiscard]] bool is_system_typedef(const std::string& name, TypeId type);
  Compiled<void> skip_body();
  Compiled<void> inline_definition();
  Compiled<void> translator();
  Compiled<void> count_bracket(char opening, char closing, uint32_t& depth);
  [[nodiscard]] Compiled<void> check_open_predicate() const;
  Compiled<void> provider();
  Compiled<ProviderDefinition::Probe> provider_probe();
  Compiled<void> check_known_provider(const ProviderDefinition& known,
                                      const ProviderDefinition::Probe& probe,
                                      const Token& place) const;

  // --- clauses (parse_clause.cc) ---
  Compiled<void> clause();
  Compiled<ProbeDescription> description();
  Compiled<void> split_description(ProbeDescription& description, const std::string& text) const;
  Compiled<Node> predicate();
  Compiled<std::vector<Statement>> body();
  Compiled<void> statement(std::vector<Statement>& statements);
  Compiled<void> if_statement(std::vector<Statement>& statements);
  Compiled<std::vector<Statement>> branch();

  // --- expressions (parse_expression.cc, parse_primary.cc) ---
  Compiled<Node> full_expression();  // With a budget of its own.
  Compiled<Node> expression();
  Compiled<Node> assignment();
  void note_assigned(const Node& target);
  Compiled<Node> conditional();
  Compiled<Node> binary(Precedence least);
  Compiled<Node> unary();
  Compiled<Node> prefix(UnaryOperator op);
  Compiled<Node> parenthesised();
  Compiled<Node> size_of();
  Compiled<Node> offset_of();
  Compiled<Node> string_of();
  Compiled<Node> translate();
  Compiled<Node> primary();
  Compiled<Node> named();
  Compiled<Node> aggregation();
  Compiled<Node> scoped_variable();
  Compiled<Node> postfix(Node node);
  Compiled<Node> postfix_step(Node node);
  Compiled<std::vector<Node>> arguments(std::string_view close);
  Compiled<std::string> member_name();
  Compiled<void> spend_operator();
  [[nodiscard]] Node node_at(NodeKind kind, const Token& token) const;
  [[nodiscard]] Node combine(NodeKind kind, Node left, Node right) const;

  // --- types (parse_type.cc, parse_record.cc) ---
  [[nodiscard]] bool at_type();
  [[nodiscard]] bool is_type_name(std::string_view module, std::string_view name);
  Compiled<TypeId> type_name();
  Compiled<Specifiers> specifiers();
  Compiled<bool> storage_class(Specifiers& result);
  Compiled<bool> type_specifier(Specifiers& result);
  Compiled<TypeId> tagged_type();
  Compiled<TypeId> record_definition(Tag tag, const std::string& name);
  Compiled<void> members(std::vector<TypeMember>& members);
  Compiled<TypeMember> member(TypeId base);
  Compiled<void> check_member(const TypeMember& member);
  Compiled<void> bit_size(TypeMember& member);
  Compiled<TypeId> enum_definition(const std::string& name);
  TypeId own_type(Tag tag, const std::string& name);
  Compiled<Declarator> declarator();
  Compiled<void> direct_declarator(Declarator& result);
  Compiled<void> declarator_suffixes(Declarator& result);
  Compiled<DeclaratorLayer> bracket_layer();
  Compiled<DeclaratorLayer> parameter_layer(std::string_view close);
  Compiled<void> check_void_parameter(const DeclaratorLayer& layer, const TypeParameter& next,
                                      const ParameterPlace& place);
  Compiled<TypeParameter> parameter();
  // The type of `base` with the layers from `first` on.
  Compiled<TypeId> apply(TypeId base, const Declarator& declarator, size_t first);

  // --- constants (parse_constant.cc) ---
  Compiled<int64_t> constant_expression(std::string_view tag, std::string_view message);

  Lexer lexer_;
  const CompileOptions& options_;
  TypeTable& types_;
  Program program_;
  std::vector<ProviderDefinition> providers_;
  Token here_;
  uint32_t last_end_ = 0;     // Of the token before here_.
  uint32_t parentheses_ = 0;  // Open, before here_.
  uint32_t brackets_ = 0;
  uint32_t nesting_ = 0;
  uint32_t operators_ = 0;
  bool in_predicate_ = false;
  uint32_t items_ = 0;
  std::set<std::string, std::less<>> names_;  // Declared here: they hide typedef names.
  // Of the enum that is being read: they may use each other.
  const std::vector<TypeEnumerator>* enumerators_ = nullptr;
  std::set<std::string, std::less<>> own_typedefs_;
  std::set<std::string, std::less<>> own_enumerators_;
  std::set<TypeId> own_types_;  // Tagged types that this program declared or defined.
};

}  // namespace clew::query::d
