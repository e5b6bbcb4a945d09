// SPDX-License-Identifier: Apache-2.0
// Values, names and probes: programs -> their typed trees, printed; and the errors of wrong ones.
#include "query/d/check.h"

#include <gtest/gtest.h>

#include "query/d/check_testing.h"

namespace clew::query::d {
namespace {

// --- values --------------------------------------------------------------------------------------

TEST(Check, ArithmeticHasTheTypesOfC) {
  expect_trees({
      {"1 + 2", "3 : int"},
      {"cpu + 1", "(cpu + 1) : int"},
      {"cpu + 1ll", "(((long long) cpu) + 1ll) : long long"},
      {"pid * timestamp", "(((uint64_t) pid) * timestamp) : uint64_t"},
      {"uid - pid", "(uid - ((uid_t) pid)) : uid_t"},
      {"(char) cpu + 1", "(((int) ((char) cpu)) + 1) : int"},
      {"arg0 << cpu", "(arg0 << cpu) : int64_t"},
      {"(short) cpu << timestamp", "(((int) ((short) cpu)) << timestamp) : int"},
      {"-cpu", "(-cpu) : processorid_t"},
      {"~(unsigned char) 1", "-2 : int"},
      {"!pid", "(!pid) : int"},
      {"pid && curthread", "(pid && curthread) : int"},
      {"1 ^^ 0", "1 : int"},
      {"arg0 < pid", "(arg0 < ((int64_t) pid)) : int"},
      {"pid ? 1 : 2ll", "(pid ? 1ll : 2ll) : long long"},
      {"pid == 1, 5", "((pid == 1), 5) : int"},
  });
}

TEST(Check, ConstantsAreFolded) {
  expect_trees({
      {"(char) 0xef", "-17 : char"},
      {"(unsigned char) -1", "255 : unsigned char"},
      {"7 / 2", "3 : int"},
      {"-7 % 3", "-1 : int"},
      {"1 << 4", "16 : int"},
      {"-8 >> 1", "-4 : int"},
      {"1 ? 4 : 5", "4 : int"},
      {"sizeof(int)", "4ul : unsigned long"},
      {"sizeof(struct task_struct)", "88ul : unsigned long"},
      {"sizeof(curthread->comm)", "16ul : unsigned long"},
      {"sizeof(string)", "256ul : unsigned long"},
      {"offsetof(struct task_struct, comm)", "8ul : unsigned long"},
      {"GLAD", "0 : enum mood"},
      {"SAD + 1", "8 : int"},
      {"2147483647 + 1", "(2147483647 + 1) : int"},
      {"(2 > 1) && (3 != 4)", "1 : int"},
  });
}

TEST(Check, StringsAreComparedAsText) {
  expect_trees({
      {"execname == \"sh\"", "(execname == \"sh\") : int"},
      {"execname < probename", "(execname < probename) : int"},
      {"curthread->comm == \"x\"", "(stringof(curthread->comm) == \"x\") : int"},
      {"strstr(execname, \"a\") == 0", "(strstr(execname, \"a\") == 0) : int"},
      {"pid ? execname : \"x\"", "(pid ? execname : \"x\") : string"},
      {"stringof(curthread->comm)", "stringof(curthread->comm) : string"},
      {"stringof(execname)", "execname : string"},
      {"(string) curthread->comm", "stringof(curthread->comm) : string"},
      {"strlen(curthread->comm)", "strlen(stringof(curthread->comm)) : size_t"},
  });
}

TEST(Check, PointersAreScaledAndDereferenced) {
  expect_trees({
      {"curthread + 1", "(curthread + 88l) : struct task_struct *"},
      {"curthread + pid", "(curthread + (((long) pid) * 88l)) : struct task_struct *"},
      {"curthread - curthread", "((curthread - curthread) / 88l) : long"},
      {"curthread->pid", "curthread->pid : int"},
      {"(*curthread).pid", "(*curthread).pid : int"},
      {"curthread->parent->comm", "curthread->parent->comm : char [16]"},
      {"curthread->slots[1]", "curthread->slots[1l] : long"},
      {"curthread->slots[pid]", "curthread->slots[((long) pid)] : long"},
      {"*curthread->slots", "(*((long *) curthread->slots)) : long"},
      {"&curthread->pid", "(&curthread->pid) : int *"},
      {"`jiffies + 1", "(`jiffies + 1) : int"},
      {"vmlinux`table[3]", "vmlinux`table[3l] : int"},
      {"&`bare", "(&`bare) : void *"},
      {"(uintptr_t) &`schedule", "((uintptr_t) (&`schedule)) : uintptr_t"},
      {"*(int *) arg0", "(*((int *) arg0)) : int"},
      {"((char *) arg0)[2]", "((char *) arg0)[2l] : char"},
      {"curthread == 0", "(curthread == 0) : int"},
      {"curthread->low", "curthread->low : int"},
      {"execname[1]", "((char *) execname)[1l] : char"},
  });
}

TEST(Check, OperatorsRefuseWhatTheyCannotTake) {
  expect_errors({
      {"execname - 1", "D_OP_INCOMPAT: operands have incompatible types: \"string\" - \"int\""},
      {"execname * 2", "D_OP_ARITH: operator * requires operands of arithmetic type"},
      {"curthread & 1", "D_OP_INT: operator & requires operands of integral type"},
      {"~execname", "D_OP_INT: operator ~ requires an operand of integral type"},
      {"!execname", "D_OP_SCALAR: operator ! requires an operand of scalar type"},
      {"execname && 1", "D_OP_SCALAR: operator && requires operands of scalar type"},
      {"execname == 5", "D_OP_INCOMPAT: operands have incompatible types: \"string\" == \"int\""},
      {"curthread == 5",
       "D_OP_INCOMPAT: operands have incompatible types: \"struct task_struct *\" == \"int\""},
      {"1 / 0", "D_DIV_ZERO: expression contains division by zero"},
      {"pid % 0", "D_DIV_ZERO: expression contains division by zero"},
      {"pid->x", "D_OP_PTR: operator -> must be applied to a pointer"},
      {"curthread.pid",
       "D_OP_SOU: operator . cannot be applied to type \"struct task_struct *\"; must be applied "
       "to "
       "a struct or union"},
      {"curthread->nothing", "D_TYPE_MEMBER: nothing is not a member of struct task_struct"},
      {"((struct opaque *) arg0)->x",
       "D_OP_INCOMPLETE: operator -> cannot be applied to a forward declaration: no struct opaque "
       "definition is available"},
      {"((int *) arg0)->x",
       "D_OP_SOU: operator -> cannot be applied to pointer to type \"int\"; must be applied to a "
       "struct or union pointer"},
      {"`table[256]", "D_ARR_BOUNDS: index outside array bounds: 256, max is 16"},
      {"`table[-1]", "D_ARR_BOUNDS: index outside array bounds: -1, max is 16"},
      {"*pid", "D_DEREF_NONPTR: cannot dereference non-pointer type"},
      {"*(void *) arg0", "D_DEREF_VOID: cannot dereference pointer to void"},
      {"(struct cred) pid", "D_CAST_INVAL: invalid cast expression: \"pid_t\" to \"struct cred\""},
      {"(int) execname", "D_CAST_INVAL: invalid cast expression: \"string\" to \"int\""},
      {"sizeof(void)", "D_SIZEOF_TYPE: cannot apply sizeof to an operand of unknown size"},
      {"sizeof(curthread->low)", "D_SIZEOF_BITFIELD: cannot apply sizeof to a bit-field"},
      {"offsetof(struct task_struct, low)",
       "D_OFFSETOF_BITFIELD: cannot take offset of a bit-field: low"},
      {"offsetof(int, low)", "D_OFFSETOF_TYPE: offsetof operand must be a struct or union type"},
      {"&pid", "D_ADDROF_VAR: cannot take address of dynamic variable"},
      {"&(1 + pid)", "D_ADDROF_LVAL: unacceptable operand for unary & operator"},
      {"stringof(*curthread)",
       "D_STRINGOF_TYPE: cannot apply stringof to a value of type struct task_struct"},
      {"pid ? execname : 1", "D_OP_INCOMPAT: operator ?: operands must have compatible types"},
      {"execname ? 1 : 2", "D_OP_SCALAR: operator ?: expression must be of scalar type"},
  });
}

// --- names ---------------------------------------------------------------------------------------

TEST(Check, NamesThatAreNotThereAreErrors) {
  expect_errors({
      {"trace(x)", "D_IDENT_UNDEF: failed to resolve x: Unknown variable name"},
      {"x[1] == 2", "D_IDENT_UNDEF: failed to resolve x: Unknown variable name"},
      {"`nothing", "D_IDENT_UNDEF: failed to resolve `nothing: No such symbol"},
      {"nothing(1)", "D_FUNC_UNDEF: undefined function name: nothing"},
      {"pid(1)", "D_FUNC_IDKIND: scalar 'pid' may not be referenced as a function"},
      {"strlen", "D_IDENT_BADREF: function 'strlen' may not be referenced as scalar"},
      {"args", "D_IDENT_BADREF: associative array 'args' may not be referenced as scalar"},
      {"x[1] = 2; x", "D_IDENT_BADREF: associative array 'x' may not be referenced as scalar"},
      {"x = 1; x[2]", "D_DEREF_NONPTR: cannot dereference non-pointer type"},
      {"x = 1; x[2] = 3", "D_DEREF_NONPTR: cannot dereference non-pointer type"},
      {"count()",
       "D_CG_EXPR: aggregating function count( ) may not be called from a D expression (D program "
       "context required)"},
  });
}

TEST(Check, VariablesTakeTheTypeOfTheirFirstStore) {
  expect_trees({
      {"x = 1; x", "x : int"},
      {"x = timestamp; x", "x : uint64_t"},
      {"x = execname; x", "x : string"},
      {"x = curthread->comm; x", "x : string"},
      {"self->p = curthread; self->p->pid", "self->p->pid : int"},
      {"x++; x", "x : int64_t"},
      {"x += 2; x", "x : int64_t"},
      {"++this->x", "(++this->x) : int64_t"},
      {"x = (char) 1; x = 300", "(x = 44) : char"},
      {"x = timestamp; x = pid", "(x = ((uint64_t) pid)) : uint64_t"},
      {"a[1, execname] = 5ll; a[2, \"x\"]", "a[2, \"x\"] : long long"},
      {"a[(long) 1] = 1; a[pid]", "a[((long) pid)] : int"},
      {"self->a[pid] = execname; self->a[1]", "self->a[1] : string"},
      {"x = curthread; x = 0", "(x = 0) : struct task_struct *"},
      {"x = execname; x = 0", "(x = 0) : string"},
      {"self->t = *curthread; self->t = 0", "(self->t = 0) : struct task_struct"},
      {"x = 1ll; x /= pid", "(x /= ((long long) pid)) : long long"},
      {"self->p = (int *) arg0; self->p += 2", "(self->p += 8l) : int *"},
      {"self->p = (char *) alloca(8); *self->p = 300", "((*self->p) = 44) : char"},
  });
}

TEST(Check, LoadsAboveTheFirstStoreHaveItsType) {
  expect_tags(
      {{"END /self->t/ { trace(timestamp - self->t); } BEGIN { self->t = timestamp; }", "ok"},
       {"END /self->s != 0/ { trace(self->s); } BEGIN { self->s = execname; }", "ok"},
       {"END { trace(self->p->pid); } BEGIN { self->p = curthread; }", "ok"},
       {"END { self->b = self->a; self->b->pid; } BEGIN { self->a = curthread; }", "ok"},
       {"END { trace(self->a[1]); } BEGIN { self->a[1] = execname; }", "ok"},
       {"END { trace(x); } BEGIN { x = 1; }", "D_IDENT_UNDEF"}});
  const auto script = compiled("END { trace(self->t); } BEGIN { self->t = timestamp; }");
  ASSERT_TRUE(script.has_value());
  EXPECT_EQ(script->types.name_of(script->variables[0].type), "uint64_t");
  EXPECT_EQ(script->variables.size(), 1U);
}

TEST(Check, StoresRefuseWhatDoesNotFit) {
  expect_errors({
      {"x = 1; x = execname",
       "D_OP_INCOMPAT: operands have incompatible types: \"int\" = \"string\""},
      {"x = execname; x = 1",
       "D_OP_INCOMPAT: operands have incompatible types: \"string\" = \"int\""},
      {"x = @a", "D_OP_INCOMPAT: operands have incompatible types: \"scalar\" = \"aggregation\""},
      {"x = exit(0)", "D_OP_INCOMPAT: operands have incompatible types: \"void\" = \"void\""},
      {"x = stack()", "D_OP_INCOMPAT: operands have incompatible types: \"scalar\" = \"<DYN>\""},
      {"1 = 2", "D_OP_LVAL: operator = requires modifiable lvalue as an operand"},
      {"1++", "D_OP_LVAL: operator ++ requires modifiable lvalue as an operand"},
      {"pid = 2", "D_OP_WRITE: operator = can only be applied to a writable variable"},
      {"`jiffies = 2", "D_OP_WRITE: operator = can only be applied to a writable variable"},
      {"curthread->pid = 2", "D_OP_WRITE: operator = can only be applied to a writable variable"},
      {"pid++", "D_OP_WRITE: operator ++ can only be applied to a writable variable"},
      {"x = curthread->slots",
       "D_OP_ARRFUN: operator = may not be applied to operand of type \"long [4]\""},
      {"x = execname; x += 1",
       "D_OP_INCOMPAT: operands have incompatible types: \"string\" += \"int\""},
      {"a[1] = 2; a[1, 2] = 3", "D_PROTO_LEN: a[ ] prototype mismatch: 2 keys passed, 1 expected"},
      {"a[1] = 2; a[execname] = 3",
       "D_PROTO_ARG: a[ ] key #1 is incompatible with prototype:\n\tprototype: int\n\t      key: "
       "string"},
      {"a[1] = 2; a[1] = execname",
       "D_OP_INCOMPAT: operands have incompatible types: \"int\" = \"string\""},
      {"a[@b] = 1",
       "D_KEY_TYPE: aggregation expression may not be used as associative array index: key #1"},
      {"a[stack()] = 1",
       "D_KEY_TYPE: <DYN> expression may not be used as associative array index: key #1"},
  });
}

TEST(Check, DeclarationsGiveVariablesTheirTypes) {
  expect_tags({{"int x; BEGIN { x = 1; }", "ok"},
               {"string a[int, string]; BEGIN { a[1, \"x\"] = \"y\"; }", "ok"},
               {"string a[int]; BEGIN { a[\"x\"] = \"y\"; }", "D_PROTO_ARG"},
               {"self int x; int x; BEGIN { x = self->x; }", "ok"},
               {"int x; int x;", "ok"},
               {"int x; long x;", "D_DECL_IDRED"},
               {"int pid;", "D_DECL_IDRED"},
               {"struct cred c; BEGIN { c = *curthread->cred; trace(c.uid); }", "ok"}});
}

// --- probes --------------------------------------------------------------------------------------

TEST(Check, ArgumentsAreTypedByTheProbe) {
  EXPECT_EQ(tree_of("::f:typed { args[0] + 1 }"), "(args + 1) : int");
  EXPECT_EQ(tree_of("::f:typed { stringof(args[1]) }"), "stringof(args) : string");
  EXPECT_EQ(tree_of("::f:typed, :::typed { args[0] }"), "args : int");
  const auto script = compiled("::f:user { *args[0]; }");
  ASSERT_TRUE(script.has_value());
  EXPECT_TRUE(script->clauses[0].body[0].expression.is_userland);
}

TEST(Check, PointersOfTheTracedProgramStayItsOwn) {
  const auto is_userland = [](std::string_view text) {
    const auto script = compiled(text);
    EXPECT_TRUE(script.has_value()) << shown_error(script.error());
    return script && script->clauses.back().body.back().expression.is_userland;
  };
  EXPECT_TRUE(is_userland("::f:user { *(char *) args[0]; }"));
  EXPECT_TRUE(is_userland("::f:user { ((struct cred *) arg1)->uid; }"));
  EXPECT_TRUE(is_userland("::f:user { self->p = args[0]; } BEGIN { *self->p; }"));
  EXPECT_TRUE(is_userland("::f:user { self->p = &((struct cred *) arg1)->uid; *self->p; }"));
  EXPECT_FALSE(is_userland("::f:user { curthread->cred->uid; }"));
}

TEST(Check, ArgumentsThatAreNotThereAreErrors) {
  EXPECT_EQ(error_of("::f:typed { args[5]; }"),
            "D_ARGS_IDX: index 5 is out of range for ::f:typed args[ ]");
  EXPECT_EQ(error_of("BEGIN { args[0]; }"),
            "D_ARGS_IDX: index 0 is out of range for :::BEGIN args[ ]");
  EXPECT_EQ(error_of("::f:mixed { args[0]; }"),
            "D_ARGS_MULTI: args[ ] may not be referenced because probe description ::f:mixed "
            "matches an unstable set of probes");
  EXPECT_EQ(error_of("::f:untyped { args[0]; }"),
            "D_ARGS_TYPE: failed to resolve native type for args[0]");
  expect_tags({{"::f:typed, ::f:user { args[0]; }", "D_ARGS_MULTI"},
               {"::f:typed { args[pid]; }", "D_PROTO_ARG"},
               {"::f:typed { args[0, 1]; }", "D_PROTO_LEN"},
               {"inline int x = args[0];", "D_ARGS_NONE"},
               {"::f:odd { args[1]->a; }", "D_ARGS_XLATOR"}});
}

TEST(Check, DescriptionsMustMatch) {
  EXPECT_EQ(error_of("::f:none { }"),
            "D_PDESC_ZERO: probe description ::f:none does not match any probes");
  EXPECT_EQ(error_of("::naer:none { }"),
            "D_PDESC_ZERO: probe description ::naer:none does not match any probes");
  EXPECT_EQ(error_of("::f:bad { }"), "D_PDESC_INVAL: probe cannot be used here");
  const auto function = compiled("pid77:shop:naer:entry { }");
  ASSERT_FALSE(function);
  EXPECT_EQ(function.error().tag, "D_PROC_FUNC");
  EXPECT_EQ(function.error().nearest, "::near:none");
  CompileOptions options = script_options();
  options.allow_unmatched_probes = true;
  EXPECT_TRUE(compiled("::f:none { }", options).has_value());
  expect_tags({{"#pragma D option zdefs\n::f:none { }", "ok"}});
}

// As the command line has one: without a line, in front.
std::string format_of(const std::string& text, const std::vector<PragmaOption>& command_line) {
  TypeTable types;
  FakeProbes probes;
  auto program = parse(text, script_options(), types);
  EXPECT_TRUE(program) << program.error().message;
  program->options.insert(program->options.begin(), command_line.begin(), command_line.end());
  const auto script = check(std::move(*program), std::move(types), probes, script_options());
  EXPECT_TRUE(script) << script.error().message;
  const Options& options = script->options;
  const auto format = options.values.find("format");
  return (format == options.values.end() ? "-" : format->second) +
         (options.is_set("json") ? " json" : "");
}

TEST(Check, TheCommandLineSaysTheFormatBeforeTheProgramDoes) {
  const std::string program = "#pragma D option format=csv\nBEGIN { }";
  EXPECT_EQ(format_of(program, {}), "csv");
  EXPECT_EQ(format_of(program, {{.name = "format", .value = "chart"}}), "chart");
  EXPECT_EQ(format_of(program, {{.name = "json", .value = {}}}), "- json");
  EXPECT_EQ(format_of("#pragma D option json\nBEGIN { }", {{.name = "format", .value = "csv"}}),
            "csv");
  EXPECT_EQ(format_of("#pragma D option format=csv\n#pragma D option format=chart\nBEGIN { }", {}),
            "chart");
}

TEST(Check, DefinitionsMayNotGrowWithoutEnd) {
  std::string inlines = "inline int a0 = pid + pid;";
  for (int i = 1; i <= 60; ++i)
    inlines += fmt::format("inline int a{} = a{} + a{};", i, i - 1, i - 1);
  EXPECT_EQ(tag_of(inlines + "BEGIN { trace(1); }"), "D_NOMEM");
  std::string nested = "pid";
  for (int i = 0; i < 30; ++i)
    nested = fmt::format("twice[{}]", nested);
  EXPECT_EQ(tag_of("inline int twice[int x] = x + x; BEGIN { trace(" + nested + "); }"), "D_NOMEM");
}

TEST(Check, WhatNoKernelProgramCanDoIsRefused) {
  expect_tags({{"BEGIN { panic(); }", "D_UNKNOWN"},
               {"BEGIN { breakpoint(); }", "D_UNKNOWN"},
               {"BEGIN { pcap(0, 1); }", "D_UNKNOWN"},
               {"#pragma D option oformat=json\nBEGIN { }", "D_PRAGMA_OPTSET"}});
}

TEST(Check, OptionsThatSayOffAreOff) {
  expect_tags(
      {{"#pragma D option zdefs=off\n::f:none { }", "D_PDESC_ZERO"},
       {"#pragma D option zdefs\n#pragma D option zdefs=disabled\n::f:none { }", "D_PDESC_ZERO"},
       {"#pragma D option zdefs=enable\n::f:none { }", "ok"},
       {"#pragma D option quiet=perhaps\nBEGIN { }", "D_PRAGMA_OPTSET"}});
}

TEST(Check, PredicatesAreScalars) {
  expect_tags({{"BEGIN /pid == 1/ { }", "ok"},
               {"BEGIN /curthread/ { }", "ok"},
               {"BEGIN /execname/ { }", "D_PRED_SCALAR"},
               {"BEGIN /@a/ { }", "D_PRED_SCALAR"},
               {"BEGIN { if (execname) { trace(1); } }", "D_PRED_SCALAR"},
               {"BEGIN { if (pid) { trace(1); } else { trace(2); } }", "ok"}});
}

}  // namespace
}  // namespace clew::query::d
