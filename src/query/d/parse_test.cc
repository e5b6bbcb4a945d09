// SPDX-License-Identifier: Apache-2.0
// Text of D programs -> their trees, printed again; and the errors of wrong ones.
#include "query/d/parse.h"

#include <array>
#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "query/d/parse_testing.h"

namespace clew::query::d {
namespace {

using testing::HasSubstr;

struct PrintedCase {
  std::string_view text;
  std::string_view expected;
};

void expect_programs(std::initializer_list<PrintedCase> cases) {
  for (const PrintedCase& each : cases)
    EXPECT_EQ(printed(each.text), std::string(each.expected) + "\n") << each.text;
}

void expect_expressions(std::initializer_list<PrintedCase> cases) {
  for (const PrintedCase& each : cases)
    EXPECT_EQ(printed(fmt::format("BEGIN{{{}}}", each.text)),
              fmt::format(":::BEGIN {{ {}; }}\n", each.expected))
        << each.text;
}

void expect_syntax_errors(std::initializer_list<PrintedCase> cases) {
  for (const PrintedCase& each : cases)
    EXPECT_EQ(printed(each.text), each.expected) << each.text;
}

// --- clauses -------------------------------------------------------------------------------------

TEST(Parse, DescriptionsFillTheirFieldsFromTheRight) {
  expect_programs({
      {"BEGIN", ":::BEGIN"},
      {"BEGIN {}", ":::BEGIN { }"},
      {"syscall::read:entry", "syscall::read:entry"},
      {"read:entry", "::read:entry"},
      {":::", ":::"},
      {"syscall:::", "syscall:::"},
      {"profile:::tick-1s", "profile:::tick-1s"},
      {"tick-5sec, END", ":::tick-5sec, :::END"},
      {"fbt:vmlinux:tcp_*:entry,fbt::[ab]?:return{}",
       "fbt:vmlinux:tcp_*:entry, fbt::[ab]?:return { }"},
      {"pid1:a.out:main:1f", "pid1:a.out:main:1f"},
      {"123", "123"},
      {"string:::go", "string:::go"},
      {"int*:::go", "int*:::go"},
      {" /* a */ BEGIN /* b */ , /* c */ END /* d */ {}", ":::BEGIN, :::END { }"},
  });
}

TEST(Parse, AFormSaysWhichFieldASingleOneIs) {
  using Form = CompileOptions::Form;
  EXPECT_EQ(printed("syscall", on_command_line(Form::Provider)), "syscall:::\n");
  EXPECT_EQ(printed("vmlinux", on_command_line(Form::Module)), ":vmlinux::\n");
  EXPECT_EQ(printed("fbt:vmlinux", on_command_line(Form::Module)), "fbt:vmlinux::\n");
  EXPECT_EQ(printed("read", on_command_line(Form::Function)), "::read:\n");
  EXPECT_EQ(printed("syscall::read", on_command_line(Form::Function)), "syscall::read:\n");
  EXPECT_EQ(printed("syscall /pid == 1/ { x = 1 }", on_command_line(Form::Provider)),
            "syscall::: /(pid == 1)/ { (x = 1); }\n");
  EXPECT_EQ(printed("12 {}", on_command_line(Form::Id)), "12 { }\n");
  EXPECT_EQ(
      printed("a:b", on_command_line(Form::Provider)),
      "[D_PDESC_INVAL] line 1: invalid probe description \"a:b\": Overspecified probe description");
}

TEST(Parse, ASlashEndsThePredicateOnlyBeforeABodyOrTheEnd) {
  expect_programs({
      {"BEGIN /pid == 1/ {}", ":::BEGIN /(pid == 1)/ { }"},
      {"BEGIN /1/ {}", ":::BEGIN /1/ { }"},
      {"BEGIN /a / b/ {}", ":::BEGIN /(a / b)/ { }"},
      {"BEGIN /a / b / c/{}", ":::BEGIN /((a / b) / c)/ { }"},
      {"BEGIN /(a / b) > c/\n{}", ":::BEGIN /((a / b) > c)/ { }"},
      {"BEGIN /x[1]/ /* c */ { y = 4 / 2; }", ":::BEGIN /x[1]/ { (y = (4 / 2)); }"},
      {"BEGIN /(int)x/ {}", ":::BEGIN /((int) x)/ { }"},
      {"BEGIN /f(x)/ {}", ":::BEGIN /f(x)/ { }"},
      {"BEGIN /1/ {} END {}", ":::BEGIN /1/ { }\n:::END { }"},
      {"BEGIN /a / b/ {} END, tick-1s", ":::BEGIN /(a / b)/ { }\n:::END, :::tick-1s"},
      {"BEGIN /x == \"/\" / '/'/ {}", ":::BEGIN /(x == (\"/\" / 47))/ { }"},
      {"BEGIN /a/(b / c)/ {}", ":::BEGIN /(a / (b / c))/ { }"},
      {"BEGIN /a/\n# 12 \"x.d\"\n{ }", ":::BEGIN /a/ { }"},
  });
}

TEST(Parse, StatementsMayBeEmptyAndTheLastNeedsNoSemicolon) {
  expect_programs({
      {"BEGIN{exit(0)}", ":::BEGIN { exit(0); }"},
      {"BEGIN{;;a;;b;}", ":::BEGIN { a; b; }"},
      {"BEGIN{if (a) b; else c;}", ":::BEGIN { if (a) { b; } else { c; } }"},
      {"BEGIN{if (a) {b; c} else if (d) {} d}",
       ":::BEGIN { if (a) { b; c; } else { if (d) { } } d; }"},
      {"BEGIN{if (a) if (b) c; else d}", ":::BEGIN { if (a) { if (b) { c; } else { d; } } }"},
  });
}

TEST(Parse, ClausesDeclarationsAndOptionsKeepTheirOrder) {
  EXPECT_EQ(printed("#!/usr/bin/env clew\n#pragma D option quiet\nint x;\nBEGIN { x = 1 }\n"
                    "#pragma D option bufsize=4m\ninline int k = 3;\nEND { y = 2 }\n",
                    {}),
            "option quiet\nint x\n:::BEGIN { (x = 1); }\noption bufsize=4m\ninline int k = 3\n"
            ":::END { (y = 2); }\n");
}

// --- expressions ---------------------------------------------------------------------------------

TEST(Parse, OperatorsBindAsInCWithXorBetweenAndAndOr) {
  expect_expressions({
      {"a + b * c", "(a + (b * c))"},
      {"a - b - c", "((a - b) - c)"},
      {"a || b ^^ c && d", "(a || (b ^^ (c && d)))"},
      {"a | b ^ c & d == e < f << g", "(a | (b ^ (c & (d == (e < (f << g))))))"},
      {"a = b = c", "(a = (b = c))"},
      {"a <<= b, c ^= d", "((a <<= b), (c ^= d))"},
      {"a ? b : c ? d : e", "(a ? b : (c ? d : e))"},
      {"a ? b, c : d", "(a ? (b, c) : d)"},
      {"-a * !b", "((-a) * (!b))"},
      {"- -a", "(-(-a))"},
      {"*p++", "(*(p++))"},
      {"++*p", "(++(*p))"},
      {"&a[1].b->c", "(&a[1].b->c)"},
      {"a % b / c", "((a % b) / c)"},
      {"(a, b)", "(a, b)"},
      {"~a--", "(~(a--))"},
  });
}

TEST(Parse, VariablesElementsAndAggregationsHaveTheirForms) {
  expect_expressions({
      {"self->x = this->y", "(self->x = this->y)"},
      {"self->a[1, \"s\"]", "self->a[1, \"s\"]"},
      {"x[pid, tid] = timestamp", "(x[pid, tid] = timestamp)"},
      {"x[1][2]", "x[1][2]"},
      {"@ = count()", "(@ = count())"},
      {"@a = sum(x)", "(@a = sum(x))"},
      {"@[execname, ustack()] = avg(y)", "(@[execname, ustack()] = avg(y))"},
      {"@q[1] = lquantize(a, 0, 10, 1)", "(@q[1] = lquantize(a, 0, 10, 1))"},
      {"printa(\"%@d\", @a, @b)", "printa(\"%@d\", @a, @b)"},
      {"`jiffies", "`jiffies"},
      {"vmlinux`jiffies + 1", "(vmlinux`jiffies + 1)"},
      {"args[0]->self.string", "args[0]->self.string"},
      {"curpsinfo->pr_psargs", "curpsinfo->pr_psargs"},
  });
}

TEST(Parse, ParenthesesAroundATypeAreACast) {
  expect_expressions({
      {"(int)x", "((int) x)"},
      {"(x)", "x"},
      {"(uint64_t)x + 1", "(((uint64_t) x) + 1)"},
      {"(struct foo *)x", "((struct foo *) x)"},
      {"((struct foo *)x)->y", "((struct foo *) x)->y"},
      {"(char)(short)-1", "((char) ((short) (-1)))"},
      {"*(unsigned long long *)p", "(*((unsigned long long *) p))"},
      {"(int (*)(int, char *))p", "((int (*)(int, char *)) p)"},
      {"(string)x", "((string) x)"},
      {"(pid)", "pid"},
      {"size_t = (size_t)", "(size_t = size_t)"},
      {"sizeof (int)", "sizeof(int)"},
      {"sizeof (x)", "sizeof(x)"},
      {"sizeof (x)->y", "sizeof(x->y)"},
      {"sizeof x", "sizeof(x)"},
      {"sizeof (struct foo *) + 1", "(sizeof(struct foo *) + 1)"},
      {"stringof(x)", "stringof(x)"},
      {"stringof x->y", "stringof(x->y)"},
      {"offsetof(struct foo, bar)", "offsetof(struct foo, bar)"},
      {"xlate <struct psinfo *>(x)->y", "xlate <struct psinfo *>(x)->y"},
  });
}

// --- constants -----------------------------------------------------------------------------------

TEST(Parse, IntegersHaveTheTypesOfC) {
  expect_expressions({
      {"1", "1"},
      {"0x7fffffff", "2147483647"},
      {"2147483648", "2147483648l"},
      {"0x80000000", "2147483648u"},
      {"0xffffffffffffffff", "18446744073709551615ul"},
      {"18446744073709551615", "18446744073709551615ul"},
      {"017", "15"},
      {"1u", "1u"},
      {"1L", "1l"},
      {"1ull", "1ull"},
      {"1LLU", "1ull"},
  });
}

TEST(Parse, CharacterConstantsMayHoldSeveralBytes) {
  expect_expressions({
      {"'a'", "97"},
      {"'\\0'", "0"},
      {"'\\n'", "10"},
      {"'\\x41'", "65"},
      {"'\\101'", "65"},
      {"'\\''", "39"},
      {"'ab'", "24930"},
      {"'\\377'", "-1"},
      {"'abcdefgh'", "7017280452245743464l"},
  });
}

TEST(Parse, StringsHaveTheEscapesOfC) {
  expect_expressions({
      {R"("a\tb\n")", R"("a\tb\n")"},
      {R"("\"\\")", R"("\"\\")"},
      {R"("\x41\102\q")", R"("ABq")"},
      {R"("/* no comment */")", R"("/* no comment */")"},
  });
}

// --- macro variables -----------------------------------------------------------------------------

TEST(Parse, MacroVariablesAreReplaced) {
  CompileOptions options = on_command_line();
  options.target_pid = 42;
  options.arguments = {"script.d", "7", "name", "\"a b\"", "-3", "0x10", "two words", "libc.so"};
  EXPECT_EQ(printed("pid$target:$7:$$2:entry, tick-$1s { x = $1 + $target; $2 = $3; y = $4 + $5; "
                    "z = $$6; w = $$1; }",
                    options),
            "pid42:libc.so:name:entry, :::tick-7s { (x = (7 + 42)); (name = \"a b\"); (y = (-3 + "
            "16)); (z = \"two words\"); (w = \"7\"); }\n");
  EXPECT_EQ(printed("BEGIN { x = $pid }"), fmt::format(":::BEGIN {{ (x = {}); }}\n", getpid()));
}

TEST(Parse, MacroArgumentsMustBeDefinedAndUsed) {
  CompileOptions options = on_command_line();
  EXPECT_EQ(printed("BEGIN\n{ x = $1 }", options),
            "[D_MACRO_UNDEF] line 2: macro argument $1 is not defined");
  EXPECT_EQ(printed("pid$1:::", options),
            "[D_MACRO_UNDEF] line 1: macro argument $1 is not defined");
  EXPECT_EQ(printed("BEGIN { x = $nothing }", options),
            "[D_MACRO_UNDEF] line 1: macro variable $nothing is not defined");
  options.arguments = {"s", "one", "two"};
  EXPECT_EQ(printed("BEGIN { x = $$1 }", options),
            "[D_MACRO_UNUSED] line 0: extraneous argument 'two' ($2 is not referenced)");
  options.arguments = {"s", "one two"};
  EXPECT_EQ(printed("BEGIN { x = $1 }", options),
            "[D_SYNTAX] line 1: syntax error near \"one two\"");
}

TEST(Parse, OptionsInTheTextSayHowArgumentsAreTaken) {
  CompileOptions options = on_command_line();
  EXPECT_EQ(printed("#pragma D option defaultargs\nBEGIN { x = $1 }", options),
            "option defaultargs\n:::BEGIN { (x = 0); }\n");
  options.arguments = {"s", "one"};
  EXPECT_EQ(printed("BEGIN\n#pragma D option argref\n", options), "option argref\n:::BEGIN\n");
  options.allow_unused_arguments = true;
  EXPECT_EQ(printed("BEGIN", options), ":::BEGIN\n");
}

TEST(Parse, WithDefaultArgumentsAMissingOneIsZeroOrEmpty) {
  CompileOptions options = on_command_line();
  options.default_arguments = true;
  EXPECT_EQ(printed("tick-$1 { x = $2; y = $$3; }", options),
            ":::tick-0 { (x = 0); (y = \"\"); }\n");
}

// --- declarations --------------------------------------------------------------------------------

TEST(Parse, VariablesAreDeclaredWithScopeTypeAndKeys) {
  expect_programs({
      {"int x;", "int x"},
      {"int x, *y, z[4];", "int x\nint * y\nint [4] z"},
      {"self int x;", "self int x"},
      {"this string s;", "this string s"},
      {"unsigned long long x;", "unsigned long long x"},
      {"long unsigned int x;", "unsigned long x"},
      {"const char *const volatile p;", "char * p"},
      {"int a[string, int];", "int a[string, int]"},
      {"int a[5];", "int [5] a"},
      {"int a[2][3];", "int [2][3] a"},
      {"char *names[uint64_t];", "char * names[uint64_t]"},
      {"int (*f)(int, char *, ...);", "int (*)(int, char *, ...) f"},
      {"int (*p)[4];", "int (*)[4] p"},
      {"self int a[int x, string];", "self int a[int, string]"},
      {"uint64_t*x;", "uint64_t * x"},
      {"struct foo *p;", "struct foo * p"},
      {"string s; BEGIN", "string s\n:::BEGIN"},
  });
}

TEST(Parse, CDeclarationsThatDeclareNothingForDAreAccepted) {
  expect_programs({
      {"extern int errno_of(int, const char *, ...); int x;", "int x"},
      {"extern int y; int x;", "int x"},
      {"void f(void); int x;", "int x"},
      {"struct a; union b; int x;", "int x"},
      {"static int f(int a) { if (a) { return 1; } return 2; } int x;", "int x"},
      {"typedef unsigned int id_t; id_t x;", "id_t x"},
      {"provider p { probe go(int, char *); probe stop(int x) : (long y); }; int x;", "int x"},
  });
}

TEST(Parse, TypesOfTheProgramAreKnownToWhatFollows) {
  expect_programs({
      {"typedef struct pair { int a; int b; } pair_t; pair_t p; BEGIN { x = (pair_t *)q }",
       "pair_t p\n:::BEGIN { (x = ((pair_t *) q)); }"},
      {"enum color { RED, GREEN = 5, BLUE }; int a[BLUE]; enum color c;",
       "int [6] a\nenum color c"},
      {"enum { LOW = -3, HIGH = LOW * -2, NEXT }; int a[NEXT];", "int [7] a"},
      {"struct { int x; } v;", "struct (anon) v"},
      {"inline int N = 2 + 3; int a[N * 2];", "inline int N = (2 + 3)\nint [10] a"},
  });
}

TEST(Parse, AVariableHidesATypeOfItsName) {
  expect_programs(
      {{"int size_t; BEGIN { x = (size_t) + 1 }", "int size_t\n:::BEGIN { (x = (size_t + 1)); }"}});
}

TEST(Parse, InlineDefinitionsAndTranslatorsKeepTheirExpressions) {
  expect_programs({
      {"inline int N = 5;", "inline int N = 5"},
      {"inline string name = execname;", "inline string name = execname"},
      {"inline int add[int a, int b] = a + b;", "inline int add[int a, int b] = (a + b)"},
      {"inline char *p = (char *)0;", "inline char * p = ((char *) 0)"},
      {"struct out { int a; string b; };\n"
       "translator struct out < struct in *T > { a = T->x; b = stringof(T->y); };",
       "translator struct out < struct in * T > { a = T->x; b = stringof(T->y); }"},
  });
}

TEST(Parse, ConstantsInDeclarationsAreComputed) {
  TypeTable types;
  const Compiled<Program> program = parse(
      "struct s { char c; int a : 3; int b[sizeof (int) * 2]; };"
      "inline int N = 1 << 4; int a[N - 1]; int b[offsetof(struct s, b)];"
      "int c[(unsigned char)300 > 40 ? 7 : 8];",
      on_command_line(), types);
  ASSERT_TRUE(program) << program.error().message;
  EXPECT_EQ(types.name_of(program->variables[0].type), "int [15]");
  EXPECT_EQ(types.name_of(program->variables[1].type), "int [4]");
  EXPECT_EQ(types.name_of(program->variables[2].type), "int [7]");
  EXPECT_EQ(types.size_of(types.find("", Tag::Struct, "s")), 36U);
}

// --- control lines -------------------------------------------------------------------------------

TEST(Parse, PragmasSetOptions) {
  expect_programs({
      {"#pragma D option quiet\nBEGIN", "option quiet\n:::BEGIN"},
      {"  #  pragma D option aggsize = 4m \nBEGIN", "option aggsize=4m\n:::BEGIN"},
      {"#pragma D option cpp=\"a b\"\nBEGIN", "option cpp=a b\n:::BEGIN"},
      {"#pragma D attributes Evolving/Evolving/ISA provider foo provider\nBEGIN", ":::BEGIN"},
      {"#pragma D binding \"1.0\" x\n#pragma D depends_on module vmlinux\nBEGIN", ":::BEGIN"},
      {"#ident \"x\"\n#pragma ident \"y\"\n#\nBEGIN", ":::BEGIN"},
      {"BEGIN {\n#pragma D option quiet\nx }", "option quiet\n:::BEGIN { x; }"},
  });
}

TEST(Parse, LinesAreNumberedAsControlLinesSay) {
  expect_syntax_errors({
      {"BEGIN\n\n{ ) }", "[D_SYNTAX] line 3: extra ) in input stream"},
      {"# 40 \"x.d\"\nBEGIN { ) }", "[D_SYNTAX] line 40: extra ) in input stream"},
      {"#line 7\n\nBEGIN { ) }", "[D_SYNTAX] line 8: extra ) in input stream"},
      {"/* \n\n */ BEGIN { \"\\\n\" }", "[D_STR_NL] line 3: newline encountered in string literal"},
  });
}

// --- errors --------------------------------------------------------------------------------------

TEST(Parse, ErrorsOfTheTextHaveDTracesWords) {
  expect_syntax_errors({
      {"BEGIN { } }", "[D_SYNTAX] line 1: syntax error near \"}\""},
      {"BEGIN { x = }", "[D_SYNTAX] line 1: syntax error near \"}\""},
      {"BEGIN { x", "[D_SYNTAX] line 1: syntax error near end of input"},
      {"BEGIN { while (1) }", "[D_SYNTAX] line 1: syntax error near \"while\""},
      {"BEGIN { \"a\" \"b\" }", "[D_SYNTAX] line 1: syntax error near \"\"b\"\""},
      {"BEGIN END", "[D_SYNTAX] line 1: syntax error near \"END\""},
      {"BEGIN,", "[D_SYNTAX] line 1: syntax error near end of input"},
      {"BEGIN /1 {}", "[D_SYNTAX] line 1: syntax error near \"{\""},
      {"BEGIN //", "[D_SYNTAX] line 1: syntax error near \"/\""},
      {"BEGIN { x[] }", "[D_SYNTAX] line 1: syntax error near \"]\""},
      {"BEGIN { self }", "[D_SYNTAX] line 1: syntax error near \"}\""},
      {"BEGIN { a \\ b }", "[D_SYNTAX] line 1: syntax error near \"\\\""},
      {"BEGIN { \x01 }", "[D_SYNTAX] line 1: syntax error near \"\\001\""},
      {"BEGIN { if (1) }", "[D_SYNTAX] line 1: syntax error near \"}\""},
      {"foo_t x;", "[D_SYNTAX] line 1: syntax error near \"x\""},
      {"int x = 5;", "[D_SYNTAX] line 1: syntax error near \"=\""},
      {"a:b:c:d:e {}",
       "[D_PDESC_INVAL] line 1: invalid probe description \"a:b:c:d:e\": Overspecified probe "
       "description"},
      {"", "[D_EMPTY] line 1: empty D program translation unit"},
      {"/* only */", "[D_EMPTY] line 1: empty D program translation unit"},
      {"/* /* */ */", "[D_SYNTAX] line 1: /* encountered inside a comment"},
      {"BEGIN */", "[D_SYNTAX] line 1: */ encountered outside a comment"},
      {"/* a", "[D_SYNTAX] line 1: end-of-file encountered before matching */"},
  });
}

TEST(Parse, ErrorsOfConstantsHaveDTracesWords) {
  expect_syntax_errors({
      {"BEGIN { \"a\n\" }", "[D_STR_NL] line 1: newline encountered in string literal"},
      {"BEGIN { \"a", "[D_SYNTAX] line 1: end-of-file encountered before matching \""},
      {"BEGIN { 'a\n' }", "[D_CHR_NL] line 1: newline encountered in character constant"},
      {"BEGIN { '' }", "[D_CHR_NULL] line 1: empty character constant"},
      {"BEGIN { 'abcdefghi' }", "[D_CHR_OFLOW] line 1: character constant is too long"},
      {"BEGIN { 089 }", "[D_INT_DIGIT] line 1: constant 089 contains invalid digit 8"},
      {"BEGIN { 18446744073709551616 }",
       "[D_INT_OFLOW] line 1: constant 18446744073709551616 results in integer overflow"},
      {"BEGIN { 1.5 }", "[D_SYNTAX] line 1: floating-point constants are not permitted"},
      {"BEGIN { 1e5 }", "[D_SYNTAX] line 1: floating-point constants are not permitted"},
      {"BEGIN { 12ab }", "[D_SYNTAX] line 1: syntax error near \"ab\""},
      {"BEGIN { 1uu }", "[D_SYNTAX] line 1: syntax error near \"1uu\""},
  });
}

TEST(Parse, ErrorsOfDeclarationsHaveTheirTags) {
  const auto tag = [](std::string_view text) {
    const std::string result = printed(text);
    return result.substr(0, result.find(']') + 1);
  };
  EXPECT_EQ(tag("unsigned float x;"), "[D_DECL_SIGNINT]");
  EXPECT_EQ(tag("int size_t x;"), "[D_SYNTAX]");
  EXPECT_EQ(tag("struct a { int x; } int y;"), "[D_DECL_COMBO]");
  EXPECT_EQ(tag("self this int x;"), "[D_DECL_CLASS]");
  EXPECT_EQ(tag("register int x;"), "[D_DECL_BADCLASS]");
  EXPECT_EQ(tag("typedef char size_t;"), "[D_DECL_IDRED]");
  EXPECT_EQ(tag("struct a { int x; }; struct a { int y; };"), "[D_DECL_TYPERED]");
  EXPECT_EQ(tag("struct a { struct a { int x; } y; };"), "[D_DECL_TYPERED]");
  EXPECT_EQ(tag("void x;"), "[D_DECL_VOIDOBJ]");
  EXPECT_EQ(tag("struct nowhere x;"), "[D_DECL_INCOMPLETE]");
  EXPECT_EQ(tag("struct a { struct a x; };"), "[D_DECL_INCOMPLETE]");
  EXPECT_EQ(tag("struct a { int; };"), "[D_DECL_MNAME]");
  EXPECT_EQ(tag("struct a { self int x; };"), "[D_DECL_BADCLASS]");
  EXPECT_EQ(tag("struct a { int x(int); };"), "[D_DECL_COMBO]");
  EXPECT_EQ(tag("struct a { int x, x; };"), "[D_UNKNOWN]");
  EXPECT_EQ(tag("struct a { int x : y; };"), "[D_DECL_BFCONST]");
  EXPECT_EQ(tag("struct a { int x : 0; };"), "[D_DECL_BFCONST]");
  EXPECT_EQ(tag("struct a { int x : 33; };"), "[D_DECL_BFSIZE]");
  EXPECT_EQ(tag("struct a { char *x : 3; };"), "[D_DECL_BFTYPE]");
  EXPECT_EQ(tag("enum e { A = x };"), "[D_DECL_ENCONST]");
  EXPECT_EQ(tag("enum e { A = 0x7fffffffff };"), "[D_DECL_ENOFLOW]");
  EXPECT_EQ(tag("enum e { A }; enum f { B, A };"), "[D_DECL_IDRED]");
  EXPECT_EQ(tag("void a[4];"), "[D_DECL_VOIDOBJ]");
  EXPECT_EQ(tag("int a[4][int];"), "[D_DECL_DYNOBJ]");
  EXPECT_EQ(tag("struct s { int a[int]; };"), "[D_DECL_DYNOBJ]");
  EXPECT_EQ(tag("int a[-1];"), "[D_DECL_ARRSUB]");
  EXPECT_EQ(tag("int a[1 / 0];"), "[D_DECL_ARRSUB]");
  EXPECT_EQ(tag("char a[1 << 20][1 << 20];"), "[D_DECL_ARRBIG]");
  EXPECT_EQ(tag("this int a[int];"), "[D_DECL_LOCASSC]");
  EXPECT_EQ(tag("int a[int, ...];"), "[D_DECL_PROTO_VARARGS]");
  EXPECT_EQ(tag("int a[void];"), "[D_DECL_PROTO_TYPE]");
  EXPECT_EQ(tag("int f(static int);"), "[D_DECL_PARMCLASS]");
  EXPECT_EQ(tag("int *f(int)(int);"), "[D_DECL_COMBO]");
  EXPECT_EQ(tag("int vmlinux`x;"), "[D_DECL_SCOPE]");
  EXPECT_EQ(tag("int self->x;"), "[D_DECL_SCOPE]");
  EXPECT_EQ(tag("struct vmlinux`nothing *x;"), "[D_UNKNOWN]");
  EXPECT_EQ(tag("inline int f[int a, int a] = 1;"), "[D_DECL_PROTO_FORM]");
  EXPECT_EQ(tag("self int f(int);"), "[D_DECL_COMBO]");
}

TEST(Parse, ErrorsOfControlLinesHaveTheirTags) {
  expect_syntax_errors({
      {"#pragma D nothing\nBEGIN", "[D_PRAGMA_INVAL] line 1: invalid D pragma: nothing"},
      {"#pragma D option\nBEGIN",
       "[D_PRAGMA_MALFORM] line 1: malformed #pragma option <option>=<val>"},
      {"#pragma D option a b\nBEGIN",
       "[D_PRAGMA_MALFORM] line 1: superfluous arguments specified for #pragma option"},
      {"\n#error no way\nBEGIN", "[D_PRAGERR] line 2: #error: no way "},
      {"#include <x>\nBEGIN", "[D_PRAGCTL_INVAL] line 1: invalid control directive: #include"},
  });
}

TEST(Parse, AFileNeedsABodyOrPredicate) {
  EXPECT_EQ(printed("BEGIN", {}),
            "[D_SYNTAX] line 1: expected predicate and/or actions following probe description");
  EXPECT_EQ(printed("BEGIN /1/", {}),
            "[D_SYNTAX] line 1: expected actions { } following probe description and predicate");
  CompileOptions options;
  options.allow_empty_files = true;
  EXPECT_EQ(printed("", options), "");
  EXPECT_EQ(printed("#pragma D option empty\n", {}), "option empty\n");
  EXPECT_THAT(printed("#pragma D option empty=off\n", {}), testing::StartsWith("[D_EMPTY]"));
}

// --- hostile text --------------------------------------------------------------------------------

std::string repeated(std::string_view text, size_t count) {
  std::string result;
  for (size_t i = 0; i < count; ++i)
    result += text;
  return result;
}

TEST(Parse, DeepNestingIsAnErrorAndNoCrash) {
  constexpr size_t kMany = 100'000;
  for (const std::string_view piece :
       {"(",    "!",          "x[",      "f(",          "a?",
        "a?b:", "a=",         "sizeof ", "stringof ",   "(int)",
        "{",    "if(1)",      "if(1){",  "if(1);else ", "x+",
        "x/",   "x,",         "-",       "(struct{",    "sizeof(int[1])+",
        "@[",   "xlate<int>("}) {
    const std::string result = printed("BEGIN{" + repeated(piece, kMany));
    EXPECT_THAT(result, testing::StartsWith("[D_SYNTAX]")) << piece;
  }
  for (const std::string_view piece :
       {"int(", "int*", "int (*", "struct{", "struct a{struct{", "int x[1", "int f(int(",
        "enum{A=(", "inline int x = (", "#", "int a[int["}) {
    EXPECT_THAT(printed(repeated(piece, kMany)), testing::StartsWith("[D_")) << piece;
  }
  EXPECT_THAT(printed("BEGIN{x" + repeated("->x", kMany) + "}"), HasSubstr("too long"));
  EXPECT_THAT(printed("int x" + repeated("[1]", kMany) + ";"), HasSubstr("too deeply"));
  EXPECT_THAT(printed("int " + repeated("*", kMany) + "x;"), HasSubstr("too deeply"));
}

TEST(Parse, ManySignsAreLookedAtOnce) {
  const std::string signs = repeated("#", 1 << 20);
  EXPECT_THAT(printed("BEGIN / 1 / " + signs), testing::StartsWith("[D_SYNTAX]"));
  EXPECT_THAT(printed("BEGIN / 1 / " + repeated(" ", 1 << 20) + signs),
              testing::StartsWith("[D_SYNTAX]"));
}

TEST(Parse, ManyInlinesAreReadOnceEach) {
  constexpr int kMany = 10'000;
  std::string text;
  for (int i = 0; i < kMany; ++i)
    text += fmt::format("inline int a{} = 1;", i);
  EXPECT_THAT(printed(text + "BEGIN { a0; }"), HasSubstr("a9999"));
}

TEST(Parse, TheTextMayAskForTagsOfItsErrors) {
  TypeTable types;
  const auto fails = [&types](std::string_view text) {
    return parse(text, {}, types).error().is_tagged;
  };
  EXPECT_TRUE(fails("#pragma D option errtags\nBEGIN { ; ) }"));
  EXPECT_FALSE(fails("#pragma D option errtags=off\nBEGIN { ; ) }"));
  EXPECT_FALSE(fails("BEGIN { ; ) }\n#pragma D option errtags"));
}

TEST(Parse, InlineConstantsThatDoubleAreBounded) {
  std::string text = "inline int a0 = 1;";
  for (int i = 1; i < 60; ++i)
    text += fmt::format("inline int a{} = a{} + a{};", i, i - 1, i - 1);
  EXPECT_THAT(printed(text + "int x[a59];"), HasSubstr("[D_DECL_ARRSUB]"));
}

TEST(Parse, AnyMixtureOfPiecesEndsWithATreeOrAnError) {
  constexpr std::array<std::string_view, 44> kPieces = {
      "BEGIN",    "{",      "}",      "/",      "(",          ")",  "[",  "]",
      ",",        ";",      "self",   "this",   "->",         "x",  "@a", "1",
      "'c'",      "\"s\"",  "int",    "struct", "s",          "*",  "=",  "if",
      "else",     "?",      ":",      "inline", "translator", "<",  ">",  "typedef",
      "enum",     "sizeof", "$1",     "`",      "/*",         "*/", "\n", "#pragma D option",
      "offsetof", "xlate",  "string", "union"};
  std::mt19937 random(1);
  for (int round = 0; round < 5'000; ++round) {
    std::string text = round % 2 == 0 ? "BEGIN {" : "";
    for (uint64_t i = 0, count = random() % 24; i < count; ++i)
      text += fmt::format("{} ", kPieces[random() % kPieces.size()]);
    EXPECT_FALSE(printed(text).empty()) << text;
  }
}

}  // namespace
}  // namespace clew::query::d
