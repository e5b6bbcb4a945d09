// SPDX-License-Identifier: Apache-2.0
// Types as C declares them: specifiers, then a declarator that is read from the name outwards.
#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "query/d/functions.h"
#include "query/d/parser.h"

namespace clew::query::d {
namespace {

struct StorageWord {
  std::string_view word;
  StorageClass storage;
};
constexpr std::array<StorageWord, 7> kStorageWords = {{{"typedef", StorageClass::Typedef},
                                                       {"extern", StorageClass::Extern},
                                                       {"static", StorageClass::Static},
                                                       {"auto", StorageClass::Auto},
                                                       {"register", StorageClass::Register},
                                                       {"self", StorageClass::Self},
                                                       {"this", StorageClass::This}}};

// inline is one behind a storage class: in front it is D's.
constexpr std::array<std::string_view, 5> kQualifiers = {"const", "volatile", "restrict", "inline",
                                                         "__extension__"};

// Words that can begin a type.
constexpr std::array<std::string_view, 19> kTypeWords = {
    "void",  "char",     "short",    "int",      "long",         "signed", "unsigned",
    "float", "double",   "_Bool",    "string",   "struct",       "union",  "enum",
    "const", "volatile", "restrict", "userland", "__extension__"};

bool is_base_word(const Token& token) {
  constexpr size_t kBaseWords = 11;  // Of kTypeWords, the first.
  return token.kind == TokenKind::Keyword &&
         std::find(kTypeWords.begin(), kTypeWords.begin() + kBaseWords, token.text) !=
             kTypeWords.begin() + kBaseWords;
}

struct TypeProblem {
  std::string tag;
  std::string_view text;
};

// "unsigned long int", counted.
class BaseWords {
 public:
  void add(const std::string& word) {
    uint32_t& count = counter(word);
    ++count;
    if (&count == &named_) name_ = word;
  }
  [[nodiscard]] bool empty() const {
    return signed_ + unsigned_ + short_ + long_ + int_ + named_ == 0;
  }
  // Of a type that takes no sign or no width, but was given one; nothing when there is none such.
  [[nodiscard]] std::optional<TypeProblem> problem(bool has_other_type) const {
    const bool has_sign = signed_ + unsigned_ > 0;
    const bool has_width = short_ + long_ > 0;
    const bool is_plain = named_ == 0 && !has_other_type;
    if (is_plain || named_ + (has_other_type ? 1U : 0U) + int_ > 1) return std::nullopt;
    if (name_ == "char" && has_width) {
      return TypeProblem{"D_DECL_CHARATTR", "short and long may not be used with char type"};
    }
    if (name_ == "void" && (has_sign || has_width)) {
      return TypeProblem{"D_DECL_VOIDATTR", "attributes may not be used with void type"};
    }
    const bool is_float = name_ == "float" || name_ == "double";
    if (has_sign && name_ != "char") {
      return TypeProblem{"D_DECL_SIGNINT",
                         "signed and unsigned may only be used with integer type"};
    }
    if (has_width && !is_float) {
      return TypeProblem{"D_DECL_LONGINT",
                         "long and long long may only be used with integer or floating-point type"};
    }
    return std::nullopt;
  }
  // The base type's name; empty when there is none such.
  [[nodiscard]] std::string name() const {
    if (signed_ + unsigned_ > 1 || short_ > 1 || long_ > 2 || int_ > 1 || named_ > 1) return "";
    if (named_ == 1) return named();
    if (short_ + long_ > 0 && short_ > 0 && long_ > 0) return "";
    const std::string_view width = short_ > 0   ? "short"
                                   : long_ == 2 ? "long long"
                                   : long_ == 1 ? "long"
                                                : "int";
    return fmt::format("{}{}", unsigned_ > 0 ? "unsigned " : "", width);
  }

 private:
  [[nodiscard]] std::string named() const {
    const bool has_sign = signed_ + unsigned_ > 0;
    const bool has_width = short_ + long_ + int_ > 0;
    if (name_ == "char" && !has_width)
      return fmt::format("{}char", unsigned_ > 0 ? "unsigned " : signed_ > 0 ? "signed " : "");
    if (name_ == "double" && !has_sign && long_ == 1 && short_ + int_ == 0) return "long double";
    return has_sign || has_width ? "" : name_;
  }

