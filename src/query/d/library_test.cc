// SPDX-License-Identifier: Apache-2.0
// The library against a kernel of a few structs: which pieces a program gets, and what their
// translators make of it.
#include "query/d/library.h"

#include <gtest/gtest.h>

#include "query/d/check.h"
#include "query/d/parse.h"
#include "query/d/print.h"

namespace clew::query::d {
namespace {

constexpr std::string_view kKernelWithFiles =
    "typedef struct { unsigned int val; } kuid_t;"
    "struct cred { kuid_t uid; };"
    "struct qstr { unsigned int len; const unsigned char *name; };"
    "struct dentry { struct qstr d_name; };"
    "struct path { void *mnt; struct dentry *dentry; };"
    "struct file { struct path f_path; long f_pos; };"
    "struct fdtable { unsigned int max_fds; struct file **fd; };"
    "struct files_struct { struct fdtable *fdt; };"
    "struct task_struct { int pid; int tgid; char comm[16]; struct cred *cred;"
    " struct files_struct *files; };";

// Every probe has a `psinfo_t *` made of arg2.
class ProbesOfTasks final : public ProbeSource {
 public:
  Expected<ProbeArguments> arguments(TypeTable& types, const ProbeDescription&) override {
    ProbeArguments found;
    found.matched = 1;
    const TypeId info = types.find("", Tag::None, "psinfo_t");
    if (info == kNoType) return found;
    found.types = {types.pointer_to(info)};
    found.native_types = {types.pointer_to(types.find("", Tag::Struct, "task_struct"))};
    found.mapping = {2};
    return found;
  }
};

Compiled<Script> compiled_with_library(std::string_view text) {
  ProbesOfTasks probes;
  TypeTable types;
  CompileOptions options;
  options.name = "test.d";
  EXPECT_TRUE(parse(kKernelWithFiles, options, types).has_value());
  Program program = CLEW_TRY(parse_library(text, types));
  Program own = CLEW_TRY(parse(text, options, types));
  for (const auto& [item, index] : own.order) {
    const bool is_inline = item == Program::Item::Inline;
    const size_t shift = is_inline ? program.inlines.size() : 0;
    program.order.emplace_back(item, static_cast<uint32_t>(index + shift));
  }
  for (InlineDefinition& each : own.inlines)
    program.inlines.push_back(std::move(each));
  program.clauses = std::move(own.clauses);
  return check(std::move(program), std::move(types), probes, options);
}

std::string tree_with_library(std::string_view text) {
  const auto script = compiled_with_library(text);
  if (!script) return script.error().tag + ": " + script.error().message;
  const Node& node = script->clauses.back().body.back().expression;
  return print(node, script->types) + " : " + script->types.name_of(node.type);
}

size_t pieces_of(std::string_view text) {
  TypeTable types;
  const auto library = parse_library(text, types);
  EXPECT_TRUE(library.has_value()) << library.error().message;
  return library->inlines.size() + library->translators.size();
}

TEST(Library, AProgramGetsThePiecesThatItNames) {
  EXPECT_EQ(pieces_of("BEGIN { trace(1); }"), 0U);
  EXPECT_GT(pieces_of("BEGIN { trace(SIGINT); }"), 30U);
  EXPECT_LT(pieces_of("BEGIN { trace(SIGINT); }"), 60U);
  EXPECT_GT(pieces_of("BEGIN { trace(args[0]); }"), 100U);
}

TEST(Library, EveryPieceParsesOnce) {
  TypeTable types;
  std::string all;
  for (const LibraryPiece& piece : library_pieces())
    all += piece.text;
  const auto first = parse_library(all, types);
  ASSERT_TRUE(first.has_value()) << first.error().message;
  EXPECT_GT(first->order.size(), 200U);
  const auto second = parse_library(all, types);
  ASSERT_TRUE(second.has_value());
  EXPECT_TRUE(second->order.empty());
}

TEST(Library, ConstantsHaveTheirValues) {
  EXPECT_EQ(tree_with_library("BEGIN { SIGTERM }"), "15 : int");
  EXPECT_EQ(tree_with_library("BEGIN { ENOENT }"), "2 : int");
  EXPECT_EQ(tree_with_library("BEGIN { DTRACEFLT_DIVZERO }"), "4 : int");
  EXPECT_EQ(tree_with_library("BEGIN { execname != NULL }"), "(execname != 0) : int");
  EXPECT_EQ(tree_with_library("BEGIN { uregs[R_PC] }"), "uregs[16] : uint64_t");
}

TEST(Library, TheCurrentProcessIsTranslated) {
  EXPECT_EQ(tree_with_library("BEGIN { curpsinfo->pr_fname }"),
            "stringof(curthread->comm) : string");
  EXPECT_EQ(tree_with_library("BEGIN { curpsinfo->pr_uid }"),
            "curthread->cred->uid.val : unsigned int");
  EXPECT_EQ(tree_with_library("BEGIN { curlwpsinfo->pr_lwpid }"), "curthread->pid : int");
  EXPECT_EQ(tree_with_library("BEGIN { curcpu->cpu_id }"), "((int) cpu) : int");
  EXPECT_EQ(tree_with_library("::f:x { args[0]->pr_pid }"), "args->tgid : int");
}

TEST(Library, FilesAreTranslated) {
  EXPECT_EQ(tree_with_library("BEGIN { fds[3].fi_offset }").substr(0, 13), "(((((3 >= 0) ");
  EXPECT_EQ(tree_with_library("BEGIN { xlate <fileinfo_t>((struct file *) arg0).fi_name }"),
            "((((struct file *) arg0) == 0) ? \"<none>\" : "
            "stringof(((struct file *) arg0)->f_path.dentry->d_name.name)) : string");
}

TEST(Library, WhatAKernelLacksIsMissedOnlyWhereItIsUsed) {
  EXPECT_EQ(tree_with_library("BEGIN { curlwpsinfo->pr_pri }"),
            "D_TYPE_MEMBER: prio is not a member of struct task_struct");
}

TEST(Library, ProgramsMayDefineItsConstantsAnew) {
  EXPECT_EQ(tree_with_library("inline int SIGINT = 99; BEGIN { SIGINT }"), "99 : int");
}

}  // namespace
}  // namespace clew::query::d
