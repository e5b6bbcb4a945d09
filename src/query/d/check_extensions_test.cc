// SPDX-License-Identifier: Apache-2.0
// Calls of functions of extensions: their trees, and the errors of wrong ones.
#include <gtest/gtest.h>

#include "query/d/check_testing.h"
#include "query/fake_types.h"

namespace clew::query::d {
namespace {

class CheckExtensions : public testing::Test {
 protected:
  Compiled<Script> checked(std::string_view body) {
    CompileOptions options = script_options();
    options.extensions = &extensions_;
    return compiled(in_clause(body), options);
  }
  std::string tree(std::string_view body) {
    const auto script = checked(body);
    if (!script) return shown_error(script.error());
    const Node& last = script->clauses.back().body.back().expression;
    return print(last, script->types) + " : " + script->types.name_of(last.type);
  }

  FakeExtensions extensions_;
};

TEST_F(CheckExtensions, ArgumentsAndResultsHaveTheTypesOfC) {
  EXPECT_EQ(tree("sketch_sample(arg0)"), "sketch_sample(((uint64_t) arg0)) : uint8_t");
  EXPECT_EQ(tree("sketch_sample((char) cpu)"),
            "sketch_sample(((uint64_t) ((char) cpu))) : uint8_t");
  EXPECT_EQ(tree("moving_average(cpu) + 1"), "(moving_average(((int64_t) cpu)) + 1) : int64_t");
  EXPECT_EQ(tree("walk(arg0, arg1)"), "walk(((void *) arg0), ((uint32_t) arg1)) : uint32_t");
}

TEST_F(CheckExtensions, PointersAreAddressesAndSoAreArrays) {
  EXPECT_EQ(tree("walk(curthread, 1)"), "walk(curthread, 1) : uint32_t");
  EXPECT_EQ(tree("walk(curthread->slots, 1)"), "walk(((long *) curthread->slots), 1) : uint32_t");
  EXPECT_EQ(tree("walk(0, 1)"), "walk(0, 1) : uint32_t");
}

TEST_F(CheckExtensions, EachFunctionIsNotedOnce) {
  const auto script =
      checked("trace(sketch_sample(1) + sketch_sample(2)); trace(moving_average(3));");
  ASSERT_TRUE(script);
  EXPECT_EQ(script->extension_functions,
            (std::vector<std::string>{"sketch_sample", "moving_average"}));
  const Node& sum = script->clauses[0].body[0].expression.operands[0];
  EXPECT_EQ(sum.kind, NodeKind::Binary);
  const Node* call = &sum.operands[0];
  while (call->kind == NodeKind::Cast)
    call = &call->operands[0];
  EXPECT_TRUE(call->is_extension);
  EXPECT_EQ(call->index, 0U);
}

// A search for types walks the program more than once.
TEST_F(CheckExtensions, FunctionsAreNotedOfTheLastWalkOnly) {
  const auto script = checked("trace(self->later); self->later = sketch_sample(1);");
  ASSERT_TRUE(script);
  EXPECT_EQ(script->extension_functions, std::vector<std::string>{"sketch_sample"});
}

TEST_F(CheckExtensions, WrongCallsAreErrors) {
  EXPECT_EQ(tree("nothing()"), "D_EXT_FUNC: nothing( ) cannot be called: it gives no integer");
  EXPECT_EQ(tree("sketch_sample()"),
            "D_PROTO_LEN: sketch_sample( ) prototype mismatch: 0 args passed, 1 expected");
  EXPECT_EQ(tree("walk(\"text\", 1)").substr(0, 12), "D_PROTO_ARG:");
  EXPECT_EQ(tree("sketch_sample(curthread)").substr(0, 12), "D_PROTO_ARG:");
  EXPECT_EQ(tree("sketch_sample(\"text\")").substr(0, 12), "D_PROTO_ARG:");
  EXPECT_EQ(tree("walk(*curthread, 1)").substr(0, 12), "D_PROTO_ARG:");
}

TEST_F(CheckExtensions, FunctionsThatNobodyHasAreUndefined) {
  const auto script = checked("sketch_sampel(1)");
  ASSERT_FALSE(script);
  EXPECT_EQ(shown_error(script.error()), "D_FUNC_UNDEF: undefined function name: sketch_sampel");
  EXPECT_EQ(script.error().nearest, "sketch_sample");
  const auto own = checked("strlne(\"a\")");
  ASSERT_FALSE(own);
  EXPECT_EQ(own.error().nearest, "strlen");
  EXPECT_EQ(error_of(in_clause("sketch_sample(1)")),
            "D_FUNC_UNDEF: undefined function name: sketch_sample");
}

}  // namespace
}  // namespace clew::query::d
