// SPDX-License-Identifier: Apache-2.0
// Programs -> their typed trees, printed; and the errors of wrong ones.
#include "query/d/check.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "query/d/check_options.h"
#include "query/d/parse.h"
#include "query/d/print.h"

namespace clew::query::d {
namespace {

// Kernel types and symbols by D text: what a kernel would give.
constexpr std::string_view kKernelTypes =
    "struct path { int mnt; };"
    "struct cred { int uid; };"
    "struct task_struct { int pid; int tgid; char comm[16]; unsigned long state;"
    " struct task_struct *parent; struct cred *cred; int low : 3; long slots[4]; };"
    "struct opaque;"
    "enum mood { GLAD, SAD = 7 };"
    "typedef struct shown { int a; char name[16]; int b; } shown_t;";

class FakeProvider final : public TypeProvider {
 public:
  TypeId find(TypeTable&, std::string_view, Tag, std::string_view) override { return kNoType; }
  std::optional<TypeEnumerator> find_enumerator(TypeTable&, std::string_view) override {
    return std::nullopt;
  }
  Expected<Symbol> find_symbol(TypeTable& table, std::string_view, std::string_view name) override {
    const TypeId type_int = table.find_base("int");
    if (name == "jiffies") return Symbol{0x1000, type_int};
    if (name == "table") return Symbol{0x2000, table.array_of(type_int, 16)};
    if (name == "schedule") return Symbol{0x3000, table.function(table.void_type(), {}, false)};
    if (name == "bare") return Symbol{0x4000, kNoType};
    return fail(ErrorCode::NotFound, "No such symbol");
  }
};

// Probes by the last field of a description.
class FakeProbes final : public ProbeSource {
 public:
  Expected<ProbeArguments> arguments(TypeTable& types, const ProbeDescription& probe) override {
    ProbeArguments found;
    found.matched = 1;
    if (probe.name == "none") found.matched = 0;
    if (probe.name == "bad") return fail(ErrorCode::Refused, "probe cannot be used here");
    const TypeId type_int = types.find_base("int");
    if (probe.name == "typed") found.types = {type_int, types.pointer_to(types.find_base("char"))};
    if (probe.name == "user") {
      found.types = {types.pointer_to(type_int)};
      found.is_userland = true;
    }
    if (probe.name == "untyped") found.types = {kNoType};
    found.disagree = probe.name == "mixed";
    if (probe.name == "task" || probe.name == "odd") {
      const TypeId native =
          types.find("", Tag::Struct, probe.name == "odd" ? "cred" : "task_struct");
      found.types = {type_int, types.pointer_to(types.find("", Tag::None, "shown_t"))};
      found.native_types = {type_int, types.pointer_to(native)};
      found.mapping = {3, 2};
    }
    return found;
  }
};

CompileOptions script_options() {
  CompileOptions options;
  options.name = "test.d";
  return options;
}

Compiled<Script> compiled(std::string_view text, const CompileOptions& options = script_options()) {
  static FakeProvider provider;
  FakeProbes probes;
  TypeTable types;
  types.set_provider(&provider);
  const auto kernel = parse(kKernelTypes, options, types);
  EXPECT_TRUE(kernel.has_value()) << kernel.error().message;
  Program program = CLEW_TRY(parse(text, options, types));
  return check(std::move(program), std::move(types), probes, options);
}

std::string shown_error(const CompileError& error) {
  return fmt::format("{}: {}", error.tag, error.message);
}

// "ok", or tag and message.
std::string error_of(std::string_view text) {
  const auto script = compiled(text);
  return script ? "ok" : shown_error(script.error());
}

std::string tag_of(std::string_view text) {
  const auto script = compiled(text);
  return script ? "ok" : script.error().tag;
}

std::string in_clause(std::string_view body) {
  return fmt::format("BEGIN {{ {} }}", body);
}

// The last statement of the last clause, and the type of its expression.
std::string tree_of(std::string_view text) {
  const auto script = compiled(text);
  if (!script) return shown_error(script.error());
  const Statement& last = script->clauses.back().body.back();
  std::string printed = print(last.expression, script->types);
  const TypeId type = last.expression.type;
  return last.kind == StatementKind::Expression
             ? fmt::format("{} : {}", printed, script->types.name_of(type))
             : printed;
}

struct Case {
  std::string_view text;
  std::string_view expected;
};

void expect_trees(std::initializer_list<Case> cases) {
  for (const Case& each : cases)
    EXPECT_EQ(tree_of(in_clause(each.text)), each.expected) << each.text;
}

void expect_errors(std::initializer_list<Case> cases) {
  for (const Case& each : cases)
    EXPECT_EQ(error_of(in_clause(each.text)), each.expected) << each.text;
}

// Of whole programs.
void expect_tags(std::initializer_list<Case> cases) {
  for (const Case& each : cases)
    EXPECT_EQ(tag_of(each.text), each.expected) << each.text;
}

void expect_clause_tags(std::initializer_list<Case> cases) {
  for (const Case& each : cases)
    EXPECT_EQ(tag_of(in_clause(each.text)), each.expected) << each.text;
}

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
      {"2147483647 + 1", "-2147483648 : int"},
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
      {"execname + 1", "D_OP_INCOMPAT: operands have incompatible types: \"string\" + \"int\""},
      {"execname * 2", "D_OP_INT: operator * requires operands of integral type"},
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
      {"&pid", "D_ADDROF_VAR: cannot take address of dynamic variable or register"},
      {"&(1 + pid)", "D_ADDROF_LVAL: unary & operator requires an lvalue as an operand"},
      {"stringof(*curthread)",
       "D_STRINGOF_TYPE: cannot apply stringof to a value of type struct task_struct"},
      {"pid ? execname : 1",
       "D_OP_INCOMPAT: operands have incompatible types: \"string\" : \"int\""},
      {"execname ? 1 : 2", "D_OP_SCALAR: operator ?: requires an expression of scalar type"},
  });
}

