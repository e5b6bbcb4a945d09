// SPDX-License-Identifier: Apache-2.0
// Layouts are compared with those of the compiler that builds this test; names with C.
#include "query/d/types.h"

#include <cstddef>
#include <cstring>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "query/d/functions.h"
#include "query/d/parse.h"

namespace clew::query::d {
namespace {

// The text of a declaration, and the same one compiled.
#define CLEW_DECLARE(...)                             \
  constexpr std::string_view text = #__VA_ARGS__ ";"; \
  __VA_ARGS__

struct Declared {
  TypeTable types;
  TypeId type = kNoType;
};

Declared declared(std::string_view text, Tag tag = Tag::Struct, std::string_view name = "s") {
  Declared result;
  CompileOptions options;
  options.form = CompileOptions::Form::Name;
  const Compiled<Program> program = parse(text, options, result.types);
  EXPECT_TRUE(program) << text << ": " << program.error().message;
  result.type = result.types.find("", tag, name);
  return result;
}

uint64_t offset_bits(const Declared& of, std::string_view member) {
  const std::optional<MemberPlace> place = of.types.member(of.type, member);
  return place ? place->offset_bits : UINT64_MAX;
}

// The first bit that `set` changes in an object of zeros.
template <typename Record, typename Set>
uint64_t first_bit(Set set) {
  Record record;
  std::memset(&record, 0, sizeof record);
  set(record);
  unsigned char bytes[sizeof record];
  std::memcpy(bytes, &record, sizeof record);
  for (uint64_t bit = 0; bit < sizeof record * 8; ++bit)
    if ((bytes[bit / 8] >> (bit % 8) & 1) != 0) return bit;
  return UINT64_MAX;
}

TEST(Types, MembersLieWhereTheCompilerPutsThem) {
  CLEW_DECLARE(struct s {
    char a;
    short b;
    char c;
    int d;
    char e[3];
    long f;
    void* g;
    union {
      char h;
      long long i;
    };
    struct {
      char j;
      short k;
    } l[2];
    char m;
  });
  const Declared result = declared(text);
  EXPECT_EQ(offset_bits(result, "b"), offsetof(s, b) * 8);
  EXPECT_EQ(offset_bits(result, "d"), offsetof(s, d) * 8);
  EXPECT_EQ(offset_bits(result, "e"), offsetof(s, e) * 8);
  EXPECT_EQ(offset_bits(result, "f"), offsetof(s, f) * 8);
  EXPECT_EQ(offset_bits(result, "g"), offsetof(s, g) * 8);
  EXPECT_EQ(offset_bits(result, "h"), offsetof(s, h) * 8);
  EXPECT_EQ(offset_bits(result, "i"), offsetof(s, i) * 8);
  EXPECT_EQ(offset_bits(result, "l"), offsetof(s, l) * 8);
  EXPECT_EQ(offset_bits(result, "m"), offsetof(s, m) * 8);
  EXPECT_EQ(result.types.size_of(result.type), sizeof(s));
  EXPECT_EQ(result.types.at(result.type).align_bytes, alignof(s));
  EXPECT_EQ(offset_bits(result, "nothing"), UINT64_MAX);
}

TEST(Types, BitFieldsLieWhereTheCompilerPutsThem) {
  CLEW_DECLARE(struct s {
    char a;
    unsigned int b : 3;
    unsigned int c : 22;
    unsigned int d : 5;
    unsigned short e : 9;
    unsigned char f : 7;
    unsigned int : 0;
    unsigned char g : 1;
    unsigned int : 11;
    unsigned long h : 40;
    unsigned long i : 30;
    char j;
  });
  const Declared result = declared(text);
  EXPECT_EQ(offset_bits(result, "b"), first_bit<s>([](s& r) { r.b = 1; }));
  EXPECT_EQ(offset_bits(result, "c"), first_bit<s>([](s& r) { r.c = 1; }));
  EXPECT_EQ(offset_bits(result, "d"), first_bit<s>([](s& r) { r.d = 1; }));
  EXPECT_EQ(offset_bits(result, "e"), first_bit<s>([](s& r) { r.e = 1; }));
  EXPECT_EQ(offset_bits(result, "f"), first_bit<s>([](s& r) { r.f = 1; }));
  EXPECT_EQ(offset_bits(result, "g"), first_bit<s>([](s& r) { r.g = 1; }));
  EXPECT_EQ(offset_bits(result, "h"), first_bit<s>([](s& r) { r.h = 1; }));
  EXPECT_EQ(offset_bits(result, "i"), first_bit<s>([](s& r) { r.i = 1; }));
  EXPECT_EQ(offset_bits(result, "j"), offsetof(s, j) * 8);
  EXPECT_EQ(result.types.size_of(result.type), sizeof(s));
  EXPECT_EQ(result.types.member(result.type, "c")->bit_size, 22);
}

TEST(Types, PaddingBitFieldsDoNotAlign) {
  CLEW_DECLARE(struct s {
    char a;
    int : 5;
    char b;
    long : 0;
    char c;
  });
  const Declared result = declared(text);
  EXPECT_EQ(offset_bits(result, "b"), offsetof(s, b) * 8);
  EXPECT_EQ(offset_bits(result, "c"), offsetof(s, c) * 8);
  EXPECT_EQ(result.types.size_of(result.type), sizeof(s));
  EXPECT_EQ(result.types.at(result.type).members.size(), 3U);
}

TEST(Types, UnionsAreAsLargeAsTheirLargestMember) {
  CLEW_DECLARE(union s {
    char a[9];
    int b;
    unsigned int c : 7;
    short d;
  });
  const Declared result = declared(text, Tag::Union);
  EXPECT_EQ(offset_bits(result, "c"), 0U);
  EXPECT_EQ(offset_bits(result, "d"), 0U);
  EXPECT_EQ(result.types.size_of(result.type), sizeof(s));
  EXPECT_EQ(result.types.name_of(result.type), "union s");
}

#undef CLEW_DECLARE

TEST(Types, BaseTypesHaveTheSizesOfTheCompiler) {
  const TypeTable types;
  const auto check = [&](std::string_view name, size_t size_bytes, bool is_signed) {
    const TypeId type = types.find_base(name);
    EXPECT_NE(type, kNoType) << name;
    EXPECT_EQ(types.size_of(type), size_bytes) << name;
    EXPECT_EQ(types.is_signed(type), is_signed) << name;
  };
  check("char", sizeof(char), true);
  check("unsigned short", sizeof(short), false);
  check("int", sizeof(int), true);
  check("unsigned long", sizeof(long), false);
  check("long long", sizeof(long), true);
  check("_Bool", sizeof(bool), false);
  check("double", sizeof(double), true);
  check("uint8_t", sizeof(uint8_t), false);
  check("int64_t", sizeof(int64_t), true);
  check("size_t", sizeof(size_t), false);
  check("pid_t", sizeof(int), true);
  check("uid_t", sizeof(unsigned), false);
  check("uintptr_t", sizeof(void*), false);
  EXPECT_EQ(types.size_of(types.find_base("caddr_t")), sizeof(void*));
  EXPECT_EQ(types.size_of(types.string_type()), 256U);
  EXPECT_EQ(types.name_of(types.integer(4, false)), "unsigned int");
  EXPECT_EQ(types.find_base("nothing"), kNoType);
}

TEST(Types, StructuralTypesAreInterned) {
  TypeTable types;
  const TypeId integer = types.find_base("int");
  EXPECT_EQ(types.pointer_to(integer), types.pointer_to(integer));
  EXPECT_EQ(types.array_of(integer, 3), types.array_of(integer, 3));
  EXPECT_NE(types.array_of(integer, 3), types.array_of(integer, 4));
  EXPECT_EQ(types.function(integer, {{"a", integer}}, false),
            types.function(integer, {{"b", integer}}, false));
  EXPECT_NE(types.function(integer, {}, true), types.function(integer, {}, false));
  EXPECT_NE(types.declare(Tag::Struct, ""), types.declare(Tag::Struct, ""));
  EXPECT_EQ(types.declare(Tag::Struct, "a"), types.declare(Tag::Struct, "a"));
  EXPECT_NE(types.declare(Tag::Struct, "a"), types.declare(Tag::Union, "a"));
}

TEST(Types, NamesAreWrittenAsInC) {
  TypeTable types;
  const TypeId integer = types.find_base("int");
  const TypeId text = types.pointer_to(types.find_base("char"));
  const TypeId function = types.function(integer, {{"", integer}, {"", text}}, false);
  EXPECT_EQ(types.name_of(text), "char *");
  EXPECT_EQ(types.name_of(types.pointer_to(text)), "char **");
  EXPECT_EQ(types.name_of(types.array_of(types.find_base("char"), 16)), "char [16]");
  EXPECT_EQ(types.name_of(types.array_of(text, 4)), "char *[4]");
  EXPECT_EQ(types.name_of(types.pointer_to(types.array_of(integer, 4))), "int (*)[4]");
  EXPECT_EQ(types.name_of(types.pointer_to(function)), "int (*)(int, char *)");
  EXPECT_EQ(types.name_of(types.function(types.void_type(), {}, false)), "void (void)");
  EXPECT_EQ(types.name_of(types.pointer_to(types.declare(Tag::Struct, "foo"))), "struct foo *");
  EXPECT_EQ(types.name_of(types.find_base("size_t")), "size_t");
  EXPECT_EQ(types.name_of(types.string_type()), "string");
}

TEST(Types, StringsAreToldFromWhatIsLikeThem) {
  TypeTable types;
  const TypeId character = types.find_base("char");
  EXPECT_TRUE(types.is_string(types.string_type()));
  EXPECT_FALSE(types.is_string(types.array_of(character, 4)));
  EXPECT_TRUE(types.is_string_like(types.array_of(character, 4)));
  EXPECT_TRUE(types.is_string_like(types.find_base("caddr_t")));
  EXPECT_TRUE(types.is_string_like(types.pointer_to(types.find_base("uint8_t"))));
  EXPECT_FALSE(types.is_string_like(types.pointer_to(types.find_base("int"))));
}

TEST(Types, UserlandIsOfTheTargetAndNotOfTheName) {
  TypeTable types;
  const TypeId size = types.find_base("size_t");
  const TypeId user = types.userland_of(size);
  EXPECT_NE(user, size);
  EXPECT_EQ(types.userland_of(size), user);
  EXPECT_TRUE(types.at(user).is_userland);
  EXPECT_TRUE(types.stripped(user).is_userland);
  EXPECT_FALSE(types.stripped(size).is_userland);
  EXPECT_EQ(types.name_of(types.pointer_to(user)), "size_t *");
}

// --- what the kernel has -------------------------------------------------------------------------

class FakeKernel final : public TypeProvider {
 public:
  TypeId find(TypeTable& table, std::string_view module, Tag tag, std::string_view name) override {
    asked += fmt::format("{}`{} ", module, name);
    if (tag == Tag::None && name == "u32") return typedef_of(table, "u32", "unsigned int");
    if (tag != Tag::Struct || name != "task") return kNoType;
    const TypeId record = table.declare(Tag::Struct, "task");
    const TypeId number = table.find_base("int");
    table.define_record_as_laid_out(record, {{"state", number, 64, 0}}, 12, 4);
    return record;
  }
  std::optional<TypeEnumerator> find_enumerator(TypeTable&, std::string_view name) override {
    if (name != "TASK_DEAD") return std::nullopt;
    return TypeEnumerator{"TASK_DEAD", 64};
  }
  Expected<Symbol> find_symbol(TypeTable&, std::string_view, std::string_view) override {
    return fail(ErrorCode::NotFound, "No such symbol");
  }