  uint32_t& counter(const std::string& word) {
    if (word == "signed") return signed_;
    if (word == "unsigned") return unsigned_;
    if (word == "short") return short_;
    if (word == "long") return long_;
    return word == "int" ? int_ : named_;
  }

  uint32_t signed_ = 0, unsigned_ = 0, short_ = 0, long_ = 0, int_ = 0, named_ = 0;
  std::string name_;
};

}  // namespace

// --- what is a type ------------------------------------------------------------------------------

bool Parser::at_type() {
  if (here_.kind == TokenKind::Keyword)
    return std::find(kTypeWords.begin(), kTypeWords.end(), here_.text) != kTypeWords.end();
  return here_.kind == TokenKind::Identifier && is_type_name(here_.module, here_.name);
}

// Names that the program declares, and D's own, are no types, whatever the kernel calls so.
bool Parser::is_type_name(std::string_view module, std::string_view name) {
  const bool is_own = module.empty() && (names_.contains(name) || find_builtin(name) ||
                                         find_subroutine(name) || find_action(name));
  if (is_own) return false;
  return types_.find(module == " " ? "" : module, Tag::None, name) != kNoType;
}

Compiled<TypeId> Parser::type_name() {
  const Specifiers found = CLEW_TRY(specifiers());
  if (found.storage != StorageClass::None)
    return fail_here("D_DECL_CLASS", "storage class is not permitted in a type name");
  const Declarator derived = CLEW_TRY(declarator());
  if (!derived.name.empty()) {
    return compile_error("D_SYNTAX", fmt::format("syntax error near \"{}\"", derived.name),
                         derived.line, derived.span);
  }
  return apply(found.type, derived, 0);
}

// --- specifiers ----------------------------------------------------------------------------------

Compiled<Specifiers> Parser::specifiers() {
  Specifiers result;
  BaseWords words;
  bool is_userland = false;
  const auto wrong_words = [this](const std::optional<TypeProblem>& problem) {
    if (!problem) return fail_here("D_DECL_COMBO", "invalid type combination");
    return fail_here(problem->tag, fmt::format("invalid type declaration: {}", problem->text));
  };
  for (;;) {
    if (is_base_word(here_)) {
      words.add(here_.text);
      if (result.type != kNoType) return wrong_words(words.problem(true));
      CLEW_TRY(advance());
    } else if (at("userland")) {
      is_userland = true;
      CLEW_TRY(advance());
    } else if (!CLEW_TRY(storage_class(result))) {
      if (!words.empty() && here_.kind == TokenKind::Identifier) break;
      if (!CLEW_TRY(type_specifier(result))) break;
      if (!words.empty()) return wrong_words(words.problem(true));
    }
  }
  if (!words.empty()) {
    const std::string name = words.name();
    if (name.empty()) return wrong_words(words.problem(false));
    result.type = types_.find_base(name);
  }
  const bool is_int = result.storage == StorageClass::Self || result.storage == StorageClass::This;
  if (result.type == kNoType && is_int) result.type = types_.find_base("int");
  if (result.type == kNoType) return syntax_error();
  if (is_userland) result.type = types_.userland_of(result.type);
  return result;
}

// A storage class or a qualifier; qualifiers are dropped.
Compiled<bool> Parser::storage_class(Specifiers& result) {
  if (here_.kind != TokenKind::Keyword) return false;
  if (std::find(kQualifiers.begin(), kQualifiers.end(), here_.text) != kQualifiers.end()) {
    CLEW_TRY(advance());
    return true;
  }
  for (const StorageWord& word : kStorageWords) {
    if (here_.text != word.word) continue;
    if (result.storage != StorageClass::None)
      return fail_here("D_DECL_CLASS", "only one storage class allowed in a declaration");
    result.storage = word.storage;
    CLEW_TRY(advance());
    return true;
  }
  return false;
}

// A struct, union, enum or typedef name, unless there is a type already: then a name is what is
// declared.
Compiled<bool> Parser::type_specifier(Specifiers& result) {
  const bool is_tag = at("struct") || at("union") || at("enum");
  if (is_tag && result.type != kNoType)
    return fail_here("D_DECL_COMBO", "invalid type combination");
  if (is_tag) {
    result.is_tagged = true;
    result.type = CLEW_TRY(tagged_type());
    return true;
  }
  if (result.type != kNoType || here_.kind != TokenKind::Identifier) return false;
  if (!is_type_name(here_.module, here_.name)) return false;
  result.type = types_.find(here_.module == " " ? "" : here_.module, Tag::None, here_.name);
  CLEW_TRY(advance());
  return true;
}

// --- declarators ---------------------------------------------------------------------------------

Compiled<Declarator> Parser::declarator() {
  const Nested nested(nesting_);
  CLEW_TRY(check_nesting());
  size_t pointers = 0;
  while (at("*") || at("const") || at("volatile") || at("restrict")) {
    pointers += at("*") ? 1 : 0;
    if (pointers > kNestingMax) return fail_here("D_SYNTAX", "program is nested too deeply");
    CLEW_TRY(advance());
  }
  Declarator result;
  result.line = here_.line;
  result.span = here_.span;
  CLEW_TRY(direct_declarator(result));
  CLEW_TRY(declarator_suffixes(result));
  for (size_t i = 0; i < pointers; ++i)
    result.layers.emplace_back();
  return result;
}

Compiled<void> Parser::direct_declarator(Declarator& result) {
  if (here_.kind == TokenKind::Identifier && here_.module.empty()) {
    result.name = CLEW_TRY(identifier());
    return {};
  }
  if (here_.kind == TokenKind::Identifier) {
    return fail_here("D_DECL_SCOPE", fmt::format("D scoping operator may not be used in a "
                                                 "declaration name ({})",
                                                 here_.text));
  }
  if (!at("(")) return {};
  // Of an abstract declarator, `()` and `(int)` are parameters.
  CLEW_TRY(advance());
  if (at(")") || at_type() || at("...")) {
    result.layers.push_back(CLEW_TRY(parameter_layer(")")));
    return {};
  }
  result = CLEW_TRY(declarator());
  return expect(")");
}

Compiled<void> Parser::declarator_suffixes(Declarator& result) {
  while (at("[") || at("(")) {
    if (result.layers.size() > kNestingMax)
      return fail_here("D_SYNTAX", "program is nested too deeply");
    const bool is_bracket = at("[");
    CLEW_TRY(advance());
    result.layers.push_back(is_bracket ? CLEW_TRY(bracket_layer())
                                       : CLEW_TRY(parameter_layer(")")));
  }
  return {};
}

// `[5]` is C's array, `[int, string]` D's associative one.
Compiled<DeclaratorLayer> Parser::bracket_layer() {
  if (at_type() || at("...") || at("static") || at("extern") || at("auto") || at("register"))
    return parameter_layer("]");
  DeclaratorLayer layer;
  layer.kind = DeclaratorLayer::Kind::Array;
  if (CLEW_TRY(accept("]"))) return layer;
  const int64_t count = CLEW_TRY(constant_expression(
      "D_DECL_ARRSUB",
      "positive integral constant expression or tuple signature expected as array "
      "declaration subscript"));
  if (count <= 0) {
    return fail_here("D_DECL_ARRSUB",
                     "positive integral constant expression or tuple signature expected as array "
                     "declaration subscript");
  }
  if (count > static_cast<int64_t>(kTypeBytesMax))
    return fail_here("D_DECL_ARRBIG", "array dimension too big");
  layer.count = static_cast<uint32_t>(count);
  CLEW_TRY(expect("]"));
  return layer;
}

Compiled<DeclaratorLayer> Parser::parameter_layer(std::string_view close) {
  DeclaratorLayer layer;
  const bool is_function = close == ")";
  layer.kind = is_function ? DeclaratorLayer::Kind::Function : DeclaratorLayer::Kind::Associative;
  if (CLEW_TRY(accept(close))) return layer;
  for (;;) {
    if (CLEW_TRY(accept("..."))) {
      if (!is_function) {
        return fail_here("D_DECL_PROTO_VARARGS",
                         "array prototype may not use a variable-length argument list");
      }
      layer.is_variadic = true;
      CLEW_TRY(expect(close));
      return layer;
    }
    const Token begin = here_;
    TypeParameter next = CLEW_TRY(parameter());
    const bool is_void = types_.strip(next.type) == types_.void_type();
    if (is_void) CLEW_TRY(check_void_parameter(layer, next, {begin, close}));
    if (!is_void) layer.parameters.push_back(std::move(next));
    if (CLEW_TRY(accept(close))) return layer;
    CLEW_TRY(expect(","));
  }
}

// `void` stands for no parameters, and only a function can have none.
Compiled<void> Parser::check_void_parameter(const DeclaratorLayer& layer, const TypeParameter& next,
                                            const ParameterPlace& place) {
  const auto fail = [&](std::string tag, std::string message) {
    return compile_error(std::move(tag), std::move(message), place.begin.line, place.begin.span);
  };
  if (layer.kind == DeclaratorLayer::Kind::Associative) {
    return fail(
        "D_DECL_PROTO_TYPE",
        fmt::format("array prototype may not use parameter of type void: {}, parameter #{}",
                    next.name.empty() ? "(anonymous)" : next.name, layer.parameters.size() + 1));
  }
  if (!next.name.empty()) {
    return fail("D_DECL_PROTO_NAME",
                fmt::format("void parameter may not have a name: {}", next.name));
  }
  if (layer.parameters.empty() && at(place.close)) return {};
  return fail("D_DECL_PROTO_VOID", "void must be sole parameter");
}

Compiled<TypeParameter> Parser::parameter() {
  if (here_.kind == TokenKind::Identifier && !at_type())
    return fail_here("D_DECL_IDENT", "old-style declaration or incorrect type specified");
  const Specifiers found = CLEW_TRY(specifiers());
  if (found.storage != StorageClass::None && found.storage != StorageClass::Register) {
    return fail_here("D_DECL_PARMCLASS",
                     "inappropriate storage class for function or associative array parameter");
  }
  Declarator derived = CLEW_TRY(declarator());
  TypeId type = CLEW_TRY(apply(found.type, derived, 0));
  // As C has it, arrays and functions are passed by address.
  if (types_.at(type).kind == TypeKind::Array) type = types_.pointer_to(types_.at(type).target);
  if (types_.at(type).kind == TypeKind::Function) type = types_.pointer_to(type);
  return TypeParameter{std::move(derived.name), type};
}

Compiled<TypeId> Parser::apply(TypeId base, const Declarator& declarator, size_t first) {
  TypeId type = base;
  for (size_t i = declarator.layers.size(); i > first; --i) {
    const DeclaratorLayer& layer = declarator.layers[i - 1];
    const auto fail = [&](std::string tag, std::string message) {
      return compile_error(std::move(tag), std::move(message), declarator.line, declarator.span);
    };
    const TypeKind of = types_.stripped(type).kind;
    switch (layer.kind) {
      case DeclaratorLayer::Kind::Pointer:
        type = types_.pointer_to(type);
        break;
      case DeclaratorLayer::Kind::Array:
        if (of == TypeKind::Void || of == TypeKind::Function || of == TypeKind::Dynamic) {
          return fail("D_DECL_VOIDOBJ",
                      fmt::format("cannot declare array of {}", types_.name_of(type)));
        }
        if (of == TypeKind::Forward) {
          return fail("D_DECL_INCOMPLETE",
                      fmt::format("incomplete struct/union/enum {}", types_.name_of(type)));
        }
        if (uint64_t{types_.size_of(type)} * layer.count > kTypeBytesMax)
          return fail("D_DECL_ARRBIG", "array dimension too big");
        type = types_.array_of(type, layer.count);
        break;
      case DeclaratorLayer::Kind::Function:
        if (of == TypeKind::Function || of == TypeKind::Array)
          return fail("D_DECL_COMBO", "functions cannot return a function or an array");
        type = types_.function(type, layer.parameters, layer.is_variadic);
        break;
      case DeclaratorLayer::Kind::Associative:
        return fail("D_DECL_DYNOBJ", "cannot declare array of associative arrays");
    }
  }
  return type;
}

}  // namespace clew::query::d
