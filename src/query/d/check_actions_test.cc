// SPDX-License-Identifier: Apache-2.0
// What clauses do: functions, actions, aggregations, speculations, inlines, translators, options.
#include <gtest/gtest.h>

#include "query/d/check_options.h"
#include "query/d/check_testing.h"
#include "query/d/switch_word.h"

namespace clew::query::d {
namespace {

// --- functions and actions -----------------------------------------------------------------------

TEST(Check, SubroutinesHavePrototypes) {
  expect_errors({
      {"strlen(\"a\", \"b\")",
       "D_PROTO_LEN: strlen( ) prototype mismatch: 2 args passed, 1 expected"},
      {"strlen()", "D_PROTO_LEN: strlen( ) prototype mismatch: 0 args passed, 1 expected"},
      {"strlen(5)",
       "D_PROTO_ARG: strlen( ) argument #1 is incompatible with prototype:\n\tprototype: "
       "char "
       "*\n\t argument: int"},
      {"substr(execname)",
       "D_PROTO_LEN: substr( ) prototype mismatch: 1 arg passed, at least 2 expected"},
      {"copyinstr(curthread)",
       "D_PROTO_ARG: copyinstr( ) argument #1 is incompatible with prototype:\n\tprototype: "
       "uintptr_t\n\t argument: struct task_struct *"},
      {"rand(1)", "D_PROTO_LEN: rand( ) prototype mismatch: 1 arg passed, 0 expected"},
      {"alloca(-1)", "D_ALLOCA_SIZE: alloca( ) argument #1 must not be negative"},
  });
  expect_trees({
      {"copyinstr(arg0)", "copyinstr(((uintptr_t) arg0)) : string"},
      {"strtok(0, \" \")", "strtok(0, \" \") : string"},
      {"substr(execname, 1)", "substr(execname, 1) : string"},
      {"copyin(arg0, 4)", "copyin(((uintptr_t) arg0), 4) : void *"},
      {"htons((unsigned short) pid)", "htons(((unsigned short) pid)) : uint16_t"},
      {"progenyof(pid)", "progenyof(pid) : int"},
      {"strchr(execname, 'a')", "strchr(execname, 97) : string"},
      {"json(execname, \"a\")", "json(execname, \"a\") : string"},
      {"uregs[3]", "uregs[3] : uint64_t"},
  });
}

TEST(Check, ActionsHavePrototypes) {
  expect_clause_tags({
      {"exit(0)", "ok"},
      {"exit()", "D_PROTO_LEN"},
      {"exit(execname)", "D_PROTO_ARG"},
      {"raise(9)", "ok"},
      {"stop()", "ok"},
      {"stop(1)", "D_PROTO_LEN"},
      {"trace()", "D_PROTO_LEN"},
      {"trace(1, 2)", "D_PROTO_LEN"},
      {"trace(@a)", "D_TRACE_DYN"},
      {"trace(exit(0))", "D_TRACE_VOID"},
      {"trace(stack())", "D_TRACE_DYN"},
      {"trace(*curthread)", "ok"},
      {"print(*curthread)", "ok"},
      {"print(stack())", "D_PROTO_ARG"},
      {"tracemem(curthread, 16)", "ok"},
      {"tracemem(curthread, 16, pid)", "ok"},
      {"tracemem(curthread, pid)", "D_TRACEMEM_SIZE"},
      {"tracemem(curthread, 0)", "D_TRACEMEM_SIZE"},
      {"tracemem(execname, 8)", "D_TRACEMEM_ADDR"},
      {"tracemem(curthread, 8, execname)", "D_PROTO_ARG"},
      {"tracemem(curthread, 8, 8, 8)", "D_PROTO_LEN"},
      {"stack(pid)", "D_STACK_SIZE"},
      {"stack(0)", "D_STACK_SIZE"},
      {"stack(1, 2)", "D_PROTO_LEN"},
      {"ustack(5, 100)", "ok"},
      {"ustack(pid)", "D_USTACK_FRAMES"},
      {"ustack(5, pid)", "D_USTACK_STRSIZE"},
      {"ustack(5, 6, 7)", "D_PROTO_LEN"},
      {"sym(arg0)", "ok"},
      {"sym(curthread)", "ok"},
      {"usym(execname)", "D_PROTO_ARG"},
      {"ftruncate()", "ok"},
      {"setopt(\"quiet\")", "ok"},
      {"copyout(alloca(4), arg0, 4)", "ok"},
      {"chill(100)", "ok"},
      {"trace(1), trace(2)", "D_OP_ACT"},
  });
  expect_trees({{"stack()", "stack(20l)"}, {"stack(3)", "stack(3)"}, {"ustack()", "ustack(100l)"}});
}

TEST(Check, DestructiveProgramsAreMarked) {
  EXPECT_TRUE(compiled("BEGIN { system(\"ls\"); }")->is_destructive);
  EXPECT_FALSE(compiled("BEGIN { trace(1); }")->is_destructive);
}

TEST(Check, FormatsMatchTheirArguments) {
  expect_clause_tags({
      {"printf(\"%d %s\\n\", 1, execname)", "ok"},
      {"printf(\"%d\")", "D_PRINTF_ARG_PROTO"},
      {"printf(\"%d\", 1, 2)", "D_PRINTF_ARG_EXTRA"},
      {"printf(\"%d\", execname)", "D_PRINTF_ARG_TYPE"},
      {"printf(\"%s\", 1)", "D_PRINTF_ARG_TYPE"},
      {"printf(\"%s\", curthread->comm)", "ok"},
      {"printf(\"%d\", @a)", "D_PRINTF_ARG_TYPE"},
      {"printf(\"%@d\", 1)", "D_PRINTF_AGG_CONV"},
      {"printf(\"%*d\", 5, 1)", "ok"},
      {"printf(\"%*d\")", "D_PRINTF_DYN_PROTO"},
      {"printf(\"%*d\", execname, 1)", "D_PRINTF_DYN_TYPE"},
      {"printf(\"%.*s\", 5, execname)", "ok"},
      {"printf(\"%p\", curthread)", "ok"},
      {"printf(\"%p\", execname)", "D_PRINTF_ARG_TYPE"},
      {"printf(\"%d\", curthread)", "D_PRINTF_ARG_TYPE"},
      {"printf(\"%k\", stack())", "ok"},
      {"printf(\"%Y\", walltimestamp)", "ok"},
      {"printf(\"%a\", arg0)", "ok"},
      {"printf(execname)", "D_PRINTF_ARG_FMT"},
      {"printf()", "D_PROTO_LEN"},
      {"printf(\"%q\", 1)", "D_SYNTAX"},
      {"system(\"echo %d\", pid)", "ok"},
      {"freopen(\"/tmp/%d\", pid)", "ok"},
  });
  expect_errors({
      {"printf(\"%d %d\", 1)",
       "D_PRINTF_ARG_PROTO: printf( ) prototype mismatch: conversion #2 (%d) is missing a "
       "corresponding value argument"},
      {"printf(\"%d\", execname)",
       "D_PRINTF_ARG_TYPE: printf( ) argument #2 is incompatible with conversion #1 "
       "prototype:\n\tconversion: %d\n\t prototype: char, short, int, long, or long "
       "long\n\t  argument: string"},
      {"printf(\"x\", 1)",
       "D_PRINTF_ARG_EXTRA: printf( ) prototype mismatch: only 0 arguments required by this format "
       "string"},
  });
  const auto script = compiled("BEGIN { printf(\"%s\", curthread->comm); }");
  const Statement& statement = script->clauses[0].body[0];
  EXPECT_EQ(statement.expression.operands.size(), 1U);
  EXPECT_EQ(statement.expression.operands[0].kind, NodeKind::StringOf);
  EXPECT_EQ(script->formats[*statement.format].text, "%s");
}

// --- aggregations --------------------------------------------------------------------------------

TEST(Check, AggregationsKeepFunctionAndKeys) {
  expect_clause_tags({
      {"@a = count()", "ok"},
      {"@ = count()", "ok"},
      {"@a[pid, execname] = sum(arg0)", "ok"},
      {"@a[stack(), ustack(5)] = count()", "ok"},
      {"@a = quantize(arg0, 2)", "ok"},
      {"@a = count(1)", "D_PROTO_LEN"},
      {"@a = sum()", "D_PROTO_LEN"},
      {"@a = sum(execname)", "D_AGG_SCALAR"},
      {"@a = sum(@b)", "D_AGG_SCALAR"},
      {"@a = strlen(execname)", "D_AGG_FUNC"},
      {"@a = nothing()", "D_FUNC_UNDEF"},
      {"@a = 5", "D_AGG_FUNC"},
      {"@a = count(); @a = sum(1)", "D_AGG_REDEF"},
      {"@a[1] = count(); @a = count()", "D_PROTO_LEN"},
      {"@a[1] = count(); @a[execname] = count()", "D_PROTO_ARG"},
      {"@a[stack()] = count(); @a[ustack()] = count()", "D_PROTO_ARG"},
      {"@a[@b] = count()", "D_KEY_TYPE"},
      {"@a[exit(0)] = count()", "D_KEY_TYPE"},
      {"@a", "D_AGG_NULL"},
      {"x = (@a = count())", "D_OP_LVAL"},
      {"@a[1][2] = count()", "D_AGG_MDIM"},
      {"pid + @a", "D_OP_INCOMPAT"},
  });
  expect_trees({{"@a[(int) 1] = sum(pid); @a[(long) pid] = sum(uid)",
                 "(@a[((int) ((long) pid))] = sum(((long) uid)))"}});
}

TEST(Check, QuantizationsHaveConstantParameters) {
  expect_clause_tags({
      {"@a = lquantize(arg0, 0, 100, 10)", "ok"},
      {"@a = lquantize(arg0, 0, 100)", "ok"},
      {"@a = lquantize(arg0, -10, 10, 1, pid)", "ok"},
      {"@a = lquantize(arg0)", "D_PROTO_LEN"},
      {"@a = lquantize(arg0, pid, 100)", "D_LQUANT_BASETYPE"},
      {"@a = lquantize(arg0, 0, pid)", "D_LQUANT_LIMTYPE"},
      {"@a = lquantize(arg0, 0, 10, pid)", "D_LQUANT_STEPTYPE"},
      {"@a = lquantize(arg0, 0x100000000, 0)", "D_LQUANT_BASEVAL"},
      {"@a = lquantize(arg0, 0, 0x100000000)", "D_LQUANT_LIMVAL"},
      {"@a = lquantize(arg0, 0, 10, 0)", "D_LQUANT_STEPTYPE"},
      {"@a = lquantize(arg0, 10, 0)", "D_LQUANT_MISMATCH"},
      {"@a = lquantize(arg0, 0, 10, 20)", "D_LQUANT_STEPLARGE"},
      {"@a = lquantize(arg0, 0, 1000000, 100000)", "D_LQUANT_STEPVAL"},
      {"@a = lquantize(arg0, 0, 70000)", "D_LQUANT_STEPSMALL"},
      {"@a = lquantize(1, 0, 10); @a = lquantize(1, 1, 10)", "D_LQUANT_MATCHBASE"},
      {"@a = lquantize(1, 0, 10); @a = lquantize(1, 0, 11)", "D_LQUANT_MATCHLIM"},
      {"@a = lquantize(1, 0, 10); @a = lquantize(1, 0, 10, 2)", "D_LQUANT_MATCHSTEP"},
      {"@a = llquantize(arg0, 10, 0, 6, 20)", "ok"},
      {"@a = llquantize(arg0, 10, 0, 6, 5)", "ok"},
      {"@a = llquantize(arg0, 10, 0, 6, 7)", "D_LLQUANT_STEPVAL"},
      {"@a = llquantize(arg0, 1, 0, 6, 1)", "D_LLQUANT_FACTORVAL"},
      {"@a = llquantize(arg0, 10, 6, 5, 10)", "D_LLQUANT_HMAGVAL"},
      {"@a = llquantize(arg0, 10, 0, 60, 10)", "D_LLQUANT_HMAGVAL"},
      {"@a = llquantize(arg0, pid, 0, 6, 10)", "D_LLQUANT_FACTORTYPE"},
      {"@a = llquantize(arg0, 10, -1, 6, 10)", "D_LLQUANT_LMAGVAL"},
  });
  const auto script = compiled("BEGIN { @a = lquantize(arg0, -5, 100, 10, pid); }");
  EXPECT_EQ(script->aggregations[0].parameters, (std::vector<int64_t>{-5, 100, 10}));
  const Node& call = script->clauses[0].body[0].expression.operands[1];
  EXPECT_EQ(print(call, script->types), "lquantize(arg0, ((long) pid))");
}

TEST(Check, ActionsOnAggregationsWantAggregations) {
  expect_clause_tags({
      {"@a = count(); clear(@a)", "ok"},
      {"@a = count(); clear()", "D_PROTO_LEN"},
      {"@a = count(); clear(pid)", "D_CLEAR_AGGARG"},
      {"clear(@a)", "D_CLEAR_AGGBAD"},
      {"@a = count(); trunc(@a)", "ok"},
      {"@a = count(); trunc(@a, -5)", "ok"},
      {"@a = count(); trunc(@a, execname)", "D_PROTO_ARG"},
      {"@a = count(); trunc(@a, 1, 2)", "D_PROTO_LEN"},
      {"@a = count(); trunc(1)", "D_TRUNC_AGGARG"},
      {"@a = count(); normalize(@a, 2)", "ok"},
      {"@a = count(); normalize(@a)", "D_PROTO_LEN"},
      {"@a = count(); normalize(1, 2)", "D_NORMALIZE_AGGARG"},
      {"@a = count(); normalize(@a, execname)", "D_PROTO_ARG"},
      {"@a = count(); denormalize(@a)", "ok"},
      {"@a = count(); denormalize(@a, 1)", "D_PROTO_LEN"},
      {"@a = count(); printa(@a)", "ok"},
      {"@a[pid] = count(); printa(\"%d %@d\\n\", @a)", "ok"},
      {"@a[pid] = count(); printa(\"%@d\\n\", @a)", "ok"},
      {"@a[pid] = count(); printa(\"%s %@d\\n\", @a)", "D_PRINTF_ARG_TYPE"},
      {"@a[pid] = count(); printa(\"%d %d %@d\\n\", @a)", "D_PRINTF_ARG_PROTO"},
      {"@a[stack()] = count(); printa(\"%k %@d\\n\", @a)", "ok"},
      {"printa(@never)", "D_PRINTA_AGGBAD"},
      {"printa()", "D_PROTO_LEN"},
      {"printa(\"x\")", "D_PRINTA_PROTO"},
      {"printa(\"x\", pid)", "D_PRINTA_AGGARG"},
      {"@a[1] = count(); @b[execname] = count(); printa(@a, @b)", "D_PRINTA_AGGPROTO"},
      {"@a[1] = count(); @b[2] = sum(1); printa(\"%d %@d %@d\", @a, @b)", "ok"},
  });
}

// --- speculation ---------------------------------------------------------------------------------

TEST(Check, SpeculationsHaveTheirOrder) {
  expect_clause_tags({
      {"self->s = speculation(); speculate(self->s); trace(1)", "ok"},
      {"speculate(1); speculate(1)", "D_SPEC_SPEC"},
      {"trace(1); speculate(1)", "D_SPEC_DREC"},
      {"commit(1); speculate(1)", "D_SPEC_COMM"},
      {"trace(1); commit(1)", "D_COMM_DREC"},
      {"commit(1); trace(1)", "D_DREC_COMM"},
      {"commit(1); exit(0)", "D_DREC_COMM"},
      {"speculate(1); @a = count()", "D_AGG_SPEC"},
      {"commit(1); @a = count()", "D_AGG_COMM"},
      {"speculate(1); raise(9)", "D_ACT_SPEC"},
      {"speculate(1); exit(0)", "D_EXIT_SPEC"},
      {"trace(1); discard(1)", "ok"},
      {"discard(1); commit(1)", "ok"},
      {"if (pid) { speculate(1); trace(1); } else { trace(2); }", "ok"},
      {"if (pid) { trace(1); } speculate(1)", "D_SPEC_DREC"},
      {"speculate()", "D_PROTO_LEN"},
      {"speculate(execname)", "D_PROTO_ARG"},
  });
}

// --- inlines, translators, options ---------------------------------------------------------------

TEST(Check, InlinesAreReplacedByTheirValues) {
  EXPECT_EQ(tree_of("inline int two = 2; BEGIN { two + pid }"), "(2 + pid) : pid_t");
  EXPECT_EQ(tree_of("inline long wide = pid; BEGIN { wide }"), "((long) pid) : long");
  EXPECT_EQ(tree_of("inline int next[int x] = x + 1; BEGIN { next[pid] }"), "(pid + 1) : int");
  EXPECT_EQ(tree_of("inline string who = curthread->comm; BEGIN { who }"),
            "stringof(curthread->comm) : string");
  expect_tags({{"inline int x = execname;", "D_OP_INCOMPAT"},
               {"inline int x = 1; inline int x = 2;", "D_DECL_IDRED"},
               {"inline int x[int a] = a; BEGIN { x[1, 2]; }", "D_PROTO_LEN"},
               {"inline int x[int a] = a; BEGIN { x; }", "D_IDENT_BADREF"},
               {"inline int x = 1; BEGIN { x = 2; }", "D_OP_LVAL"}});
}

constexpr std::string_view kTranslator =
    "translator shown_t < struct task_struct *T > { a = T->pid + 1; name = T->comm; };";

std::string translated(std::string_view rest) {
  return fmt::format("{}{}", kTranslator, rest);
}

TEST(Check, TranslatedMembersAreReplaced) {
  EXPECT_EQ(tree_of(translated("BEGIN { xlate <shown_t>(curthread).a }")),
            "(curthread->pid + 1) : int");
  EXPECT_EQ(tree_of(translated("BEGIN { xlate <shown_t *>(curthread)->name }")),
            "stringof(curthread->comm) : string");
  EXPECT_EQ(tree_of(translated("inline shown_t *me = xlate <shown_t *>(curthread);"
                               "BEGIN { me->a }")),
            "(curthread->pid + 1) : int");
  EXPECT_EQ(tree_of(translated("::f:task { args[1]->a }")), "(args->pid + 1) : int");
  const auto script = compiled(translated("::f:task { args[1]->a; }"));
  EXPECT_EQ(script->clauses[0].body[0].expression.operands[0].operands[0].integer, 2U);
}

TEST(Check, TranslatorsAreCheckedWhereTheyStand) {
  expect_tags({
      {translated("BEGIN { xlate <shown_t>(pid).a; }"), "D_XLATE_NONE"},
      {translated("BEGIN { xlate <shown_t>(curthread).b; }"), "D_XLATE_NOCONV"},
      {translated("BEGIN { xlate <shown_t>(curthread).nothing; }"), "D_TYPE_MEMBER"},
      {translated("BEGIN { trace(xlate <shown_t *>(curthread)); }"), "ok"},
      {translated(kTranslator), "D_XLATE_REDECL"},
      {"translator int < struct task_struct *T > { a = 1; };", "D_XLATE_SOU"},
      {"translator shown_t < int T > { nothing = 1; };", "D_XLATE_MEMB"},
      {"translator shown_t < int T > { a = execname; };", "D_XLATE_INCOMPAT"},
  });
}

TEST(Check, OptionsHaveNamesAndValues) {
  expect_tags({{"#pragma D option quiet\nBEGIN { }", "ok"},
               {"#pragma D option bufsize=4m\nBEGIN { }", "ok"},
               {"#pragma D option aggrate=100ms\nBEGIN { }", "ok"},
               {"#pragma D option bufsize=4z\nBEGIN { }", "D_PRAGMA_OPTSET"},
               {"#pragma D option bufsize\nBEGIN { }", "D_PRAGMA_OPTSET"},
               {"#pragma D option nothing\nBEGIN { }", "D_PRAGMA_INVAL"}});
  EXPECT_EQ(error_of("#pragma D option bufsize=x\nBEGIN { }"),
            "D_PRAGMA_OPTSET: failed to set option 'bufsize' to 'x': Invalid value for specified "
            "option");
  const auto script = compiled("#pragma D option strsize=32\nBEGIN { trace(sizeof(string)); }");
  ASSERT_TRUE(script.has_value());
  EXPECT_EQ(script->string_size_bytes, 32U);
  EXPECT_TRUE(script->options.is_set("strsize"));
  EXPECT_EQ(script->clauses[0].body[0].expression.operands[0].integer, 32U);
}

TEST(Check, WordsThatMeanOnOrOffDoInAnyCase) {
  for (const std::string_view off :
       {"0", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF", "disable", "Disable",
        "DISABLE", "disabled", "Disabled", "DISABLED", "unset", "Unset", "UNSET"}) {
    EXPECT_EQ(switch_word(off), false) << off;
  }
  for (const std::string_view on :
       {"", "1", "yes", "Yes", "true", "TRUE", "on", "oN", "enable", "ENABLE", "enabled", "set"}) {
    EXPECT_EQ(switch_word(on), true) << on;
  }
  for (const std::string_view neither : {"2", "n", "y", "offf", "of", "no ", "unse", "none", "-1"})
    EXPECT_EQ(switch_word(neither), std::nullopt) << neither;
}

TEST(Check, EveryOptionThatIsOnOrOffTakesTheseWords) {
  for (const std::string_view name :
       {"aggpercpu",  "aggsortkey",  "aggsortrev",  "aggzoom",  "argref",
        "cpp",        "defaultargs", "destructive", "droptags", "errtags",
        "flowindent", "nolibs",      "noresolve",   "quiet",    "quietresize",
        "rawbytes",   "temporal",    "useruprobes", "verbose",  "zdefs"}) {
    EXPECT_TRUE(check_option(name, "Disabled")) << name;
    EXPECT_TRUE(check_option(name, "unset")) << name;
    EXPECT_FALSE(check_option(name, "perhaps").has_value()) << name;
  }
}

TEST(Check, ValuesOfOptionsAreUnderstood) {
  EXPECT_EQ(option_bytes("4k"), 4096U);
  EXPECT_EQ(option_bytes("1G"), 1U << 30U);
  EXPECT_EQ(option_bytes("3M"), 3U << 20U);
  EXPECT_EQ(option_bytes("2g"), uint64_t{2} << 30U);
  EXPECT_EQ(option_bytes("3t"), uint64_t{3} << 40U);
  EXPECT_EQ(option_bytes("1T"), uint64_t{1} << 40U);
  EXPECT_EQ(option_bytes("16777215t"), uint64_t{16777215} << 40U);
  EXPECT_EQ(option_bytes("16777216t"), std::nullopt);
  EXPECT_EQ(option_bytes("17179869184g"), std::nullopt);
  EXPECT_EQ(option_bytes("4kb"), std::nullopt);
  EXPECT_EQ(option_period_ns("10hz"), 100000000U);
  EXPECT_EQ(option_period_ns("2s"), 2000000000U);
  EXPECT_EQ(option_period_ns("5"), 200000000U);
  EXPECT_EQ(option_period_ns("5x"), std::nullopt);
}

TEST(Check, AnErrorHasTheLineOfItsClause) {
  const auto script = compiled("BEGIN\n{\n  trace(1);\n  trace(nothing);\n}\n");
  ASSERT_FALSE(script.has_value());
  EXPECT_EQ(script.error().line, 4U);
}

}  // namespace
}  // namespace clew::query::d