  std::string asked;

 private:
  static TypeId typedef_of(TypeTable& table, std::string name, std::string_view target) {
    const Expected<TypeId> made = table.define_typedef(std::move(name), table.find_base(target));
    return made ? *made : kNoType;
  }
};

struct WithKernel {
  WithKernel() { types.set_provider(&kernel); }
  Compiled<Program> parsed(std::string_view text) {
    CompileOptions options;
    options.form = CompileOptions::Form::Name;
    return parse(text, options, types);
  }
  FakeKernel kernel;
  TypeTable types;
};

TEST(Types, WhatTheProgramDoesNotDeclareComesFromTheKernel) {
  WithKernel with;
  const Compiled<Program> program =
      with.parsed("u32 x; struct vmlinux`task *t; vmlinux`u32 y; int z[TASK_DEAD];");
  ASSERT_TRUE(program) << program.error().message;
  EXPECT_EQ(with.types.name_of(program->variables[1].type), "struct task *");
  EXPECT_EQ(with.types.name_of(program->variables[2].type), "u32");
  EXPECT_EQ(with.types.name_of(program->variables[3].type), "int [64]");
  const TypeId task = with.types.find("", Tag::Struct, "task");
  EXPECT_EQ(with.types.member(task, "state")->offset_bits, 64U);
}

TEST(Types, AProgramsOwnDefinitionHidesTheKernels) {
  WithKernel with;
  ASSERT_TRUE(with.parsed("struct task *before; struct task { char own; }; struct task after;"));
  const TypeId task = with.types.find("", Tag::Struct, "task");
  EXPECT_EQ(with.types.size_of(task), 1U);
  EXPECT_TRUE(with.types.member(task, "own"));
}

TEST(Types, AForwardIsCompletedByTheKernel) {
  WithKernel with;
  const TypeId forward = with.types.declare(Tag::Struct, "task");
  EXPECT_FALSE(with.types.member(forward, "state"));
  EXPECT_EQ(with.types.complete(forward), forward);
  EXPECT_TRUE(with.types.member(forward, "state"));
  const TypeId unknown = with.types.declare(Tag::Struct, "unknown");
  EXPECT_EQ(with.types.complete(unknown), unknown);
}

TEST(Types, TheKernelIsNotAskedAboutProbesAndVariables) {
  WithKernel with;
  ASSERT_TRUE(with.parsed("syscall::read:entry, BEGIN { x = (pid) + arg0; trace(execname); }"));
  EXPECT_EQ(with.kernel.asked, "");
}

// --- names of D ----------------------------------------------------------------------------------

TEST(Functions, EveryNameFindsItselfInItsTable) {
  for (uint8_t i = 1; i <= static_cast<uint8_t>(Builtin::Walltimestamp); ++i)
    EXPECT_EQ(find_builtin(name_of(Builtin{i})), Builtin{i});
  for (uint8_t i = 1; i <= static_cast<uint8_t>(Subroutine::Toupper); ++i)
    EXPECT_EQ(find_subroutine(name_of(Subroutine{i})), Subroutine{i});
  for (uint8_t i = 1; i <= static_cast<uint8_t>(Action::Usym); ++i)
    EXPECT_EQ(find_action(name_of(Action{i})), Action{i});
  for (uint8_t i = 0; i <= static_cast<uint8_t>(AggregateFunction::Llquantize); ++i)
    EXPECT_EQ(find_aggregate(name_of(AggregateFunction{i})), AggregateFunction{i});
}

TEST(Functions, NamesStandForWhatTheyAre) {
  EXPECT_EQ(find_builtin("arg0"), Builtin::Arg0);
  EXPECT_EQ(find_builtin("curlwpsinfo"), Builtin::Curlwpsinfo);
  EXPECT_EQ(find_builtin("walltimestamp"), Builtin::Walltimestamp);
  EXPECT_EQ(find_subroutine("d_path"), Subroutine::DPath);
  EXPECT_EQ(find_subroutine("inet_ntoa6"), Subroutine::InetNtoa6);
  EXPECT_EQ(find_subroutine("mutex_type_spin"), Subroutine::MutexTypeSpin);
  EXPECT_EQ(find_subroutine("strtoll"), Subroutine::Strtoll);
  EXPECT_EQ(find_action("printa"), Action::Printa);
  EXPECT_EQ(find_action("uaddr"), Action::Uaddr);
  EXPECT_EQ(find_aggregate("llquantize"), AggregateFunction::Llquantize);
  EXPECT_EQ(find_aggregate("avg"), AggregateFunction::Average);
  EXPECT_EQ(find_builtin(""), std::nullopt);
  EXPECT_EQ(find_action("nothing"), std::nullopt);
}

}  // namespace
}  // namespace clew::query::d