// --- names ---------------------------------------------------------------------------------------

TEST(Check, NamesThatAreNotThereAreErrors) {
  expect_errors({
      {"trace(x)", "D_IDENT_UNDEF: failed to resolve x: Unknown variable name"},
      {"x[1] == 2", "D_IDENT_UNDEF: failed to resolve x: Unknown variable name"},
      {"`nothing", "D_IDENT_UNDEF: failed to resolve `nothing: No such symbol"},
      {"nothing(1)", "D_FUNC_UNDEF: undefined function name: nothing"},
      {"pid(1)", "D_FUNC_IDENT: variable 'pid' may not be called as a function"},
      {"strlen", "D_IDENT_BADREF: function 'strlen' may not be referenced as scalar"},
      {"args", "D_IDENT_BADREF: associative array 'args' may not be referenced as scalar"},
      {"x[1] = 2; x", "D_IDENT_BADREF: associative array 'x' may not be referenced as scalar"},
      {"x = 1; x[2]", "D_IDENT_BADREF: scalar 'x' may not be referenced as associative array"},
      {"x = 1; x[2] = 3", "D_IDENT_BADREF: scalar 'x' may not be referenced as associative array"},
      {"count()", "D_AGG_NULL: count( ) has no effect without an aggregation"},
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
      {"self->nothing", "self->nothing : int"},
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
      {"x = @a",
       "D_OP_INCOMPAT: operands have incompatible types: \"<unknown>\" = \"aggregation\""},
      {"x = exit(0)", "D_OP_INCOMPAT: operands have incompatible types: \"<unknown>\" = \"void\""},
      {"x = stack()", "D_OP_INCOMPAT: operands have incompatible types: \"<unknown>\" = \"<DYN>\""},
      {"1 = 2", "D_OP_LVAL: operator = requires modifiable lvalue as an operand"},
      {"1++", "D_OP_LVAL: operator ++ requires modifiable lvalue as an operand"},
      {"pid = 2", "D_OP_WRITE: operator = can only be applied to a writable variable"},
      {"`jiffies = 2", "D_OP_WRITE: operator = can only be applied to a writable variable"},
      {"curthread->pid = 2", "D_OP_WRITE: operator = can only be applied to a writable variable"},
      {"pid++", "D_OP_WRITE: operator ++ can only be applied to a writable variable"},
      {"x = curthread->slots",
       "D_OP_ARRFUN: operator = may not be applied to operand of type \"long [4]\""},
      {"x = execname; x += 1",
       "D_OP_INCOMPAT: operands have incompatible types: \"string\" + \"int\""},
      {"a[1] = 2; a[1, 2] = 3", "D_PROTO_LEN: a[ ] prototype mismatch: 2 keys passed, 1 expected"},
      {"a[1] = 2; a[execname] = 3",
       "D_PROTO_ARG: a[ ] key #1 is incompatible with prototype:\n\tprototype: int\n\t argument: "
       "string"},
      {"a[1] = 2; a[1] = execname",
       "D_OP_INCOMPAT: operands have incompatible types: \"int\" = \"string\""},
      {"a[@b] = 1",
       "D_KEY_TYPE: aggregation expression may not be used as associative array index: key #1"},
      {"a[*curthread] = 1",
       "D_KEY_TYPE: struct task_struct expression may not be used as associative array index: key "
       "#1"},
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
  EXPECT_EQ(error_of("::f:bad { }"), "D_PDESC_INVAL: probe cannot be used here");
  CompileOptions options = script_options();
  options.allow_unmatched_probes = true;
  EXPECT_TRUE(compiled("::f:none { }", options).has_value());
  expect_tags({{"#pragma D option zdefs\n::f:none { }", "ok"}});
}

TEST(Check, PredicatesAreScalars) {
  expect_tags({{"BEGIN /pid == 1/ { }", "ok"},
               {"BEGIN /curthread/ { }", "ok"},
               {"BEGIN /execname/ { }", "D_PRED_SCALAR"},
               {"BEGIN /@a/ { }", "D_PRED_SCALAR"},
               {"BEGIN { if (execname) { trace(1); } }", "D_PRED_SCALAR"},
               {"BEGIN { if (pid) { trace(1); } else { trace(2); } }", "ok"}});
}

// --- functions and actions -----------------------------------------------------------------------

TEST(Check, SubroutinesHavePrototypes) {
  expect_errors({
      {"strlen(\"a\", \"b\")",
       "D_PROTO_LEN: strlen( ) prototype mismatch: 2 args passed, 1 expected"},
      {"strlen()", "D_PROTO_LEN: strlen( ) prototype mismatch: 0 args passed, 1 expected"},
      {"strlen(5)",
       "D_PROTO_ARG: strlen( ) argument #1 is incompatible with prototype:\n\tprototype: const "
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
      {"trace(@a)", "D_TRACE_AGG"},
      {"trace(exit(0))", "D_TRACE_VOID"},
      {"trace(stack())", "D_TRACE_DYN"},
      {"trace(*curthread)", "ok"},
      {"print(*curthread)", "ok"},
      {"print(stack())", "D_PRINT_DYN"},
      {"tracemem(curthread, 16)", "ok"},
      {"tracemem(curthread, 16, pid)", "ok"},
      {"tracemem(curthread, pid)", "D_TRACEMEM_SIZE"},
      {"tracemem(curthread, 0)", "D_TRACEMEM_SIZE"},
      {"tracemem(execname, 8)", "D_TRACEMEM_ADDR"},
      {"tracemem(curthread, 8, execname)", "D_TRACEMEM_DYNSIZE"},
      {"tracemem(curthread, 8, 8, 8)", "D_TRACEMEM_ARGS"},
      {"stack(pid)", "D_STACK_SIZE"},
      {"stack(0)", "D_STACK_SIZE"},
      {"stack(1, 2)", "D_STACK_PROTO"},
      {"ustack(5, 100)", "ok"},
      {"ustack(pid)", "D_USTACK_FRAMES"},
      {"ustack(5, pid)", "D_USTACK_STRSIZE"},
      {"ustack(5, 6, 7)", "D_USTACK_PROTO"},
      {"sym(arg0)", "ok"},
      {"sym(curthread)", "ok"},
      {"usym(execname)", "D_PROTO_ARG"},
      {"ftruncate()", "ok"},
      {"setopt(\"quiet\")", "ok"},
      {"copyout(alloca(4), arg0, 4)", "ok"},
      {"chill(100)", "ok"},
      {"trace(1), trace(2)", "D_FUNC_IDENT"},
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
       "prototype:\n\tconversion: %d\n\t prototype: integer\n\t  argument: string"},
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
      {"@a[*curthread] = count()", "D_KEY_TYPE"},
      {"@a[exit(0)] = count()", "D_KEY_TYPE"},
      {"@a", "D_AGG_NULL"},
      {"x = (@a = count())", "D_AGG_RVAL"},
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
      {"@a = lquantize(arg0, 0, 10, 0)", "D_LQUANT_STEPVAL"},
      {"@a = lquantize(arg0, 10, 0)", "D_LQUANT_MISMATCH"},
      {"@a = lquantize(arg0, 0, 10, 20)", "D_LQUANT_STEPLARGE"},
      {"@a = lquantize(arg0, 0, 1000000, 100000)", "D_LQUANT_STEPLARGE"},
      {"@a = lquantize(arg0, 0, 70000)", "D_LQUANT_STEPSMALL"},
      {"@a = lquantize(1, 0, 10); @a = lquantize(1, 1, 10)", "D_LQUANT_MATCHBASE"},
      {"@a = lquantize(1, 0, 10); @a = lquantize(1, 0, 11)", "D_LQUANT_MATCHLIM"},
      {"@a = lquantize(1, 0, 10); @a = lquantize(1, 0, 10, 2)", "D_LQUANT_MATCHSTEP"},
      {"@a = llquantize(arg0, 10, 0, 6, 20)", "ok"},
      {"@a = llquantize(arg0, 10, 0, 6, 5)", "ok"},
      {"@a = llquantize(arg0, 10, 0, 6, 7)", "D_LLQUANT_STEPVAL"},
      {"@a = llquantize(arg0, 1, 0, 6, 1)", "D_LLQUANT_FACTORSMALL"},
      {"@a = llquantize(arg0, 10, 6, 6, 10)", "D_LLQUANT_MAGRANGE"},
      {"@a = llquantize(arg0, 10, 0, 60, 10)", "D_LLQUANT_MAGTOOBIG"},
      {"@a = llquantize(arg0, pid, 0, 6, 10)", "D_LLQUANT_FACTORTYPE"},
      {"@a = llquantize(arg0, 10, -1, 6, 10)", "D_LLQUANT_LOWVAL"},
  });
  const auto script = compiled("BEGIN { @a = lquantize(arg0, -5, 100, 10, pid); }");
  EXPECT_EQ(script->aggregations[0].parameters, (std::vector<int64_t>{-5, 100, 10}));
  const Node& call = script->clauses[0].body[0].expression.operands[1];
  EXPECT_EQ(print(call, script->types), "lquantize(arg0, ((long) pid))");
}

TEST(Check, ActionsOnAggregationsWantAggregations) {
  expect_clause_tags({
      {"@a = count(); clear(@a)", "ok"},
      {"@a = count(); clear()", "D_CLEAR_PROTO"},
      {"@a = count(); clear(pid)", "D_CLEAR_AGGARG"},
      {"clear(@a)", "D_CLEAR_AGGBAD"},
      {"@a = count(); trunc(@a)", "ok"},
      {"@a = count(); trunc(@a, -5)", "ok"},
      {"@a = count(); trunc(@a, execname)", "D_TRUNC_SCALAR"},
      {"@a = count(); trunc(@a, 1, 2)", "D_TRUNC_PROTO"},
      {"@a = count(); trunc(1)", "D_TRUNC_AGGARG"},
      {"@a = count(); normalize(@a, 2)", "ok"},
      {"@a = count(); normalize(@a)", "D_NORMALIZE_PROTO"},
      {"@a = count(); normalize(1, 2)", "D_NORMALIZE_AGGARG"},
      {"@a = count(); normalize(@a, execname)", "D_NORMALIZE_SCALAR"},
      {"@a = count(); denormalize(@a)", "ok"},
      {"@a = count(); denormalize(@a, 1)", "D_DENORMALIZE_PROTO"},
      {"@a = count(); printa(@a)", "ok"},
      {"@a[pid] = count(); printa(\"%d %@d\\n\", @a)", "ok"},
      {"@a[pid] = count(); printa(\"%@d\\n\", @a)", "ok"},
      {"@a[pid] = count(); printa(\"%s %@d\\n\", @a)", "D_PRINTF_ARG_TYPE"},
      {"@a[pid] = count(); printa(\"%d %d %@d\\n\", @a)", "D_PRINTF_ARG_PROTO"},
      {"@a[stack()] = count(); printa(\"%k %@d\\n\", @a)", "ok"},
      {"printa(@never)", "D_PRINTA_AGGBAD"},
      {"printa()", "D_PRINTA_PROTO"},
      {"printa(\"x\")", "D_PRINTA_PROTO"},
      {"printa(\"x\", pid)", "D_PRINTA_AGGARG"},
      {"@a[1] = count(); @b[execname] = count(); printa(@a, @b)", "D_PRINTA_AGGKEY"},
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
      {"commit(1); commit(1)", "D_COMM_COMM"},
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
      {translated("BEGIN { trace(xlate <shown_t *>(curthread)); }"), "D_XLATE_MEMB"},
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
  EXPECT_TRUE(script->options.has("strsize"));
  EXPECT_EQ(script->clauses[0].body[0].expression.operands[0].integer, 32U);
}

TEST(Check, ValuesOfOptionsAreUnderstood) {
  EXPECT_EQ(option_bytes("4k"), 4096U);
  EXPECT_EQ(option_bytes("1G"), 1U << 30U);
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
